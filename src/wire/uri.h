/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of engines: SCHEME://PLACE?NAME=VALUE&NAME=VALUE.
 */
#ifndef EVC_WIRE_URI_H
#define EVC_WIRE_URI_H

#include <evcoord/types.h>

struct cluster_uri {
	char scheme[16];
	char *place;    /* the text between :// and ?; or "" */
	char **options; /* NAME=VALUE, decoded; NULL at the end */
};

/* 0, or refused with a text. */
evc_status evc__uri_parse(const char *uri, struct cluster_uri *ret_uri);
void evc__uri_free(struct cluster_uri *u);
/* The value of the index-th option NAME; NULL: no such option. */
const char *evc__uri_option(const char *const *options, const char *name,
			    unsigned index);
/* A whole number of 1..most; "" gives 0. false: another text. */
bool evc__uri_number(const char *text, unsigned most, unsigned *ret);

#endif
