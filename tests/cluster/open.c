/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How clusters are opened, found again by their names, refused and closed, on
 * each kind of loop; and that nothing of them is left behind.
 */
#include "../support/cluster_util.h"
#include "../support/idle_engine.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/wait.h>

/* ---- what is refused ---- */

static void
refused_open(evc_coord *c, const char *uri, const evc_cluster_config *config,
	     int code, const char *why)
{
	evc_cluster *cl = NULL;
	char text[200];

	ck_assert_int_eq(evc_cluster_open(c, uri, config, &cl), -code);
	snprintf(text, sizeof(text), "%s", evc_last_error());
	HAS(text, why);
	ck_assert_ptr_null(cl);
}

START_TEST(wrong_addresses)
{
	static const char *const unknown[] = {
		"gopher://host", "sixteen-letters-://4", "threads",
		"threads:4",	 "Threads://4",		 "redis",
		"redis:/host",	 "rediss+x://host",	 "",
	};
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG };
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl;
	size_t i;

	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_open(c, NULL, &k, &cl));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cluster_open(NULL, "threads://1", &k, &cl));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cluster_open(c, "threads://1", &k, NULL));
	/* no engine serves it: those that are known are listed */
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		refused_open(c, unknown[i], &k, EVC_INVALID_ARGUMENT,
			     unknown[i]);
		refused_open(c, unknown[i], &k, EVC_INVALID_ARGUMENT,
			     "threads://");
		refused_open(c, unknown[i], &k, EVC_INVALID_ARGUMENT,
			     "processes://");
		refused_open(c, unknown[i], &k, EVC_INVALID_ARGUMENT,
			     "redis[s]://HOST:PORT/NS, unix:///SOCKET/NS");
	}
	refused_open(c, "threads://1?speed=9", &k, EVC_INVALID_ARGUMENT,
		     "no option \"speed\"");
	refused_open(c, "threads://none", &k, EVC_INVALID_ARGUMENT, "none");
	refused_open(c, "threads://0", &k, EVC_INVALID_ARGUMENT, "0");
	/* the scope of those that came as far as their engine is gone */
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	census_end(&n);
}
END_TEST

/* Is the library in the folder of libevcoord-cluster? */
static bool
redis_is_beside(void)
{
	char path[PATH_MAX];
	Dl_info own;

	if (dladdr((void *)(uintptr_t)evc_cluster_open, &own) == 0)
		return false;
	snprintf(path, sizeof(path), "%s", own.dli_fname);
	if (strstr(path, "/libevcoord-cluster.so") == NULL)
		return false;
	strcpy(strrchr(path, '/'), "/libevcoord-redis.so.1");
	return access(path, F_OK) == 0;
}

START_TEST(without_the_library_of_redis)
{
	static const char *const uri[] = { "redis://host:1/jobs",
					   "rediss://host:1/jobs",
					   "unix:///run/redis/jobs" };
	evc_cluster_config k = { F_CONFIG };
	evc_coord *c;
	size_t i;

	if (dlsym(RTLD_DEFAULT, "evc_redis_engine") != NULL ||
	    dlopen("libevcoord-redis.so.1", RTLD_NOW | RTLD_LOCAL) != NULL)
		T_SKIP("it is there");
	c = new_coord(NULL);
	/* No folder is searched but that of our own library. */
	if (redis_is_beside())
		refused_open(c, "redis://host:1/jobs?nonsense=1", &k,
			     EVC_INVALID_ARGUMENT, "has no option");
	else
		for (i = 0; i < sizeof(uri) / sizeof(uri[0]); i++)
			refused_open(c, uri[i], &k, EVC_UNIMPLEMENTED,
				     "libevcoord-redis.so.1, which is not "
				     "installed");
	OK(evc_free(c));
}
END_TEST

START_TEST(wrong_configs)
{
	static const double bad[] = { -1, -0.001, NAN, -INFINITY };
	static const evc_function twice[] = { { .name = "a", .fn = f_add },
					      { .name = "a", .fn = f_add } };
	evc_coord *c = new_coord(NULL);
	evc_cluster_config k;
	char name[60];
	size_t i;

#define WITH(...) (k = (evc_cluster_config){ F_CONFIG, __VA_ARGS__ }, &k)
#define NO(why, ...) \
	refused_open(c, "threads://1", WITH(__VA_ARGS__), \
		     EVC_INVALID_ARGUMENT, why)
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		NO("worker_wait", .worker_wait = bad[i]);
		NO("lease", .lease = bad[i]);
		NO("0.1 s at least", .lease = 0.099 / (double)(i + 1));
		NO("0.01 s at least", .watchdog = 0.0099 / (double)(i + 1));
		NO("0.001 s at least", .checkpoint_every =
					       i > 0 ? 0.00099 : 1e-300);
		NO("checkpoint_every", .checkpoint_every = bad[i]);
		NO("retry", .retry.first = bad[i]);
		NO("retry", .retry.most = bad[i]);
		NO("retry", .retry.jitter = bad[i]);
		NO("within", .retry.within = bad[i]);
		if (bad[i] != EVC_NO_GRACE)
			NO("grace", .grace = bad[i]);
	}
	memset(name, 'n', sizeof(name));
	name[48] = '\0';
	NO("name", .name = name);
	NO("flags", .flags = 1);
	NO("max_frame", .max_frame = 1);
	NO("max_frame", .max_frame = 4095);
	NO("reserved", .reserved_ = { [5] = 1 });
	NO("reserved", .retry.reserved_ = { [1] = 1 });
	NO("jitter", .retry.jitter = 1.1);
	NO("within", .retry.within = 60);
	NO("engines", .n_engines = 1);
	k = (evc_cluster_config){ .functions = twice, .n_functions = 2 };
	refused_open(c, "threads://1", &k, EVC_INVALID_ARGUMENT, "a");
	k = (evc_cluster_config){ .n_functions = 2 };
	refused_open(c, "threads://1", &k, EVC_INVALID_ARGUMENT, "");
	/* 255 and more is any number */
	evc_cluster_close(open_with(c, "threads://1", WITH(.deaths = 1000)));
#undef NO
#undef WITH
	end_coord(c);
}
END_TEST

START_TEST(after_the_stop)
{
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG };
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, 0, "the end"));
	refused_open(c, "threads://1", &k, EVC_CANCELLED, "stop");
	OK(evc_clear_stop(c));
	evc_cluster_close(open_with(c, "threads://1", &k));
	end_coord(c);
	census_end(&n);
}
END_TEST

START_TEST(a_reactor_of_somebody_else)
{
	struct census n = census_begin();
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL), *other = new_coord(loop);
	evc_cluster_config k = { F_CONFIG, .reactor = evc_home(other) };

	refused_open(c, "threads://1", &k, EVC_INVALID_ARGUMENT, "reactor");
	FREE_ALL(other, c);
	ev_loop_destroy(loop);
	census_end(&n);
}
END_TEST

/* ---- engines ---- */

static atomic_int e_opens;

static evc_status
e_open(const evc_engine_env *env, evc_engine **ret)
{
	(void)ret;
	atomic_fetch_add(&e_opens, 1);
	if (strcmp(env->place, "late") == 0)
		(void)evc_request_stop(evc_scope_parent(env->scope), 0,
				       "while it is being opened");
	return evc_refuse(-EVC_UNAVAILABLE, "the %s engine is out",
			  env->options[0] != NULL ? env->options[0] : "plain");
}

static const char *const e_options[] = { "how", NULL };

#define E_OPS \
	IDLE_OPS, .scheme = "mine", .usage = "mine://?how=WAY", \
	.options = e_options, .open = e_open

static const evc_engine_ops e_ops = { E_OPS };

START_TEST(an_engine_that_is_refused_leaves_nothing)
{
	struct census n = census_begin();
	struct ev_loop *loop = ev_loop_new(0);
	const evc_engine_ops *engines[] = { &e_ops };
	evc_cluster_config k = { .engines = engines, .n_engines = 1 };
	evc_coord *c[3];
	char path[] = "/tmp/evc-open-XXXXXX";
	int i, round, fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(unlink(path));
	atomic_store(&e_opens, 0);
	c[0] = new_coord(loop);
	c[1] = new_coord(NULL);
	c[2] = new_coord(NULL);
	/* a loop of another thread */
	OK(evc_reactor_start(c[2], "a loop", NULL, NULL, NULL, &k.reactor));
	for (i = 2; i >= 0; i--) {
		for (round = 0; round < 10; round++) {
			/* with what saves checkpoints, and without */
			k.checkpoint = round % 2 ? path : NULL;
			k.name = round % 3 ? "named" : NULL;
			refused_open(c[i], "mine://?how=much", &k,
				     EVC_UNAVAILABLE, "the how=much engine");
			refused_open(c[i], "mine://", &k, EVC_UNAVAILABLE,
				     "the plain engine is out");
		}
		/* and while a stop comes */
		refused_open(c[i], "mine://late", &k, EVC_UNAVAILABLE, "out");
		OK(evc_join(c[i], NULL, &(evc_verdict){ 0 }));
		UNTIL(evc_free(c[i]) == 0);
		k.reactor = NULL;
	}
	ck_assert_int_eq(e_opens, 3 * 21);
	(void)unlink(path);
	ev_loop_destroy(loop);
	census_end(&n);
}
END_TEST

START_TEST(engines_that_are_none)
{
	evc_engine_ops old = { E_OPS }, lacks = { E_OPS };
	const evc_engine_ops kills = { E_OPS, .caps = EVC_ENGINE_KILLS };
	const evc_engine_ops keeps = { E_OPS, .caps = EVC_ENGINE_VARIABLES };
	const evc_engine_ops room = { E_OPS, .reserved_ = { 1 } };
	const evc_engine_ops *engines[2] = { &e_ops, &old };
	evc_cluster_config k = { .engines = engines, .n_engines = 2 };
	evc_coord *c = new_coord(NULL);

	atomic_store(&e_opens, 0);
	old.abi = 99;
	lacks.leave = NULL;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "abi 99");
	engines[1] = &lacks;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "engine 1 lacks");
	engines[1] = &kills;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "engine 1 lacks");
	engines[1] = &keeps;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "engine 1 lacks");
	engines[1] = &room;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "reserved");
	engines[1] = NULL;
	refused_open(c, "mine://", &k, EVC_INVALID_ARGUMENT, "engine 1 is");
	k.n_engines = 1;
	refused_open(c, "other://", &k, EVC_INVALID_ARGUMENT,
		     "mine://?how=WAY, threads://");
	refused_open(c, "mine://?ho=1", &k, EVC_INVALID_ARGUMENT, "\"ho\"");
	refused_open(c, "mine://?hows=1", &k, EVC_INVALID_ARGUMENT,
		     "\"hows\"");
	ck_assert_int_eq(e_opens, 0);
	OK(evc_free(c));
}
END_TEST

/* ---- names ---- */

START_TEST(opened_twice_it_is_the_same)
{
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG, .name = "one" };
	evc_coord *c = new_coord(NULL), *s = NULL;
	evc_cluster *a, *b, *other;
	evc_status st;

	OK(evc_scope_new(c, "beside", NULL, &s));
	OK(evc_scope_ready(s));
	a = open_with(c, "threads://2", &k);
	b = open_with(c, "threads://2", &k);
	ck_assert_ptr_eq(a, b);
	/* another address */
	other = NULL;
	st = evc_cluster_open(c, "threads://3", &k, &other);
	ck_assert_int_eq(st, -EVC_ALREADY_EXISTS);
	HAS(evc_last_error(), "threads://2");
	/* another coordinator, another name, none */
	other = open_with(s, "threads://1", &k);
	ck_assert_ptr_ne(a, other);
	evc_cluster_close(other);
	k.name = "two";
	other = open_with(c, "threads://3", &k);
	ck_assert_ptr_ne(a, other);
	evc_cluster_close(other);
	k.name = NULL;
	other = open_with(c, "threads://2", &k);
	ck_assert_ptr_ne(a, other);
	evc_cluster_close(other);
	other = open_with(c, "threads://2", &k);
	ck_assert_ptr_ne(a, other);
	evc_cluster_close(other);
	/* it is open until the last close */
	evc_cluster_close(a);
	evc_remote_free(schedule_add(b, 1, 2));
	OK(evc_cluster_join(b, T_LIMIT));
	evc_cluster_close(b);
	/* and then not found any more, though it may not have ended yet */
	k.name = "one";
	a = open_with(c, "threads://3", &k);
	evc_remote_free(schedule_add(a, 1, 2));
	OK(evc_cluster_join(a, T_LIMIT));
	evc_cluster_close(a);
	OK(evc_request_stop(c, 0, "the end"));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	FREE_ALL(s, c);
	census_end(&n);
}
END_TEST

START_TEST(one_that_stops_is_not_found)
{
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG, .name = "one" };
	evc_coord *c = new_coord(NULL);
	evc_cluster *a, *b;

	a = open_with(c, "threads://1", &k);
	OK(evc_request_stop(evc_cluster_scope(a), 0, "it alone"));
	b = open_with(c, "threads://1", &k);
	ck_assert_ptr_ne(a, b);
	OK(evc_request_stop(c, 0, "all"));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	/* its scope runs again, the cluster does not */
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(evc_cluster_scope(b)));
	REFUSED(EVC_CANCELLED,
		evc_schedule(b, "add", NULL, NULL, NULL, NULL));
	REFUSED(EVC_CANCELLED,
		evc_schedule(a, "add", NULL, NULL, NULL, NULL));
	OK(evc_cluster_join(b, 0));
	evc_cluster_close(a);
	a = open_with(c, "threads://1", &k);
	ck_assert_ptr_ne(a, b);
	evc_remote_free(schedule_add(a, 1, 2));
	OK(evc_cluster_join(a, T_LIMIT));
	evc_cluster_close(b);
	evc_cluster_close(a);
	end_coord(c);
	census_end(&n);
}
END_TEST

struct opener {
	evc_coord *c;
	evc_cluster *cl;
	evc_status st;
	struct t_gate *go;
};

static void *
opener_main(void *arg)
{
	evc_cluster_config k = { F_CONFIG, .name = "shared" };
	struct opener *o = arg;

	gate_await(o->go, 1);
	o->st = evc_cluster_open(o->c, "threads://2", &k, &o->cl);
	return NULL;
}

START_TEST(opened_by_many_at_once_it_is_one)
{
	enum { ROUNDS = 20, N = 6 };
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		struct t_gate go = GATE_INIT;
		struct opener o[N];
		struct t_crowd k;

		memset(o, 0, sizeof(o));
		for (i = 0; i < N; i++) {
			o[i].c = c;
			o[i].go = &go;
		}
		crowd_begin(&k, N, opener_main, o, sizeof(o[0]));
		gate_step(&go);
		crowd_end(&k);
		for (i = 0; i < N; i++) {
			OK(o[i].st);
			ck_assert_ptr_eq(o[i].cl, o[0].cl);
		}
		for (i = 0; i < N; i++)
			evc_cluster_close(o[i].cl);
	}
	end_coord(c);
	census_end(&n);
}
END_TEST

/* ---- the end ---- */

START_TEST(an_open_one_keeps_joins_and_the_coordinator)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_queue *q = NULL;
	struct joiner j;
	void *item;

	ck_assert_ptr_eq(evc_scope_parent(evc_cluster_scope(cl)), c);
	ck_assert_ptr_null(evc_cluster_scope(NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "cluster");
	/* Nor is anything freed beside the cluster. */
	OK(evc_queue_new(c, "queue", 1, NULL, &q));
	ck_assert_int_eq(evc_finish(c, 0), 1);
	HAS(evc_last_error(), "it has scopes: cluster");
	OK(evc_queue_push(q, c, 0));
	OK(evc_queue_try_pop(q, &item));
	/* nothing runs, nobody asks for a stop: all the same it waits */
	join_begin(&j, c, 0, 0);
	ck_assert_int_eq(j.returned, 0);
	evc_cluster_close(cl);
	OK(join_end(&j));
	/* with that join it has freed itself */
	ck_assert_int_eq(evc_finish(c, 0), 0);
	census_end(&n);
}
END_TEST

START_TEST(closed_while_functions_run)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *runs[2], *queued[3];
	evc_remote_info info;
	int i;

	for (i = 0; i < 2; i++)
		runs[i] = schedule(cl, "hold");
	UNTIL(atomic_load(&f_in) == 2);
	for (i = 0; i < 3; i++)
		queued[i] = schedule_add(cl, i, i);
	evc_cluster_close(cl);
	/* remotes are the program's still, and have their outcomes at once or
	   when their functions have obeyed */
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(evc_remote_fetch(queued[i], 0, NULL),
				 EVC_CANCELLED);
		OK(evc_remote_get(queued[i], &info));
		ck_assert_uint_eq(info.kind, EVC_FAILED_CANCEL);
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(evc_remote_fetch(runs[i], T_LIMIT, NULL),
				 EVC_CANCELLED);
	end_coord(c);
	for (i = 0; i < 2; i++)
		evc_remote_free(runs[i]);
	for (i = 0; i < 3; i++) {
		OK(evc_remote_get(queued[i], &info));
		ck_assert_str_eq(info.function, "add");
		evc_remote_free(queued[i]);
	}
	census_end(&n);
}
END_TEST

START_TEST(the_parents_stop_ends_it)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r = schedule(cl, "hold");
	evc_cluster_info info;
	bool done = false;

	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_request_stop(c, 0, "all"));
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_CANCELLED);
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	/* the handle is there still, and what it says is so */
	REFUSED(EVC_CANCELLED,
		evc_schedule(cl, "add", NULL, NULL, NULL, NULL));
	REFUSED(EVC_CANCELLED, evc_cluster_done(cl, &done));
	OK(evc_cluster_done(cl, &done));
	ck_assert(done);
	OK(evc_cluster_join(cl, INFINITY));
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_cancelled, 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	evc_cluster_close(cl);
	OK(evc_free(c));
	evc_remote_free(r);
	census_end(&n);
}
END_TEST

/* Closed in each order: before the stop, after it, after the join; by a thread,
   or by a function of its own. */
static evc_status
close_it(evc_exec *x, void *arg)
{
	(void)x;
	evc_cluster_close(arg);
	return 0;
}

START_TEST(closed_by_one_of_its_functions)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");

	OK(evc_schedule_call(cl, close_it, cl, NULL, NULL, NULL, NULL));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	census_end(&n);
}
END_TEST

static void *
close_main(void *arg)
{
	evc_cluster_close(arg);
	return NULL;
}

START_TEST(closed_while_it_is_stopped)
{
	enum { ROUNDS = 60 };
	struct census n = census_begin();
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct ev_loop *loop = i % 2 ? ev_loop_new(0) : NULL;
		evc_coord *c = new_coord(loop);
		evc_cluster *cl = open_threads(c, "threads://1");
		evc_remote *r = schedule(cl, "hold");
		pthread_t thread;

		OK(pthread_create(&thread, NULL, close_main, cl));
		OK(evc_request_stop(c, 0, "at the same time"));
		OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
		OK(pthread_join(thread, NULL));
		ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL),
				 EVC_CANCELLED);
		evc_remote_free(r);
		UNTIL(evc_free(c) == 0);
		if (loop != NULL)
			ev_loop_destroy(loop);
	}
	census_end(&n);
}
END_TEST

/* ---- loops ---- */

static void
note_here(evc_cluster *cl, evc_status result, void *arg)
{
	(void)cl;
	(void)result;
	atomic_store((atomic_int *)arg, own_tid());
}

START_TEST(without_a_home_it_has_a_loop_of_its_own)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	atomic_int tid = 0;

	OK(evc_cluster_join_start(cl, note_here, &tid));
	UNTIL(atomic_load(&tid) != 0);
	ck_assert_int_ne(tid, own_tid());
	evc_cluster_close(cl);
	end_coord(c);
	census_end(&n);
}
END_TEST

START_TEST(with_a_hosted_home_it_has_a_loop_of_its_own)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster_config k = { F_CONFIG };
	evc_cluster *cl;
	atomic_int tid = 0;
	int fd;

	OK(evc_reactor_foreign(c, NULL, &fd, &k.reactor));
	refused_open(c, "threads://1", &k, EVC_INVALID_ARGUMENT, "hosted");
	cl = open_threads(c, "threads://1");
	OK(evc_cluster_join_start(cl, note_here, &tid));
	UNTIL(atomic_load(&tid) != 0);
	ck_assert_int_ne(tid, own_tid());
	evc_cluster_close(cl);
	OK(evc_reactor_detach(k.reactor));
	end_coord(c);
	census_end(&n);
}
END_TEST

START_TEST(with_a_home_it_is_there)
{
	struct census n = census_begin();
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://1");
	atomic_int tid = 0;

	/* functions run without a turn of the loop */
	evc_remote *r = schedule_add(cl, 1, 2);

	UNTIL(({
		evc_remote_info i;
		evc_remote_get(r, &i) == 0 && i.state == EVC_REMOTE_DONE;
	}));
	evc_remote_free(r);
	OK(evc_cluster_join_start(cl, note_here, &tid));
	t_sleep(0.01);
	ck_assert_int_eq(tid, 0);
	/* who is to be called keeps a plain ev_run going until that was done */
	ev_run(loop, 0);
	ck_assert_int_eq(tid, own_tid());
	/* and nothing else does */
	ev_run(loop, 0);
	evc_cluster_close(cl);
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	census_end(&n);
}
END_TEST

START_TEST(the_reactor_of_a_thread)
{
	struct census n = census_begin();
	struct ev_loop *home = ev_loop_new(0);
	evc_coord *c = new_coord(home);
	evc_cluster_config k = { F_CONFIG };
	atomic_int tid = 0;
	evc_cluster *cl;

	OK(evc_reactor_start(c, "a loop", NULL, NULL, NULL, &k.reactor));
	cl = open_with(c, "threads://1", &k);
	OK(evc_cluster_join_start(cl, note_here, &tid));
	UNTIL(atomic_load(&tid) != 0);
	ck_assert_int_ne(tid, own_tid());
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(home);
	census_end(&n);
}
END_TEST

/* ---- a function that hangs ---- */

START_TEST(one_that_hangs_is_left_and_freed_when_it_returns)
{
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG, .grace = 0.01 };
	evc_join_opts brief = { .grace = 0.1 };
	evc_coord *c = new_coord_with(NULL, &(evc_config){ .grace = 0.1 });
	evc_cluster *cl = open_with(c, "threads://2", &k);
	evc_remote *r = schedule(cl, "deaf");
	char text[2000];
	evc_verdict v;

	UNTIL(atomic_load(&f_in) == 1);
	evc_cluster_close(cl);
	OK(evc_request_stop(c, 0, "all"));
	ck_assert_int_gt(evc_join(c, &brief, &v), 0);
	ck_assert_uint_gt(v.n_stragglers, 0);
	HAS(v.error.text, "still running: ");
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, "deaf on worker");
	/* it was given up, and everybody who waits for it knows */
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_UNAVAILABLE);
	evc_remote_free(r);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	atomic_store(&f_open, 1);
	UNTIL(evc_free(c) == 0);
	census_end(&n);
}
END_TEST

/* ---- a fork child ---- */

/* Every other thread sleeps: what a sanitizer keeps under locks of its own is in
   nobody's hands when we fork. */
static void
until_all_asleep(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		if (atoi(e->d_name) > 0 && atoi(e->d_name) != own_tid())
			until_asleep(atoi(e->d_name));
	closedir(d);
}

START_TEST(a_fork_child_is_refused)
{
	struct census n = census_begin();
	evc_cluster_config k = { F_CONFIG, .name = "forked" };
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_with(c, "threads://1", &k), *other;
	evc_remote *r = schedule_add(cl, 1, 2);
	evc_cluster_info info;
	char said[200];
	bool done;
	int status;
	pid_t pid;

	OK(evc_cluster_join(cl, T_LIMIT));
	until_all_asleep();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		CHILD_REFUSED(evc_cluster_open(c, "threads://1", &k, &other));
		CHILD_REFUSED(evc_schedule(cl, "add", NULL, NULL, NULL, NULL));
		CHILD_REFUSED(evc_cluster_join(cl, 0));
		CHILD_REFUSED(evc_cluster_join_start(cl, note_here, NULL));
		CHILD_REFUSED(evc_cluster_done(cl, &done));
		CHILD_REFUSED(evc_cluster_get(cl, &info));
		CHILD_REFUSED(evc_fetch_start(cl, NULL, NULL, NULL));
		/* what has its outcome has it here, too */
		CHILD(evc_remote_fetch(r, 0, NULL) == 0);
		evc_report(evc_cluster_scope(cl), EVC_REPORT_TEXT, said,
			   sizeof(said));
		CHILD(strstr(said, "fork child") != NULL);
		evc_cluster_close(cl);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_coord(c);
	census_end(&n);
}
END_TEST

START_TEST(a_fork_child_opens_its_own)
{
	evc_cluster_config k = { F_CONFIG, .name = "forked" };
	evc_coord *c = new_coord(NULL), *own;
	evc_cluster *cl, *other;
	int status;
	pid_t pid;

	if (t_under_tsan())
		T_SKIP("it allows no threads in a fork child of threads");
	if (t_under_qemu())
		T_SKIP("it makes no threads in a fork child of threads");
	cl = open_with(c, "threads://1", &k);
	evc_remote_free(schedule_add(cl, 1, 2));
	OK(evc_cluster_join(cl, T_LIMIT));
	until_all_asleep();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* the name is free here */
		CHILD(evc_new(NULL, NULL, &own) == 0);
		CHILD(evc_cluster_open(own, "threads://1", &k, &other) == 0);
		CHILD(other != cl);
		CHILD(evc_schedule_pack(other, "add", NULL, NULL, "[ii]", 1,
					2) == 0);
		CHILD(evc_cluster_join(other, T_LIMIT) == 0);
		evc_cluster_close(other);
		CHILD(evc_join(own, NULL, NULL) == 0);
		CHILD(evc_free(own) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

API_MAIN("open", wrong_addresses, without_the_library_of_redis, wrong_configs,
	 after_the_stop, a_reactor_of_somebody_else, an_engine_that_is_refused_leaves_nothing,
	 engines_that_are_none, opened_twice_it_is_the_same,
	 one_that_stops_is_not_found, opened_by_many_at_once_it_is_one,
	 an_open_one_keeps_joins_and_the_coordinator,
	 closed_while_functions_run, the_parents_stop_ends_it,
	 closed_by_one_of_its_functions, closed_while_it_is_stopped,
	 without_a_home_it_has_a_loop_of_its_own,
	 with_a_hosted_home_it_has_a_loop_of_its_own, with_a_home_it_is_there,
	 the_reactor_of_a_thread,
	 one_that_hangs_is_left_and_freed_when_it_returns,
	 a_fork_child_is_refused, a_fork_child_opens_its_own)
