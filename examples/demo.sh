#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# demo.sh - a loaded server stops well, and a cluster whose workers are killed
# counts right and learns right: what `make demo` runs.
#
# Needs the built examples `server` and `client`.  Their folder is the first
# argument, else the environment variable EVC_EXAMPLES, else build/examples
# beside the folder of this script.  wrk and curl are used when they are there,
# and so are the examples `wordcount` and `trainer` and, in ../tools beside the examples or in
# EVC_TOOLS, evc-trace.
#
# It writes files into a temporary folder, serves them on a free port of
# 127.0.0.1, and loads the server with
#	wrk         as fast as it goes, over keep-alive connections
#	curl        a download of 30 MB, slow enough to be under way at the stop
#	client      the project's own, which checks every byte of every answer
# Then comes SIGTERM, in the middle of it all.  The server stops in phases: first
# nobody is accepted any more, then the connections end, then the thread that
# hashes for them, then the access log.  Every request of which the server had
# read one byte must be answered in full: what the clients received whole is
# counted against what the server says it began, and against the lines of its
# log.
#
# Then the words of some text are counted by four worker processes, two of which
# are killed with kill -9 in the middle of it; the sums are compared with those
# of tr, sort and uniq.  And four worker processes train a model, a million weights
# in one vector, while one of them is killed every 100 to 200 ms; the model is
# compared with that of one thread.
#
# Beside what is printed here there are three files when it is over, in the folder
# EVC_DEMO_DIR (default: the current one): demo-report.txt, what the server and
# the clients said; demo-timeline.json, the timeline of the stop; and
# demo-timeline.svg, what evc-trace draws of it: a lane for each thread, loop and
# scope, and the request as a line through all of them.
#
# Exit status: 0; 1 if one request was cut, or if counts or models do not agree.

set -u

if [ "${1-}" = --help ]; then
	echo "usage: demo.sh [FOLDER]"
	echo "a loaded server stops well, then a cluster counts and learns right;"
	echo "FOLDER has the built examples (build/examples);"
	echo "EVC_TOOLS in the environment is the folder of evc-trace"
	exit
fi

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
bin=${1:-${EVC_EXAMPLES:-$here/../build/examples}}
tools=${EVC_TOOLS:-$bin/../tools}
kept=$(CDPATH='' cd -- "${EVC_DEMO_DIR:-.}" && pwd) || exit 1
report=$kept/demo-report.txt
timeline=$kept/demo-timeline.json
picture=$kept/demo-timeline.svg
small='0 1000 4096 20000 150000'
big=31457280
pids=''
failed=0

for program in server client; do
	if [ ! -x "$bin/$program" ]; then
		echo "demo: no $bin/$program: build it, or name its folder" >&2
		exit 1
	fi
done

tmp=$(mktemp -d) || exit 1

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	for pid in $pids; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "demo: FAILED: $*"
	failed=1
}

# number FILE EXPRESSION: the number that the expression's group matches.
number() {
	sed -n "s/.*$2.*/\\1/p" "$1" | tail -n 1 | grep . || echo 0
}

# make_text: some megabytes of it.
make_text() {
	mkdir "$tmp/text" || return
	if ! cat /usr/share/common-licenses/* >"$tmp/some" 2>/dev/null; then
		awk 'BEGIN {
			for (i = 0; i < 60000; i++)
				printf "%c%c%c%s", 97 + i % 26,
					97 + int(i * i / 7) % 26,
					97 + int(i / 11) % 26,
					i % 9 ? " " : "\n"
		}' >"$tmp/some"
	fi
	copies=$((4000000 / $(wc -c <"$tmp/some") + 1))
	while [ $copies -gt 0 ]; do
		cp "$tmp/some" "$tmp/text/$copies" || return
		copies=$((copies - 1))
	done
}

# count_words: on the cluster, and by what everybody has.
count_words() {
	bar=''
	[ -t 1 ] && bar=--bar
	make_text || fail "there is no text"
	du -sh "$tmp/text" | awk '{ print $1 " of text; each chunk of 64 kB" \
		" takes 0.25 s longer than it has to" }'
	{
		# shellcheck disable=SC2086 # a word, or none
		"$bin/wordcount" -v $bar -n 4 --kill 2 --nap 0.25 --all \
			"$tmp/text" 2>&1 >"$tmp/words"
		echo $? >"$tmp/status"
	} | tee "$tmp/counting"
	tr '\r' '\n' <"$tmp/counting" | grep '^wordcount: ' >"$tmp/said"
	cat "$tmp"/text/* | LC_ALL=C tr -cs '[:alpha:]' '[\n*]' |
		LC_ALL=C tr '[:upper:]' '[:lower:]' | grep . | LC_ALL=C sort |
		uniq -c | awk '{ print $1, $2 }' >"$tmp/want"
	total='{ n += $1 } END { print n + 0 " words, " NR " different ones" }'
	echo "the cluster has counted         $(awk "$total" "$tmp/words")"
	echo "tr | sort | uniq -c             $(awk "$total" "$tmp/want")"
	echo "the most frequent ones          $(sort -k1,1nr "$tmp/words" |
		awk 'NR <= 5 { printf "%s%s %s", (NR > 1 ? ", " : ""), $2,
			$1 }')"
	[ "$(cat "$tmp/status")" -eq 0 ] ||
		fail "wordcount ends with $(cat "$tmp/status")"
	[ "$(grep -c 'kill -9' "$tmp/said")" -eq 2 ] ||
		fail "two workers were to be killed"
	if cmp "$tmp/words" "$tmp/want"; then
		echo "the same sum for each word      yes"
	else
		fail "the sums are not the same"
	fi
}

# train: the trainer compares by itself.
train() {
	{
		"$bin/trainer" --quick --kill 2>&1
		echo $? >"$tmp/status"
	} | tee "$tmp/training"
	grep -E '^(batches|kill -9|final losses) ' "$tmp/training" |
		sed 's/^/trainer: /' >>"$tmp/said"
	[ "$(cat "$tmp/status")" -eq 0 ] ||
		fail "trainer ends with $(cat "$tmp/status")"
	grep -q '^kill -9  *[1-9]' "$tmp/training" ||
		fail "workers were to be killed"
}

echo "== files"
mkdir "$tmp/www" || exit 1
# shellcheck disable=SC2086 # a list of sizes
"$bin/client" make "$tmp/www" $small $big || exit 1
for size in $small $big; do
	echo "$size.bin"
done

echo
echo "== server"
: >"$tmp/server"
rm -f "$report" "$timeline" "$picture"
"$bin/server" -l 2 -g 30 -a "$tmp/log" --trace "$timeline" "$tmp/www" \
	>"$tmp/server" 2>"$tmp/server.err" &
server=$!
pids="$pids $server"
tries=0
until grep -q listening "$tmp/server"; do
	tries=$((tries + 1))
	if [ $tries -gt 200 ] || ! kill -0 $server 2>/dev/null; then
		echo "demo: the server does not start" >&2
		cat "$tmp/server.err" >&2
		exit 1
	fi
	sleep 0.05
done
port=$(number "$tmp/server" 'listening on 127\.0\.0\.1:\([0-9]*\)')
echo "pid $server, port $port, 2 loops in 2 threads; a blocking thread hashes," \
	"one writes the log"

echo
echo "== load"
# All three go on until the server is gone: were one of them ended before, it
# would leave a request behind whose answer nobody receives.
url=http://127.0.0.1:$port
wrk='' curl=''
if command -v wrk >/dev/null; then
	wrk -t 1 -c 32 -d 60 "$url/4096.bin" >"$tmp/wrk" 2>&1 &
	wrk=$!
	pids="$pids $wrk"
	echo "wrk      32 connections, 4096.bin again and again"
else
	echo "wrk      is not installed: left out"
fi
if command -v curl >/dev/null; then
	: >"$tmp/got"
	curl -sS --limit-rate 7M -o "$tmp/got" "$url/$big.bin" \
		2>"$tmp/curl" &
	curl=$!
	pids="$pids $curl"
	echo "curl     $big bytes, at 7 MB a second"
else
	echo "curl     is not installed: left out"
fi
# shellcheck disable=SC2086
"$bin/client" load -c 16 -s 60 -h "$port" $small >"$tmp/client" 2>&1 &
client=$!
pids="$pids $client"
echo "client   16 connections, files and hashes, every byte checked"

sleep 1.5
echo
echo "== kill -TERM $server"
if [ -n "$curl" ]; then
	echo "(curl has $(wc -c <"$tmp/got") bytes of $big)"
fi
kill -TERM $server
shown=1
if [ -n "$curl" ]; then
	sleep 0.5
	echo
	echo "== kill -USR1 $server, half a second later: who is alive?"
	kill -USR1 $server
	tries=0
	until [ "$(grep -c ' why: ' "$tmp/server")" -gt 0 ] ||
		[ $tries -gt 40 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	sed 1d "$tmp/server"
	shown=$(wc -l <"$tmp/server")
	if grep -q 'connections (phase 1)/.*hasher (phase 2)/.*log (phase 3)/' \
		"$tmp/server"; then
		echo "(the hasher and the log wait until the connection has" \
			"ended)"
	else
		fail "the connection does not stand before hasher and log"
	fi
	echo
	echo "== the end"
fi
wait $server
status=$?
wait $client
client_status=$?
curl_status=0
if [ -n "$curl" ]; then
	wait $curl
	curl_status=$?
fi
if [ -n "$wrk" ]; then
	kill -INT $wrk
	wait $wrk
fi
pids=''
sed "1,${shown}d" "$tmp/server"
cat "$tmp/server.err"

echo
echo "== what the clients saw"
[ -n "$wrk" ] && sed 's/^/wrk: /' "$tmp/wrk"
cat "$tmp/client"

begun=$(number "$tmp/server" 'requests: \([0-9]*\) begun')
answered=$(number "$tmp/server" ' \([0-9]*\) answered')
cut=$(number "$tmp/server" ' \([0-9]*\) cut')
logged=$(wc -l <"$tmp/log")
by_client=$(number "$tmp/client" 'client: \([0-9]*\) answered')
by_wrk=0 by_curl=0
[ -n "$wrk" ] && by_wrk=$(number "$tmp/wrk" ' \([0-9]*\) requests in')
if [ -n "$curl" ]; then
	if [ $curl_status -ne 0 ]; then
		cat "$tmp/curl"
		fail "the download was cut: curl ends with $curl_status"
	elif ! cmp "$tmp/got" "$tmp/www/$big.bin"; then
		fail "the download is not what was served"
	else
		by_curl=1
		echo "curl: $big bytes, every one of them right"
	fi
fi
if [ -n "$wrk" ]; then
	echo "(What wrk calls errors began with the stop: write errors are its"
	echo "knocking at the closed port, read errors connections that ended"
	echo "with no byte of an answer.  None of them is a request begun, else"
	echo "the sums below would differ.)"
fi

echo
echo "== verdict"
received=$((by_client + by_wrk + by_curl))
echo "requests begun by the server    $begun"
echo "answered by the server          $answered"
echo "lines in its access log         $logged"
echo "received whole by the clients   $received" \
	"(wrk $by_wrk + client $by_client + curl $by_curl)"
echo "cut                             $cut"
[ $status -eq 0 ] || fail "the server ends with $status"
[ $client_status -eq 0 ] || fail "the client ends with $client_status"
[ "$cut" -eq 0 ] || fail "$cut requests were cut"
[ "$answered" -gt 0 ] || fail "nothing was answered"
[ "$logged" -eq "$answered" ] ||
	fail "$answered were answered, the log has $logged lines"
[ "$received" -eq "$begun" ] ||
	fail "$begun were begun, $received arrived whole"

: >"$tmp/said"
if [ -x "$bin/wordcount" ]; then
	echo
	echo "== cluster: words, counted by 4 processes, of which 2 are killed"
	count_words
else
	echo
	echo "== cluster: no $bin/wordcount: left out"
fi
if [ -x "$bin/trainer" ]; then
	echo
	echo "== cluster: a model, trained by 4 processes, which are killed"
	train
else
	echo
	echo "== cluster: no $bin/trainer: left out"
fi

{
	sed 's/^/server: /; s/^server: server: /server: /' "$tmp/server"
	sed 's/^/server: /' "$tmp/server.err"
	[ -z "$wrk" ] || sed 's/^/wrk: /' "$tmp/wrk"
	sed 's/^/client: /; s/^client: client: /client: /' "$tmp/client"
	echo "begun $begun, answered $answered, logged $logged," \
		"received whole $received, cut $cut"
	cat "$tmp/said"
} >"$report" || fail "$report cannot be written"
[ -s "$timeline" ] || fail "there is no timeline in $timeline"
if [ ! -x "$tools/evc-trace" ]; then
	picture="$timeline (no $tools/evc-trace, which would draw it)"
elif ! "$tools/evc-trace" -o "$picture" "$timeline"; then
	fail "$timeline cannot be drawn"
fi
echo
[ $failed -eq 0 ] && echo "demo: no request was cut"
[ $failed -eq 0 ] && grep -q '^wordcount: ' "$tmp/said" &&
	echo "demo: no word is missing"
[ $failed -eq 0 ] && grep -q '^trainer: ' "$tmp/said" &&
	echo "demo: no step of the training is missing"
echo "demo: the report:   $report"
echo "demo: the timeline: $picture"
exit $failed
