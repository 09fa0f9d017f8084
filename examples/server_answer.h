/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer: what is to be sent, and how much of it was.
 */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct answer {
	char text[512];           /* the head, and the body if it is short */
	size_t len, sent;         /* of text */
	int file;                 /* the body, or -1 */
	off_t off, end;           /* of file: what is still to be sent */
};

enum sent {
	SENT_ALL,                 /* it is all with the kernel */
	SENT_SOME,                /* go on when there is room */
	SENT_NO_CLIENT,           /* the client is gone */
	SENT_NO_FILE              /* the file has become shorter: the answer
				     can not be completed */
};

/*
 * Open a file of the folder: a regular one, with a plain name.  Its
 * descriptor and size, or -errno.
 */
int file_open(int folder, const char *name, off_t *ret_size);

/* Set up an answer with a text for a body, and free what was there. */
void answer_text(struct answer *a, int status, bool keep, bool head_only,
		 const char *body);

/* The same with a file, which the answer owns from now on. */
void answer_file(struct answer *a, bool keep, bool head_only, int file,
		 off_t size);

/* Send as much as one turn of the loop should. */
enum sent answer_send(struct answer *a, int fd);

/* Close what the answer has open.  Fine at any time after the first one. */
void answer_free(struct answer *a);

#endif
