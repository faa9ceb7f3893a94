/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Closes descriptors that another process has sent.
 *
 * DOC: close() of a foreign descriptor
 *
 * close() can block for as long as the sender chooses: the server of a FUSE file handles
 * the flush, a TCP socket lingers. The same is true of each descriptor in the queue of a
 * Unix socket that is closed. No signal ends these waits. So a thread closes them. It
 * exists only while there are descriptors to close. A sender has a closer of its own and
 * blocks only that.
 *
 * The daemon does not wait for this thread when it ends. The kernel does: a process with a
 * FUSE file whose flush has no response remains until that server responds or ends.
 */
#ifndef PVR_BASE_CLOSER_H
#define PVR_BASE_CLOSER_H

#include <stdbool.h>

struct pvr_closer;

/* Return: NULL without memory. */
struct pvr_closer *pvr_closer_create(void);
/* Never blocks. Descriptors that are still open are closed later. */
void pvr_closer_destroy(struct pvr_closer *closer);

/* Takes ownership of @fd. Never blocks. Any thread. */
void pvr_closer_close(struct pvr_closer *closer, int fd);
/*
 * As pvr_closer_close(), for a stream socket after shutdown(). Unread data is dropped
 * first: otherwise the peer would get a reset instead of the end of the stream.
 */
void pvr_closer_close_stream(struct pvr_closer *closer, int fd);

/*
 * Return: true if many descriptors wait. Then take no more from their sender. One more
 * message and its connection always have room.
 */
bool pvr_closer_is_full(struct pvr_closer *closer);

#endif /* PVR_BASE_CLOSER_H */
