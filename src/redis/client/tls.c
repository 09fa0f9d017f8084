/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS, where hiredis has it (from its version 1 on).
 *
 * The server's certificate has to be signed by `ca` (or by one that the system
 * trusts); whose it is hiredis does not look at, so `ca` should be one that signs
 * this server alone.
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

/* A file has to have something in it. */
extern const char evc__client_has_no_tls[];
const char evc__client_has_no_tls[] = "";

#endif
