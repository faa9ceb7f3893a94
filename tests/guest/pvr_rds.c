// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages by Reliable Datagram Sockets.
 *
 * Usage: pvr_rds receive OWN-ADDRESS COUNT
 *        pvr_rds send OWN-ADDRESS COUNT ADDRESS
 *
 * The sender ends when the receiver has checked all messages and has answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "die.h"

#define PORT 7300
#define BYTES 65536
#define SEND_BUFFER (4 << 20)

static uint8_t message[BYTES];

static uint8_t byte_of(unsigned int number, unsigned int at)
{
	return (uint8_t)(7 * number + at + at / 251);
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		die("'%s' is no IPv4 address", text);
	return address;
}

static int open_socket(const char *own)
{
	int bytes = SEND_BUFFER, fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = address_of(own);

	if (fd < 0)
		die("socket:");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die("bind to %s:", own);
	return fd;
}

static void wait_for(int fd, short events)
{
	struct pollfd wait = { .fd = fd, .events = events };

	if (poll(&wait, 1, 1000) < 0)
		die("poll:");
}

static void send_message(int fd, const struct sockaddr_in *to, size_t length)
{
	ssize_t sent;

	while ((sent = sendto(fd, message, length, 0, (const struct sockaddr *)to, sizeof(*to))) <
		       0 &&
	       (errno == EAGAIN || errno == ENOBUFS))
		wait_for(fd, POLLOUT);
	if (sent != (ssize_t)length)
		die("sendto:");
}

static size_t receive_message(int fd, struct sockaddr_in *from)
{
	socklen_t length = sizeof(*from);
	ssize_t got;

	while ((got = recvfrom(fd, message, BYTES, 0, (struct sockaddr *)from, &length)) < 0 &&
	       errno == EAGAIN)
		wait_for(fd, POLLIN);
	if (got < 0)
		die("recvfrom:");
	return (size_t)got;
}

static void receive_all(int fd, unsigned int count)
{
	struct sockaddr_in from;
	unsigned int i, at;

	puts("ready");
	fflush(stdout);
	for (i = 0; i < count; i++) {
		if (receive_message(fd, &from) != BYTES)
			die("message %u is shorter than %d bytes", i, BYTES);
		for (at = 0; at < BYTES; at++)
			if (message[at] != byte_of(i, at))
				die("byte %u of message %u is wrong", at, i);
	}
	send_message(fd, &from, 1);
	printf("%u messages of %d bytes are right\n", count, BYTES);
}

static void send_all(int fd, unsigned int count, const char *to)
{
	struct sockaddr_in address = address_of(to), from;
	unsigned int i, at;

	for (i = 0; i < count; i++) {
		for (at = 0; at < BYTES; at++)
			message[at] = byte_of(i, at);
		send_message(fd, &address, BYTES);
	}
	receive_message(fd, &from);
	printf("%u messages of %d bytes are sent\n", count, BYTES);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 4 && !strcmp(argv[1], "receive")) {
		receive_all(open_socket(argv[2]), (unsigned int)atoi(argv[3]));
		return 0;
	}
	if (argc != 5 || strcmp(argv[1], "send"))
		die("usage: pvr_rds receive OWN-ADDRESS COUNT | send OWN-ADDRESS COUNT ADDRESS");
	fd = open_socket(argv[2]);
	send_all(fd, (unsigned int)atoi(argv[3]), argv[4]);
	return 0;
}
