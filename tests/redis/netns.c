/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three machines, as far as one can play them: network namespaces with a bridge
 * between them; the server in one, the coordinator here, and nodes in two others
 * with hosts, processes and network of their own, so that nobody can see the death
 * of one but by its lease.  Words are counted; one node is killed, the network of
 * the other one fails; the sums are exact.
 *
 * For root alone, and with ip(8); else it says so and ends with 77.
 */
#include "rows.h"

#include <sched.h>
#include <sys/mount.h>

/* ---- machines ---- */

enum { MACHINES = 3 }; /* 0: the server's */

static struct {
	char name[40];
	int fd; /* its network */
} machines[MACHINES];
static int home = -1;
static unsigned net; /* 10.x.y.0/24 */

static int
run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int
run(const char *fmt, ...)
{
	char command[400];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	snprintf(command + n, sizeof(command) - (size_t)n,
		 " >/dev/null 2>/dev/null");
	return system(command);
}

static void
take_down(void)
{
	int i;

	for (i = 0; i < MACHINES; i++)
		(void)run("ip netns del %s", machines[i].name);
	(void)run("ip link del evcb%u", net);
}

static bool
set_up(void)
{
	unsigned me = (unsigned)getpid() % 60000;
	char path[80];
	int i;

	net = me;
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (run("ip link add evcb%u type bridge", net) != 0)
		return false;
	if (run("ip addr add 10.%u.%u.254/24 dev evcb%u", 100 + net / 250,
		net % 250, net) != 0 ||
	    run("ip link set evcb%u up", net) != 0)
		return false;
	for (i = 0; i < MACHINES; i++) {
		snprintf(machines[i].name, sizeof(machines[i].name),
			 "evc-%u-%d", net, i);
		if (run("ip netns add %s", machines[i].name) != 0 ||
		    run("ip link add evc%u.%d type veth peer name eth0 netns "
			"%s",
			net, i, machines[i].name) != 0 ||
		    run("ip link set evc%u.%d master evcb%u up", net, i,
			net) != 0 ||
		    run("ip -n %s addr add 10.%u.%u.%d/24 dev eth0",
			machines[i].name, 100 + net / 250, net % 250,
			i + 1) != 0 ||
		    run("ip -n %s link set eth0 up", machines[i].name) != 0 ||
		    run("ip -n %s link set lo up", machines[i].name) != 0)
			return false;
		snprintf(path, sizeof(path), "/run/netns/%.39s",
			 machines[i].name);
		machines[i].fd = open(path, O_RDONLY | O_CLOEXEC);
		if (machines[i].fd < 0)
			return false;
	}
	return true;
}

/* This thread is there from now on. */
static void
go_to(int fd)
{
	OK(setns(fd, CLONE_NEWNET));
}

/* A node with a network, processes and a name of its own. */
static pid_t
node_on(int machine, const char *uri, unsigned n_workers)
{
	char variable[512], *argv[] = { (char *)(uintptr_t)"node", NULL };
	char **env, host[20], self[4096] = "";
	pid_t pid;

	snprintf(variable, sizeof(variable), NODE_VARIABLE "=%u %s", n_workers,
		 uri);
	snprintf(host, sizeof(host), "machine-%d", machine);
	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	env = node_environment(variable);
	pid = (pid_t)syscall(SYS_clone,
			     SIGCHLD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS,
			     NULL, NULL, NULL, NULL);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setns(machines[machine].fd, CLONE_NEWNET) != 0 ||
		    sethostname(host, strlen(host)) != 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("proc", "/proc", "proc", 0, NULL) != 0)
			_exit(124);
		execve(self, argv, env);
		_exit(126);
	}
	free(env);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* ---- words ---- */

/* [text] -> how many words; each is counted in the variables, too, all of a text
   or none */
static evc_status
fn_words(evc_exec *x, void *arg)
{
	char text[4096], *word, *save = NULL;
	int n = 0;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", text, sizeof(text)) < 0)
		return EVC_INVALID_ARGUMENT;
	for (word = strtok_r(text, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save), n++)
		if (evc_exec_variable_add(x, word, 1, NULL) < 0)
			return EVC_UNAVAILABLE;
	t_sleep(0.01);
	return evc_exec_return(x, "i", n);
}

enum { TEXTS = 600 };

/* Of text i: "one" once, "two" twice, "many" i % 10 times. */
static void
make_text(int i, char *text, size_t n)
{
	int k;

	snprintf(text, n, "two one two");
	for (k = 0; k < i % 10; k++)
		snprintf(text + strlen(text), n - strlen(text), " many");
}

START_TEST(words_are_counted_on_three_machines)
{
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	evc_cluster_config config = { .lease = 1.5 };
	char text[200], uri[120], where[500] = "";
	evc_remote *r[TEXTS];
	pid_t nodes[3];
	int i;
	unsigned k;

	choose(_i, 0);
	go_to(machines[0].fd);
	redis.server = &redis.own;
	redis.own.n_options = 0;
	rs_option(&redis.own, "bind 0.0.0.0");
	rs_option(&redis.own, "protected-mode no");
	rs_start(&redis.own);
	go_to(home);
	snprintf(uri, sizeof(uri), "redis://10.%u.%u.1:%d/words",
		 100 + net / 250, net % 250, redis.own.port);
	redis_note(uri, 0);
	nodes[0] = node_on(1, uri, 2);
	nodes[1] = node_on(2, uri, 2);
	nodes[2] = 0;
	OK(evc_new(NULL, NULL, &on.c));
	OK(open_another(uri, &config, &on.cl));
	UNTIL(numbers().n_up == 4);
	for (k = 0; k < 4; k++)
		snprintf(where + strlen(where), sizeof(where) - strlen(where),
			 "%s;", worker(k).where);
	HAS(where, "machine-1");
	HAS(where, "machine-2");
	for (i = 0; i < TEXTS; i++) {
		make_text(i, text, sizeof(text));
		r[i] = SCHEDULE_WITH(&txn, "words", "[s]", text);
		if (i == TEXTS / 4) {
			UNTIL(numbers().n_done > 20);
			node_kill(nodes[0]);
			nodes[0] = 0;
		}
		if (i == TEXTS / 2) {
			OK(run("ip link set evc%u.2 down", net));
			/* Nobody is there until another one comes. */
			nodes[2] = node_on(1, uri, 2);
		}
	}
	OK(join());
	OK(run("ip link set evc%u.2 up", net));
	for (i = 0; i < TEXTS; i++) {
		IS(number_of(r[i]), 3 + i % 10);
		evc_remote_free(r[i]);
	}
	ck_assert(variable("one") == TEXTS);
	ck_assert(variable("two") == 2 * TEXTS);
	ck_assert(variable("many") == 45 * (TEXTS / 10));
	/* It comes back. */
	UNTIL(numbers().n_up == 4);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL));
	node_end(nodes[1]);
	node_end(nodes[2]);
}
END_TEST

static const evc_function functions[] = {
	ROW_FUNCTIONS,
	{ .name = "words", .fn = fn_words },
};

static int
rows_main(void)
{
	const struct row rows[] = { ROW(words_are_counted_on_three_machines) };
	int status = 77;

	only_engine = "redis";
	if (rs_program() == NULL || geteuid() != 0 || run("ip -V") != 0) {
		printf("SKIP tests/redis/netns: it needs root, ip and a "
		       "redis-server\n");
		return status;
	}
	if (set_up())
		status = run_rows("redis: three machines", rows, 1);
	else
		printf("SKIP tests/redis/netns: no network namespaces here\n");
	take_down();
	return status;
}

int
main(void)
{
	table = functions;
	n_table = sizeof(functions) / sizeof(functions[0]);
	if (evc_worker_is())
		return evc_worker_main(table, n_table, NULL) == 0 ?
			       EXIT_SUCCESS :
			       EXIT_FAILURE;
	if (node_is())
		return node_main(table, n_table, NULL);
	return rows_main();
}
