#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What `make installcheck` asks of an installation: a program that knows
# nothing but evcoord.pc builds and runs, with the shared library and with the
# static one; the version is the same everywhere; man finds every call.
# The chapters that README points to, and the completion of bash, are there.
# The environment has libdir, includedir, mandir, datadir, docdir, version, CC,
# PKG_CONFIG.

set -u
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

die() {
	echo "installcheck: $*" >&2
	exit 1
}

PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
pc=${PKG_CONFIG:-pkg-config}
[ "$($pc --modversion evcoord)" = "$version" ] ||
	die "evcoord.pc does not say version $version"

cat >"$tmp/use.c" <<'END'
#include <evcoord.h>
#include <stdio.h>
#include <string.h>

static evc_status
work(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_wait_for_stop(c, 60) ? EVC_OK : EVC_DEADLINE_EXCEEDED;
}

int
main(void)
{
	evc_verdict v;
	evc_coord *c;

	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_thread_start(c, "work", work, NULL, NULL, NULL) < 0 ||
	    evc_request_stop(c, EVC_OK, "enough") < 0)
		return 1;
	if (evc_finish(c, evc_join(c, NULL, &v)) != 0 || v.n_ended != 1)
		return 1;
	puts(evc_version());
	return strcmp(evc_version(), EVC_VERSION_STRING) != 0;
}
END

# builds WORD FLAGS...
builds() {
	word=$1
	shift
	${CC:-cc} "$tmp/use.c" -o "$tmp/use" "$@" ||
		die "a program does not link with the $word library"
	said=$("$tmp/use") || die "a program fails with the $word library"
	[ "$said" = "$version" ] || die "evc_version() says $said"
}

# shellcheck disable=SC2046 # lists of flags
if [ -e "$libdir/libevcoord.so" ]; then
	builds shared $($pc --cflags --libs evcoord) "-Wl,-rpath,$libdir"
fi
if [ -e "$libdir/libevcoord.a" ]; then
	# Only ours is static: not every distribution has a libev.a.
	# shellcheck disable=SC2046
	builds static $($pc --cflags evcoord) "$libdir/libevcoord.a" \
		$($pc --static --libs-only-l evcoord | sed 's/-levcoord//') \
		$($pc --static --libs-only-other evcoord)
fi

# The cluster's library, where it was built.
if [ -e "$libdir/pkgconfig/evcoord-cluster.pc" ]; then
	[ "$($pc --modversion evcoord-cluster)" = "$version" ] ||
		die "evcoord-cluster.pc does not say version $version"
	cat >"$tmp/use.c" <<'END'
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <stdio.h>

static evc_status
add(evc_exec *x, void *arg)
{
	int a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &a, &b) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "i", a + b);
}

int
main(void)
{
	static const evc_function functions[] = { { .name = "add",
						    .fn = add } };
	evc_cluster_config k = { .functions = functions, .n_functions = 1 };
	evc_cluster *cluster;
	evc_remote *r;
	evc_value v;
	evc_coord *c;
	int sum;

	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, "threads://2", &k, &cluster) < 0 ||
	    evc_schedule_pack(cluster, "add", NULL, &r, "[ii]", 4, 3) != 0 ||
	    evc_remote_fetch(r, 60, &v) != 0 ||
	    evc_unpack(&v, "i", &sum) < 0 || sum != 7)
		return 1;
	evc_remote_free(r);
	evc_cluster_close(cluster);
	if (evc_finish(c, evc_join(c, NULL, NULL)) != 0)
		return 1;
	puts(evc_version());
	return 0;
}
END
	if [ -e "$libdir/libevcoord-cluster.so" ]; then
		# shellcheck disable=SC2046
		builds "cluster's shared" \
			$($pc --cflags --libs evcoord-cluster) \
			"-Wl,-rpath,$libdir"
	fi
	if [ -e "$libdir/libevcoord-cluster.a" ]; then
		# shellcheck disable=SC2046
		builds "cluster's static" $($pc --cflags evcoord-cluster) \
			"$libdir/libevcoord-cluster.a" "$libdir/libevcoord.a" \
			$($pc --static --libs-only-l evcoord-cluster |
				sed 's/-levcoord-cluster//; s/-levcoord//') \
			$($pc --static --libs-only-other evcoord-cluster)
	fi
fi

# The library of the engine "redis", likewise.
if [ -e "$libdir/pkgconfig/evcoord-redis.pc" ]; then
	[ "$($pc --modversion evcoord-redis)" = "$version" ] ||
		die "evcoord-redis.pc does not say version $version"
	cat >"$tmp/use.c" <<'END'
#include <evcoord.h>
#include <evcoord/redis.h>
#include <evcoord/unstable/engine.h>
#include <stdio.h>

int
main(void)
{
	const evc_engine_ops *redis = evc_redis_engine("redis");

	if (redis == NULL || redis->abi != EVC_ENGINE_ABI ||
	    evc_redis_engine("threads") != NULL)
		return 1;
	puts(evc_version());
	return 0;
}
END
	if [ -e "$libdir/libevcoord-redis.so" ]; then
		# shellcheck disable=SC2046
		builds "redis engine's shared" \
			$($pc --cflags --libs evcoord-redis) \
			"-Wl,-rpath,$libdir"
	fi
	if [ -e "$libdir/libevcoord-redis.a" ]; then
		# shellcheck disable=SC2046
		builds "redis engine's static" $($pc --cflags evcoord-redis) \
			"$libdir/libevcoord-redis.a" \
			"$libdir/libevcoord-cluster.a" "$libdir/libevcoord.a" \
			$($pc --static --libs-only-l evcoord-redis | sed \
				's/-levcoord-redis//; s/-levcoord-cluster//; s/-levcoord//') \
			$($pc --static --libs-only-other evcoord-redis)
	fi
	# A program that is not linked with it finds it, by its own rpath for
	# the libraries that it is linked with.
	cat >"$tmp/use.c" <<'END'
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <stdio.h>
#include <string.h>

int
main(void)
{
	evc_cluster *cluster;
	evc_coord *c;

	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, "redis://127.0.0.1:1/x?nonsense=1", NULL,
			     &cluster) >= 0)
		return 1;
	if (strstr(evc_last_error(), "redis has no option") == NULL) {
		fprintf(stderr, "%s\n", evc_last_error());
		return 1;
	}
	puts(evc_version());
	return evc_free(c) < 0;
}
END
	if [ -e "$libdir/libevcoord-redis.so" ]; then
		# shellcheck disable=SC2046
		builds "cluster's shared" \
			$($pc --cflags --libs evcoord-cluster) \
			"-Wl,-rpath,$libdir" -Wl,--enable-new-dtags
	fi
fi

# What is not installed has no page.
for page in man1/evc-worker.1 man1/evc-cluster.1 man3/evc_redis_engine.3 \
	man7/evcoord-redis.7; do
	[ -e "$libdir/pkgconfig/evcoord-redis.pc" ] || [ ! -e "$mandir/$page" ] ||
		die "$page is of a library that is not installed"
done
# The functions of the adapters, all inline, are in evcoord-loops(7) alone.
adapters='/(adapter|glib|uv|event|sdevent)\.h$'
names=$(ls "$includedir"/evcoord/*.h "$includedir"/evcoord/*/*.h |
	grep -vE "$adapters" | xargs sed -n \
	's/^evc_\([a-z_]*\)(.*/evc_\1/p; s/^EVC_API.*[ *]\(evc_[a-z_]*\)(.*/\1/p')
[ "$(ls "$includedir"/evcoord/ | grep -c '\.hpp$')" = 2 ] ||
	die "the adapters in C++ are missing"
[ -n "$names" ] || die "no function was found in $includedir/evcoord"
for name in $names; do
	page=$mandir/man3/$name.3
	[ -e "$page" ] || die "man does not find $name(3)"
	target=$(sed -n 's/^\.so //p' "$page")
	[ -e "$mandir/${target:-man3/$name.3}" ] ||
		die "$page leads to $target, which is missing"
done
for text in README doc/tutorial.md doc/cluster.md doc/when-a-stop-hangs.md; do
	[ -e "$docdir/$text" ] || die "$text is not in $docdir"
	folder=$(dirname "$docdir/$text")
	for file in $(tr '\n' ' ' <"$docdir/$text" | grep -o ']([^):#]*[)#]' |
		tr -d ']()#'); do
		[ -e "$folder/$file" ] ||
			die "$text points to $file, which is not in $docdir"
	done
done
for tool in evc-shake evc-shake-client; do
	[ -e "$datadir/bash-completion/completions/$tool" ] ||
		die "bash does not complete the options of $tool"
	[ -e "$mandir/man1/$tool.1" ] || die "$tool has no page"
done
echo "installcheck: the installation of $version works"
