/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The zone: read from a master file, kept as ldns's tree of names, and handed
 * from one version to the next.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dnsd.h"

static void
zone_free(struct zone *z)
{
	if (z->names != NULL)
		ldns_dnssec_zone_deep_free(z->names);
	free(z);
}

/* Is every name the apex or below it?  The first one that is not, or NULL. */
static const ldns_rdf *
stranger(const struct zone *z)
{
	const ldns_rbnode_t *n;

	for (n = ldns_rbtree_first(z->names->names); n != LDNS_RBTREE_NULL;
	     n = ldns_rbtree_next((ldns_rbnode_t *)n)) {
		const ldns_rdf *name = n->key;

		if (ldns_dname_compare(name, z->apex) != 0 &&
		    !ldns_dname_is_subdomain(name, z->apex))
			return name;
	}
	return NULL;
}

/* Fill in what every answer needs.  False: why says what is missing. */
static bool
zone_check(struct zone *z, char *why, size_t n)
{
	const ldns_dnssec_rrsets *soa = NULL;
	const ldns_rdf *name;
	char *text;

	if (z->names->soa != NULL)
		soa = ldns_dnssec_name_find_rrset(z->names->soa,
						  LDNS_RR_TYPE_SOA);
	if (soa == NULL || soa->rrs == NULL) {
		snprintf(why, n, "no SOA record");
		return false;
	}
	z->soa = soa->rrs->rr;
	z->apex = ldns_rr_owner(z->soa);
	z->serial = ldns_rdf2native_int32(ldns_rr_rdf(z->soa, 2));
	z->negative_ttl = ldns_rdf2native_int32(ldns_rr_rdf(z->soa, 6));
	if (z->negative_ttl > ldns_rr_ttl(z->soa))
		z->negative_ttl = ldns_rr_ttl(z->soa);
	name = stranger(z);
	if (name != NULL) {
		text = ldns_rdf2str(name);
		snprintf(why, n, "%s is not in this zone",
			 text != NULL ? text : "a name");
		free(text);
		return false;
	}
	/* A name above one that exists does exist, with no data. */
	if (ldns_dnssec_zone_add_empty_nonterminals(z->names) !=
	    LDNS_STATUS_OK) {
		snprintf(why, n, "out of memory");
		return false;
	}
	return true;
}

/* The file, or NULL: what is no regular one could block, or have no end. */
static FILE *
zone_open(const char *path, struct stat *ret, char *why, size_t n)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *f = NULL;

	if (fd >= 0 && fstat(fd, ret) == 0 && !S_ISREG(ret->st_mode))
		snprintf(why, n, "%s: it is no regular file", path);
	else if (fd < 0 || (f = fdopen(fd, "r")) == NULL)
		snprintf(why, n, "%s: %s", path, strerror(errno));
	if (fd >= 0 && f == NULL)
		close(fd);
	return f;
}

/* Has somebody written to it meanwhile?  Then nobody knows what was read. */
static bool
has_changed(FILE *f, const struct stat *was)
{
	struct stat now;

	return fstat(fileno(f), &now) < 0 || now.st_size != was->st_size ||
	       now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

/* All records of the file.  (ldns_dnssec_zone_new_frm_fp() would do, but it
   loses the memory of what it has read when it meets an error.) */
static ldns_status
read_records(FILE *f, ldns_rr_list *all, int *line)
{
	ldns_rdf *origin = NULL, *owner = NULL;
	ldns_status st = LDNS_STATUS_OK;
	uint32_t ttl = 3600;
	ldns_rr *rr;

	while (st == LDNS_STATUS_OK && !feof(f)) {
		st = ldns_rr_new_frm_fp_l(&rr, f, &ttl, &origin, &owner, line);
		if (st == LDNS_STATUS_SYNTAX_EMPTY ||
		    st == LDNS_STATUS_SYNTAX_TTL ||
		    st == LDNS_STATUS_SYNTAX_ORIGIN) {
			st = ferror(f) ? LDNS_STATUS_FILE_ERR : LDNS_STATUS_OK;
		} else if (st == LDNS_STATUS_OK &&
			   !ldns_rr_list_push_rr(all, rr)) {
			ldns_rr_free(rr);
			st = LDNS_STATUS_MEM_ERR;
		}
	}
	ldns_rdf_deep_free(origin);
	ldns_rdf_deep_free(owner);
	return st;
}

/* Move the records into the tree, each once. */
static ldns_status
plant(ldns_rr_list *all, ldns_dnssec_zone *names)
{
	ldns_status st = LDNS_STATUS_OK;
	ldns_rr *rr, *last = NULL;

	/* From the last to the first: a set is a sorted list, and its head is
	   where something is added at once. */
	ldns_rr_list_sort(all);
	while (st == LDNS_STATUS_OK &&
	       (rr = ldns_rr_list_pop_rr(all)) != NULL) {
		if (last != NULL && ldns_rr_compare(rr, last) == 0) {
			ldns_rr_free(rr);
			continue;
		}
		st = ldns_dnssec_zone_add_rr(names, rr);
		if (st != LDNS_STATUS_OK)
			ldns_rr_free(rr);
		last = rr;
	}
	return st;
}

struct zone *
zone_load(const char *path, char *why, size_t n)
{
	struct zone *z = calloc(1, sizeof(*z));
	ldns_rr_list *all = ldns_rr_list_new();
	struct stat was;
	FILE *f = zone_open(path, &was, why, n);
	ldns_status st = LDNS_STATUS_MEM_ERR;
	bool ok = false, changed = false;
	int line = 0;

	if (f == NULL)
		goto out;
	if (z != NULL && all != NULL) {
		z->names = ldns_dnssec_zone_new();
		if (z->names != NULL)
			st = read_records(f, all, &line);
		changed = has_changed(f, &was);
	}
	if (st == LDNS_STATUS_OK && !changed)
		st = plant(all, z->names);
	if (changed)
		snprintf(why, n, "%s: it changed while it was read", path);
	else if (st == LDNS_STATUS_OK)
		ok = zone_check(z, why, n);
	else
		snprintf(why, n, "%s:%d: %s", path, line,
			 ldns_get_errorstr_by_id(st));
out:
	if (f != NULL)
		fclose(f);
	ldns_rr_list_deep_free(all);
	if (ok) {
		atomic_init(&z->held, 1);
		return z;
	}
	if (z != NULL)
		zone_free(z);
	return NULL;
}

struct zone *
zone_get(struct zone_place *place)
{
	struct zone *z;

	pthread_mutex_lock(&place->lock);
	z = place->zone;
	atomic_fetch_add_explicit(&z->held, 1, memory_order_relaxed);
	pthread_mutex_unlock(&place->lock);
	return z;
}

void
zone_put(struct zone *z)
{
	/* Whoever frees it comes after all who have read it. */
	if (z != NULL && atomic_fetch_sub_explicit(&z->held, 1,
						   memory_order_acq_rel) == 1)
		zone_free(z);
}

void
zone_set(struct zone_place *place, struct zone *z)
{
	struct zone *old;

	pthread_mutex_lock(&place->lock);
	old = place->zone;
	place->zone = z;
	pthread_mutex_unlock(&place->lock);
	zone_put(old);
}
