// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Round trip of 8 bytes by TCP: the reference for latency between hosts. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "guests.h"
#include "oob.h"

#define BYTES 8
#define MAX_TRIPS (1 << 20)

/* Return: false if the other side has ended. */
static bool put(int fd, const char bytes[BYTES])
{
	return send(fd, bytes, BYTES, MSG_NOSIGNAL) == BYTES;
}

static bool get(int fd, char bytes[BYTES])
{
	return recv(fd, bytes, BYTES, MSG_WAITALL) == BYTES;
}

static int serve(const char *port)
{
	int fd = oob_open(NULL, port);
	char bytes[BYTES];

	while (get(fd, bytes) && put(fd, bytes))
		;
	return 0;
}

/* Half a round trip, in the median. */
static int measure(const char *address, const char *port, double seconds)
{
	static double trip[MAX_TRIPS];
	double begin, end = now() + seconds;
	char bytes[BYTES] = "pingpon";
	int fd = oob_open(address, port);
	size_t n = 0;

	while (n < MAX_TRIPS && now() < end) {
		begin = now();
		if (!put(fd, bytes) || !get(fd, bytes))
			fg_die("the server has ended");
		trip[n++] = (now() - begin) / 2;
	}
	printf("{\"what\": \"tcp_lat\", \"value\": %.9g}\n", median(trip, n));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "measure"))
		return measure(argv[2], argv[3], atof(argv[4]));
	fputs("Usage: hosts_pingpong serve PORT | measure ADDRESS PORT SECONDS\n", stderr);
	return 2;
}
