#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# In src/ every atomic, fence, lock, futex, descriptor, thread, clock and
# memory call goes through base/sync.h, where a test can hold or fail it.
# First by the words; then, for what has no word - the operators that C gives
# to _Atomic objects - by the compiler: in a build with the seam each atomic
# operation that it generates has one call of evc__seam beside it.
. "$(dirname "$0")/common.sh"
need src/base/sync.h src/core/life/coord.c

# EVC_SEAM_IN: this folder alone, for what compiles all of it again and again.
find "${EVC_SEAM_IN:-src}" -name '*.[ch]' ! -path src/base/sync.h \
	! -path src/base/sync_fd.h ! -path src/base/sync_file.h \
	! -path src/base/sync_spawn.h | sort >"$tmp/files"
code $(cat "$tmp/files") >"$tmp/code"

call='[ \t]*\('
any='[a-z0-9_]*'
{
	grep -E "$(words "atomic_$any|__atomic_$any|__sync_$any|__c11_atomic_$any|memory_order_$any")" "$tmp/code"
	grep -E '#[ \t]*include[ \t]*<stdatomic\.h>' "$tmp/code"
	grep -E "$(words "pthread_(mutex|cond|rwlock|spin|barrier)_[a-su-z]$any|sem_(init|wait|timedwait|trywait|post|destroy)")$call" "$tmp/code"
	grep -E "$(words "pthread_(create|join|tryjoin_np|timedjoin_np|clockjoin_np)")$call" "$tmp/code"
	grep -E "$(words 'SYS_futex|SYS_eventfd2?|SYS_pidfd_open|SYS_epoll_create1?|SYS_clock_gettime')" "$tmp/code"
	grep -E "$(words 'eventfd|eventfd_read|eventfd_write|epoll_create1?|epoll_ctl|epoll_wait|pidfd_open|pipe2?|poll|ppoll|select|socket|send|sendto|sendmsg|recv|open|openat')$call" "$tmp/code"
	grep -E "$(words 'clock_gettime|clock_nanosleep|gettimeofday|time|nanosleep|usleep|sleep')$call" "$tmp/code"
	grep -E "$(words 'malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|aligned_alloc|posix_memalign|mmap|munmap')$call" "$tmp/code"
	grep -E "$(words 'malloc|calloc|realloc|free') *[,)]" "$tmp/code"
} | sort -u | broken_lines "only src/base/sync.h may say this"

if by_gcc; then
	for file in $(grep '\.c$' "$tmp/files"); do
		# shellcheck disable=SC2086
		${CC:-cc} -std=gnu11 -O0 -w -D_GNU_SOURCE -DEVC_SEAM -DEVC_NO_INLINE -Iinclude \
			-Isrc $LIBEV_CFLAGS -fkeep-static-functions \
			-fdump-tree-gimple -dumpdir "$tmp/" -dumpbase file \
			-S -o /dev/null "$file" ||
			{ broken "$file: does not compile"; continue; }
		# None: it has no functions.
		cat "$tmp"/file*.gimple >"$tmp/dump" 2>/dev/null
		rm -f "$tmp"/file*.gimple
		awk -v file="$file" '
		/^[A-Za-z_]/ && !/^__attribute__/ &&
		match($0, /[A-Za-z0-9_]+ \(/) {
			done()
			name = substr($0, RSTART, RLENGTH - 2)
		}
		{
			line = $0
			while (match(line, /__atomic_[a-z_]+[0-9]* \(/)) {
				made++
				line = substr(line, RSTART + RLENGTH)
			}
			line = $0
			while (match(line, /evc__seam \([^"]*"(load|store|add|sub|or|and|xor|xchg|cas)"/)) {
				seen++
				line = substr(line, RSTART + RLENGTH)
			}
		}
		function done() {
			if (made != seen)
				print file ": in " name ": " made + 0 \
					" atomic operations, " seen + 0 \
					" of them through the seam"
			made = seen = 0
		}
		END { done() }' "$tmp/dump"
	done | broken_lines "operators of _Atomic objects are bare operations"
else
	echo "the compiler is not gcc: operators of _Atomic are not looked at"
fi

verdict
