/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The zone file is read again on a thread of its own, so that nobody who
 * answers waits for the disk.  Nobody waits for that thread, either: a stop
 * leaves it behind.
 */
#include <stdio.h>

#include "dnsd.h"

void
serving(struct server *s)
{
	/* stop: */
	evc_systemd_ready(s->coord, "answering");
	/* :stop */
}

/* On the thread: it uses these fields of the server alone. */
static int
load(void *arg)
{
	struct server *s = arg;

	s->loaded = zone_load(s->zone_file, s->why, sizeof(s->why));
	return 0;
}

/* On the home loop again. */
static void
loaded(UNUSED evc_reactor *home, UNUSED evc_status why, UNUSED int result,
       void *arg)
{
	struct server *s = arg;

	s->reloading = false;
	if (s->loaded == NULL) {
		fprintf(stderr, "dnsd: not reloaded: %s\n", s->why);
	} else {
		printf("dnsd: reloaded, serial %u\n",
		       (unsigned)s->loaded->serial);
		fflush(stdout);
		zone_set(&s->zone, s->loaded);
	}
	serving(s);
	if (s->again)
		reload_ask(s);
}

void
reload_ask(struct server *s)
{
	s->again = s->reloading;
	if (s->reloading)
		return; /* what is read may be older than what was asked for */
	/* stop: */
	evc_call_opts o = { .name = "reload", .no_wait = true,
			    .reactor = evc_home(s->coord), .done = loaded };

	s->reloading = !evc_call_detached_with(s->coord, load, s, 0, &o, NULL);
	/* :stop */
	if (!s->reloading)
		fprintf(stderr, "dnsd: not reloaded: there is no thread\n");
	else
		/* stop: */
		evc_systemd_reloading(s->coord, "reading the zone");
	/* :stop */
}
