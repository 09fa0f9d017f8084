/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of the program about variables.
 */
#ifndef EVC_REDIS_ENGINE_VARIABLES_H
#define EVC_REDIS_ENGINE_VARIABLES_H

#include "redis/engine/pieces.h"

struct redis_engine;

struct questions {
	/* ---- lock ---- */
	pthread_mutex_t lock;
	evc_engine_question *asked, **asked_end; /* by any thread */

	/* ---- loop thread only ---- */
	evc_engine_question *current;  /* NULL: there is no question; a snapshot
					  is none, other questions pass it */
	evc_engine_question *queue, **queue_end;
	uint64_t seq;      /* number of the current question */
	bool begun;        /* the current question may be sent */
	bool sent;         /* an answer is on its way */
	bool doubt;        /* the current question may have been answered */
	uint64_t waits_ns; /* time since which questions wait, and none can be
			      sent; 0: none does */
	uint64_t stop_ns;  /* such a wait ends then, for a stop; 0: there is no
			      stop */
	bool deaf;         /* all questions are refused, with deaf_why */
	char deaf_why[REDIS_WHY_SIZE];
};

/* The loop is known, or its watchers are to stop. */
void evc__redis_questions_init(struct redis_engine *e);
void evc__redis_questions_off(struct redis_engine *e);
/* Send the next question, if there is one. */
void evc__redis_questions(struct redis_engine *e);
/* Refuse questions that have waited for a generation for too long, or for the
   grace of the stop. */
void evc__redis_questions_tick(struct redis_engine *e, uint64_t now);
/* The connection is lost; anew: so is the generation. */
void evc__redis_questions_again(struct redis_engine *e, bool anew);
/* Refuse all questions from now on; _close: for the cluster ends. */
void evc__redis_questions_end(struct redis_engine *e, const char *why);
void evc__redis_questions_close(struct redis_engine *e);

#endif
