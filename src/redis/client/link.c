/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection: a context of hiredis on the client's loop. hiredis frees a
 * broken context by itself, deep inside its calls.  So a loss is only noted
 * here (evc__client_lost), and the client takes both connections down later.
 * hiredis writes by plain calls, which raise SIGPIPE after a loss: the signal
 * is blocked during a write, and a raised one is taken back.
 * Called by: the client's other files; hiredis and libev.
 * Locks: none; loop thread only.
 */
#include <hiredis/adapters/libev.h>
#ifdef HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#endif
#include <hiredis/sds.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#include "redis/client/client.h"

/* So many bytes of an answer are progress: a network with less in a patience is no
   network for a cluster. */
#define PROGRESS 16384
/* No answer has more elements, and nobody waits for so many. */
#define ELEMENTS_MOST (1 << 24)

/* ---- lost ---- */

void
evc__client_lost(struct redis_client *cl, const char *fmt, ...)
{
	struct text t;
	va_list ap;

	/* The first reason is the cause of all others. */
	if (cl->lost)
		return;
	cl->lost = true;
	cl->refused = false;
	t = evc__text_in(cl->why, sizeof cl->why);
	evc__text_fmt(&t, "%s: ", cl->place);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	if (cl->run[0] == '\0' &&
	    (cl->state == CLIENT_ASKS || cl->state == CLIENT_LOGS_IN))
		evc__text_add(&t, evc__redis_hint(cl->env.address, cl->why));
	redis_timer_in(cl->ev, &cl->again, 0);
}

void
evc__client_place(struct redis_client *cl, const char *host, unsigned port)
{
	struct text t = evc__text_in(cl->place, sizeof cl->place);

	evc__text_add(&t, host);
	if (port != 0)
		evc__text_fmt(&t, ":%u", port);
}

bool
evc__redis_client_is_up(const struct redis_client *cl)
{
	return cl != NULL && cl->state == CLIENT_UP && !cl->lost;
}

/* ---- the descriptor's events ---- */

/* Call fn with SIGPIPE blocked. fn may free the context. */
static void
without_sigpipe(void (*fn)(redisAsyncContext *ac), redisAsyncContext *ac)
{
	const struct timespec at_once = { 0, 0 };
	const struct link *l = ac->data;
	sigset_t pipe, old;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	fn(ac);
	if (sigismember(&old, SIGPIPE) == 1)
		return;
	/* SIGPIPE was not blocked before, so no signal was pending then. */
	if (l->ac == NULL)
		while (sigtimedwait(&pipe, NULL, &at_once) < 0 &&
		       errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* true: bytes have come without a question. hiredis ends the process then,
   unless the bytes are an error.  A server of TLS may send records unasked. */
static bool
is_unasked(const struct link *l)
{
	char c;

	return l->first == NULL && !l->cl->env.address->tls &&
	       sync_recv_peek(l->ac->c.fd, &c, 1) == 1 && c != '-';
}

/* Bytes are to come.  A large answer may take any time with progress; some bytes of
   a small answer now and then are no sign of life. */
static void
note_bytes(struct link *l)
{
	int n = 0;

	if (l->partial && sync_fd_unread(l->ac->c.fd, &n) == 0)
		l->n_partial += (size_t)n;
	l->partial = true;
	if (l->n_partial < PROGRESS)
		return;
	l->n_partial = 0;
	l->heard = sync_mono_coarse();
}

static void
on_readable(struct ev_loop *ev, struct ev_io *io, int events)
{
	redisLibevEvents *e = io->data;
	struct link *l = e->context->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&l->cl->on))
		return;
	if (is_unasked(l))
		evc__client_lost(l->cl, "the server has sent unexpected data");
	/* The loop's next turn closes the connection. */
	if (l->cl->lost)
		return;
	note_bytes(l);
	/* A read by TLS may write, too. */
	if (l->cl->env.address->tls)
		without_sigpipe(redisAsyncHandleRead, e->context);
	else
		redisAsyncHandleRead(e->context);
}

static size_t
unsent_bytes(const struct link *l)
{
	const redisAsyncContext *ac = l->ac;

	return ac != NULL && ac->c.obuf != NULL ? sdslen(ac->c.obuf) : 0;
}

static void
on_writable(struct ev_loop *ev, struct ev_io *io, int events)
{
	redisLibevEvents *e = io->data;
	struct link *l = e->context->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&l->cl->on))
		return;
	/* The other end makes progress with large data, however slowly. */
	if (l->full)
		l->heard = sync_mono_coarse();
	without_sigpipe(redisAsyncHandleWrite, e->context);
	l->full = unsent_bytes(l) > 0;
}

/* ---- the socket ---- */

/* The text of hiredis about the loss.  By TLS the text may be a former
   errno. */
static const char *
why_ended(const redisAsyncContext *ac, bool tls)
{
	const char *why = ac->c.errstr;

	if (ac->c.err == 0 || why[0] == '\0')
		return "the connection was closed";
	return tls && strcmp(why, strerror(0)) == 0 ? "TLS failed" : why;
}

/* hiredis frees the context after this call. */
static void
on_disconnect(const redisAsyncContext *ac, int status)
{
	struct link *l = ac->data;

	(void)status;
	if (l == NULL)
		return;
	l->ac = NULL;
	l->cl->no_memory |= ac->c.err == REDIS_ERR_OOM;
	evc__client_lost(l->cl, "%s",
			 why_ended(ac, l->cl->env.address->tls));
}

static void
on_connect(const redisAsyncContext *ac, int status)
{
	struct link *l = ac->data;

	if (status != REDIS_OK)
		on_disconnect(ac, status);
	else if (l != NULL)
		l->heard = sync_mono_coarse();
}

/* Have the kernel look for the other end: a connection that waits for an answer
   sends nothing. */
static void
set_up_socket(int fd, bool tcp, double patience)
{
	int on = 1, seconds = patience > 4 ? (int)(patience / 4) : 1,
	    probes = 3, ms = patience < 1e6 ? (int)(patience * 1000) : 0;

	/* Programs that are started later must not keep the socket open. */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!tcp)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds,
			 sizeof seconds);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds,
			 sizeof seconds);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static bool
attach_to_loop(struct link *l)
{
	redisAsyncContext *ac = l->ac;
	redisLibevEvents *e;

	if (redisLibevAttach(l->cl->ev, ac) != REDIS_OK)
		return false;
	e = ac->ev.data;
	ev_set_cb(&e->rev, on_readable);
	ev_set_cb(&e->wev, on_writable);
	return redisAsyncSetDisconnectCallback(ac, on_disconnect) == REDIS_OK &&
	       redisAsyncSetConnectCallback(ac, on_connect) == REDIS_OK;
}

/* ---- limits of answers ---- */

#if HIREDIS_MAJOR >= 1
typedef size_t elements;
#else
typedef int elements;
#endif

static void *(*_Atomic create_array)(const redisReadTask *, elements);

static void *
create_some(const redisReadTask *task, elements n)
{
	return n > ELEMENTS_MOST ? NULL : sync_load(&create_array)(task, n);
}

static void
limit_elements(struct link *l)
{
	redisReader *r = l->ac->c.reader;

	l->objects = *r->fn;
	sync_store(&create_array, l->objects.createArray);
	l->objects.createArray = create_some;
	r->fn = &l->objects;
}

/* ---- TLS ---- */

#ifdef HAVE_HIREDIS_SSL

/* The certificate of the server has to be signed by `ca`, or by an authority
   that the system trusts. hiredis does not compare names, so `ca` should sign
   this server alone. */
static bool
make_tls_context(struct redis_client *cl)
{
	const struct redis_address *at = cl->env.address;
	redisSSLContextError e = REDIS_SSL_CTX_NONE;

	if (cl->tls != NULL)
		return true;
	cl->tls = redisCreateSSLContext(at->ca, NULL, at->cert, at->key,
					at->tls_name, &e);
	if (cl->tls == NULL)
		evc__client_lost(cl, "TLS: %s", redisSSLContextGetError(e));
	return cl->tls != NULL;
}

static bool
begin_tls(struct link *l)
{
	redisContext *c = &l->ac->c;

	if (!make_tls_context(l->cl))
		return false;
	if (redisInitiateSSLWithContext(c, l->cl->tls) == REDIS_OK)
		return true;
	evc__client_lost(l->cl, "TLS: %s", c->errstr);
	return false;
}

void
evc__client_tls_free(struct redis_client *cl)
{
	if (cl->tls != NULL)
		redisFreeSSLContext(cl->tls);
}

#endif

/* ---- beginning and end ---- */

bool
evc__link_connect(struct link *l, const char *host, unsigned port)
{
	struct redis_client *cl = l->cl;
	redisAsyncContext *ac = port == 0 ? redisAsyncConnectUnix(host)
					  : redisAsyncConnect(host, (int)port);

	l->heard = sync_mono_coarse();
	l->full = l->partial = l->pinged = false;
	l->n_partial = 0;
	l->n_steps = l->at = 0;
	l->run[0] = '\0';
	if (ac == NULL || ac->err != 0) {
		evc__client_lost(cl, "%s",
				 ac == NULL ? "no memory" : ac->c.errstr);
		if (ac != NULL)
			redisAsyncFree(ac);
		return false;
	}
	set_up_socket(ac->c.fd, port != 0, cl->env.patience);
	ac->data = l;
	l->ac = ac;
	limit_elements(l);
#ifdef HAVE_HIREDIS_SSL
	if (cl->env.address->tls && !begin_tls(l))
		return false;
#endif
	if (!attach_to_loop(l))
		evc__client_lost(cl, "no memory");
	return !cl->lost;
}

void
evc__client_link_close(struct link *l)
{
	redisAsyncContext *ac = l->ac;

	if (ac == NULL)
		return;
	l->ac = NULL;
	ac->data = NULL;
	redisAsyncFree(ac);
}

void
evc__link_off(struct link *l, struct ev_loop *loop)
{
	redisLibevEvents *e = l->ac != NULL ? l->ac->ev.data : NULL;

	if (e == NULL)
		return;
	ev_io_stop(loop, &e->rev);
	ev_io_stop(loop, &e->wev);
}

/* ---- the state of the connection ---- */

bool
evc__link_is_silent(const struct link *l, uint64_t now, double patience)
{
	double wait = patience;

	if (l->first == NULL)
		return false;
	if (l->first->blocks < 0)
		return false;
	wait += l->first->blocks;
	return now > l->heard && (double)(now - l->heard) > wait * 1e9;
}

size_t
evc__redis_client_backlog(const struct redis_client *cl, enum redis_which which)
{
	return unsent_bytes(&cl->links[which]);
}
