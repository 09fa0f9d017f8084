/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over MessagePack bytes that trusts none of them: it reads heads, checks
 * every length against what is left, and allocates nothing.  All that is read
 * is read in this way.
 *
 * PURE: bytes in, numbers out.
 */
#ifndef EVC_CLUSTER_WALK_H
#define EVC_CLUSTER_WALK_H

#include <evcoord/value.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A remote or a per-worker value inside a value: an extension of 12 bytes, the
   cluster's serial and the id, both in network order. */
#define EXT_REMOTE 0x45
#define EXT_PER_WORKER 0x46
#define EXT_SIZE 12
#define REF_BYTES 15 /* head (ext8, length, type) and the 12 bytes */

struct walk_ref {
	bool per_worker; /* else a remote */
	uint32_t serial;
	uint64_t id;
	size_t at, size; /* where its bytes stand in the value */
};

/* Check one whole value of n bytes with nothing behind it; a value of no bytes
   is nil.  ref (may be NULL) is called for each reference in it; false ends the
   walk with 0.  0, or -EVC_INVALID_ARGUMENT with a text (evc_refuse). */
evc_status evc__value_walk(const void *bytes, size_t n,
			   bool (*ref)(const struct walk_ref *r, void *arg),
			   void *arg);

/* Write the 15 bytes of a reference. */
void evc__walk_put_ref(unsigned char *to, bool per_worker, uint32_t serial,
		       uint64_t id);

/* A copy of a checked value with other values in the places of its remotes:
   resolve gives the value of one (its bytes must stay during the call); one that
   answers false stays as it is.  0; -EVC_RESOURCE_EXHAUSTED;
   -EVC_INVALID_ARGUMENT when the result would be too deep. */
evc_status evc__walk_splice(const evc_value *value,
			    bool (*resolve)(const struct walk_ref *r,
					    evc_value *ret, void *arg),
			    void *arg, evc_value *ret_value);

/* The owner of remotes and per-worker values says what stands for one in a
   value.  remote: 0, or a refusal without a text: -EVC_RESOURCE_EXHAUSTED, no
   memory; -EVC_FAILED_PRECONDITION, a remote of a fork child's parent. */
struct pack_refs {
	evc_status (*remote)(evc_remote *r, uint32_t *ret_serial,
			     uint64_t *ret_id);
	void (*per_worker)(const evc_per_worker *p, uint32_t *ret_serial,
			   uint64_t *ret_id);
};

/* As evc_unpack and evc_pack, for who has more to say: local gives what stands
   for a per-worker value ("w"); NULL: refused. */
struct unpack_env {
	bool (*local)(const struct walk_ref *r, evc_local **ret, void *arg);
	void *arg;
};
evc_status evc__unpack(const evc_value *value, const struct unpack_env *env,
		       const char *format, va_list ap);
/* refs: for "r" and "w"; NULL: neither may stand there. */
evc_status evc__pack(evc_value *ret_value, const struct pack_refs *refs,
		     const char *format, va_list ap);

#endif
