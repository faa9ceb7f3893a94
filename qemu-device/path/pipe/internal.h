/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections to other daemons, as queue pairs use them: frames sent and received.
 *
 * DOC: locks
 *
 * * A req_conn is used by queue pairs of any adapter and worker. It has a lock of its
 *   own, which is taken inside adapter locks and held for one frame at a time.
 * * A rsp_conn is used by its thread only.
 * * A received frame is handled under the lock of its destination adapter. The thread
 *   holds no other lock while it waits for that lock.
 *
 * DOC: payload
 *
 * * Payload goes from the sender's guest memory to the socket, and from the socket to the
 *   receiver's guest memory.
 * * Payload is copied in between only if it is small and is gathered with other frames,
 *   or if the socket does not accept the whole frame. Then the rest is copied.
 * * No function here uses guest memory after it returns, unless the payload was exposed.
 * * A connection keeps a frame until its whole payload has arrived. Each time more has
 *   arrived, the destination queue pair is looked up and checked again.
 */
#ifndef PVR_PIPE_INTERNAL_H
#define PVR_PIPE_INTERNAL_H

#include "core/sg.h"
#include "gid/resolve.h"
#include "pipe.h"
#include "path/pipe/frame.h"
#include "rdma/path.h"
#include "rdma/ud.h"

/* ------------------------------------------------------------ for requesters */

enum pvr_sent {
	PVR_SENT,
	PVR_SENT_BLOCKED, /* the stream is full; pvr_host_resume() will be called */
	PVR_SENT_DOWN, /* no connection is up */
	PVR_SENT_FAILED, /* the queue pair has failed, see send_fault() */
};

/* The req_conn that a queue pair uses. All zero: none. */
struct pvr_route {
	struct pvr_host *host;
	uint8_t kind, slot;
	uint8_t dscp; /* the requested DSCP, 6 bits */
	uint64_t generation; /* changes with each new connection; 0: none */
	uint32_t chunk; /* maximum payload of a frame in bytes */
	bool has_atomic_write; /* the responder accepts ATOMIC_WRITE and FLUSH */
	bool has_xrc; /* it accepts XRC */
	bool has_fault; /* it accepts FAULT frames */
	bool has_load; /* it accepts the number of the load behind TAKE */
	bool has_refer; /* it may refer to other hosts */
	bool has_tail; /* it executes the tail of a fragment that it has executed in part */
};

/*
 * Selects the connection for the queue pair @qpn: of the best kind that is up, with this
 * DSCP if possible. Requests a connection from the embedder if none fits.
 * @route: filled in; host and dscp always
 * Return: false if no connection is up; @route->generation is 0 then.
 */
bool pvr_link_route(struct pvr_host *host, uint32_t qpn, uint8_t dscp, struct pvr_route *route);
/* The DSCP is the upper six bits of the IP traffic class. */
static inline uint8_t pvr_dscp_of(uint8_t traffic_class)
{
	return traffic_class >> 2;
}
/* Return: true if pvr_link_route() would return another connection now. Takes no lock. */
bool pvr_link_route_changed(const struct pvr_route *route, uint32_t qpn);

/**
 * pvr_link_send() - send a frame with or without payload
 * @fabric: the fabric that frame.fabric stands for; declared on the connection if
 *   necessary
 * @header: the frame; its size and fabric are filled in
 * @header_size: bytes of the header
 * @expose_qp: the queue pair that owns the payload, if the payload may be exposed; else
 *   NULL
 * @payload: or NULL
 * @offset: of the frame's payload in @payload, in bytes
 * @len: bytes of payload
 *
 * A small frame may be gathered until pvr_link_flush(). A DATAGRAM or QP_GONE is accepted
 * even while the connection is blocked, as long as the reserved space lasts.
 */
enum pvr_sent pvr_link_send(const struct pvr_route *route, const struct pvr_fabric *fabric,
			    union pvr_any_frame *header, size_t header_size,
			    const struct pvr_qp *expose_qp, const struct pvr_sg *payload,
			    uint64_t offset, uint32_t len);
/*
 * A QP_GONE frame that could not be sent waits in the record of route->host until a connection
 * is up and has space. Return: false if too many wait: the frame is lost.
 */
bool pvr_link_keep_qp_gone(const struct pvr_route *route, const struct pvr_fabric *fabric,
			   const struct pvr_frame_qp_gone *frame);
/* Sends those that wait, as far as there is space. */
void pvr_link_send_kept(const struct pvr_route *route);
/* Sends gathered frames. Called at the end of a quantum that has sent. */
void pvr_link_flush(const struct pvr_route *route);

/* ------------------------------------------------------------ for responders */

/* The requests of a stalled peer are sent again after this time. */
#define PVR_PIPE_STALL_NS 10000000u

/* A connection that this host accepted: receives requests and sends responses. */
struct pvr_rsp_conn;

/**
 * pvr_rsp_conn_recv_payload() - put payload of the current frame into guest memory
 * @qp: the queue pair whose guest memory @to is
 * @to: memory of the message
 * @offset: of the fragment in @to, in bytes
 * @len: bytes of the fragment
 * @skip: bytes at its begin that are discarded, as an earlier fragment has stored them
 *
 * Stores the bytes that have arrived. A repeated call for the same frame continues behind
 * them.
 * Return: 1: all bytes are stored; 0: some have not arrived; -EFAULT: guest memory was
 * removed. After -EFAULT the rest of the frame is discarded when the handler returns.
 */
int pvr_rsp_conn_recv_payload(struct pvr_rsp_conn *in, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len,
			      uint32_t skip);
/* The external DMA by which the NIC may be reading the current payload. */
const struct pvr_ext_dma *pvr_rsp_conn_ext_dma(const struct pvr_rsp_conn *in);

/*
 * Sends a response.
 * @header: its type and fabric are set; its size is filled in here
 * @from: the queue pair that owns @payload, which may be exposed; NULL: not exposed
 * @payload: or NULL
 *
 * Never fails: a request has at most one response frame, and its space is reserved.
 */
void pvr_rsp_conn_reply(struct pvr_rsp_conn *in, union pvr_any_frame *header, size_t header_size,
			const struct pvr_qp *from, const struct pvr_sg *payload, uint64_t offset,
			uint32_t len);

/*
 * Return: true if the connection may stall (PVR_HANDLED_STALLED) until the GID of a frame's
 * sender is resolved. False once the frames of the connection have used up their common time
 * for stalls.
 */
bool pvr_rsp_conn_may_stall(struct pvr_rsp_conn *in);

struct pvr_host *pvr_rsp_conn_host(const struct pvr_rsp_conn *in);
/*
 * Checks the sender's GID of a frame, see pvr_gid_check_host(). The lookups of a connection
 * have a rate.
 */
enum pvr_gid_state pvr_rsp_conn_check_sender(struct pvr_rsp_conn *in, const char *fabric,
					     const uint8_t gid[16], uint8_t gid_type,
					     const uint8_t dgid[16]);
/*
 * The directory has located the GID at another host than the sender. Return: whether that host was
 * connected and is silent, and the rules allow the sender the GID: then it may have it soon.
 */
bool pvr_rsp_conn_replaces_sender(struct pvr_rsp_conn *in, const char *fabric,
				  const uint8_t gid[16]);

/* State of path/pipe/responder.c for a connection. Initially all zero. */
struct pvr_rsp_conn_acks {
	bool ack_pending; /* @frame has not been sent yet */
	uint32_t count; /* ACKs that were stored in @frame */
	struct pvr_frame_ack frame;
};

struct pvr_rsp_conn_acks *pvr_rsp_conn_acks(struct pvr_rsp_conn *in);
/* Return: whether the requester accepts PVR_FRAME_SYN_PAGE. */
bool pvr_rsp_conn_has_page(const struct pvr_rsp_conn *in);
/* Return: whether it accepts PVR_FRAME_SYN_HELD. */
bool pvr_rsp_conn_has_held(const struct pvr_rsp_conn *in);

/* --------------------------------------------- handlers of received frames */

/*
 * Handlers are called without locks, with a checked private copy of the header. They lock
 * the adapter that they find.
 * @fabric: a fabric name that the connection has declared; this host may have no such
 *   fabric
 */
enum pvr_handled {
	PVR_HANDLED, /* the rest of the payload is discarded */
	PVR_HANDLED_PARTLY, /* payload has not arrived: call again with the same frame */
	PVR_HANDLED_STALLED, /* the sender's GID is not resolved: call again with the same frame */
};

/* path/pipe/responder.c. @payload: the whole payload, or NULL if it has not arrived. */
enum pvr_handled pvr_pipe_request(struct pvr_rsp_conn *in, const char *fabric,
				  const struct pvr_frame_request *frame, uint8_t *payload);
/* A FAULT frame in place of a request. */
enum pvr_handled pvr_pipe_request_fault(struct pvr_rsp_conn *in, const char *fabric,
					const struct pvr_frame_request *frame);
/* Sends the pending ACK: no more frames can be handled now. */
void pvr_pipe_request_end(struct pvr_rsp_conn *in);
/* path/pipe/ud.c */
enum pvr_handled pvr_pipe_datagram(struct pvr_rsp_conn *in, const char *fabric,
				   const struct pvr_frame_datagram *frame, uint8_t *payload);
/* A FAULT frame in place of a datagram. */
enum pvr_handled pvr_pipe_datagram_fault(struct pvr_rsp_conn *in, const char *fabric,
					 const struct pvr_frame_request *frame);

/* path/pipe/qp_gone.c */
void pvr_pipe_recv_qp_gone(struct pvr_rsp_conn *in, const char *fabric,
			   const struct pvr_frame_qp_gone *frame);

/* path/pipe/completer.c. @route: the req_conn and its generation. */
void pvr_pipe_ack(const struct pvr_route *route, const char *fabric,
		  const struct pvr_frame_ack *frame);
void pvr_pipe_atomic_ack(const struct pvr_route *route, const char *fabric,
			 const struct pvr_frame_atomic_ack *frame);
/* Reads its payload by pvr_req_conn_recv_payload(). */
enum pvr_handled pvr_pipe_read_data(const struct pvr_route *route, const char *fabric,
				    const struct pvr_frame_read_data *frame);
int pvr_req_conn_recv_payload(const struct pvr_route *route, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len,
			      uint32_t skip);
/* Like pvr_rsp_conn_ext_dma(). */
const struct pvr_ext_dma *pvr_req_conn_ext_dma(const struct pvr_route *route);
/*
 * Resumes queue pairs that wait for @host. Called when a connection has space again, or has
 * come up or gone down. Takes adapter locks, so the caller holds none.
 */
void pvr_host_resume(struct pvr_engine *engine, struct pvr_host *host);
/*
 * Resumes queue pairs of the fabric that wait for any host. Called when one of its GIDs was
 * resolved. Takes locks of its adapters only. The fabric need not exist.
 */
void pvr_host_resume_fabric(struct pvr_engine *engine, const char *fabric);

struct pvr_engine *pvr_host_engine(const struct pvr_host *host);
/* Adds @n to the host's counter of retransmits. Any thread. */
void pvr_host_count_retransmits(struct pvr_host *host, uint64_t n);

/* ---------------------------------------------------- functions of struct pvr_path_ops */

/* path/pipe/requester.c: runs a quantum of @qp. Allocates pipe_sq if @qp has none. */
enum pvr_quantum pvr_pipe_run_sq(struct pvr_qp *qp, unsigned int max);
bool pvr_host_detach(struct pvr_qp *qp);
/* Called when the timer of @qp has expired and @qp does not wait for that timer. */
void pvr_pipe_timeout(struct pvr_qp *qp);

/* path/pipe/sq.c: drops all in-flight WRs, as the queue pair has stopped sending. */
void pvr_pipe_sq_stop(struct pvr_qp *qp);
void pvr_pipe_sq_free(struct pvr_qp *qp);

/*
 * path/pipe/qp_gone.c: sends a QP_GONE frame to the peer on another host: an RC queue pair is
 * destroyed with its adapter. For peers on the same host see rdma/peer_gone.h. Return: whether
 * the frame was sent or waits for a connection.
 */
bool pvr_pipe_send_qp_gone(struct pvr_qp *qp);

/*
 * path/pipe/ud.c: datagrams to other hosts. A datagram is dropped if its connection has no
 * space. If no connection is up or the GID is not resolved, the embedder is asked for it,
 * and the sender may try again.
 */
enum pvr_ud_result pvr_pipe_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram);
/*
 * Finds the hosts with members of the group. Return: whether all are known and each has a
 * connection; otherwise a datagram would be lost on its way to some.
 */
bool pvr_pipe_ud_find_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *group);
/* Sends one copy to each host of the group. */
enum pvr_ud_result pvr_pipe_ud_fail(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram,
				    const struct pvr_host_group *group);
void pvr_pipe_ud_send_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    const struct pvr_host_group *group);

#endif /* PVR_PIPE_INTERNAL_H */
