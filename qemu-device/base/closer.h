/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Closes descriptors that another process has sent, and unmaps their memory.
 *
 * DOC: close() of a foreign descriptor
 *
 * close() can block for as long as the sender chooses: the server of a FUSE file handles
 * the flush, a TCP socket lingers. The same is true of each descriptor in the queue of a
 * Unix socket that is closed. No signal ends these waits. So a thread closes them. It
 * exists only while there are descriptors to close. A sender has a closer of its own and
 * blocks only that.
 *
 * DOC: munmap() and close() of foreign memory
 *
 * The last reference to a file of memory can be the descriptor or a mapping. The kernel frees
 * all its pages then, which takes 80 ms for 512 MiB of small pages. So the thread does that,
 * too. It unmaps in slices, because munmap() holds the lock of the process's address space,
 * which page faults and mmap() of other threads need.
 *
 * The daemon does not wait for this thread when it ends. The kernel does: a process with a
 * FUSE file whose flush has no response remains until that server responds or ends.
 */
#ifndef PVR_BASE_CLOSER_H
#define PVR_BASE_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_CLOSER_MEMORY 64 /* see pvr_closer_has_memory() */

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

/* As pvr_closer_close(), for a file of memory, see pvr_closer_has_memory(). */
void pvr_closer_close_memory(struct pvr_closer *closer, int fd);
/*
 * Unmaps @size bytes at @va, which nothing uses any more, then closes @fd unless it is -1. Never
 * blocks. Callers obey pvr_closer_has_memory().
 */
void pvr_closer_unmap(struct pvr_closer *closer, void *va, size_t size, int fd);

/*
 * Return: whether PVR_CLOSER_MEMORY or more files and mappings of memory wait, or mappings of
 * more than @max bytes. Then take no more memory from their sender until this changes: address
 * space and the number of mappings of a process are finite. All mappings of a client always
 * have room.
 */
bool pvr_closer_has_memory(struct pvr_closer *closer, uint64_t max);

/*
 * Return: true if many descriptors wait. Then take no more from their sender. One more
 * message and its connection always have room.
 */
bool pvr_closer_is_full(struct pvr_closer *closer);

#endif /* PVR_BASE_CLOSER_H */
