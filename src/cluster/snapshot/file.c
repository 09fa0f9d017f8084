/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts that the writer and the reader of a snapshot share; see snapshot.h.
 * Called by: snapshot.c and read.c.
 * Locks: none.
 */
#include "cluster/snapshot/snapshot.h"

#include <evcoord.h>

static evc_status
status_of(int e)
{
	switch (e) {
	case ENOENT:
	case ENOTDIR:
		return -EVC_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return -EVC_PERMISSION_DENIED;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return -EVC_RESOURCE_EXHAUSTED;
	case EINVAL:
	case EISDIR:
	case ENAMETOOLONG:
		return -EVC_INVALID_ARGUMENT;
	default:
		return -EVC_UNAVAILABLE;
	}
}

evc_status
evc__snapshot_refuse(const char *path, const char *what, int e)
{
	return evc_refuse(status_of(e), "%s: %s: %s", path, what,
			  strerror(e));
}

evc_status
evc__snapshot_no_file(const char *path)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s is no file", path);
}

/* The addend of each byte to the CRC-32 of IEEE 802.3, as in gzip. */
static void
make_table(uint32_t table[static 256])
{
	unsigned byte, bit;

	for (byte = 0; byte < 256; byte++) {
		table[byte] = byte;
		for (bit = 0; bit < 8; bit++)
			table[byte] = table[byte] >> 1 ^
				      (table[byte] & 1 ? 0xedb88320 : 0);
	}
}

static uint32_t
crc_on(const uint32_t table[static 256], uint32_t crc, const void *bytes,
       size_t n)
{
	const unsigned char *p = bytes;

	for (; n > 0; n--)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

uint32_t
evc__snapshot_crc(const unsigned char *head, const evc_value *parts, size_t n)
{
	/* The table costs nothing beside a write to the disk. */
	uint32_t table[256], crc;
	size_t i;

	make_table(table);
	crc = crc_on(table, UINT32_MAX, head + VERSION_AT, CRC_AT - VERSION_AT);
	for (i = 0; i < n; i++)
		crc = crc_on(table, crc, parts[i].data, parts[i].size);
	return ~crc;
}

evc_status
evc__snapshot_check_path(const char *path)
{
	return path != NULL && path[0] != '\0'
		       ? 0
		       : evc_refuse(-EVC_INVALID_ARGUMENT,
				    "a file has to have a name");
}
