/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads /proc.  A thread of this process: its state, signals, system call and
 * stack pointer.  This program, this machine, and the processes.
 * Called by: the reports of observe; stack.c, before a signal is sent; symbol.c;
 * the engines "processes" and "redis", and the node; the paths of a cluster.
 * Locks: none.
 */
#include "base/proc.h"

#include <limits.h>
#include <stddef.h>
#include <unistd.h>

#include "base/sync.h"
#include "base/text.h"

/* A system call in which threads block or spend time. */
struct syscall_name {
	long number;
	const char *name;
};

/* Calls that some machines do not have stand in #ifdef. */
#define CALL(name) { __NR_##name, #name }
static const struct syscall_name calls[] = {
	CALL(read),
	CALL(readv),
	CALL(pread64),
	CALL(preadv),
	CALL(write),
	CALL(writev),
	CALL(pwrite64),
	CALL(pwritev),
	CALL(openat),
	CALL(close),
	CALL(ioctl),
	CALL(fsync),
	CALL(fdatasync),
	CALL(ftruncate),
	CALL(fallocate),
	CALL(flock),
	CALL(fcntl),
	CALL(getdents64),
	CALL(sendfile),
	CALL(splice),
	CALL(ppoll),
	CALL(pselect6),
	CALL(epoll_pwait),
	CALL(clock_nanosleep),
	CALL(sched_yield),
	CALL(connect),
	CALL(accept4),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(recvmmsg),
	CALL(sendto),
	CALL(sendmsg),
	CALL(sendmmsg),
	CALL(waitid),
	CALL(clone),
	CALL(execve),
	CALL(rt_sigtimedwait),
	CALL(rt_sigsuspend),
	CALL(mq_timedreceive),
	CALL(mq_timedsend),
	CALL(io_getevents),
	CALL(munmap),
	CALL(madvise),
	CALL(brk),
	CALL(restart_syscall),
#ifdef __NR_futex
	CALL(futex),
#endif
#ifdef __NR_nanosleep
	CALL(nanosleep),
#endif
#ifdef __NR_accept
	CALL(accept),
#endif
#ifdef __NR_wait4
	CALL(wait4),
#endif
#ifdef __NR_mmap
	CALL(mmap),
#endif
#ifdef __NR_mmap2
	{ __NR_mmap2, "mmap" },
#endif
#ifdef __NR_open
	CALL(open),
#endif
#ifdef __NR_poll
	CALL(poll),
#endif
#ifdef __NR_select
	CALL(select),
#endif
#ifdef __NR__newselect
	{ __NR__newselect, "select" },
#endif
#ifdef __NR_epoll_wait
	CALL(epoll_wait),
#endif
#ifdef __NR_epoll_pwait2
	CALL(epoll_pwait2),
#endif
#ifdef __NR_pause
	CALL(pause),
#endif
#ifdef __NR_vfork
	CALL(vfork),
#endif
#ifdef __NR_fork
	CALL(fork),
#endif
#ifdef __NR_clone3
	CALL(clone3),
#endif
#ifdef __NR_msgrcv
	CALL(msgrcv),
	CALL(msgsnd),
#endif
#ifdef __NR_semtimedop
	CALL(semtimedop),
#endif
#ifdef __NR_semop
	CALL(semop),
#endif
#ifdef __NR_io_uring_enter
	CALL(io_uring_enter),
#endif
#ifdef __NR_futex_waitv
	CALL(futex_waitv),
#endif
#ifdef __NR_futex_time64
	{ __NR_futex_time64, "futex" },
	{ __NR_ppoll_time64, "ppoll" },
	{ __NR_pselect6_time64, "pselect6" },
	{ __NR_clock_nanosleep_time64, "clock_nanosleep" },
	{ __NR_recvmmsg_time64, "recvmmsg" },
	{ __NR_rt_sigtimedwait_time64, "rt_sigtimedwait" },
#endif
#ifdef __NR_socketcall
	CALL(socketcall),
#endif
#ifdef __NR_ipc
	CALL(ipc),
#endif
#ifdef __NR_fcntl64
	{ __NR_fcntl64, "fcntl" },
#endif
};

size_t
evc__proc_file(const char *path, char *buf, size_t room)
{
	int fd = sync_open_read(path);
	size_t len = 0;
	ssize_t n = -1;

	while (fd >= 0 && len < room - 1) {
		n = sync_fd_read(fd, buf + len, room - 1 - len);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		sync_fd_close(fd);
	len = n >= 0 ? len : 0;
	buf[len] = '\0';
	return len;
}

/* ---- a thread ---- */

/* Read a file of the thread into buf, with a 0 byte at the end.  false: it
   cannot be read. */
static bool
file_in(char *buf, size_t room, int tid, const char *name)
{
	char path[64];
	struct text t = evc__text_in(path, sizeof path);

	evc__text_fmt(&t, "/proc/self/task/%d/%s", tid, name);
	return evc__proc_file(path, buf, room) > 0;
}

/* The text after "\nkey:\t", or NULL. */
static const char *
find_field(const char *status, const char *key)
{
	size_t n = strlen(key);

	while ((status = strchr(status, '\n')) != NULL) {
		status++;
		if (strncmp(status, key, n) == 0)
			return status + n + strspn(status + n, ":\t ");
	}
	return NULL;
}

static bool
read_status(int tid, struct evc__proc *p)
{
	char buf[4096];
	const char *state, *blocked, *pending;

	if (!file_in(buf, sizeof buf, tid, "status"))
		return false;
	state = find_field(buf, "State:");
	pending = find_field(buf, "SigPnd:");
	blocked = find_field(buf, "SigBlk:");
	if (state == NULL || pending == NULL || blocked == NULL)
		return false;
	p->state = *state;
	p->pending = strtoull(pending, NULL, 16);
	p->blocked = strtoull(blocked, NULL, 16);
	return true;
}

/* "0": the thread runs, or the kernel hides the function. */
static void
read_wchan(int tid, struct evc__proc *p)
{
	char buf[sizeof p->wchan];

	if (!file_in(buf, sizeof buf, tid, "wchan") || strcmp(buf, "0") == 0)
		return;
	buf[strcspn(buf, ".")] = '\0'; /* ".constprop.0" */
	evc__copy(p->wchan, sizeof p->wchan, buf);
}

/* The file has "running", or "-1 SP PC" outside a call, or the number of the
   call, its arguments, SP and PC. */
static void
read_syscall(int tid, struct evc__proc *p)
{
	char buf[256];
	struct text t = evc__text_in(p->syscall, sizeof p->syscall);
	const char *last;
	long number;
	size_t i;

	if (!file_in(buf, sizeof buf, tid, "syscall"))
		return;
	last = strrchr(buf, ' ');
	while (last != NULL && last > buf && *--last != ' ')
		;
	if (last != NULL)
		p->sp = (uintptr_t)strtoull(last, NULL, 16);
	if (buf[0] < '0' || buf[0] > '9')
		return;
	number = strtol(buf, NULL, 10);
	for (i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number == number) {
			evc__text_add(&t, calls[i].name);
			return;
		}
	evc__text_add(&t, "syscall ");
	evc__text_int(&t, number);
}

bool
evc__proc_read(int tid, struct evc__proc *p)
{
	memset(p, 0, sizeof *p);
	p->readable = read_status(tid, p);
	if (p->readable) {
		read_wchan(tid, p);
		read_syscall(tid, p);
	}
	return p->readable;
}

const char *
evc__proc_state(char state)
{
	switch (state) {
	case '\0':
		return "";
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "disk sleep";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'Z':
	case 'X':
		return "dead";
	case 'I':
		return "idle";
	case 'P':
		return "parked";
	}
	return "?";
}

/* ---- this program, this machine, processes ---- */

/* The target of a symbolic link as a text; "": not known. */
static bool
target_of(const char *link, char *buf, size_t room)
{
	ssize_t n = readlink(link, buf, room - 1);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool
evc__proc_program(char *path, size_t room)
{
	return target_of("/proc/self/exe", path, room);
}

char *
evc__proc_path(const char *path)
{
	char here[PATH_MAX + 1], *whole;
	size_t n = 0, size = strlen(path) + 1;

	if (path[0] != '/' && getcwd(here, PATH_MAX) != NULL) {
		n = strlen(here);
		here[n++] = '/';
	}
	whole = sync_alloc(1, n + size);
	if (whole != NULL) {
		memcpy(whole, here, n);
		memcpy(whole + n, path, size);
	}
	return whole;
}

void
evc__proc_boot_id(char *buf, size_t room)
{
	evc__proc_file("/proc/sys/kernel/random/boot_id", buf, room);
	buf[strcspn(buf, "\n")] = '\0';
}

uint64_t
evc__proc_pid_namespace(void)
{
	char buf[64];
	const char *number;

	target_of("/proc/self/ns/pid", buf, sizeof buf);
	number = strchr(buf, '[');
	return number != NULL ? strtoull(number + 1, NULL, 10) : 0;
}

/* The words about a process behind its name, which may hold any byte; NULL: not
   known. */
static const char *
words_of_process(pid_t pid, char *buf, size_t room)
{
	char path[64];
	struct text t = evc__text_in(path, sizeof path);

	if (pid != 0)
		evc__text_fmt(&t, "/proc/%d/stat", (int)pid);
	else
		evc__text_add(&t, "/proc/self/stat");
	return evc__proc_file(path, buf, room) > 0 ? strrchr(buf, ')') : NULL;
}

char
evc__proc_process_state(pid_t pid)
{
	char buf[1024];
	const char *s = words_of_process(pid, buf, sizeof buf);

	return s != NULL && s[1] == ' ' ? s[2] : '\0';
}

bool
evc__proc_process(pid_t pid, pid_t *ret_parent, uint64_t *ret_start)
{
	char buf[1024];
	const char *s = words_of_process(pid, buf, sizeof buf);
	int i;

	/* The state, the parent, and 17 words in front of the start time. */
	for (i = 0; s != NULL && i < 20; i++) {
		s = strchr(s + 1, ' ');
		if (i == 1 && s != NULL)
			*ret_parent = (pid_t)strtol(s, NULL, 10);
	}
	if (s != NULL)
		*ret_start = strtoull(s, NULL, 10);
	return s != NULL;
}
