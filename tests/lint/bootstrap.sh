#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ./bootstrap demo without a network, with stand-ins for the programs that it
# runs: it goes on without what the demo can do without, and ends with one line
# without what the demo needs; and it shows nothing that the demo does not need.
. "$(dirname "$0")/common.sh"
need bootstrap

mkdir "$tmp/tree" "$tmp/bin"
cp bootstrap "$tmp/tree"
# stand_in NAME COMMANDS
stand_in() {
	printf '#!/bin/sh\n%s\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
stand_in apt-get 'echo "E: Temporary failure resolving"; exit 100'
stand_in apt-cache '[ "$2" != libllhttp-dev ]'
stand_in autoreconf ''
stand_in id 'echo 0'
stand_in make 'echo "made $*"'
stand_in dpkg-query 'for name; do
	case " $ABSENT " in *" $name "*) ;; *) echo "installed $name" ;; esac
done'
printf '#!/bin/sh\necho "  dig  no  a test is skipped"\n' \
	>"$tmp/tree/configure"
chmod +x "$tmp/tree/configure"

# boots ABSENT: what it says, without "made"; its status.
boots() {
	rm -rf "$tmp/tree/build"
	(cd "$tmp/tree" && CI='' ABSENT=$1 PATH="$tmp/bin:$PATH" ./bootstrap demo) \
		>"$tmp/all" 2>&1
	status=$?
	grep -vE '^made |: installing |: generating |: configuring ' "$tmp/all" \
		>"$tmp/said"
}

boots ''
[ $status = 0 ] || broken "status $status with all that the demo needs"
broken_lines "the demo does not need this" <"$tmp/said"
boots 'wrk curl'
grep -q 'made .* demo' "$tmp/all" || broken "no demo without wrk and curl"
[ "$(wc -l <"$tmp/said")" = 1 ] && grep -q 'wrk.*network' "$tmp/said" ||
	broken_lines "more than one line without wrk and curl" <"$tmp/said"
boots 'libev-dev wrk'
[ $status = 1 ] || broken "status $status without libev-dev"
[ "$(wc -l <"$tmp/said")" = 1 ] && grep -q 'libev-dev.*network' "$tmp/said" ||
	broken_lines "more than one line without libev-dev" <"$tmp/said"
# A machine that has never had a network.
stand_in apt-cache false
boots 'libev-dev wrk'
[ $status = 1 ] && [ "$(wc -l <"$tmp/said")" = 1 ] &&
	grep -q 'no libev-dev.*network' "$tmp/said" ||
	broken_lines "more than one line without lists" <"$tmp/said"
verdict
