/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * This host's RDMA NICs, and queue pairs of theirs that join two daemons.
 *
 * DOC: trust
 *
 * A queue pair is made for one connection to another daemon, over which both say which one
 * it is (struct pvr_frame_queue_pair), after TLS has proved who they are. The NIC takes
 * what comes from there only. Who is there may read guests' memory that is lent to him
 * (pipe.h, DOC: loans), to the byte, and while it is; nobody may write any. It is
 * destroyed with that connection. But NICs do not encrypt: who can look at the packets, or
 * forge them in the RDMA network, is as good as a peer.
 *
 * Context: the first thread, unless it says otherwise.
 */
#ifndef PVR_NET_VERBS_H
#define PVR_NET_VERBS_H

#include "base/address.h"
#include "base/loop.h"
#include "path/pipe/frame.h"

#include <sys/types.h>
#include <sys/uio.h>

#define PVR_VERBS_TEXT 160

struct pvr_loan_part;
struct pvr_verbs_nics;
struct pvr_verbs;

/* @changed: a port is up, or one is down or has gone: see pvr_verbs_works(). */
struct pvr_verbs_nics_ops {
	void (*changed)(void *opaque, const char *what);
};

/*
 * @name: a device's, or "auto": any. There may be none, now or ever. NULL: no memory, or
 * with @err that this program knows no NICs.
 */
struct pvr_verbs_nics *pvr_verbs_nics_create(const char *name, struct pvr_loop *loop,
					     const struct pvr_verbs_nics_ops *ops, void *opaque,
					     struct pvr_error *err);
/* No queue pair is left. NULL is allowed. */
void pvr_verbs_nics_destroy(struct pvr_verbs_nics *nics);
/* Is there one at all? */
bool pvr_verbs_nics_any(const struct pvr_verbs_nics *nics);

/*
 * For a connection from @local: of a NIC with that address, as a rule; @lend: payload may be
 * lent, if the NIC can. NULL with @err.
 */
struct pvr_verbs *pvr_verbs_create(struct pvr_verbs_nics *nics, const struct pvr_address *local,
				   bool lend, struct pvr_error *err);
/* Nothing is lent or read into any more. */
void pvr_verbs_destroy(struct pvr_verbs *verbs);
/* Ours can, and as soon as they are connected: both sides do. */
bool pvr_verbs_lends(const struct pvr_verbs *verbs);
/* What the other side is to know; and what it has said, checked by pvr_wire_check(). */
void pvr_verbs_fill(const struct pvr_verbs *verbs, union pvr_any_frame *any);
bool pvr_verbs_connect(struct pvr_verbs *verbs, const union pvr_any_frame *theirs,
		       struct pvr_error *err);
/* Its port does, as far as is known. */
bool pvr_verbs_works(const struct pvr_verbs *verbs);
/* The device's name. Any thread. */
const char *pvr_verbs_device(const struct pvr_verbs *verbs);
/* Why it is broken; "": it is not known. The thread that receives. */
const char *pvr_verbs_error(const struct pvr_verbs *verbs);

/* A worker's: @ready is called when there may be something to receive, or room. 0 or -errno. */
int pvr_verbs_watch(struct pvr_verbs *verbs, struct pvr_loop *loop, void (*ready)(void *opaque),
		    void *opaque);
void pvr_verbs_unwatch(struct pvr_verbs *verbs);

/* Any thread: could the last loan not be made? Then @why is filled. */
bool pvr_verbs_lend_error(const struct pvr_verbs *verbs, struct pvr_error *why);

/* As those of pvr_stream_ops; from lend() on only if pvr_verbs_lends(). */
void *pvr_verbs_lend(struct pvr_verbs *verbs, const struct iovec *iov, int count,
		     struct pvr_loan_part *part);
void pvr_verbs_take_back(struct pvr_verbs *verbs, void *loan);
int pvr_verbs_read(struct pvr_verbs *verbs, const struct pvr_loan_part *part, int parts,
		   const struct iovec *iov, int count);
int pvr_verbs_has_read(struct pvr_verbs *verbs, uint8_t **data);
void pvr_verbs_stop_reading(struct pvr_verbs *verbs);
ssize_t pvr_verbs_send(struct pvr_verbs *verbs, const struct iovec *iov, int count);
ssize_t pvr_verbs_recv(struct pvr_verbs *verbs, const struct iovec *iov, int count);
/* Has anything that was sent arrived? 1, 0 if ready() will be called, or -errno. */
int pvr_verbs_is_proved(struct pvr_verbs *verbs);
/* Any thread: ready() is called as soon as there is room. */
void pvr_verbs_want_output(struct pvr_verbs *verbs);

#endif /* PVR_NET_VERBS_H */
