/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to the service manager.
 * Called by: systemd.c and systemd_stop.c.
 * Locks: none.
 */
#include "observe/systemd.h"

bool
evc__manager_address(struct evc__manager *m, const char *name)
{
	size_t n = strlen(name);

	if (n < 2 || n > sizeof m->to.sun_path ||
	    (name[0] != '/' && name[0] != '@'))
		return false;
	m->to.sun_family = AF_UNIX;
	memcpy(m->to.sun_path, name, n);
	/* An abstract name begins with a 0 byte, and every byte handed to the
	   kernel belongs to the name; a path needs no 0 byte at its end. */
	if (name[0] == '@')
		m->to.sun_path[0] = '\0';
	m->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

bool
evc__manager_send(const struct evc__manager *m, const char *lines, size_t n)
{
	return sync_dgram_send(m->fd, lines, n, &m->to, m->to_len) ==
	       (ssize_t)n;
}
