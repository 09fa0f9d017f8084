/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a query to the bytes of its answer.
 *
 * An authoritative server of one zone: CNAMEs are followed inside it,
 * wildcards stand for what is not there, a delegation is a referral with the
 * addresses that are known.  ldns reads and writes the packets.
 */
#include <stdlib.h>
#include <string.h>

#include "dnsd.h"

#define HEADER 12     /* bytes of a DNS header */
#define UDP_PLAIN 512 /* bytes over UDP that every client takes */
#define HOPS 8        /* CNAMEs in a row */

/* The names that decide about an answer. */
struct match {
	const ldns_dnssec_name *self; /* where the data are, or NULL */
	const ldns_dnssec_name *cut;  /* the highest delegation above, or NULL */
	bool wild;                    /* self is a wildcard */
};

static const ldns_dnssec_name *
name_at(const struct zone *z, const ldns_rdf *dname)
{
	const ldns_rbnode_t *n = ldns_rbtree_search(z->names->names, dname);

	return n != NULL ? n->data : NULL;
}

static const ldns_dnssec_rrsets *
rrset_at(const ldns_dnssec_name *name, ldns_rr_type type)
{
	return name == NULL ? NULL : type == LDNS_RR_TYPE_ANY ? name->rrsets :
	       ldns_dnssec_name_find_rrset(name, type);
}

static bool
in_zone(const struct zone *z, const ldns_rdf *name)
{
	return ldns_dname_compare(name, z->apex) == 0 ||
	       ldns_dname_is_subdomain(name, z->apex);
}

/* The name "*" below that one, or NULL. */
static const ldns_dnssec_name *
wildcard_below(const struct zone *z, const ldns_dnssec_name *name)
{
	ldns_rdf *star = ldns_dname_new_frm_str("*");
	const ldns_dnssec_name *found = NULL;

	if (star != NULL &&
	    ldns_dname_cat(star, ldns_dnssec_name_name(name)) == LDNS_STATUS_OK)
		found = name_at(z, star);
	ldns_rdf_deep_free(star);
	return found;
}

/* Look up a name of the zone.  False: out of memory. */
static bool
zone_find(const struct zone *z, const ldns_rdf *name, struct match *m)
{
	const ldns_dnssec_name *closest = NULL, *here;
	ldns_rdf *at = ldns_rdf_clone(name), *up;
	bool exact = false;

	*m = (struct match){ 0 };
	while (at != NULL) {
		here = name_at(z, at);
		if (here != NULL && closest == NULL) {
			closest = here;
			exact = ldns_dname_compare(at, name) == 0;
		}
		if (ldns_dname_compare(at, z->apex) == 0)
			break;
		if (rrset_at(here, LDNS_RR_TYPE_NS) != NULL)
			m->cut = here;
		up = ldns_dname_left_chop(at);
		ldns_rdf_deep_free(at);
		at = up;
	}
	if (at == NULL)
		return false;
	ldns_rdf_deep_free(at);
	m->wild = !exact;
	m->self = exact ? closest : wildcard_below(z, closest);
	return true;
}

/* Add a set of records, with another owner unless that is NULL.  False: out of
   memory. */
static bool
add(ldns_pkt *p, ldns_pkt_section where, const ldns_dnssec_rrsets *set,
    const ldns_rdf *owner)
{
	const ldns_dnssec_rrs *r;

	for (r = set != NULL ? set->rrs : NULL; r != NULL; r = r->next) {
		ldns_rr *rr = ldns_rr_clone(r->rr);

		if (rr == NULL)
			return false;
		if (owner != NULL) {
			ldns_rdf_deep_free(ldns_rr_owner(rr));
			ldns_rr_set_owner(rr, ldns_rdf_clone(owner));
		}
		if (!ldns_pkt_push_rr(p, where, rr)) {
			ldns_rr_free(rr);
			return false;
		}
	}
	return true;
}

/* The SOA record, which says how long "no" is true. */
static bool
add_soa(ldns_pkt *p, const struct zone *z)
{
	ldns_rr *rr = ldns_rr_clone(z->soa);

	if (rr == NULL)
		return false;
	ldns_rr_set_ttl(rr, z->negative_ttl);
	if (ldns_pkt_push_rr(p, LDNS_SECTION_AUTHORITY, rr))
		return true;
	ldns_rr_free(rr);
	return false;
}

/* A referral: the name servers of that delegation, and their addresses as far
   as they stand in this zone. */
static bool
add_referral(ldns_pkt *p, const struct zone *z, const ldns_dnssec_name *cut)
{
	const ldns_dnssec_rrsets *ns = rrset_at(cut, LDNS_RR_TYPE_NS);
	const ldns_dnssec_rrs *r;

	ldns_pkt_set_aa(p, false);
	if (!add(p, LDNS_SECTION_AUTHORITY, ns, NULL))
		return false;
	for (r = ns->rrs; r != NULL; r = r->next) {
		const ldns_dnssec_name *n = name_at(z, ldns_rr_rdf(r->rr, 0));

		if (!add(p, LDNS_SECTION_ADDITIONAL,
			 rrset_at(n, LDNS_RR_TYPE_A), NULL) ||
		    !add(p, LDNS_SECTION_ADDITIONAL,
			 rrset_at(n, LDNS_RR_TYPE_AAAA), NULL))
			return false;
	}
	return true;
}

/* Answer the question in p's sections: the response code. */
static ldns_pkt_rcode
resolve(ldns_pkt *p, const struct zone *z, const ldns_rdf *name,
	ldns_rr_type type)
{
	const ldns_dnssec_rrsets *set;
	const ldns_rdf *owner;
	struct match m;

	if (!in_zone(z, name) || type == LDNS_RR_TYPE_AXFR ||
	    type == LDNS_RR_TYPE_IXFR)
		return LDNS_RCODE_REFUSED;
	ldns_pkt_set_aa(p, true);
	for (int hop = 0; hop < HOPS && in_zone(z, name); hop++) {
		if (!zone_find(z, name, &m))
			return LDNS_RCODE_SERVFAIL;
		if (m.cut != NULL)
			return add_referral(p, z, m.cut) ? LDNS_RCODE_NOERROR :
			       LDNS_RCODE_SERVFAIL;
		owner = m.wild ? name : NULL;
		set = rrset_at(m.self, type);
		if (set != NULL)
			return add(p, LDNS_SECTION_ANSWER, set, owner) ?
			       LDNS_RCODE_NOERROR : LDNS_RCODE_SERVFAIL;
		set = rrset_at(m.self, LDNS_RR_TYPE_CNAME);
		if (set == NULL) {
			if (!add_soa(p, z))
				return LDNS_RCODE_SERVFAIL;
			return m.self != NULL ? LDNS_RCODE_NOERROR :
			       LDNS_RCODE_NXDOMAIN;
		}
		if (ldns_rr_list_contains_rr(ldns_pkt_answer(p), set->rrs->rr))
			return LDNS_RCODE_NOERROR; /* they go in a circle */
		if (!add(p, LDNS_SECTION_ANSWER, set, owner))
			return LDNS_RCODE_SERVFAIL;
		name = ldns_rr_rdf(set->rrs->rr, 0);
	}
	return LDNS_RCODE_NOERROR; /* the resolver goes on elsewhere */
}

/* Nothing but a header: what is said to a query that has none better. */
static size_t
only_header(const uint8_t *query, ldns_pkt_rcode rcode, ldns_buffer *out)
{
	uint8_t head[HEADER] = { query[0], query[1] };

	head[2] = 0x80 | (query[2] & 0x79); /* QR, their opcode, their RD */
	head[3] = (uint8_t)rcode;
	ldns_buffer_clear(out);
	ldns_buffer_write(out, head, sizeof(head));
	return HEADER;
}

/* The bytes of p.  0: they do not fit. */
static size_t
packet_write(const ldns_pkt *p, size_t most, ldns_buffer *out)
{
	ldns_buffer_clear(out);
	if (ldns_pkt2buffer_wire(out, p) != LDNS_STATUS_OK ||
	    ldns_buffer_position(out) > most)
		return 0;
	return ldns_buffer_position(out);
}

/* A packet that answers q, with its question and no answer yet; or NULL. */
static ldns_pkt *
packet_for(const ldns_pkt *q, ldns_rr *question)
{
	ldns_pkt *p = ldns_pkt_new();
	ldns_rr *copy = ldns_rr_clone(question);

	if (p == NULL || copy == NULL ||
	    !ldns_pkt_push_rr(p, LDNS_SECTION_QUESTION, copy)) {
		ldns_rr_free(copy);
		ldns_pkt_free(p);
		return NULL;
	}
	ldns_pkt_set_id(p, ldns_pkt_id(q));
	ldns_pkt_set_qr(p, true);
	ldns_pkt_set_rd(p, ldns_pkt_rd(q));
	if (ldns_pkt_edns(q))
		ldns_pkt_set_edns_udp_size(p, UDP_MOST);
	return p;
}

static size_t
answer_packet(const struct zone *z, const ldns_pkt *q, bool udp,
	      ldns_buffer *out)
{
	ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(q), 0);
	ldns_pkt *p = packet_for(q, question);
	ldns_pkt_rcode rcode = LDNS_RCODE_REFUSED;
	size_t most = UDP_PLAIN, n;

	if (p == NULL)
		return 0;
	if (ldns_pkt_edns(q) && ldns_pkt_edns_udp_size(q) > most)
		most = ldns_pkt_edns_udp_size(q);
	if (most > UDP_MOST)
		most = UDP_MOST;
	if (!udp)
		most = LDNS_MAX_PACKETLEN;

	if (ldns_pkt_edns(q) && ldns_pkt_edns_version(q) != 0) {
		ldns_pkt_set_edns_extended_rcode(p, 1); /* BADVERS */
		rcode = LDNS_RCODE_NOERROR;
	} else if (ldns_rr_get_class(question) == LDNS_RR_CLASS_IN) {
		rcode = resolve(p, z, ldns_rr_owner(question),
				ldns_rr_get_type(question));
	}
	ldns_pkt_set_rcode(p, rcode);
	n = packet_write(p, most, out);
	if (n == 0) {
		/* Too long: say so, with nothing in it. */
		ldns_pkt *bare = packet_for(q, question);

		if (bare != NULL) {
			ldns_pkt_set_aa(bare, ldns_pkt_aa(p));
			ldns_pkt_set_tc(bare, true);
			ldns_pkt_set_rcode(bare, rcode);
			n = packet_write(bare, most, out);
			ldns_pkt_free(bare);
		}
	}
	ldns_pkt_free(p);
	return n;
}

size_t
dns_answer(const struct zone *z, const uint8_t *query, size_t len, bool udp,
	   ldns_buffer *out)
{
	ldns_pkt *q;
	size_t n;

	/* Never answer an answer: two servers would not come to an end. */
	if (len < HEADER || (query[2] & 0x80) != 0)
		return 0;
	if (((query[2] >> 3) & 15) != LDNS_PACKET_QUERY)
		return only_header(query, LDNS_RCODE_NOTIMPL, out);
	if (LDNS_QDCOUNT(query) != 1 ||
	    ldns_wire2pkt(&q, query, len) != LDNS_STATUS_OK)
		return only_header(query, LDNS_RCODE_FORMERR, out);
	n = answer_packet(z, q, udp, out);
	ldns_pkt_free(q);
	return n != 0 ? n : only_header(query, LDNS_RCODE_SERVFAIL, out);
}
