/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a worker's end: what has happened, and its last words.
 */
#ifndef EVC_ENGINE_DEATH_H
#define EVC_ENGINE_DEATH_H

/* Bytes of such a text.  A longer one has lost its middle. */
#define DEATH_SIZE 4608
/* The same in a line of the log. */
#define DEATH_LINE 400

#endif
