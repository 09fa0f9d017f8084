/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both sides of the engine "redis" stand on: where the server is, two
 * connections to it, commands and scripts.
 *
 *     coordinator   engine*.c  --+
 *                                +--> client*.c --> hiredis --> the server
 *     node          node*.c    --+
 *
 * Everything but the address is of one loop's thread, and nothing blocks it:
 * names of hosts are looked up on a thread of its own.
 */
#ifndef EVC_REDIS_REDIS_H
#define EVC_REDIS_REDIS_H

#include <ev.h>
#include <evcoord.h>
#include <evcoord/unstable/engine.h>
#include <evcoord/post.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include "base/sync.h"
#include "base/text.h"
#include "redis/client/protocol.h"

#define REDIS_WHY_ROOM 192

/* ---- address.c: redis://HOST:PORT/NAMESPACE?user=U&password-file=PATH... ---- */

struct redis_place {
	char *host;    /* or the path of a socket; */
	unsigned port; /* then 0 */
};

#define REDIS_SENTINELS 8

struct redis_address {
	struct redis_place at;       /* the server; with `master` not used */
	char *ns;                    /* NAMESPACE: no { } or control bytes */
	char *user, *password;       /* NULL: none.  Never in a text. */
	unsigned database;
	bool tls;
	char *ca, *cert, *key, *tls_name; /* NULL: none */
	char *master;                /* of a Sentinel; NULL: none */
	struct redis_place sentinels[REDIS_SENTINELS];
	unsigned n_sentinels;
	bool trust_aof;              /* a server that was restarted has lost
					nothing */
	bool once;                   /* a node ends with its cluster */
	bool fresh;                  /* a coordinator removes all variables when
					it takes the namespace */
};

/* uri, place and options as an evc_engine_env has them.  Reads the password's
   file or variable.  0, or refused with a text, and nothing is left. */
evc_status evc__redis_address(const char *uri, const char *place,
			      const char *const *options,
			      struct redis_address *ret);
void evc__redis_address_free(struct redis_address *a);
/* n bytes as a text of its own in *ret. */
evc_status evc__redis_copy(const char *s, size_t n, char **ret);
/* The password of that file or that variable (both NULL: none) in *ret, if there
   is one.  0, or refused with a text. */
evc_status evc__redis_password(const char *file, const char *variable,
			       char **ret);
/* The options there are, NULL at the end. */
extern const char *const evc__redis_options[];
/* What may be wrong with it, when a login there ends with that text; " (...)" to
   stand behind it, or "". */
const char *evc__redis_hint(const struct redis_address *a, const char *why);
/* Where that is, for texts: "127.0.0.1:6379", "/run/redis.sock". */
void evc__redis_address_name(const struct redis_address *a, struct text *t);

/* ---- args.c: a command's words ---- */

struct redis_args {
	const char **argv; /* argv[i] points into bytes of the caller's, or */
	size_t *len;
	int n, room;
	char *numbers;     /* here; moved as it grows, so argv is set at the end */
	size_t n_numbers, numbers_room;
	bool failed;       /* no memory: nothing will be sent */
};

/* Zeroed before the first; what is pointed to stays until it was sent. */
void evc__args_add(struct redis_args *a, const void *bytes, size_t n);
void evc__args_text(struct redis_args *a, const char *text);
/* Formatted, and kept in the args. */
void evc__args_fmt(struct redis_args *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "{NS}:" and the rest, kept in the args. */
void evc__args_key(struct redis_args *a, const struct redis_address *at,
		   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Have argv[i] point to where each word is: no other one comes. */
void evc__args_seal(struct redis_args *a);
void evc__args_free(struct redis_args *a);

/* ---- client.c ---- */

/* Commands are said on one connection; the other one waits in XREAD. */
enum redis_which { REDIS_SAY, REDIS_LISTEN };

struct redis_client;

/* Have that timer of a client's or of its owner's fire once, so many seconds from
   now. */
static inline void
redis_timer_in(struct ev_loop *ev, struct ev_timer *timer, double seconds)
{
	ev_timer_stop(ev, timer);
	ev_now_update(ev);
	ev_timer_set(timer, seconds, 0.);
	ev_timer_start(ev, timer);
}

/* reply NULL: the connection went before the answer came, and so the command was
   carried out or not; `down` follows.  A reply may be an error.  It is the
   client's, and gone when this returns.  Called in the order of the commands. */
typedef void redis_reply_fn(const redisReply *reply, void *arg);

struct redis_client_env {
	evc_coord *scope;      /* for the log, and threads that look up names */
	evc_reactor *reactor;
	evc_loop *loop;
	const struct redis_address *address; /* stays */
	double patience;       /* seconds without any answer, then the connections
				  are taken as lost */
	double look_again;     /* seconds, then INFO is looked at again; 0: never */
	const char *who;       /* CLIENT SETNAME: "evcoord-node" */
	/* Both connections are there, logged in, and the server is one that can
	   be used (INFO: version 7 or later, noeviction, a master, not loading),
	   with all scripts known.  same: the very server, its very run and its
	   very data as the last time that this was called (false the first
	   time): it was no replica meanwhile, whose data is another server's. */
	void (*up)(struct redis_client *cl, bool same, void *arg);
	/* They are not any more, and all commands have been answered with NULL;
	   or they could not be had: why, without a password.  The client goes on
	   trying, later and later (50 ms .. 1 s).  Called as often as why
	   changes.  The log is the client's to tell, once while it is away. */
	void (*down)(struct redis_client *cl, const char *why, void *arg);
	void *arg;
};

/* Begins at once; calls nothing before it has returned.  NULL: no memory. */
struct redis_client *evc__redis_client_new(const struct redis_client_env *env);
/* Commands without an answer are answered with NULL, within this call, and no
   more is called then.  Not from within a reply.  NULL is fine. */
void evc__redis_client_free(struct redis_client *cl);
/* Drop both connections and begin anew (`down`, then `up`): from the loop's next
   turn on, so it may be called within a reply. */
void evc__redis_client_reset(struct redis_client *cl, const char *why);
/* NULL, one that was freed, is not; and nothing is sent. */
bool evc__redis_client_is_up(const struct redis_client *cl);
/* Within an `up` that is not `same`: what has become of the server. */
const char *evc__redis_client_anew(const struct redis_client *cl);
/* Bytes that wait to be written, on that connection. */
size_t evc__redis_client_backlog(const struct redis_client *cl,
				 enum redis_which which);

/* Send; frees what args holds.  fn NULL: nobody wants the answer.  false: no
   connection (also when it has just gone, and `down` is about to be called) or no
   memory, and fn is not called.  What has no answer after `patience`, and for an
   XREAD so long as its BLOCK says in addition, takes the connections down; one
   that blocks for ever waits for ever. */
bool evc__redis_send(struct redis_client *cl, enum redis_which which,
		     redis_reply_fn *fn, void *arg, struct redis_args *a);
/* The same of a script, on REDIS_SAY: args are its KEYS, n_keys of them, and then
   its ARGV.  One that the server does not know any more is sent again whole, so
   that its answer may come behind those of later commands: whoever needs the order
   waits for the answer. */
bool evc__redis_script(struct redis_client *cl, enum redis_script script,
		       unsigned n_keys, redis_reply_fn *fn, void *arg,
		       struct redis_args *a);

/* ---- reply.c: answers are not trusted ---- */

/* The word that an answer of a script begins with; NULL: it is an error, or none
   of ours. */
const char *evc__reply_word(const redisReply *r);
/* Is it that one? */
bool evc__reply_is(const redisReply *r, const char *word);
/* Element i of an array, if it is bytes: its bytes; NULL: it is not. */
const char *evc__reply_bytes(const redisReply *r, size_t i, size_t *ret_n);
/* Element i as a whole number, by its type or its text.  false: it is none. */
bool evc__reply_number(const redisReply *r, size_t i, int64_t *ret);
/* The value of field `name` of a stream's entry (an array of id and an array of
   names and values); NULL: it has none. */
const char *evc__reply_field(const redisReply *entry, const char *name,
			     size_t *ret_n);
/* Nothing in it that cannot be printed, and no blank unless they may be. */
bool evc__reply_is_plain(const char *s, size_t n, bool blanks);
/* What went wrong, for a text: the error, "the connection was lost", or "an answer
   that nobody expects".  Valid as long as r. */
const char *evc__reply_why(const redisReply *r);
bool evc__reply_is_error(const redisReply *r, const char *prefix);

/* ---- scripts.c: their texts ---- */

struct redis_script_text {
	const char *name;
	const char *text; /* stands behind evc__script_head */
};
extern const char evc__script_head[];
extern const struct redis_script_text evc__scripts[SCRIPTS];

#endif
