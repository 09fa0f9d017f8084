/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations for the files of the client alone.
 *
 *     client.c           search for the server, coming up, going down
 *     login.c            first commands, and whether the server is fit
 *     sentinel.c         where the server is, by Sentinels
 *     name.c             the address of a host's name, by a thread
 *     say.c              commands without an answer
 *     link.c             a connection, and its loss
 *
 * Each file calls files below itself alone.  A failure is only noted
 * (evc__client_lost); the loop's next turn takes the connections down.  So
 * hiredis never loses a context that is in use, and no reply is called within
 * another reply.
 */
#ifndef EVC_REDIS_CLIENT_H
#define EVC_REDIS_CLIENT_H

#include "base/list.h"
#include "engine/on_loop.h"
#include "redis/client/redis.h"

#define RUN_SIZE     64
#define SERVER_SIZE  96
#define NUMBERS_MOST 4 /* addresses of a name that are tried */
#define NUMBER_SIZE  64

/* A command without an answer.  Loop thread only. */
struct said {
	struct said *next;
	redis_reply_fn *fn; /* NULL: the answer is not wanted */
	void *arg;
	/* of a script, to send the text; NULL: no script */
	char *command;
	size_t n, keys_at;
	enum redis_script script;
	bool by_sha;
	double blocks; /* seconds that an XREAD may wait; < 0: for ever */
	bool ping;
};

/* The steps of a login, in the order of their commands. */
enum login_step {
	LOGIN_AUTH,
	LOGIN_SELECT,
	LOGIN_NAME,
	LOGIN_INFO,
	LOGIN_TRY,   /* may the user call what the scripts call? */
	LOGIN_LIMITS,
	LOGIN_SCRIPT /* first of the steps that load the scripts */
};
#define LOGIN_STEPS (LOGIN_SCRIPT + SCRIPTS)

/* A connection. cl is set at creation, all other fields are for the loop thread
   only. */
struct link {
	struct redis_client *cl;
	redisAsyncContext *ac; /* NULL: no connection */
	struct said *first, **last;
	uint64_t heard; /* mono: last whole answer, or last progress of a large
			   answer or of a write */
	bool partial;   /* bytes have come, and no whole answer since */
	bool pinged;    /* a PING has no answer yet */
	size_t n_partial; /* bytes, from the second read on */
	redisReplyObjectFunctions objects; /* make answers of bytes */
	bool full;      /* the kernel has not taken all bytes yet */
	unsigned steps[LOGIN_STEPS];
	unsigned n_steps;   /* steps of this login */
	unsigned at;        /* step of the next answer */
	char no_password[160]; /* why this login could not read the password of
				  its file; "": it could */
	void (*logged_in)(struct redis_client *cl);
	char run[RUN_SIZE]; /* run id of the server */
	char data[RUN_SIZE], data_before[RUN_SIZE]; /* replication ids of the
						       server's data */
};

/* The state of a client. */
enum client_state {
	CLIENT_WAITS,   /* for the time of the next try */
	CLIENT_ASKS,    /* a Sentinel, or looks up the Sentinel's name */
	CLIENT_FOUND,   /* the place of the server */
	CLIENT_LOOKS,   /* up the server's name */
	CLIENT_LOGS_IN, /* on both connections */
	CLIENT_UP
};

struct lookup;

/* The addresses of a name. */
struct numbers {
	char text[NUMBERS_MOST][NUMBER_SIZE];
	unsigned n;
};

/* env, ev and on are set at creation, all other fields are for the loop thread
   only. */
struct redis_client {
	struct redis_client_env env;
	struct ev_loop *ev;
	struct on_loop on;
	enum client_state state;
	struct link links[2];  /* by enum redis_which */
	struct link ask;       /* to a Sentinel */
	struct ev_timer again; /* the next try, or the end of a lost
				  connection */
	struct ev_timer limit; /* end of the time for a step */
	struct ev_timer tick;  /* checks while the client is up */
	uint64_t ticked;       /* mono: last tick */
	uint64_t looked;       /* mono: last check that the server is fit */
	uint64_t backoff_ns;   /* the last wait; 0: none since it was up */
	bool lost;   /* `why` holds the reason; the next turn takes the
			connections down */
	bool was_up; /* `up` was called, and `down` was not called since */
	bool told;   /* `down` was called with told_why */
	bool meant;  /* the owner has asked for new connections */
	bool no_memory; /* a connection has ended for that, since `up` */
	bool refused; /* the server has refused the login, and `why` holds its
			 text */
	bool away;   /* the log has the loss, with the text `said` */
	char why[REDIS_WHY_SIZE], told_why[REDIS_WHY_SIZE];
	char said[REDIS_WHY_SIZE];
	struct lookup *lookup; /* NULL: no look-up */
	unsigned lookup_port;
	unsigned tries;    /* index of the address of a name that is tried
			      next */
	unsigned sentinel; /* index of the Sentinel that is asked next */
	unsigned asked;    /* Sentinels asked in this round */
	char *master;      /* host by a Sentinel's answer; NULL: no answer
			      yet */
	unsigned master_port;
	char place[NUMBER_SIZE + 200]; /* place of this step, for texts */
	char run[RUN_SIZE]; /* run id at the last `up`; "": no `up` yet */
	char data[RUN_SIZE]; /* replication id at the last `up` */
	bool was_replica;    /* that server was a replica since then */
	const char *anew;    /* how the server has changed; NULL: not at all */
	char server[SERVER_SIZE];
	char sha[SCRIPTS][41]; /* sums of the scripts; "": not known to the
				  server */
	void *tls;             /* a redisSSLContext */
};

/* ---- client.c ---- */

/* true: the server was a replica since the last `up`.  A replica that becomes a
   master gets a new replication id and keeps the former id.  A server that was
   a master all the time has no former id when its own changes. */
static inline bool
client_is_promoted(const struct redis_client *cl, const char *data,
		   const char *before)
{
	return strspn(before, "0") < strlen(before) &&
	       strcmp(cl->data, data) != 0;
}

/* ---- link.c ---- */

/* Note that the connections are lost; the place stands before the text. */
void evc__client_lost(struct redis_client *cl, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Set the place, for texts. */
void evc__client_place(struct redis_client *cl, const char *host,
		       unsigned port);
/* port 0: host is the path of a socket.  false: lost at once. */
bool evc__link_connect(struct link *l, const char *host, unsigned port);
#ifdef HAVE_HIREDIS_SSL
void evc__client_tls_free(struct redis_client *cl);
#endif
/* Close the connection; its commands stay without an answer. */
void evc__client_link_close(struct link *l);
/* Stop the watchers: a fork child keeps the loop, or destroys it. */
void evc__link_off(struct link *l, struct ev_loop *loop);
/* true: the server has been silent for too long. */
bool evc__link_is_silent(const struct link *l, uint64_t now, double patience);

/* ---- say.c ---- */

/* Send the words, and free what args holds.  false: no connection or no memory;
   fn is not called. */
bool evc__link_say(struct link *l, redis_reply_fn *fn, void *arg,
		   struct redis_args *a);
/* Have the server answer, unless such an answer is awaited already. */
void evc__link_ping(struct link *l);
/* Answer all commands without an answer with NULL. */
void evc__link_answer_none(struct link *l);

/* ---- login.c ---- */

/* done is called when all answers are there. */
void evc__login_begin(struct link *l, void (*done)(struct redis_client *cl));
/* Ask again whether the server is fit; if not, the client is lost. */
void evc__login_look(struct link *l);

/* ---- name.c ---- */

typedef void found_fn(struct redis_client *cl, const char *number);
/* found is called with an address of the name, within this call or later,
   unless the client is lost first. */
void evc__lookup_begin(struct redis_client *cl, const char *host,
		       unsigned port, found_fn *found);
/* Forget the look-up. */
void evc__lookup_drop(struct redis_client *cl);

/* ---- sentinel.c ---- */

/* Ask the next Sentinel. */
void evc__sentinel_begin(struct redis_client *cl);
/* Close the connection to the Sentinel. */
void evc__sentinel_end(struct redis_client *cl);

#endif
