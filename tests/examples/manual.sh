#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The programs in the manual work.  Each literal block of an EXAMPLES section
# that has a main() is compiled as a user would, with all warnings as errors,
# against the headers and the built library, and run with a limit.  The programs
# of README and of the chapters in doc/ are, too: one that takes signals gets a
# ^C, and the text shows what another one writes.
#
# A comment right before a block tells what is expected of it:
#	.\" status 124		the program's exit status, when it is not 0
#	.\" output		this block is what the program before it writes
#
# A section THE FIRST PROGRAM has a block with a comment before it,
#	.\" file NAME
# and blocks with the comment
#	.\" commands
# of lines that begin with "$ " and of what they write.  All that is done in one
# shell, with a Redis server on another port than the page's 6400.
#
# EVC_MANUAL names other pages than all of them, EVC_MANUAL_LIMIT the seconds.
. "$(dirname "$0")/../lint/common.sh"

as_a_user
cluster="-levcoord-cluster"
[ -e "$build/src/.libs/libevcoord.so" ] ||
	cluster="$build/src/.libs/libevcoord-cluster.a"
# With KILL a hang has status 137: 124 is one of evc_finish.
limited=${EVC_TIMEOUT:+$EVC_TIMEOUT -s KILL ${EVC_MANUAL_LIMIT:-60}}

# extract PAGE: its programs as $tmp/PAGE.N.c, beside each .status and, where
# the page shows it, .want.  What the compiler says names the page's lines.
extract() {
	awk -v page="$1" -v base="$tmp/${1##*/}." '
	function complain(text) {
		print page ":" FNR ": " text
	}
	function unquoted(s) {
		gsub(/\\&/, "", s)
		gsub(/\\-/, "-", s)
		gsub(/\\\(dq/, "\"", s)
		gsub(/\\e/, "\\", s)
		return s
	}
	/^\.Sh / {
		inside = $2 == "EXAMPLES"
		first = /^\.Sh THE FIRST PROGRAM$/
	}
	/^\.\\" (status|output)/ {
		if (!inside)
			complain("a mark outside of EXAMPLES")
		status = $2 == "status" ? $3 : ""
		output = $2 == "output"
		marked = FNR
		next
	}
	marked && marked == FNR - 1 && !/^\.Bd -literal/ {
		complain("a mark, and no block right after it")
	}
	/^\.Bd -literal/ {
		open = 1
		has_main = 0
		text = ""
		start = FNR + 1
		next
	}
	/^\.Ed/ && open {
		open = 0
		if (has_main && !inside && !first)
			complain("a program outside of EXAMPLES")
		if (has_main && inside) {
			n++
			printf "#line %d \"%s\"\n%s", start, page,
				text >(base n ".c")
			print status == "" ? 0 : status >(base n ".status")
		} else if (status != "" || (output && !n)) {
			complain("a mark, and no program")
		} else if (output) {
			printf "%s", text >(base n ".want")
		}
		status = ""
		output = 0
		next
	}
	open {
		text = text unquoted($0) "\n"
		has_main = has_main || /^main\(/
	}
	END {
		if (page ~ /evcoord-(cluster|engine|escalation|looper|report|runner|scope|trace|value|wake|worker)\.3$|evcoord-port\.7$/ && !n)
			complain("no program in its EXAMPLES")
	}' "$1" >"$tmp/complaints"
	broken_lines "examples of $1" <"$tmp/complaints"
}

# try_synopsis PAGE: as a program that declares all of it once more, which the
# compiler takes only if it is the same.  What is a macro is declared as well.
try_synopsis() {
	awk -v page="$1" '
	function word(	w, n) {
		sub(/^ +/, "", rest)
		if (rest ~ /^"/) {
			n = index(substr(rest, 2), "\"")
			w = substr(rest, 2, n - 1)
			rest = substr(rest, n + 2)
		} else {
			match(rest, /^[^ ]*/)
			w = substr(rest, 1, RLENGTH)
			rest = substr(rest, RLENGTH + 1)
		}
		return w
	}
	function take_args(	w) {
		while ((w = word()) != "")
			args = args (args == "" ? "" : ", ") w
	}
	function declare() {
		if (n++ == 0)
			print "#include <evcoord.h>\n" \
				"#include <evcoord/cluster.h>\n" \
				"#include <evcoord/unstable/engine.h>\n" \
				"#include <evcoord/redis.h>\n" \
				"#include <evcoord/worker.h>"
		printf "#undef %s\n#line %d \"%s\"\n%s %s(%s);\n", name, FNR,
			page, type, name, args == "" ? "void" : args
	}
	/^\.Sh / { inside = $2 == "SYNOPSIS" }
	!inside { next }
	{ rest = substr($0, 5) }
	/^\.Ft / { type = rest }
	/^\.Fo / { name = word(); args = "" }
	/^\.Fa / { take_args() }
	/^\.Fc/ { declare() }
	/^\.Fn / { name = word(); args = ""; take_args(); declare() }
	' "$1" >"$tmp/synopsis.c"
	[ -s "$tmp/synopsis.c" ] || return
	# shellcheck disable=SC2086 # lists of flags
	if ${CC:-cc} $flags -fsyntax-only "$tmp/synopsis.c" >"$tmp/said" 2>&1
	then
		echo "ok $1, $(grep -c '^#line' "$tmp/synopsis.c") declarations"
	else
		broken "$1: its SYNOPSIS is not what the headers declare:"
		cat "$tmp/said"
	fi
}

# build_program FILE.c NAME: the program FILE
build_program() {
	libs_of=$libs
	! grep -Eq '<evcoord/(cluster|unstable/engine|value|worker)\.h>' "$1" ||
		libs_of="-L$build/src/.libs $cluster $libs"
	compiler=${CC:-cc} from=$1
	if grep -q '<evcoord.hpp>' "$1"; then
		# Without its #line, which makes g++ take it for a header.
		compiler="$CXX -std=$(cxx_language "$1")" from=${1%.c}.cc
		sed 1d "$1" >"$from"
	fi
	# shellcheck disable=SC2086 # lists of flags
	$compiler $flags "$from" -o "${1%.c}" $libs_of >"$tmp/said" 2>&1 &&
		return
	broken "$2: does not compile:"
	cat "$tmp/said"
	return 1
}

# cxx_language FILE: a program with coroutines or stop tokens needs C++20.
cxx_language() {
	if grep -Eq 'co_await|stop_token' "$1"; then
		echo c++20
	else
		echo c++17
	fi
}

# c_alone FILE: why a program in C cannot be one in C++20.
c_alone() {
	if grep -q '<stdatomic.h>' "$1"; then
		echo "C++ has stdatomic.h from C++23 on"
	elif grep -Eq '(\{|^)[[:space:]]*\.[a-z_]+\.[a-z_]+ = ' "$1"; then
		echo "C++ has no designators of a member's member"
	elif grep -q 'sa_handler = ' "$1"; then
		echo "in C++ sa_handler, a member of a union, has no designator"
	fi
}

# in_cxx PROGRAM.c NAME: a program in C is one in C++20 as well, but for a void *
# that becomes another pointer without a cast, of which g++ warns when it is told
# to be permissive.
in_cxx() {
	if ! $CXX --version 2>&1 | grep -q 'Free Software Foundation' ||
	   grep -q '<evcoord.hpp>' "$1"; then
		return
	fi
	why=$(c_alone "$1")
	if [ -n "$why" ]; then
		echo "in C alone: $2: $why"
		return
	fi
	# shellcheck disable=SC2086 # lists of flags
	if ! $CXX -x c++ -std=c++20 $flags -Wno-error -fpermissive \
		-Wno-missing-field-initializers -fsyntax-only "$1" \
		>"$tmp/said" 2>&1 ||
	   grep 'warning:' "$tmp/said" |
		grep -Eqv "from .(const )?void\*.|\"_GNU_SOURCE\" redefined"
	then
		broken "$2: is no C++:"
		cat "$tmp/said"
	fi
}

try_program() {
	program=${1%.c}
	name=$(sed -n '1s/#line \([0-9]*\) "\(.*\)"/\2:\1/p' "$1")
	want=$(cat "$program.status")
	if grep -q '<evcoord.hpp>' "$1" && [ -z "$CXX" ]; then
		echo "SKIP $name: no C++ compiler"
		return
	fi
	in_cxx "$1" "$name"
	build_program "$1" "$name" || return
	(cd "$tmp" && $limited "$program") >"$tmp/out" 2>"$tmp/err"
	status=$?
	if [ $status != "$want" ]; then
		broken "$name: status $status, not $want; it said:"
		cat "$tmp/out" "$tmp/err"
	elif [ -e "$program.want" ] &&
	     ! diff -u "$program.want" "$tmp/out" >"$tmp/said"; then
		broken "$name: the page shows another output:"
		cat "$tmp/said" "$tmp/err"
	else
		echo "ok $name, status $status"
	fi
}

# extract_text TEXT: its programs as $tmp/TEXT.N.c, the indented blocks that begin
# with an #include.
extract_text() {
	awk -v base="$tmp/${1##*/}." -v text="$1" '
		/^    #include/ && !open {
			open = 1
			n++
			file = base n ".c"
			print "#line " FNR " \"" text "\"" >file
		}
		/^[^ ]/ { open = 0 }
		open { sub(/^    /, ""); print >file }' "$1"
}

# stop_program PROGRAM: started, and stopped by ^C once its thread speaks: that
# begins after the signals were taken.
stop_program() {
	: >"$tmp/out"
	env --default-signal=INT $limited "$1" >>"$tmp/out" 2>&1 &
	tenths=0
	until [ -s "$tmp/out" ] || [ $tenths = 200 ]; do
		sleep 0.1
		tenths=$((tenths + 1))
	done
	kill -INT $!
	wait $!
	status=$?
	[ $status = 0 ] && tail -n 1 "$tmp/out" |
		grep -q '^SIGINT from .*, after .* s$'
}

# run_program PROGRAM TEXT: runs to its end, and TEXT shows what it writes.
run_program() {
	$limited "$1" >"$tmp/out" 2>"$tmp/err"
	status=$?
	sed 's/^/    /' "$tmp/out" | grep -vxF -f "$2" >"$tmp/said"
	[ $status = 0 ] && [ -s "$tmp/out" ] && [ ! -s "$tmp/said" ] && return
	cat "$tmp/err" >>"$tmp/out"
	return 1
}

# try_text FILE.c TEXT: a program that takes signals gets a ^C.
try_text() {
	build_program "$1" "$2" || return
	case " ${EVC_SANITIZERS-} " in
	*" thread "*)
		grep -q evc_signals_start "$1" && ! grep -q evc_run "$1" && {
			echo "SKIP ${1##*/}: a stop while all wait: to the" \
				"thread sanitizer a handler runs when a call" \
				"returns"
			return
		} ;;
	esac
	if grep -q evc_signals_start "$1"; then
		stop_program "${1%.c}"
	else
		run_program "${1%.c}" "$2"
	fi && {
		echo "ok ${1##*/}"
		return
	}
	broken "$2: ${1##*/}: status $status; it said:"
	cat "$tmp/out"
}

# first_program PAGE: the file and the commands of its first program, into
# $tmp/first.
first_program() {
	mkdir -p "$tmp/first"
	awk -v to="$tmp/first/" '
	/^\.Sh / { inside = /^\.Sh THE FIRST PROGRAM$/ }
	inside && /^\.\\" file / { file = $3; next }
	inside && /^\.\\" commands$/ { commands = 1; next }
	/^\.Bd -literal/ { open = file != "" || commands; next }
	/^\.Ed/ { open = commands = 0; file = "" }
	open {
		gsub(/\\&/, "")
		gsub(/\\-/, "-")
		gsub(/\\e/, "\\")
		if (file != "")
			print >(to file)
		else if (sub(/^\$ /, ""))
			print >(to "commands")
		else
			print >(to "want")
	}' "$1"
}

# tools_of_the_build: what a page calls by the names that a user has, in
# $tmp/bin.
tools_of_the_build() {
	mkdir -p "$tmp/bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "${CC:-cc}" >"$tmp/bin/cc"
	printf '#!/bin/sh\necho "%s"\n' \
		"$(echo $flags) -I$PWD/include -L$build/src/.libs $cluster $libs" \
		>"$tmp/bin/pkg-config"
	chmod +x "$tmp/bin"/*
}

# free_port: sets port, on which no server answers.
free_port() {
	port=$((20000 + $$ % 10000))
	while redis-cli -p $port ping >/dev/null 2>&1; do
		port=$((port + 1))
	done
}

try_first() {
	name="$1: its first program"
	for program in redis-server redis-cli; do
		command -v $program >/dev/null || {
			echo "SKIP $name: no $program"
			return
		}
	done
	[ -e "$build/src/.libs/libevcoord-redis.so" ] || {
		echo "SKIP $name: no shared library for Redis was built"
		return
	}
	first_program "$1"
	tools_of_the_build
	free_port
	sed -i "s/6400/$port/g" "$tmp/first"/*
	(
		cd "$tmp/first" || exit 99
		PATH=$tmp/bin:$PATH
		LD_LIBRARY_PATH=$build/src/.libs
		export PATH LD_LIBRARY_PATH
		# A node that is left after a failure ends, too.
		{
			echo "trap 'kill \$! 2>/dev/null || :' EXIT"
			cat commands
		} >run
		$limited sh -e ./run
	) >"$tmp/first/out" 2>"$tmp/first/err"
	status=$?
	if [ $status = 0 ] && diff -u "$tmp/first/want" "$tmp/first/out"; then
		echo "ok $name"
	else
		broken "$name: status $status; it said:"
		cat "$tmp/first/err" "$tmp/first/node.log"
	fi
	# After a failure as well.
	redis-cli -p "$port" shutdown >/dev/null 2>&1
}

for page in ${EVC_MANUAL:-man/*.[1-9] README doc/*.md}; do
	case $page in
	README|*.md)
		extract_text "$page"
		for source in "$tmp/${page##*/}".[0-9]*.c; do
			[ ! -e "$source" ] || try_text "$source" "$page"
		done
		continue ;;
	esac
	try_synopsis "$page"
	! grep -q '^\.Sh THE FIRST PROGRAM$' "$page" || try_first "$page"
	extract "$page"
	for source in "$tmp/${page##*/}".*.c; do
		[ ! -e "$source" ] || try_program "$source"
	done
done

verdict
