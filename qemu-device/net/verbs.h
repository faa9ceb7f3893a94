/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * This host's RDMA NICs, and their queue pairs, each connected to another daemon.
 *
 * DOC: trust
 *
 * A queue pair belongs to one connection to another daemon. Both sides exchange its
 * number over that connection (struct pvr_frame_verbs_qp), after TLS has authenticated
 * them. The NIC accepts packets of that peer only. The peer may read guest memory while
 * it is exposed to it (pipe.h, DOC: rendezvous), to the byte. No peer may write to memory. The
 * queue pair is destroyed with the connection. NICs do not encrypt: a host that can read
 * or forge packets in the RDMA network has the rights of a peer.
 *
 * Context: the first thread, unless stated otherwise.
 */
#ifndef PVR_NET_VERBS_H
#define PVR_NET_VERBS_H

#include "base/address.h"
#include "base/loop.h"
#include "path/pipe/frame.h"

#include <sys/types.h>
#include <sys/uio.h>

#define PVR_VERBS_TEXT 160

struct pvr_rndv_seg;
struct pvr_verbs_nics;
struct pvr_verbs;

/* @changed: the state of a port has changed, see pvr_verbs_works(). */
struct pvr_verbs_nics_ops {
	void (*changed)(void *opaque, const char *what);
};

/*
 * @name: a device, or "auto" for any; there need not be one yet. Return: NULL without
 * memory, or with @err filled if the program was built without libibverbs.
 */
struct pvr_verbs_nics *pvr_verbs_nics_create(const char *name, struct pvr_loop *loop,
					     const struct pvr_verbs_nics_ops *ops, void *opaque,
					     struct pvr_error *err);
/* Call after the last queue pair is destroyed. NULL is allowed. */
void pvr_verbs_nics_destroy(struct pvr_verbs_nics *nics);
/* Return: whether there is a NIC. */
bool pvr_verbs_nics_any(const struct pvr_verbs_nics *nics);

/*
 * Creates a queue pair for a connection from @local, preferably on the NIC with that
 * address. @expose: expose payload if the NIC can. NULL with @err filled.
 */
struct pvr_verbs *pvr_verbs_create(struct pvr_verbs_nics *nics, const struct pvr_address *local,
				   bool expose, struct pvr_error *err);
/* Afterwards no NIC accesses exposed memory. */
void pvr_verbs_destroy(struct pvr_verbs *verbs);
/* Before the connection: whether this NIC can. After it: whether both NICs can. */
bool pvr_verbs_has_rndv(const struct pvr_verbs *verbs);
/*
 * Fills the frame for the peer; connects to the peer's frame, which pvr_frame_check() has
 * checked.
 */
void pvr_verbs_fill(const struct pvr_verbs *verbs, union pvr_any_frame *any);
bool pvr_verbs_connect(struct pvr_verbs *verbs, const union pvr_any_frame *theirs,
		       struct pvr_error *err);
/* Return: whether the port works, as far as known. */
bool pvr_verbs_works(const struct pvr_verbs *verbs);
/* Name of the device. Any thread. */
const char *pvr_verbs_device(const struct pvr_verbs *verbs);
/* Why it is broken; "": unknown. The receiving thread. */
const char *pvr_verbs_error(const struct pvr_verbs *verbs);

/* Worker: @ready is called when there may be data or buffer space. 0 or -errno. */
int pvr_verbs_watch(struct pvr_verbs *verbs, struct pvr_loop *loop, void (*ready)(void *opaque),
		    void *opaque);
void pvr_verbs_unwatch(struct pvr_verbs *verbs);

/*
 * Any thread. Return: true with @why filled if memory could not be exposed at the last
 * attempt.
 */
bool pvr_verbs_zerocopy_error(const struct pvr_verbs *verbs, struct pvr_error *why);

/* As the ops of pvr_stream_ops. From pvr_verbs_expose() on only if pvr_verbs_has_rndv(). */
void *pvr_verbs_expose(struct pvr_verbs *verbs, const struct iovec *iov, int count,
		       struct pvr_rndv_seg *part);
void pvr_verbs_revoke(struct pvr_verbs *verbs, void *rndv);
int pvr_verbs_read(struct pvr_verbs *verbs, const struct pvr_rndv_seg *part, int parts,
		   const struct iovec *iov, int count);
int pvr_verbs_rdma_read_poll(struct pvr_verbs *verbs, uint8_t **data);
void pvr_verbs_rdma_read_cancel(struct pvr_verbs *verbs);
ssize_t pvr_verbs_send(struct pvr_verbs *verbs, const struct iovec *iov, int count);
ssize_t pvr_verbs_recv(struct pvr_verbs *verbs, const struct iovec *iov, int count);
/*
 * Return: 1 if a message has arrived at the peer, 0 if ready() will be called, -errno if
 * broken.
 */
int pvr_verbs_is_proved(struct pvr_verbs *verbs);
/* Any thread: ready() will be called when there is buffer space. */
void pvr_verbs_want_output(struct pvr_verbs *verbs);

#endif /* PVR_NET_VERBS_H */
