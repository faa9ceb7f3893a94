/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire path: RoCEv2 on an Ethernet segment, with peers that have no pvrdmad.
 *
 * DOC: PSNs
 *
 * - Each packet has a PSN. A queue pair counts PSNs of messages (sq_psn, rq_psn), and bytes
 *   of the message in progress (rq_offset); both ends have the same path MTU.
 * - The expected PSN is rq_psn + rq_offset / MTU.
 *
 * DOC: way of a queue pair
 *
 * - A queue pair uses this path from its first packet, sent or accepted, until RESET. One
 *   that another path has served is not used, so a peer that goes away has no successor here.
 * - A GID that an adapter here or another pvrdmad has is never reached by it, and frames
 *   from such a GID are dropped: else TLS between hosts would protect nothing.
 */
#ifndef PVR_PATH_WIRE_INTERNAL_H
#define PVR_PATH_WIRE_INTERNAL_H

#include <netinet/in.h>

#include "core/sg.h"
#include "gid/resolve.h"
#include "port.h"
#include "rdma/path.h"
#include "rdma/ud.h"
#include "roce/frame.h"
#include "roce/opcode.h"

#define PVR_ETH_PSN_MASK 0xffffffu
#define PVR_ETH_PSNS_HALF (1u << 23)
#define PVR_ETH_INFLIGHT_MAX 1024u
#define PVR_ETH_VLAN_ID 0xfffu /* of a VLAN tag */
/* The last datagrams to groups, of which a bridge may show a second copy. */
#define PVR_ETH_COPIES 64u
/* Peers of an adapter whose traffic is counted. */
#define PVR_ETH_PEERS 64u
/* Packets that a requester may have in flight. */
#define PVR_ETH_WINDOW_MIN 2u
#define PVR_ETH_WINDOW_FIRST 64u
#define PVR_ETH_WINDOW_MAX 512u
/* Probes of a silence, after four times the time of an answer, and the limits of that. */
#define PVR_ETH_PROBES 2u
#define PVR_ETH_PROBE_MIN_NS 1000000u
#define PVR_ETH_PROBE_FIRST_NS 100000000u /* while no answer has been measured */
#define PVR_ETH_RTT_MAX_NS 1000000000u
/* Packets of a part of a READ. */
#define PVR_ETH_READ_PACKETS 64u
/* Packets of READ data in one turn. */
#define PVR_ETH_ANSWER_PACKETS 64u
/* Packets and bytes of a run of received packets: a half of a first-level cache, with the copy. */
#define PVR_ETH_RUN 8u
#define PVR_ETH_RUN_BYTES (8u << 10)
/* Bytes that a batch may copy to members of groups, and one datagram more. */
#define PVR_ETH_GROUP_BYTES (512u << 10)
/* Bytes of frames in a batch before an ACK. */
#define PVR_ETH_ACK_BYTES (192u << 10)
/* An ACK waits so long for an answer of the guest, if it is for a few bytes. */
#define PVR_ETH_HOLD_NS 10000u
#define PVR_ETH_HOLD_BYTES (4u << 10)
/* What a copy costs beside its payload. */
#define PVR_ETH_GROUP_COPY 64u
/* Between CNPs of a queue pair, and between turns of a responder after a CNP. */
#define PVR_ETH_CNP_NS 50000u
#define PVR_ETH_PAUSE_NS 100000u
/* Responders whose pause ends in one run of the timer. */
#define PVR_ETH_PAUSES 64u
/* Limits of the frames that an adapter gathers for its port. */
#define PVR_ETH_TX_FRAMES 32u
#define PVR_ETH_TX_BYTES (160u << 10)
/* Wait for room on the segment. */
#define PVR_ETH_FULL_NS 100000u

/* AETH syndromes. */
#define PVR_ETH_ACK 0x1f /* credit count 31: not used */
#define PVR_ETH_RNR 0x20
#define PVR_ETH_NAK_SEQUENCE 0x60
#define PVR_ETH_NAK_INVALID 0x61
#define PVR_ETH_NAK_ACCESS 0x62
#define PVR_ETH_NAK_OPERATION 0x63

/* A request in flight, as in path/pipe/sq.h. */
struct pvr_eth_inflight {
	uint32_t psn, psns; /* 0 for a local operation */
	uint64_t length;
	uint8_t kind; /* enum pvr_op_kind */
};

/*
 * A requester. sq_inflight requests from sq.head on have begun; the PSNs from @una to @next are
 * in flight, those from @next to @high will be sent again.
 */
struct pvr_eth_sq {
	struct pvr_qp *qp;
	struct pvr_eth_peer *peer;
	uint32_t una, next, high;
	uint32_t cursor; /* the request in flight that has @next */
	uint32_t window, acked; /* packets; acknowledged since the window changed */
	uint32_t reads; /* in flight: READs and atomics */
	uint32_t gap; /* the position of the last repetition for a gap, if has_gap */
	bool has_gap;
	bool is_full; /* the segment had no room */
	uint64_t progress; /* time of the last progress or begin, ns */
	uint32_t srtt; /* smoothed time of an answer, ns; 0: not known */
	uint32_t timed_psn; /* its answer is measured, if timed_at is not 0 */
	uint64_t timed_at; /* ns */
	uint8_t probes; /* since the last progress */
	uint64_t all_probes, go_backs; /* since RESET, for display */
	uint32_t share; /* of the window that the next CNP takes twice, see congestion.c */
	uint64_t share_time; /* it has faded up to this time, ns; 0: no CNP yet */
	uint32_t size; /* of @inflight; a power of two */
	struct pvr_eth_inflight inflight[];
};

/* An answer that is not sent yet. */
struct pvr_eth_answer {
	uint32_t psn; /* of its first packet */
	uint32_t rkey;
	uint64_t addr;
	uint64_t length, done; /* of a READ */
	uint64_t value; /* of an atomic */
	bool is_atomic;
};

/* A responder. */
struct pvr_eth_rq {
	struct pvr_qp *qp;
	TAILQ_ENTRY(pvr_eth_rq) link; /* of answering or pausing, if the flag is set */
	bool is_answering, is_pausing;
	struct pvr_timer page; /* while the first answer waits for an absent page */
	bool is_refusing; /* in ERR by a NAK, not by the guest: answers before it are still due */
	bool ack_due, nak_due; /* behind the answers; a NAK is also an ACK */
	bool expects_answer; /* of the guest, soon after an ACK, see held_ack.c */
	uint64_t acked; /* time of the last ACK, ns; 0: the guest has answered */
	uint8_t nak; /* its syndrome */
	uint32_t nak_psn;
	bool is_open; /* a message is in progress */
	uint8_t kind; /* enum pvr_roce_kind, of the message */
	uint32_t msn;
	uint32_t rkey; /* of a WRITE */
	uint64_t addr, length;
	unsigned int turn; /* packets of a turn after a CNP; 0: all */
	uint32_t first, count, size; /* of @answers, a ring */
	struct pvr_eth_answer answers[];
};

/* A peer of an adapter, or all others, see peers.c. */
struct pvr_eth_peer {
	uint8_t gid[16];
	char name[INET6_ADDRSTRLEN];
	uint64_t messages, bytes; /* sent; read by others */
};

/* Where a packet goes: its headers, of which the first @shared are left out in @at. */
struct pvr_eth_place {
	uint8_t header[PVR_ROCE_HEADER_MAX];
	size_t headers, shared;
	size_t udp; /* bytes of the headers up to UDP's */
	uint8_t *at;
};

/*
 * Frames that are gathered until the end of a quantum or of an input batch, so that a system
 * call sends several. If the segment has no room, they stay until it has.
 */
struct pvr_eth_tx {
	unsigned int first, count; /* of @frames: the first that is not sent, and their end */
	size_t used; /* bytes of @buf */
	unsigned int packets; /* of the last frame, which takes more; 0: it does not */
	unsigned int added; /* packets that are not in the port's statistics */
	struct pvr_eth_place place; /* of the last packet */
	struct pvr_port_frame frames[PVR_ETH_TX_FRAMES];
	uint8_t buf[PVR_ETH_TX_BYTES];
};

/* A datagram to a group. */
struct pvr_eth_copy {
	uint8_t src_gid[16], dst_gid[16];
	uint32_t src_qpn, psn;
};

/* What an adapter has for its port. */
struct pvr_eth_adapter {
	struct pvr_adapter *adapter;
	struct pvr_port *port;
	bool ecn; /* routers may mark its data */
	LIST_ENTRY(pvr_eth_adapter) link;
	TAILQ_HEAD(, pvr_eth_rq) answering; /* the next one is first */
	struct pvr_timer timer; /* while answers wait */
	TAILQ_HEAD(, pvr_eth_rq) pausing; /* after a CNP, until the next turn */
	struct pvr_timer pause;
	struct pvr_eth_rq *held; /* its ACK waits for the guest's answer; or NULL */
	struct pvr_timer hold; /* until it is sent without an answer */
	const uint8_t *expected[PVR_ETH_RUN]; /* where the next payloads may go: hints; or NULL */
	struct pvr_gid_quota lookups; /* of sources of frames */
	struct pvr_eth_copy copies[PVR_ETH_COPIES]; /* a ring; copies_seen of all times */
	uint32_t copies_seen;
	uint32_t num_peers; /* written with the lock, read by others */
	struct pvr_eth_peer peers[PVR_ETH_PEERS];
	struct pvr_eth_tx tx;
	struct {
		struct pvr_eth_sq *sq;
		struct pvr_eth_rq *rq;
		uint64_t cnp_sent, cnp_received; /* the last ones, ns; 0: none */
	} qps[PVR_MAX_QP]; /* by handle */
};

struct pvr_port {
	struct pvr_engine *engine;
	char name[64];
	uint32_t mtu;
	const struct pvr_port_ops *ops;
	void *opaque;
	bool gso; /* atomic */
	LIST_HEAD(, pvr_eth_adapter) adapters; /* changes only while no worker runs */
	struct pvr_port_stats stats; /* atomic */
};

/* Frames that are handled under one lock. */
struct pvr_eth_batch {
	struct pvr_eth_adapter *wire; /* locked; or NULL */
	struct pvr_eth_rq *acks; /* has an ACK due; or NULL */
	size_t copied; /* bytes to members of groups */
	size_t unacked; /* bytes of frames since the last ACK */
	uint64_t frames; /* for the statistics */
};

/*
 * A received packet, or a run of several: the middle of a message, with PSNs one after the other from
 * @frame->psn on. One of a run has asked for an ACK if @frame->ack_request is set.
 */
struct pvr_eth_packet {
	const struct pvr_roce_frame *frame; /* of the first one */
	const struct pvr_roce_opcode *op;
	uint8_t *payload; /* frame->payload_bytes */
	unsigned int count; /* of packets */
	size_t stride; /* from one payload to the next */
};

/* Of all packets. */
static inline uint64_t pvr_eth_payload(const struct pvr_eth_packet *packet)
{
	return (uint64_t)packet->count * packet->frame->payload_bytes;
}

static inline uint32_t pvr_eth_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PVR_ETH_PSN_MASK;
}

static inline uint32_t pvr_eth_distance(uint32_t from, uint32_t to)
{
	return (to - from) & PVR_ETH_PSN_MASK;
}

static inline uint32_t pvr_eth_mtu(const struct pvr_qp *qp)
{
	return 128u << qp->attr.path_mtu;
}

/* The VLAN tag of frames from an entry of the GID table; 0: none. */
static inline uint16_t pvr_eth_vlan_tag(const struct pvr_gid_entry *entry, uint32_t service_level)
{
	if (entry->vlan == PVR_VLAN_NONE)
		return 0;
	return (uint16_t)((service_level & 7) << 13 | (entry->vlan & PVR_ETH_VLAN_ID));
}

/* Whether a frame with this tag is on the VLAN of the entry. */
static inline bool pvr_eth_is_on_vlan(const struct pvr_gid_entry *entry, uint16_t tag)
{
	return pvr_eth_vlan_tag(entry, 0) == (tag & PVR_ETH_VLAN_ID);
}

static inline void pvr_eth_count(uint64_t *stat, uint64_t n)
{
	__atomic_fetch_add(stat, n, __ATOMIC_RELAXED);
}

static inline struct pvr_eth_sq *pvr_eth_sq(const struct pvr_qp *qp)
{
	return qp->adapter->wire->qps[qp->handle].sq;
}

static inline struct pvr_eth_rq *pvr_eth_rq(const struct pvr_qp *qp)
{
	return qp->adapter->wire->qps[qp->handle].rq;
}

/* Return: request in flight @i, counted from the oldest. */
static inline struct pvr_eth_inflight *pvr_eth_inflight(struct pvr_eth_sq *sq, uint32_t i)
{
	return &sq->inflight[(sq->qp->sq.head + i) & (sq->size - 1)];
}

static inline bool pvr_eth_has_response(const struct pvr_eth_inflight *inflight)
{
	return inflight->kind == PVR_OP_READ || inflight->kind == PVR_OP_ATOMIC;
}

static inline bool pvr_eth_is_sending(const struct pvr_qp *qp)
{
	return qp->state == PVR_QPS_RTS || qp->sq_draining;
}

/* Whether the adapter may use its port for @gid: it is not here, and not at another pvrdmad. */
enum pvr_gid_state pvr_eth_find(struct pvr_adapter *adapter, const uint8_t gid[16]);
/* The same for the source of a frame, within the adapter's quota of lookups. */
enum pvr_gid_state pvr_eth_find_source(struct pvr_eth_adapter *wire, const uint8_t gid[16]);
bool pvr_eth_is_mac_ok(const uint8_t mac[6]);
/* Whether another path has served the queue pair: then it stays away from the wire until RESET. */
bool pvr_eth_was_elsewhere(const struct pvr_qp *qp);

/* ------------------------------------------------------------------------------ payload */

/* Guest memory that is looked up at once, also beyond a packet, and its runs if pages are scattered. */
#define PVR_ETH_SPAN_BYTES (8u << 10)
#define PVR_ETH_SPAN_RUNS (PVR_ETH_SPAN_BYTES / PVR_PAGE_SIZE + 1)

/* A payload in guest memory from an offset on. */
struct pvr_eth_span {
	const struct pvr_sg *sg;
	uint64_t offset; /* of the end of the last run */
	struct iovec runs[PVR_ETH_SPAN_RUNS]; /* from @next to @count are left */
	unsigned int next, count;
};

/* @sg: or NULL, if nothing is taken */
void pvr_eth_span_init(struct pvr_eth_span *span, const struct pvr_sg *sg, uint64_t offset);
/*
 * Take @bytes, or less: *len in one run. @next: set to what follows, or NULL: not known. Return: NULL if
 * guest memory was unplugged, or is absent.
 */
uint8_t *pvr_eth_span_take(struct pvr_eth_span *span, uint64_t bytes, uint64_t *len,
			   const uint8_t **next);

/* Store the payload from @offset of @to on. Return: 0, or -EFAULT if memory of @to was unplugged. */
int pvr_eth_store(const struct pvr_sg *to, uint64_t offset, const struct pvr_eth_packet *packet);

/* ------------------------------------------------------------------------------ sending */

enum pvr_eth_sent {
	PVR_ETH_SENT,
	PVR_ETH_FULL, /* no room: later */
	PVR_ETH_FAULT, /* guest memory was unplugged */
};

/*
 * Send @frame with its payload_bytes from @offset of @sg, which may be NULL without payload. The
 * next pvr_eth_flush() at the latest gives it to the port.
 */
enum pvr_eth_sent pvr_eth_send(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
			       const struct pvr_sg *sg, uint64_t offset);
/*
 * Send a packet whose frame is like the last one's, up to the PSN, A and the values of the headers
 * behind the BTH. The last one was sent with the same @frame, and the lock is held since then.
 */
enum pvr_eth_sent pvr_eth_send_next(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
				    const struct pvr_sg *sg, uint64_t offset);
/*
 * Send up to @count packets more that are like the last one, which has nothing but its payload behind
 * the BTH. The payload is at @offset, each after the other. Each @ack_interval-th PSN asks for an ACK; 0:
 * none does. They share a frame with the last one. Return: the number of those that were sent; 0 if
 * pvr_eth_send_next() is to be used.
 */
unsigned int pvr_eth_send_run(struct pvr_adapter *adapter, struct pvr_roce_frame *frame,
			      const struct pvr_sg *sg, uint64_t offset, unsigned int count,
			      uint32_t ack_interval);
/*
 * Give the gathered frames to the port. If it has no room for all, a timer gives it the others.
 * Context: the adapter's lock is held. Return: whether no frame is left.
 */
bool pvr_eth_flush(struct pvr_eth_adapter *wire);
/* A frame to the peer of a connected queue pair. Return: false if its source GID is gone. */
bool pvr_eth_address(struct pvr_roce_frame *frame, const struct pvr_qp *qp);

/* ------------------------------------------------------------- packets of the requester */

/* A message of which packets are sent. */
struct pvr_eth_message {
	const struct pvr_send_wqe *wqe;
	const struct pvr_opcode *op;
	const struct pvr_sg *sg;
	uint32_t psn, psns;
};

/* The last packet that was sent: the next one may be like it. */
struct pvr_eth_last {
	struct pvr_roce_frame frame;
	bool is_sent;
	bool is_middle; /* neither the first nor the last one of its message */
};

/* Packets that the window has room for. */
uint32_t pvr_eth_room(const struct pvr_eth_sq *sq);
/* Packet @i of a SEND or WRITE. */
void pvr_eth_fill_packet(struct pvr_roce_frame *frame, const struct pvr_qp *qp,
			 const struct pvr_eth_message *message, uint32_t i);
/*
 * Send a packet of the message that has @next. @ask: for an ACK; @psns: set to those that it covers;
 * @last: of this run of the queue pair, at first all zero
 */
enum pvr_eth_sent pvr_eth_send_one(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
				   bool ask, uint32_t *psns, struct pvr_eth_last *last);

/* Send packets from @next on as a run. Return: their number; 0 if the next one is to be sent alone. */
uint32_t pvr_eth_send_middles(struct pvr_eth_sq *sq, const struct pvr_eth_message *message,
			      struct pvr_eth_last *last);

/* --------------------------------------------------------------------------- requester */

enum pvr_quantum pvr_eth_run_sq(struct pvr_qp *qp, unsigned int max);
void pvr_eth_timeout(struct pvr_qp *qp);
void pvr_eth_stop(struct pvr_qp *qp);
void pvr_eth_close(struct pvr_qp *qp);
/* Send the last packet in flight once more, or the request for the rest of a READ. */
void pvr_eth_probe(struct pvr_eth_sq *sq);
/* Set the queue pair's timer for the next probe or the timeout. */
void pvr_eth_start_timer(struct pvr_eth_sq *sq);
/* Go back if the timeout has expired. Return: false if the queue pair has failed. */
bool pvr_eth_check_timeout(struct pvr_eth_sq *sq, uint64_t now);
void pvr_eth_describe(const struct pvr_qp *qp, struct pvr_qp_detail *detail);
/* Send again from the oldest PSN in flight. */
void pvr_eth_go_back(struct pvr_eth_sq *sq);
/* The entry of a destination. */
struct pvr_eth_peer *pvr_eth_peer_of(struct pvr_eth_adapter *wire, const uint8_t gid[16]);
/* Count a message. */
void pvr_eth_count_message(struct pvr_qp *qp, uint8_t kind, uint64_t length);
/* Whether a run of responses can be handled at once: each is the expected one. */
bool pvr_eth_responses_fit(const struct pvr_qp *qp, const struct pvr_eth_packet *packet);
/* A response to a requester. The adapter's lock is held. */
void pvr_eth_response(struct pvr_qp *qp, const struct pvr_eth_packet *packet);

/* --------------------------------------------------------------------------- responder */

/* Whether a run of requests can be handled at once: each is the expected one, and valid. */
bool pvr_eth_requests_fit(const struct pvr_qp *qp, const struct pvr_eth_packet *packet);
/* A request of a connected peer. The adapter's lock is held. */
void pvr_eth_request(struct pvr_eth_batch *batch, struct pvr_qp *qp,
		     const struct pvr_eth_packet *packet);
/* Send the ACK that is due, if there is one. */
void pvr_eth_flush_ack(struct pvr_eth_batch *batch);
/* Send the ACK or NAK that has waited for the last answer. */
void pvr_eth_ack_behind(struct pvr_eth_rq *rq);
/* An ACK of all before, a NAK or an RNR NAK for @psn. */
void pvr_eth_send_ack(struct pvr_eth_rq *rq, uint8_t syndrome, uint32_t psn);
void pvr_eth_rq_free(struct pvr_qp *qp);

/* Instead of pvr_eth_flush_ack(). Return: false if the ACK is not held. */
bool pvr_eth_hold_ack(struct pvr_eth_batch *batch);
/* Send the ACK that the adapter holds, if there is one. */
void pvr_eth_send_held(struct pvr_eth_adapter *wire);
/* The queue pair has sent packets at @now. An ACK leaves with them. */
void pvr_eth_answered(struct pvr_qp *qp, uint64_t now);
/* The responder's queue pair is reset. */
void pvr_eth_forget_held(struct pvr_eth_rq *rq);
void pvr_eth_hold_timer(struct pvr_timer *timer);

/* Answers of READs and atomics. */
bool pvr_eth_answer_add(struct pvr_eth_rq *rq, const struct pvr_eth_answer *answer);
/* Drop the answers from @psn on, which the peer asks for again. */
void pvr_eth_answers_drop(struct pvr_eth_rq *rq, uint32_t psn);
/* Send what is due, up to PVR_ETH_ANSWER_PACKETS; the rest follows by a timer. */
void pvr_eth_answer(struct pvr_eth_rq *rq);
/* Set one of the adapter's timers, unless it is set. */
void pvr_eth_set_timer(struct pvr_eth_adapter *wire, struct pvr_timer *timer, uint32_t ns);
void pvr_eth_answer_timer(struct pvr_timer *timer);
void pvr_eth_pause_timer(struct pvr_timer *timer);
/* Return: 0 or -ENOMEM. The caller exits rq->page. */
int pvr_eth_answers_init(struct pvr_eth_rq *rq, struct pvr_qp *qp);
/* Forget that answers wait. */
void pvr_eth_answer_stop(struct pvr_eth_rq *rq);
/* Drop the answers, see struct pvr_path_ops. */
void pvr_eth_end_answers(struct pvr_qp *qp);
/* The expected PSN. */
uint32_t pvr_eth_expected(const struct pvr_qp *qp);
/*
 * A request was refused: the NAK of @status for @psn, behind the answers that wait; once more if it is
 * asked again.
 */
void pvr_eth_refuse(struct pvr_eth_rq *rq, enum pvrdma_wc_status status, uint32_t psn);

/* -------------------------------------------------------------------------- congestion */

/* A packet for the queue pair has the mark CE. */
void pvr_eth_marked(struct pvr_qp *qp);
/* A CNP for the queue pair. */
void pvr_eth_congested(struct pvr_qp *qp);
/* Return: the packets that the responder may send in its next turn. */
unsigned int pvr_eth_turn(const struct pvr_eth_rq *rq);
/* It has had a turn without a CNP. */
void pvr_eth_turn_done(struct pvr_eth_rq *rq);

/* --------------------------------------------------------------------------- datagrams */

enum pvr_ud_result pvr_eth_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				   const struct pvr_datagram *dgram);
/* To the members of its group on the segment, which the port's switches know. */
void pvr_eth_mcast_send(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			const struct pvr_host_group *to);
void pvr_eth_datagram(struct pvr_adapter *adapter, const struct pvr_eth_packet *packet);
/* Whether the adapter receives datagrams of the frame's group, on the frame's VLAN. */
bool pvr_eth_is_member(const struct pvr_adapter *adapter, const struct pvr_roce_frame *frame);
/* Whether the adapter has got the datagram to a group already; remembers it. */
bool pvr_eth_is_copy(struct pvr_eth_adapter *wire, const struct pvr_roce_frame *frame);
/* Offer the datagram to the adapter's queue pairs of its group. Return: bytes that this may copy. */
size_t pvr_eth_group_datagram(struct pvr_adapter *adapter, const struct pvr_eth_packet *packet);
/* The group address of Ethernet for a multicast GID (RFC 1112, RFC 2464). */
void pvr_eth_group_mac(uint8_t mac[6], const uint8_t mgid[16]);

#endif /* PVR_PATH_WIRE_INTERNAL_H */
