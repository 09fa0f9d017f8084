/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for GLib (2.36 and later): a coordinator in a program whose loop
 * is a GMainLoop.  See evcoord/adapter.h and evcoord-loops(7).
 */
#ifndef EVCOORD_GLIB_H
#define EVCOORD_GLIB_H

#include <evcoord/adapter.h>

#include <glib.h>

/* A source of the context; its functions run in main loops inside one of its
   callbacks, too. */
typedef struct evc_glib {
	GSource source;
	struct evc_adapter adapter; /* adapter.reactor is for the program */
	GMainContext *context;
	GMainLoop *loop; /* of the run */
	gpointer tag;
} evc_glib;

static inline gboolean
evc_glib_dispatch(GSource *source, GSourceFunc fn, gpointer data)
{
	evc_glib *g = EVC_CAST_(evc_glib *, EVC_CAST_(void *, source));

	(void)fn;
	(void)data;
	if (evc_adapter_turn(&g->adapter) && g->loop != EVC_NULL_)
		g_main_loop_quit(g->loop);
	return g->adapter.watched ? TRUE : FALSE;
}

/*
 * Attach a context (NULL: the default one) to c.  The source keeps no main loop
 * running; its priority is G_PRIORITY_DEFAULT.
 *
 * Thread:    the one that runs the context.
 * Ownership: *ret is the caller's, until evc_glib_detach; it holds a reference
 *            to the context.  name is copied.
 * Returns:   as evc_reactor_foreign; -EVC_FAILED_PRECONDITION while another
 *            thread runs the context; without 0, *ret is NULL.
 * Since:     0.2
 */
static inline evc_status
evc_glib_attach(evc_coord *c, const char *name, GMainContext *context,
		evc_glib **ret)
{
	static GSourceFuncs funcs = { EVC_NULL_, EVC_NULL_, evc_glib_dispatch,
				      EVC_NULL_, EVC_NULL_, EVC_NULL_ };
	GSource *source;
	evc_glib *g;
	evc_status st;

	if (ret == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_glib_attach",
					  -EVC_INVALID_ARGUMENT, "no result");
	*ret = NULL;
	if (!g_main_context_acquire(context))
		return evc_adapter_refuse(c, "evc_glib_attach",
					  -EVC_FAILED_PRECONDITION,
					  "another thread runs the context");
	g_main_context_release(context);
	source = g_source_new(&funcs, sizeof(evc_glib));
	g = EVC_CAST_(evc_glib *, EVC_CAST_(void *, source));
	st = evc_adapter_open(&g->adapter, c, name);
	if (st < 0) {
		g_source_unref(source);
		return st;
	}
	if (context == EVC_NULL_)
		context = g_main_context_default();
	g->context = g_main_context_ref(context);
	g->tag = g_source_add_unix_fd(source, g->adapter.fd, G_IO_IN);
	g_source_set_can_recurse(source, TRUE);
	g_source_attach(source, context);
	*ret = g;
	return 0;
}

/*
 * Detach the context.  A call that is refused changes nothing.
 *
 * Thread:    that of the attach; not inside evc_glib_run.
 * Ownership: g is gone after 0.  NULL is fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
static inline evc_status
evc_glib_detach(evc_glib *g)
{
	GMainContext *context;
	evc_status st;
	bool on;

	if (g == EVC_NULL_)
		return 0;
	st = evc_adapter_leaving(&g->adapter, "evc_glib_detach");
	if (st < 0)
		return st;
	on = !g_source_is_destroyed(&g->source);
	if (on)
		g_source_modify_unix_fd(&g->source, g->tag,
					EVC_CAST_(GIOCondition, 0));
	st = evc_adapter_detach(&g->adapter);
	if (st < 0) {
		if (on)
			g_source_modify_unix_fd(&g->source, g->tag, G_IO_IN);
		return st;
	}
	context = g->context;
	g_source_destroy(&g->source);
	g_source_unref(&g->source);
	g_main_context_unref(context);
	return 0;
}

/* Is the calling thread inside a callback of the context, or a run of loop? */
static inline bool
evc_glib_inside(const evc_glib *g, GMainLoop *loop)
{
	GSource *now = g_main_current_source();

	return (now != EVC_NULL_ && g_source_get_context(now) == g->context) ||
	       (loop != EVC_NULL_ && g_main_loop_is_running(loop));
}

/*
 * Run the main loop until the members have ended after a stop: in place of
 * g_main_loop_run.  A g_main_loop_quit by the program requests the stop.
 *
 * Thread:    that of the attach; not inside a callback of the context.
 * Ownership: loop (NULL: one of its own) is of the context of the attach, and
 *            stays the caller's; *ret_verdict as for evc_run.
 * Returns:   as evc_run; -EVC_INVALID_ARGUMENT for a loop of another context.
 * Since:     0.2
 */
static inline evc_status
evc_glib_run(evc_glib *g, GMainLoop *loop, const evc_join_opts *opts,
	     evc_verdict *ret_verdict)
{
	evc_status st;

	if (g != EVC_NULL_ && loop != EVC_NULL_ &&
	    g_main_loop_get_context(loop) != g->context)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_glib_run: a loop of another context");
	st = evc_adapter_begin(g != EVC_NULL_ ? &g->adapter : EVC_NULL_,
			       "evc_glib_run",
			       g != EVC_NULL_ && evc_glib_inside(g, loop),
			       opts);
	if (st < 0)
		return st;
	g->loop = loop != EVC_NULL_ ? g_main_loop_ref(loop) :
				 g_main_loop_new(g->context, FALSE);
	while (evc_adapter_goes_on(&g->adapter)) {
		g_main_loop_run(g->loop);
		evc_adapter_ended(&g->adapter, 0, 0,
				  "g_main_loop_quit by the application");
	}
	g_main_loop_unref(g->loop);
	g->loop = EVC_NULL_;
	return evc_adapter_end(&g->adapter, ret_verdict);
}

#endif
