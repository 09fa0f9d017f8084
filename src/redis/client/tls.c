/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS, where hiredis has TLS (from version 1 on).  The certificate of the
 * server has to be signed by `ca`, or by an authority that the system trusts.
 * hiredis does not compare names, so `ca` should sign this server alone.
 * Called by: link.c; client.c at the end.
 * Locks: none; loop thread only.
 */
#include "redis/client/client.h"

#ifdef HAVE_HIREDIS_SSL

#include <hiredis/hiredis_ssl.h>

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

bool
evc__client_tls(struct link *l)
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

#else

/* ISO C forbids an empty file. */
extern const char evc__client_has_no_tls[];
const char evc__client_has_no_tls[] = "";

#endif
