/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base of both sides of the engine "redis": the address of the server, two
 * connections to the server, commands and scripts.
 *
 *     coordinator   engine/  --+
 *                              +--> client/ --> hiredis --> the server
 *     node          node/    --+
 *
 * Everything but addresses and replies is for the thread of one loop, and no
 * call blocks: a thread of its own looks up the names of hosts.
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

#define REDIS_WHY_SIZE 400 /* a reason with its consequence */

/* ---- address.c, address_password.c ---- */

struct redis_place {
	char *host;    /* the path of a socket if the port is 0 */
	unsigned port;
};

#define REDIS_SENTINELS 8

struct redis_address {
	struct redis_place at;       /* the server; not used with a master */
	char *ns;                    /* NAMESPACE, without { } or control
					bytes */
	char *user, *password;       /* NULL: none; never shown in a text */
	char *password_file;         /* NULL: none; read again at each login */
	unsigned database;
	bool tls;
	char *ca, *cert, *key, *tls_name; /* NULL: none */
	char *master;                /* name for Sentinels; NULL: none */
	struct redis_place sentinels[REDIS_SENTINELS];
	unsigned n_sentinels;
	bool trust_aof;              /* a server that was restarted has lost no
					data */
	bool once;                   /* a node ends with its cluster */
	bool fresh;                  /* a coordinator removes all variables at
					TAKE */
};

/* uri, place and options as in an evc_engine_env.  Reads the file or the
   variable of the password, too. 0, or refused with a text, and *ret is
   unchanged. */
evc_status evc__redis_address(const char *uri, const char *place,
			      const char *const *options,
			      struct redis_address *ret);
void evc__redis_address_free(struct redis_address *a);
/* *ret is n bytes of s as a text. */
evc_status evc__redis_copy(const char *s, size_t n, char **ret);
/* *ret is the password in a file or a variable (both NULL: unchanged). 0, or
   refused with a text. */
evc_status evc__redis_password(const char *file, const char *variable,
			       char **ret);
/* Overwrite and free a password, or NULL. */
void evc__redis_password_free(char *password);
/* The known options; NULL at the end. */
extern const char *const evc__redis_options[];
/* Advice for a login that failed with this text: " (...)", or "". */
const char *evc__redis_hint(const struct redis_address *a, const char *why);
/* Add the place of the server: "127.0.0.1:6379", "/run/redis.sock". */
void evc__redis_address_name(const struct redis_address *a, struct text *t);

/* ---- args.c: a command's words ---- */

struct redis_args {
	const char **argv; /* NULL until evc__args_seal: the word stands in
			      `numbers` */
	size_t *len;
	int n;
	size_t room, len_room;
	char *numbers;     /* the buffer of words that were written here */
	size_t n_numbers, numbers_room;
	bool failed;       /* no memory; nothing will be sent */
};

/* Zeroed before the first word.  Bytes are not copied, so they stay until the
   command was sent. */
void evc__args_add(struct redis_args *a, const void *bytes, size_t n);
void evc__args_text(struct redis_args *a, const char *text);
/* A formatted word. */
void evc__args_fmt(struct redis_args *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A formatted word behind "{NS}:". */
void evc__args_key(struct redis_args *a, const struct redis_address *at,
		   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Set all addresses in argv; no word is added afterwards. */
void evc__args_seal(struct redis_args *a);
void evc__args_free(struct redis_args *a);

/* ---- client.c ---- */

/* The connection for commands, and the connection that waits in XREAD. */
enum redis_which { REDIS_SAY, REDIS_LISTEN };

struct redis_client;

/* Have a timer fire once, after so many seconds. */
static inline void
redis_timer_in(struct ev_loop *ev, struct ev_timer *timer, double seconds)
{
	ev_timer_stop(ev, timer);
	ev_now_update(ev);
	ev_timer_set(timer, seconds, 0.);
	ev_timer_start(ev, timer);
}

/* A command's answer, in the order of the commands. reply NULL: the connection
   is lost, the command was carried out or not, and `down` follows.  A reply may
   be an error.  The client frees the reply after this call. */
typedef void redis_reply_fn(const redisReply *reply, void *arg);

struct redis_client_env {
	evc_coord *scope;      /* for the log, and for threads that look up
				  names */
	evc_reactor *reactor;
	evc_loop_ref *loop;
	const struct redis_address *address; /* stays valid */
	double patience;       /* seconds of silence until the connections are
				  lost */
	double look_again;     /* seconds between two checks that the server is
				  fit; 0: none */
	const char *who;       /* name for CLIENT SETNAME */
	size_t max_frame;      /* 0: for a node; else the user needs the
				  rights of a coordinator */
	/* Both connections are logged in, all scripts are known, and the server
	   is fit (version 7 or later, noeviction, a master, not loading). same:
	   the server's run and data are those of the last `up`, and the server
	   was no replica since (false at the first `up`). */
	void (*up)(struct redis_client *cl, bool same, void *arg);
	/* The connections are lost, and all commands were answered with NULL;
	   or no connection could be made.  `why` holds no password.  The client
	   tries again, with a delay from 50 ms to 1 s.  Called again when `why`
	   changes.  The client itself logs the loss, once in an absence. */
	void (*down)(struct redis_client *cl, const char *why, void *arg);
	void *arg;
};

/* Begins at once, and calls nothing before it has returned.  NULL: no
   memory. */
struct redis_client *evc__redis_client_new(const struct redis_client_env *env);
/* Answers all commands with NULL within this call, and calls nothing
   afterwards.  Not allowed within a reply. cl may be NULL. */
void evc__redis_client_free(struct redis_client *cl);
/* Drop both connections and begin anew in the loop's next turn: `down`, then
   `up`.  Allowed within a reply. */
void evc__redis_client_reset(struct redis_client *cl, const char *why);
/* From now on the connections are lost after this silence, unless less was
   allowed before. */
void evc__redis_client_patience(struct redis_client *cl, double seconds);
/* cl NULL: false. */
bool evc__redis_client_is_up(const struct redis_client *cl);
/* Within a `down`: this process had no memory for a message. */
bool evc__redis_client_no_memory(const struct redis_client *cl);
/* Within an `up` that is not `same`: how the server has changed. */
const char *evc__redis_client_anew(const struct redis_client *cl);
/* Bytes that wait to be written on a connection. */
size_t evc__redis_client_backlog(const struct redis_client *cl,
				 enum redis_which which);

/* Send a command, and free what args holds. fn NULL: no answer is wanted.
   false: no connection, or no memory; fn is not called.  A command without an
   answer after `patience` (an XREAD: plus its BLOCK) takes the connections
   down; an XREAD that blocks for ever does not. */
bool evc__redis_send(struct redis_client *cl, enum redis_which which,
		     redis_reply_fn *fn, void *arg, struct redis_args *a);
/* Send a script on REDIS_SAY: args are n_keys KEYS and then ARGV.  The text of
   a script that the server has forgotten is sent again, so its answer may come
   behind answers of later commands. */
bool evc__redis_script(struct redis_client *cl, enum redis_script script,
		       unsigned n_keys, redis_reply_fn *fn, void *arg,
		       struct redis_args *a);

/* ---- reply.c: answers are not trusted ---- */

/* The first word of a script's answer; NULL: an error, or another type. */
const char *evc__reply_word(const redisReply *r);
/* true: `word` is the first word of a script's answer. */
bool evc__reply_is(const redisReply *r, const char *word);
/* The bytes of element i of an array; NULL: no bytes. */
const char *evc__reply_bytes(const redisReply *r, size_t i, size_t *ret_n);
/* The whole number in element i, a number or a text.  false: no number. */
bool evc__reply_number(const redisReply *r, size_t i, int64_t *ret);
/* The value of field `name` of a stream's entry, which is an array of an id and
   of an array of names and values.  NULL: no such field. */
const char *evc__reply_field(const redisReply *entry, const char *name,
			     size_t *ret_n);
/* true: all bytes are printable, and blanks only if `blanks` allows them. */
bool evc__reply_is_plain(const char *s, size_t n, bool blanks);
/* The failure, for a text: the error, "the connection was lost", or "an
   unexpected answer".  Valid as long as r. */
const char *evc__reply_why(const redisReply *r);
bool evc__reply_is_error(const redisReply *r, const char *prefix);
/* The status that an error of the server stands for. */
evc_status evc__reply_status(const redisReply *r);
/* The server may answer soon: for example, it runs a long script of somebody. */
static inline bool
reply_is_refused_for_now(const redisReply *r)
{
	return evc__reply_status(r) == -EVC_UNAVAILABLE;
}
/* The stream takes no entry any more: the last one has the greatest id. */
bool evc__reply_has_no_id(const redisReply *r);

/* ---- told.c ---- */

/* Commands of the server. */
enum trouble_of {
	TROUBLE_NONE,
	/* the coordinator */
	TROUBLE_TAKE,
	TROUBLE_LOCK,
	TROUBLE_KEYS,
	TROUBLE_RESTART,
	TROUBLE_COUNTS,
	TROUBLE_EVENTS,
	TROUBLE_FENCE,
	TROUBLE_ORDERS,
	TROUBLE_ALONE,
	/* a node */
	TROUBLE_LEASE,
	TROUBLE_RESULTS,
	TROUBLE_STREAM
};

#define TOLD_MOST 8

/* A ring.  Loop thread only. */
struct told {
	struct {
		enum trouble_of of;
		char text[REDIS_WHY_SIZE];
	} at[TOLD_MOST];
	unsigned n;
};

/* true: the log has the text already.  The text is noted. */
bool evc__trouble_is_told(struct told *told, enum trouble_of of,
			  const char *text);
/* Such a command has succeeded. */
void evc__trouble_over(struct told *told, enum trouble_of of);

/* ---- operation.c: an operation on a variable ---- */

#define UPDATE_US 8 /* of a simple operation */
/* So long a script may hold the server, in microseconds: nobody is answered
   meanwhile, and no lease is renewed. */
static inline double
server_most_us(uint64_t lease_ns)
{
	return (double)lease_ns / 4e3;
}
/* The server's work for an operation. */
struct operation_cost {
	unsigned updates; /* so many simple operations are as much */
	double us;        /* besides UPDATE_US, rather too long; without the time
			     for reading a variable whole, which the script
			     limits */
};
/* 0, or refused: `of name` would hold the server for too long. */
evc_status evc__server_time(double us, uint64_t lease_ns, const char *of,
			    const char *name);
/* 0, or refused: no operation of the scripts, or one that takes the server a
   quarter of the lease. */
evc_status evc__operation_check(const evc_engine_update *u, uint64_t lease_ns,
				struct operation_cost *ret_cost);
/* The patch of a checked operation on a vector, as the scripts read it. */
evc_value evc__operation_patch(const evc_engine_update *u);
/* Add the arguments of an operation of SCRIPT_VARIABLE from seq on.  u has to
   stay until the script is sent. */
void evc__operation_add(struct redis_args *a, uint64_t seq,
			const evc_engine_update *u, uint64_t lease_ns);
/* The answer to operation i in the answer of SCRIPT_VARIABLE; NULL: there is
   none. */
const redisReply *evc__operation_answer(const redisReply *r, size_t i);
/* true: the script has read enough before this operation; send the operation
   again. */
bool evc__operation_is_late(const redisReply *r, size_t i);
/* Read such an answer: the value stays in r, or in *ret_memory, for sync_free
   (NULL: none). */
evc_status evc__operation_read(const evc_engine_update *u, const redisReply *r,
			       evc_engine_answer *ret, void **ret_memory);
/* Check the bytes of a variable. */
evc_status evc__operation_check_value(const char *name, const evc_value *v);

/* ---- scripts.c: their texts ---- */

struct redis_script_text {
	const char *name;
	const char *text; /* without its head */
	enum { SCRIPT_HEAD_WHOLE, SCRIPT_HEAD_SHORT, SCRIPT_HEAD_NONE } head;
};
extern const char evc__script_head[], evc__script_head_short[];
extern const struct redis_script_text evc__scripts[SCRIPTS];

/* The functions that stand before the text of a script. */
static inline const char *
redis_script_head(enum redis_script script)
{
	return evc__scripts[script].head == SCRIPT_HEAD_NONE  ? "" :
	       evc__scripts[script].head == SCRIPT_HEAD_SHORT ? evc__script_head_short :
							 evc__script_head;
}

#endif
