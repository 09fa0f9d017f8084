/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopers of a loop: their memory, and a heap by due time.  A tick moves an
 * entry from the top of the heap to the bottom, past about eight others among a
 * hundred thousand; touching each of these loopers would wait for memory.  So
 * due times, numbers and places stand in dense arrays, and a number leads to a
 * looper in chunks that never move.  A heap node has four children.
 * Called by: looper_loop.c and looper_timer.c.
 * Locks: the coordinator's lock.
 */
#include "core/core.h"
#include "members/looper_loop.h"

#define CHILDREN 4u
#define LINE 64
/* Loopers in a chunk; the first chunk is small, for most loops have few. */
#define CHUNK 64u
#define FIRST_CHUNK 4u

/* ---- numbers ---- */

TICK_PATH static struct evc__looper *
numbered(const struct evc__heap *h, uint32_t number)
{
	if (number < FIRST_CHUNK)
		return h->chunk[0] + number;
	number -= FIRST_CHUNK;
	return h->chunk[1 + number / CHUNK] + number % CHUNK;
}

static uint32_t
chunks_for(uint32_t loopers)
{
	return loopers <= FIRST_CHUNK ?
		       1 :
		       1 + (loopers - FIRST_CHUNK + CHUNK - 1) / CHUNK;
}

/* ---- the heap ---- */

struct heap_entry {
	uint64_t due;
	uint32_t number;
};

static uint32_t
parent_of(uint32_t at)
{
	return (at - HEAP_FIRST - 1) / CHILDREN + HEAP_FIRST;
}

static uint32_t
first_child(uint32_t at)
{
	return (at - HEAP_FIRST) * CHILDREN + HEAP_FIRST + 1;
}

static uint32_t
heap_end(const struct evc__heap *h)
{
	return HEAP_FIRST + h->n;
}

TICK_PATH static void
set_entry(struct evc__heap *h, uint32_t at, struct heap_entry s)
{
	h->due[at] = s.due;
	h->number[at] = s.number;
	h->place[s.number] = at;
}

TICK_PATH static struct heap_entry
get_entry(const struct evc__heap *h, uint32_t at)
{
	return (struct heap_entry){ h->due[at], h->number[at] };
}

TICK_PATH static void
sift_up(struct evc__heap *h, uint32_t at, struct heap_entry s)
{
	while (at > HEAP_FIRST && h->due[parent_of(at)] > s.due) {
		set_entry(h, at, get_entry(h, parent_of(at)));
		at = parent_of(at);
	}
	set_entry(h, at, s);
}

TICK_PATH static uint32_t
earliest(const struct evc__heap *h, uint32_t child)
{
	uint32_t best = child, i;

	for (i = child + 1; i < child + CHILDREN && i < heap_end(h); i++)
		if (h->due[i] < h->due[best])
			best = i;
	return best;
}

TICK_PATH static void
sift_down(struct evc__heap *h, uint32_t at, struct heap_entry s)
{
	uint32_t child;

	while ((child = first_child(at)) < heap_end(h)) {
		child = earliest(h, child);
		if (h->due[child] >= s.due)
			break;
		set_entry(h, at, get_entry(h, child));
		at = child;
	}
	set_entry(h, at, s);
}

/* Put s into the free place `at`, and move s up or down to its place in the
   order. */
TICK_PATH static void
move_entry(struct evc__heap *h, uint32_t at, struct heap_entry s)
{
	if (at > HEAP_FIRST && h->due[parent_of(at)] > s.due)
		sift_up(h, at, s);
	else
		sift_down(h, at, s);
}

TICK_PATH struct evc__looper *
evc__heap_at(const struct evc__heap *h, uint32_t i)
{
	return numbered(h, h->number[HEAP_FIRST + i]);
}

TICK_PATH uint64_t
evc__heap_first_due(const struct evc__heap *h)
{
	return h->n > 0 ? h->due[HEAP_FIRST] : SCHEDULE_NEVER;
}

TICK_PATH void
evc__heap_fetch_second(const struct evc__heap *h)
{
	const char *second;

	if (h->n < 2)
		return;
	second = (char *)numbered(h, h->number[earliest(h, HEAP_FIRST + 1)]);
	__builtin_prefetch(second, 1);
	__builtin_prefetch(second + LINE, 1);
}

TICK_PATH void
evc__heap_set(struct evc__heap *h, struct evc__looper *l, uint64_t due)
{
	move_entry(h, h->place[l->body.number],
		   (struct heap_entry){ due, l->body.number });
}

/* ---- memory ---- */

/* Make room in the four arrays, which share a block. */
static bool
grow_heap(struct evc__heap *h, uint32_t room)
{
	struct evc__heap new = { .n = h->n, .made = h->made, .room = room,
				 .free = h->free };
	size_t slots = HEAP_FIRST + room;
	char *p = sync_alloc_aligned(LINE, slots * 12 + room * 4 +
						   (chunks_for(room) + 1) *
							   sizeof *h->chunk);

	if (p == NULL)
		return false;
	new.due = (uint64_t *)(void *)p;
	new.chunk = (struct evc__looper **)(void *)(p + slots * 8);
	new.number = (uint32_t *)(void *)(new.chunk + chunks_for(room));
	new.place = new.number + slots;
	if (h->due != NULL) {
		memcpy(new.due, h->due, heap_end(h) * sizeof *h->due);
		memcpy(new.number, h->number, heap_end(h) * sizeof *h->number);
		memcpy(new.place, h->place, h->made * sizeof *h->place);
		memcpy(new.chunk, h->chunk,
		       chunks_for(h->room) * sizeof(*h->chunk));
	}
	sync_free(h->due);
	*h = new;
	return true;
}

bool
evc__heap_room(struct evc__heap *h)
{
	struct evc__looper **chunk;

	if (h->free != NULL)
		return true;
	/* In small steps: there may be a hundred thousand. */
	if (h->made == h->room && !grow_heap(h, h->room + h->room / 16 + 8))
		return false;
	chunk = &h->chunk[chunks_for(h->made + 1) - 1];
	if (*chunk == NULL)
		*chunk = sync_alloc_aligned(LINE,
					    (h->made < FIRST_CHUNK ?
						     FIRST_CHUNK :
						     CHUNK) *
						    sizeof **chunk);
	return *chunk != NULL;
}

struct evc__looper *
evc__heap_new(struct evc__heap *h)
{
	struct evc__looper *l = h->free;
	uint32_t number = h->made;

	if (l != NULL) {
		h->free = l->again;
		number = l->body.number;
		memset(l, 0, sizeof *l);
	} else
		l = numbered(h, h->made++);
	l->body.number = number;
	h->n++;
	set_entry(h, heap_end(h) - 1,
		  (struct heap_entry){ SCHEDULE_NEVER, number });
	return l;
}

void
evc__heap_delete(struct evc__heap *h, struct evc__looper *l)
{
	uint32_t at = h->place[l->body.number];

	h->n--;
	if (at != heap_end(h))
		move_entry(h, at, get_entry(h, heap_end(h)));
	l->again = h->free;
	h->free = l;
	/* The memory goes with the last looper, unless it is small. */
	if (h->n == 0 && h->made > FIRST_CHUNK)
		evc__heap_free(h);
}

void
evc__heap_free(struct evc__heap *h)
{
	uint32_t i;

	for (i = 0; h->room > 0 && i < chunks_for(h->room); i++)
		sync_free(h->chunk[i]);
	sync_free(h->due);
	memset(h, 0, sizeof *h);
}
