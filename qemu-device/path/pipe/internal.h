/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections to other daemons, as queue pairs see them: frames out, frames in.
 *
 * DOC: locks
 *
 * An outgoing connection is used by queue pairs of any adapter and worker, and has a lock
 * of its own, which is taken inside adapters' locks, for one frame at a time. An incoming
 * one is its thread's alone. A frame that has come is handled with the lock of the adapter
 * that it is for: that is waited for, with nothing in hand.
 *
 * DOC: payload
 *
 * Payload goes from the sender's guest memory to the socket and from there to the
 * receiver's, and is copied in between only if it is small and travels with other frames,
 * or if the socket does not take all of a frame: the rest is copied then, so that guest
 * memory is not needed any more when a function here returns. What has not come yet of a
 * payload is waited for by its connection; whoever it is for is looked up and checked anew
 * each time that more has come.
 */
#ifndef PVR_LINK_H
#define PVR_LINK_H

#include "core/sg.h"
#include "pipe.h"
#include "path/pipe/frame.h"

/* ------------------------------------------------------------ for requesters */

enum pvr_sent {
	PVR_SENT,
	PVR_SENT_BLOCKED, /* the connection takes no more now; pvr_host_resume() will be called */
	PVR_SENT_DOWN, /* there is no connection */
};

/* The outgoing connection that a queue pair uses now. All zero: none. */
struct pvr_route {
	struct pvr_host *host;
	uint8_t kind, slot;
	uint8_t dscp; /* that was asked for */
	uint64_t generation; /* of the connection: changes when it is made anew */
	uint32_t chunk; /* bytes of payload in a frame, at most */
};

/*
 * The connection for a queue pair with this number: of the best kind that is up, and of
 * this DSCP if there is one. @route: remote is kept. Return: false if none is up;
 * generation is 0 then.
 */
bool pvr_link_route(struct pvr_host *host, uint32_t qpn, uint8_t dscp, struct pvr_route *route);
/* The DSCP is the upper six bits of what IP calls traffic class, too. */
static inline uint8_t pvr_dscp_of(uint8_t traffic_class)
{
	return traffic_class >> 2;
}
/* Whether pvr_link_route() would say something else by now. Cheap. */
bool pvr_link_route_changed(const struct pvr_route *route, uint32_t qpn);

/**
 * pvr_link_send() - a frame with or without payload
 * @fabric: what frame.fabric stands for; filled in
 * @header: its size and fabric are filled in
 * @header_size: of it
 * @expose_qp: whose payload it is, if it may be exposed; or NULL
 * @payload: or NULL
 * @offset: of the frame's payload in it
 * @len: bytes
 *
 * What is small may wait for more; pvr_link_flush() sends it. Datagrams may be sent also
 * while the connection is blocked for others, as far as there is room.
 */
enum pvr_sent pvr_link_send(const struct pvr_route *route, const struct pvr_fabric *fabric,
			    union pvr_any_frame *header, size_t header_size,
			    const struct pvr_qp *expose_qp, const struct pvr_sg *payload,
			    uint64_t offset, uint32_t len);
/* At the end of a quantum that has sent. */
void pvr_link_flush(const struct pvr_route *route);

/* ------------------------------------------------------------ for responders */

/* A request frame's payload on its way in, or an answer's on its way out. */
struct pvr_rsp_conn;

/**
 * pvr_rsp_conn_recv_payload() - payload of the frame that is being handled, to guest memory
 * @qp: whose memory that is
 * @to: where the fragment begins is @offset
 * @len: bytes of the fragment
 *
 * Takes what has come; called again for the same frame it goes on behind that.
 * Return: 1: that was all; 0: some has not come yet; -EFAULT: memory went away (the frame
 * will be thrown away when the handler returns).
 */
int pvr_rsp_conn_recv_payload(struct pvr_rsp_conn *in, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len);
/* Its NIC may be reading payload by this. */
const struct pvr_ext_dma *pvr_rsp_conn_ext_dma(const struct pvr_rsp_conn *in);

/*
 * An answer, with a payload of @from's memory, or NULL; frame.type and frame.fabric are
 * filled in, its size is not yet. Always takes it: who sends more than one frame per request
 * does not exist.
 */
void pvr_rsp_conn_reply(struct pvr_rsp_conn *in, union pvr_any_frame *header, size_t header_size,
			const struct pvr_qp *from, const struct pvr_sg *payload, uint64_t offset,
			uint32_t len);

/*
 * A frame's sender is not known: whether its connection may wait for that, by
 * PVR_HANDLED_STALLED, or has done so for long enough.
 */
bool pvr_rsp_conn_may_stall(struct pvr_rsp_conn *in);

struct pvr_host *pvr_rsp_conn_host(const struct pvr_rsp_conn *in);

/* What path/pipe/responder.c keeps with a connection; all zero in the beginning. */
struct pvr_rsp_conn_acks {
	bool ack_pending; /* this has not been sent yet */
	uint32_t count; /* how many there were */
	struct pvr_frame_ack frame;
};

struct pvr_rsp_conn_acks *pvr_rsp_conn_acks(struct pvr_rsp_conn *in);

/* --------------------------------------------- what handles frames that come in */

/*
 * All are called without locks, with a checked private copy of the header, and lock the
 * adapter that they find. @fabric: a name that the connection has declared; it may be
 * that of no fabric here.
 */
enum pvr_handled {
	PVR_HANDLED, /* what is left of its payload is thrown away */
	PVR_HANDLED_PARTLY, /* payload is missing: call again with the same frame */
	PVR_HANDLED_STALLED, /* the sender's GID has to be resolved first: ditto */
};

/* path/pipe/responder.c. The payload is in @payload, if it has come as a whole. */
enum pvr_handled pvr_pipe_request(struct pvr_rsp_conn *in, const char *fabric,
				  const struct pvr_frame_request *frame, uint8_t *payload);
/* No more frames can be handled now: acknowledge what has not been yet. */
void pvr_pipe_request_end(struct pvr_rsp_conn *in);
/* path/pipe/ud.c */
enum pvr_handled pvr_pipe_datagram(struct pvr_rsp_conn *in, const char *fabric,
				   const struct pvr_frame_datagram *frame, uint8_t *payload);

/* path/pipe/qp_gone.c */
void pvr_pipe_recv_qp_gone(struct pvr_rsp_conn *in, const char *fabric,
			   const struct pvr_frame_qp_gone *frame);

/* path/pipe/completer.c, with the outgoing connection's generation. */
void pvr_pipe_ack(const struct pvr_route *route, const char *fabric,
		  const struct pvr_frame_ack *frame);
void pvr_pipe_atomic_ack(const struct pvr_route *route, const char *fabric,
			 const struct pvr_frame_atomic_ack *frame);
/* Pulls by pvr_req_conn_recv_payload(). */
enum pvr_handled pvr_pipe_read_data(const struct pvr_route *route, const char *fabric,
				    const struct pvr_frame_read_data *frame);
int pvr_req_conn_recv_payload(const struct pvr_route *route, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len);
/* As pvr_rsp_conn_ext_dma(). */
const struct pvr_ext_dma *pvr_req_conn_ext_dma(const struct pvr_route *route);
/*
 * The connection takes more, has come up or gone down, or a GID of this host was made
 * known (NULL: of any): queue pairs that wait go on. Takes adapters' locks, so none may be
 * held.
 */
void pvr_host_resume(struct pvr_engine *engine, struct pvr_host *host);

struct pvr_engine *pvr_host_engine(const struct pvr_host *host);
/* So many requests are sent once more. Any thread. */
void pvr_host_count_retransmits(struct pvr_host *host, uint64_t n);

#endif /* PVR_LINK_H */
