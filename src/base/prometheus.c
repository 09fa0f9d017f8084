/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes metrics in the text format of Prometheus.
 * Called by: the metrics of observe, group and cluster.
 * Locks: none; the buffer is the caller's.
 */
#include "base/prometheus.h"

#include <string.h>

#include "base/text.h"

static void
add_comment(struct text *t, const char *what, const char *room,
	    const char *name)
{
	evc__text_fmt(t, "# %s evcoord_%s%s%s ", what, room != NULL ? room : "",
		      room != NULL ? "_" : "", name);
}

void
evc__prometheus_head(struct text *t, const char *room, const char *name,
		     const char *type, const char *help)
{
	add_comment(t, "HELP", room, name);
	evc__text_fmt(t, "%s\n", help);
	add_comment(t, "TYPE", room, name);
	evc__text_fmt(t, "%s\n", type);
}

bool
evc__is_numbered(const char *name)
{
	const char *hash = strrchr(name, '#');

	return hash != NULL && hash[1] != '\0' &&
	       hash[1 + strspn(hash + 1, "0123456789")] == '\0';
}

#define REPLACEMENT "\xef\xbf\xbd"

void
evc__prometheus_escaped(struct text *t, const char *s)
{
	char part[5];
	uint32_t v;
	size_t n;

	for (; *s != '\0'; s += n > 0 ? n : 1) {
		n = evc__utf8(s, &v);
		memcpy(part, s, n);
		part[n] = '\0';
		/* A byte that is no UTF-8 becomes U+FFFD and its number, and
		   U+FFFD itself is doubled: different texts stay different. */
		if (n == 0)
			evc__text_fmt(t, REPLACEMENT "%02x", (unsigned char)*s);
		else if (v == 0xfffd)
			evc__text_add(t, REPLACEMENT REPLACEMENT);
		else
			evc__text_add(t, v == '\\'   ? "\\\\"
					 : v == '"'  ? "\\\""
					 : v == '\n' ? "\\n"
						     : part);
	}
}

void
evc__prometheus_comment(struct text *t, const char *said)
{
	evc__text_fmt(t, "# %s\n", said);
}

void
evc__prometheus_whole(struct text *t, uint64_t v)
{
	evc__text_fmt(t, "} %llu\n", (unsigned long long)v);
}

void
evc__prometheus_family(struct text *t, const char *room, const char *name,
		       const char *type, const char *help, uint64_t v)
{
	evc__prometheus_head(t, room, name, type, help);
	evc__text_fmt(t, "evcoord_%s_%s{", room, name);
	evc__prometheus_whole(t, v);
}
