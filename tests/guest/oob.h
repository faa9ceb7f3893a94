/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Out of band: the TCP connection over which two processes arrange their QPs and rounds.
 * Each function dies if it fails.
 */
#ifndef PVR_TEST_OOB_H
#define PVR_TEST_OOB_H

#include <stddef.h>

/*
 * Returns a connection to @peer, for up to a minute if it is not listening yet; or, if
 * @peer is NULL, the first connection to a port of all addresses.
 */
int oob_open(const char *peer, const char *port);
/* Both sides send len bytes and receive as many. */
void oob_exchange(int fd, const void *mine, void *theirs, size_t len);

#endif
