/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The service manager's copy of a hand-over.
 *
 * DOC: descriptor store
 *
 * During an upgrade there is a time when the VMs' state is in the messages of the hand-over only.
 * If the running process is killed then, the service manager ends the new one, too, and starts the
 * service again. So the running process keeps a copy of the messages in the service manager's
 * descriptor store (FDSTORE=1 of sd_notify(3)), as two descriptors:
 *
 *    file    a memfd: a header, and a record of each message before "load": lengths and text
 *    queue   an end of a socket pair, in which the messages' descriptors wait: the descriptors of
 *            one message in one datagram. So the service manager has two descriptors, and not
 *            those of all VMs.
 *
 * The header is written last: before it, the copy is incomplete, and no process uses it. A process
 * makes the file empty before it starts adapters, and before it goes on with them. All holders
 * have the same file, so a copy is used once at most, and the service manager need not be waited
 * for.
 *
 * Context: the first thread.
 */
#ifndef PVR_DAEMON_HANDOVER_STORE_H
#define PVR_DAEMON_HANDOVER_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fd_message.h"

struct pvr_handover_store {
	int file; /* -1: there is no copy */
	int queue; /* where descriptors are sent to, or received from */
	bool recording;
	size_t at; /* the next record */
	size_t len; /* of @text */
	char *text; /* of the file, when it is read */
};

#define PVR_HANDOVER_STORE_NONE ((struct pvr_handover_store){ .file = -1, .queue = -1 })

/*
 * The running process. Without a service manager there is no copy, and the functions do nothing.
 */

/* Begins a copy in the service manager's store. @store: PVR_HANDOVER_STORE_NONE. */
void pvr_handover_store_begin(struct pvr_handover_store *store);
/* Adds a message. A copy that cannot have it is discarded, and the log says so. */
void pvr_handover_store_add(struct pvr_handover_store *store, const char *text, size_t len,
			    const int *fds, size_t num_fds);
/* All messages are there. Before "load" is sent, because the new process may be ready at once. */
void pvr_handover_store_complete(struct pvr_handover_store *store);

/* Both processes. */

/* No process may use the copy from now on. @file: -1 is allowed. */
void pvr_handover_store_discard(int file);
/* Closes its descriptors, and removes the copy from the service manager's store. */
void pvr_handover_store_end(struct pvr_handover_store *store);

/*
 * The new process.
 */

/*
 * Finds a complete copy among the descriptors that the service manager has passed, closes all others,
 * and discards it for other processes. Call before any other function opens a descriptor. Return:
 * false: there is none.
 */
bool pvr_handover_store_find(struct pvr_handover_store *store);
/* The next message: returns and fills @raw as pvr_fd_message_receive(). 0: there is no other one. */
int pvr_handover_store_next(struct pvr_handover_store *store, struct pvr_fd_message *raw);

#endif /* PVR_DAEMON_HANDOVER_STORE_H */
