/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What evc-shake writes: the report with the worst moments, a line of JSON for
 * each run, and on a terminal a bar.
 * Called by: evc-shake.c.
 * Locks: none; one thread.
 */
#include "shake_tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

double
badness(const struct result *r)
{
	static const enum fault order[] = {
		HANGS, CRASHED, CUT, BAD_STATUS, LEFT_PROCESS, ZOMBIE,
		LEFT_FILE
	};
	const size_t n = sizeof order / sizeof *order;

	for (size_t i = 0; i < n; i++)
		if (r->faults & order[i])
			return 1e6 * (double)(n - i) + r->took;
	return r->took;
}

static int
by_badness(const void *a, const void *b)
{
	double x = badness(*(const struct result *const *)a);
	double y = badness(*(const struct result *const *)b);

	return (x < y) - (x > y);
}

static int
by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Text from outside stays on its line. */
static void
print_text(const char *text)
{
	for (; *text != '\0'; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' :
			*text);
}

static void
print_line(const char *before, const char *text)
{
	if (text[0] == '\0')
		return;
	fputs(before, stdout);
	print_text(text);
	putchar('\n');
}

/* Each fault on a line of its own. */
static void
print_faults(const char *why)
{
	for (; *why != '\0'; why++)
		if (*why == '\n')
			fputs("\n\t", stdout);
		else
			putchar((unsigned char)*why < 0x20 ? '?' : *why);
}

static void
print_moment(const struct result *r)
{
	const struct moment *m = &r->moment;

	printf("%s  %s: ", r->faults != 0 ? "FAILED" : "slow  ",
	       moment_text(m));
	if (r->faults != 0)
		print_faults(r->why);
	else
		printf("ended after %.1f ms", r->took * 1000);
	if (!r->reached)
		printf("\n\tthe moment did not come; %s\n", r->sent ?
		       "the signal came later" : "the program ended before");
	else if (m->kind == BEFORE_CALL) {
		printf("\n\tbefore %s #%lu of thread %u (", call_name(m->nr),
		       m->n, m->task);
		print_text(r->name);
		printf("), %.1f ms after the start\n", r->at * 1000);
	} else {
		printf("\n\t%.1f ms after the start\n", r->at * 1000);
	}
	print_line("\tat ", r->place);
	print_line("\tcalled by ", r->stack);
	if (r->faults != 0)
		print_line("\tlast words: ", r->said);
	if (r->times > 0)
		printf("\trepeated %u times: the same moment %u, failed %u\n",
		       r->times, r->same, r->bad);
}

void
print_repeats(const struct result *r)
{
	print_moment(r);
}

/* How long the stops took: half of them, and the longest. */
static void
print_times(const struct summary *s)
{
	double *took = room_for(s->n + 1, sizeof *took);
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->result[i].sent)
			took[n++] = s->result[i].took * 1000;
	qsort(took, n, sizeof *took, by_number);
	if (n > 0)
		printf("from signal to end: median %.1f ms, longest %.1f ms\n",
		       took[n / 2], took[n - 1]);
	free(took);
}

void
print_summary(const struct options *o, struct summary *s)
{
	const struct result **by = room_for(s->n + 1, sizeof *by);
	size_t failed = 0, missed = 0, by_default = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct result *r = &s->result[i];

		by[i] = r;
		failed += r->faults != 0;
		missed += !r->reached;
		by_default += died_by_default(o, r);
	}
	printf("%zu moments, seed %llu: %zu failed, %zu good; %zu did not "
	       "come\n", s->n, (unsigned long long)o->seed, failed,
	       s->n - failed, missed);
	if (by_default > 0)
		printf("%zu ended by the signal's default action, before a "
		       "handler was there\n", by_default);
	print_times(s);
	qsort(by, s->n, sizeof *by, by_badness);
	for (size_t i = 0; i < s->n && i < o->worst; i++)
		if (by[i]->faults != 0 || by[i]->took > 0)
			print_moment(by[i]);
	free(by);
}

static void
json_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, ",\"%s\":\"", key);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		/* Bytes of no known encoding become question marks. */
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c == '\n')
			fputs("; ", f);
		else
			fputc(c < 0x20 || c >= 0x7f ? '?' : c, f);
	}
	fputc('"', f);
}

void
print_json(FILE *f, const struct options *o, const struct result *r)
{
	static const char *const actions[] = {
		[ACT_NONE] = "none",
		[ACT_DEFAULT] = "default",
		[ACT_HANDLED] = "handled",
		[ACT_BLOCKED] = "blocked",
		[ACT_IGNORED] = "ignored",
	};

	static const struct {
		enum fault fault;
		const char *name;
	} faults[] = {
		{ HANGS, "hangs" },
		{ CRASHED, "crashed" },
		{ BAD_STATUS, "status" },
		{ CUT, "cut" },
		{ LEFT_PROCESS, "left-process" },
		{ ZOMBIE, "zombie" },
		{ LEFT_FILE, "left-file" },
	};
	const char *comma = "";

	fprintf(f, "{\"moment\":\"%s\",\"seed\":%llu,\"failed\":%s,"
		"\"sent\":%s,\"reached\":%s,\"at\":%.6f,\"took\":%.6f,"
		"\"action\":\"%s\",\"faults\":[",
		r->moment.kind == SURVEY ? "survey" : moment_text(&r->moment),
		(unsigned long long)o->seed, r->faults != 0 ? "true" : "false",
		r->sent ? "true" : "false", r->reached ? "true" : "false",
		r->at, r->took, actions[r->action]);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (r->faults & faults[i].fault) {
			fprintf(f, "%s\"%s\"", comma, faults[i].name);
			comma = ",";
		}
	fputc(']', f);
	if (WIFSIGNALED(r->status))
		fprintf(f, ",\"signal\":%d", WTERMSIG(r->status));
	else
		fprintf(f, ",\"status\":%d", WEXITSTATUS(r->status));
	json_text(f, "thread", r->name);
	json_text(f, "place", r->place);
	json_text(f, "stack", r->stack);
	json_text(f, "why", r->why);
	json_text(f, "said", r->said);
	fputs("}\n", f);
	fflush(f);
}

void
print_bar(size_t done, size_t of, size_t failed)
{
	static int terminal = -1;
	char bar[41];
	size_t n = of > 0 ? done * 40 / of : 0;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal)
		return;
	memset(bar, '.', 40);
	memset(bar, '#', n);
	bar[40] = '\0';
	fprintf(stderr, "\r%s %zu/%zu, %zu failed%s", bar, done, of, failed,
		done == of ? "\r\033[K" : "");
}
