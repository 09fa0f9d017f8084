/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands without an answer, in the order in which they were sent.  A script
 * is sent by the sum of its text.  The command is kept until the answer,
 * because a server that has forgotten its scripts needs the text.
 * Called by: client.c, login.c, sentinel.c; engine and node send scripts here.
 * Locks: none; loop thread only.
 */
#include <stdio.h>

#include "redis/client/client.h"

static void
free_said(struct said *s)
{
	if (s->command != NULL)
		redisFreeCommand(s->command);
	sync_free(s);
}

static void
append_said(struct link *l, struct said *s)
{
	s->next = NULL;
	*l->last = s;
	l->last = &s->next;
}

/* The answers of one connection come in the order of the commands. */
static struct said *
take_first_said(struct link *l)
{
	struct said *s = l->first;

	l->first = s->next;
	if (l->first == NULL)
		l->last = &l->first;
	return s;
}

static void
answer_said(struct said *s, const redisReply *r)
{
	if (s->fn != NULL)
		s->fn(r, s->arg);
	free_said(s);
}

void
evc__link_answer_none(struct link *l)
{
	while (l->first != NULL)
		answer_said(take_first_said(l), NULL);
}

static void on_reply(redisAsyncContext *ac, void *reply, void *arg);

/* The server does not know the script: send the text, and the same keys. */
static bool
say_whole(struct link *l, struct said *s)
{
	const char *text = evc__scripts[s->script].text;
	const char *functions = redis_script_head(s->script);
	char head[96];
	size_t n_text = strlen(functions) + strlen(text), n_head, n;
	unsigned words;
	char *to;
	bool said;

	/* "*WORDS", then EVAL and the text in place of EVALSHA and the sum. */
	words = (unsigned)strtoul(s->command + 1, NULL, 10);
	n_head = (size_t)snprintf(head, sizeof head,
				  "*%u\r\n$4\r\nEVAL\r\n$%zu\r\n", words,
				  n_text);
	n = n_head + n_text + 2 + s->n - s->keys_at;
	to = sync_alloc(1, n + 1);
	if (to == NULL)
		return false;
	(void)snprintf(to, n + 1, "%s%s%s\r\n", head, functions, text);
	memcpy(to + n - (s->n - s->keys_at), s->command + s->keys_at,
	       s->n - s->keys_at);
	said = redisAsyncFormattedCommand(l->ac, on_reply, s, to, n) ==
	       REDIS_OK;
	sync_free(to);
	return said;
}

/* true: bytes without a question stand behind the last answer. hiredis would
   end the process if it saw those bytes. */
static bool
has_unasked_bytes(struct link *l, redisReader *r)
{
	if (!l->cl->lost && l->first->next == NULL && r->pos < r->len)
		evc__client_lost(l->cl, "the server has sent unexpected data");
	if (l->cl->lost)
		r->pos = r->len;
	return l->cl->lost;
}

static bool
is_pong(const redisReply *r)
{
	return r->type == REDIS_REPLY_STATUS && strcmp(r->str, "PONG") == 0;
}

static void
on_reply(redisAsyncContext *ac, void *reply, void *arg)
{
	struct link *l = ac->data;
	struct said *s = arg;

	/* hiredis answers all commands when a context goes; the client does so
	   later. */
	if (l == NULL || reply == NULL || has_unasked_bytes(l, ac->c.reader))
		return;
	/* A replica has the data of another server, so no answer counts. */
	if (evc__reply_is_error(reply, "READONLY")) {
		l->cl->was_replica = true;
		evc__client_lost(l->cl, "the server is a replica now");
		return;
	}
	/* An answer or a command was lost in between, and all answers from here on
	   would be those of other questions. */
	if (is_pong(reply) ? !s->ping :
			     s->ping && !evc__reply_is_error(reply, "")) {
		evc__client_lost(l->cl, "the answers of the server do not fit "
					"the questions");
		return;
	}
	l->heard = sync_mono_coarse();
	l->partial = false;
	l->n_partial = 0;
	l->pinged &= !s->ping;
	(void)take_first_said(l);
	if (s->by_sha && evc__reply_is_error(reply, "NOSCRIPT") &&
	    say_whole(l, s)) {
		s->by_sha = false;
		append_said(l, s);
		return;
	}
	answer_said(s, reply);
}

/* Send a command, and free the command unless s keeps it. */
static bool
say_command(struct link *l, struct said *s, char *command, int n, bool keep)
{
	bool said = n > 0 && l->ac != NULL && !l->cl->lost &&
		    redisAsyncFormattedCommand(l->ac, on_reply, s, command,
					       (size_t)n) == REDIS_OK;

	if (n > 0 && (!keep || !said))
		redisFreeCommand(command);
	if (!said) {
		sync_free(s);
		return false;
	}
	if (keep) {
		s->command = command;
		s->n = (size_t)n;
	}
	/* The time of silence begins with the first command. */
	if (l->first == NULL)
		l->heard = sync_mono_coarse();
	append_said(l, s);
	return true;
}

/* Seconds that the command itself may wait; < 0: for ever. */
static double
seconds_of_block(const struct redis_args *a)
{
	double ms = 0;
	int i;

	for (i = 1; i + 1 < a->n && i < 8; i++)
		if (a->len[i] == 5 && memcmp(a->argv[i], "BLOCK", 5) == 0 &&
		    a->len[i + 1] < 16) {
			char text[16] = "";

			memcpy(text, a->argv[i + 1], a->len[i + 1]);
			ms = strtod(text, NULL);
			return ms > 0 ? ms / 1000 : -1;
		}
	return 0;
}

static struct said *
new_said(redis_reply_fn *fn, void *arg)
{
	struct said *s = sync_alloc(1, sizeof *s);

	if (s != NULL) {
		s->fn = fn;
		s->arg = arg;
	}
	return s;
}

bool
evc__link_say(struct link *l, redis_reply_fn *fn, void *arg,
	      struct redis_args *a)
{
	struct said *s = a->failed ? NULL : new_said(fn, arg);
	char *command = NULL;
	int n;

	if (s != NULL) {
		evc__args_seal(a);
		s->blocks = seconds_of_block(a);
		s->ping = a->n == 1 && strcmp(a->argv[0], "PING") == 0;
		n = redisFormatCommandArgv(&command, a->n, a->argv, a->len);
	}
	if (s == NULL || !say_command(l, s, command, n, false)) {
		evc__args_free(a);
		return false;
	}
	evc__args_free(a);
	return true;
}

void
evc__link_ping(struct link *l)
{
	struct redis_args a = { .n = 0 };

	if (l->pinged)
		return;
	evc__args_text(&a, "PING");
	if (evc__link_say(l, NULL, NULL, &a))
		l->pinged = true;
}

/* ---- scripts ---- */

/* The command of a script: the words of args behind two first words and the
   number of keys. < 0: no memory. */
static int
script_command(const struct redis_client *cl, enum redis_script script,
	       unsigned n_keys, struct redis_args *a, struct said *s,
	       char **ret)
{
	const char *sha = cl->sha[script];
	struct redis_args whole = { .n = 0 };
	char *text = NULL;
	const char *functions = redis_script_head(script);
	size_t n_text = strlen(functions) + strlen(evc__scripts[script].text);
	int i, n = -1;

	s->script = script;
	s->by_sha = sha[0] != '\0';
	evc__args_text(&whole, s->by_sha ? "EVALSHA" : "EVAL");
	if (s->by_sha)
		evc__args_text(&whole, sha);
	else if ((text = sync_alloc(1, n_text + 1)) != NULL) {
		(void)snprintf(text, n_text + 1, "%s%s", functions,
			       evc__scripts[script].text);
		evc__args_add(&whole, text, n_text);
	} else
		whole.failed = true;
	evc__args_fmt(&whole, "%u", n_keys);
	evc__args_seal(a);
	for (i = 0; i < a->n; i++)
		evc__args_add(&whole, a->argv[i], a->len[i]);
	evc__args_seal(&whole);
	if (!whole.failed)
		n = redisFormatCommandArgv(ret, whole.n, whole.argv, whole.len);
	evc__args_free(&whole);
	sync_free(text);
	return n;
}

bool
evc__redis_script(struct redis_client *cl, enum redis_script script,
		  unsigned n_keys, redis_reply_fn *fn, void *arg,
		  struct redis_args *a)
{
	struct link *l = &cl->links[REDIS_SAY];
	struct said *s = a->failed || !evc__redis_client_is_up(cl)
				 ? NULL
				 : new_said(fn, arg);
	char *command = NULL, count[16];
	int n = -1;
	bool said;

	if (s != NULL)
		n = script_command(cl, script, n_keys, a, s, &command);
	if (n > 0) {
		/* "*N\r\n$7\r\nEVALSHA\r\n$40\r\n", 40 bytes, "\r\n". */
		s->keys_at = (size_t)snprintf(count, sizeof count, "*%d\r\n",
					      a->n + 3) +
			     13 + 5 + 42;
	}
	evc__args_free(a);
	if (s == NULL)
		return false;
	said = say_command(l, s, command, n, s->by_sha);
	return said;
}
