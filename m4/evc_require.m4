dnl SPDX-License-Identifier: BSD-2-Clause
dnl
dnl What evcoord cannot be built without.

dnl EVC_REQUIRE_ATOMIC8: the state of a coordinator is one 64-bit word that a
dnl signal handler changes; with a lock behind its atomics that would deadlock.
AC_DEFUN([EVC_REQUIRE_ATOMIC8], [
	AC_CACHE_CHECK([whether 8-byte atomics are lock-free], [evc_cv_atomic8],
		[AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
			_Static_assert(__atomic_always_lock_free(8, 0), "locks");
		]])], [evc_cv_atomic8=yes], [evc_cv_atomic8=no])])
	AS_IF([test $evc_cv_atomic8 = no],
		[AC_MSG_ERROR([the 8-byte atomics of this machine and compiler take locks: a stop could not be asked for in a signal handler])])
])

dnl EVC_REQUIRE_LIBEV: there is no .pc file in most distributions, so header
dnl and library are looked for; some keep the header in a folder of its own.
AC_DEFUN([EVC_REQUIRE_LIBEV], [
	AC_ARG_VAR([LIBEV_CFLAGS], [flags to compile with libev])
	AC_ARG_VAR([LIBEV_LIBS], [flags to link with libev])
	evc_save_CPPFLAGS=$CPPFLAGS
	evc_save_LIBS=$LIBS
	CPPFLAGS="$CPPFLAGS $LIBEV_CFLAGS"
	AC_CHECK_HEADER([ev.h], [evc_have_ev_h=yes], [evc_have_ev_h=no])
	AS_IF([test $evc_have_ev_h = no], [
		AC_CHECK_HEADER([libev/ev.h], [
			evc_have_ev_h=yes
			for evc_dir in "$includedir" /usr/local/include /usr/include; do
				AS_IF([test -f "$evc_dir/libev/ev.h"],
					[LIBEV_CFLAGS=-I$evc_dir/libev; break])
			done
			CPPFLAGS="$evc_save_CPPFLAGS $LIBEV_CFLAGS"])])
	AS_IF([test $evc_have_ev_h = no],
		[AC_MSG_ERROR([libev's header ev.h was not found (Debian: libev-dev; or set LIBEV_CFLAGS)])])
	AC_MSG_CHECKING([whether libev is 4.x with several loops, ev_async and priorities])
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
		#include <ev.h>
		#if EV_VERSION_MAJOR < 4 || !EV_MULTIPLICITY || !EV_ASYNC_ENABLE
		#error too little
		#endif
		#if EV_MAXPRI <= 0
		#error no priorities
		#endif
	]])], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([libev 4 with several loops, ev_async and priorities is needed])])
	AC_COMPUTE_INT([evc_libev], [EV_VERSION_MINOR], [[#include <ev.h>]],
		[evc_libev=x])
	evc_libev=4.$evc_libev
	AS_IF([test "x$LIBEV_LIBS" = x], [LIBEV_LIBS=-lev])
	LIBS="$LIBEV_LIBS $LIBS"
	AC_MSG_CHECKING([for ev_run with $LIBEV_LIBS])
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ev.h>]],
			[[ev_run(ev_default_loop(0), EVRUN_NOWAIT);]])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([libev's library was not found (Debian: libev-dev; or set LIBEV_LIBS)])])
	CPPFLAGS=$evc_save_CPPFLAGS
	LIBS=$evc_save_LIBS
])

dnl EVC_PROBE_HTTP(LIBRARY, HEADER, FUNCTION, FLAGS): have_http becomes the name
dnl of the library, unless another one was found before.
AC_DEFUN([EVC_PROBE_HTTP], [
	evc_save_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$CPPFLAGS $HTTP_PARSER_CFLAGS"
	AS_IF([test $have_http = no], [AC_CHECK_HEADER([$2],
		[AC_CHECK_LIB([$1], [$3],
			[have_http=$1
			 HTTP_PARSER_CFLAGS="$HTTP_PARSER_CFLAGS $4"
			 : ${HTTP_PARSER_LIBS=-l$1}], [],
			[$HTTP_PARSER_LIBS])])])
	CPPFLAGS=$evc_save_CPPFLAGS
])
