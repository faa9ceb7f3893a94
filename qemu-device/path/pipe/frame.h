/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Frames of the pipe protocol. Their meaning is specified in docs/pipe-protocol.md.
 *
 * DOC: frames
 *
 * * All fields are little-endian, except GIDs and immediate data, which are bytes in
 *   network order. Reserved fields are zero, and the receiver checks that.
 * * Two daemons have two sets of connections, one for the requests of each host's guests.
 *   The host that dialed a connection is the requester and sends requests. The host that
 *   accepted it is the responder and sends responses.
 * * A requester always accepts responses at once. A responder may stop reading requests
 *   while it cannot send responses. So no circular wait exists, and the stream's flow
 *   control is sufficient.
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
/* Maximum payload of a fragment: the smaller limit of both ends, in this range. */
#define PVR_FRAME_CHUNK_MIN 4096u
#define PVR_FRAME_CHUNK_MAX (1u << 20)
#define PVR_FRAME_DATAGRAM_MAX 4096u
#define PVR_FRAME_NAME_MAX 64 /* final NUL included */
#define PVR_FRAME_ADDRESS_MAX 64 /* final NUL included */
#define PVR_FRAME_FABRIC_MAX 32 /* final NUL included */
#define PVR_FRAME_FABRICS 1024 /* maximum per connection; numbered from 1 */
#define PVR_FRAME_MTU_MAX 5u
#define PVR_FRAME_BUFFERS_MIN 2u
#define PVR_FRAME_BUFFERS_MAX 1024u
#define PVR_FRAME_RNR_MAX_NS 655360000ull /* IBTA table 45 */
#define PVR_FRAME_RNDV_SEGS 8u /* maximum of one frame */
#define PVR_FRAME_RNDV_MAX 32u /* maximum that is exposed at once, in each direction */

enum pvr_frame_type {
	/* In either direction. */
	PVR_FRAME_HELLO = 1,
	PVR_FRAME_CLOSE,
	PVR_FRAME_PING,
	PVR_FRAME_PONG,
	PVR_FRAME_VERBS_QP,
	PVR_FRAME_RNDV_DONE,
	/* From requester to responder. */
	PVR_FRAME_FABRIC = 8,
	PVR_FRAME_GID_QUERY,
	PVR_FRAME_REQUEST,
	PVR_FRAME_DATAGRAM,
	PVR_FRAME_QP_GONE,
	PVR_FRAME_FAULT,
	PVR_FRAME_MOVED,
	PVR_FRAME_TAKE,
	/* From responder to requester. */
	PVR_FRAME_GID_REPLY = 16,
	PVR_FRAME_ACK,
	PVR_FRAME_ATOMIC_ACK,
	PVR_FRAME_READ_DATA,
	PVR_FRAME_TAKEN,
	PVR_FRAME_REFERRAL,
	/* From requester to responder. */
	PVR_FRAME_ADDRESS,
	PVR_FRAME_NUM,
};

/* The first bytes of every frame. */
struct pvr_frame {
	__le32 size; /* of the frame in bytes, including this header and the payload */
	__u8 type; /* enum pvr_frame_type */
	__u8 flags; /* flags that the type allows */
	__le16 fabric; /* number that a FABRIC frame has declared, from 1; 0 if the type has none */
};

/* Features of HELLO. */
#define PVR_HELLO_F_RDMA 0x1u /* supports PVR_HELLO_F_VERBS; its NIC may still fail */
#define PVR_HELLO_F_VERBS 0x2u /* a VERBS_QP frame follows; later frames use that QP */
#define PVR_HELLO_F_PIGGYBACK_ACK 0x4u /* the requester may send piggybacked ACKs */
#define PVR_HELLO_F_QP_GONE 0x8u /* accepts QP_GONE frames */
/*
 * With RDMA: the sender supports rendezvous. With VERBS, if the peer has sent that bit:
 * payload may be exposed, see struct pvr_frame_rndv_seg.
 */
#define PVR_HELLO_F_RNDV 0x10u
#define PVR_HELLO_F_ATOMIC_WRITE 0x20u /* accepts the operations ATOMIC_WRITE and FLUSH */
#define PVR_HELLO_F_XRC 0x40u /* accepts requests with PVR_REQUEST_F_XRC */
#define PVR_HELLO_F_PAGE 0x80u /* accepts PVR_FRAME_SYN_PAGE */
#define PVR_HELLO_F_FAULT 0x100u /* the operator allows faults: may send and accepts FAULT frames */
#define PVR_HELLO_F_MOVE 0x200u /* accepts PVR_FRAME_SYN_HELD, MOVED and TAKE */
#define PVR_HELLO_F_LOAD 0x800u /* accepts the number of the load behind TAKE */
#define PVR_HELLO_F_REFER 0x1000u /* accepts REFERRAL instead of GID_REPLY */
#define PVR_HELLO_F_ADDRESS 0x2000u /* accepts ADDRESS frames */
#define PVR_HELLO_F_TAIL 0x400u /* executes the tail of a fragment that it has executed in part */

/*
 * Of REQUEST and READ_DATA: a list of struct pvr_frame_rndv_seg follows instead of @chunk
 * bytes of payload. It names the exposed memory at the sender's NIC.
 */
#define PVR_FRAME_F_RNDV 0x80

/* The first frame in each direction. The requester sends first. */
struct pvr_frame_hello {
	struct pvr_frame frame;
	__le32 magic;
	__le16 version_min, version_max; /* in the response both are the selected version */
	__le64 instance; /* random; changes at each start of a daemon */
	__le32 features; /* in the response: the selected subset */
	__le32 chunk; /* maximum payload of a frame that the sender accepts, in bytes */
	__u8 index; /* of this connection among those of the requester */
	__u8 dscp; /* of the packets in both directions, 6 bits */
	__u8 count; /* number of the requester's connections so far */
	__u8 reserved;
	__le32 keepalive_ms; /* the sender may close the connection after this silence */
	char name[PVR_FRAME_NAME_MAX]; /* of the host; NUL-terminated */
};

/* The reason, for the peer's log. The sender then closes the connection. */
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
	PVR_CLOSE_PROTOCOL, /* a malformed or unexpected frame */
	PVR_CLOSE_REPLACED, /* a newer connection has the same index */
	PVR_CLOSE_LIMIT, /* too many connections, fabrics ... */
	PVR_CLOSE_DEVICE, /* no usable RDMA NIC */
	PVR_CLOSE_NUM,
};

/*
 * The RC queue pair of an RDMA NIC that carries all frames after this one. It ends with
 * the connection that carried HELLO and this frame.
 */
struct pvr_frame_verbs_qp {
	struct pvr_frame frame;
	__u8 gid[16]; /* of the NIC's port */
	__le32 qpn, psn; /* 24 bits; @psn is that of the first packet sent */
	__le16 lid; /* 0: Ethernet */
	__u8 mtu; /* of the port, as in IBTA: 1 is 256 bytes, 5 is 4096 bytes */
	__u8 reads; /* RDMA READs that it executes at once; at least 1 with RNDV, else 0 */
	__le32 buffers; /* messages that it accepts before it returns credits */
	__le32 buffer_size; /* maximum bytes of one message */
	__le32 reserved2;
};

/* Exposed memory: the receiver may read it by RDMA READ until RNDV_DONE. */
struct pvr_frame_rndv_seg {
	__le64 addr; /* address at the sender's NIC */
	__le32 rkey;
	__le32 len;
};

/* The receiver of rendezvous has read them or will not read them, in their order. */
struct pvr_frame_rndv_done {
	struct pvr_frame frame;
	__le32 count; /* since the connection started, modulo 2^32 */
	__le32 reserved;
};

struct pvr_frame_ping { /* and PONG, which returns the cookie */
	struct pvr_frame frame;
	__le64 cookie;
};

/* Declares the fabric that frame.fabric stands for, on this connection. */
struct pvr_frame_fabric {
	struct pvr_frame frame;
	char name[PVR_FRAME_FABRIC_MAX]; /* NUL-terminated */
};

/* Requests whether the responder's host has the GID. GID_REPLY is the response. */
struct pvr_frame_gid_query { /* and GID_REPLY */
	struct pvr_frame frame;
	__u8 gid[16];
	__u8 gid_type; /* GID_QUERY: 0. GID_REPLY: PVR_GID_TYPE_*; 0: not on this host */
	__u8 reserved[7];
};

/* The response to GID_QUERY for a GID that is not at this host, but at @name. */
struct pvr_frame_referral {
	struct pvr_frame frame;
	__u8 gid[16];
	__u8 gid_type; /* PVR_GID_TYPE_* */
	__u8 reserved[7];
	char name[PVR_FRAME_NAME_MAX]; /* of the host; NUL-terminated */
	char address[PVR_FRAME_ADDRESS_MAX]; /* of its listener; "": unknown; NUL-terminated */
};

/* Where the sender can be dialed. */
struct pvr_frame_address {
	struct pvr_frame frame;
	char address[PVR_FRAME_ADDRESS_MAX]; /* of its listener; NUL-terminated */
};

enum pvr_frame_op {
	PVR_FRAME_OP_SEND,
	PVR_FRAME_OP_SEND_IMM,
	PVR_FRAME_OP_SEND_INV, /* imm is the rkey as a __le32 */
	PVR_FRAME_OP_WRITE,
	PVR_FRAME_OP_WRITE_IMM,
	PVR_FRAME_OP_READ,
	PVR_FRAME_OP_CMP_SWAP,
	PVR_FRAME_OP_FETCH_ADD,
	PVR_FRAME_OP_ATOMIC_WRITE, /* stores @swap */
	/* @compare_add is the length; @swap is the placement, and the level in bits 8 to 15. */
	PVR_FRAME_OP_FLUSH,
	PVR_FRAME_OP_NUM,
};

#define PVR_REQUEST_F_SOLICITED 0x01 /* also of DATAGRAM */
#define PVR_REQUEST_F_LAST 0x02 /* the last fragment of the message */
#define PVR_REQUEST_F_UC 0x04 /* unreliable connection: has no response */
#define PVR_REQUEST_F_XRC 0x08 /* of an XRC initiator: srqn is valid */
#define PVR_REQUEST_F_UD 0x10 /* of FAULT only: of a datagram; rkey is the Q_Key */

/*
 * One fragment of a message of a connected queue pair. SEND and WRITE: @chunk bytes of
 * payload follow. READ: the response carries the payload. Atomics: @length is 8, @chunk
 * is 0. ATOMIC_WRITE, FLUSH: @length is 0.
 */
struct pvr_frame_request {
	struct pvr_frame frame;
	__u8 op; /* enum pvr_frame_op */
	__u8 gid_type; /* PVR_GID_TYPE_* of both GIDs */
	__le16 fault; /* FAULT: enum pvr_frame_fault; REQUEST: 0 */
	__le32 epoch; /* of the requester; responses repeat it */
	__le32 src_qpn, dst_qpn; /* 24 bits */
	__le32 psn, psns; /* first PSN of the message; number of PSNs */
	__u8 sgid[16], dgid[16];
	__u8 imm[4];
	__le32 rkey;
	__le64 addr; /* remote address */
	__le64 length; /* of the message */
	__le64 offset; /* of the fragment */
	__le32 chunk; /* bytes of the fragment */
	__le32 srqn; /* with PVR_REQUEST_F_XRC: the SRQ of the message; otherwise 0 */
	__le64 compare_add, swap;
};

/*
 * FAULT has the header of REQUEST, too. It stands for a message that the operator of the
 * requester's host makes fail at the responder: the responder behaves as if the message had this
 * error. It has no payload, and all fields that describe the message's bytes are 0.
 */
enum pvr_frame_fault {
	PVR_FRAME_FAULT_NONE,
	/* RC: the responder sends the NAK, and fails. */
	PVR_FRAME_FAULT_INVALID_REQUEST,
	PVR_FRAME_FAULT_ACCESS,
	PVR_FRAME_FAULT_OPERATION,
	/* The receive request completes with this error, and its queue pair fails. */
	PVR_FRAME_FAULT_RECV_LENGTH,
	PVR_FRAME_FAULT_RECV_QP_OPERATION,
	PVR_FRAME_FAULT_RECV_PROTECTION,
	PVR_FRAME_FAULT_RECV_ACCESS,
	PVR_FRAME_FAULT_RECV_GENERAL,
	PVR_FRAME_FAULT_RECV_FATAL,
	PVR_FRAME_FAULT_NUM,
};

struct pvr_frame_datagram {
	struct pvr_frame frame;
	__u8 imm[4];
	__u8 has_imm, gid_type, traffic_class, hop_limit;
	__le32 flow_label;
	__le32 src_qpn, dst_qpn, qkey; /* dst_qpn 0xffffff: multicast group @dgid */
	__u8 sgid[16], dgid[16];
};

/* The queue pair @src_qpn has been destroyed with its adapter. Its peer is @dst_qpn. */
struct pvr_frame_qp_gone {
	struct pvr_frame frame;
	__le32 src_qpn, dst_qpn; /* destroyed queue pair; its peer */
	__u8 sgid[16], dgid[16]; /* of these, in the same order */
	__u8 gid_type;
	__u8 reserved[7];
};

/* The sender has given the adapter with @gid to another host. */
struct pvr_frame_moved {
	struct pvr_frame frame;
	__u8 gid[16];
	__u8 gid_type;
	__u8 reserved[7];
};

enum pvr_frame_take_answer {
	PVR_FRAME_TAKE_NO, /* its VM runs here, or was given to another host */
	PVR_FRAME_TAKE_YES,
	PVR_FRAME_TAKE_STALE, /* there is no such state */
	PVR_FRAME_TAKE_DONE, /* to BOUND: the receiver alone has the GIDs */
	PVR_FRAME_TAKE_NUM,
};

/*
 * TAKE: the sender has loaded the state with this token, of the adapter with this MAC, and asks for
 * the adapter. TAKEN: the response repeats it. With PVR_HELLO_F_LOAD a TAKE with a token can be
 * followed by the number of the load, as a __le64.
 */
struct pvr_frame_take {
	struct pvr_frame frame;
	__u8 token[16];
	__u8 mac[6];
	__u8 answer; /* TAKEN: enum pvr_frame_take_answer; TAKE: 0 */
	__u8 bound; /* TAKE: 1 if the sender has bound the GIDs, after YES; TAKEN: 0 */
};

enum pvr_frame_syndrome {
	PVR_FRAME_SYN_ACK, /* executed up to psn and offset */
	PVR_FRAME_SYN_RNR, /* no receive request: resend after rnr_ns */
	PVR_FRAME_SYN_NAK, /* the request at psn has failed; nak has the reason */
	PVR_FRAME_SYN_PSN_SEQ_ERR, /* a fragment is missing: resend from psn and offset */
	PVR_FRAME_SYN_NO_QP, /* no queue pair responds */
	PVR_FRAME_SYN_NO_GID, /* no adapter on this host has the GID */
	PVR_FRAME_SYN_PAGE, /* PVR_HELLO_F_PAGE: a page is absent: resend after rnr_ns */
	PVR_FRAME_SYN_HELD, /* PVR_HELLO_F_MOVE: the adapter is stopped: resend after rnr_ns */
	PVR_FRAME_SYN_NUM,
};

enum pvr_frame_nak {
	PVR_FRAME_NAK_INVALID_REQUEST,
	PVR_FRAME_NAK_ACCESS,
	PVR_FRAME_NAK_OPERATION,
	PVR_FRAME_NAK_NUM,
};

/*
 * The expected PSN and offset of the responder: it has executed all messages before @psn,
 * and @offset bytes of the message at @psn. NO_QP, NO_GID: @psn is that of the request,
 * @offset is 0.
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
	__le64 value; /* original value */
};

/* Followed by payload: bytes @offset to @offset + @chunk of the READ at @psn. */
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
PVR_FRAME_SIZE(pvr_frame_referral, 160);
PVR_FRAME_SIZE(pvr_frame_address, 72);
PVR_FRAME_SIZE(pvr_frame_request, 120);
PVR_FRAME_SIZE(pvr_frame_datagram, 64);
PVR_FRAME_SIZE(pvr_frame_qp_gone, 56);
PVR_FRAME_SIZE(pvr_frame_moved, 32);
PVR_FRAME_SIZE(pvr_frame_take, 32);
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
	struct pvr_frame_referral referral;
	struct pvr_frame_address address;
	struct pvr_frame_request request;
	struct pvr_frame_datagram datagram;
	struct pvr_frame_qp_gone qp_gone;
	struct pvr_frame_moved moved;
	struct pvr_frame_take take;
	struct pvr_frame_ack ack;
	struct pvr_frame_atomic_ack atomic_ack;
	struct pvr_frame_read_data read_data;
};

/* The end of a connection that receives a frame. */
enum pvr_frame_role {
	PVR_FRAME_REQUESTER, /* this host dialed */
	PVR_FRAME_RESPONDER,
	PVR_FRAME_RESPONDER_PIGGYBACK, /* also accepts piggybacked ACKs */
};

/**
 * pvr_frame_header_size() - size of a frame's header
 * @frame: the first 8 bytes of the frame, not checked yet
 * @receiver: the end that has received the frame
 * @chunk: maximum payload that the receiver accepts, in bytes
 * @why: set to the reason if the return is 0
 *
 * Return: bytes before the payload; 0 if the receiver does not accept such a frame.
 */
size_t pvr_frame_header_size(const struct pvr_frame *frame, enum pvr_frame_role receiver,
			     uint32_t chunk, const char **why);

/**
 * pvr_frame_check() - check all fields of a header
 * @any: a private copy of the whole header
 * @size: the result of pvr_frame_header_size()
 * @payload: set to the bytes that follow the header. With PVR_FRAME_F_RNDV these are
 *   segments for pvr_frame_check_rndv()
 * @why: set to the reason if the return is false
 *
 * After success enumerations are in range, reserved fields are zero and strings are
 * terminated. offset + chunk <= length <= PVR_MAX_MSG_SIZE, and LAST is set exactly if
 * offset + chunk == length. QPNs and PSNs have 24 bits, and psns is 1 to 2^23. Checks
 * that need the queue pair are not done here.
 */
bool pvr_frame_check(const union pvr_any_frame *any, size_t size, size_t *payload,
		     const char **why);

/* Payload bytes of a REQUEST or READ_DATA, in the frame or exposed. */
uint32_t pvr_frame_chunk(const union pvr_any_frame *any);

/* Return: whether a REFERRAL or ADDRESS may have this address. @text: up to @size bytes. */
bool pvr_frame_is_address(const char *text, size_t size);
/*
 * Return: true if the lengths of @count segments add up to @chunk bytes, and no segment is
 * empty or wraps. If not, *why is the reason.
 */
bool pvr_frame_check_rndv(const struct pvr_frame_rndv_seg *rndv, size_t count, uint32_t chunk,
			  const char **why);

/*
 * Fills a whole CLOSE frame; the caller sends sizeof(struct pvr_frame_close) bytes of @any.
 * Characters of @text that cannot be printed become '?'.
 */
void pvr_frame_fill_close(union pvr_any_frame *any, enum pvr_close_reason reason, const char *text);
/* @reason: enum pvr_close_reason, or any other number */
const char *pvr_close_name(uint32_t reason);

#endif /* PVR_PIPE_FRAME_H */
