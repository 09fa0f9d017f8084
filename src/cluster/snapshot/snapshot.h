/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What writing and reading a snapshot have in common.
 *
 * The file: 8 bytes that say what it is, the version (4), the length of the
 * body (8), the CRC-32 of version, length and body (4), the body; all numbers
 * in network order.
 */
#ifndef EVC_CLUSTER_SNAPSHOT_H
#define EVC_CLUSTER_SNAPSHOT_H

#include "cluster/variables/variable.h"

#define SNAPSHOT_MAGIC "evcsnap\n"
#define SNAPSHOT_VERSION 1

#define VERSION_AT 8
#define LENGTH_AT 12
#define CRC_AT 20
#define HEAD_SIZE 24

uint32_t evc__snapshot_crc(const unsigned char *head, const evc_value *body);

/* The refusal for an errno value. */
evc_status evc__snapshot_refuse(const char *path, const char *what, int e);
evc_status evc__snapshot_no_file(const char *path);
/* Has it a name at all? */
evc_status evc__snapshot_check_path(const char *path);
/* The first n bytes, and tail; NULL: no memory. */
char *evc__snapshot_joined(const char *path, size_t n, const char *tail);

/* ---- snapshot_lock.c ---- */

/* Who writes a file: one at a time. */
struct snapshot_lock {
	char *path; /* of the file that is locked */
	int fd;     /* -1: this file system has no locks, */
	long owner; /* and then: what tells our files from others'; else 0 */
};

char *evc__snapshot_lock_name(const char *path);
/* Wait so long, at most.  0, and evc__snapshot_unlock gives it back; or
   refused. */
evc_status evc__snapshot_lock(struct snapshot_lock *l, const char *path,
			      uint64_t patience_ns);
void evc__snapshot_unlock(struct snapshot_lock *l);

#endif
