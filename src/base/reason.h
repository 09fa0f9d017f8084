/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words for parts of a reason, which all reports share.
 */
#ifndef EVC_BASE_REASON_H
#define EVC_BASE_REASON_H

#include "base/text.h"

/* "request"; kind: EVC_BY_... */
const char *evc__reason_kind(unsigned kind);
/* ": errno's meaning", unless err is 0 or `said` ends with that. */
void evc__text_errno(struct text *t, const char *said, int err);
/* " [func() at file:line]", as far as these are not "". */
void evc__text_place(struct text *t, const char *file, int line,
		     const char *func);

#endif
