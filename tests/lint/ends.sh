#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Calls that give something back, or look at something, are alike in all
# families; the rules stand in evcoord(7), under NAMES OF CALLS.  An exception is
# named here, with its reason.
. "$(dirname "$0")/common.sh"
need include/evcoord.h include/evcoord/types.h man/evcoord.7

# A cluster is closed by each of its openers, so it is gone for the caller
# whatever the result; the code is that of what no call has said yet.
closes="evc_cluster_close"
# A task is the caller's own memory, and its errors are its owner's.
void_ends="evc_task_end"
# The engine is asked, and the loop waited for.
asking_gets="evc_variable_get evc_exec_variable_get evc_vector_get
	evc_exec_vector_get"
# Two numbers and no struct.
plain_gets="evc_progress_get"

# shellcheck disable=SC2046
awk -v closes="$closes" -v void_ends="$void_ends" -v asking="$asking_gets" \
	-v plain="$plain_gets" '
function list(text, into,    n, i, all) {
	n = split(text, all, " ")
	for (i = 1; i <= n; i++)
		into[all[i]] = 1
}
function wrong(why) {
	print FILENAME ":" line ": " name ": " why
}
function says(pattern) {
	if (comment !~ pattern)
		return 0
	return 1
}
# Gives back what it is called with.
function gives_back() {
	if (n != 1 || param[1] ~ /\*[ ]*\*/ || param[1] !~ /\*/)
		wrong("takes the pointer, and that alone")
	if (type != "void" && type != "evc_status")
		wrong("returns evc_status, or void when it is never refused")
	if (!says("NULL is fine|NULL and nil are fine"))
		wrong("says that NULL is fine")
	if (type == "evc_status" && !(name in is_close) &&
	    !says("gone after 0"))
		wrong("says that the object is gone after 0")
	if (type == "void" && !says("Returns: +nothing"))
		wrong("says that it returns nothing")
}
function ends() {
	if (name in void_end ? type != "void" : type != "evc_status")
		wrong("returns " (name in void_end ? "void" : "evc_status"))
}
function gets() {
	if (type != "evc_status")
		wrong("returns evc_status")
	if (param[1] !~ /^const / && !(name in is_asking))
		wrong("its object is const")
	if (param[n] !~ /\*+ *ret_[a-z]+$/)
		wrong("fills its last argument, *ret_...")
	if (!(name in is_plain) && n > 1 && param[n - 1] ~ /[* ]ret_/)
		wrong("fills one struct")
	if (!says("EVC_INVALID_ARGUMENT|Returns: +as evc_|else as evc_"))
		wrong("says when it is refused")
	if (params ~ /unsigned index|evc_id id/ && !(name in is_plain) &&
	    !says("[(]may be NULL[)]"))
		wrong("says that the result may be NULL")
}
function judge(    at, i, text) {
	gsub(/[\t ]+/, " ", decl)
	sub(/^ /, "", decl)
	if (!match(decl, /evc_[a-z0-9_]+ ?\(/))
		return
	name = substr(decl, RSTART, RLENGTH - 1)
	sub(/ $/, "", name)
	type = substr(decl, 1, RSTART - 1)
	at = RSTART + RLENGTH
	gsub(/EVC_[A-Z_]+(\([^)]*\))?|static|inline/, "", type)
	gsub(/^ +| +$/, "", type)
	text = substr(decl, at)
	sub(/\)[^)]*$/, "", text)
	params = text
	n = split(text, param, / *, */)
	# Of the adapters among each other.
	if (name ~ /^evc_adapter_/)
		return
	if (name ~ /^evc_free$|_(free|release|detach)$/ || name in is_close)
		gives_back()
	else if (name ~ /_(close|end|remove|stop)$/ && type != "bool")
		ends()
	if (name ~ /_get$/)
		gets()
	if (name ~ /_(destroy|delete|dispose|unref|fini)$/)
		wrong("another word for free")
	for (i = 1; i <= n; i++)
		if (param[i] ~ /\* *\*[a-z]/ && param[i] !~ /\*ret(_[a-z]+)?$/)
			wrong("a pointer to a pointer is *ret_...: " param[i])
	found++
}
BEGIN {
	list(closes, is_close); list(void_ends, void_end)
	list(asking, is_asking); list(plain, is_plain)
}
FNR == 1 { inside = reading = 0; comment = "" }
!inside && /^\/\*/ { comment = ""; reading = 1 }
reading {
	text = $0
	gsub(/^ \* ?|\*\/.*/, "", text)
	comment = comment " " text
	gsub(/[\t ]+/, " ", comment)
	if (/\*\//)
		reading = 0
	next
}
/EVC_API|^static inline [a-z]/ { decl = ""; inside = 1; line = FNR }
inside {
	decl = decl " " $0
	if (/[;{]/) {
		inside = 0
		sub(/[;{].*/, "", decl)
		judge()
	}
}
END { if (found < 200) print "only " found + 0 " calls were found" }
' $(public_headers; adapter_headers | grep '\.h$') |
	broken_lines "a call that is not as the others of its kind"

# What the lint excuses, the page explains.
for name in $closes $void_ends $asking_gets $plain_gets; do
	sed -n '/^\.Ss Names of calls/,/^\.Ss /p' man/evcoord.7 |
		grep -q "$name" || echo "man/evcoord.7: $name"
done | broken_lines "an exception that evcoord(7) does not name"

verdict
