/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer: what is to be sent, and how much of it was.
 *
 * Files go from the page cache to the socket by sendfile(); it may wait for
 * the disk, as any file server without threads for its reads does.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server_answer.h"

#define TURN (512 * 1024) /* bytes, before other connections get theirs */

int
file_open(int folder, const char *name, off_t *ret_size)
{
	struct stat st;
	int fd;

	/* O_NONBLOCK: opening a fifo must not wait for its other end. */
	fd = openat(folder, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*ret_size = st.st_size;
	return fd;
}

static const char *
status_text(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 414: return "URI Too Long";
	case 431: return "Request Header Fields Too Large";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default:  return "Internal Server Error";
	}
}

static void
head(struct answer *a, int status, bool keep, const char *type, off_t size)
{
	time_t now = time(NULL);
	struct tm tm;
	char date[40];

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	a->len = (size_t)snprintf(a->text, sizeof(a->text),
				  "HTTP/1.1 %d %s\r\n"
				  "Date: %s\r\n"
				  "Content-Type: %s\r\n"
				  "Content-Length: %lld\r\n"
				  "%s"
				  "Connection: %s\r\n\r\n",
				  status, status_text(status), date, type,
				  (long long)size,
				  status == 405 ? "Allow: GET, HEAD\r\n" : "",
				  keep ? "keep-alive" : "close");
	a->sent = 0;
}

void
answer_text(struct answer *a, int status, bool keep, bool head_only,
	    const char *body)
{
	size_t n = strlen(body);

	answer_free(a);
	head(a, status, keep, "text/plain", (off_t)n);
	if (!head_only && n <= sizeof(a->text) - a->len) {
		memcpy(a->text + a->len, body, n);
		a->len += n;
	}
}

void
answer_file(struct answer *a, bool keep, bool head_only, int file, off_t size)
{
	answer_free(a);
	head(a, 200, keep, "application/octet-stream", size);
	a->file = file;
	a->off = 0;
	a->end = size;
	if (head_only || size == 0)
		answer_free(a);
}

enum sent
answer_send(struct answer *a, int fd)
{
	size_t turn = TURN;
	ssize_t n;

	while (a->sent < a->len) {
		n = send(fd, a->text + a->sent, a->len - a->sent,
			 MSG_NOSIGNAL | (a->file >= 0 ? MSG_MORE : 0));
		if (n < 0)
			goto error;
		a->sent += (size_t)n;
	}
	while (a->file >= 0 && a->off < a->end) {
		size_t part = turn;

		if ((off_t)part > a->end - a->off)
			part = (size_t)(a->end - a->off);
		if (part == 0)
			return SENT_SOME;
		n = sendfile(fd, a->file, &a->off, part);
		if (n < 0)
			goto error;
		if (n == 0)
			return SENT_NO_FILE;
		turn -= (size_t)n;
	}
	answer_free(a);
	return SENT_ALL;
error:
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return SENT_SOME;
	if (errno == EIO)
		return SENT_NO_FILE;
	return SENT_NO_CLIENT;
}

void
answer_free(struct answer *a)
{
	if (a->file >= 0)
		close(a->file);
	a->file = -1;
}
