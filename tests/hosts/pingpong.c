// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Round trip of 8 bytes by TCP: the reference for latency between hosts. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES 8
#define MAX_TRIPS (1 << 20)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void exchange(int fd, int first)
{
	char bytes[BYTES] = "pingpon";

	if (first && send(fd, bytes, BYTES, 0) != BYTES)
		die("send");
	if (recv(fd, bytes, BYTES, MSG_WAITALL) != BYTES)
		exit(first); /* the side that began has measured enough */
	if (!first && send(fd, bytes, BYTES, 0) != BYTES)
		die("send");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Half a round trip, in the median. */
static void client(int fd, double seconds)
{
	static double trip[MAX_TRIPS];
	double begin, end = now_s() + seconds;
	int n = 0;

	while (n < MAX_TRIPS && now_s() < end) {
		begin = now_s();
		exchange(fd, 1);
		trip[n++] = (now_s() - begin) / 2;
	}
	qsort(trip, (size_t)n, sizeof(*trip), compare);
	printf("{\"what\": \"tcp_lat\", \"value\": %.9g}\n", trip[n / 2]);
}

static int open_socket(const struct sockaddr_in *address, int serve)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0), accepted;

	if (fd < 0)
		die("socket");
	if (!serve) {
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)))
			die("connect");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) || listen(fd, 1))
		die("bind");
	fputs("listening\n", stderr);
	accepted = accept(fd, NULL, NULL);
	if (accepted < 0)
		die("accept");
	setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return accepted;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd, serve = argc == 4;

	if ((argc != 4 && argc != 5) || strcmp(argv[1], serve ? "serve" : "measure") ||
	    inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) {
		fputs("Usage: hosts_pingpong serve ADDRESS PORT | measure ADDRESS PORT SECONDS\n",
		      stderr);
		return 2;
	}
	address.sin_port = htons((uint16_t)atoi(argv[3]));
	fd = open_socket(&address, serve);
	if (!serve) {
		client(fd, atof(argv[4]));
		return 0;
	}
	for (;;)
		exchange(fd, 0);
}
