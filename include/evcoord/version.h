/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The version of these headers.  configure.ac reads it from here, so that it
 * stands in one place only.
 */
#ifndef EVCOORD_VERSION_H
#define EVCOORD_VERSION_H

#define EVC_VERSION_MAJOR 0
#define EVC_VERSION_MINOR 2
#define EVC_VERSION_PATCH 0
#define EVC_VERSION_STRING "0.2.0"

/* One number to compare with: 0xMMmmpp. */
#define EVC_VERSION_NUMBER \
	((EVC_VERSION_MAJOR << 16) | (EVC_VERSION_MINOR << 8) | \
	 EVC_VERSION_PATCH)

#endif
