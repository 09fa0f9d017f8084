/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints: variables go to a file, and come back when a cluster is opened.
 * Included by cluster/core/cluster.h, which says what "lock" means at a field.
 */
#ifndef EVC_CLUSTER_CHECKPOINT_H
#define EVC_CLUSTER_CHECKPOINT_H

/* checkpoint.first: an engine that keeps the variables gets those of the file
   before a function runs. */
enum {
	FIRST_NONE,  /* the engine has them, or there are none */
	FIRST_OPEN,  /* the engine has not answered */
	FIRST_FAILED /* the engine has refused them, for good */
};

/* checkpoint.last: the save when the last function has ended or was given up,
   before the engine leaves. */
enum {
	LAST_NONE,
	LAST_WANTED, /* the next turn of the loop begins the save */
	LAST_BEGUN,
	LAST_SKIPPED, /* no loop, or no thread: the runner's join saves
			 variables that are here */
	LAST_OVER
};

struct checkpoint {
	/* lock: saves that failed, one after the other up to the last one */
	uint64_t n_failed;
	/* lock: the time of the last save that succeeded; 0: none has */
	uint64_t saved_ns;
	/* lock: the code and the text of the last save, if it failed */
	evc_status code;
	char text[TEXT_SIZE];
	/* looper: the text of the failure in the log, and its time; "": none
	   since the last save that succeeded */
	char told[TEXT_SIZE];
	uint64_t told_ns;
	/* lock: FIRST_... */
	unsigned first;
	/* lock: LAST_... */
	unsigned last;
	/* creation: the question that gives the variables of the file to the
	   engine; NULL: none, or it was asked */
	struct first_question *question;
	/* lock: the file of the last read or save */
	struct snapshot_file seen;
};

/* ---- checkpoint.c ---- */

/* At open, before the engine: load, and start the looper that saves.  0, or
   refused. */
evc_status evc__checkpoint_open(evc_cluster *cl);
/* At the end of the scope: the last save, if it was not made. */
void evc__checkpoint_last(evc_cluster *cl);
/* The loop is gone, lock not held: no turn begins the last save. */
void evc__checkpoint_skip(evc_cluster *cl);
/* Lock held: has the stop begun, and is the last save still to come? */
bool evc__checkpoint_waits(const evc_cluster *cl);
/* On the loop, lock not held: begin the last save that is wanted. */
void evc__checkpoint_turn(evc_cluster *cl);
/* Lock held: seconds without a save that succeeded; 0: the last save did. */
double evc__checkpoint_unsaved(const evc_cluster *cl, uint64_t now);
/* Is there something to say of it? */
bool evc__checkpoint_is_due(const evc_cluster *cl);
/* In words; nothing when the last save succeeded. */
void evc__checkpoint_describe(const evc_cluster *cl, uint64_t now,
			      struct text *t);

/* ---- checkpoint_write.c ---- */

/* Write the file at the path; if_changed: unless *ret_file is still there and has
   the state *ret_changes.  0, and both are those of the new file if there is
   one; or refused. */
evc_status evc__checkpoint_write(evc_cluster *cl, const char *path,
				 bool if_changed, uint64_t *ret_changes,
				 struct snapshot_file *ret_file);

/* ---- checkpoint_first.c: an engine that keeps the variables ---- */

/* The file at the path is whole, and the last error says why its value is none
   of variables: refused. */
evc_status evc__checkpoint_garbage(const char *path);
/* At open: the variables of the file become the first question.  0, or
   refused. */
evc_status evc__first_open(evc_cluster *cl);
/* The engine is open, the lock not held: ask the first question. */
void evc__first_ask(evc_cluster *cl);
/* Free a question that was never asked. */
void evc__first_forget(evc_cluster *cl);

#endif
