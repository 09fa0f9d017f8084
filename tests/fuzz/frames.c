/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes, as a stream of frames: each is waited for, refused, or read; what
 * was read stands inside it, and written again, twice, it is the same.
 */
#include "fuzz/fuzz.h"

#include <evcoord.h>

#include "support/frames_util.h"

static bool
one(struct fuzz *f, const unsigned char *bytes, size_t n)
{
	size_t max_frame = fuzz_once_in(f, 4) ? fuzz_below(f, 64) :
						FRAMES_MOST;
	struct bytes first = { 0 }, second = { 0 };
	struct frame frame, again;
	bool read_any = false, inside;
	size_t at = 0;
	int got;

	while ((got = evc__frame_next(bytes + at, n - at, max_frame, &frame)) >
	       0) {
		FUZZ_CHECK(f, frame.whole <= n - at);
		FUZZ_CHECK(f, frame.size <= max_frame);
		at += frame.whole;
		if (frame_again(&frame, &first, &inside) < 0) {
			FUZZ_CHECK(f, evc_last_error()[0] != '\0');
			FUZZ_CHECK(f, first.n == 0);
			continue;
		}
		FUZZ_CHECK(f, inside);
		FUZZ_CHECK(f, evc__frame_next(bytes_at(&first), first.n,
					      FRAMES_MOST, &again) == 1);
		FUZZ_CHECK(f, again.whole == first.n);
		FUZZ_CHECK(f, again.type == frame.type);
		FUZZ_CHECK(f, frame_again(&again, &second, &inside) == 0);
		FUZZ_CHECK(f, second.n == first.n);
		FUZZ_CHECK(f, memcmp(bytes_at(&first), bytes_at(&second),
				     first.n) == 0);
		bytes_take(&first, first.n);
		bytes_take(&second, second.n);
		read_any = true;
	}
	FUZZ_CHECK(f, got == 0 || evc_last_error()[0] != '\0');
	FUZZ_CHECK(f, got < 0 || frame.whole > n - at);
	bytes_free(&first);
	bytes_free(&second);
	return read_any;
}

/* ---- made-up frames ---- */

/* What a frame may have; a writer is now and then given too little. */
static size_t
some_most(struct fuzz *f)
{
	return fuzz_once_in(f, 8) ? fuzz_below(f, 64) : FRAMES_MOST;
}

/* Then nothing was put. */
static void
was_put(struct fuzz *f, evc_status st, const struct bytes *b, size_t before)
{
	FUZZ_CHECK(f, st == 0 || st == -EVC_RESOURCE_EXHAUSTED);
	FUZZ_CHECK(f, st == 0 ? b->n >= before + FRAME_HEAD : b->n == before);
}

static evc_value
some_value(struct fuzz *f)
{
	static const evc_value all[] = {
		{ NULL, 0 },
		{ "\xc0", 1 },
		{ "\x07", 1 },
		{ "\x93\x01\xa1x\xc2", 5 },
		{ "\x81\xa1k\x92\x01\x02", 6 },
		{ "\xc7\x0c\x45xxxxyyyyzzzz", 15 },
		{ "\xcb\x40\x00\x00\x00\x00\x00\x00\x00", 9 },
	};

	return all[fuzz_below(f, sizeof(all) / sizeof(all[0]))];
}

static const char *
some_name(struct fuzz *f)
{
	static const char *const all[] = { "", "a", "count", "worker 12" };

	return all[fuzz_below(f, sizeof(all) / sizeof(all[0]))];
}

static evc_engine_update
some_update(struct fuzz *f, unsigned op)
{
	evc_engine_update u = { .op = op,
				.name = some_name(f),
				.by = (double)fuzz_random(f) };

	u.value = some_value(f);
	u.expected = some_value(f);
	return u;
}

static void
put_task(struct fuzz *f, struct bytes *b)
{
	evc_engine_input inputs[4];
	bool kept[4];
	size_t before = b->n;
	evc_engine_task t = { .n = fuzz_random(f),
			      .function = some_name(f),
			      .inputs = inputs,
			      .n_inputs = (unsigned)fuzz_below(f, 5) };
	unsigned i;

	t.id = fuzz_random(f);
	t.deadline = (double)fuzz_below(f, 3);
	t.args = some_value(f);
	t.kwargs = some_value(f);
	for (i = 0; i < t.n_inputs; i++) {
		inputs[i] = (evc_engine_input){ .id = fuzz_random(f) };
		inputs[i].value = some_value(f);
		kept[i] = fuzz_once_in(f, 3);
	}
	was_put(f,
		evc__frame_put_task(b, some_most(f), &t,
				    fuzz_once_in(f, 4) ? NULL : kept),
		b, before);
}

static void
put_result(struct fuzz *f, struct bytes *b)
{
	static const unsigned ops[] = { EVC_VARIABLE_ADD, EVC_VARIABLE_SET,
					EVC_VARIABLE_READ,
					EVC_VARIABLE_READ_HASHED };
	evc_engine_update updates[3];
	struct frame_result r = { .r.n = fuzz_random(f) };
	size_t before = b->n;
	unsigned i;

	r.r.took = (double)fuzz_below(f, 100) / 7;
	r.r.updates = updates;
	r.r.n_updates = (unsigned)fuzz_below(f, 4);
	for (i = 0; i < r.r.n_updates; i++)
		updates[i] = some_update(f, ops[fuzz_below(f, 4)]);
	if (fuzz_once_in(f, 2)) {
		r.r.code = 1 + (int)fuzz_below(f, 255);
		r.r.kind = 1 + (unsigned)fuzz_below(f, 2);
		r.r.text = some_name(f);
	} else
		r.r.value = some_value(f);
	was_put(f, evc__frame_put_result(b, some_most(f), &r), b, before);
}

static void
put_other(struct fuzz *f, struct bytes *b)
{
	static const enum frame_type notes[] = { FRAME_NODE, FRAME_UP,
						 FRAME_FENCED, FRAME_GONE,
						 FRAME_STACK };
	static const enum frame_type numbers[] = {
		FRAME_FORGET, FRAME_BEGUN, FRAME_CANCEL, FRAME_CANCEL_ONE,
		FRAME_BACK,   FRAME_UNTIL, FRAME_SLOT,	 FRAME_RANK,
		FRAME_OVERDUE
	};
	static const enum frame_type bare[] = { FRAME_LEAVE, FRAME_PING,
						FRAME_PONG,  FRAME_KILL,
						FRAME_LEFT,  FRAME_LOOK };
	const struct frame_backed backed = { fuzz_random(f), fuzz_random(f) };
	const evc_function table[] = { { .name = "a" }, { .name = "bc" } };
	struct frame_welcome welcome = { 1, 2, 3, some_name(f) };
	struct frame_failed failed = { 1 + (int)fuzz_below(f, 255),
				       some_name(f) };
	struct frame_reply reply = { -(int)fuzz_below(f, 17), 1.5,
				     some_value(f), some_name(f) };
	struct frame_note note = { fuzz_random(f), some_name(f) };
	struct frame_built built = { fuzz_random(f), (int)fuzz_below(f, 256),
				     0.5 };
	evc_engine_update update = some_update(f, 1 + (unsigned)fuzz_below(f, 4));
	evc_engine_def def = { .id = fuzz_random(f),
			       .kind = 1 + (unsigned)fuzz_below(f, 5),
			       .name = some_name(f),
			       .function = some_name(f),
			       .args = some_value(f) };

	size_t most = some_most(f), before = b->n;
	evc_status st;

	switch (fuzz_below(f, 11)) {
	case 0: st = evc__frame_put_welcome(b, most, &welcome); break;
	case 1: st = evc__frame_put_failed(b, most, &failed); break;
	case 2: st = evc__frame_put_reply(b, most, &reply); break;
	case 3: st = evc__frame_put_built(b, &built); break;
	case 4: st = evc__frame_put_variable(b, most, &update); break;
	case 5: st = evc__frame_put_def(b, most, &def); break;
	case 6:
		st = evc__frame_put_hello(b, most, table,
					  (unsigned)fuzz_below(f, 3));
		break;
	case 7: st = evc__frame_put_backed(b, &backed); break;
	case 8: st = evc__frame_put_bare(b, bare[fuzz_below(f, 6)]); break;
	case 9:
		st = evc__frame_put_note(b, notes[fuzz_below(f, 5)], &note);
		break;
	default:
		st = evc__frame_put_number(b, numbers[fuzz_below(f, 9)],
					   note.number);
		break;
	}
	was_put(f, st, b, before);
}

static size_t
make(struct fuzz *f, unsigned char *to, size_t room)
{
	struct bytes b = { 0 };
	size_t n;

	do {
		switch (fuzz_below(f, 3)) {
		case 0: put_task(f, &b); break;
		case 1: put_result(f, &b); break;
		default: put_other(f, &b); break;
		}
	} while (fuzz_once_in(f, 2));
	n = b.n < room ? b.n : room;
	if (n > 0)
		memcpy(to, bytes_at(&b), n);
	bytes_free(&b);
	return n;
}

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED("\xe5\xc1\x02\x0d\0\0\0\0"),
	FUZZ_SEED("\xe5\xc1\x02\x04\0\0\0\x08\0\0\0\0\0\0\0\x05"),
	FUZZ_SEED("GET / HTTP/1.1\r\n\r\n"),
};

FUZZ_MAIN({ .name = "frames",
	    .one = one,
	    .make = make,
	    .seeds = seeds,
	    .n_seeds = sizeof(seeds) / sizeof(seeds[0]) })
