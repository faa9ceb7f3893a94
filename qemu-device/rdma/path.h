/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Paths: the transports by which requests reach the adapter of a destination GID.
 *
 * DOC: two tables of functions
 *
 * - A requester uses struct pvr_path_ops of the current path of its queue pair.
 * - A responder uses struct pvr_inbound_ops, which each request from another process
 *   carries.
 * - So a queue pair may send by one path and receive by another.
 */
#ifndef PVR_PATH_H
#define PVR_PATH_H

#include "rdma/wr.h"
#include "rdma/requester.h"
#include "gid/fabric.h"

/*
 * A fragment of a request from another process, during its execution. It is the first
 * member of the path's own struct. A NULL pointer stands for a request of an adapter of
 * this process, whose memory is request->local.
 */
struct pvr_inbound {
	const struct pvr_inbound_ops *ops;
	struct pvr_request request; /* request.local is NULL */
};

/* Context: the lock of the responder's adapter is held; the functions do not block. */
struct pvr_inbound_ops {
	/*
	 * Move request.chunk bytes of payload to offset request.offset of @to.
	 * Return: 0, -EFAULT (memory was unplugged) or -EAGAIN (payload is missing; the
	 * fragment is executed again when more has arrived).
	 */
	int (*recv_payload)(struct pvr_inbound *in, const struct pvr_sg *to);
	/* Send this range of @from as a response to an RDMA READ. Return: the same. */
	int (*read_reply)(struct pvr_inbound *in, const struct pvr_sg *from);
	/* Send the original value of an atomic operation. */
	void (*atomic_reply)(struct pvr_inbound *in, uint64_t original);
};

struct pvr_codec;
struct pvr_datagram;
struct pvr_host_group;

enum pvr_resolve {
	PVR_RESOLVE_NO,
	PVR_RESOLVE_YES,
	PVR_RESOLVE_PENDING, /* a query is in progress: each quantum calls again */
};

enum pvr_ud_result {
	PVR_UD_RESULT_SENT, /* or lost, as on a network */
	PVR_UD_RESULT_PENDING, /* destination or connection not known yet */
	PVR_UD_RESULT_ABSENT, /* this path does not reach it; the next path may */
};

/*
 * A path. resolve() and run_sq() exist in each path; the other functions may be NULL.
 *
 * Context: the lock of the queue pair's adapter is held; the functions do not block.
 */
struct pvr_path_ops {
	const char *name; /* for logs and pvrdmactl paths */
	/*
	 * The same path with the other value of @captures, which takes its place when the
	 * first capture of the engine begins or the last one ends. NULL: this path checks
	 * pvr_captures() itself.
	 */
	const struct pvr_path_ops *twin;
	bool captures;
	void (*adapter_init)(struct pvr_adapter *adapter);
	void (*adapter_exit)(struct pvr_adapter *adapter);

	/*
	 * Return: YES if this path reaches attr.ah_attr.dgid. Called again only after a
	 * GID of the fabric has moved, or after PENDING.
	 */
	enum pvr_resolve (*resolve)(struct pvr_qp *qp);
	/*
	 * Leave this path for another: free the path's state of the queue pair, as
	 * close() does. Return: false, and nothing is freed, if requests still need this
	 * path.
	 */
	bool (*detach)(struct pvr_qp *qp);

	/*
	 * Requester of RC and UC queue pairs: run one quantum of a send queue that may
	 * send, or that is in PVR_QP_WAIT_RNR_POLL. The quantum ends after @max requests
	 * or fragments, with MORE.
	 */
	enum pvr_quantum (*run_sq)(struct pvr_qp *qp, unsigned int max);
	/* The same for a request with qp->flips. NULL: run_sq() does that. */
	enum pvr_quantum (*run_damaged)(struct pvr_qp *qp, unsigned int max);
	/* The same for UD and GSI queue pairs, see pvr_ud_run(). Only the path of faults has it. */
	enum pvr_quantum (*run_ud)(struct pvr_qp *qp);
	/*
	 * Responder: whether the peer, at another host, is stalled: its requests wait. Only the
	 * path of faults has it.
	 */
	bool (*stalls_peer)(struct pvr_qp *qp);

	/* For the path of faults. Without peer_name() it cannot be in front of a path. */
	/* The name of the adapter of a GID, or of its host; NULL: this path does not reach it. */
	const char *(*gid_name)(struct pvr_adapter *from, const uint8_t gid[16]);
	/* The name of the peer's adapter, or of its host; "": no path reaches it. */
	const char *(*peer_name)(const struct pvr_qp *qp);
	/* Add what pvrdmactl qp shows of the queue pair on this path. */
	void (*describe)(const struct pvr_qp *qp, struct pvr_qp_detail *detail);
	/*
	 * Find and lock the peer, as pvr_local_peer() does. NULL: it is in another
	 * process.
	 */
	bool (*lock_peer)(struct pvr_qp *qp, struct pvr_qp **peer);
	/*
	 * Begin no request while another is in flight, or end that. Requests in flight
	 * stay. NULL: a request has completed when run_sq() begins the next one.
	 */
	void (*set_serial)(struct pvr_qp *qp, bool on);
	/*
	 * Write and read the requests in flight, if there are any: a record of its own.
	 * load(): the queue pair exists, and takes this path. NULL: nothing is in flight
	 * between two quanta.
	 */
	void (*save)(struct pvr_codec *codec, struct pvr_qp *qp);
	void (*load)(struct pvr_codec *codec, struct pvr_qp *qp);
	/*
	 * Connections to other hosts or locations of GIDs have changed: resume the queue pair if it
	 * waits for that. Called for each path.
	 */
	void (*resume)(struct pvr_qp *qp);
	/*
	 * The queue pair's timer has expired in a wait other than those for RNR and
	 * retry.
	 */
	void (*timeout)(struct pvr_qp *qp);
	/*
	 * The queue pair is in a state other than RTS and SQD: drop its requests in
	 * flight. Called for each such change of state, and before close().
	 */
	void (*stop)(struct pvr_qp *qp);
	/*
	 * The queue pair is reset or destroyed: free the path's state of it, if there is
	 * any. Queue pairs that never sent and UD queue pairs come here, too.
	 */
	void (*close)(struct pvr_qp *qp);
	/*
	 * The guest has set ERR, perhaps once more: no answer to an earlier request reads its
	 * memory any more. Called for each path. NULL: it has no answers between two quanta.
	 */
	void (*end_answers)(struct pvr_qp *qp);
	/*
	 * As close(), for what the path has for the responder: called for each path, also if it
	 * is not the current one.
	 */
	void (*forget)(struct pvr_qp *qp);
	/*
	 * The adapter is reset or destroyed: notify the peer of the queue pair. Return:
	 * whether something was sent.
	 */
	bool (*gone)(struct pvr_qp *qp);

	/*
	 * Responder: receives were posted after an RNR NAK; resume the requester. Return:
	 * false if the requester's adapter is locked: call again. NULL: requesters of
	 * this path retry after their RNR timer.
	 */
	bool (*rnr_resume)(struct pvr_qp *qp);

	/*
	 * Datagrams to other processes. mcast_targets(): list the hosts with members of
	 * the group. Return: true if the list is complete and each host is connected. At
	 * most one path has it. mcast_send(): send to each host once; a path without
	 * mcast_targets() reaches its members without the list.
	 */
	enum pvr_ud_result (*ud_send)(struct pvr_adapter *from, uint32_t dst_qpn,
				      const struct pvr_datagram *dgram);
	bool (*mcast_targets)(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			      struct pvr_host_group *to);
	void (*mcast_send)(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			   const struct pvr_host_group *to);
	/*
	 * The same for a datagram with recv_status, without its payload; to a group if @to is
	 * not NULL. NULL: this path sends it without the error.
	 */
	enum pvr_ud_result (*ud_fail)(struct pvr_adapter *from, uint32_t dst_qpn,
				      const struct pvr_datagram *dgram,
				      const struct pvr_host_group *to);
};

/* Find the path of a connected queue pair, and its peer's adapter or host. */
void pvr_path_find(struct pvr_qp *qp);
/* Switch to the found path, unless requests still need the current path. */
void pvr_path_change(struct pvr_qp *qp);

/* Find the path again if a GID of the fabric has moved since the last time. */
static inline void pvr_path_refresh(struct pvr_qp *qp)
{
	if (qp->path_gen != pvr_fabric_gid_gen(qp->adapter->fabric))
		pvr_path_find(qp);
}

static inline const struct pvr_path_ops *pvr_path_current(const struct pvr_qp *qp)
{
	return qp->adapter->engine->paths[qp->path_id];
}

/* The path for the next quantum of a connected queue pair. One load and compare. */
static inline const struct pvr_path_ops *pvr_path_get(struct pvr_qp *qp)
{
	pvr_path_refresh(qp);
	if (qp->path_id != qp->path_found)
		pvr_path_change(qp);
	return pvr_path_current(qp);
}

/* See the functions of struct pvr_path_ops. */
void pvr_path_stop(struct pvr_qp *qp);
void pvr_path_close(struct pvr_qp *qp);
void pvr_path_end_answers(struct pvr_qp *qp);
/* The record of requests in flight, if there are any. */
void pvr_path_save_in_flight(struct pvr_codec *codec, struct pvr_qp *qp);
void pvr_path_load_in_flight(struct pvr_codec *codec);
void pvr_path_adapter_init(struct pvr_adapter *adapter);
void pvr_path_adapter_exit(struct pvr_adapter *adapter);
bool pvr_path_gone(struct pvr_qp *qp);
void pvr_path_resume(struct pvr_qp *qp);
enum pvr_ud_result pvr_path_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram);
bool pvr_path_mcast_targets(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *to);
void pvr_path_mcast_send(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			 const struct pvr_host_group *to);
enum pvr_ud_result pvr_path_ud_fail(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram,
				    const struct pvr_host_group *to);

#endif /* PVR_PATH_H */
