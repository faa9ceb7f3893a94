/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Out of band: the TCP connection over which two processes arrange their QPs and rounds. */
#ifndef PVR_TEST_OOB_H
#define PVR_TEST_OOB_H

#include <stddef.h>

/* Prints "NAME: ..." on stderr and exits 1; strerror(errno) follows if the format ends in ':'. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Waits for one peer on a port of all addresses. Returns the connection; dies if that fails. */
int oob_accept(const char *port);
/* Connects, for up to seconds, to a peer that may not be listening yet. Dies if that fails. */
int oob_connect(const char *host, const char *port, int seconds);
/* Both sides send len bytes and receive as many. Dies when the peer is gone. */
void oob_exchange(int fd, const void *mine, void *theirs, size_t len);

#endif
