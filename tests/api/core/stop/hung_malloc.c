/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread hangs with the lock of malloc: no other thread has memory from then
 * on, nor can one be made, and at_end ends the process all the same.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

void *
malloc(size_t n)
{
	void *p;

	pthread_mutex_lock(&heap);
	p = __libc_malloc(n);
	pthread_mutex_unlock(&heap);
	return p;
}

void *
calloc(size_t n, size_t size)
{
	void *p;

	pthread_mutex_lock(&heap);
	p = __libc_calloc(n, size);
	pthread_mutex_unlock(&heap);
	return p;
}

void *
realloc(void *old, size_t n)
{
	void *p;

	pthread_mutex_lock(&heap);
	p = __libc_realloc(old, n);
	pthread_mutex_unlock(&heap);
	return p;
}

void
free(void *p)
{
	pthread_mutex_lock(&heap);
	__libc_free(p);
	pthread_mutex_unlock(&heap);
}

static void
write_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	(void)arg;
	dprintf(2, "L%d: %s\n", level, line);
}

/* In a child: a coordinator with a short budget. */
static evc_coord *
front(struct ev_loop *loop)
{
	evc_config cfg = { .name = "front", .log = write_line };
	evc_escalation_opts o = { .budget = 0.3, .at_end = EVC_AT_END_EXIT };
	evc_coord *c;

	if (evc_new(loop, &cfg, &c) < 0 || evc_escalation_set(c, &o) < 0)
		_exit(98);
	return c;
}

static void
hang(evc_coord *c)
{
	pthread_mutex_lock(&heap);
	evc_request_stop(c, 0, NULL);
	for (;;)
		pause();
}

static evc_status
hang_on_a_thread(evc_coord *c, void *arg)
{
	(void)arg;
	hang(c);
	return 0;
}

static evc_coord *stopped;

static void
hang_on_the_loop(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
	hang(stopped);
}

static void
thread(void)
{
	evc_coord *c = front(NULL);

	if (evc_thread_start(c, "late", hang_on_a_thread, NULL, NULL, NULL) < 0)
		_exit(97);
	(void)!evc_join(c, NULL, NULL);
}

static void
loop(void)
{
	struct ev_loop *l = ev_loop_new(0);
	ev_timer t;

	stopped = front(l);
	ev_timer_init(&t, hang_on_the_loop, 0., 0.);
	ev_timer_start(l, &t);
	(void)!evc_run(stopped, NULL, NULL);
}

static void
check_end(void (*fn)(void))
{
	char said[4096];
	size_t len = 0;
	ssize_t n;
	int fd[2], status;
	pid_t pid;

	OK(pipe(fd));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		alarm((unsigned)T_LIMIT);
		fn();
		_exit(7);
	}
	close(fd[1]);
	while ((n = read(fd[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	close(fd[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 124,
		      "status %#x: %s", status, said);
	HAS(said, "stop of front is not over in its time: leaving with status "
		  "124");
}

START_TEST(a_thread_with_the_lock_of_malloc)
{
	check_end(thread);
}
END_TEST

START_TEST(a_loop_with_the_lock_of_malloc)
{
	check_end(loop);
}
END_TEST

API_MAIN("hung_malloc", a_thread_with_the_lock_of_malloc,
	 a_loop_with_the_lock_of_malloc)
