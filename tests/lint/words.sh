#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Comments name what they speak of.  In those of src/, include/ and tools/ two
# counts for each 1,000 words may only fall: of who, whom, whose and whoever, and
# of the pronouns it, that, one and what.  The goals are 1 and 60.  Lower these
# figures when the lint says that they can be.
who_most=0.38
pronouns_most=27
. "$(dirname "$0")/common.sh"
need src include tools

# ROOM WORDS WHO PRONOUNS
# shellcheck disable=SC2046
comments $(find src include tools -name '*.[ch]' | sort) | awk '
	/SPDX-License-Identifier/ { next }
	{
		room = $0
		sub(/:.*/, "", room)
		sub(/\/[^\/]*$/, "", room)
		sub(/^[^:]*:[0-9]*:/, "")
		many = split(tolower($0), word, /[^a-z0-9_]+/)
		for (i = 1; i <= many; i++) {
			if (word[i] !~ /[a-z]/)
				continue
			words[room]++
			who[room] += word[i] ~ /^who(m|se|ever)?$/
			pronouns[room] += word[i] ~ /^(it|that|one|what)$/
		}
	}
	END {
		for (room in words)
			print room, words[room], who[room], pronouns[room]
	}' | sort >"$tmp/rooms"

awk -v who_most=$who_most -v pronouns_most=$pronouns_most '
	function row(name, words, who, pronouns) {
		printf "%-24s %7d %7.1f %7.1f\n", name, words, \
			who * 1000 / words, pronouns * 1000 / words
	}
	function judge(name, now, most) {
		if (now > most)
			printf "%s: %.2f, and %.2f at most\n", \
				name, now, most >broken
		else if (now < most * 0.95)
			printf "note: %s: %.2f; lower the figure %.2f\n", \
				name, now, most
	}
	BEGIN {
		broken = ARGV[2]
		ARGV[2] = ""
		printf "%-24s %7s %7s %7s\n", "room", "words", "who", "pronoun"
	}
	{
		row($1, $2, $3, $4)
		words += $2
		who += $3
		pronouns += $4
	}
	END {
		row("all", words, who, pronouns)
		judge("who, whom, whose, whoever", who * 1000 / words, who_most)
		judge("it, that, one, what", pronouns * 1000 / words,
		      pronouns_most)
	}' "$tmp/rooms" "$tmp/above"
[ ! -e "$tmp/above" ] ||
	broken_lines "more for each 1,000 words of comments" <"$tmp/above"
verdict
