/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client and TLS, where hiredis has it: a server that is who its certificate
 * says, and ones that are not.
 */
#include "../support/redis_client_util.h"

#ifndef HAVE_HIREDIS_SSL

int
main(void)
{
	printf("SKIP: redis/tls: this hiredis has no TLS\n");
	return 77;
}

#else

/* A certificate, by the openssl program: false: there is none. */
static bool
make_certificates(const char *dir)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "cd %s && exec >/dev/null 2>&1 &&"
		 " openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key"
		 " -out ca.crt -days 2 -subj /CN=ca &&"
		 " openssl req -newkey rsa:2048 -nodes -keyout s.key -out s.csr"
		 " -subj /CN=s &&"
		 " openssl x509 -req -in s.csr -CA ca.crt -CAkey ca.key"
		 " -CAcreateserial -out s.crt -days 2",
		 dir);
	return system(command) == 0;
}

static int
start_server(struct redis_server *s)
{
	int port = rs_free_port();

	rs_option(s, "tls-port %d", port);
	rs_option(s, "tls-cert-file %s/s.crt", s->dir);
	rs_option(s, "tls-key-file %s/s.key", s->dir);
	rs_option(s, "tls-ca-cert-file %s/ca.crt", s->dir);
	rs_start(s);
	return port;
}

static void
anew(struct world *w, const char *uri)
{
	evc__redis_client_free(w->cl);
	evc__redis_address_free(&w->at);
	w->ups = w->downs = 0;
	w->is_up = false;
	begin(w, uri);
}

START_TEST(by_tls)
{
	static char large[1 << 20];
	struct world w = { .patience = 2 };
	struct redis_args a = { .n = 0 };
	char uri[512], dir[64], key[16];
	int port, i;

	rs_folder(&w.s);
	snprintf(dir, sizeof(dir), "%s", w.s.dir);
	if (!make_certificates(dir)) {
		rs_free(&w.s);
		T_SKIP("no openssl program");
	}
	port = start_server(&w.s);
	world_open(&w);
	snprintf(uri, sizeof(uri),
		 "rediss://127.0.0.1:%d/ns?ca=%s/ca.crt&cert=%s/s.crt"
		 "&key=%s/s.key",
		 port, dir, dir, dir);
	begin(&w, uri);
	TURN(&w, w.ups == 1);
	memset(large, 'x', sizeof(large));
	for (i = 0; i < 16; i++) {
		evc__args_text(&a, "SET");
		evc__args_fmt(&a, "l%d", i);
		evc__args_add(&a, large, sizeof(large));
		ck_assert(evc__redis_send(w.cl, REDIS_SAY, on_answer, &w, &a));
	}
	TURN(&w, w.answers == 16);
	for (i = 0; i < 16; i++) {
		snprintf(key, sizeof(key), "l%d", i);
		ck_assert(say(&w, REDIS_LISTEN, on_answer, "GET", key, NULL));
	}
	TURN(&w, w.answers == 32);
	ck_assert_int_eq(w.errors + w.nones, 0);
	rs_kill(&w.s);
	TURN(&w, w.downs > 0);
	rs_start(&w.s);
	TURN(&w, w.ups == 2);
	/* Nobody has signed for it; a file that is not there; a port without. */
	snprintf(uri, sizeof(uri), "rediss://127.0.0.1:%d/ns", port);
	anew(&w, uri);
	TURN(&w, w.downs > 0);
	/* Both connections fail, and only one of them says why. */
	ck_assert(strstr(w.why, "certificate") != NULL ||
		  strstr(w.why, "TLS") != NULL);
	snprintf(uri, sizeof(uri), "rediss://127.0.0.1:%d/ns?ca=%s/none", port,
		 dir);
	anew(&w, uri);
	TURN(&w, w.downs > 0);
	HAS(w.why, "TLS");
	snprintf(uri, sizeof(uri), "rediss://127.0.0.1:%d/ns?ca=%s/ca.crt",
		 w.s.port, dir);
	anew(&w, uri);
	TURN(&w, w.downs > 0);
	HAS(w.why, "(is this a port for TLS? if not: redis://)");
	ck_assert_int_eq(w.ups, 0);
	/* And the other way round. */
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d/ns", port);
	anew(&w, uri);
	TURN(&w, w.downs > 0);
	HAS(w.why, "rediss://)");
	ck_assert_int_eq(w.ups, 0);
	end(&w);
}
END_TEST

RS_MAIN("redis/tls", by_tls)

#endif
