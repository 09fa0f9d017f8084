/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What not every C library has: glibc since 2.32 and 2.34, musl not at all.
 * Each function has two bodies: the C library's, where configure has found it,
 * and one of our own, which a build with the seam has as well.
 * Called by: whatever names an errno value or a signal; starts of processes.
 * Locks: none.
 */
#include "base/libc.h"

#include <errno.h>
#include <signal.h>

#include "base/sync.h"

/* ---- names: signal-safe, so strerror(3) is of no use ---- */

#if !defined HAVE_STRERRORDESC_NP || defined EVC_SEAM
static const char *const errno_text[] = {
	[EPERM] = "Operation not permitted",
	[ENOENT] = "No such file or directory",
	[ESRCH] = "No such process",
	[EINTR] = "Interrupted system call",
	[EIO] = "Input/output error",
	[ENXIO] = "No such device or address",
	[E2BIG] = "Argument list too long",
	[ENOEXEC] = "Exec format error",
	[EBADF] = "Bad file descriptor",
	[ECHILD] = "No child processes",
	[EAGAIN] = "Resource temporarily unavailable",
	[ENOMEM] = "Cannot allocate memory",
	[EACCES] = "Permission denied",
	[EFAULT] = "Bad address",
	[ENOTBLK] = "Block device required",
	[EBUSY] = "Device or resource busy",
	[EEXIST] = "File exists",
	[EXDEV] = "Invalid cross-device link",
	[ENODEV] = "No such device",
	[ENOTDIR] = "Not a directory",
	[EISDIR] = "Is a directory",
	[EINVAL] = "Invalid argument",
	[ENFILE] = "Too many open files in system",
	[EMFILE] = "Too many open files",
	[ENOTTY] = "Inappropriate ioctl for device",
	[ETXTBSY] = "Text file busy",
	[EFBIG] = "File too large",
	[ENOSPC] = "No space left on device",
	[ESPIPE] = "Illegal seek",
	[EROFS] = "Read-only file system",
	[EMLINK] = "Too many links",
	[EPIPE] = "Broken pipe",
	[EDOM] = "Numerical argument out of domain",
	[ERANGE] = "Numerical result out of range",
	[EDEADLK] = "Resource deadlock avoided",
	[ENAMETOOLONG] = "File name too long",
	[ENOLCK] = "No locks available",
	[ENOSYS] = "Function not implemented",
	[ENOTEMPTY] = "Directory not empty",
	[ELOOP] = "Too many levels of symbolic links",
	[ENOMSG] = "No message of desired type",
	[EIDRM] = "Identifier removed",
	[ETIME] = "Timer expired",
	[ENOLINK] = "Link has been severed",
	[EPROTO] = "Protocol error",
	[EBADMSG] = "Bad message",
	[EOVERFLOW] = "Value too large for defined data type",
	[EILSEQ] = "Invalid or incomplete multibyte or wide character",
	[EUSERS] = "Too many users",
	[ENOTSOCK] = "Socket operation on non-socket",
	[EDESTADDRREQ] = "Destination address required",
	[EMSGSIZE] = "Message too long",
	[EPROTOTYPE] = "Protocol wrong type for socket",
	[ENOPROTOOPT] = "Protocol not available",
	[EPROTONOSUPPORT] = "Protocol not supported",
	[ESOCKTNOSUPPORT] = "Socket type not supported",
	[EOPNOTSUPP] = "Operation not supported",
	[EPFNOSUPPORT] = "Protocol family not supported",
	[EAFNOSUPPORT] = "Address family not supported by protocol",
	[EADDRINUSE] = "Address already in use",
	[EADDRNOTAVAIL] = "Cannot assign requested address",
	[ENETDOWN] = "Network is down",
	[ENETUNREACH] = "Network is unreachable",
	[ENETRESET] = "Network dropped connection on reset",
	[ECONNABORTED] = "Software caused connection abort",
	[ECONNRESET] = "Connection reset by peer",
	[ENOBUFS] = "No buffer space available",
	[EISCONN] = "Transport endpoint is already connected",
	[ENOTCONN] = "Transport endpoint is not connected",
	[ESHUTDOWN] = "Cannot send after transport endpoint shutdown",
	[ETIMEDOUT] = "Connection timed out",
	[ECONNREFUSED] = "Connection refused",
	[EHOSTDOWN] = "Host is down",
	[EHOSTUNREACH] = "No route to host",
	[EALREADY] = "Operation already in progress",
	[EINPROGRESS] = "Operation now in progress",
	[ESTALE] = "Stale file handle",
	[EREMOTEIO] = "Remote I/O error",
	[EDQUOT] = "Disk quota exceeded",
	[ENOMEDIUM] = "No medium found",
	[ECANCELED] = "Operation canceled",
	[EOWNERDEAD] = "Owner died",
	[ENOTRECOVERABLE] = "State not recoverable",
};

const char *
evc__own_errno_text(int err)
{
	return err > 0 && (size_t)err < sizeof errno_text / sizeof *errno_text ?
		       errno_text[err] :
		       NULL;
}
#endif

const char *
evc__errno_text(int err)
{
#ifdef HAVE_STRERRORDESC_NP
	return strerrordesc_np(err);
#else
	return evc__own_errno_text(err);
#endif
}

#if !defined HAVE_SIGABBREV_NP || defined EVC_SEAM
static const char *const signal_name[] = {
	[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT",
	[SIGILL] = "ILL", [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",
	[SIGBUS] = "BUS", [SIGFPE] = "FPE", [SIGKILL] = "KILL",
	[SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
	[SIGCHLD] = "CHLD", [SIGCONT] = "CONT", [SIGSTOP] = "STOP",
	[SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",
	[SIGURG] = "URG", [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
	[SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
	[SIGPOLL] = "POLL", [SIGPWR] = "PWR", [SIGSYS] = "SYS",
#ifdef SIGSTKFLT
	[SIGSTKFLT] = "STKFLT",
#endif
};

const char *
evc__own_signal_name(int signo)
{
	return signo > 0 && (size_t)signo <
				    sizeof signal_name / sizeof *signal_name ?
		       signal_name[signo] :
		       NULL;
}
#endif

const char *
evc__signal_name(int signo)
{
#ifdef HAVE_SIGABBREV_NP
	return sigabbrev_np(signo);
#else
	return evc__own_signal_name(signo);
#endif
}

/* ---- descriptors of a new process ---- */

#if !defined HAVE_POSIX_SPAWN_FILE_ACTIONS_ADDCLOSEFROM_NP || \
	defined EVC_SEAM
/* The kernel lists the open descriptors of this process.  One that another
   thread opens after the list was read is not closed, unless it is
   close-on-exec.  One that is needs no action, which could be refused: the
   number may be above the limit of descriptors by now. */
int
evc__own_close_from(posix_spawn_file_actions_t *a, int least)
{
	int folder = sync_folder_open("/proc/self/fd"), error = 0;
	_Alignas(struct sync_entry) char buf[2048];
	const struct sync_entry *d;
	long at, n = 0;

	if (folder < 0)
		return errno;
	while (error == 0 &&
	       (n = sync_folder_read(folder, buf, sizeof buf)) > 0)
		for (at = 0; at < n && error == 0; at += d->size) {
			int fd;

			d = (const struct sync_entry *)(buf + at);
			fd = atoi(d->name);
			if (fd >= least && !sync_fd_is_cloexec(fd))
				error = posix_spawn_file_actions_addclose(a, fd);
		}
	if (n < 0)
		error = errno;
	sync_fd_close(folder);
	return error;
}
#endif

int
evc__close_from(posix_spawn_file_actions_t *a, int least)
{
#ifdef HAVE_POSIX_SPAWN_FILE_ACTIONS_ADDCLOSEFROM_NP
	return posix_spawn_file_actions_addclosefrom_np(a, least);
#else
	return evc__own_close_from(a, least);
#endif
}
