/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: what a coordinator and its worker processes say to each other, as
 * bytes.
 *
 *     2 bytes   magic
 *     1 byte    version
 *     1 byte    type
 *     4 bytes   how many bytes follow
 *
 * and then numbers of fixed size in network order, texts with their length
 * before and a 0 byte behind, and MessagePack values with their length before.
 *
 * Nothing here trusts what it reads: every length is checked against what is
 * there, texts have one 0 byte and that at their end, values are walked.  What
 * is read points into the frame.
 *
 * PURE: bytes in, bytes out.
 */
#ifndef EVC_CLUSTER_FRAMES_H
#define EVC_CLUSTER_FRAMES_H

#include <evcoord/unstable/engine.h>

#include "wire/frames_bytes.h"

#define FRAME_VERSION 1
#define FRAME_HEAD 8
#define FRAME_NAMES_MOST 65536 /* functions of one program */

enum frame_type {
	/* data, to the worker */
	FRAME_WELCOME = 1,
	FRAME_TASK = 2,
	FRAME_DEF = 3,      /* build, or drop */
	FRAME_FORGET = 4,   /* a result that it keeps */
	FRAME_REPLY = 5,    /* of a variable */
	FRAME_LEAVE = 6,
	/* data, to the coordinator */
	FRAME_HELLO = 7,
	FRAME_FAILED = 8,   /* it cannot be a worker */
	FRAME_BEGUN = 9,    /* of a task with a deadline */
	FRAME_RESULT = 10,
	FRAME_BUILT = 11,
	FRAME_VARIABLE = 12,
	/* control, to the worker */
	FRAME_PING = 13,
	FRAME_CANCEL = 14,     /* all attempts up to a number */
	FRAME_CANCEL_ONE = 15,
	/* control, to the coordinator */
	FRAME_PONG = 16,
	/* control: attempts up to a number that have not begun are not to
	   begin any more; and which that is so of */
	FRAME_BACK = 17,
	FRAME_BACKED = 18,
	/* control, to the worker: it ends at this time, unless a later one comes
	   (CLOCK_MONOTONIC, ns) */
	FRAME_UNTIL = 19,
	/* between a node of another machine and the coordinator: which of its
	   workers, and which life of that one, what follows is about */
	FRAME_SLOT = 20,
	/* to the node */
	FRAME_KILL = 21,    /* that worker */
	/* to the coordinator */
	FRAME_NODE = 22,    /* a note: how many workers, what machine */
	FRAME_UP = 23,      /* a note: its pid, where it is */
	FRAME_VALUE = 24,   /* the value of the result that follows is kept for
			       the remote with this id, and is not in it */
	FRAME_OVERDUE = 25, /* an n */
	FRAME_FENCED = 26,  /* a note: 0, why */
	FRAME_GONE = 27,    /* a note: whether it ran something, why */
	FRAME_LEFT = 28,    /* the node leaves, and runs nothing */
	/* to the node: which of its workers (the upper 32 bits) has which
	   number among those of the cluster */
	FRAME_RANK = 29,
	FRAME_TYPES = 30
};

struct frame {
	unsigned type;
	const unsigned char *body;
	size_t size;  /* of the body */
	size_t whole; /* with the head; of a frame that is not there yet, how
			 much there has to be to know more */
};

/* What stands first in n bytes: 1 and the frame; 0: more have to come; -EVC_...
   with a text that fits behind "it sent ": these are no frames of ours. */
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

/* A result that the worker has kept is marked. */
struct frame_result {
	evc_engine_result r; /* updates: those that were read are for
				sync_free */
	bool kept;
};

struct frame_built {
	uint64_t id;
	evc_status code;
	double seconds;
};

/* Of the attempts up to a number those behind another one. */
struct frame_backed {
	uint64_t begun, upto;
};

/* FRAME_NODE, _UP, _FENCED, _GONE. */
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
/* value_is_kept[i]: of input i only its id; NULL: of none. */
evc_status evc__frame_put_task(struct bytes *b, size_t max_frame,
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
evc_status evc__frame_put_built(struct bytes *b, const struct frame_built *f);
evc_status evc__frame_put_variable(struct bytes *b, size_t max_frame,
				   const evc_engine_update *u);
evc_status evc__frame_put_backed(struct bytes *b,
				 const struct frame_backed *f);
evc_status evc__frame_put_note(struct bytes *b, enum frame_type type,
			       const struct frame_note *note);
/* FRAME_FORGET, _VALUE (an id), _BEGUN, _CANCEL, _CANCEL_ONE, _BACK, _OVERDUE
   (an n), _UNTIL, _SLOT, _RANK. */
evc_status evc__frame_put_number(struct bytes *b, enum frame_type type,
				 uint64_t number);
/* FRAME_LEAVE, _PING, _PONG, _KILL, _LEFT. */
evc_status evc__frame_put_bare(struct bytes *b, enum frame_type type);

/* ---- reading a frame of that type: 0; -EVC_INVALID_ARGUMENT with a text as
   evc__frame_next; -EVC_RESOURCE_EXHAUSTED ---- */

evc_status evc__frame_get_welcome(const struct frame *f,
				  struct frame_welcome *ret);
/* ret->inputs is for sync_free; one that is kept has a value of size 0, and nil
   has one byte. */
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
