/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol: what a coordinator and its nodes leave for each other in Redis.
 *
 * The queue stays in the coordinator's memory; Redis carries two pipes for each
 * node, and has the leases and the variables.  All keys of a namespace NS begin
 * with "{NS}:", the hash tag of one slot.
 *
 *     {NS}:ver            string  PROTOCOL_VERSION
 *     {NS}:coord          string  who is the coordinator; gone when its lease is
 *     {NS}:gen            string  the generation G, which grows
 *     {NS}:lease:NODE     string  "G INC"; gone when the node's lease is
 *     {NS}:var            hash    name -> MessagePack bytes
 *     {NS}:count          hash    finished, changes: of the variables; names: "C
 *                                 N", as many there were after the change C
 *     {NS}:G:opts         string  "LEASE_MS MAX_FRAME"
 *     {NS}:G:ev           stream  all nodes -> coordinator
 *     {NS}:G:to:NODE.INC  stream  coordinator -> that life of a node
 *     {NS}:G:beat:NODE.INC  string  which renewal of its lease was the last one
 *     {NS}:G:v:ID         string  a value of VALUE_LEAST bytes or more, of the
 *                                 remote with that id
 *     {NS}:G:seqs         hash    what was answered last, by asker
 *     {NS}:G:state        string  how it goes, for people
 *     {NS}:G:runs         hash    NODE -> what it runs, for people
 *
 * Keys of a generation end by themselves KEYS_PX after their coordinator: it
 * refreshes that time together with its lease.  What stays of a namespace when
 * its cluster was closed: ver, gen, var, count.
 *
 * A node has a name of its own for the life of its process, and an INC, which
 * grows each time that it registers: whoever registers says that of its former
 * lives nothing runs any more.
 *
 * An entry of ev:
 *     w NODE  i INC  s SEQ   d FRAMES      SEQ 0: it registers (FRAME_NODE and
 *                                          FRAME_HELLO), then 1, 2, ...
 *     w NODE  i INC  s "fence"             of this life nothing comes after
 *                                          this that counts
 * An entry of to, with the id "SEQ-1", so that one that is sent again is refused
 * as "equal or smaller" and there once:
 *     d FRAMES             [o SEQ]         o: the same as that number, which was
 *                                          perhaps never there; dropped if it was
 * A node trims its own stream up to what it has read, the coordinator ev.
 *
 * FRAMES are those of wire/frames.h.  FRAME_SLOT says which of the node's
 * workers, and which life of that one, those that follow are about:
 *
 *     to a node           RANK (of the whole node; for each of its workers,
 *                         before the first of its lives begins), TASK, DEF,
 *                         FORGET (of the whole node), KILL,
 *                         CANCEL (of the whole node), CANCEL_ONE, LEAVE (of the
 *                         whole node)
 *     to the coordinator  NODE, HELLO, LEFT (of the whole node), UP, RESULT,
 *                         VALUE, BUILT, OVERDUE, FENCED, GONE, FORGET (of the
 *                         whole node), VARIABLE (a function has asked for
 *                         one, or changed it; once in a life)
 *
 * The number of a TASK is greater than those before it for the same slot; one that
 * comes behind greater ones (see o) is given back, and given anew.
 *
 * An input of a TASK without a value, and the value of a RESULT behind a VALUE,
 * stand in v:ID.  FORGET to the coordinator: that one does not, and a RESULT that
 * gives back the function follows.
 *
 * A life of a slot begins with its UP and ends with its GONE; what comes for
 * another one is dropped.
 *
 * Order, and why nothing is lost or made twice:
 *  - a node sends plain results with XADD, again after a lost connection; the
 *    coordinator drops a SEQ that it has seen.  At most UNANSWERED of them are
 *    on their way, so one that is so much smaller than the greatest was seen.
 *  - results of transactional functions go by SEND, which looks at the lease,
 *    makes the updates and adds the event, or nothing of it; while it is
 *    unanswered the node sends nothing else.
 *  - FENCE takes the lease away and leaves its mark in ev: a SEND before it was
 *    whole and counts, one after it is refused.
 *  - a node ends what it runs a lease after its last renewal, at most.  When that
 *    was the coordinator has seen by its own clock, at the latest when it saw a new
 *    BEAT: it does not ask the server how much of a lease is left, whose clock may
 *    jump, and where a key may be deleted by hand.
 */
#ifndef EVC_REDIS_PROTOCOL_H
#define EVC_REDIS_PROTOCOL_H

#define PROTOCOL_VERSION "1"
#define VALUE_LEAST ((size_t)64 << 10)
#define VALUE_PX 3600000 /* ms that a value stays */
#define KEYS_PX(lease_ms) ((lease_ms) * 10 > 60000 ? (lease_ms) * 10 : 60000)
#define EVENT_BEGUN "begun" /* the field of the first entry of ev */
#define UNANSWERED 32
#define NODE_NAME_ROOM 128

/* The number of a FRAME_GONE. */
#define GONE_RAN 1  /* the oldest that it had may be what has ended it */
#define GONE_IDLE 2 /* it had none: what was on its way to it has not begun */
#define GONE_LEFT 4 /* in good order */

/*
 * The scripts.  Each answers with an array of texts whose first is a word; "ok"
 * where nothing else stands.  A key of another type, or with bytes in it that
 * nobody could have put there, makes an error "GARBAGE KEY: why".
 *
 * Each does all that it does, or answers with an error and has changed nothing:
 * with GARBAGE, READONLY, or OOM when the server has used up its memory.  Even
 * then LOCK, RELEASE, FENCE, RENEW, LEAVE, ALL, REPLACE, and to get a variable
 * work; TAKE, REGISTER, SEND, KEEP and the other operations answer OOM.  (What a user
 * of the server may do must not change while he is logged in: a login asks for
 * what the scripts need.)
 */
enum redis_script {
	/* Become the coordinator: KEYS coord gen ver count var; ARGV id px version
	   least fresh.  fresh 1: with a new generation the two last keys are
	   deleted; 0: what var has then is all that there is; empty: the same
	   cluster goes on.  ok G CHANGES (G greater than least, and no new one where that
	   id has one that is) | taken ID PTTL | version V */
	SCRIPT_TAKE,
	/* Stay it: KEYS coord gen count var; ARGV id G px base.  GONE is "gone"
	   when var has fewer names than after the last change, else empty.  With
	   CHANGES equal to base that is forgotten, and empty: nobody of this
	   cluster has used a variable; base is empty when somebody has.  In SEND,
	   VARIABLE and ALL "gone" stands for all that they would have done.
	   ok CHANGES GONE | lost ID ("": nobody's; another one's: nobody works for G
	   any more) */
	SCRIPT_LOCK,
	/* Be it no more: KEYS coord [of its generation]; ARGV id.  What is of that
	   generation is deleted, and coord, if it is ours.  ok | lost */
	SCRIPT_RELEASE,
	/* Fence a life of a node: KEYS gen lease ev beat; ARGV G "G INC" node
	   inc.  ok BEAT ID-OF-THE-MARK | gen.  BEAT: "" if it is not there */
	SCRIPT_FENCE,
	/* A node registers: KEYS coord gen lease ev; ARGV G "G INC" px node inc
	   frames.  ok | no (no coordinator, another generation, or a later life
	   has that lease).  Said again, it adds its event again. */
	SCRIPT_REGISTER,
	/* It goes on: KEYS coord gen lease beat runs; ARGV G "G INC" px BEAT
	   keys-px node runs (empty: they are what they were).  ok | alone (no
	   coordinator: not renewed) | fenced WHY */
	SCRIPT_RENEW,
	/* It leaves, running nothing: KEYS lease ev; ARGV "G INC" node inc seq
	   frames.  ok | fenced */
	SCRIPT_LEAVE,
	/* Results with updates: KEYS gen lease ev var count seqs; ARGV G "G INC"
	   node inc seq frames n, and for each of the n: frame m, and for each of
	   its m updates: op name value; op 1 adds the number that value is as a
	   text, op 2 sets (no bytes, or nil: removes).  A result whose updates
	   cannot be made has none of them and is left out, so each frame has a
	   FRAME_SLOT of its own before it.  The same seq again: the same answer.
	   ok [INDEX WHY]... (of those) | gone | fenced */
	SCRIPT_SEND,
	/* One operation: KEYS gen OWNER var count seqs; ARGV G OWNER-VALUE asker
	   seq op name a b.  OWNER: the node's lease or coord, which has to have
	   that value.  op 1 add (a: by, as a text), 2 set (a), 3 get, 4 compare (a:
	   expected) and set (b).  The same asker and seq again: the same answer;
	   a smaller one, here and in SEND and REPLACE: an error, nothing is done.
	   ok VALUE (its bytes; of 1 and 3) | none | other | number (it is none) |
	   gone | fenced */
	SCRIPT_VARIABLE,
	/* All variables: KEYS gen coord var count; ARGV G id what ("counts": no
	   NAMEs, else "all").
	   ok FINISHED CHANGES [NAME VALUE]... | gone | fenced */
	SCRIPT_ALL,
	/* These in place of all: KEYS gen coord var count seqs; ARGV G id seq
	   finished [name value]...  ok | fenced */
	SCRIPT_REPLACE,
	/* The value of a result that follows, if that will count: KEYS gen lease
	   v; ARGV G "G INC" px bytes.  What v was does not matter.  ok | fenced */
	SCRIPT_KEEP,
	SCRIPTS
};

#endif
