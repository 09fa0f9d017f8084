# SPDX-License-Identifier: BSD-2-Clause
#
# Completion of bash for the four tools.  It is installed once under the name of
# each of them.

# Before the word in the works: in $prev; the word itself: in $cur.
_evc_tools()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local tool=${1##*/} words='' files='' commands=''

	case $tool in
	evc-cluster)
		case $COMP_CWORD/${COMP_WORDS[1]} in
		1/*) words='status clean --help --version' ;;
		*/status) words='--json redis:// rediss://' ;;
		*/clean) words='--force redis:// rediss://' ;;
		esac
		;;
	evc-trace)
		words='-o --help --version'
		files=yes
		;;
	evc-worker)
		case $prev in
		-n|--workers|-g|--grace) return ;;
		esac
		words='--workers --grace --once --help --version redis:// rediss://'
		files='*.so'
		;;
	evc-shake)
		case $prev in
		-s|--signal) words='ALRM HUP INT PIPE QUIT TERM USR1 USR2' ;;
		-e|--status) words='0 signal' ;;
		-j|--json) files=yes ;;
		-l|--load|--) commands=yes ;;
		-[gtncSwrk]|--grace|--time|--moments|--calls|--seed|--worst|\
		--repeat|--times) return ;;
		*)
			words='--moments --signal --grace --time --load --status
				--calls --ignore-early --seed --worst --repeat
				--times --json --help --version'
			commands=yes
			files=yes
			;;
		esac
		;;
	esac

	# Bash splits words at a colon: this is a part of an address.
	[[ $prev != : && $cur != :* ]] || return
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	case $cur in
	-*) ;;
	*)
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
		;;
	esac
}

complete -F _evc_tools evc-cluster evc-shake evc-trace evc-worker
