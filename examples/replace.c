/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replace - one thread is stopped and replaced, while all others go on.
 *
 *	replace [SECONDS]
 *
 *   feed     a thread that the coordinator has started, with a scope of its own
 *            (EVC_OWN_SCOPE): main stops this thread alone, waits for its
 *            result, and starts the next one, as a server does that has read a
 *            new list of peers
 *   player   a thread that another library has made, and joins itself
 *            (EVC_NOT_JOINED).  It is a member for as long as it lives.  At the
 *            stop it saves what it has, as long as there is time
 *
 * The exit status is 0.
 */
#include <evcoord.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEEDS = 3, SONGS = 5 };

static double seconds = 0.2;

/* c is the scope of this thread: its stop is one for this thread alone, or that
   of the whole program. */
static evc_status
feed(evc_coord *c, void *arg)
{
	(void)arg;
	while (evc_sleep(c, seconds / 10) == 0)
		; /* ask one peer after the other */
	return EVC_CANCELLED; /* it has obeyed */
}

/* What the other library runs.  The thread says that it is a member; from then
   on no join returns before it has ended. */
static void *
player(void *arg)
{
	evc_member_opts opts = { .flags = EVC_NOT_JOINED };
	evc_coord *c = arg;
	unsigned saved = 0;

	evc_register_thread(c, "player", pthread_self(), &opts, NULL);
	evc_wait_for_stop(c, INFINITY);
	/* A save takes a tenth of a second at most. */
	while (saved < SONGS && evc_stop_left(c) > 0.1)
		saved++;
	printf("player: %u of %d songs are saved\n", saved, SONGS);
	return NULL;
}

static evc_status
start_feed(evc_coord *c, evc_id *id)
{
	evc_member_opts opts = { .flags = EVC_OWN_SCOPE };

	return evc_thread_start(c, "feed", feed, NULL, &opts, id);
}

/* Replace feed, as long as no stop comes. */
static void
replace(evc_coord *c)
{
	evc_status result;
	unsigned i;
	evc_id id;

	for (i = 1; i <= FEEDS; i++) {
		if (start_feed(c, &id) < 0 || evc_sleep(c, seconds) != 0)
			break;
		evc_member_stop(c, id, 0, "there is a newer list");
		if (evc_member_wait(c, id, INFINITY, &result) < 0)
			break;
		printf("feed %u: %s\n", i, evc_status_name(result));
	}
	/* The last one ends with all others. */
	if (start_feed(c, &id) == 0)
		evc_request_stop(c, 0, "all lists were read");
	evc_member_wait(c, id, INFINITY, NULL);
}

int
main(int argc, char **argv)
{
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	evc_config cfg = { .name = "replace" };
	pthread_t other;
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	char *end = "";
	int status;

	if (argc > 1)
		seconds = strtod(argv[1], &end);
	if (argc > 2 || *end || !(seconds > 0 && seconds <= 3600)) {
		fputs("usage: replace [SECONDS]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	if (evc_new(NULL, &cfg, &c) < 0) {
		fprintf(stderr, "replace: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	evc_signals_start(c, NULL);
	if (pthread_create(&other, NULL, player, c) != 0) {
		fprintf(stderr, "replace: no thread\n");
		return EXIT_FAILURE;
	}
	replace(c);
	st = evc_join(c, NULL, &v);
	printf("%s\n", v.stop.text);
	pthread_join(other, NULL); /* as its owner does */
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		fflush(stdout);
		_exit(status);
	}
	return status;
}
