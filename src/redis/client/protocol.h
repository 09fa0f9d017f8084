/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol: what a coordinator and its nodes write for each other in Redis.
 *
 * The queue stays in the coordinator's memory.  Redis carries two streams for
 * each node, the leases and the variables.  All keys of a namespace NS begin
 * with "{NS}:", the hash tag of one slot.
 *
 *     {NS}:ver            string  PROTOCOL_VERSION
 *     {NS}:coord          string  id of the coordinator; ends with its lease
 *     {NS}:gen            string  the generation G, which grows
 *     {NS}:lease:NODE     string  "G INC"; ends with the node's lease
 *     {NS}:var            hash    name -> MessagePack bytes; of a vector its
 *                                 size, and its numbers in chunks (below)
 *     {NS}:count          hash    finished; changes: of variables; names:
 *                                 "C N", N variables after change C; whole:
 *                                 since a generation began, nobody has deleted
 *                                 the key; loaded: generation that last put
 *                                 a checkpoint in place, or began without
 *                                 variables of others
 *     {NS}:pre            hash    while a snapshot is read: "" -> its mark
 *                                 "G N", and name -> bytes of each variable
 *                                 changed since, at the mark (none: there was
 *                                 no such variable)
 *     {NS}:new            hash    variables of a load, and "" -> their
 *                                 mark "G N"
 *     {NS}:G:opts         string  "LEASE_MS MAX_FRAME"
 *     {NS}:G:ev           stream  all nodes -> coordinator
 *     {NS}:G:to:NODE.INC  stream  coordinator -> that session of a node
 *     {NS}:G:beat:NODE.INC  string  "BEAT SEQ": numbers of the lease's last
 *                                 renewal, and of the last entry with an answer
 *     {NS}:G:v:ID         string  an input of VALUE_LEAST bytes or more, of the
 *                                 remote with that id
 *     {NS}:G:seqs         hash    asker -> number and text of the last answer;
 *                                 "" is the mark of the coordinator
 *     {NS}:G:state        string  state of the cluster, for people (state.c)
 *     {NS}:G:runs         hash    NODE -> what its workers run (node.h)
 *
 * Keys of a generation end KEYS_PX after their coordinator, which refreshes
 * that time together with its lease.  ver, gen, var and count stay when the
 * cluster was closed; pre and new, too, when a coordinator has died, until the
 * next TAKE.
 *
 * A snapshot is all variables at the moment of its mark.  The coordinator reads
 * var with HSCAN, a piece at a time, while scripts keep the content of
 * each variable in pre before they change the variable; then pre, which counts
 * more; and then the mark has to stand still.  pre has no time to live: without it the snapshot would be a
 * mixture.
 *
 * A vector NAME of N numbers of W bytes is several fields of var, so that an
 * addition touches a few of them only: NAME -> c7 05 57 W N (N of 4 bytes in
 * network order: an extension that is no value of a program), and for each
 * CHUNK_BYTES of its numbers the field 01 I NAME with these bytes; I is the
 * number of the chunk in 7 hexadecimal digits.  No variable's name begins with
 * 01.
 *
 * A process that is a node has a name of its own.  Each registration begins a
 * session with a greater number INC, and says that nothing of the node's former
 * sessions runs.
 *
 * An entry of ev:
 *     w NODE  i INC  s SEQ   d FRAMES      SEQ 0: a registration (FRAME_NODE
 *                                          and FRAME_HELLO), then 1, 2, ...
 *     w NODE  i INC  s "fence"             the mark of a fence: later entries
 *                                          of this session do not count
 * An entry of to, with the id "SEQ-1", so that Redis refuses the same entry a
 * second time as "equal or smaller":
 *     d FRAMES             [o SEQ]         o: the same frames as in that entry,
 *                                          which may never have come; dropped
 *                                          if the entry has come
 * A node trims its own stream up to the last entry that the node has read; the
 * coordinator trims ev.
 *
 * FRAMES are those of wire/frames.h.  FRAME_SLOT names a worker of the node and
 * a start of that worker, for the frames that follow:
 *
 *     to a node           RANK (of the whole node; for each worker, before its
 *                         first start), TASK, DEF, FORGET (of the whole node),
 *                         KILL, CANCEL (of the whole node), CANCEL_ONE, LEAVE
 *                         (of the whole node)
 *     to the coordinator  NODE, HELLO, LEFT (of the whole node), UP, RESULT,
 *                         BUILT, OVERDUE, FENCED, GONE, FORGET (of the whole
 *                         node), VARIABLE (a function has used a variable;
 *                         once in a session)
 *
 * The numbers of TASKs for a worker grow.  A TASK behind a greater number (see
 * o) is given back, and comes again with a new number.
 *
 * An input of a TASK without a value stands in v:ID, or the node has kept it
 * (RESULT says so).  FORGET to the coordinator: the node does not have the
 * value, and that key is not there; the RESULT that follows gives the function
 * back.
 *
 * A start of a worker begins with its UP and ends with its GONE; frames for
 * another start are dropped.
 *
 * Order, and why no function is lost or made twice:
 *  - a node sends plain results with XADD, or in a SEND with results behind
 *    which they come, and sends them again after a lost connection; the
 *    coordinator drops a SEQ that has come before.  At most
 *    UNANSWERED entries are on their way, so a SEQ that is smaller than the
 *    greatest by more than that has come before; if it has not, its entry is
 *    lost, and the coordinator fences the node.
 *  - results of transactional functions, and of plain ones with additions, go
 *    by SEND, which checks the lease, makes the updates and adds the event, or
 *    does nothing at all; the node sends nothing else before the answer.  A
 *    SEND of results that all fail adds no event, and leaves its SEQ unused.
 *  - FENCE deletes the lease and leaves its mark in ev: a SEND before the mark
 *    was whole and counts, a SEND after the mark is refused.
 *  - a node ends its functions a lease after its last renewal, at most.  The
 *    coordinator counts that time by its own clock, from the moment at which a
 *    new BEAT was seen at the latest: the server's clock may jump, and anybody
 *    may delete a key.
 *  - the coordinator answers each registration with a RANK for each worker.  A
 *    node without any entry for six leases, and ten seconds, registers anew:
 *    the entry of its registration was lost.
 */
#ifndef EVC_REDIS_PROTOCOL_H
#define EVC_REDIS_PROTOCOL_H

#define PROTOCOL_VERSION "3"
#define VALUE_LEAST ((size_t)64 << 10)
#define VALUE_PX 3600000 /* ms until the key of a value ends */
#define KEYS_PX(lease_ms) ((lease_ms) * 10 > 60000 ? (lease_ms) * 10 : 60000)
/* Time between two renewals.  The third answer comes before the lease ends; a
   fourth answer would come too late, after this interval or after a quarter. */
#define RENEW_AFTER(lease) ((lease) * 2 / 7)
/* For so long a node's question for its next functions waits at the server. */
#define BLOCK_MS(lease_ms) ((lease_ms) < 5000 ? (lease_ms) : 5000)
#define CHUNK_BYTES 512
#define EXT_STORED 0x57 /* type of the extension with a vector's size */
#define EVENT_BEGUN "begun" /* field of the coordinator's own entries of ev */
#define UNANSWERED 32
/* Reads and updates of a transaction: the server needs 3 to 8 us for each, and
   answers nobody meanwhile. */
#define TRANSACTION_MOST 4096
/* So many elements of a vector are as much work as an update. */
#define PLACES_COST 2
#define RANGE_COST 32
#define NODE_NAME_SIZE 128

/* In the number of a FRAME_NODE, beside the number of workers: the node's session
   before ended for want of memory. */
#define NODE_NO_MEMORY (UINT64_C(1) << 32)

/* The number of a FRAME_GONE. */
#define GONE_RAN 1  /* the oldest function may have ended the worker; with
		       GONE_IDLE, a build */
#define GONE_IDLE 2 /* no function ran, and none that was sent has begun */
#define GONE_LEFT 4 /* the worker left in good order */

/*
 * The scripts.  Each answers with an array of texts whose first element is a
 * word; "ok" unless another word is named.  A key of a wrong type or with bytes
 * that no script writes makes an error "GARBAGE KEY: why".
 *
 * A script does its whole work, or answers with an error and changes nothing:
 * GARBAGE, READONLY, or OOM on a server without memory.  LOCK, RELEASE, FENCE,
 * RENEW, LEAVE, ALL, REPLACE and reading a variable work even then; TAKE,
 * REGISTER, SEND, FILL and the other operations answer OOM.  (The rights of a
 * user must not change during a connection: a login checks the rights that the
 * scripts need.)
 */
enum redis_script {
	/* Become the coordinator: KEYS coord gen ver count var pre new; ARGV id
	   px version least fresh.  A new generation deletes pre and new; with
	   fresh 1 count and var, too; 0: begin to count with the variables that are
	   there; empty: the same cluster goes on.  G is greater than least;
	   the same id gets the same G again.
	   ok G CHANGES | taken ID PTTL | version V */
	SCRIPT_TAKE,
	/* Stay the coordinator: KEYS coord gen count var; ARGV id G px base.
	   GONE is "counts" when count has no "whole", "variables" when var has
	   fewer names than after the last change, else empty.  If CHANGES is
	   equal to base, such a loss is forgotten and GONE is empty: no program
	   of this cluster has used a variable; base is empty when some program
	   has.  SEND, VARIABLE and ALL answer
	   "gone" and do nothing after such a loss.
	   ok CHANGES GONE | lost ID ("": nobody's; another id: no node works
	   for G any more) */
	SCRIPT_LOCK,
	/* Release the lock: KEYS coord [keys of the generation]; ARGV id.
	   Deletes the keys, and coord if the lock has that id.  ok | lost */
	SCRIPT_RELEASE,
	/* Fence a session of a node: KEYS gen lease ev beat seqs; ARGV G "G INC"
	   node inc.  BEAT "": no such key.  SEQ: of the last SEND; "": none;
	   "?": seqs has no mark, so nobody knows.  gen with "": there is none.
	   ok BEAT ID-OF-THE-MARK SEQ | gen SEQ */
	SCRIPT_FENCE,
	/* Register a node: KEYS coord gen lease ev; ARGV G "G INC" px node inc
	   frames.  The same registration again adds its event again.  ok | no
	   (no coordinator, another generation, or a later session's lease) */
	SCRIPT_REGISTER,
	/* Renew a lease: KEYS coord gen lease beat runs; ARGV G "G INC" px
	   BEAT keys-px node runs (empty: unchanged).  ok | alone (no
	   coordinator: not renewed) | fenced WHY */
	SCRIPT_RENEW,
	/* Leave, with no function running: KEYS lease ev; ARGV "G INC" node
	   inc seq frames.  ok | fenced */
	SCRIPT_LEAVE,
	/* Results with updates: KEYS gen lease ev var count seqs pre; ARGV G
	   "G INC" node inc seq frames n, and for each of the n results: frame
	   how m, and for each of its m reads and updates: op name value.
	   how 1: the function has succeeded, and counts as finished; 2: and
	   does not count, because it was plain; 0: it has failed.
	   op 1 adds the number in the text value, op 2 sets (no bytes, or nil:
	   removes); 10 adds a patch (wire/vector.h) to a vector; 8: value was
	   read; 9: a value with this SHA-1 was; "12 SHA1": so were the elements
	   at the places in the patch ("12 ": there were none).  The
	   results come in their order: a result sees the updates of those
	   before.  A result with a read that does not hold, or an update that
	   fails, has no update and no event, so each frame begins with a
	   FRAME_SLOT of its own.  The same seq gets the same answer.
	   ok [INDEX WHY]... (results that failed; WHY "": a read does not
	   hold; "!...": what is kept is damaged) | gone | fenced */
	SCRIPT_SEND,
	/* Operations on variables, in their order: KEYS gen OWNER var count seqs
	   pre; ARGV G OWNER-VALUE, and for each: asker seq op name a b.  OWNER:
	   the node's lease or coord, which has to have that value.  op 1 add
	   (a: number as a text), 2 set (a), 3 get, 4 compare (a: expected) and
	   set (b), 10 add to a vector (a: patch), 11 get elements of a vector
	   (a: patch with their places).  The same asker and seq get the same
	   answer.  A smaller seq, here and in SEND and REPLACE, is an error and
	   does nothing.
	   ok ANSWER... | gone | fenced; each ANSWER is an array: ok VALUE
	   (bytes, of 3 and 11 perhaps in several elements; of 1, 3 and 11) |
	   none (of 3, 10, 11) | other | number (no number) | vector (no
	   vector) | place ELEMENT N (no such element in a vector of N) | sum IS
	   (of 1) and sum ELEMENT (of 10): the sum with IS, or of ELEMENT, is not
	   finite | broken (chunks are missing) */
	SCRIPT_VARIABLE,
	/* A snapshot: KEYS gen coord var count pre seqs; ARGV G id do n count.
	   counts: the numbers alone.  begin: set the mark "G n", and read some
	   variables, about `count`; CURSOR 0: these are all, and there is no
	   mark.  end: remove the mark; none: there is no such mark, and
	   all that was read counts for nothing.  drop: remove the mark.
	   ok FINISHED CHANGES [CURSOR [NAME VALUE]...] | none | gone | fenced */
	SCRIPT_ALL,
	/* Put variables into new: KEYS gen coord new seqs; ARGV G id seq do
	   [name value]...  first: begin with an empty hash; more; drop: delete
	   the hash.  ok | none (there is no such hash: begin anew) | fenced */
	SCRIPT_FILL,
	/* Put new in place of all variables: KEYS gen coord var count seqs pre
	   new; ARGV G id seq finished n.  ok | none (as of FILL) | fenced */
	SCRIPT_REPLACE,
	SCRIPTS
};

#endif
