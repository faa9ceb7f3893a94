/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The pipe protocol's frames, as they are on the wire: docs/pipe-protocol.md says what
 * they mean. Everything is little-endian but GIDs and immediate data, which are bytes in
 * the order of the network. Reserved fields are zero, and checked.
 *
 * Two daemons have two sets of connections, one for what the guests of each ask for: on a
 * connection who dialled is the requester, and sends requests; who accepted is the
 * responder, and sends responses. A requester always takes responses in at once, a
 * responder may stop reading requests while its responses do not get away. So neither
 * waits for the other in a circle, and TCP's flow control is all that is needed.
 */
#ifndef PVR_PIPE_FRAME_H
#define PVR_PIPE_FRAME_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

#define PVR_FRAME_MAGIC 0x65706970u /* "pipe" */
#define PVR_FRAME_VERSION 1
/* A fragment of a message has no more payload than the smaller of both ends' limits. */
#define PVR_FRAME_CHUNK_MIN 4096u
#define PVR_FRAME_CHUNK_MAX (1u << 20)
#define PVR_FRAME_DATAGRAM_MAX 4096u
#define PVR_FRAME_NAME_MAX 64 /* final NUL included */
#define PVR_FRAME_FABRIC_MAX 32 /* ditto */
#define PVR_FRAME_FABRICS 1024 /* that a connection may declare; numbers from 1 up */
#define PVR_FRAME_MTU_MAX 5u
#define PVR_FRAME_BUFFERS_MIN 2u
#define PVR_FRAME_BUFFERS_MAX 1024u
#define PVR_FRAME_RNR_MAX_NS 655360000ull /* IBTA vol. 1, table 45 */
#define PVR_FRAME_RNDV_SEGS 8u /* of one frame's payload */
#define PVR_FRAME_RNDV_MAX 32u /* that may be out at once, each way */

enum pvr_frame_type {
	/* Either way. */
	PVR_FRAME_HELLO = 1,
	PVR_FRAME_CLOSE,
	PVR_FRAME_PING,
	PVR_FRAME_PONG,
	PVR_FRAME_VERBS_QP,
	PVR_FRAME_RNDV_DONE,
	/* From who dialled. */
	PVR_FRAME_FABRIC = 8,
	PVR_FRAME_GID_QUERY,
	PVR_FRAME_REQUEST,
	PVR_FRAME_DATAGRAM,
	PVR_FRAME_QP_GONE,
	/* From who accepted. */
	PVR_FRAME_GID_REPLY = 16,
	PVR_FRAME_ACK,
	PVR_FRAME_ATOMIC_ACK,
	PVR_FRAME_READ_DATA,
	PVR_FRAME_NUM,
};

/* Every frame begins with this. */
struct pvr_frame {
	__le32 size; /* of the frame, this and the payload included */
	__u8 type; /* enum pvr_frame_type */
	__u8 flags; /* PVR_FRAME_F_* that the type has */
	__le16 fabric; /* as a FABRIC frame has declared it, from 1; 0 where none is meant */
};

/* Features of HELLO. */
#define PVR_HELLO_F_RDMA \
	0x1u /* it knows of the next one; whether its NIC works is another matter */
#define PVR_HELLO_F_VERBS 0x2u /* a VERBS_QP frame follows: frames go on there */
#define PVR_HELLO_F_PIGGYBACK_ACK 0x4u /* who dialled may send ACKs, too, ahead of their own */
#define PVR_HELLO_F_QP_GONE 0x8u /* QP_GONE frames are understood */
/*
 * With RDMA: it knows of this. With VERBS, if that was said: payload may be exposed, see struct
 * pvr_frame_rndv_seg.
 */
#define PVR_HELLO_F_RNDV 0x10u

/*
 * Of REQUEST and READ_DATA: instead of the payload's @chunk bytes, a list of struct
 * pvr_frame_rndv_seg follows, which say where the NIC of the sender lets them be read.
 */
#define PVR_FRAME_F_RNDV 0x80

/* The first frame each way; the one who dialled begins. */
struct pvr_frame_hello {
	struct pvr_frame frame;
	__le32 magic;
	__le16 version_min, version_max; /* the answer: both are the version chosen */
	__le64 instance; /* random, another one each time a daemon starts */
	__le32 features; /* the answer: those chosen, a subset of what was offered */
	__le32 chunk; /* bytes of payload that it takes in a frame at most */
	__u8 index; /* of this connection among those of the one who dials */
	__u8 dscp; /* of its packets both ways, 6 bits */
	__u8 count; /* how many those are, so far */
	__u8 reserved;
	__le32 keepalive_ms; /* silence after which it may give the connection up */
	char name[PVR_FRAME_NAME_MAX]; /* of the host; NUL-terminated */
};

/* Why, for the other side's log; then the connection is closed. */
struct pvr_frame_close {
	struct pvr_frame frame;
	__le32 reason; /* enum pvr_close_reason */
	__le32 reserved;
	char text[120]; /* NUL-terminated */
};

enum pvr_close_reason {
	PVR_CLOSE_DONE, /* not needed any more */
	PVR_CLOSE_VERSION,
	PVR_CLOSE_IDENTITY, /* the certificate or key is not that host's */
	PVR_CLOSE_PROTOCOL, /* a frame that makes no sense */
	PVR_CLOSE_REPLACED, /* by a newer connection of the same index */
	PVR_CLOSE_LIMIT, /* too many connections, fabrics ... */
	PVR_CLOSE_DEVICE, /* no RDMA NIC that works */
	PVR_CLOSE_NUM,
};

/*
 * The queue pair of an RDMA NIC, type RC, on which everything but this and the HELLO before
 * it travels; the connection that has brought it says that its owner is still there.
 */
struct pvr_frame_verbs_qp {
	struct pvr_frame frame;
	__u8 gid[16]; /* of the NIC's port */
	__le32 qpn, psn; /* 24 bits; of the first packet that it sends */
	__le16 lid; /* 0: Ethernet */
	__u8 mtu; /* that of the port, as IBTA writes it: 256 bytes are 1, 4096 are 5 */
	__u8 reads; /* RDMA READs that it answers at once; with RNDV at least 1, else 0 */
	__le32 buffers; /* messages that it can take before it gives credits back */
	__le32 buffer_size; /* bytes of one at most */
	__le32 reserved2;
};

/* Memory that may be read by RDMA READ, from who has received this, until it is returned. */
struct pvr_frame_rndv_seg {
	__le64 addr; /* as the NIC calls it */
	__le32 rkey;
	__le32 len;
};

/* So many rendezvous of this connection have been read, or will not be; in their order. */
struct pvr_frame_rndv_done {
	struct pvr_frame frame;
	__le32 count; /* since it was made, modulo 2^32 */
	__le32 reserved;
};

struct pvr_frame_ping { /* and PONG, which brings the same back */
	struct pvr_frame frame;
	__le64 cookie;
};

/* From now on frame.fabric is short for this name, on this connection. */
struct pvr_frame_fabric {
	struct pvr_frame frame;
	char name[PVR_FRAME_FABRIC_MAX]; /* NUL-terminated */
};

/* Who has the GID? GID_REPLY is the answer. */
struct pvr_frame_gid_query { /* and GID_REPLY */
	struct pvr_frame frame;
	__u8 gid[16];
	__u8 gid_type; /* GID_QUERY: 0. GID_REPLY: PVR_GID_TYPE_* of who has it; 0: nobody here */
	__u8 reserved[7];
};

enum pvr_frame_op {
	PVR_FRAME_OP_SEND,
	PVR_FRAME_OP_SEND_IMM,
	PVR_FRAME_OP_SEND_INV, /* imm is the key, in host order as a __le32 */
	PVR_FRAME_OP_WRITE,
	PVR_FRAME_OP_WRITE_IMM,
	PVR_FRAME_OP_READ,
	PVR_FRAME_OP_CMP_SWAP,
	PVR_FRAME_OP_FETCH_ADD,
	PVR_FRAME_OP_NUM,
};

#define PVR_REQUEST_F_SOLICITED 0x01 /* of DATAGRAM, too */
#define PVR_REQUEST_F_LAST 0x02 /* the fragment that ends the message */
#define PVR_REQUEST_F_UC 0x04 /* unreliable connection: no answer is wanted */

/*
 * One fragment of a message of a connected queue pair. SEND and WRITE: @chunk bytes of
 * payload follow. READ: the answer brings them. Atomics: @length is 8, @chunk 0.
 */
struct pvr_frame_request {
	struct pvr_frame frame;
	__u8 op; /* enum pvr_frame_op */
	__u8 gid_type; /* PVR_GID_TYPE_* of both */
	__le16 reserved;
	__le32 epoch; /* of the requester's connection; comes back in answers */
	__le32 src_qpn, dst_qpn; /* 24 bits */
	__le32 psn, psns; /* of the message: its first, how many it takes */
	__u8 sgid[16], dgid[16];
	__u8 imm[4];
	__le32 rkey;
	__le64 addr; /* remote address */
	__le64 length; /* of the message */
	__le64 offset; /* of the fragment */
	__le32 chunk; /* bytes of the fragment */
	__le32 reserved2;
	__le64 compare_add, swap;
};

struct pvr_frame_datagram {
	struct pvr_frame frame;
	__u8 imm[4];
	__u8 has_imm, gid_type, traffic_class, hop_limit;
	__le32 flow_label;
	__le32 src_qpn, dst_qpn, qkey; /* dst_qpn 0xffffff: to the multicast group dgid */
	__u8 sgid[16], dgid[16];
};

/* The requester, or whoever @dst_qpn is connected to, is gone for good, with its adapter. */
struct pvr_frame_qp_gone {
	struct pvr_frame frame;
	__le32 src_qpn, dst_qpn; /* who is gone, and whom that concerns */
	__u8 sgid[16], dgid[16]; /* ditto */
	__u8 gid_type;
	__u8 reserved[7];
};

enum pvr_frame_syndrome {
	PVR_FRAME_SYN_ACK, /* done up to here */
	PVR_FRAME_SYN_RNR, /* no receive request: again after rnr_ns */
	PVR_FRAME_SYN_NAK, /* the request at psn has failed, with status */
	PVR_FRAME_SYN_PSN_SEQ_ERR, /* something is missing: again from here */
	PVR_FRAME_SYN_NO_QP, /* no queue pair that answers */
	PVR_FRAME_SYN_NO_GID, /* nor has an adapter here the GID any more */
	PVR_FRAME_SYN_NUM,
};

enum pvr_frame_nak {
	PVR_FRAME_NAK_INVALID_REQUEST,
	PVR_FRAME_NAK_ACCESS,
	PVR_FRAME_NAK_OPERATION,
	PVR_FRAME_NAK_NUM,
};

/*
 * What the responder's queue pair has got: all messages before @psn, and @offset bytes of
 * the one at @psn. NO_QP, NO_GID: psn is that of the request, offset is 0.
 */
struct pvr_frame_ack {
	struct pvr_frame frame;
	__u8 syndrome; /* enum pvr_frame_syndrome */
	__u8 nak; /* enum pvr_frame_nak */
	__le16 reserved;
	__le32 epoch;
	__u8 gid[16]; /* the requester's */
	__le32 qpn; /* the requester's */
	__le32 psn;
	__le64 offset;
	__le64 rnr_ns;
};

struct pvr_frame_atomic_ack {
	struct pvr_frame frame;
	__le32 epoch, qpn;
	__u8 gid[16];
	__le32 psn; /* of the atomic */
	__le32 reserved;
	__le64 value; /* what was there before */
};

/* The payload follows: bytes @offset to @offset + @chunk of the READ at @psn. */
struct pvr_frame_read_data {
	struct pvr_frame frame;
	__le32 epoch, qpn;
	__u8 gid[16];
	__le32 psn;
	__le32 chunk;
	__le64 offset;
};

#define PVR_FRAME_SIZE(type, size) static_assert(sizeof(struct type) == (size), "size of " #type)

PVR_FRAME_SIZE(pvr_frame, 8);
PVR_FRAME_SIZE(pvr_frame_hello, 104);
PVR_FRAME_SIZE(pvr_frame_close, 136);
PVR_FRAME_SIZE(pvr_frame_rndv_seg, 16);
PVR_FRAME_SIZE(pvr_frame_rndv_done, 16);
PVR_FRAME_SIZE(pvr_frame_ping, 16);
PVR_FRAME_SIZE(pvr_frame_verbs_qp, 48);
PVR_FRAME_SIZE(pvr_frame_fabric, 40);
PVR_FRAME_SIZE(pvr_frame_gid_query, 32);
PVR_FRAME_SIZE(pvr_frame_request, 120);
PVR_FRAME_SIZE(pvr_frame_datagram, 64);
PVR_FRAME_SIZE(pvr_frame_qp_gone, 56);
PVR_FRAME_SIZE(pvr_frame_ack, 56);
PVR_FRAME_SIZE(pvr_frame_atomic_ack, 48);
PVR_FRAME_SIZE(pvr_frame_read_data, 48);

union pvr_any_frame {
	struct pvr_frame frame;
	struct pvr_frame_hello hello;
	struct pvr_frame_close close;
	struct pvr_frame_ping ping;
	struct pvr_frame_verbs_qp verbs_qp;
	struct pvr_frame_rndv_done rndv_done;
	struct pvr_frame_fabric fabric;
	struct pvr_frame_gid_query gid_query;
	struct pvr_frame_request request;
	struct pvr_frame_datagram datagram;
	struct pvr_frame_qp_gone qp_gone;
	struct pvr_frame_ack ack;
	struct pvr_frame_atomic_ack atomic_ack;
	struct pvr_frame_read_data read_data;
};

/* Which end of a connection one is: what it may receive follows. */
enum pvr_frame_role {
	PVR_FRAME_REQUESTER, /* it dialled */
	PVR_FRAME_RESPONDER,
	PVR_FRAME_RESPONDER_PIGGYBACK, /* that is told ACKs ahead, too */
};

/**
 * pvr_frame_header_size() - how long a frame's header is
 * @frame: its first 8 bytes, not checked yet
 * @receiver: who has received it
 * @chunk: bytes of payload that the receiver takes at most
 *
 * Return: the bytes before the payload; 0 with @why if no such frame may come.
 */
size_t pvr_frame_header_size(const struct pvr_frame *frame, enum pvr_frame_role receiver,
			     uint32_t chunk, const char **why);

/**
 * pvr_frame_check() - is the whole header, a private copy, in order
 * @size: as pvr_frame_header_size() said
 * @payload: how many bytes follow; of a frame with PVR_FRAME_F_RNDV these are rendezvous, which
 * pvr_frame_check_rndv() looks at
 *
 * Afterwards enumerations are in range, reserved fields zero, strings terminated, sizes
 * and chunks consistent (offset + chunk <= length <= PVR_MAX_MSG_SIZE, LAST exactly if
 * they are equal), numbers within 24 bits, psns from 1 to 2^23. What only the queue pair
 * can know is not looked at.
 */
bool pvr_frame_check(const union pvr_any_frame *any, size_t size, size_t *payload,
		     const char **why);

/* The bytes of payload that a REQUEST or READ_DATA brings, lent or not. */
uint32_t pvr_frame_chunk(const union pvr_any_frame *any);

/*
 * Whether @count rendezvous make up @chunk bytes. None is empty, or wraps.
 */
bool pvr_frame_check_rndv(const struct pvr_frame_rndv_seg *rndv, size_t count, uint32_t chunk,
			  const char **why);

#endif /* PVR_PIPE_FRAME_H */
