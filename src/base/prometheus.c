/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prometheus.h"

static void
add_name(struct text *t, const char *what, const char *room, const char *name)
{
	evc__text_fmt(t, "# %s evcoord_%s%s%s ", what, room != NULL ? room : "",
		      room != NULL ? "_" : "", name);
}

void
evc__prometheus_head(struct text *t, const char *room, const char *name,
		     const char *type, const char *help)
{
	add_name(t, "HELP", room, name);
	evc__text_fmt(t, "%s\n", help);
	add_name(t, "TYPE", room, name);
	evc__text_fmt(t, "%s\n", type);
}

void
evc__prometheus_escaped(struct text *t, const char *s)
{
	char one[2] = { '\0', '\0' };

	/* These three are escaped; the rest is UTF-8, or the reader makes of it
	   what it can. */
	for (; *s != '\0'; s++) {
		one[0] = *s;
		evc__text_add(t, *s == '\\'   ? "\\\\"
				 : *s == '"'  ? "\\\""
				 : *s == '\n' ? "\\n"
					      : one);
	}
}

void
evc__prometheus_whole(struct text *t, uint64_t v)
{
	evc__text_fmt(t, "} %llu\n", (unsigned long long)v);
}
