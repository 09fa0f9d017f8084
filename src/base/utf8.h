/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UTF-8 characters of untrusted text.
 */
#ifndef EVC_BASE_UTF8_H
#define EVC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the character at s, which is not the final 0 byte; 0: no
   UTF-8. */
size_t evc__utf8(const char *s, uint32_t *ret);
/* The length of a text that was cut after n bytes, without half of a character
   at its end. */
size_t evc__utf8_cut(const char *s, size_t n);
/* Is the character visible?  Not controls, line separators, or marks that
   change the direction of text. */
bool evc__utf8_visible(uint32_t v);

#endif
