/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask PORT PID - a client of the servers on other loops: it connects, sends
 * SIGTERM to the server when the first line of the answer is there, and writes
 * the answer out, to the end.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	FILE *answer = fd < 0 ? NULL : fdopen(fd, "r");
	char line[100];
	int n = 0;

	if (argc != 3 || answer == NULL)
		return 2;
	addr.sin_port = htons((uint16_t)atoi(argv[1]));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		perror("ask: connect");
		return 1;
	}
	while (fgets(line, sizeof(line), answer) != NULL) {
		if (n++ == 0)
			kill((pid_t)atoi(argv[2]), SIGTERM);
		fputs(line, stdout);
	}
	return ferror(answer) != 0;
}
