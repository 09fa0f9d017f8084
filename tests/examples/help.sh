#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# help.sh - every example and every tool says with --help how it is used, and bash
# completes the options of the tools.
#
# shellcheck disable=SC2154 # bin, tmp, failures: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"

top=${EVC_TOP_SRCDIR:-$here/../..}
tools=${EVC_TOOLS:-$bin/../tools}

# helps [SHELL] PROGRAM: its usage is on standard output, and nothing else is
# said.
helps() {
	local name=${!#}

	"$@" --help >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	[ $status -eq 0 ] && grep -q "^usage: ${name##*/} " "$tmp/out" &&
		[ ! -s "$tmp/err" ] && return
	echo "status $status"
	cat "$tmp/out" "$tmp/err"
	return 1
}

for program in echo_cc pipeline_cc \
	$(sed -n 's/^examples_\([a-z_]*\)_SOURCES.*/\1/p' \
		"$top/examples/Makemodule.am"); do
	[ ! -x "$bin/$program" ] || check "$program --help" helps "$bin/$program"
done
for program in evc-cluster evc-shake evc-shake-client evc-trace evc-worker; do
	[ ! -x "$tools/$program" ] ||
		check "$program --help" helps "$tools/$program"
done
for script in demo.sh demo-redis.sh; do
	check "$script --help" helps sh "$top/examples/$script"
done

# ---- what bash completes -----------------------------------------------------

# completes WORD COMMAND...: WORD is offered for the last word of the command.
completes() (
	want=$1
	shift
	. "$top/tools/evc-tools.bash"
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_evc_tools "$1" "${COMP_WORDS[COMP_CWORD]}" 2>"$tmp/err"
	printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$want" &&
		[ ! -s "$tmp/err" ] && return
	cat "$tmp/err"
	printf 'offered: %s\n' "${COMPREPLY[*]}"
	return 1
)

# typed KEYS LINE: what the line is after these keys, in a bash at a terminal.
typed() {
	printf '%s\n' "cd $tmp" "bind 'set bell-style none'" \
		". $top/tools/evc-tools.bash" "$1"$'\001echo "[\005]"' exit |
		TERM=dumb script -qec 'bash --norc --noprofile -i' /dev/null \
		>"$tmp/out" 2>&1
	tr -d '\r' <"$tmp/out" | grep -qxF "[$2]" && return
	cat -v "$tmp/out"
	return 1
}

# Every long option that a tool takes.
for program in evc-shake evc-shake-client evc-trace evc-worker; do
	for option in $(sed -n 's/^\t*{ "\([a-z-]*\)", [a-z]*_argument.*/\1/p' \
		"$top/tools/$program.c"); do
		check "$program: --$option is completed" \
			completes "--$option" $program "--${option:0:2}"
	done
done
cd "$tmp" && mkdir folder && touch functions.so stop.json || exit 99
check 'a command of evc-cluster' completes status evc-cluster s
check 'its options' completes --json evc-cluster status --
check 'and those of the other' completes --force evc-cluster clean --
check 'a shared object' completes functions.so evc-worker redis://h/n fun
check 'a folder on the way' completes folder evc-worker redis://h/n fo
check 'a timeline' completes stop.json evc-trace -o x.svg st
check 'nothing inside of an address' \
	eval '! completes functions.so evc-worker redis : "" >/dev/null'
check 'a signal' completes TERM evc-shake -s TE
check 'a signal with its prefix' completes SIGTERM evc-shake -s SIGT
check 'a signal behind =' completes TERM evc-shake --signal = T
check 'and without a letter' completes TERM evc-shake --signal =
check 'a program to shake' completes sleep evc-shake slee
check 'a program behind options' completes sleep evc-shake -n 3 --seed = 1 -- slee
check 'a file of the program' completes stop.json evc-shake -i sh st
for dashes in '' --; do
	# shellcheck disable=SC2086 # a word, or none
	check "no option of evc-shake behind a program, $dashes" eval \
		"! completes --load evc-shake $dashes ls --l >/dev/null"
done
check 'bash-completion is asked for the words of the program' eval \
	'(_command_offset() { COMPREPLY=("from $1"); }
	completes "from 3" evc-shake -n 3 ls --l)'
check 'no option is a file' \
	eval '! completes --help evc-trace -o "" >/dev/null'
check 'an option of the client' completes -k evc-shake-client -
if command -v script >/dev/null; then
	check 'no blank behind a part of an address' typed \
		$'evc-cluster status rediss\t' 'evc-cluster status rediss://'
	check 'a blank behind a command' typed $'evc-cluster sta\t' \
		'evc-cluster status '
	check 'a signal behind = at a terminal' typed $'evc-shake --signal=T\t' \
		'evc-shake --signal=TERM '
	check 'a folder on the way' typed $'evc-trace -o fol\t' \
		'evc-trace -o folder/'
fi
exit $((failures != 0))
