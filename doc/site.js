/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search of the pages that `make html` makes.  search-index.js has the
 * places, each [text, where, link], and the words of each page.
 */
"use strict";
const root = document.currentScript.dataset.root;
const box = document.getElementById("search");
const found = document.getElementById("found");

/* How well a place fits, 0 for not at all: all terms stand in the text. */
function rank(text, terms) {
	const low = text.toLowerCase();

	if (!terms.every(term => low.includes(term)))
		return 0;
	return low === terms.join(" ") ? 4 : low.startsWith(terms[0]) ? 3 : 2;
}

function search(query) {
	const terms = query.toLowerCase().split(/\s+/).filter(term => term);
	const hits = [];

	if (terms.length === 0)
		return hits;
	for (const [text, where, link] of places) {
		const points = rank(text, terms);

		if (points > 0)
			hits.push({ points, text, where, link });
	}
	for (const [link, list] of Object.entries(words))
		if (terms.every(term => list.includes(term)))
			hits.push({ points: 1, text: link.replace(/^.*\/|\.html$/g, ""),
				where: "text", link });
	return hits.sort((a, b) => b.points - a.points ||
		a.text.length - b.text.length).slice(0, 30);
}

function show() {
	const hits = search(box.value);

	found.replaceChildren(...hits.map(hit => {
		const item = document.createElement("li");
		const a = document.createElement("a");

		a.href = root + hit.link;
		a.textContent = hit.text;
		item.append(a, " ", hit.where);
		return item;
	}));
	if (hits.length === 0)
		found.textContent = "nothing found";
	found.hidden = box.value.trim() === "";
}

box.addEventListener("input", show);
box.addEventListener("keydown", event => {
	if (event.key === "Enter" && found.querySelector("a"))
		found.querySelector("a").click();
});
box.value = new URLSearchParams(location.search).get("q") || "";
show();
