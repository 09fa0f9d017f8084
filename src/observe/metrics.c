/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as counters for Prometheus, exposition format 0.0.4.  Every sample
 * has the label coordinator, the root's name; below the root also the label
 * scope, the path from the root: "db/pool".  Scopes of the same name and parent
 * are numbered - "db", "db#2" - because no two samples may have the same
 * labels.  All samples of a metric stand together, so each metric goes through
 * the tree once.  The own parts of scopes are whole families, and so each of
 * these families goes through the tree, too.
 * Called by: dump.c.
 * Locks: none; facts.c has copied the facts.
 */
#include "observe/facts.h"
#include "base/json_write.h"
#include "base/prometheus.h"

#define N_KINDS  (EVC_SCOPE + 1)
#define N_STATES (EVC_REAPED + 1)

/* ---- the format ---- */

/* {coordinator="c",scope="s" - the brace stays open. */
static void
add_labels(struct text *t, const struct evc__facts *f)
{
	char path[2048];
	struct text p = evc__text_in(path, sizeof path);

	evc__facts_path(&p, f);
	evc__text_add(t, "{coordinator=\"");
	evc__prometheus_escaped(t, evc__facts_root_name(f));
	if (path[0] != '\0') {
		evc__text_add(t, "\",scope=\"");
		evc__prometheus_escaped(t, path);
	}
	evc__text_add(t, "\"");
}

static void
begin_sample(struct text *t, const char *name, const struct evc__facts *f)
{
	evc__text_fmt(t, "evcoord_%s", name);
	add_labels(t, f);
}

static void
add_label(struct text *t, const char *name, const char *value)
{
	evc__text_fmt(t, ",%s=\"%s\"", name, value);
}

/* ,loop="a#2" */
static void
add_twin_label(struct text *t, const char *label, const struct evc__twin *twin)
{
	evc__text_fmt(t, ",%s=\"", label);
	evc__prometheus_escaped(t, twin->name);
	evc__twin_add(t, twin);
	evc__text_add(t, "\"");
}

/* The next facts of the tree, from the first down; NULL: the end. */
static const struct evc__facts *
next_facts(const struct evc__facts *f)
{
	if (f->below != NULL)
		return f->below;
	while (f != NULL && f->next == NULL)
		f = f->up;
	return f != NULL ? f->next : NULL;
}

/* ---- the metrics ---- */

struct crowd {
	uint64_t n[N_KINDS][N_STATES];
};

static void
count_members(const struct evc__facts *f, struct crowd *k)
{
	unsigned i;

	memset(k, 0, sizeof *k);
	for (i = 0; i < f->n_members; i++) {
		const evc_member_info *m = &f->members[i].info;

		if (m->kind < N_KINDS && m->state < N_STATES)
			k->n[m->kind][m->state] +=
				m->kind == EVC_TASK ? m->ticks : 1;
	}
}

static void
add_members(struct text *t, const struct evc__facts *first)
{
	const struct evc__facts *f;
	unsigned kind, state;
	struct crowd k;

	evc__prometheus_head(
		t, NULL, "members", "gauge",
		"Members by kind and state; of scopes, those right below.");
	for (f = first; f != NULL; f = next_facts(f)) {
		if (f->lost_members)
			continue;
		count_members(f, &k);
		for (kind = 1; kind < N_KINDS; kind++)
			for (state = EVC_LIVE; state < N_STATES; state++) {
				if (state != EVC_LIVE && k.n[kind][state] == 0)
					continue;
				begin_sample(t, "members", f);
				add_label(t, "kind", evc__member_kind(kind));
				add_label(t, "state", evc__state_name(state));
				evc__prometheus_whole(t, k.n[kind][state]);
			}
	}
}

static uint64_t
stopping(const struct evc__facts *f)
{
	return (f->word & WORD_FLAG) != 0;
}

static uint64_t
draining(const struct evc__facts *f)
{
	return (f->word & WORD_DRAIN) != 0 && !stopping(f);
}

static uint64_t
errors(const struct evc__facts *f)
{
	return f->n_errors;
}

static uint64_t
stops(const struct evc__facts *f)
{
	return f->stats.stops;
}

static uint64_t
kicks(const struct evc__facts *f)
{
	return f->stats.kicks;
}

static uint64_t
unblocks(const struct evc__facts *f)
{
	return f->stats.unblocks;
}

static uint64_t
stragglers(const struct evc__facts *f)
{
	return f->stats.stragglers;
}

/* Missed runs of ended loopers, and of live loopers. */
static uint64_t
missed(const struct evc__facts *f)
{
	uint64_t n = f->stats.missed;
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		if (f->members[i].info.kind == EVC_LOOPER)
			n += f->members[i].info.missed;
	return n;
}

static const struct metric {
	const char *name, *type, *help;
	uint64_t (*of)(const struct evc__facts *f);
} metrics[] = {
	{ "stopping", "gauge", "1 while a stop stands.", stopping },
	{ "draining", "gauge", "1 while a drain lasts.", draining },
	{ "errors", "gauge", "Errors reported in the present round.", errors },
	{ "stops_total", "counter", "Stops that have ended.", stops },
	{ "kicks_total", "counter", "Signals sent to wake threads at stops.",
	  kicks },
	{ "unblocks_total", "counter",
	  "Calls of cancel hooks and unblock functions at stops.", unblocks },
	{ "stragglers_total", "counter",
	  "Members that were alive when a join gave up.", stragglers },
	{ "looper_missed_runs_total", "counter",
	  "Boundaries of loopers that passed without a run.", missed },
};

static void
add_metric(struct text *t, const struct evc__facts *first,
	   const struct metric *m)
{
	const struct evc__facts *f;

	evc__prometheus_head(t, NULL, m->name, m->type, m->help);
	for (f = first; f != NULL; f = next_facts(f)) {
		begin_sample(t, m->name, f);
		evc__prometheus_whole(t, m->of(f));
	}
}

/* ---- loops ---- */

static void
loop_turns(struct text *t, const struct evc__facts_loop *l)
{
	evc__prometheus_whole(t, l->n_turns);
}

static void
loop_longest(struct text *t, const struct evc__facts_loop *l)
{
	evc__text_add(t, "} ");
	evc__text_seconds(t, l->longest);
	evc__text_add(t, "\n");
}

static void
loop_posts(struct text *t, const struct evc__facts_loop *l)
{
	evc__prometheus_whole(t, l->n_posts);
}

static const struct loop_metric {
	const char *name, *type, *help;
	bool once; /* a fact of the loop, not of the loop and a scope */
	void (*add)(struct text *t, const struct evc__facts_loop *l);
} loop_metrics[] = {
	{ "loop_turns_total", "counter", "Turns of the loop.", true,
	  loop_turns },
	{ "loop_longest_turn_seconds", "gauge",
	  "The longest turn of the loop so far.", true, loop_longest },
	{ "loop_posts", "gauge", "Posts to the loop that have not returned.",
	  false, loop_posts },
};

static void
add_loop_metric(struct text *t, const struct evc__facts *first,
		const struct loop_metric *m)
{
	const struct evc__facts *f;
	bool head = false;
	unsigned i;

	for (f = first; f != NULL; f = next_facts(f))
		for (i = 0; i < f->n_loops; i++) {
			const struct evc__facts_loop *l = &f->loops[i];

			if (l->state == LOOP_DESTROYED ||
			    (m->once && !l->owner))
				continue;
			if (!head)
				evc__prometheus_head(t, NULL, m->name, m->type,
						     m->help);
			head = true;
			begin_sample(t, m->name, f);
			add_twin_label(t, "loop", &l->twin);
			m->add(t, l);
		}
}

/* ---- how long stops took ---- */

/* A bound, without trailing zeros. */
static void
add_bound(struct text *t, double bound)
{
	char digits[40];
	struct text d = evc__text_in(digits, sizeof digits);
	size_t n;

	evc__text_seconds(&d, bound);
	for (n = d.len; n > 2 && digits[n - 1] == '0' && digits[n - 2] != '.';)
		digits[--n] = '\0';
	evc__text_add(t, digits);
}

static void
add_durations(struct text *t, const struct evc__facts *first)
{
	const struct evc__facts *f;
	uint64_t n;
	unsigned i;

	evc__prometheus_head(
		t, NULL, "stop_duration_seconds", "histogram",
		"How long stops took, from the request to the join's answer.");
	for (f = first; f != NULL; f = next_facts(f)) {
		for (i = 0, n = 0; i <= TOOK_BUCKETS; i++) {
			n += f->stats.took[i];
			begin_sample(t, "stop_duration_seconds_bucket", f);
			evc__text_add(t, ",le=\"");
			if (i < TOOK_BUCKETS)
				add_bound(t, evc__took_bounds[i]);
			else
				evc__text_add(t, "+Inf");
			evc__text_add(t, "\"");
			evc__prometheus_whole(t, n);
		}
		begin_sample(t, "stop_duration_seconds_sum", f);
		evc__text_add(t, "} ");
		evc__text_seconds(t, f->stats.took_sum);
		evc__text_add(t, "\n");
		begin_sample(t, "stop_duration_seconds_count", f);
		evc__prometheus_whole(t, n);
	}
}

/* ---- the own parts of scopes ---- */

#define HEAD "# HELP "

static bool
begins_family(const char *line)
{
	return strncmp(line, HEAD, sizeof HEAD - 1) == 0;
}

/* Do two lines begin families of the same name? */
static bool
is_same_family(const char *a, const char *b)
{
	size_t n = sizeof HEAD - 1 + strcspn(a + sizeof HEAD - 1, " ");

	return strncmp(a, b, n) == 0 && (b[n] == ' ' || b[n] == '\0');
}

/* Does a family of this name stand before this head? */
static bool
is_written(const struct evc__facts *first, const char *head)
{
	const struct evc__facts_part *p;
	const struct evc__facts *f;
	const char *line;

	for (f = first; f != NULL; f = next_facts(f))
		FACTS_EACH_LINE(line, p, f)
			if (line == head)
				return false;
			else if (begins_family(line) &&
				 is_same_family(head, line))
				return true;
	return false;
}

/* NAME{LABELS} VALUE, with the labels of f and p before the others. */
static void
add_sample(struct text *t, const struct evc__facts *f,
	   const struct evc__facts_part *p, const char *line)
{
	size_t n = strcspn(line, "{ ");
	const char *rest = line + n + (line[n] == '{');

	evc__text_fmt(t, "%.*s", (int)n, line);
	add_labels(t, f);
	if (p->kind[0] != '\0')
		add_twin_label(t, p->kind, &p->twin);
	evc__text_add(t, line[n] != '{' ? "}" : *rest != '}' ? "," : "");
	evc__text_fmt(t, "%s\n", rest);
}

/* The family of f; only the head itself is written, not heads like it. */
static void
add_family(struct text *t, const struct evc__facts *f, const char *head)
{
	const struct evc__facts_part *p;
	bool inside = false, whole = false;
	const char *line;

	FACTS_EACH_LINE(line, p, f) {
		/* A part begins outside of all families. */
		if (line == p->text)
			inside = false;
		if (begins_family(line)) {
			inside = is_same_family(head, line);
			whole = line == head;
		}
		if (!inside || line[0] == '\0')
			continue;
		if (line[0] != '#')
			add_sample(t, f, p, line);
		else if (whole)
			evc__text_fmt(t, "%s\n", line);
	}
}

static void
add_described(struct text *t, const struct evc__facts *first)
{
	const struct evc__facts *f, *g;
	const struct evc__facts_part *p;
	const char *line;

	for (f = first; f != NULL; f = next_facts(f))
		FACTS_EACH_LINE(line, p, f) {
			if (!begins_family(line) || is_written(first, line))
				continue;
			for (g = f; g != NULL; g = next_facts(g))
				add_family(t, g, line);
		}
}

static void
add_build(struct text *t)
{
	evc__prometheus_head(t, NULL, "build_info", "gauge",
			     "1, with the version of the library.");
	evc__text_fmt(t, "evcoord_build_info{version=\"%s\"} 1\n",
		      evc_version());
}

/* A comment, which readers skip and people see. */
static void
add_lost(struct text *t, const struct evc__facts *first)
{
	const struct evc__facts *f;

	for (f = first; f != NULL; f = next_facts(f))
		if (f->lost_members || f->lost_described ||
		    f->lost_scopes + f->lost_loops > 0)
			evc__text_fmt(t,
				      "# no memory for all of this: "
				      "members %s, %u scopes missing, "
				      "%u loops missing%s\n",
				      f->lost_members ? "missing" : "counted",
				      f->lost_scopes, f->lost_loops,
				      f->lost_described ?
				      ", and the own part of a scope" : "");
}

void
evc__metrics_write(struct text *t, const struct evc__facts *f)
{
	unsigned i;

	add_members(t, f);
	for (i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
		add_metric(t, f, &metrics[i]);
	add_durations(t, f);
	for (i = 0; i < sizeof loop_metrics / sizeof loop_metrics[0]; i++)
		add_loop_metric(t, f, &loop_metrics[i]);
	add_build(t);
	add_described(t, f);
	add_lost(t, f);
}
