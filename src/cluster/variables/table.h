/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the variables: the content of a variable, and the table.  Lock held
 * everywhere.
 */
#ifndef EVC_CLUSTER_VARIABLE_TABLE_H
#define EVC_CLUSTER_VARIABLE_TABLE_H

#include "cluster/variables/variable.h"

#define CONTENT_SMALL 16 /* bytes of a value without memory of its own */

/* The bytes of a value; of size 0: the variable is not there. */
struct content {
	size_t size;
	unsigned char *big; /* NULL: the bytes are in `small` */
	unsigned char small[CONTENT_SMALL];
	bool is_number;
	double number;      /* the number as a double, if is_number */
};

struct variable {
	struct table_name at;
	unsigned n_held;    /* earlier contents that an operation holds for an
			       undo */
	struct content is;
	char name[];
};

static inline evc_value
content_value(const struct content *c)
{
	return (evc_value){ c->size == 0 ? NULL :
			    c->big != NULL ? c->big : c->small, c->size };
}

static inline bool
bytes_are_equal(const evc_value *a, const evc_value *b)
{
	return a->size == b->size &&
	       (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* ---- content.c ---- */

/* 0, or refused: the value may not be a variable's. */
evc_status evc__content_check(const char *name, const evc_value *v);
/* The content of a value that was checked; of size 0 for nil.  0, or refused: no
   memory. */
evc_status evc__content_make(const evc_value *v, struct content *ret);
/* The text of evc_last_error before a read of a number.  A missing variable is 0:
   -EVC_NOT_FOUND becomes 0, with the text as before. */
struct said {
	char text[160];
};
struct said evc__said_before(void);
evc_status evc__missing_is_zero(evc_status st, const struct said *before);
/* The number of a variable with this value; nil: 0. */
evc_status evc__content_number(const char *name, const evc_value *v,
			       double *ret);
/* An integer, while a double says the number exactly. */
void evc__content_of_number(double x, struct content *ret);

/* A string of MessagePack: the SHA-1 of a value in hexadecimal digits. */
#define CONTENT_HASH_SIZE (2 + 40)
void evc__content_hash(const evc_value *v, char ret[CONTENT_HASH_SIZE]);

/* ---- table.c ---- */

struct variable *evc__variable_find(struct variables *v, const char *name);
/* The variable of this name, made without a content if need be; NULL: no
   memory. */
struct variable *evc__variable_make(struct variables *v, const char *name);
/* A variable without a content, and without an undo to come, goes. */
void evc__variable_remove_if_gone(struct variables *v, struct variable *x);

#endif
