/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that reads the zone file again, so that nobody who answers waits
 * for the disk.
 */
#include <math.h>
#include <stdio.h>

#include "dnsd.h"

void
reload_ask(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	s->reload = true;
	pthread_mutex_unlock(&s->lock);
	/* stop: */
	evc_cond_signal(s->asked);
	/* :stop */
}

static void
reload(struct server *s)
{
	char why[256];
	struct zone *zone;

	/* stop: */
	evc_progress("reading the zone");
	/* :stop */
	zone = zone_load(s, why, sizeof(why));
	/* stop: */
	evc_progress(NULL);
	/* :stop */
	if (zone == NULL) {
		fprintf(stderr, "dnsd: not reloaded: %s\n", why);
		return;
	}
	printf("dnsd: reloaded, serial %u\n", (unsigned)zone->serial);
	fflush(stdout);
	zone_set(&s->zone, zone);
}

static bool
asked(void *arg)
{
	struct server *s = arg;

	return s->reload;
}

evc_status
reload_thread(UNUSED evc_coord *c, void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	/* stop: */
	while (evc_cond_wait(s->asked, &s->lock, asked, s, INFINITY) == 0) {
		/* :stop */
		s->reload = false;
		pthread_mutex_unlock(&s->lock);
		reload(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}
