/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount - counts the words of text files, on processes that may die.
 *
 *	wordcount [-n N] [--checkpoint FILE] [--every SECONDS] [--bar]
 *	          [--top K | --all] [--kill N] [--nap SECONDS]
 *	          [--wait SECONDS] [-v]
 *	          [ADDRESS] DIR...
 *	wordcount --worker [-n N] ADDRESS
 *
 * A word is a row of letters of ASCII, as tr(1) would cut it out, and counts in
 * small letters.  The files of the trees are cut in chunks of 64 KiB, and N
 * worker processes (one for each cpu) count them; each chunk adds what it has
 * found to the cluster's variables, one for each word, in one step and once.
 * So the sums are exact, whatever happens to the workers.
 *
 *   -n            so many workers
 *   --checkpoint  save the sums, and which chunks they are of, to FILE, every
 *                 SECONDS (5) and at the end; if FILE is there, go on from it:
 *                 the directories have to be the same
 *   --bar         a progress bar, also where standard error is no terminal
 *   --top         the K (10) most frequent words
 *   --all         all words, in their order
 *   --kill        kill -9 N of the workers on the way, to see it survive
 *   --nap         each chunk takes so much longer, to have something to see
 *   --wait        where there is no worker, and none can be started, give up
 *                 after so many seconds (60)
 *   -v            say what becomes of workers, and at the end what was done
 *
 * With an ADDRESS, redis://HOST:PORT/NAMESPACE, the workers are whoever comes
 * there: each machine that has the same files runs `wordcount --worker`.  The
 * namespace is this run's alone: what a run before has left there is removed,
 * unless a checkpoint is gone on from.
 *
 * SIGINT and SIGTERM stop it: chunks that are being counted are finished and
 * saved, and the exit status is 130.  It is 1 after an error.  A file that cannot
 * be read costs a line on standard error, the rest is counted, and the exit
 * status is 1 then, too.
 */
#include "wordcount.h"

#include <ev.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK 0.1 /* seconds: the bar */

void
say(struct wordcount *w, const char *fmt, ...)
{
	va_list ap;

	bar_clear(&w->bar);
	fputs("wordcount: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* A log hook.  Why nothing happens, for one: a worker has died, there is no server,
   or no worker; what ends it is said at the end. */
static void
warn(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	if (level == EVC_LOG_WARNING)
		say(arg, "%s", line);
}

/* ---- what happens on the loop ---- */

static void
draw(struct wordcount *w)
{
	evc_cluster_info i;
	uint64_t n_over;

	if (evc_cluster_get(w->cluster, &i) < 0)
		return;
	n_over = i.n_done + i.n_failed + i.n_cancelled;
	bar_draw(&w->bar,
		 i.n_scheduled ? (double)n_over / (double)i.n_scheduled : NAN,
		 "%llu/%llu, %llu running, %.0f/s", (unsigned long long)n_over,
		 (unsigned long long)i.n_scheduled,
		 (unsigned long long)i.n_running, i.rate);
}

/* A looper. */
static evc_status
tick(evc_coord *c, void *arg)
{
	struct wordcount *w = arg;

	(void)c;
	if (w->cluster)
		draw(w);
	return 0;
}

static void
worker_changed(evc_cluster *cluster, const evc_cluster_worker_info *i,
	       void *arg)
{
	struct wordcount *w = arg;

	(void)cluster;
	if (w->is_over || evc_should_stop(w->c))
		return; /* now they all go */
	/* One that could not be started again is not lost once more. */
	if (i->state == EVC_WORKER_UP) {
		w->is_up[i->index] = true;
	} else if (i->state == EVC_WORKER_GONE && w->is_up[i->index]) {
		w->is_up[i->index] = false;
		w->n_lost++;
	}
	if (w->o->is_verbose && i->state == EVC_WORKER_UP && i->lives > 1)
		say(w, "%s is back: %s", i->name, i->where);
}

/* ---- the variables: on a thread, for they may be on another machine ---- */

/* A job's result is what it returns; its text would stay on that thread. */
static evc_status
refused(struct wordcount *w, evc_status st)
{
	if (st < 0)
		snprintf(w->why, sizeof(w->why), "%s", evc_last_error());
	return st;
}

static evc_status
submit(struct wordcount *w, evc_status (*work)(evc_job *job),
       void (*done)(evc_job *job, evc_status result))
{
	w->job.work = work;
	w->job.done = done;
	w->job.arg = w;
	return evc_pool_submit(w->pool, evc_home(w->c), &w->job);
}

static evc_status
collect(evc_job *job)
{
	struct wordcount *w = job->arg;
	evc_status st = 0;

	if (w->result == 0)
		st = refused(w, words_collect(w));
	/* The cluster saves at its end, too, but would tell a log alone. */
	if (w->o->checkpoint && evc_cluster_save(w->cluster, NULL) < 0)
		snprintf(w->unsaved, sizeof(w->unsaved), "%s",
			 evc_last_error());
	return st;
}

static void
let_go(struct wordcount *w)
{
	if (w->unsaved[0])
		say(w, "%s", w->unsaved);
	if (w->bar.on)
		draw(w);
	evc_cluster_close(w->cluster);
	w->cluster = NULL;
}

static void
collected(evc_job *job, evc_status result)
{
	struct wordcount *w = job->arg;

	if (w->result == 0)
		w->result = result; /* EVC_CANCELLED: by the stop */
	let_go(w);
}

/* All is counted, or nothing more will be: keep what the cluster knows, and let
   go of it.  Then the join in main has nothing to wait for any more. */
static void
end(struct wordcount *w, evc_status result)
{
	evc_reason r;

	if (w->is_over)
		return;
	w->is_over = true;
	w->result = result;
	/* < 0: a call was refused; > 0: a chunk has failed. */
	if (result > 0 && evc_cluster_error_get(w->cluster, 0, &r) == 0)
		snprintf(w->why, sizeof(w->why), "%s", r.text);
	else if (result != 0 && !w->why[0])
		snprintf(w->why, sizeof(w->why), "%s", evc_last_error());
	evc_cluster_get(w->cluster, &w->info);
	if (w->is_planned && submit(w, collect, collected) == 0)
		return;
	if (result == 0)
		w->result = EVC_CANCELLED; /* the stop was faster */
	let_go(w);
}

static void
joined(evc_cluster *cluster, evc_status result, void *arg)
{
	(void)cluster;
	end(arg, result);
}

/* --kill N: this chunk kills its worker.  They are spread over the run. */
static bool
kills(const struct wordcount *w, size_t chunk)
{
	size_t parts = (size_t)w->o->n_kill + 1, n = w->files.n_chunks;

	return chunk * parts / n != (chunk + 1) * parts / n && chunk + 1 < n;
}

static evc_status
schedule(struct wordcount *w, size_t number)
{
	const evc_schedule_opts opts = {
		.flags = EVC_TRANSACTIONAL,
		/* A function that takes three workers with it would be given
		   up; but a chunk kills one worker at the most. */
		.deaths = UINT_MAX,
	};
	const struct chunk *c = &w->files.chunks[number];
	const struct file *f = &w->files.files[c->file];
	uint64_t left = f->size - c->at;
	char key[KEY_ROOM] = "";

	if (w->o->checkpoint)
		files_key(key, &w->files, c);
	return evc_schedule_pack(w->cluster, COUNT, &opts, NULL, COUNT_FORMAT,
				 f->path, c->at, left < CHUNK ? left : CHUNK,
				 key, w->o->nap, kills(w, number));
}

/* Schedule what is left, as far as there is room. */
static void
feed(struct wordcount *w)
{
	evc_status st = 0;

	while (w->next < w->files.n_chunks) {
		st = schedule(w, w->next);
		if (st == -EVC_RESOURCE_EXHAUSTED)
			return; /* writable will call again */
		if (st != 0)
			break;
		w->next++;
	}
	if (st == 0)
		st = evc_cluster_join_start(w->cluster, joined, w);
	if (st != 0)
		end(w, st);
}

static void
writable(evc_cluster *cluster, void *arg)
{
	struct wordcount *w = arg;

	(void)cluster;
	if (!w->is_over && w->next < w->files.n_chunks)
		feed(w);
}

static evc_status
plan(evc_job *job)
{
	struct wordcount *w = job->arg;
	evc_status st = 0;

	/* What could not be read is tried again. */
	if (w->o->address || w->is_old)
		st = words_forget(w->cluster, w->is_old ? UNREAD : "");
	if (w->o->checkpoint && st == 0)
		st = files_compare(w->cluster, w->o->paths, w->o->n_paths);
	if (st == -EVC_ABORTED) {
		snprintf(w->why, sizeof(w->why), "%s is of other directories",
			 w->o->checkpoint);
		return st;
	}
	/* If it cannot be saved, better now than when all is done. */
	if (w->o->checkpoint && st == 0)
		st = evc_cluster_save(w->cluster, NULL);
	if (st < 0)
		return refused(w, st);
	w->is_planned = files_plan(&w->files, w->o->checkpoint ? w->cluster :
								 NULL);
	if (w->is_planned)
		return 0;
	snprintf(w->why, sizeof(w->why), "no memory");
	return -EVC_RESOURCE_EXHAUSTED;
}

static void
planned(evc_job *job, evc_status result)
{
	if (result == 0)
		feed(job->arg);
	else
		end(job->arg, result);
}

/* ---- all of it ---- */

static evc_status
open_cluster(struct wordcount *w)
{
	const evc_cluster_config config = {
		.checkpoint = w->o->checkpoint,
		.checkpoint_every = w->o->every,
		.worker_wait = w->o->wait,
		.writable = writable,
		.worker = worker_changed,
		.arg = w,
	};
	char uri[40];

	if (w->o->checkpoint)
		w->is_old = access(w->o->checkpoint, F_OK) == 0;
	/* Without a program it is this one: see main. */
	snprintf(uri, sizeof(uri), "processes://%u", w->o->n_workers);
	return evc_cluster_open(w->c, w->o->address ? w->o->address : uri,
				&config, &w->cluster);
}

/* false: it was said why. */
static bool
start(struct wordcount *w, struct ev_loop *loop)
{
	const evc_member_opts beside = { .flags = EVC_BACKGROUND };
	const evc_pool_opts one = { .n_threads = 1 };
	const evc_config cfg = {
		.name = "wordcount",
		.log = warn,
		.arg = w,
	};

	w->began = ev_time();
	bar_init(&w->bar);
	w->bar.on |= w->o->bar;
	if (evc_new(loop, &cfg, &w->c) == 0 && open_cluster(w) == 0 &&
	    evc_pool_new(w->c, "variables", &one, &w->pool) == 0 &&
	    (!w->bar.on || evc_looper_start(w->c, "bar", TICK, tick, w,
					    &beside, NULL) == 0) &&
	    submit(w, plan, planned) == 0 &&
	    /* Last: from here on a stop may refuse what begins. */
	    evc_signals_start(w->c, NULL) == 0)
		return true;
	say(w, "%s", evc_last_error());
	return false;
}

/* What was done, by whom, and what is left. */
static void
say_what(struct wordcount *w)
{
	size_t old = w->files.n_old, all = old + w->files.n_chunks;

	say(w, "%zu of %zu chunks are counted, %zu of them before; "
	    "%u workers were lost, and %llu functions with them; %.1f s",
	    old + (size_t)(w->info.n_done - w->n_unread), all, old, w->n_lost,
	    (unsigned long long)w->info.n_lost, w->took);
}

/* The exit status of what the join in main has answered. */
static int
report(struct wordcount *w, evc_status st, const evc_verdict *v)
{
	bool is_stopped = st == 0 && v->stop.kind == EVC_BY_SIGNAL;
	size_t i, n_unread = w->files.n_unread + w->unread.n;
	int err;

	for (i = 0; i < w->unread.n; i++)
		say(w, "%s", w->unread.words[i].text);
	if (n_unread > 0)
		say(w, "%zu of the files and directories could not be read, "
		    "and are not in the sums", n_unread);
	bar_clear(&w->bar);
	if (st == 0 && w->is_over && w->result == 0) {
		err = words_print(&w->words, w->o->top);
		if (err)
			say(w, "cannot write: %s", strerror(err));
		if (w->o->is_verbose)
			say_what(w);
		return err || n_unread ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	say(w, "%s", st < 0 ? evc_last_error() : st > 0 ? v->error.text :
	    is_stopped ? v->stop.text : w->why);
	if (w->is_over && w->is_planned)
		say_what(w);
	if (w->o->checkpoint && w->is_planned)
		say(w, "to go on: the same once more");
	return is_stopped ? 130 : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	static struct wordcount w; /* who is late may use it for ever */
	struct ev_loop *loop;
	struct options o;
	evc_verdict v;
	evc_status st;
	int status;

	/* The workers are this program, too. */
	if (evc_worker_is())
		return count_worker(NULL);
	options_read(&o, argc, argv);
	if (o.is_worker)
		return count_worker(&o);
	w.o = &o;
	if (!files_find(&w.files, o.paths, o.n_paths))
		return EXIT_FAILURE;
	loop = ev_loop_new(EVFLAG_AUTO);
	if (loop == NULL) {
		fputs("wordcount: no event loop\n", stderr);
		return EXIT_FAILURE;
	}
	if (!start(&w, loop))
		return EXIT_FAILURE; /* workers end with us */
	/* Runs the loop until the cluster has ended: when all is counted, or at
	   a stop. */
	st = evc_join(w.c, NULL, &v);
	w.took = ev_time() - w.began;
	status = report(&w, st, &v);
	if (st < 0 || v.n_stragglers) {
		evc_log_flush(w.c, 1);
		_exit(EXIT_FAILURE); /* somebody still runs, and uses this */
	}
	words_free(&w.words);
	words_free(&w.unread);
	files_free(&w.files);
	st = evc_finish(w.c, st); /* frees the pool, too */
	ev_loop_destroy(loop);
	return status ? status : st;
}
