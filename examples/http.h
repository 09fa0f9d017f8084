/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP parser of the server and of its client: llhttp, or http_parser, its
 * predecessor, whichever configure has found.
 */
#ifndef EXAMPLES_HTTP_H
#define EXAMPLES_HTTP_H

#include <stddef.h>

#ifdef HAVE_LLHTTP
#include <llhttp.h>

typedef llhttp_t http_message;
typedef llhttp_settings_t http_calls;
typedef llhttp_type_t http_type;
/* A request with one of these has a body. */
#define HTTP_BODY (F_CHUNKED | F_CONTENT_LENGTH)
/* What on_message_complete returns: what follows belongs to the next message. */
#define HTTP_PAUSE(p) ((void)(p), HPE_PAUSED)
#define HTTP_IS_KEPT(p) (llhttp_should_keep_alive(p) != 0)

#else
#include <http_parser.h>

typedef http_parser http_message;
typedef http_parser_settings http_calls;
typedef enum http_parser_type http_type;
#define HTTP_BODY (F_CHUNKED | F_CONTENTLENGTH)
#define HTTP_PAUSE(p) (http_parser_pause((p), 1), 0)
#define HTTP_IS_KEPT(p) (http_should_keep_alive(p) != 0)
#endif

static inline void
http_begin(http_message *p, const http_calls *calls, http_type type, void *data)
{
#ifdef HAVE_LLHTTP
	llhttp_init(p, type, calls);
#else
	(void)calls;
	http_parser_init(p, type);
#endif
	p->data = data;
}

/* How many bytes were taken of n.  *ret_refused: 0, or the status that refuses
   the message; after a pause it says nothing. */
static inline size_t
http_take(http_message *p, const http_calls *calls, const char *buf, size_t n,
	  int *ret_refused)
{
#ifdef HAVE_LLHTTP
	llhttp_errno_t e = llhttp_execute(p, buf, n);

	(void)calls;
	*ret_refused = e == HPE_OK ? 0 : 400;
	/* Not of "HTTP/x.1". */
	if (e == HPE_INVALID_VERSION && p->http_major > 0)
		*ret_refused = 505;
	return e == HPE_OK ? n : (size_t)(llhttp_get_error_pos(p) - buf);
#else
	size_t taken = http_parser_execute(p, calls, buf, n);

	*ret_refused = HTTP_PARSER_ERRNO(p) == HPE_OK ? 0 : 400;
	return taken;
#endif
}

#endif
