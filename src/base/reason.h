/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words for parts of a reason, which all reports share.
 */
#ifndef EVC_BASE_REASON_H
#define EVC_BASE_REASON_H

#include "base/text.h"

/* "request"; kind: EVC_BY_... */
const char *evc__reason_kind(unsigned kind);
/* ": errno's meaning [func() at file:line]", as far as these are given: err 0
   and "" are not. */
void evc__text_place(struct text *t, int err, const char *file, int line,
		     const char *func);

#endif
