dnl SPDX-License-Identifier: BSD-2-Clause
dnl
dnl EVC_SANITIZE: --enable-sanitize=LIST, a comma separated list out of
dnl address, undefined and thread.  Sets EVC_SAN_CFLAGS, and EVC_SANITIZERS to
dnl the words of the list.
AC_DEFUN([EVC_SANITIZE], [
	AC_ARG_ENABLE([sanitize],
		[AS_HELP_STRING([--enable-sanitize=LIST],
			[build with sanitizers: address, undefined or thread, comma separated])],
		[], [enable_sanitize=no])
	EVC_SAN_CFLAGS=
	EVC_SANITIZERS=
	AS_CASE([$enable_sanitize],
	[no], [],
	[yes|''], [AC_MSG_ERROR([--enable-sanitize needs a list: address, undefined, thread])],
	[
		for evc_san in `AS_ECHO(["$enable_sanitize"]) | tr , ' '`; do
			AS_CASE([$evc_san], [address|undefined|thread], [],
				[AC_MSG_ERROR([--enable-sanitize does not know '$evc_san': address, undefined, thread])])
			EVC_SANITIZERS="${EVC_SANITIZERS:+$EVC_SANITIZERS }$evc_san"
		done
		EVC_SAN_CFLAGS="-fsanitize=$enable_sanitize -fno-omit-frame-pointer -fno-sanitize-recover=all"
		AC_MSG_CHECKING([whether programs link with $EVC_SAN_CFLAGS])
		evc_save_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS $EVC_SAN_CFLAGS"
		AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 AC_MSG_ERROR([this compiler cannot build with -fsanitize=$enable_sanitize])])
		CFLAGS=$evc_save_CFLAGS
	])
	AC_SUBST([EVC_SAN_CFLAGS])
	AC_SUBST([EVC_SANITIZERS])
])
