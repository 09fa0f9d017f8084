/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by texts for a person.
 */
#ifndef EVC_OBSERVE_OBSERVE_H
#define EVC_OBSERVE_OBSERVE_H

#include <evcoord.h>

#include "base/text.h"

/* ": errno's meaning [func() at file:line]", as far as r has these. */
void evc__add_errno_and_place(struct text *t, const evc_reason *r);

#endif
