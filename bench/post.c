/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions posted to a loop: how many a second from one thread and from four,
 * and how long one takes to another loop and back.  Beside them what a program
 * writes by hand: a list with a mutex, and an ev_async when it was empty.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define POSTS 100000u /* MOST divides it */
#define MOST 4
#define ROUNDS 11
#define STACK (64 * 1024)

/* ---- what is written by hand ---- */

struct note {
	struct note *next;
	void (*fn)(void *arg);
	void *arg;
};

struct box {
	struct ev_loop *loop;
	ev_async bell;
	pthread_mutex_t lock;
	struct note *first, **last;
};

static void
box_cb(struct ev_loop *loop, ev_async *w, int revents)
{
	struct box *b = w->data;
	struct note *n, *next;

	(void)loop;
	(void)revents;
	pthread_mutex_lock(&b->lock);
	n = b->first;
	b->first = NULL;
	b->last = &b->first;
	pthread_mutex_unlock(&b->lock);
	for (; n; n = next) {
		next = n->next;
		n->fn(n->arg);
		free(n);
	}
}

static void
box_post(struct box *b, void (*fn)(void *arg), void *arg)
{
	struct note *n = malloc(sizeof(*n));
	bool empty;

	if (!n)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "malloc");
	*n = (struct note){ NULL, fn, arg };
	pthread_mutex_lock(&b->lock);
	empty = !b->first;
	*b->last = n;
	b->last = &n->next;
	pthread_mutex_unlock(&b->lock);
	if (empty)
		ev_async_send(b->loop, &b->bell);
}

/* ---- a loop that can be posted to, ours or that ---- */

struct place {
	struct bench_loop l;
	evc_coord *c;
	evc_reactor *r;
	evc_loop_ref *handle;
	struct box box;
};

static void
open_ours(struct bench_loop *l, void *arg)
{
	struct place *p = arg;

	bench_must(evc_reactor_attach(p->c, "bench", l->loop, &p->r),
		   "evc_reactor_attach");
	p->handle = evc_loop_of(p->r);
}

static void
close_ours(struct bench_loop *l, void *arg)
{
	struct place *p = arg;

	(void)l;
	evc_loop_release(p->handle);
	bench_must(evc_reactor_detach(p->r), "evc_reactor_detach");
}

static void
open_box(struct bench_loop *l, void *arg)
{
	struct box *b = &((struct place *)arg)->box;

	bench_must_sys(pthread_mutex_init(&b->lock, NULL), "mutex");
	b->loop = l->loop;
	b->last = &b->first;
	ev_async_init(&b->bell, box_cb);
	b->bell.data = b;
	ev_async_start(l->loop, &b->bell);
}

static void
close_box(struct bench_loop *l, void *arg)
{
	struct box *b = &((struct place *)arg)->box;

	ev_async_stop(l->loop, &b->bell);
	pthread_mutex_destroy(&b->lock);
}

static void
open_place(struct place *p, evc_coord *c, int cpu)
{
	memset(p, 0, sizeof(*p));
	p->c = c;
	bench_loop_start(&p->l, cpu);
	bench_loop_do(&p->l, c ? open_ours : open_box, p);
}

static void
close_place(struct place *p)
{
	bench_loop_do(&p->l, p->c ? close_ours : close_box, p);
	bench_loop_stop(&p->l);
}

/* ---- a second ---- */

enum way { POST, MAIL, HAND };

struct crowd_of_posts {
	struct place *to;
	enum way way;
	unsigned n; /* threads */
	int cpu, or_cpu;
	evc_message *mails;
	unsigned seen; /* by the loop alone */
	uint64_t at;   /* loop -> main, by done: the last one was called */
	uint32_t here, go, done;
	struct poster {
		struct crowd_of_posts *k;
		pthread_t thread;
		unsigned first;
	} poster[MOST];
};

static void
seen(void *arg)
{
	struct crowd_of_posts *k = arg;

	if (++k->seen < POSTS)
		return;
	k->at = bench_now();
	__atomic_store_n(&k->done, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->done, 1);
}

static void
seen_post(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	bench_must(-why, "a post");
	seen(arg);
}

/* A mail carries nothing, so it finds its crowd here. */
static struct crowd_of_posts *mailed;

static void
seen_mail(evc_message *m, evc_status why)
{
	(void)m;
	bench_must(-why, "a mail");
	seen(mailed);
}

static void *
post_all(void *arg)
{
	struct poster *p = arg;
	struct crowd_of_posts *k = p->k;
	unsigned i, n = POSTS / k->n;

	bench_pin(k->cpu, k->or_cpu);
	if (__atomic_add_fetch(&k->here, 1, __ATOMIC_ACQ_REL) == k->n)
		bench_futex_wake(&k->here, 1);
	bench_wait_until(&k->go, 1);
	for (i = 0; i < n; i++) {
		if (k->way == HAND)
			box_post(&k->to->box, seen, k);
		else if (k->way == MAIL)
			bench_must(evc_post_message(k->to->handle,
						 &k->mails[p->first + i]),
				   "evc_post_message");
		else
			bench_must(evc_post(k->to->handle, seen_post, k),
				   "evc_post");
	}
	return NULL;
}

/* Million posts a second, from the first one's begin to the last one's call. */
static double
sample_rate(void *arg)
{
	struct crowd_of_posts *k = arg;
	uint64_t t0;
	unsigned i;

	k->seen = k->here = k->go = k->done = 0;
	mailed = k;
	for (i = 0; k->way == MAIL && i < POSTS; i++)
		k->mails[i].fn = seen_mail;
	for (i = 0; i < k->n; i++) {
		k->poster[i].k = k;
		k->poster[i].first = i * (POSTS / k->n);
		k->poster[i].thread = bench_thread(post_all, &k->poster[i],
						   STACK);
	}
	bench_wait_until(&k->here, k->n);
	bench_until_asleep(k->to->l.tid);
	t0 = bench_now();
	__atomic_store_n(&k->go, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->go, INT_MAX);
	bench_wait_until(&k->done, 1);
	for (i = 0; i < k->n; i++)
		bench_must_sys(pthread_join(k->poster[i].thread, NULL),
			       "pthread_join");
	return (double)POSTS / (double)(k->at - t0) * 1e3;
}

static void
rates(evc_coord *c, unsigned n, int cpu, int or_cpu, int loop_cpu)
{
	struct place ours, hand;
	struct crowd_of_posts post = {
		.to = &ours, .way = POST, .n = n,
		.cpu = cpu, .or_cpu = or_cpu,
	}, mail = post, by_hand = post;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_rate, &post, 0 },
		{ "evcoord-mail", sample_rate, &mail, 0 },
		{ "raw/mutex-list-ev_async", sample_rate, &by_hand, 0 },
	};
	char metric[64];

	mail.way = MAIL;
	mail.mails = bench_array(POSTS, sizeof(*mail.mails));
	by_hand.way = HAND;
	by_hand.to = &hand;
	open_place(&ours, c, loop_cpu);
	open_place(&hand, NULL, loop_cpu);
	snprintf(metric, sizeof(metric), "post-%u", n);
	bench_compare_rates(metric, "M/s", sides, 3, ROUNDS);
	close_place(&hand);
	close_place(&ours);
	free(mail.mails);
}

/* ---- there and back ---- */

struct trip {
	struct place a, b;
	uint64_t t0, t1;
	uint32_t done; /* a -> main */
};

static void
back(void *arg)
{
	struct trip *t = arg;

	t->t1 = bench_now();
	__atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&t->done, 1);
}

static void
back_post(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	bench_must(-why, "a post");
	back(arg);
}

static void
there(void *arg)
{
	struct trip *t = arg;

	box_post(&t->a.box, back, t);
}

static void
there_post(evc_reactor *r, evc_status why, void *arg)
{
	struct trip *t = arg;

	(void)r;
	bench_must(-why, "a post");
	bench_must(evc_post(t->a.handle, back_post, t), "evc_post");
}

static void
set_out(struct bench_loop *l, void *arg)
{
	struct trip *t = arg;

	(void)l;
	t->t0 = bench_now();
	if (t->b.c)
		bench_must(evc_post(t->b.handle, there_post, t), "evc_post");
	else
		box_post(&t->b.box, there, t);
}

static double
sample_trip(void *arg)
{
	struct trip *t = arg;

	bench_until_asleep(t->b.l.tid);
	bench_until_asleep(t->a.l.tid);
	t->done = 0;
	bench_loop_do(&t->a.l, set_out, t);
	bench_wait_until(&t->done, 1);
	return (double)(t->t1 - t->t0) / 1e3;
}

static void
trips(evc_coord *c, int cpu, int other, const char *where)
{
	static struct trip ours, hand;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_trip, &ours, 0 },
		{ "raw/mutex-list-ev_async", sample_trip, &hand, 0 },
	};
	char metric[64];

	open_place(&ours.a, c, cpu);
	open_place(&ours.b, c, other);
	open_place(&hand.a, NULL, cpu);
	open_place(&hand.b, NULL, other);
	snprintf(metric, sizeof(metric), "post-trip-%s", where);
	bench_compare(metric, "us", sides, 2, 21, 100, NULL);
	close_place(&hand.b);
	close_place(&hand.a);
	close_place(&ours.b);
	close_place(&ours.a);
}

void
bench_post(void)
{
	int cpu[2], n = bench_cpus(cpu);
	evc_coord *c;

	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	bench_pin(cpu[0], cpu[0]);
	trips(c, cpu[0], cpu[0], "one-cpu");
	if (n < 2) {
		bench_skip("post-two-cpus", "one cpu only");
	} else {
		trips(c, cpu[0], cpu[1], "two-cpus");
		bench_pin(cpu[0], cpu[1]);
		rates(c, 1, cpu[0], cpu[0], cpu[1]);
		rates(c, MOST, cpu[0], cpu[1], cpu[1]);
	}
	bench_must(evc_free(c), "evc_free");
}
