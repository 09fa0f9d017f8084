/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a password: the first line of a file that only its owner can read, or a
 * variable of the environment.  No text made here shows the password.
 * Called by: address.c and login.c; any thread.
 * Locks: none.
 */
#include "redis/client/redis.h"

#define PASSWORD_MOST 4096

evc_status
evc__redis_copy(const char *s, size_t n, char **ret)
{
	*ret = sync_alloc(1, n + 1);
	if (*ret == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	memcpy(*ret, s, n);
	return 0;
}

static evc_status
check_file(int fd, const char *path)
{
	struct stat st;

	if (sync_fd_stat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "password-file %.200s is no file", path);
	if ((st.st_mode & 077) != 0)
		return evc_refuse(-EVC_PERMISSION_DENIED,
				  "password-file has the mode %03o, and not "
				  "600: %.200s",
				  (unsigned)st.st_mode & 0777, path);
	return 0;
}

/* Reads the first line of fd. */
static evc_status
read_line(int fd, const char *path, char **ret)
{
	char line[PASSWORD_MOST + 1];
	size_t n = 0;
	ssize_t got;
	evc_status st;

	do {
		got = sync_fd_read(fd, line + n, sizeof line - n);
		if (got > 0)
			n += (size_t)got;
	} while ((got > 0 && n < sizeof line) || (got < 0 && errno == EINTR));
	if (got < 0)
		return evc_refuse(-EVC_UNAVAILABLE, "password-file %.200s: %s",
				  path, strerror(errno));
	if (memchr(line, '\n', n) != NULL)
		n = (size_t)((char *)memchr(line, '\n', n) - line);
	if (n > 0 && line[n - 1] == '\r')
		n--;
	if (n == 0 || n > PASSWORD_MOST)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"the first line of password-file %.200s has no"
				" password of %d bytes at most",
				path, PASSWORD_MOST);
	else
		st = evc__redis_copy(line, n, ret);
	explicit_bzero(line, sizeof line);
	return st;
}

static evc_status
password_of_file(const char *path, char **ret)
{
	int fd = sync_file_open(path);
	evc_status st;

	if (fd < 0)
		return evc_refuse(errno == EACCES   ? -EVC_PERMISSION_DENIED
				  : errno == ENOENT ? -EVC_NOT_FOUND
						    : -EVC_UNAVAILABLE,
				  "password-file %.200s: %s", path,
				  strerror(errno));
	st = check_file(fd, path);
	if (st == 0)
		st = read_line(fd, path, ret);
	sync_fd_close(fd);
	return st;
}

evc_status
evc__redis_password(const char *file, const char *variable, char **ret)
{
	const char *value;

	if (file != NULL && variable != NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the address has password-file and"
				  " password-env");
	if (file != NULL)
		return password_of_file(file, ret);
	if (variable == NULL)
		return 0;
	value = getenv(variable);
	if (value == NULL || value[0] == '\0')
		return evc_refuse(-EVC_NOT_FOUND,
				  "password-env: there is no %.100s in the"
				  " environment",
				  variable);
	return evc__redis_copy(value, strlen(value), ret);
}

void
evc__redis_password_free(char *password)
{
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	sync_free(password);
}
