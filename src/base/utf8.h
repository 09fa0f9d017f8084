/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Characters of texts that anybody may have written.
 */
#ifndef EVC_BASE_UTF8_H
#define EVC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the character at s has, which is not at the end of its text;
   0: it is no UTF-8. */
size_t evc__utf8(const char *s, uint32_t *ret);
/* A text was cut after n bytes: how many are left without half a character at
   its end. */
size_t evc__utf8_cut(const char *s, size_t n);
/* Can people read it?  Not what a terminal obeys, what begins a line, or what
   turns the direction of those around. */
bool evc__utf8_visible(uint32_t v);

#endif
