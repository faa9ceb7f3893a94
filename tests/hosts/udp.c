// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A UDP pair with segmentation and receive offload (UDP_SEGMENT, UDP_GRO): the reference for
 * frames of the wire path. The receiver prints the bytes per second that have arrived.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guests.h"

#define BATCH_BYTES 65000u /* of a system call; a datagram has 65507 at most */
#define BUFFER (4 << 20)
#define FIRST_MS 60000
#define SILENCE_MS 500 /* the sender has ended */

static int open_socket(uint16_t port)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int on = 1, buffer = BUFFER;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
		fg_die("cannot open UDP port %u: %s", port, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0 ||
	    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) < 0)
		fg_die("cannot set up a UDP socket: %s", strerror(errno));
	return fd;
}

static int serve(const char *port)
{
	struct pollfd source = { .fd = open_socket((uint16_t)atoi(port)), .events = POLLIN };
	static char bytes[1 << 16];
	double begin = 0, last = 0;
	size_t sum = 0;
	ssize_t n;

	while (poll(&source, 1, sum ? SILENCE_MS : FIRST_MS) > 0) {
		while ((n = recv(source.fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
			last = now();
			begin = sum ? begin : last;
			sum += (size_t)n;
		}
	}
	if (last <= begin)
		fg_die("nothing has arrived");
	printf("{\"what\": \"udp_bw\", \"value\": %.9g}\n", (double)sum / (last - begin));
	return 0;
}

static int measure(const char *address, const char *port, int segment, double seconds)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	static const char bytes[BATCH_BYTES];
	double end = now() + seconds;
	int fd = open_socket(0);

	if (segment < 1 || segment > (int)BATCH_BYTES)
		fg_die("segments of %d bytes, expected 1 to %u", segment, BATCH_BYTES);
	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
	    setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) < 0)
		fg_die("cannot send to %s: %s", address, strerror(errno));
	while (now() < end) {
		if (send(fd, bytes, BATCH_BYTES - BATCH_BYTES % (unsigned int)segment, 0) < 0 &&
		    errno != ENOBUFS)
			fg_die("cannot send to %s: %s", address, strerror(errno));
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "measure"))
		return measure(argv[2], argv[3], atoi(argv[4]), atof(argv[5]));
	fputs("Usage: hosts_udp serve PORT | measure ADDRESS PORT BYTES SECONDS\n", stderr);
	return 2;
}
