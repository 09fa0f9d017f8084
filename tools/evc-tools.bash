# SPDX-License-Identifier: BSD-2-Clause
#
# Completion of bash for the five tools.  It is installed once under the name of
# each of them.

# The word in the works, and the one before it, in $cur and $prev.  Bash splits
# words at "=" and ":"; the value of --option=value counts as the next word.
_evc_words()
{
	cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	if [[ $cur = = ]]; then
		cur=''
	elif [[ $prev = = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
}

# evc-shake: where the program to shake stands, in $program, or nowhere yet.
_evc_program()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) program=$((i + 1)) && return ;;
		-[nSsgtlecwrkj]|--moments|--seed|--signal|--grace|--time|--load|\
		--status|--calls|--worst|--repeat|--times|--json)
			[[ ${COMP_WORDS[i + 1]-} != = ]] || ((i++))
			((i++)) ;;
		-*) ;;
		*) program=$i && return ;;
		esac
	done
}

_evc_shake()
{
	local program=''

	_evc_program
	if [[ $program && $program -lt $COMP_CWORD ]]; then
		# The program has options of its own.
		if declare -F _command_offset >/dev/null; then
			_command_offset "$program"
			return 1
		fi
		files=yes
		return
	fi
	case $prev in
	-s|--signal)
		words='ALRM HUP INT PIPE QUIT TERM USR1 USR2'
		[[ $cur != SIG* ]] || words="SIG${words// / SIG}" ;;
	-e|--status) words='0 signal' ;;
	-j|--json) files=yes ;;
	-l|--load) commands=yes ;;
	-[gtncSwrk]|--grace|--time|--moments|--calls|--seed|--worst|--repeat|\
	--times) return 1 ;;
	*)
		[[ $program ]] || options='--moments --signal --grace --time
			--load --status --calls --ignore-early --seed --worst
			--repeat --times --json --help --version'
		commands=yes
		files=yes ;;
	esac
}

_evc_tools()
{
	local cur prev options='' words='' files='' commands=''

	_evc_words
	# Here is a part of an address.
	[[ $prev != : && $cur != :* ]] || return
	case ${1##*/} in
	evc-cluster)
		case $COMP_CWORD/${COMP_WORDS[1]} in
		1/*) words='status clean' options='--help --version' ;;
		*/status) words='redis:// rediss://' options=--json ;;
		*/clean) words='redis:// rediss://' options=--force ;;
		esac ;;
	evc-trace)
		[[ $prev = -o ]] || options='-o --help --version'
		files=yes ;;
	evc-worker)
		case $prev in
		-n|--workers|-g|--grace) return ;;
		esac
		options='--workers --grace --once --help --version'
		words='redis:// rediss://'
		files='*.so' ;;
	evc-shake-client)
		case $prev in
		-c|-t) return ;;
		esac
		options='-a -c -k -t --help --version'
		words=http:// ;;
	evc-shake) _evc_shake || return ;;
	esac

	if [[ $cur = -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$cur"))
		return
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	# The rest of an address follows without a blank.
	[[ ${COMPREPLY[0]-} != *:// ]] || compopt -o nospace 2>/dev/null
	if [[ $commands ]]; then
		COMPREPLY+=($(compgen -c -- "$cur"))
	fi
	if [[ $files ]]; then
		local IFS=$'\n'
		compopt -o filenames 2>/dev/null
		COMPREPLY+=($(compgen -d -- "$cur"))
		[[ $files = yes ]] && COMPREPLY+=($(compgen -f -- "$cur"))
		[[ $files = yes ]] ||
			COMPREPLY+=($(compgen -f -X "!$files" -- "$cur"))
	fi
}

complete -F _evc_tools evc-cluster evc-shake evc-shake-client evc-trace evc-worker
