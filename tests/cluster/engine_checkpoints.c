/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints of a cluster whose engine keeps the variables: the engine has them
 * before anything runs, they are saved before it leaves, and what they say of
 * functions that have finished is exact.
 */
#include "../support/folder_util.h"
#include "../support/hand_engine.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

static evc_coord *c;
static evc_cluster *cl;

/* ---- what the engine keeps, and a thread that answers ---- */

enum { MOST = 8 };

static struct {
	pthread_t thread;
	atomic_int on, answers; /* questions wait while answers is 0 */
	atomic_int n_all;
	/* of the thread alone, or of the test while there is none */
	char names[MOST][16];
	double is[MOST];
	size_t n;
	uint64_t finished, changes, generation;
	evc_status fails;       /* with this, if not 0 */
	evc_status fails_counts;
	int n_takeovers;        /* so often another coordinator has it for a
				   while, after an answer with all */
} store;

static double *
store_at(const char *name)
{
	size_t i;

	for (i = 0; i < store.n; i++)
		if (strcmp(store.names[i], name) == 0)
			return &store.is[i];
	ck_assert_uint_lt(store.n, MOST);
	snprintf(store.names[store.n], sizeof(store.names[0]), "%s", name);
	store.is[store.n] = 0;
	return &store.is[store.n++];
}

static void
store_replace(const evc_engine_question *q)
{
	size_t i;

	store.n = 0;
	for (i = 0; i < q->n_entries; i++)
		OK(evc_unpack(&q->entries[i].value, "d",
			      store_at(q->entries[i].name)));
	store.finished = q->finished;
	store.changes++;
}

static void
store_all(void)
{
	evc_engine_entry e[MOST];
	evc_value v[MOST] = { { NULL, 0 } };
	evc_engine_answer a = { .entries = e,
				.n_entries = store.n,
				.finished = store.finished,
				.changes = store.changes,
				.generation = store.generation };
	size_t i;

	for (i = 0; i < store.n; i++) {
		OK(evc_pack(&v[i], "d", store.is[i]));
		e[i] = (evc_engine_entry){ store.names[i], v[i] };
	}
	hand_answer(&a);
	for (i = 0; i < store.n; i++)
		evc_value_free(&v[i]);
	if (store.n_takeovers > 0) {
		store.n_takeovers--;
		store.generation++;
	}
	atomic_fetch_add(&store.n_all, 1);
}

static void
store_answer(const evc_engine_question *q)
{
	evc_engine_answer a = { .status = store.fails, .text = "it is full" };

	if (q->update.op == EVC_VARIABLE_COUNTS && store.fails == 0)
		a.status = store.fails_counts;
	if (a.status == 0) {
		if (q->update.op == EVC_VARIABLE_ALL) {
			store_all();
			return;
		}
		if (q->update.op == EVC_VARIABLE_COUNTS) {
			a.finished = store.finished;
			a.changes = store.changes;
			a.generation = store.generation;
		} else if (q->update.op == EVC_VARIABLE_REPLACE)
			store_replace(q);
		else if (q->update.op == EVC_VARIABLE_ADD) {
			a.now = *store_at(q->update.name) += q->update.by;
			store.changes++;
		}
	}
	hand_answer(&a);
}

static void *
store_main(void *arg)
{
	const evc_engine_question *q;

	while (atomic_load(&store.on)) {
		q = atomic_load(&store.answers) ? hand_question() : NULL;
		if (q != NULL)
			store_answer(q);
		else
			t_sleep(0.0005);
	}
	return arg;
}

static void
store_begin(void)
{
	memset(&store, 0, sizeof(store));
	atomic_store(&store.on, 1);
	atomic_store(&store.answers, 1);
}

static void
store_end(void)
{
	atomic_store(&store.on, 0);
	OK(pthread_join(store.thread, NULL));
}

/* ---- a cluster ---- */

static void
setup(void)
{
	folder_make();
	store_begin();
}

static evc_status
try_to_open(double every)
{
	evc_cluster_config k = { KEEPING_HAND_CONFIG, .checkpoint = path,
				 .checkpoint_every = every };

	c = new_coord(NULL);
	return evc_cluster_open(c, "hand://1", &k, &cl);
}

/* The thread is as old as the open engine. */
static void
begin(double every)
{
	ck_assert_msg(try_to_open(every) == 0, "%s", evc_last_error());
	OK(pthread_create(&store.thread, NULL, store_main, NULL));
}

/* As a program ends. */
static void
end(void)
{
	evc_cluster_close(cl);
	UNTIL(atomic_load(&hand.left));
	store_end();
	hand_end_coord(c);
}

/* What the node of such an engine does: updates and count, then the result. */
static void
run_one(bool transactional)
{
	evc_schedule_opts o = { .flags = transactional ? EVC_TRANSACTIONAL :
							 0 };
	evc_engine_task t;
	evc_remote *r;

	OK(evc_schedule(cl, "f", NULL, NULL, &o, &r));
	UNTIL(hand_take(0, &t, 1) == 1);
	hand_finish(0, &t, 0, NULL);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
}

/* It is as it was in the store. */
static bool
has(const char *name, double is)
{
	size_t i;

	for (i = 0; i < store.n; i++)
		if (strcmp(store.names[i], name) == 0)
			return store.is[i] == is;
	return false;
}

/* ---- there and back ---- */

START_TEST(what_was_saved_at_the_end_comes_back_first)
{
	begin(INFINITY);
	/* there was no file, so the engine's own stay */
	ck_assert_int_eq(atomic_load(&hand_asked.n_asked), 0);
	hand_up(0);
	OK(evc_variable_add(cl, "v", 2.5, NULL));
	OK(evc_variable_add(cl, "w", 7, NULL));
	run_one(false);
	run_one(false);
	run_one(true);
	store.finished = 1;
	end();

	store_begin();
	*store_at("rubbish") = 1;
	store.finished = 1000;
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 3);
	ck_assert_uint_eq(store.n, 2);
	ck_assert(has("v", 2.5) && has("w", 7));
	/* what was plain before is in the engine's number now, once */
	hand_up(0);
	run_one(false);
	ck_assert_uint_eq(evc_cluster_finished(cl), 4);
	run_one(true);
	end();

	store_begin();
	begin(INFINITY);
	hand_up(0);
	/* Its own number was 3 still when it was asked: the last one had not
	   been counted. */
	ck_assert_uint_eq(evc_cluster_finished(cl), 4);
	end();
}
END_TEST

START_TEST(nothing_runs_before_the_engine_has_it)
{
	evc_engine_task t;
	evc_remote *r;
	int wakes;

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	end();

	store_begin();
	atomic_store(&store.answers, 0);
	begin(INFINITY);
	ck_assert_uint_eq(hand_question()->update.op, EVC_VARIABLE_REPLACE);
	hand_up(0);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 0);
	wakes = atomic_load(&hand.wakes);
	atomic_store(&store.answers, 1);
	/* the engine need not look again and again */
	UNTIL(atomic_load(&hand.wakes) > wakes);
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	ck_assert(has("v", 1));
	hand_finish(0, &t, 0, NULL);
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
	end();
}
END_TEST

START_TEST(an_engine_that_does_not_take_it_is_down)
{
	evc_engine_task t;
	struct stat before, after;
	evc_remote *r;

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	end();
	OK(stat(path, &before));

	store_begin();
	store.fails = -EVC_RESOURCE_EXHAUSTED;
	begin(0.01);
	hand_up(0);
	UNTIL(evc_schedule(cl, "f", NULL, NULL, NULL, NULL) ==
	      EVC_UNAVAILABLE);
	HAS(evc_last_error(), "its checkpoint was not restored: it is full");
	ck_assert_uint_eq(hand_take(0, &t, 1), 0);
	/* for good: a worker that comes helps nobody */
	hand.sink->gone(hand.core, 0, "it went", EVC_ENGINE_DIED);
	hand_up(0);
	ck_assert_int_eq(evc_schedule(cl, "f", NULL, NULL, NULL, &r),
			 EVC_UNAVAILABLE);
	/* and the file stays */
	store.fails = 0;
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(cl, NULL));
	HAS(evc_last_error(), path);
	OK(evc_cluster_save(cl, other));
	end();
	OK(stat(path, &after));
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(a_stop_before_it_was_taken_keeps_the_file)
{
	struct stat before, after;

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	end();
	OK(stat(path, &before));
	store_begin();
	atomic_store(&store.answers, 0);
	begin(0.01);
	end();
	OK(stat(path, &after));
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(a_damaged_file_opens_nothing)
{
	struct census n = census_begin();
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs("nothing of ours", f), 0);
	fclose(f);
	ck_assert_int_eq(try_to_open(INFINITY), -EVC_DATA_LOSS);
	OK(evc_free(c));
	census_end(&n);
}
END_TEST

/* It was loaded, and then there is no engine. */
static evc_status
never_opens(const evc_engine_env *env, evc_engine **ret)
{
	(void)env;
	(void)ret;
	return evc_refuse(-EVC_UNAVAILABLE, "not today");
}

START_TEST(an_engine_that_never_opens)
{
	struct census n = census_begin();
	evc_engine_ops ops = keeping_hand_ops;
	const evc_engine_ops *engines[] = { &ops };
	evc_cluster_config k = { .engines = engines, .n_engines = 1,
				 .checkpoint = path };

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	end();
	ops.open = never_opens;
	c = new_coord(NULL);
	REFUSED(EVC_UNAVAILABLE, evc_cluster_open(c, "hand://1", &k, &cl));
	UNTIL(evc_free(c) == 0);
	census_end(&n);
}
END_TEST

/* ---- every so often, and by a call ---- */

START_TEST(every_so_often_if_something_is_new)
{
	struct stat before, after;
	int asked;

	begin(0.005);
	OK(evc_variable_add(cl, "v", 1, NULL));
	UNTIL(stat(path, &before) == 0);
	/* It is asked again and again, and says the same. */
	do {
		OK(stat(path, &before));
		asked = atomic_load(&hand_asked.n_asked);
		UNTIL(atomic_load(&hand_asked.n_asked) > asked + 2);
		OK(stat(path, &after));
	} while (after.st_ino != before.st_ino);
	OK(evc_variable_add(cl, "v", 1, NULL));
	UNTIL(stat(path, &after) == 0 && after.st_ino != before.st_ino);
	end();
}
END_TEST

START_TEST(saved_and_restored_by_a_call)
{
	begin(INFINITY);
	hand_up(0);
	OK(evc_variable_add(cl, "v", 1, NULL));
	run_one(false);
	run_one(true);
	store.finished = 1;
	OK(evc_cluster_save(cl, other));
	ck_assert_int_ne(access(path, F_OK), 0);
	OK(evc_variable_add(cl, "v", 10, NULL));
	OK(evc_variable_add(cl, "new", 10, NULL));
	run_one(false);
	run_one(false);
	run_one(true);
	store.finished = 2;
	ck_assert_uint_eq(evc_cluster_finished(cl), 5);
	OK(evc_cluster_restore(cl, other));
	ck_assert_uint_eq(store.n, 1);
	ck_assert(has("v", 1));
	ck_assert_uint_eq(store.finished, 2);
	ck_assert_uint_eq(evc_cluster_finished(cl), 2);
	run_one(false);
	ck_assert_uint_eq(evc_cluster_finished(cl), 3);
	/* refused, and nothing has changed */
	store.fails = -EVC_UNAVAILABLE;
	REFUSED(EVC_UNAVAILABLE, evc_cluster_restore(cl, other));
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(cl, other));
	store.fails = 0;
	ck_assert_uint_eq(evc_cluster_finished(cl), 3);
	REFUSED(EVC_NOT_FOUND, evc_cluster_restore(cl, "/tmp/never/was"));
	end();
}
END_TEST

/* ---- another coordinator, which had the variables while this one was frozen ---- */

/* There are no temporary files. */
static void
only_the_file_is_there(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		ck_assert_msg(e->d_name[0] == '.' ||
				      strcmp(e->d_name, "state") == 0,
			      "%s", e->d_name);
	closedir(d);
	ck_assert_int_eq(access(path, F_OK), 0);
}

START_TEST(a_state_that_may_be_old_takes_no_place)
{
	struct stat before, after;
	int n;

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	OK(evc_cluster_save(cl, NULL));
	OK(stat(path, &before));
	/* it is read again, and then saved */
	store.n_takeovers = 2;
	n = atomic_load(&store.n_all);
	OK(evc_cluster_save(cl, NULL));
	ck_assert_int_eq(atomic_load(&store.n_all), n + 3);
	OK(stat(path, &after));
	ck_assert_uint_ne(before.st_ino, after.st_ino);
	/* but not for ever */
	store.n_takeovers = 1000;
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(cl, NULL));
	HAS(evc_last_error(), "another coordinator");
	store.n_takeovers = 0;
	/* and when nobody knows, it is not saved either */
	store.fails_counts = -EVC_UNAVAILABLE;
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(cl, NULL));
	HAS(evc_last_error(), "it is full");
	REFUSED(EVC_UNAVAILABLE, evc_cluster_save(cl, other));
	store.fails_counts = 0;
	OK(stat(path, &before));
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	only_the_file_is_there();
	end();
}
END_TEST

/* way 0: there is a file of somebody else; 1: there is none. */
static void
its_file_is_replaced(int way)
{
	struct stat before, after;

	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	OK(evc_cluster_save(cl, NULL));
	OK(evc_variable_add(cl, "v", 1, NULL));
	OK(evc_cluster_save(cl, other));
	OK(evc_variable_add(cl, "v", 1, NULL));
	OK(evc_cluster_save(cl, NULL));
	OK(way == 0 ? rename(other, path) : unlink(path));
	end();
	store_begin();
	begin(INFINITY);
	/* no question comes behind the one that gave it back */
	OK(evc_variable_add(cl, "w", 1, NULL));
	ck_assert(has("v", 3));
	OK(evc_cluster_save(cl, NULL));
	OK(stat(path, &before));
	end();
	OK(stat(path, &after));
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	OK(unlink(path));
	(void)unlink(other);
	store_begin();
}

START_TEST(a_file_of_another_coordinator_is_not_the_last_save)
{
	its_file_is_replaced(0);
	its_file_is_replaced(1);
}
END_TEST

/* ---- the last save ---- */

START_TEST(an_engine_that_says_nothing_is_waited_for)
{
	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	atomic_store(&store.answers, 0);
	evc_cluster_close(cl);
	UNTIL(hand_question() != NULL);
	ck_assert_uint_eq(hand_question()->update.op, EVC_VARIABLE_ALL);
	ck_assert_int_eq(atomic_load(&hand.left), 0);
	atomic_store(&store.answers, 1);
	UNTIL(atomic_load(&hand.left));
	ck_assert_int_eq(access(path, F_OK), 0);
	store_end();
	hand_end_coord(c);
}
END_TEST

START_TEST(an_engine_that_is_down_is_left_all_the_same)
{
	begin(INFINITY);
	OK(evc_variable_add(cl, "v", 1, NULL));
	hand.sink->down(hand.core, "for ever");
	store.fails = -EVC_UNAVAILABLE;
	evc_cluster_close(cl);
	UNTIL(atomic_load(&hand.left));
	store_end();
	hand_end_coord_with(c, EVC_UNAVAILABLE);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_runs_at_the_stop_is_in_it)
{
	evc_engine_task t;
	evc_remote *r;

	begin(INFINITY);
	hand_up(0);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	evc_cluster_close(cl);
	UNTIL(atomic_load(&hand.cancelled_upto) >= t.n);
	ck_assert_ptr_null(hand_question());
	hand_finish(0, &t, 0, NULL);
	UNTIL(atomic_load(&hand.left));
	store_end();
	hand_end_coord(c);
	evc_remote_free(r);
	store_begin();
	begin(INFINITY);
	ck_assert_uint_eq(evc_cluster_finished(cl), 1);
	end();
}
END_TEST

API_MAIN_WITH("engine_checkpoints", setup, folder_remove,
	      what_was_saved_at_the_end_comes_back_first,
	      nothing_runs_before_the_engine_has_it,
	      an_engine_that_does_not_take_it_is_down,
	      a_stop_before_it_was_taken_keeps_the_file,
	      a_damaged_file_opens_nothing, an_engine_that_never_opens,
	      every_so_often_if_something_is_new, saved_and_restored_by_a_call,
	      a_state_that_may_be_old_takes_no_place,
	      a_file_of_another_coordinator_is_not_the_last_save,
	      an_engine_that_says_nothing_is_waited_for,
	      an_engine_that_is_down_is_left_all_the_same,
	      what_runs_at_the_stop_is_in_it)
