#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# wordcount.sh - the example "wordcount" beside tr, sort and uniq: the sums are
# exact, whoever is killed: its workers, itself, or both by turns; what is left
# when it is stopped, and that it goes on from there; its bar.
#
# EVC_STOPS is how often it is stopped or killed at a random moment (5).
# shellcheck disable=SC2154 # bin, tmp, failures, server: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/run_lib.sh"

program=("$bin/wordcount")

export LC_ALL=C
# Its workers are known by this.
export EVC_WORDCOUNT_TEST=$$

# reference DIR...: what it has to be.  A file ends its last word.
reference() {
	find "$@" -type f -exec sh -c 'for f; do cat "$f"; echo; done' sh {} + |
		tr -cs '[:alpha:]' '[\n*]' | tr A-Z a-z | cut -b 1-250 |
		grep . | sort | uniq -c | awk '{ print $1, $2 }'
}

# number EXPRESSION: what its group matches in what was written.
number() {
	sed -nE "s/.*$1.*/\\1/p" "$tmp/err" | tail -n 1 | grep . || echo 0
}

# its_processes: the ids of all that belong to this test and are wordcount.
its_processes() {
	local p

	for p in $(grep -lsz "^EVC_WORDCOUNT_TEST=$$\$" /proc/[0-9]*/environ)
	do
		p=${p%/environ}
		case $(readlink "$p/exe") in
		*/wordcount) echo "${p#/proc/}" ;;
		esac
	done 2>/dev/null
}

all_gone() {
	[ -z "$(its_processes)" ]
}

# end_all: wait until the program of start has ended, and all of its workers.
end_all() {
	end
	if ! until_true all_gone; then
		echo "FAILED: workers are left: $(its_processes)"
		exit 1
	fi
}

# ---- a tree ------------------------------------------------------------------

tree=$tmp/tree
mkdir -p "$tree/a/b" "$tree/c" "$tree/empty" || exit 99
# Each worker adds each word of a chunk.
most=$(many 30000 3000) n=$(many 100000 40000)
words 1 $((n * 2)) $most >"$tree/a/long"
words 2 $n $most >"$tree/a/b/longer"
words 3 1 >"$tree/c/one"
: >"$tree/c/nothing"
printf 'no end' >"$tree/c/no end of line"
printf '...123...' >"$tree/c/no word"
head -c 200000 /dev/urandom >"$tree/c/noise"
# A word that goes over a border, one that ends there, one that begins there; and
# one that is longer than a chunk, and too long to be counted whole.
for n in 65530 65531 65532 65533 65534 65535 65536 65537; do
	head -c "$n" /dev/zero | tr '\0' ' '
	printf 'border'
done >"$tree/c/borders"
{
	head -c 200000 /dev/zero | tr '\0' 'x'
	printf ' %0250d %0251d ' 0 0 | tr 0 y
} >"$tree/c/long words"
ln -s ../a "$tree/c/link"
mkdir -p "$tmp/text"
cp /usr/share/common-licenses/* "$tmp/text/" 2>/dev/null
words 4 20000 >"$tmp/text/more"

# ---- sums --------------------------------------------------------------------

reference "$tree" >"$tmp/want"
run --all "$tree"
check 'the sums are those of uniq -c' same 0 "$tmp/want"
check 'on a pipe there is nothing else' test ! -s "$tmp/err"
run --all -n 1 "$tree"
check 'they are the same with one worker' same 0 "$tmp/want"
run --all -n 9 "$tree"
check 'and with nine' same 0 "$tmp/want"
sort -k1,1nr -k2 "$tmp/want" | sed -n 1,10p >"$tmp/want10"
run "$tree"
check 'the ten most frequent words' same 0 "$tmp/want10"
head -n 3 "$tmp/want10" >"$tmp/want3"
run --top 3 "$tree"
check 'or three of them' same 0 "$tmp/want3"
reference "$tree/a" "$tmp/text" "$tree/c/one" >"$tmp/want2"
run --all "$tree/a" "$tmp/text" "$tree/c/one"
check 'several directories, and a file' same 0 "$tmp/want2"
run --all "$tree/empty"
check 'nothing is no word' same 0 /dev/null
ln -s tree "$tmp/link"
for path in link link/; do
	run --all "$tmp/$path"
	check "$path that is named stands for its tree" same 0 "$tmp/want"
done
(cd "$tree" && run --all a "$tmp/text" c/one && same 0 "$tmp/want2")
check 'paths may be relative' test $? -eq 0
deep=$tree/empty/$(printf 'd%0200d' 0)/$(printf 'd%0200d' 1)
mkdir -p "$deep"
words 5 50000 >"$deep/file"
reference "$deep" >"$tmp/want2"
run --all --checkpoint "$tmp/deep" "$deep"
check 'or very long' same 0 "$tmp/want2"
run --all --checkpoint "$tmp/deep" -v "$deep"
check 'even with a checkpoint' same 0 "$tmp/want2"
check 'which has all of it' said ' 0 workers were lost, and 0 functions'
n=$(number 'wordcount: ([0-9]+) of')
check 'and says so' said " $n of $n chunks are counted, $n of them before;"
rm -r "${deep%/*}"

# ---- errors ------------------------------------------------------------------

run --all "$tmp/none" "$tree"
check 'what is not there is an error, and the rest is counted' \
	same 1 "$tmp/want"
check 'and is named' said "^wordcount: $tmp/none: No such file or directory\$"
check 'and counted' said '^wordcount: 1 of the files and directories could not'
mkfifo "$tmp/pipe"
ln -s nowhere "$tmp/dangling"
run --all "$tmp/dangling" "$tmp/pipe" "$tree"
check 'so is what is no text' same 1 "$tmp/want"
check 'by its name, too' \
	said "^wordcount: $tmp/pipe: neither a file nor a directory\$"
check 'and a link to nothing' \
	said "^wordcount: $tmp/dangling: No such file or directory\$"
check 'both are counted' said '^wordcount: 2 of the files and directories'
# Nobody may read the first one, not even root; both say that they have no bytes.
run --all /proc/self/mem /proc/version "$tree"
check 'so is a file that cannot be read, though it seems to be empty' \
	same 1 "$tmp/want"
check 'by its name' said "^wordcount: /proc/[0-9]*/mem: Input/output error\$"
check 'and one that only seems to be' \
	said "^wordcount: /proc/version: its size is not known\$"
# Longer than a path may be: with a relative name it can be made all the same.
(
	name=$(printf '%0200d' 0)
	cd "$tree/empty" || exit
	for i in $(seq 25); do
		mkdir "$name" && cd -P "$name" || exit
	done
	echo word >file
) 2>/dev/null
run --all "$tree"
rm -rf "$tree/empty"
mkdir "$tree/empty"
check 'so is a path that is too long' same 1 "$tmp/want"
check 'by its name' said "^wordcount: $tree/empty/0{200}/.*0: File name too long\$"
if [ "$(id -u)" != 0 ]; then
	mkdir -m 0 "$tmp/closed"
	run --all "$tree" "$tmp/closed"
	check 'so is a directory that cannot be read' same 1 "$tmp/want"
	check 'by its name' said "^wordcount: $tmp/closed: Permission denied\$"
else
	echo "SKIP wordcount.sh: a directory without the right to read it: root may"
fi
for help in -h --help; do
	run $help
	check "$help is no error" test $status -eq 0 -a ! -s "$tmp/err"
	check 'but the usage' grep -q '^usage: wordcount ' "$tmp/out"
done
for arguments in '' '-n 0 x' '-n x x' '-n 1.5 x' '-n 257 x' '--top 0 x' \
	'--kill x x' '--nap -1 x' '--every 0 x' '--wait 0 x' '--none x'; do
	# shellcheck disable=SC2086 # lists of words
	run $arguments
	check "'$arguments' is wrong use" test $status -eq 2
done
if [ -w /dev/full ]; then
	"$bin/wordcount" "$tmp/text" >/dev/full 2>"$tmp/err"
	status=$?
	check 'sums that cannot be written are an error' test $status -eq 1
	check 'which is said' said 'cannot write: No space left on device'
else
	echo "SKIP wordcount.sh: sums that cannot be written: no /dev/full"
fi

# has_workers N: so many processes beside itself.
has_workers() {
	[ "$(its_processes | wc -l)" -gt "$1" ]
}

# A file that goes while the others are counted; of several chunks, named once.
mkdir "$tmp/late"
words 6 50000 >"$tmp/late/file"
reference "$tree/a" >"$tmp/want2"
# The file has to go before the worker comes to it, or it all begins again.
for nap in 0.2 0.8 2; do
	start --all -v -n 1 --nap $nap --checkpoint "$tmp/file" "$tree/a" \
		"$tmp/late"
	until_true has_workers 1
	mv "$tmp/late/file" "$tmp/away"
	end_all
	same 1 "$tmp/want2" >/dev/null && break
	mv "$tmp/away" "$tmp/late/file"
	rm -f "$tmp/file"
done
check 'the rest of a file that is gone is counted' same 1 "$tmp/want2"
check 'it is named' test "$(grep -cx \
	"wordcount: $tmp/late/file: No such file or directory" "$tmp/err")" = 1
check 'and counted' said '^wordcount: 1 of the files and directories could not'
check 'its chunks are not' test "$(number 'wordcount: ([0-9]+) of')" -lt \
	"$(number 'wordcount: [0-9]+ of ([0-9]+) chunks')"
[ -e "$tmp/late/file" ] || mv "$tmp/away" "$tmp/late/file"
reference "$tree/a" "$tmp/late" >"$tmp/want2"
run --all -v --checkpoint "$tmp/file" "$tree/a" "$tmp/late"
check 'where it is back, it is counted from the checkpoint on' \
	same 0 "$tmp/want2"
check 'and it alone' said ', [1-9][0-9]* of them before;'
rm -rf "$tmp/late" "$tmp/file"

# ---- workers that are killed -------------------------------------------------

for n in 1 3 10; do
	run --all -v -n 3 --nap 0.01 --kill $n "$tree"
	check "$n workers are killed: the sums are the same" same 0 "$tmp/want"
	# A chunk that is lost while it waits behind another one kills none.
	lost=$(number '; ([0-9]+) workers were lost, and')
	check "$lost of them are lost" test "$lost" -gt $((n / 2)) -a \
		"$lost" -le "$n"
	check 'which is told, and why' said 'was killed by signal 9 .*kill -9 [0-9]+, which is worker [0-9]+(; it ran [a-z]+)?$'
done
run --all -v -n 1 --kill 2 "$tree"
check 'the only worker is killed, twice' same 0 "$tmp/want"

# From outside, again and again.
start --all -v -n 4 --nap 0.2 "$tree"
killed=0
while [ $killed -lt 6 ] && ! ended "$server"; do
	sleep 0.15
	for pid in $(its_processes); do
		[ "$pid" != "$server" ] || continue
		kill -KILL "$pid" 2>/dev/null && killed=$((killed + 1))
		break
	done
done
end_all
check 'kill -9 of any of them every 0.15 s: the sums are the same' \
	same 0 "$tmp/want"
# One that is killed when all is done is not missed.
lost=$(number '; ([0-9]+) workers were lost')
check "$lost of $killed are missed" test "$lost" -gt 0 -a "$lost" -le $killed

# Their program goes, and they are killed.
kill_workers() {
	local p

	for p in $(its_processes); do
		[ "$p" = "$server" ] || kill -KILL "$p" 2>/dev/null
	done
}

# begin_copy ARGUMENT...: a copy of the program that may go, with its workers.
begin_copy() {
	mkdir -p "$tmp/bin"
	cp "$bin/wordcount" "$tmp/bin/wordcount"
	"$tmp/bin/wordcount" --all -n 2 --nap 0.5 "$@" "$tree" \
		>"$tmp/out" 2>"$tmp/err" &
	server=$!
	until_true has_workers 1
}

# It is deleted: the kernel has it as long as it runs.
begin_copy
rm -r "$tmp/bin"
kill_workers
end_all
check 'workers whose program was deleted come again' same 0 "$tmp/want"

# It cannot be executed: that is said at once, and others are waited for.
no_more_workers() {
	kill_workers
	grep -q "could not be started: $tmp/bin/wordcount: Permission denied\$" \
		"$tmp/err"
}
begin_copy --wait 12
chmod a-x "$tmp/bin/wordcount"
check 'workers without a program' until_true no_more_workers
check 'which is said before the end' \
	test "$(ended "$server" || echo runs)" = runs
end_all
check 'they are waited for, and given up' same 1 /dev/null
check 'with the cause in the last words' said \
	'^wordcount: no worker for 12 s.* could not be started: .*: Permission denied$'
rm -r "$tmp/bin"

# ---- --checkpoint ------------------------------------------------------------

# is_another FILE INODE: a later save has taken its place.
is_another() {
	test "$(stat -c %i "$1")" != "$2"
}

# until_done ARGUMENT...: again and again, killed with kill -9 at random moments,
# but first with a second checkpoint, for the first may have no chunk yet, until
# it was so often, and then to the end.
until_done() {
	local kills=0

	while [ $kills -lt "${EVC_STOPS:-5}" ]; do
		start --all -v --checkpoint "$tmp/file" "$@"
		if [ $kills -eq 0 ]; then
			until_true test -s "$tmp/file"
			until_true is_another "$tmp/file" \
				"$(stat -c %i "$tmp/file")"
		else
			sleep "0.$(printf '%03d' $((200 + RANDOM % 500)))"
		fi
		kill -KILL "$server" 2>/dev/null
		end_all
		[ $status -eq 137 ] || return # it was faster
		kills=$((kills + 1))
	done
	start --all -v --checkpoint "$tmp/file" "$@"
	end_all
}

rm -f "$tmp/file"
until_done --every 0.1 -n 2 --nap 0.05 "$tree"
check 'kill -9 of the program, and it goes on: the sums are the same' \
	same 0 "$tmp/want"
check 'not from the beginning' said ', [1-9][0-9]* of them before;'
rm -f "$tmp/file"
until_done --every 0.1 -n 2 --nap 0.05 --kill 2 "$tree"
check 'the same while its workers are killed, too' same 0 "$tmp/want"
run --all -v --checkpoint "$tmp/file" "$tree"
check 'what is complete stays so' same 0 "$tmp/want"
run --all --checkpoint "$tmp/file" "$tree/a"
check 'for other directories it is refused' same 1 /dev/null
check 'which is said' said "$tmp/file is of other directories"
run --all --checkpoint "$tmp/none/file" "$tmp/text"
check 'one that cannot be saved is an error' same 1 /dev/null
check 'which is said' said "^wordcount: checkpoint not saved: $tmp/none/.*: No such file or directory\$"
# One file in two of the trees that were named counts twice.
run --all "$tree" "$tree/a"
cp "$tmp/out" "$tmp/want2"
rm -f "$tmp/file"
until_done --every 0.1 -n 2 --nap 0.05 "$tree" "$tree/a"
check 'of a tree in another one the sums are the same, too' same 0 "$tmp/want2"
rm -f "$tmp/file"
run --all --checkpoint "$tmp/file" "$tree"

# A byte of it.
flip() {
	printf '\377' | dd of="$1" bs=1 seek=100 conv=notrunc 2>/dev/null
}
flip "$tmp/file"
cp "$tmp/file" "$tmp/damaged"
run --all --checkpoint "$tmp/file" "$tree"
check 'a damaged one is refused' same 1 /dev/null
check 'which is said' said "^wordcount: $tmp/file is damaged"
check 'and left as it is' cmp "$tmp/file" "$tmp/damaged"

# ---- the stop ----------------------------------------------------------------

rm -f "$tmp/file"
start --all -v --checkpoint "$tmp/file" -n 2 --nap 0.2 "$tree"
check 'workers come' until_true has_workers 2
check 'and it hears signals' until_true hears "$server"
kill -INT "$server"
end_all
check 'SIGINT ends it' same 130 /dev/null
check 'it says who' said "^wordcount: SIGINT from pid $$,"
check 'what was done' said \
	'^wordcount: [0-9]+ of [0-9]+ chunks are counted, 0 of them before; 0 workers'
check 'and how to go on' said '^wordcount: to go on: the same once more$'
counted=$(number 'wordcount: ([0-9]+) of')
run --all -v --checkpoint "$tmp/file" "$tree"
check 'then it goes on' same 0 "$tmp/want"
check 'nothing was counted twice' said ", $counted of them before;"

# At any moment.
stops=0
rounds=0
all_right=true
while [ $stops -lt "${EVC_STOPS:-5}" ] && [ $rounds -lt 100 ]; do
	start --all --nap 0.02 "$tree"
	sleep "0.$(printf '%03d' $((RANDOM % 250)))"
	kill -TERM "$server" 2>/dev/null
	end_all
	rounds=$((rounds + 1))
	case $status in
	0) same 0 "$tmp/want" || all_right=false ;;
	130)
		same 130 /dev/null && said 'SIGTERM from pid' || all_right=false
		stops=$((stops + 1)) ;;
	143) ;; # before it has asked for signals, or at its very end
	*) same 0 "$tmp/want" || all_right=false ;;
	esac
done
check "$stops stops at random moments of $rounds runs" $all_right

# ---- the bar -----------------------------------------------------------------

run --all --bar --nap 0.02 "$tree"
its_bar='\[#* *\] +[0-9]+%  [0-9]+/[0-9]+, [0-9]+ running, [0-9]+/s'
check 'with --bar there is a bar' said "$its_bar"
check 'which comes to its end' said '100%  ([0-9]+)/\1, 0 running'
check 'and the sums are the same' same 0 "$tmp/want"
if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	echo "SKIP wordcount.sh: the bar on a terminal: no script(1) (Debian:" \
		"bsdutils), or no pseudoterminal"
	exit $((failures != 0))
fi
script -qec "'$bin/wordcount' --all --nap 0.02 '$tree' >'$tmp/out'" /dev/null \
	</dev/null >"$tmp/err" 2>&1
status=$?
check 'on a terminal there is one, too' said "$its_bar"
check 'with the same sums' same 0 "$tmp/want"

exit $((failures != 0))
