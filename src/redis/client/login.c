/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first commands on a connection, sent all at once: the user and the name
 * of the client, and questions about the server.  A server is fit if it evicts
 * no keys, because leases are keys, and if it is a master.
 * Called by: client.c, and the connection's replies.
 * Locks: none; loop thread only.
 */
#include <stdio.h>

#include "redis/client/client.h"

static redis_reply_fn on_step;

static bool
say_step(struct link *l, unsigned step, struct redis_args *a)
{
	l->steps[l->n_steps++] = step;
	return evc__link_say(l, on_step, l, a);
}

/* ---- INFO ---- */

/* The value of a line of INFO, cut to fit; "": no such line. */
static void
read_info(const char *text, const char *name, char *buf, size_t room)
{
	size_t n = strlen(name);
	const char *at = text;

	buf[0] = '\0';
	while (at != NULL) {
		if (strncmp(at, name, n) == 0 && at[n] == ':') {
			at += n + 1;
			n = strcspn(at, "\r\n");
			evc__copy(buf, n + 1 < room ? n + 1 : room, at);
			return;
		}
		at = strchr(at, '\n');
		if (at != NULL)
			at++;
	}
}

/* A replica has the data of another server, or will have them. */
static bool
server_is_master(struct redis_client *cl, const char *text)
{
	char value[RUN_SIZE], run[RUN_SIZE];

	read_info(text, "role", value, sizeof value);
	if (strcmp(value, "master") == 0)
		return true;
	read_info(text, "run_id", run, sizeof run);
	cl->was_replica |= strcmp(run, cl->run) == 0;
	evc__client_lost(cl,
			 "the server is a replica (its role is \"%s\"), and a"
			 " master is needed",
			 value);
	return false;
}

/* true: the server is fit; else the client is lost, with the reason. */
static bool
server_is_fit(struct redis_client *cl, const char *text)
{
	char version[32], value[32];

	read_info(text, "redis_version", version, sizeof version);
	if (version[0] == '\0') {
		evc__client_lost(cl, "this is no Redis: INFO has no version");
		return false;
	}
	if (strtoul(version, NULL, 10) < 7) {
		evc__client_lost(cl, "Redis 7 or later is needed, not %s",
				 version);
		return false;
	}
	read_info(text, "redis_mode", value, sizeof value);
	if (strcmp(value, "sentinel") == 0) {
		evc__client_lost(cl, "this is a Sentinel: the address needs"
				     " master=NAME");
		return false;
	}
	read_info(text, "loading", value, sizeof value);
	if (strcmp(value, "1") == 0) {
		evc__client_lost(cl, "the server is loading its data");
		return false;
	}
	if (!server_is_master(cl, text))
		return false;
	read_info(text, "maxmemory_policy", value, sizeof value);
	if (strcmp(value, "noeviction") != 0) {
		evc__client_lost(cl,
				 "the server needs maxmemory-policy"
				 " noeviction, not %s",
				 value);
		return false;
	}
	read_info(text, "aof_enabled", value, sizeof value);
	if (cl->env.address->trust_aof && strcmp(value, "1") != 0) {
		evc__client_lost(cl,
				 "the address says trust-aof=1, and the server"
				 " has appendonly no");
		return false;
	}
	return true;
}

static void
name_server(struct redis_client *cl, const char *text)
{
	char version[32], kind[16];

	read_info(text, "server_name", kind, sizeof kind);
	read_info(text,
		  strcmp(kind, "valkey") == 0 ? "valkey_version"
					      : "redis_version",
		  version, sizeof version);
	(void)snprintf(cl->server, sizeof cl->server, "%s %s",
		       strcmp(kind, "valkey") == 0 ? "Valkey" : "Redis",
		       version);
}

static void
take_info(struct link *l, const redisReply *r)
{
	if (r->type != REDIS_REPLY_STRING || r->str == NULL)
		evc__client_lost(l->cl, "this is no Redis: INFO is no text");
	else if (server_is_fit(l->cl, r->str)) {
		name_server(l->cl, r->str);
		read_info(r->str, "run_id", l->run, sizeof l->run);
		read_info(r->str, "master_replid", l->data, sizeof l->data);
		read_info(r->str, "master_replid2", l->data_before,
			  sizeof l->data_before);
		if (l->run[0] == '\0')
			evc__client_lost(l->cl, "INFO has no run_id");
	}
}

/* ---- limits ---- */

/* The settings of the server that end a connection with a larger message or
   answer; what stands before the number; the bytes beside the largest frame, for
   answers all that a node may have unread; and the server's default, which is always
   enough. */
static const struct {
	const char *name, *before;
	unsigned long long beside, enough;
} limits[] = {
	{ "client-query-buffer-limit", "", 2 << 20, 1 << 30 },
	{ "client-output-buffer-limit", "normal ", 18 << 20, 1 << 30 },
};

/* The bytes of a setting, in an answer with names and values; 0: no limit. */
static unsigned long long
limit_in(const redisReply *r, const char *name, const char *before)
{
	const char *value;
	size_t i, n;

	for (i = 0; (value = evc__reply_bytes(r, i, &n)) != NULL; i += 2)
		if (strcmp(value, name) == 0)
			break;
	value = value != NULL ? evc__reply_bytes(r, i + 1, &n) : NULL;
	value = value != NULL ? strstr(value, before) : NULL;
	return value != NULL ? strtoull(value + strlen(before), NULL, 10) : 0;
}

/* A connection that is ended for its message would be made anew, with the same
   message, for ever. */
static void
take_limits(struct redis_client *cl, const redisReply *r)
{
	unsigned long long n, need;
	size_t i;

	for (i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		n = limit_in(r, limits[i].name, limits[i].before);
		need = cl->env.max_frame + limits[i].beside;
		if (n != 0 && n < need && n < limits[i].enough)
			evc__client_lost(cl,
					 "the server has %s %s%llu, and"
					 " config.max_frame needs %llu there",
					 limits[i].name, limits[i].before, n,
					 need);
	}
}

static void
ask_for_limits(struct link *l)
{
	struct redis_args a = { .n = 0 };
	size_t i;

	evc__args_text(&a, "CONFIG");
	evc__args_text(&a, "GET");
	for (i = 0; i < sizeof limits / sizeof limits[0]; i++)
		evc__args_text(&a, limits[i].name);
	if (!say_step(l, LOGIN_LIMITS, &a))
		evc__client_lost(l->cl, "no memory");
}

/* ---- the answers ---- */

/* A script that was not loaded is sent as text each time. */
static void
take_script(struct redis_client *cl, unsigned script, const redisReply *r)
{
	char *sha = cl->sha[script];

	sha[0] = '\0';
	if (r->type == REDIS_REPLY_STRING &&
	    r->len + 1 == sizeof cl->sha[script])
		memcpy(sha, r->str, sizeof cl->sha[script]);
}

/* true: the login has failed.  The name of the client is optional; but a user
   without any right gets this error as the first answer, to any command. */
static bool
is_refusal(unsigned step, const redisReply *r)
{
	return r->type == REDIS_REPLY_ERROR &&
	       (step != LOGIN_NAME || (!evc__reply_is_error(r, "NOPERM") &&
				       !evc__reply_is_error(r, "ERR unknown")));
}

static void
on_step(const redisReply *r, void *arg)
{
	struct link *l = arg;
	struct redis_client *cl = l->cl;
	bool was_lost = cl->lost;
	unsigned step;

	/* The connection is lost, and the loss is noted already. */
	if (r == NULL)
		return;
	step = l->steps[l->at++];
	if (step == LOGIN_LIMITS)
		take_limits(cl, r);
	else if (step >= LOGIN_SCRIPT)
		take_script(cl, step - LOGIN_SCRIPT, r);
	else if (evc__reply_is_error(r, "MOVED "))
		/* The text is MOVED SLOT HOST:PORT. */
		evc__client_lost(cl,
				 "this node of a Redis Cluster has not the"
				 " keys of that namespace: %s",
				 r->str);
	else if (is_refusal(step, r))
		evc__client_lost(cl, "%s%s%s", l->no_password,
				 l->no_password[0] != '\0' ? "; " : "",
				 r->str);
	else if (step == LOGIN_INFO)
		take_info(l, r);
	else if (step == LOGIN_TRY && r->elements > 1)
		ask_for_limits(l);
	if (l->at == l->n_steps && !cl->lost)
		l->logged_in(cl);
	cl->refused |= cl->lost && !was_lost;
}

static void
on_look(const redisReply *r, void *arg)
{
	struct redis_client *cl = arg;
	char data[RUN_SIZE], before[RUN_SIZE];

	if (r == NULL || r->type != REDIS_REPLY_STRING)
		return;
	if (!server_is_fit(cl, r->str)) {
		cl->refused = true;
		return;
	}
	read_info(r->str, "master_replid", data, sizeof data);
	read_info(r->str, "master_replid2", before, sizeof before);
	if (client_is_promoted(cl, data, before))
		evc__client_lost(cl, "the server was a replica meanwhile");
}

/* ---- the commands ---- */

static bool
say_info(struct link *l)
{
	struct redis_args a = { .n = 0 };

	evc__args_text(&a, "INFO");
	return say_step(l, LOGIN_INFO, &a);
}

/* The password may have been changed since the last login; when the file cannot be
   read any more, the password of the open counts. */
static bool
say_password(struct link *l, const struct redis_address *at)
{
	struct redis_args a = { .n = 0 };
	char *now = NULL;
	bool said;

	l->no_password[0] = '\0';
	if (evc__redis_password(at->password_file, NULL, &now) < 0)
		evc__copy(l->no_password, sizeof l->no_password,
			  evc_last_error());
	evc__args_text(&a, "AUTH");
	if (at->user != NULL)
		evc__args_text(&a, at->user);
	/* Some users have no password. */
	evc__args_text(&a, now != NULL            ? now
			   : at->password != NULL ? at->password
						  : "");
	said = say_step(l, LOGIN_AUTH, &a);
	evc__redis_password_free(now);
	return said;
}

static bool
say_who(struct link *l)
{
	const struct redis_address *at = l->cl->env.address;
	struct redis_args a = { .n = 0 };
	bool said = true;

	if (at->password != NULL || at->user != NULL)
		said = say_password(l, at);
	if (said && at->database != 0) {
		evc__args_text(&a, "SELECT");
		evc__args_fmt(&a, "%u", at->database);
		said = say_step(l, LOGIN_SELECT, &a);
	}
	if (!said)
		return false;
	evc__args_text(&a, "CLIENT");
	evc__args_text(&a, "SETNAME");
	evc__args_text(&a, l->cl->env.who);
	return say_step(l, LOGIN_NAME, &a);
}

static bool
say_scripts(struct link *l)
{
	struct redis_args a = { .n = 0 };
	char *text;
	size_t n;
	unsigned i;
	bool said = true;

	for (i = 0; said && i < SCRIPTS; i++) {
		n = strlen(redis_script_head(i)) + strlen(evc__scripts[i].text);
		text = sync_alloc(1, n + 1);
		if (text == NULL)
			return false;
		(void)snprintf(text, n + 1, "%s%s", redis_script_head(i),
			       evc__scripts[i].text);
		evc__args_text(&a, "SCRIPT");
		evc__args_text(&a, "LOAD");
		evc__args_add(&a, text, n);
		said = say_step(l, LOGIN_SCRIPT + i, &a);
		sync_free(text);
	}
	return said;
}

/* A script could stop half-way if the user lacked one of these rights.  A second
   element of the answer says that the coordinator may ask for limits. */
static const char may[] =
	"local key = KEYS[1] "
	"local all = {{'get', key}, {'set', key, 'x'}, {'del', key}, "
	"  {'exists', key}, {'type', key}, {'pexpire', key, '1'}, "
	"  {'xadd', key, '*', 'a', 'b'}, {'hget', key, 'a'}, "
	"  {'hset', key, 'a', 'b'}, {'hdel', key, 'a'}, "
	"  {'hsetnx', key, 'a', 'b'}, {'mget', key}, "
	"  {'hincrby', key, 'a', '1'}, {'hlen', key}} "
	"if ARGV[1] == 'coordinator' then "
	"  all[#all + 1] = {'unlink', key} "
	"  all[#all + 1] = {'rename', key, key} "
	"end "
	"for i, one in ipairs(all) do "
	"  if not redis.acl_check_cmd(unpack(one)) then "
	"    return redis.error_reply('NOPERM the user needs +' .. one[1] "
	"      .. ' ~' .. key) "
	"  end "
	"end "
	"local known, may = pcall(redis.acl_check_cmd, 'config', 'get', 'a') "
	"if ARGV[1] == 'coordinator' and known and may then "
	"  return {'ok', 'limits'} "
	"end "
	"return {'ok'} ";

static bool
say_try(struct link *l)
{
	struct redis_args a = { .n = 0 };

	evc__args_text(&a, "EVAL");
	evc__args_add(&a, may, sizeof may - 1);
	evc__args_text(&a, "1");
	evc__args_key(&a, l->cl->env.address, "var");
	evc__args_text(&a, l->cl->env.max_frame > 0 ? "coordinator" : "node");
	return say_step(l, LOGIN_TRY, &a);
}

void
evc__login_begin(struct link *l, void (*done)(struct redis_client *cl))
{
	struct redis_client *cl = l->cl;
	bool said;

	l->logged_in = done;
	said = say_who(l) && say_info(l);
	if (said && l == &cl->links[REDIS_SAY])
		said = say_try(l) && say_scripts(l);
	if (!said)
		evc__client_lost(cl, "no memory");
}

void
evc__login_look(struct link *l)
{
	struct redis_args a = { .n = 0 };

	evc__args_text(&a, "INFO");
	(void)evc__link_say(l, on_look, l->cl, &a);
}
