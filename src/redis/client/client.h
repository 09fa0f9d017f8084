/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's own: what client*.c share.
 *
 *     client.c           its life: looking, coming up, going down, trying again
 *     client_link.c      one connection
 *     client_say.c       what was said on it and has no answer yet
 *     client_login.c     what is said first, and whether the server can be used
 *     client_name.c      a host's name becomes a number, on a thread
 *     client_sentinel.c  where the server is, when Sentinels know that
 *
 * What goes wrong anywhere is only noted (evc__client_lost); the connections are
 * taken down in the loop's next turn, so nothing of hiredis is freed while it is
 * in use, and no reply is called from within another one.
 */
#ifndef EVC_REDIS_CLIENT_H
#define EVC_REDIS_CLIENT_H

#include "base/list.h"
#include "engine/on_loop.h"
#include "redis/client/redis.h"

#define RUN_ROOM     64
#define SERVER_ROOM  96
#define NUMBERS_MOST 4 /* of one name, that are tried */
#define NUMBER_ROOM  64

/* A command without an answer. */
struct said {
	struct said *next;
	redis_reply_fn *fn; /* NULL: nobody wants it */
	void *arg;
	/* of a script: the command, and where its number of keys begins, to say
	   it again with the whole text */
	char *command;
	size_t n, keys_at;
	enum redis_script script;
	bool by_sha;
	double blocks; /* seconds that an XREAD may wait; < 0: for ever */
};

/* Said by evc__login_begin, answered in that order. */
enum login_step {
	LOGIN_AUTH,
	LOGIN_SELECT,
	LOGIN_NAME,
	LOGIN_INFO,
	LOGIN_TRY,   /* may the user do what is needed, and here? */
	LOGIN_SCRIPT /* and all numbers above: each of them */
};
#define LOGIN_STEPS (LOGIN_SCRIPT + SCRIPTS)

struct link {
	struct redis_client *cl;
	redisAsyncContext *ac; /* NULL: none */
	struct said *first, **last;
	uint64_t heard; /* mono: when anything came, or what had to wait went on */
	bool full;      /* the kernel has not taken all that there is to write */
	unsigned steps[LOGIN_STEPS];
	unsigned n_steps;   /* of the login */
	unsigned at;        /* the step that the next answer is to */
	void (*logged_in)(struct redis_client *cl);
	char run[RUN_ROOM]; /* of its server, */
	char data[RUN_ROOM], data_before[RUN_ROOM]; /* and the replication
				ids of what it has */
};

/* What the client is at. */
enum client_state {
	CLIENT_WAITS,   /* until it tries again */
	CLIENT_ASKS,    /* a Sentinel: its name is looked up, or it was asked */
	CLIENT_FOUND,   /* where the server is; next it */
	CLIENT_LOOKS,   /* up the server's name */
	CLIENT_LOGS_IN, /* on both */
	CLIENT_UP
};

struct lookup;

/* What a name stands for. */
struct numbers {
	char text[NUMBERS_MOST][NUMBER_ROOM];
	unsigned n;
};

struct redis_client {
	struct redis_client_env env;
	struct ev_loop *ev;
	struct on_loop on;
	enum client_state state;
	struct link links[2];  /* by enum redis_which */
	struct link ask;       /* to a Sentinel */
	struct ev_timer again; /* what to do in a later turn: see lost */
	struct ev_timer limit; /* of one step on the way up */
	struct ev_timer tick;  /* while it is up */
	uint64_t ticked;       /* mono */
	uint64_t looked;       /* mono: whether it can be used still */
	double back_off;
	bool lost;   /* why says it; taken down in the next turn */
	bool was_up; /* since the last `down` */
	bool told;   /* of the text in told_why */
	bool meant;  /* nobody's fault: it was asked to begin anew */
	bool refused; /* why is what the server has said to our login */
	bool away;   /* and the log has it: as it is in said */
	char why[REDIS_WHY_ROOM], told_why[REDIS_WHY_ROOM];
	char said[REDIS_WHY_ROOM];
	/* where */
	struct lookup *lookup; /* NULL: none */
	unsigned lookup_port;
	unsigned tries;    /* which of a name's numbers */
	unsigned sentinel; /* the next one to be asked */
	unsigned asked;    /* how many of them, in this round */
	char *master;      /* what a Sentinel has said; NULL: nothing yet */
	unsigned master_port;
	char place[NUMBER_ROOM + 200]; /* for texts */
	/* the server */
	char run[RUN_ROOM]; /* of the last `up`; "": there was none */
	char data[RUN_ROOM]; /* likewise */
	bool was_replica;    /* that very server, since then */
	const char *anew;    /* why it is not the same any more */
	char server[SERVER_ROOM];
	char sha[SCRIPTS][41]; /* "": not known there */
	void *tls;             /* a redisSSLContext */
};

/* ---- client.c ---- */

/* Was it a replica, since the last `up`?  One that becomes a master gets a new
   replication id, and keeps the one before; one that was a master always has a new
   one without that, when its first replica comes or the last one is long gone. */
static inline bool
client_is_promoted(const struct redis_client *cl, const char *data,
		   const char *before)
{
	return strspn(before, "0") < strlen(before) &&
	       strcmp(cl->data, data) != 0;
}

/* ---- client_link.c ---- */

/* Note that it cannot go on so: why, without the place before it. */
void evc__client_lost(struct redis_client *cl, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Where that is, for texts. */
void evc__client_place(struct redis_client *cl, const char *host,
		       unsigned port);
/* port 0: host is the path of a socket.  false: it was lost at once. */
bool evc__link_connect(struct link *l, const char *host, unsigned port);
/* Take it down; what was said stays without an answer. */
void evc__client_link_close(struct link *l);
/* A fork child keeps the loop, or destroys it. */
void evc__link_off(struct link *l, struct ev_loop *loop);
/* Nothing was heard for so long that this is none any more. */
bool evc__link_is_silent(const struct link *l, uint64_t now, double patience);

/* ---- client_say.c ---- */

/* Frees what args holds; false: no connection, no memory, and fn is not
   called. */
bool evc__link_say(struct link *l, redis_reply_fn *fn, void *arg,
		   struct redis_args *a);
/* Answer with NULL what has no answer. */
void evc__link_answer_none(struct link *l);

/* ---- client_login.c ---- */

/* done: all answers are there. */
void evc__login_begin(struct link *l, void (*done)(struct redis_client *cl));
/* Ask again whether the server can be used; if not, it is lost. */
void evc__login_look(struct link *l);

/* ---- client_name.c ---- */

typedef void found_fn(struct redis_client *cl, const char *number);
/* found follows with a number of that name, from within this or later, unless the
   client is lost by then. */
void evc__lookup_begin(struct redis_client *cl, const char *host,
		       unsigned port, found_fn *found);
/* Nobody wants to know it any more. */
void evc__lookup_drop(struct redis_client *cl);

/* ---- client_sentinel.c ---- */

/* Ask the next one: its name first. */
void evc__sentinel_begin(struct redis_client *cl);
/* It has answered. */
void evc__sentinel_end(struct redis_client *cl);

/* ---- client_tls.c ---- */

#ifdef HAVE_HIREDIS_SSL
bool evc__client_tls(struct link *l);
void evc__client_tls_free(struct redis_client *cl);
#endif

#endif
