/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: the messages between a coordinator and its worker processes, as
 * bytes.
 *
 *     2 bytes   magic
 *     1 byte    version
 *     1 byte    type
 *     4 bytes   the number of bytes that follow
 *
 * A body consists of numbers of fixed size in network order, of texts with
 * their length before and a 0 byte behind, and of MessagePack values with their
 * length before.
 *
 * Readers trust no byte: each length is checked against the bytes that are
 * there, a text has its only 0 byte at its end, values are walked.  Results of
 * a read point into the frame.
 *
 * PURE: bytes in, bytes out.
 */
#ifndef EVC_CLUSTER_FRAMES_H
#define EVC_CLUSTER_FRAMES_H

#include <evcoord/unstable/engine.h>

#include "wire/outgoing.h"

#define FRAME_VERSION 2
#define FRAME_HEAD 8
#define FRAME_STACK_MOST 4000 /* bytes of text in a FRAME_STACK */
#define FRAME_NAMES_MOST 65536 /* functions of a program */

enum frame_type {
	/* data stream, to the worker */
	FRAME_WELCOME = 1,
	FRAME_TASK = 2,
	FRAME_DEF = 3,      /* build a per-worker value, or drop one */
	FRAME_FORGET = 4,   /* drop a result that the worker keeps */
	FRAME_REPLY = 5,    /* the value of a variable */
	FRAME_LEAVE = 6,
	/* data stream, to the coordinator */
	FRAME_HELLO = 7,
	FRAME_FAILED = 8,   /* the process cannot be a worker */
	FRAME_BEGUN = 9,    /* a function with a deadline runs */
	FRAME_RESULT = 10,
	FRAME_BUILT = 11,
	FRAME_VARIABLE = 12,
	/* control stream, to the worker */
	FRAME_PING = 13,
	FRAME_CANCEL = 14,     /* stop all attempts up to a number */
	FRAME_CANCEL_ONE = 15,
	/* control stream, to the coordinator */
	FRAME_PONG = 16,
	/* control stream: attempts up to a number that have not begun are taken
	   back; the answer names them */
	FRAME_BACK = 17,
	FRAME_BACKED = 18,
	/* control stream, to the worker: the worker's end at this time
	   (CLOCK_MONOTONIC, ns), unless a later time follows */
	FRAME_UNTIL = 19,
	/* between a node of another machine and the coordinator: the worker of
	   the node, and its life, that the next frames are about */
	FRAME_SLOT = 20,
	/* to the node */
	FRAME_KILL = 21,    /* kill a worker */
	/* to the coordinator */
	FRAME_NODE = 22,    /* a note: number of workers, machine */
	FRAME_UP = 23,      /* a note: pid, place of the worker */
	FRAME_OVERDUE = 25, /* an attempt is over its deadline */
	FRAME_FENCED = 26,  /* a note: 0, reason */
	FRAME_GONE = 27,    /* a note: whether a function ran, reason */
	FRAME_LEFT = 28,    /* the node leaves, and runs nothing */
	/* to the node: the lower 32 bits are the number in the cluster of the
	   node's worker in the upper 32 bits */
	FRAME_RANK = 24,
	/* control stream, and to the node: where does the worker stand? */
	FRAME_LOOK = 29,
	/* the answer, a note: 0, lines of text, FRAME_STACK_MOST bytes */
	FRAME_STACK = 30,
	FRAME_TYPES = 31
};

struct frame {
	unsigned type;
	const unsigned char *body;
	size_t size;  /* bytes of the body */
	size_t whole; /* bytes with the head; of an incomplete frame: the bytes
			 needed for the next look */
};

/* The first frame in n bytes: 1 and the frame; 0: more bytes have to come;
   -EVC_... with a text that fits behind "it sent ": the bytes are no frame. */
int evc__frame_next(const void *bytes, size_t n, size_t max_frame,
		    struct frame *ret);

/* ---- writing: 0; -EVC_RESOURCE_EXHAUSTED with a text, and then nothing was
   put: no memory, or longer than max_frame ---- */

struct frame_welcome {
	unsigned index;
	uint64_t generation, max_frame;
	const char *name;
};

struct frame_failed {
	evc_status code; /* > 0 */
	const char *text;
};

/* The worker may keep a result, and marks the frame. */
struct frame_result {
	evc_engine_result r; /* r.updates is for sync_free, if it was read */
	bool kept;
};

struct frame_built {
	uint64_t id;
	evc_status code;
	double seconds;
};

/* Attempts up to `upto` are taken back, but for those up to `begun`. */
struct frame_backed {
	uint64_t begun, upto;
};

/* The notes: FRAME_NODE, _UP, _FENCED, _GONE, _STACK. */
struct frame_note {
	uint64_t number;
	const char *text;
};

struct frame_reply {
	evc_status status; /* <= 0 */
	double now;
	evc_value value;
	const char *text;
};

evc_status evc__frame_put_welcome(struct bytes *b, size_t max_frame,
				  const struct frame_welcome *w);
/* value_is_kept[i]: input i goes with its id alone; NULL: all values go. */
evc_status evc__frame_put_task(struct bytes *b, size_t max_frame,
			       const evc_engine_task *t,
			       const bool *value_is_kept);
/* The same; large values are lent. */
evc_status evc__frame_lend_task(struct outgoing *to, size_t max_frame,
				const evc_engine_task *t,
				const bool *value_is_kept);
evc_status evc__frame_put_def(struct bytes *b, size_t max_frame,
			      const evc_engine_def *d);
evc_status evc__frame_put_reply(struct bytes *b, size_t max_frame,
				const struct frame_reply *r);
evc_status evc__frame_put_hello(struct bytes *b, size_t max_frame,
				const evc_function *functions, unsigned n);
evc_status evc__frame_put_failed(struct bytes *b, size_t max_frame,
				 const struct frame_failed *f);
evc_status evc__frame_put_result(struct bytes *b, size_t max_frame,
				 const struct frame_result *r);
/* The same; a large value is lent. */
evc_status evc__frame_lend_result(struct outgoing *to, size_t max_frame,
				  const struct frame_result *r);
evc_status evc__frame_put_built(struct bytes *b, const struct frame_built *f);
evc_status evc__frame_put_variable(struct bytes *b, size_t max_frame,
				   const evc_engine_update *u);
evc_status evc__frame_put_backed(struct bytes *b,
				 const struct frame_backed *f);
evc_status evc__frame_put_note(struct bytes *b, enum frame_type type,
			       const struct frame_note *note);
/* Frames with an id: FRAME_FORGET; with the number of an attempt: _BEGUN,
   _CANCEL, _CANCEL_ONE, _BACK, _OVERDUE; _UNTIL, _SLOT, _RANK. */
evc_status evc__frame_put_number(struct bytes *b, enum frame_type type,
				 uint64_t number);
/* FRAME_LEAVE, _PING, _PONG, _KILL, _LEFT, _LOOK. */
evc_status evc__frame_put_bare(struct bytes *b, enum frame_type type);

/* ---- reading a frame of that type: 0; -EVC_INVALID_ARGUMENT with a text as
   evc__frame_next; -EVC_RESOURCE_EXHAUSTED ---- */

evc_status evc__frame_get_welcome(const struct frame *f,
				  struct frame_welcome *ret);
/* ret->inputs is for sync_free.  A kept input has a value of size 0; nil has 1
   byte. */
evc_status evc__frame_get_task(const struct frame *f, evc_engine_task *ret);
evc_status evc__frame_get_def(const struct frame *f, evc_engine_def *ret);
evc_status evc__frame_get_reply(const struct frame *f,
				struct frame_reply *ret);
evc_status evc__frame_get_note(const struct frame *f, struct frame_note *ret);
/* *ret_names is for sync_free. */
evc_status evc__frame_get_hello(const struct frame *f,
				const char ***ret_names, unsigned *ret_n);
evc_status evc__frame_get_failed(const struct frame *f,
				 struct frame_failed *ret);
evc_status evc__frame_get_result(const struct frame *f,
				 struct frame_result *ret);
evc_status evc__frame_get_built(const struct frame *f,
				struct frame_built *ret);
evc_status evc__frame_get_backed(const struct frame *f,
				 struct frame_backed *ret);
evc_status evc__frame_get_variable(const struct frame *f,
				   evc_engine_update *ret);
evc_status evc__frame_get_number(const struct frame *f, uint64_t *ret);
evc_status evc__frame_get_bare(const struct frame *f);

#endif
