#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Do the lints find what they are there to find?  Faults are planted in a copy
# of the tree, one at a time; the lint has to fail and to name the place.
. "$(dirname "$0")/common.sh"

copy=$tmp/copy
mkdir "$copy" || exit 99
cp -R Makefile.am abi configure.ac debian NEWS README bootstrap .ci m4 bench examples include doc \
	man src tests tools "$copy" || exit 99
chmod -R u+w "$copy"
EVC_TOP_SRCDIR=$copy
EVC_TOP_BUILDDIR=$tmp/build
export EVC_TOP_SRCDIR EVC_TOP_BUILDDIR
mkdir -p "$tmp/build/src/.libs"
so=$tmp/build/src/.libs/libevcoord.so
planted=0

run_lint() {
	sh "$lint/$1.sh" >"$tmp/said" 2>&1
}

# finds LINT WORDS: the lint fails on the copy as it is, and says WORDS.
finds() {
	planted=$((planted + 1))
	run_lint "$1"
	status=$?
	if [ $status != 1 ] || ! grep -qF -e "$2" "$tmp/said"; then
		broken "$1.sh: status $status, and should have named \"$2\":"
		cat "$tmp/said"
	fi
}

# passes LINT
passes() {
	run_lint "$1"
	status=$?
	[ $status = 0 ] || [ $status = 77 ] || {
		broken "$1.sh: status $status, and there is nothing wrong:"
		cat "$tmp/said"
	}
}

# bites LINT WORDS FILE TEXT: with TEXT as the last line of FILE.
bites() {
	printf '%s\n' "$4" >>"$copy/$3"
	finds "$1" "$2"
	restore "$3"
}

# edited LINT WORDS FILE SED: with FILE changed by SED.
edited() {
	sed -e "$4" "$3" >"$copy/$3"
	cmp -s "$3" "$copy/$3" && broken "$3: '$4' changes nothing"
	finds "$1" "$2"
	restore "$3"
}

restore() {
	if [ -e "$1" ]; then
		cat "$1" >"$copy/$1"
	else
		rm -f "$copy/$1"
	fi
}

file=src/core/stop/stop.c
need $file src/members/thread.c examples/server.c examples/dnsd.h \
	man/evc_new.3

bites layering "base knows no libev" src/base/list.h '#include <ev.h>'
bites layering "base knows no coordinator" src/base/list.h '#include <evcoord.h>'
bites layering "may not include" $file '#include "members/thread.h"'
bites layering "may not include" src/members/thread.c '#include "signals/signals.h"'
bites layering "may not include" src/redis/client/reply.c '#include "cluster/core/cluster.h"'
bites layering "may not include" src/wire/walk.c '#include "redis/client/redis.h"'
bites layering "a header of a line below" src/core/stop/stop.c '#include "core/join/join.h"'
# calls ROOM/FILE NAME CALLED: an object of that file whose function NAME calls CALLED.
calls() {
	mkdir -p "$tmp/build/src/${1%/*}"
	echo "void $3(void); void $2(void); void $2(void) { $3(); }" \
		>"$tmp/calls.c"
	${CC:-cc} -c "$tmp/calls.c" \
		-o "$tmp/build/src/${1%/*}/libevcoord_la-${1##*/}.o" || exit 99
}
calls core/stop/stop evc__low evc__high
calls core/join/join evc__high evc__other
finds layering "core/stop/stop core/join/join evc__high"
calls core/stop/stop evc__low evc__other
calls base/text evc__one evc__two
calls base/reap evc__two evc__one
finds layering "base: 2 files call each other in a circle"
rm -r "$tmp/build/src/core" "$tmp/build/src/base"
bites layering "is named as" $file '#include "core.h"'
mkdir "$copy/src/other"
bites layering "stands in no line" src/other/other.c '#include <errno.h>'
bites layering "adapter.h alone" include/evcoord/uv.h '#include <evcoord/pool.h>'
bites layering "an adapter" $file '#include <evcoord/uv.h>'
bites layering "no event library" include/evcoord/types.h '#include <ev.h>'
bites layering "not in a stable header" include/evcoord/redis.h \
	'#include <evcoord/unstable/engine.h>'
bites layering "only public headers" tests/api/core/stop/stop.c '#include "base/list.h"'

printf '%s\n' '/* malloc(1), atomic_load */ // clock_gettime()' \
	'static const char planted[] = "malloc(1) \" eventfd(0)";' \
	'static inline char planted_(void) { return planted[0]; }' >>"$copy/$file"
EVC_SEAM_IN=$(dirname $file)
export EVC_SEAM_IN
passes seam
restore $file
bites seam "$file" $file 'static void *p(void) { return malloc(1); }'
bites seam "$file" $file 'static void p(pthread_mutex_t *m) { pthread_mutex_lock(m); }'
bites seam "$file" $file 'static int p(struct timespec *t) { return clock_gettime(0, t); }'
bites seam "$file" $file 'static void p(void) { syscall(SYS_futex, 0); }'
bites seam "$file" $file 'static void p(void) { __sync_synchronize(); }'
if by_gcc; then
	bites seam "in planted" $file \
		'static _Atomic int p; int planted(void); int planted(void) { return p++; }'
	bites seam "in planted" $file \
		'static _Atomic int p; int planted(void); int planted(void) { return p; }'
	bites seam "in planted" $file \
		'static _Atomic int p; void planted(void); void planted(void) { p = 1; }'
fi

command -v musl-gcc >/dev/null && bites platforms strerrordesc_np $file \
	'const char *p(int e); const char *p(int e) { return strerrordesc_np(e); }'

bites flags "EVC_PLANTED is the bit of EVC_KICK" include/evcoord/wake.h \
	'enum { EVC_PLANTED = 1 << 8 };'
edited flags "EVC_JOIN_STRICT is the bit of EVC_NO_HOME" \
	include/evcoord/types.h 's/\(EVC_JOIN_STRICT = 1 <<\) 18/\1 15/'
bites flags "EVC_PLANTED" include/evcoord/types.h 'enum { EVC_PLANTED = 0x40 };'

edited ends "evc_cond_free: takes the pointer" include/evcoord/wake.h \
	's/evc_cond_free(evc_cond \*cond)/evc_cond_free(evc_cond **cond)/'
edited ends "evc_queue_free: returns" include/evcoord/queue.h \
	'/^EVC_API evc_status$/{N;s/evc_status\(.evc_queue_free\)/int\1/;}'
edited ends "evc_pool_free: says that NULL" include/evcoord/pool.h \
	's/pool is gone after 0; NULL is fine/pool is gone after 0/'
edited ends "evc_remote_get: its object" include/evcoord/cluster.h \
	's/evc_remote_get(const /evc_remote_get(/'
edited ends "evc_member_get: says that" include/evcoord/members.h \
	's/ret_info (may be NULL)/ret_info/'
edited ends "evc_task_end" man/evcoord.7 's/evc_task_end/evc_task/'

bites forks evc_planted include/evcoord/worker.h 'EVC_API void evc_planted(void);'
edited forks evc_call_detached_with tests/support/fork_calls.h \
	'/X(evc_call_detached_with,/,/evc_call_detached_with(/d'
edited forks evc_planted tests/support/fork_calls.h \
	's/X(evc_finish, /X(evc_planted, true) \/* why *\/ \\\
	&/'
edited forks evc_fetch tests/support/fork_cluster_calls.h \
	's/X(evc_fetch_start,/X(evc_fetch,/'
edited forks "evc_finish" tests/support/fork_calls.h \
	's/X(evc_finish, .*/X(evc_finish, true) \\/'

bites quiet "$file" $file 'static void p(void) { printf("x"); }'
bites quiet "$file" $file 'static void p(void) { exit(1); }'
bites quiet "$file" $file 'static void p(void) { fputs("x", stderr); }'
bites quiet "$file" $file 'static void p(struct ev_loop *l) { ev_break(l, 1); }'
bites quiet "$file" $file 'static void p(void) { sigaction(1, 0, 0); }'
bites quiet "$file" $file 'static void p(void) { assert(0); }'
bites quiet "$file" $file 'static void p(void) { syslog(3, "x"); }'
bites quiet "$file" $file 'static void p(void) { put(STDERR_FILENO, "x"); }'

bites quiet "detect.c" src/redis/engine/detect.c \
	'static void p(int fd) { (void)sync_pidfd_signal(fd, 9); }'
bites quiet "link.c" src/cluster/worker/link.c \
	'static void p(void) { sync_pid_signal(1, 9); }'
bites quiet "reap.c" src/base/reap.c \
	'static int p(timer_t *t) { return sync_end_timer(t); }'

bites bounds "way[MOST_OF_IT]" $file \
	'static int p(int n)
{
	int i, way[MOST_OF_IT];

	for (i = 0; i < n; i++)
		way[i] = i;
	return n;
}'
edited bounds "left[EVC_VALUE_DEPTH]" src/wire/walk.c \
	's/depth >= EVC_VALUE_DEPTH/depth >= w->most/'

EVC_HEADERS='include/evcoord/join.h include/evcoord/version.h'
export EVC_HEADERS
bites headers "unused" include/evcoord/join.h 'static int unused;'
bites headers "version.h" include/evcoord/version.h \
	'#undef EVC_VERSION_PATCH
#define EVC_VERSION_PATCH 99'
unset EVC_HEADERS

edited documented "no comment says Thread:" include/evcoord/join.h \
	's/ \* Thread: / * thread: /'
edited documented "says not all" include/evcoord/uv.h 's/^ \* Since: .*/ */'
edited documented "evc_free" man/evc_new.3 '/^\.Nm evc_free/d'
edited documented "evc_free" man/stubs '/^evc_free/d'
edited documented "evc_uv_run" man/evcoord-loops.7 '/^\.Nm evc_uv_run/d'
edited documented "evc_qt_exec" man/stubs '/^evc_qt_exec/d'
edited documented "evc_hold_end EVC_NOT_FOUND" man/evc_hold_begin.3 \
	's/EVC_NOT_FOUND/EVC_ABORTED/'
edited documented "evc_hold_end -" man/evc_hold_begin.3 '/^\.It Fn evc_hold_end/d'
edited documented "evc_task_coord evc_fail" include/evcoord/members.h \
	's/NULL as evc_task_reactor/as evc_fail/'
bites documented "EVC_PLANTED" include/evcoord/pool.h \
	'enum {
	EVC_PLANTED = 1
};'
edited documented "evc_pool_opts planted" include/evcoord/pool.h \
	's/^\(typedef struct evc_pool_opts {\)/\1\
	int planted;/'
edited documented "thread pool" man/evcoord-pool.3 '/^\.Nd/s/thread pool/pool/'
bites documented "more than 150 lines" README "$(seq 150)"
edited documented "graceful shutdown" README '1s/graceful//'
edited documented "doc/nothing.md" README 's/(doc.tutorial.md)/(doc\/nothing.md)/'
edited documented "README: doc/tutorial.md" README 's/(doc.tutorial.md)//'
bites installed "not 0.2.99" include/evcoord/version.h \
	'#define EVC_VERSION_STRING "0.2.99"'
bites documented "evc_nothing" man/stubs 'evc_nothing evc_new'
edited documented "evc_free" man/evcoord-threads.7 '/^evc_free\t/d'

if command -v "${MANDOC:-mandoc}" >/dev/null; then
	bites mandoc "evc_new.3" man/evc_new.3 '.Zz'
	bites mandoc "evc_nothing" man/evc_new.3 '.Xr evc_nothing 3'
	bites mandoc "NO SECTION" man/evc_new.3 '.Sx NO SECTION'
	edited mandoc "wider than 80 columns" man/evcoord-threads.7 \
		's/lw(11n)/lw(16n)/'
fi

# The programs of the manual, with the library that was built.
manual=../examples/manual
EVC_TOP_BUILDDIR=$build
EVC_MANUAL=man/evc_signals_start.3
export EVC_MANUAL
edited $manual "does not compile" $EVC_MANUAL \
	's/evc_signals_pending(/evc_signals_pendings(/'
edited $manual "unused" $EVC_MANUAL 's/evc_coord \*c;/evc_coord *c; int unused;/'
edited $manual "status 3, not 143" $EVC_MANUAL \
	's/puts(v.stop.text);/return 3;/'
EVC_MANUAL_LIMIT=1
export EVC_MANUAL_LIMIT
[ -z "$EVC_TIMEOUT" ] || edited $manual "status 137, not 143" $EVC_MANUAL \
	's/puts(v.stop.text);/raise(SIGSTOP);/'
unset EVC_MANUAL_LIMIT
bites $manual "outside of EXAMPLES" $EVC_MANUAL '.\" output'
EVC_MANUAL=man/evc_on_stop.3
edited $manual "another output" $EVC_MANUAL 's/puts("closed")/puts("open")/'
edited $manual "a mark, and no block" $EVC_MANUAL 's/^\.Bd -literal/.Pp/'
EVC_MANUAL=man/evcoord-looper.3
edited $manual "no program" $EVC_MANUAL 's/^main(/other(/'
EVC_MANUAL=README
edited $manual "README: README.1.c: status 1" README 's/return status;/return 1;/'
EVC_MANUAL=doc/tutorial.md
edited $manual "tutorial.md.2.c: status 0" $EVC_MANUAL 's/(record), true/(record) - 1, true/'
unset EVC_MANUAL
if command -v abidiff >/dev/null && [ -e "$build/src/.libs/libevcoord.so" ]; then
	for edit in "s/evc_new\([@']\)/evc_gone\1/g" s/=.3712./="'3776'"/ \
		"/'evc_status'/s/95e97e5e/f0981eeb/"; do
		xz -dc abi/libevcoord.abi.xz | sed "$edit" |
			xz >"$copy/abi/libevcoord.abi.xz"
		finds abi "cannot run with it"
	done
	restore abi/libevcoord.abi.xz
fi
EVC_TOP_BUILDDIR=$tmp/build

bites stopcode "server.c" examples/server.c 'static void p(void) { evc_free(c); }'
bites stopcode "is not closed" examples/server.c '/* stop: */'
bites stopcode "lines of stop code, 40 are allowed" examples/server.c \
	"/* stop: */
$(seq 41 | sed 's/.*/static int p&;/')
/* :stop */"
bites stopcode "lines of stop code, 6 are allowed" examples/loop_uv.c \
	'/* stop: */
extern int p;
/* :stop */'
bites stopcode "dnsd_udp.c" examples/dnsd_udp.c \
	'static void p(void) { evc_progress(""); }'
bites stopcode "is not closed" examples/dnsd_tcp.c '/* stop: */'
bites stopcode "lines of stop code, 40 are allowed" examples/dnsd.h \
	"/* stop: */
$(seq 41 | sed 's/.*/extern int p&;/')
/* :stop */"

edited stopcode "does not show" doc/tutorial.md '/evc_systemd_ready/d'

bites listed "src/core/planted.c" src/core/planted.c ''
bites listed "tests/api/planted.c" tests/api/planted.c ''
bites listed "tests/api/nothing:nothing" tests/sanitizer-exclusions \
	'thread tests/api/nothing:nothing because'
bites listed "thread tests/api/core/stop/stop:planted" tests/api/core/stop/stop.c \
	'START_TEST(planted)
if (t_under_tsan())'

bites style "$file: " $file "$(seq 450 | sed 's/.*/\/* & *\//')"
bites style "include/evcoord/pool.h:" include/evcoord/pool.h \
	"/* $(seq 30 | tr '\n' ' ') */"
bites style "src/core/planted.c" src/core/planted.c 'int planted;'
edited style "bench/Makemodule.am" bench/Makemodule.am '/SPDX/d'
edited style "NEWS:" NEWS '/evc_request_stop/{p;}'
edited style "in <>" NEWS 's/vector of int/vector<int>/'

bites tags "text is defined in src/base/text.h" $file 'struct text { int n; };'
bites tags "text is defined in src/base/text.h" src/cluster/walk.c 'enum text
{ PLANTED };'
bites tags "no_memory src/" $file 'static int
no_memory(void) { return 0; }'
bites tags "text is defined in src/base/text.h" src/redis/reply.c \
	'typedef union text { int n; } planted;'
printf '%s\n' 'struct planted { int n; };' >>"$copy/src/cluster/walk.c"
printf '%s\n' 'struct planted { int n; };' >>"$copy/src/redis/reply.c"
passes tags
restore src/cluster/walk.c
restore src/redis/reply.c

bites heads "src/core/planted.c" src/core/planted.c 'int planted;'
headed=src/wake/sleep.c
need $headed
edited heads $headed $headed '/^ \* Called by:/d'
edited heads $headed $headed 's/^ \* Locks:/ * Of locks:/'
edited heads $headed $headed '2s/$/ Sleeping./'
edited heads $headed $headed "2s/\$/\\
$(seq 14 | sed 's/.*/ * .\\/')
 *\\
&/"

printf '%s\n' "static const char planted[] = \"$(seq 999 | sed 's/.*/who it/' |
	tr '\n' ' ')\";" >>"$copy/$file"
passes words
restore $file
bites words "who, whom, whose, whoever: " $file \
	"/* $(seq 2000 | sed 's/.*/Whose/') */"
bites words "it, that, one, what: " $file "/* $(seq 9999 | sed 's/.*/What/') */"

# A library with what the headers declare and one thread-local word; the lints
# of the built library pass on it, and fail when it is spoilt.
# shellcheck disable=SC2046
api_names $(headers_of libevcoord) >"$tmp/names"
library() {
	{
		sed 's/.*/void &(void); void &(void) {}/' "$tmp/names"
		printf '%s\n' 'extern __thread int word; __thread int word;' \
			'int *evc__word(void); int *evc__word(void) { return &word; }' \
			"$2"
	} >"$tmp/library.c"
	# shellcheck disable=SC2086
	${CC:-cc} -shared -fPIC $1 "$tmp/library.c" -o "$so" || exit 99
}
map=-Wl,--version-script,src/libevcoord.map
initial=-ftls-model=initial-exec
library "$map $initial" ''
passes exports
passes tls
library "$map $initial" 'void evc_planted(void); void evc_planted(void) {}'
finds exports evc_planted
library "$initial" ''
finds exports "no version"
finds exports evc__word
sed 1d "$tmp/names" >"$tmp/fewer"
first=$(sed 1q "$tmp/names")
mv "$tmp/fewer" "$tmp/names"
library "$map $initial" ''
finds exports "$first"
library "$map" ''
finds tls "another model"
library "$map $initial" ''
edited exports "declared without" include/evcoord/join.h \
	's/^EVC_API bool/bool/'

echo "faults planted: $planted"
verdict
