/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Paths: the ways by which requests reach the adapter of a destination GID.
 *
 * DOC: two tables of functions
 *
 * Sending belongs to a queue pair: struct pvr_path_ops of its current path. A request that
 * arrives from outside of this process brings its own functions: struct pvr_inbound_ops. So
 * a queue pair may send by one path and receive by another.
 */
#ifndef PVR_PATH_H
#define PVR_PATH_H

#include "rdma/wr.h"
#include "rdma/requester.h"
#include "gid/fabric.h"

/*
 * A fragment of a request from outside, the first member of the path's own struct, while
 * the responder executes it. A NULL pointer stands for a request of an adapter of this
 * process, whose memory is request->local.
 */
struct pvr_inbound {
	const struct pvr_inbound_ops *ops;
	struct pvr_request request; /* its local is NULL */
};

/* Context: the lock of the responder's adapter is held; nothing blocks. */
struct pvr_inbound_ops {
	/*
	 * Move request.chunk bytes of payload to offset request.offset of @to.
	 * Return: 0, -EFAULT (memory is gone) or -EAGAIN (not all has arrived; the
	 * fragment is executed again when more has).
	 */
	int (*recv_payload)(struct pvr_inbound *in, const struct pvr_sg *to);
	/* Send that range of @from as a response to an RDMA READ. Return: the same. */
	int (*read_reply)(struct pvr_inbound *in, const struct pvr_sg *from);
	/* Send the value that an atomic operation has found; it is kept for duplicates. */
	void (*atomic_reply)(struct pvr_inbound *in, uint64_t original);
};

struct pvr_datagram;
struct pvr_host_group;

enum pvr_resolve {
	PVR_RESOLVE_NO,
	PVR_RESOLVE_YES,
	PVR_RESOLVE_PENDING, /* the answer is not known yet: every quantum asks again */
};

enum pvr_ud_result {
	PVR_UD_RESULT_SENT, /* or lost, as on a wire */
	PVR_UD_RESULT_PENDING, /* destination or connection not known yet */
};

/*
 * A path. A function that is NULL has nothing to do.
 *
 * Context: the lock of the queue pair's adapter is held and nothing blocks.
 */
struct pvr_path_ops {
	const char *name; /* for logs and pvrdmactl paths */
	void (*adapter_init)(struct pvr_adapter *adapter);
	/* Reset or end of the VM; its queue pairs are still there: tell their peers. */
	void (*adapter_gone)(struct pvr_adapter *adapter);

	/*
	 * Does this path reach attr.ah_attr.dgid? Called again only after a GID of the
	 * fabric has moved, or after PENDING.
	 */
	enum pvr_resolve (*resolve)(struct pvr_qp *qp);
	/* Another path was found. Return: false if the queue pair has to stay for now. */
	bool (*detach)(struct pvr_qp *qp);

	/*
	 * Requester of RC and UC queue pairs: one quantum of a send queue that may send, or
	 * that waits for receives by PVR_QP_WAIT_RNR_POLL.
	 */
	enum pvr_quantum (*run_sq)(struct pvr_qp *qp);
	/* The queue pair's timer has expired while it waited for neither RNR nor an ACK. */
	void (*timeout)(struct pvr_qp *qp);
	/* The queue pair has left RTS and SQD: nothing is in flight any more. */
	void (*stop)(struct pvr_qp *qp);
	/* RESET, or the end of the queue pair: frees what the path keeps with it. */
	void (*close)(struct pvr_qp *qp);

	/*
	 * Responder: receives were posted after an RNR NAK. Return: false if the requester
	 * is busy; call again. NULL: its requesters retry by their timers.
	 */
	bool (*rnr_resume)(struct pvr_qp *qp);

	/*
	 * Datagrams that no adapter of this process takes.
	 * mcast_targets(): the hosts with members of the group. Return: whether these are
	 * all, and each can be sent to. mcast_send(): to each of them, once.
	 */
	enum pvr_ud_result (*ud_send)(struct pvr_adapter *from, uint32_t dst_qpn,
				      const struct pvr_datagram *dgram);
	bool (*mcast_targets)(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			      struct pvr_host_group *to);
	void (*mcast_send)(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			   const struct pvr_host_group *to);
};

/* Find the path of a connected queue pair anew, and its peer's adapter or host. */
void pvr_path_find(struct pvr_qp *qp);
/* Take the path that was found, if the current one can be left. */
void pvr_path_change(struct pvr_qp *qp);

static inline uint64_t pvr_path_topology(const struct pvr_fabric *fabric)
{
	return __atomic_load_n(&fabric->gid_gen, __ATOMIC_ACQUIRE);
}

/* Find it anew if a GID of the fabric has moved since. */
static inline void pvr_path_look(struct pvr_qp *qp)
{
	if (qp->path_gen != pvr_path_topology(qp->adapter->fabric))
		pvr_path_find(qp);
}

static inline const struct pvr_path_ops *pvr_path_current(const struct pvr_qp *qp)
{
	return qp->adapter->engine->paths[qp->path_id];
}

/* The path for the next quantum of a connected queue pair. One load and compare. */
static inline const struct pvr_path_ops *pvr_path_get(struct pvr_qp *qp)
{
	pvr_path_look(qp);
	if (qp->path_id != qp->path_found)
		pvr_path_change(qp);
	return pvr_path_current(qp);
}

/* See the functions of struct pvr_path_ops. */
void pvr_path_stop(struct pvr_qp *qp);
void pvr_path_close(struct pvr_qp *qp);
void pvr_path_adapter_init(struct pvr_adapter *adapter);
void pvr_path_adapter_gone(struct pvr_adapter *adapter);
enum pvr_ud_result pvr_path_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram);
bool pvr_path_mcast_targets(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *to);
void pvr_path_mcast_send(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			 const struct pvr_host_group *to);

#endif /* PVR_PATH_H */
