/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the name of the node, its place (which proves its end to programs of
 * the same machine), and the arguments with which its workers are started.
 * Called by: node.c.
 * Locks: none; any thread.
 */
#include "redis/node/node.h"

#define FILE_MOST ((size_t)1 << 20)

/* ---- small files ---- */

/* Read a whole file, or `most` bytes, with a 0 byte behind.  NULL: not
   readable. */
static char *
read_file(const char *path, size_t most, size_t *ret_n)
{
	int fd = sync_file_open(path);
	size_t room = 4096, n = 0;
	char *buf = NULL, *more;
	ssize_t got = 1;

	if (fd < 0)
		return NULL;
	while (got > 0 && n < most) {
		more = sync_alloc(1, room * 2);
		if (more == NULL)
			break;
		if (n > 0)
			memcpy(more, buf, n);
		sync_free(buf);
		buf = more;
		room *= 2;
		while (n < room - 1 &&
		       ((got = sync_fd_read(fd, buf + n, room - 1 - n)) > 0 ||
			(got < 0 && errno == EINTR)))
			n += got > 0 ? (size_t)got : 0;
	}
	sync_fd_close(fd);
	*ret_n = n;
	return buf;
}

/* Add the first word of a file behind `skip` words, or "-". */
static void
add_word(struct text *t, const char *path, unsigned skip, const char *behind)
{
	size_t n = 0;
	char *file = read_file(path, 8192, &n), *p = file;

	if (p != NULL && behind != NULL)
		p = strrchr(p, behind[0]);
	if (p != NULL && behind != NULL)
		p++;
	while (p != NULL && skip-- > 0) {
		p += strspn(p, " ");
		p += strcspn(p, " ");
	}
	if (p != NULL) {
		p += strspn(p, " ");
		p[strcspn(p, " \n")] = '\0';
	}
	evc__text_fmt(t, " %s", p != NULL && p[0] != '\0' ? p : "-");
	sync_free(file);
}

/* ---- the name and the place ---- */

static void
find_host(struct node *n)
{
	size_t i;

	if (gethostname(n->host, sizeof n->host - 1) < 0 || n->host[0] == '\0')
		evc__copy(n->host, sizeof n->host, "host");
	for (i = 0; n->host[i] != '\0'; i++) {
		char c = n->host[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '.' && c != '_')
			n->host[i] = '-';
	}
}

static void
make_name(struct node *n)
{
	struct text t = evc__text_in(n->name, sizeof n->name);
	uint64_t r = 0;
	char *bytes;
	size_t got = 0;

	/* Two processes with the same pid, one after the other, have different
	   names. */
	bytes = read_file("/proc/sys/kernel/random/uuid", 64, &got);
	if (bytes != NULL)
		r = strtoull(bytes, NULL, 16);
	sync_free(bytes);
	r = (r ^ sync_real()) & UINT64_C(0xffffffff);
	evc__text_fmt(&t, "%s-%d-%08llx", n->host, (int)getpid(),
		      (unsigned long long)r);
}

/* "HOST PID BOOT_ID PIDNS START_TIME" */
static void
find_place(struct node *n)
{
	struct text t = evc__text_in(n->where, sizeof n->where);
	char space[64];
	const char *number;
	ssize_t got;

	evc__text_fmt(&t, "%s %d", n->host, (int)getpid());
	add_word(&t, "/proc/sys/kernel/random/boot_id", 0, NULL);
	got = readlink("/proc/self/ns/pid", space, sizeof space - 1);
	space[got > 0 ? got : 0] = '\0';
	number = strchr(space, '[');
	space[strcspn(space, "]")] = '\0';
	evc__text_fmt(&t, " %s", number != NULL ? number + 1 : "-");
	/* The start time is the 22nd number; the second one is a name in
	   brackets. */
	add_word(&t, "/proc/self/stat", 19, ")");
}

/* ---- the workers' program ---- */

static evc_status
refuse_no_memory(void)
{
	return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
			  "redis: no memory for a node");
}

static char *
make_argument(const char *s)
{
	static const char name[] = "arg=";
	char *copy = sync_alloc(1, sizeof name + strlen(s));

	if (copy != NULL) {
		memcpy(copy, name, sizeof name - 1);
		strcpy(copy + sizeof name - 1, s);
	}
	return copy;
}

static evc_status
find_options(struct node *n)
{
	size_t size = 0, at, count = 0, i = 0;
	char *line = read_file("/proc/self/cmdline", FILE_MOST, &size);

	for (at = 0; line != NULL && at < size; at += strlen(line + at) + 1)
		count++;
	n->options = sync_alloc(count + 1, sizeof *n->options);
	if (n->options == NULL) {
		sync_free(line);
		return refuse_no_memory();
	}
	/* The first argument is the name of the program. */
	for (at = 0; i + 1 < count; i++) {
		at += strlen(line + at) + 1;
		n->options[i] = make_argument(line + at);
		if (n->options[i] == NULL)
			break;
	}
	sync_free(line);
	return i + 1 < count ? refuse_no_memory() : 0;
}

evc_status
evc__node_identify(struct node *n)
{
	find_host(n);
	make_name(n);
	find_place(n);
	return find_options(n);
}

void
evc__node_identity_free(struct node *n)
{
	char **o;

	for (o = n->options; o != NULL && *o != NULL; o++)
		sync_free(*o);
	sync_free(n->options);
	n->options = NULL;
}
