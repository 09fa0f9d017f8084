/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the name of the node, its place (which proves its end to programs of
 * the same machine), and the arguments with which its workers are started.
 * Called by: node.c.
 * Locks: none; any thread.
 */
#include "redis/node/node.h"

#include <inttypes.h>

#include "base/array.h"
#include "base/proc.h"

#define ARGUMENTS_MOST ((size_t)1 << 20) /* bytes */

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
	char bytes[64];

	/* Two processes with the same pid, one after the other, have different
	   names. */
	if (evc__proc_file("/proc/sys/kernel/random/uuid", bytes,
			   sizeof bytes) > 0)
		r = strtoull(bytes, NULL, 16);
	r = (r ^ sync_real()) & UINT64_C(0xffffffff);
	evc__text_fmt(&t, "%s-%d-%08llx", n->host, (int)getpid(),
		      (unsigned long long)r);
}

/* Add a number, or "-" for 0. */
static void
add_number(struct text *t, uint64_t number)
{
	if (number != 0)
		evc__text_fmt(t, " %" PRIu64, number);
	else
		evc__text_add(t, " -");
}

/* "HOST PID BOOT_ID PIDNS START_TIME" */
static void
find_place(struct node *n)
{
	struct text t = evc__text_in(n->where, sizeof n->where);
	char boot[64];
	uint64_t begun = 0;
	pid_t parent;

	evc__proc_boot_id(boot, sizeof boot);
	evc__proc_process(0, &parent, &begun);
	evc__text_fmt(&t, "%s %d %s", n->host, (int)getpid(),
		      boot[0] != '\0' ? boot : "-");
	add_number(&t, evc__proc_pid_namespace());
	add_number(&t, begun);
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

/* The arguments of this program, each with its 0 byte, for sync_free.  NULL:
   no memory. */
static char *
read_arguments(size_t *ret_n)
{
	size_t room = 0;
	char *line = NULL;

	do {
		if (!ARRAY_RESERVE(line, 0, room, room + 4096)) {
			sync_free(line);
			return NULL;
		}
		*ret_n = evc__proc_file("/proc/self/cmdline", line, room);
	} while (*ret_n == room - 1 && room < ARGUMENTS_MOST);
	return line;
}

static evc_status
find_options(struct node *n)
{
	size_t size, at, count = 0, i = 0;
	char *line = read_arguments(&size);

	if (line == NULL)
		return refuse_no_memory();
	for (at = 0; at < size; at += strlen(line + at) + 1)
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
