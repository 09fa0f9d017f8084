#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# checksum.sh - the example "checksum" beside sha256sum: the same list, in its
# order, whatever the names; what is left when it is stopped at any moment, and
# that it goes on from there; its bar, on a terminal alone.
#
# EVC_STOPS is how often it is stopped at a random moment (10).
# shellcheck disable=SC2154 # bin, tmp, failures, server: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/run_lib.sh"

program=("$bin/checksum")

if [ ! -x "$bin/checksum" ]; then
	echo "SKIP checksum.sh: no $bin/checksum: it is not built without nettle"
	exit 77
fi

# reference DIR...: what it has to be.
reference() {
	for dir; do
		find "$dir" -type f -print0 | LC_ALL=C sort -z |
			xargs -0r sha256sum
	done
}

# counted N WORD: the number before that word in what -v says, added up over runs.
counted() {
	[ "$(sed -n "s/.*[ :]\([0-9]*\) $2[,;].*/\1/p" "$tmp/said" |
		awk '{ n += $1 } END { print n + 0 }')" = "$1" ] && return
	cat "$tmp/said"
	return 1
}

# ---- a tree ------------------------------------------------------------------

tree=$tmp/tree
mkdir -p "$tree/a/b" "$tree/a-b" "$tree/empty" "$tree/many" || exit 99
deep=$tree/deep
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	deep=$deep/d$i
done
mkdir -p "$deep"
for i in $(seq 500); do
	echo "$i" >"$tree/many/$i"
done
echo 1 >"$tree/a/x"
echo 2 >"$tree/a.c"
echo 3 >"$tree/a-b/y"
echo 4 >"$tree/a/b/z"
echo 5 >"$deep/bottom"
: >"$tree/nothing"
head -c 131072 /dev/zero >"$tree/one read"
head -c 131073 /dev/zero >"$tree/one read and a byte"
head -c 5000000 /dev/urandom >"$tree/some reads"
for name in $'new\nline' 'back\slash' $'carriage\rreturn' $'all\\of\n\rthem' \
	'-dash' ' blank ' $'not\377utf-8' '*' 'a"quote'; do
	echo "$name" >"$tree/$name"
done
ln -s a "$tree/link to a directory"
ln -s a.c "$tree/link to a file"
ln -s nowhere "$tree/link to nothing"
mkfifo "$tree/fifo"

# ---- lists -------------------------------------------------------------------

reference "$tree" >"$tmp/want"
n_files=$(find "$tree" -type f -printf . | wc -c)

run "$tree"
check 'the list is that of sha256sum, sorted' same 0 "$tmp/want"
check 'on a pipe there is nothing but the list' test ! -s "$tmp/err"
check 'sha256sum checks it' sha256sum --quiet -c "$tmp/out"
run -j 1 "$tree"
check 'it is the same with one thread' same 0 "$tmp/want"
run -j 32 "$tree"
check 'and with 32' same 0 "$tmp/want"

reference "$tree/many/" "$tree/a" >"$tmp/want2"
run "$tree/many/" "$tree/a"
check 'directories come in the order of the command line' \
	same 0 "$tmp/want2"
(cd "$tree" && reference . >"$tmp/want2" && run -v . &&
	cp "$tmp/err" "$tmp/said" && same 0 "$tmp/want2")
check 'so does the current one' test $? -eq 0
check 'with -v it says how many files' grep -q \
	"^checksum: $n_files hashed, 0 taken over, 0 failed; " "$tmp/err"

sha256sum "$tree/a.c" "$tree/link to a file" >"$tmp/want2"
run "$tree/a.c" "$tree/link to a file"
check 'a file may be named, and a link to one' \
	same 0 "$tmp/want2"
: >"$tmp/want2"
run "$tree/empty"
check 'of nothing there is an empty list' same 0 "$tmp/want2"

# ---- errors ------------------------------------------------------------------

run "$tree" "$tmp/none"
check 'what is not there is an error, and the list goes on' \
	same 1 "$tmp/want"
check 'which is said as sha256sum says it' \
	grep -qx "checksum: $tmp/none: No such file or directory" "$tmp/err"
run "$tree/fifo" "$tree"
check 'a fifo that was named is an error' same 1 "$tmp/want"
# Nobody may read this one, not even root: it is no memory at its beginning.
run /proc/self/mem "$tree"
check 'so is a file that cannot be read' same 1 "$tmp/want"
check 'and it is named' \
	grep -qx 'checksum: /proc/self/mem: Input/output error' "$tmp/err"
if [ "$(id -u)" != 0 ]; then
	mkdir "$tmp/closed"
	echo 1 >"$tmp/closed/file"
	chmod 0 "$tmp/closed"
	run "$tmp/closed" "$tree"
	check 'so is a directory' same 1 "$tmp/want"
	chmod 700 "$tmp/closed"
	chmod 0 "$tmp/closed/file"
	run "$tmp/closed" "$tree"
	check 'so is a file without the right' same 1 "$tmp/want"
else
	echo "SKIP checksum.sh: files without the right to read them: root may"
fi
# Longer than a path may be: with a relative name it can be made all the same.
(
	name=$(printf '%0200d' 0)
	cd "$tree/empty" || exit
	for i in $(seq 25); do
		mkdir "$name" && cd -P "$name" || exit
	done
	echo 1 >file
) 2>/dev/null
run "$tree"
rm -rf "$tree/empty"
check 'so is a path that is too long' same 1 "$tmp/want"
check 'which is said' grep -q ': File name too long$' "$tmp/err"
if [ -w /dev/full ]; then
	"$bin/checksum" "$tree" >/dev/full 2>"$tmp/err"
	status=$?
	check 'a list that cannot be written is one' same 1 /dev/null /dev/null
	check 'and is said' grep -q ': No space left on device' "$tmp/err"
else
	echo "SKIP checksum.sh: a list that cannot be written: no /dev/full"
fi
for help in -h --help; do
	run $help
	check "$help is no error" test $status -eq 0 -a ! -s "$tmp/err"
	check 'but the usage' grep -q '^usage: checksum ' "$tmp/out"
done
for arguments in '' '-j 0 x' '-j x x' '--resume' '-x x'; do
	# shellcheck disable=SC2086 # lists of words
	run $arguments
	check "'$arguments' is wrong use" test $status -eq 2
done

# ---- -o ----------------------------------------------------------------------

list=$tree/LIST
run -o "$list" "$tree"
check 'a list in the tree leaves itself out' same 0 "$tmp/want" "$list"
check 'nothing else is left' test ! -e "$list.part"
run -o "$list" "$tree"
check 'the one that it replaces as well' same 0 "$tmp/want" "$list"
check 'nothing goes to standard output' test ! -s "$tmp/out"
echo mine >"$list.part"
run -o "$list" "$tree"
check 'what another run has left is not overwritten' \
	test "$status$(cat "$list.part")" = 1mine
rm "$list.part" "$list"
# A disk that is full, as far as a test can have one.
(
	trap '' XFSZ
	ulimit -f 1
	exec "$bin/checksum" -o "$tmp/list" "$tree" 2>"$tmp/err"
)
status=$?
check 'a list for which there is no room is an error' test $status -eq 1
check 'what to do is said' test "$(grep -cE \
	-e "^checksum: $tmp/list: File too large\$" \
	-e "^checksum: $tmp/list.part: as far as the list could be written\$" \
	-e '^checksum: it is not complete: remove it; or rename it, and go on' \
	"$tmp/err")" -eq 3
mv "$tmp/list.part" "$tmp/old"
run --resume "$tmp/old" -v "$tree"
check 'which is done: it goes on' same 0 "$tmp/want"
check 'from there' grep -q ' hashed, [1-9][0-9]* taken over,' "$tmp/err"
run -o "$tree/fifo" "$tree"
check 'nor is what is no file' test $status -eq 1 -a -p "$tree/fifo"
"$bin/checksum" "$tree" >"$list" 2>"$tmp/err"
status=$?
check 'a list by > in the tree leaves itself out, too' \
	same 0 "$tmp/want" "$list"
rm "$list"

# ---- --resume ----------------------------------------------------------------

head -n 100 "$tmp/want" >"$tmp/old"
printf 'cut off' >>"$tmp/old"
run -v --resume "$tmp/old" "$tree"
cp "$tmp/err" "$tmp/said"
check 'the rest of a list' same 0 "$tmp/want"
check 'is hashed' said $((n_files - 100)) hashed
check 'and what stood there is not' counted 100 'taken over'
sort -R "$tmp/want" | sed 's/  / */' >"$tmp/old"
run -v --resume "$tmp/old" -o "$tmp/old" "$tree"
cp "$tmp/err" "$tmp/said"
check 'a list in any order is sorted, in its place' \
	same 0 "$tmp/want" "$tmp/old"
check 'without hashing' counted 0 hashed
{
	cat "$tmp/want"
	echo "$(printf '%064d' 0)  $tree/gone"
} >"$tmp/old"
run --resume "$tmp/old" "$tree"
check 'a file that is gone leaves the list' same 0 "$tmp/want"
echo 'no list' >"$tmp/old"
run --resume "$tmp/old" -o "$tmp/old" "$tree"
check 'what is no list is refused' test "$status$(cat "$tmp/old")" = '1no list'

# ---- the stop ----------------------------------------------------------------

# right LIST WANT: each line is one of the wanted ones, and none is there twice.
right() {
	LC_ALL=C sort "$1" >"$tmp/sorted"
	LC_ALL=C sort "$2" | LC_ALL=C comm -23 "$tmp/sorted" - >"$tmp/wrong"
	[ ! -s "$tmp/wrong" ] && return
	echo "wrong lines of $(wc -l <"$1"):"
	head -n 5 "$tmp/wrong"
	return 1
}

has_lines() {
	[ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# A file that takes a minute: those before it are in the list by then.
truncate -s 100G "$tree/many/big"
n_before=$(grep -n '/many/' "$tmp/want" | tail -n 1 | cut -d : -f 1)
start -v "$tree"
check 'lines come while a long file is hashed' \
	until_true has_lines "$tmp/out" "$n_before"
kill -INT "$server"
end
cp "$tmp/err" "$tmp/said"
check 'a stop ends that' test $status -eq 130
check 'the lines are right' right "$tmp/out" "$tmp/want"
check 'it says which is the first that is missing' \
	grep -qF "SIGINT from pid $$" "$tmp/err"
check 'and it is that one' \
	grep -q "the first that is missing is $tree/many/big\$" "$tmp/err"
check 'it says how to go on' \
	grep -q 'to go on: --resume LIST, and the same directories$' "$tmp/err"
rm "$tree/many/big"
cp "$tmp/out" "$tmp/old"
run -v --resume "$tmp/old" "$tree"
cat "$tmp/err" >>"$tmp/said"
check 'then it is completed' same 0 "$tmp/want"
check 'nothing was hashed twice' counted "$n_files" hashed

# kill -9 leaves FILE.part.
truncate -s 100G "$tree/many/big"
start -o "$tmp/list" "$tree"
check 'lines come to FILE.part' \
	until_true has_lines "$tmp/list.part" "$n_before"
"$bin/checksum" -o "$tmp/list" "$tree" 2>"$tmp/said"
check 'another run is refused' test $? -eq 1
check 'because of the first one' grep -qx \
	"checksum: $tmp/list.part: another run is writing it" "$tmp/said"
kill -KILL "$server"
end
rm "$tree/many/big"
run -o "$tmp/list" "$tree"
check 'one that was killed has left something' test $status -eq 1
check 'what to do is said' test "$(grep -cE \
	-e "^checksum: $tmp/list.part: left by a run that was killed, or by" \
	-e '^checksum: it is not complete: remove it; or rename it, and go on' \
	"$tmp/err")" -eq 2
mv "$tmp/list.part" "$tmp/old"
run -o "$tmp/list" --resume "$tmp/old" "$tree"
check 'which is done: it goes on' same 0 "$tmp/want" "$tmp/list"

# At any moment, until it has come to its end; a list of its own grows.
truncate -s 300M "$tree/many/250.big"
reference "$tree" >"$tmp/want"
n_files=$((n_files + 1))
stops=0
all_right=true
: >"$tmp/said"
while [ $stops -lt "${EVC_STOPS:-10}" ]; do
	rm -f "$tmp/list"
	: >"$tmp/list"
	: >"$tmp/said"
	status=130
	while [ $status -eq 130 ]; do
		start -v -j 2 --resume "$tmp/list" -o "$tmp/list" "$tree"
		sleep "0.$(printf '%03d' $((RANDOM % 400)))"
		kill -INT "$server" 2>/dev/null
		end
		cat "$tmp/err" >>"$tmp/said"
		right "$tmp/list" "$tmp/want" || all_right=false
		[ $status -ne 130 ] || stops=$((stops + 1))
		# It may never come to an end: the long file takes too long.
		if [ $stops -ge "${EVC_STOPS:-10}" ] && [ $status -eq 130 ]; then
			start -v --resume "$tmp/list" -o "$tmp/list" "$tree"
			end
			cat "$tmp/err" >>"$tmp/said"
		fi
	done
	same 0 "$tmp/want" "$tmp/list" && counted "$n_files" hashed ||
		all_right=false
	rounds=$((${rounds-0} + 1))
	[ $rounds -lt 100 ] || break # it is too fast to be stopped
done
check "$stops stops at random moments, $rounds lists, all lines right and once" \
	$all_right
check 'nothing else is left' test ! -e "$tmp/list.part"

# ---- the bar -----------------------------------------------------------------

if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	echo "SKIP checksum.sh: the bar: no script(1) (Debian: bsdutils), or no" \
		"pseudoterminal"
	exit $((failures != 0))
fi
truncate -s 1G "$tree/many/250.big"
TERM=dumb script -qec "'$bin/checksum' '$tree' >/dev/null" /dev/null \
	</dev/null >"$tmp/out" 2>&1
check 'on a terminal there is a bar' \
	grep -qE '[0-9]+/[0-9]+ files, [0-9.]+ .?B/[0-9.]+ .?B, [0-9.]+ .?B/s, [0-9:]+ left' \
	"$tmp/out"
TERM=dumb script -qec "'$bin/checksum' '$tree'" /dev/null </dev/null 2>&1 |
	tr -d '\n' | tr '\r' '\n' >"$tmp/lines"
check 'the list is on the terminal, too' grep -qE '[0-9a-f]{64}  ' "$tmp/lines"
check 'no line of it stands behind the bar' \
	eval '! grep -E ".[0-9a-f]{64}  " "$tmp/lines" | grep -v "^\\\\"'
check 'and there was a bar' grep -q '/s' "$tmp/lines"
check 'and in the end what was done' \
	grep -q "checksum: $n_files hashed, 0 taken over, 0 failed; " "$tmp/out"

exit $((failures != 0))
