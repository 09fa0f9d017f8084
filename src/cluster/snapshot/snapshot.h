/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts that the writer and the reader of a snapshot share.
 *
 * The file: 8 bytes of magic, the version (4), the length of the body (8), the
 * CRC-32 of version, length and body (4), the body; all numbers in network
 * order.
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

/* The sum over the head and the n parts of the body. */
uint32_t evc__snapshot_crc(const unsigned char *head, const evc_value *parts,
			   size_t n);

/* The refusal for an errno value. */
evc_status evc__snapshot_refuse(const char *path, const char *what, int e);
evc_status evc__snapshot_no_file(const char *path);
/* 0, or refused: the path is empty. */
evc_status evc__snapshot_check_path(const char *path);

#endif
