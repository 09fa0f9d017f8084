/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions about all variables, which are read and loaded in pieces, so that
 * the server has time for others in between.
 */
#ifndef EVC_REDIS_ENGINE_PIECES_H
#define EVC_REDIS_ENGINE_PIECES_H

#include "redis/client/redis.h"

#include "base/table.h"

struct redis_engine;

/* The vectors of a snapshot, of which fields come in any order, some twice: the
   later field counts.  Zeroed before the first use.  Loop thread only. */
struct vectors {
	struct table by_name;
};

/* Pieces after each other.  The pace is kept by time: after the time of a piece
   comes a longer rest.  Loop thread only. */
struct pace {
	uint64_t asked_ns; /* time of the last piece without an answer */
	uint64_t cost_ns;  /* of a piece, without a wait for others */
	struct ev_timer rest;
};

enum snapshot_step {
	SNAPSHOT_BEGIN, /* the mark is to be set */
	SNAPSHOT_SCAN,  /* var is read */
	SNAPSHOT_PRE,   /* then pre */
	SNAPSHOT_END    /* the mark has to stand still */
};

/* Questions EVC_VARIABLE_ALL.  Loop thread only. */
struct snapshots {
	evc_engine_question *first, **end; /* the first is under way */
	enum snapshot_step step;
	bool sent;         /* an answer is on its way */
	bool left;         /* the mark of an abandoned one may stand */
	bool dropping;     /* the answer to its removal is on its way */
	unsigned tries;    /* lost marks of this question */
	uint64_t number;   /* of the last mark */
	char cursor[24];   /* the next piece */
	unsigned count;    /* variables in a piece */
	uint64_t finished, changes;
	struct vectors vectors; /* what was read of vectors */
	struct pace pace;
};

/* The present question EVC_VARIABLE_REPLACE.  Loop thread only. */
struct load {
	/* entries that were sent and answered; fields of the entry behind them,
	   if that one is a vector */
	size_t at, part;
	size_t next_at, next_part; /* the same after this piece */
	size_t filled, n_filled;   /* fields; fields of this piece */
	bool begun;     /* the hash is there */
	bool placing;   /* SCRIPT_REPLACE was sent */
	unsigned tries; /* lost loads of this question */
	struct pace pace;
};

/* The state of a question. */
enum piece {
	PIECE_MORE,  /* the next piece comes after a rest */
	PIECE_OVER,  /* the answer is known */
	PIECE_DOUBT  /* the lock or variables are lost: the same piece again,
			after a look at the lock */
};

/* ---- pieces.c ---- */

#define PIECES_TRIES 3

void evc__pace_init(struct pace *p,
		    void (*on_rest)(struct ev_loop *, struct ev_timer *, int),
		    struct redis_engine *e);
void evc__pace_asked(struct pace *p);
/* The answer has come, and the rest begins. */
void evc__pace_rest(struct redis_engine *e, struct pace *p);
/* true: a busy server has refused the piece, which is sent again after a
   rest. */
bool evc__pace_refused(struct redis_engine *e, struct pace *p,
		       const redisReply *r);
static inline bool
pace_rests(const struct pace *p)
{
	return ev_is_active(&p->rest);
}

void evc__question_answer(evc_engine_question *q, evc_status status,
			  const char *text);
/* The question has failed, with an error or another unexpected answer. */
void evc__question_error(evc_engine_question *q, const redisReply *r);
/* true: the server has changed nothing, and the lock has to be looked at. */
bool evc__reply_is_doubt(const redisReply *r);

/* ---- vectors.c ---- */

/* Take a field of `var` or `pre`, if it is of a vector; of no bytes: there was
   no such field.  1: taken; 0: it is a variable as others are; < 0: refused. */
int evc__vectors_take(struct vectors *v, const char *field,
		      const evc_value *bytes);
/* Give the whole vectors, each as a part with a single entry. */
evc_status evc__vectors_give(struct vectors *v, evc_engine_question *q,
			     const evc_engine_answer *like);
void evc__vectors_free(struct vectors *v);
/* The number of fields of a variable with this value: 1, and of a vector its
   chunks, too. */
size_t evc__vector_n_fields(const evc_value *v);
/* Add field i of a variable and its bytes. Returns their size. */
size_t evc__vector_add_field(struct redis_args *a,
			     const evc_engine_entry *x, size_t i);

/* ---- snapshot.c ---- */

/* Send SCRIPT_ALL; what: "counts". */
bool evc__snapshot_script(struct redis_engine *e, const char *what,
			  redis_reply_fn *fn);
/* Send the next piece, if there is a snapshot to be read. */
void evc__snapshot_go_on(struct redis_engine *e);
void evc__snapshot_ask(struct redis_engine *e, evc_engine_question *q);
/* Begin anew: all parts so far count for nothing. */
void evc__snapshot_anew(struct redis_engine *e);
/* Refuse all snapshots. */
void evc__snapshot_end(struct redis_engine *e, const char *why);
void evc__snapshot_on_rest(struct ev_loop *ev, struct ev_timer *timer,
			   int events);

/* ---- load.c: the current question ---- */

void evc__load_begin(struct redis_engine *e);
/* Begin anew: nothing was put in place. */
void evc__load_anew(struct redis_engine *e);
bool evc__load_send(struct redis_engine *e, redis_reply_fn *fn);
/* PIECE_OVER: r is the answer to the question, or an error. */
enum piece evc__load_answered(struct redis_engine *e, const redisReply *r);
/* The question ends without its load: delete the hash. */
void evc__load_drop(struct redis_engine *e);

#endif
