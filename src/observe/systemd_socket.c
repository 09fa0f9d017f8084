/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to the service manager.
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
	/* An abstract name begins with a 0 byte, and every byte that is handed
	   to the kernel belongs to it; a path may do without its 0 byte. */
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

/* How many bytes the character at s has, 0 when it is none. */
static size_t
character(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 :
		   s[0] < 0xc2 ? 0 : /* in the middle, or longer than needed */
		   s[0] < 0xe0 ? 2 :
		   s[0] < 0xf0 ? 3 :
		   s[0] < 0xf5 ? 4 :
				 0;
	size_t i;

	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) ||  /* longer than needed */
	    (s[0] == 0xed && s[1] >= 0xa0) || /* half a pair */
	    (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] >= 0x90)) /* beyond the last one */
		return 0;
	return n;
}

void
evc__one_line(char *s)
{
	unsigned char *p = (unsigned char *)s;
	size_t n;

	while (*p != '\0') {
		n = character(p);
		if (n == 0)
			*p = '?';
		else if (*p < ' ' || *p == 0x7f)
			*p = ' ';
		p += n > 0 ? n : 1;
	}
}
