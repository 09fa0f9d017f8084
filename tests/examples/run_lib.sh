# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run_lib.sh - what the tests of examples that run to their end share; sourced
# behind lib.sh.  A script about a single program names it in the array program;
# then run and start are given its arguments alone.
# shellcheck disable=SC2034,SC2154 # tmp, server: lib.sh; status: for the tests

program=()

# run [PROGRAM] ARGUMENT...: sets status; what it wrote is in out and err.
run() {
	"${program[@]}" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# start ARGUMENT...: in the background; its pid is server, which lib.sh kills.
# There a shell lets SIGINT be ignored, and the library leaves it so.
start() {
	env --default-signal=INT "${program[@]}" "$@" >"$tmp/out" 2>"$tmp/err" &
	server=$!
}

# end: wait until the program of start has ended; sets status.
end() {
	if ! until_true ended "$server"; then
		echo "FAILED: ${program[0]##*/} does not end"
		exit 1
	fi
	wait "$server" 2>/dev/null
	status=$?
	server=''
}

# same STATUS WANT [GOT]: the status of the last run, and what it printed, or
# the file GOT.
same() {
	local got=${3:-$tmp/out}

	[ "$status" = "$1" ] && cmp -s "$2" "$got" && return
	echo "status $status"
	diff "$2" "$got" | head -n 20
	cat "$tmp/err"
	return 1
}

# said TEXT: the last run has written a line like that to standard error.
said() {
	grep -qE -e "$1" "$tmp/err" && return
	cat "$tmp/err"
	return 1
}

# words SEED N [MOST]: N words out of about MOST (30000).
words() {
	awk -v seed="$1" -v n="$2" -v most="${3:-30000}" 'BEGIN {
		srand(seed)
		for (i = 0; i < n; i++) {
			w = ""
			r = int(rand() * rand() * most)
			do {
				w = w substr("etaoinSHRDLUcmfwypvbgkqjxz",
					     r % 26 + 1, 1)
				r = int(r / 26)
			} while (r > 0)
			printf "%s%s", w, rand() < 0.1 ? ".\n" : " "
		}
	}'
}
