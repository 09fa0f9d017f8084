dnl SPDX-License-Identifier: BSD-2-Clause
dnl
dnl Flags that are used only where the compiler and the linker take them.

dnl EVC_TRY_CFLAGS(VARIABLE, FLAGS): VARIABLE gets those FLAGS that compile
dnl without a word.  -Werror turns "unknown option" warnings into a no.
AC_DEFUN([EVC_TRY_CFLAGS], [
	$1=
	for evc_flag in m4_normalize([$2]); do
		AC_MSG_CHECKING([whether $CC takes $evc_flag])
		evc_save_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror $evc_flag"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
			[AC_MSG_RESULT([yes])
			 AS_VAR_APPEND([$1], [" $evc_flag"])],
			[AC_MSG_RESULT([no])])
		CFLAGS=$evc_save_CFLAGS
	done
])

dnl EVC_LINKS_SHARED(WHAT, FLAGS, IF-YES, IF-NO): link a shared library, not a
dnl program: the two take different flags.
AC_DEFUN([EVC_LINKS_SHARED], [
	AC_MSG_CHECKING([whether a shared library links with $1])
	evc_save_CFLAGS=$CFLAGS
	evc_save_LDFLAGS=$LDFLAGS
	CFLAGS="$CFLAGS -fPIC $EVC_SAN_CFLAGS"
	LDFLAGS="$LDFLAGS -shared $2"
	AC_LINK_IFELSE([AC_LANG_SOURCE([[
		#include <stdlib.h>
		void *evc_probe(void);
		void *evc_probe(void) { return malloc(1); }
	]])],
		[evc_links=yes], [evc_links=no])
	CFLAGS=$evc_save_CFLAGS
	LDFLAGS=$evc_save_LDFLAGS
	AC_MSG_RESULT([$evc_links])
	AS_IF([test $evc_links = yes], [$3], [$4])
])

dnl EVC_PROBE_LIB_LDFLAGS: sets EVC_LIB_LDFLAGS, how libevcoord is linked: the
dnl symbol version script, or a libtool export filter where the linker knows none;
dnl no undefined symbols; dlclose leaves it where it is, because handlers of
dnl signals and threads lead into it; and its calls of its own public functions
dnl go there directly.  EVC_CLUSTER_LDFLAGS, EVC_REDIS_LDFLAGS: the
dnl same for libevcoord-cluster and libevcoord-redis.
AC_DEFUN([EVC_PROBE_LIB_LDFLAGS], [
	AS_ECHO(["EVC_PROBE_1 { global: evc_@<:@a-z@:>@*; local: *; };"]) >conftest.map
	EVC_LINKS_SHARED([a version script], [-Wl,--version-script,conftest.map],
		[EVC_LIB_LDFLAGS='-Wl,--version-script,$(top_srcdir)/src/libevcoord.map'],
		[EVC_LIB_LDFLAGS='-export-symbols-regex ^evc_@<:@a-z@:>@'])
	rm -f conftest.map
	EVC_LINKS_SHARED([-Wl,-z,defs], [-Wl,-z,defs],
		[AS_VAR_APPEND([EVC_LIB_LDFLAGS], [" -Wl,-z,defs"])])
	EVC_LINKS_SHARED([-Wl,-z,nodelete], [-Wl,-z,nodelete],
		[AS_VAR_APPEND([EVC_LIB_LDFLAGS], [" -Wl,-z,nodelete"])])
	EVC_LINKS_SHARED([-Wl,-Bsymbolic-functions], [-Wl,-Bsymbolic-functions],
		[AS_VAR_APPEND([EVC_LIB_LDFLAGS], [" -Wl,-Bsymbolic-functions"])])
	EVC_CLUSTER_LDFLAGS=`AS_ECHO(["$EVC_LIB_LDFLAGS"]) |
		$SED 's/libevcoord@<:@.@:>@map/libevcoord-cluster.map/'`
	EVC_REDIS_LDFLAGS=`AS_ECHO(["$EVC_LIB_LDFLAGS"]) |
		$SED 's/libevcoord@<:@.@:>@map/libevcoord-redis.map/'`
])
