// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Types of frames, and the checks of their headers. */
#include "path/pipe/frame.h"

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <string.h>

#include "core/adapter.h"
#include "pipe.h"
#include "gid/fabric.h"

#define NUMBER_MAX 0xffffffu /* QPNs and PSNs */
#define FLOW_LABEL_MAX 0xfffffu
#define PSNS_MAX (1u << 23)

/* Ends that receive a frame. */
#define BY_REQUESTER (1u << PVR_FRAME_REQUESTER)
#define BY_PIGGYBACK (1u << PVR_FRAME_RESPONDER_PIGGYBACK)
#define BY_RESPONDER (1u << PVR_FRAME_RESPONDER | BY_PIGGYBACK)

/* Limit of a frame's payload. */
enum payload {
	PAYLOAD_NONE,
	PAYLOAD_LOAD, /* the number of a load */
	PAYLOAD_CHUNK, /* the limit that the receiver has declared */
	PAYLOAD_DATAGRAM,
};

struct frame_kind {
	size_t header;
	unsigned int receivers;
	enum payload payload;
	bool has_fabric;
	uint8_t flags; /* flags that are allowed */
	/* Return: NULL, or the reason. @payload: bytes behind the header. */
	const char *(*check)(const union pvr_any_frame *any, size_t payload);
};

/* ------------------------------------------------------------ values of fields */

/*
 * Return: true if the string is terminated, not empty, and has only characters that @ok
 * accepts.
 */
static bool is_text(const char *text, size_t size, int (*ok)(int))
{
	size_t len = strnlen(text, size), i;

	for (i = 0; i < len; i++)
		if (!ok((unsigned char)text[i]))
			return false;
	return len && len < size;
}

static int is_name_char(int c)
{
	return isalnum(c) || c == '.' || c == '_' || c == '-';
}

static bool is_zero(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;

	while (size && !byte[size - 1])
		size--;
	return !size;
}

/* All GIDs of a fabric have one RoCE version. */
static bool is_gid_type(uint8_t type)
{
	return type == PVR_GID_TYPE_ROCE_V1 || type == PVR_GID_TYPE_ROCE_V2;
}

static bool is_number(__le32 number)
{
	return le32toh(number) <= NUMBER_MAX;
}

/* ------------------------------------------------------------------ either direction */

static const char *check_hello(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_hello *hello = &any->hello;
	uint32_t chunk = le32toh(hello->chunk);

	(void)payload;
	if (le32toh(hello->magic) != PVR_FRAME_MAGIC)
		return "this is not a pvrdma daemon";
	if (le16toh(hello->version_min) > le16toh(hello->version_max))
		return "its lowest version is above its highest";
	if (chunk < PVR_FRAME_CHUNK_MIN || chunk > PVR_FRAME_CHUNK_MAX)
		return "chunk size out of range";
	if (!hello->count || hello->count > PVR_REQ_CONN_MAX || hello->index >= hello->count)
		return "connection index out of range";
	if (hello->dscp > PVR_DSCP_MAX || hello->reserved)
		return "DSCP out of range";
	if (!is_text(hello->name, sizeof(hello->name), is_name_char))
		return "a host's name must be letters, digits, '.', '_' or '-'";
	return NULL;
}

static const char *check_close(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_close *close = &any->close;

	(void)payload;
	if (le32toh(close->reason) >= PVR_CLOSE_NUM)
		return "unknown close reason";
	if (close->reserved)
		return "reserved fields are not zero";
	/* An empty text is allowed. The text goes to the log. */
	if (close->text[0] && !is_text(close->text, sizeof(close->text), isprint))
		return "text with characters that cannot be printed";
	return NULL;
}

static const char *check_ping(const union pvr_any_frame *any, size_t payload)
{
	(void)any;
	(void)payload;
	return NULL;
}

static const char *check_queue_pair(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_verbs_qp *qp = &any->verbs_qp;
	uint32_t buffers = le32toh(qp->buffers), size = le32toh(qp->buffer_size);

	(void)payload;
	if (!is_number(qp->qpn) || !is_number(qp->psn))
		return "QP number or PSN above 24 bits";
	if (!qp->mtu || qp->mtu > PVR_FRAME_MTU_MAX)
		return "MTU out of range";
	if (buffers < PVR_FRAME_BUFFERS_MIN || buffers > PVR_FRAME_BUFFERS_MAX)
		return "number of buffers out of range";
	if (size < PVR_FRAME_CHUNK_MIN || size > PVR_FRAME_CHUNK_MAX)
		return "buffer size out of range";
	if (qp->reserved2)
		return "reserved fields are not zero";
	return NULL;
}

static const char *check_rndv_done(const union pvr_any_frame *any, size_t payload)
{
	(void)payload;
	return any->rndv_done.reserved ? "reserved fields are not zero" : NULL;
}

/* ------------------------------------------------------------------------ rendezvous */

/* The frame carries the fragment's payload, or a list of segments of it. */
static const char *check_payload(const struct pvr_frame *frame, uint32_t chunk, size_t payload)
{
	if (!(frame->flags & PVR_FRAME_F_RNDV))
		return payload == chunk ? NULL : "frame length does not match its chunk";
	if (!payload || payload % sizeof(struct pvr_frame_rndv_seg) ||
	    payload / sizeof(struct pvr_frame_rndv_seg) > PVR_FRAME_RNDV_SEGS)
		return "number of rendezvous segments out of range";
	return NULL;
}

bool pvr_frame_check_rndv(const struct pvr_frame_rndv_seg *rndv, size_t count, uint32_t chunk,
			  const char **why)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t addr = le64toh(rndv[i].addr), len = le32toh(rndv[i].len);

		*why = "rendezvous segment is empty or wraps around";
		if (!len || addr + len < addr)
			return false;
		sum += len;
	}
	*why = sum == chunk ? NULL : "rendezvous length does not match its chunk";
	return !*why;
}

uint32_t pvr_frame_chunk(const union pvr_any_frame *any)
{
	return le32toh(any->frame.type == PVR_FRAME_REQUEST ? any->request.chunk
							    : any->read_data.chunk);
}

/* ---------------------------------------------------------- from requesters */

static const char *check_fabric(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_fabric *fabric = &any->fabric;

	(void)payload;
	if (!is_text(fabric->name, sizeof(fabric->name), is_name_char))
		return "a fabric's name must be letters, digits, '.', '_' or '-'";
	return NULL;
}

static const char *check_gid_query(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_gid_query *query = &any->gid_query;

	(void)payload;
	if (query->gid_type || !is_zero(query->reserved, sizeof(query->reserved)))
		return "reserved fields are not zero";
	return NULL;
}

struct op_kind {
	bool has_payload; /* false: only RC has the operation */
	bool is_atomic;
	bool is_empty; /* messages have no bytes */
};

static const struct op_kind ops[] = {
	[PVR_FRAME_OP_SEND] = { .has_payload = true },
	[PVR_FRAME_OP_SEND_IMM] = { .has_payload = true },
	[PVR_FRAME_OP_SEND_INV] = { .has_payload = true },
	[PVR_FRAME_OP_WRITE] = { .has_payload = true },
	[PVR_FRAME_OP_WRITE_IMM] = { .has_payload = true },
	[PVR_FRAME_OP_READ] = { 0 },
	[PVR_FRAME_OP_CMP_SWAP] = { .is_atomic = true },
	[PVR_FRAME_OP_FETCH_ADD] = { .is_atomic = true },
	[PVR_FRAME_OP_ATOMIC_WRITE] = { .is_empty = true },
	[PVR_FRAME_OP_FLUSH] = { .is_empty = true },
};

static_assert(sizeof(ops) / sizeof(ops[0]) == PVR_FRAME_OP_NUM, "an operation is missing");

/* Checks the range of the fragment that the frame carries or requests. */
static const char *check_fragment(const struct pvr_frame_request *request, bool last)
{
	uint64_t length = le64toh(request->length), offset = le64toh(request->offset);
	uint32_t chunk = le32toh(request->chunk);

	if (length > PVR_MAX_MSG_SIZE)
		return "message too long";
	if (offset > length || chunk > length - offset)
		return "fragment beyond the end of its message";
	if (!chunk && length)
		return "empty fragment";
	/* Limits the response of a READ, too. */
	if (chunk > PVR_FRAME_CHUNK_MAX)
		return "fragment too large";
	if (last != (offset + chunk == length))
		return "LAST flag does not match the end of the message";
	return NULL;
}

static const char *check_atomic(const struct pvr_frame_request *request, bool last)
{
	if (le64toh(request->length) != sizeof(uint64_t) || request->offset || request->chunk ||
	    !last)
		return "atomic operation is not one fragment of 8 bytes";
	return NULL;
}

static const char *check_request_numbers(const struct pvr_frame_request *request)
{
	uint32_t psns = le32toh(request->psns);

	if (!is_gid_type(request->gid_type))
		return "unknown GID type";
	if (request->srqn && !(request->frame.flags & PVR_REQUEST_F_XRC))
		return "SRQ number without the XRC flag";
	if (!is_number(request->src_qpn) || !is_number(request->dst_qpn) ||
	    !is_number(request->psn))
		return "QP number or PSN above 24 bits";
	if (!psns || psns > PSNS_MAX)
		return "number of PSNs out of range";
	return NULL;
}

static const char *check_request(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_request *request = &any->request;
	bool last = request->frame.flags & PVR_REQUEST_F_LAST;
	const struct op_kind *op;
	const char *why;

	if (request->op >= PVR_FRAME_OP_NUM)
		return "unknown operation";
	op = &ops[request->op];
	if ((!op->has_payload || request->frame.flags & PVR_REQUEST_F_UC) &&
	    request->frame.flags & PVR_FRAME_F_RNDV)
		return "RNDV flag on an operation without payload, or on UC";
	why = check_payload(&request->frame, op->has_payload ? le32toh(request->chunk) : 0,
			    payload);
	if (why)
		return why;
	if (request->frame.flags & PVR_REQUEST_F_UC && request->frame.flags & PVR_REQUEST_F_XRC)
		return "XRC flag on UC";
	if (!op->has_payload && (request->frame.flags & PVR_REQUEST_F_UC))
		return "operation with a response on UC";
	if (op->is_empty && request->length)
		return "ATOMIC_WRITE or FLUSH of a message with bytes";
	if (request->fault)
		return "reserved fields are not zero";
	why = check_request_numbers(request);
	if (why)
		return why;
	return op->is_atomic ? check_atomic(request, last) : check_fragment(request, last);
}

static bool consumes_receive(uint8_t op)
{
	return op <= PVR_FRAME_OP_SEND_INV || op == PVR_FRAME_OP_WRITE_IMM;
}

/* The message has no payload, memory or operands. */
static bool is_bare(const struct pvr_frame_request *request)
{
	return is_zero(request->imm, sizeof(request->imm)) && !request->addr && !request->length &&
	       !request->offset && !request->chunk && !request->compare_add && !request->swap &&
	       (!request->rkey || request->frame.flags & PVR_REQUEST_F_UD);
}

static const char *check_fault(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_request *request = &any->request;
	uint16_t fault = le16toh(request->fault);
	uint8_t flags = request->frame.flags;

	(void)payload;
	if (request->op >= PVR_FRAME_OP_NUM)
		return "unknown operation";
	if (!fault || fault >= PVR_FRAME_FAULT_NUM)
		return "unknown fault";
	if (flags & (flags - 1))
		return "two types of queue pairs";
	if (fault < PVR_FRAME_FAULT_RECV_LENGTH && flags & ~PVR_REQUEST_F_XRC)
		return "NAK without a reliable connection";
	if (fault >= PVR_FRAME_FAULT_RECV_LENGTH && !consumes_receive(request->op))
		return "fault of a receive request that the message does not have";
	if (!is_bare(request))
		return "reserved fields are not zero";
	return check_request_numbers(request);
}

static const char *check_datagram(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_datagram *dgram = &any->datagram;

	(void)payload;
	if (dgram->has_imm > 1)
		return "has_imm is neither 0 nor 1";
	if (!is_gid_type(dgram->gid_type))
		return "unknown GID type";
	if (le32toh(dgram->flow_label) > FLOW_LABEL_MAX)
		return "flow label above 20 bits";
	if (!is_number(dgram->src_qpn) || !is_number(dgram->dst_qpn))
		return "QP number or PSN above 24 bits";
	return NULL;
}

static const char *check_qp_gone(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_qp_gone *left = &any->qp_gone;

	(void)payload;
	if (!is_gid_type(left->gid_type))
		return "unknown GID type";
	if (!is_number(left->src_qpn) || !is_number(left->dst_qpn))
		return "QP number or PSN above 24 bits";
	if (!is_zero(left->reserved, sizeof(left->reserved)))
		return "reserved fields are not zero";
	return NULL;
}

static const char *check_moved(const union pvr_any_frame *any, size_t payload)
{
	(void)payload;
	if (!is_gid_type(any->moved.gid_type))
		return "unknown GID type";
	if (!is_zero(any->moved.reserved, sizeof(any->moved.reserved)))
		return "reserved fields are not zero";
	return NULL;
}

static const char *check_take(const union pvr_any_frame *any, size_t payload)
{
	if (payload && payload != sizeof(__le64))
		return "number of a load does not have 8 bytes";
	if (any->take.answer)
		return "reserved fields are not zero";
	return any->take.bound > 1 ? "bound is neither 0 nor 1" : NULL;
}

/* --------------------------------------------------------- from responders */

static const char *check_taken(const union pvr_any_frame *any, size_t payload)
{
	(void)payload;
	if (any->take.bound)
		return "reserved fields are not zero";
	return any->take.answer >= PVR_FRAME_TAKE_NUM ? "unknown answer" : NULL;
}

static const char *check_gid_reply(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_gid_query *reply = &any->gid_query;

	(void)payload;
	if (reply->gid_type && !is_gid_type(reply->gid_type))
		return "unknown GID type";
	if (!is_zero(reply->reserved, sizeof(reply->reserved)))
		return "reserved fields are not zero";
	return NULL;
}

static int is_address_char(int c)
{
	return isalnum(c) || c == '.' || c == ':' || c == '[' || c == ']';
}

bool pvr_frame_is_address(const char *text, size_t size)
{
	return is_text(text, size, is_address_char);
}

#define BAD_ADDRESS "an address must be digits, letters, '.', ':', '[' or ']'"

static const char *check_referral(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_referral *referral = &any->referral;

	(void)payload;
	if (referral->gid_type && !is_gid_type(referral->gid_type))
		return "unknown GID type";
	if (!is_zero(referral->reserved, sizeof(referral->reserved)))
		return "reserved fields are not zero";
	if (!is_text(referral->name, sizeof(referral->name), is_name_char))
		return "a host's name must be letters, digits, '.', '_' or '-'";
	if (referral->address[0] &&
	    !pvr_frame_is_address(referral->address, sizeof(referral->address)))
		return BAD_ADDRESS;
	return NULL;
}

static const char *check_address(const union pvr_any_frame *any, size_t payload)
{
	(void)payload;
	return pvr_frame_is_address(any->address.address, sizeof(any->address.address))
		       ? NULL
		       : BAD_ADDRESS;
}

static bool is_absence(uint8_t syndrome)
{
	return syndrome == PVR_FRAME_SYN_NO_QP || syndrome == PVR_FRAME_SYN_NO_GID;
}

static bool has_wait(uint8_t syndrome)
{
	return syndrome == PVR_FRAME_SYN_RNR || syndrome == PVR_FRAME_SYN_PAGE ||
	       syndrome == PVR_FRAME_SYN_HELD;
}

/* A field of one syndrome is zero with all other syndromes. */
static const char *check_syndrome(const struct pvr_frame_ack *ack)
{
	if (ack->syndrome >= PVR_FRAME_SYN_NUM)
		return "unknown syndrome";
	if (ack->nak >= PVR_FRAME_NAK_NUM || (ack->nak && ack->syndrome != PVR_FRAME_SYN_NAK))
		return "unknown NAK code";
	if (le64toh(ack->rnr_ns) > PVR_FRAME_RNR_MAX_NS ||
	    (ack->rnr_ns && !has_wait(ack->syndrome)))
		return "RNR wait time out of range";
	if (le64toh(ack->offset) > PVR_MAX_MSG_SIZE || (ack->offset && is_absence(ack->syndrome)))
		return "offset out of range";
	return NULL;
}

static const char *check_ack(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_ack *ack = &any->ack;

	(void)payload;
	if (ack->reserved)
		return "reserved fields are not zero";
	if (!is_number(ack->qpn) || !is_number(ack->psn))
		return "QP number or PSN above 24 bits";
	return check_syndrome(ack);
}

static const char *check_atomic_ack(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_atomic_ack *ack = &any->atomic_ack;

	(void)payload;
	if (ack->reserved)
		return "reserved fields are not zero";
	if (!is_number(ack->qpn) || !is_number(ack->psn))
		return "QP number or PSN above 24 bits";
	return NULL;
}

static const char *check_read_data(const union pvr_any_frame *any, size_t payload)
{
	const struct pvr_frame_read_data *data = &any->read_data;
	uint64_t offset = le64toh(data->offset);
	uint32_t chunk = le32toh(data->chunk);
	const char *why = check_payload(&data->frame, chunk, payload);

	if (why)
		return why;
	if (chunk > PVR_FRAME_CHUNK_MAX)
		return "fragment too large";
	if (offset > PVR_MAX_MSG_SIZE || chunk > PVR_MAX_MSG_SIZE - offset)
		return "fragment beyond the end of a message";
	if (!is_number(data->qpn) || !is_number(data->psn))
		return "QP number or PSN above 24 bits";
	return NULL;
}

/* --------------------------------------------------------------------- the table */

#define REQUEST_FLAGS                                                                          \
	(PVR_REQUEST_F_SOLICITED | PVR_REQUEST_F_LAST | PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC | \
	 PVR_FRAME_F_RNDV)

#define FAULT_FLAGS (PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC | PVR_REQUEST_F_UD)

static const struct frame_kind kinds[PVR_FRAME_NUM] = {
	[PVR_FRAME_HELLO] = { .header = sizeof(struct pvr_frame_hello),
			      .receivers = BY_REQUESTER | BY_RESPONDER,
			      .check = check_hello },
	[PVR_FRAME_CLOSE] = { .header = sizeof(struct pvr_frame_close),
			      .receivers = BY_REQUESTER | BY_RESPONDER,
			      .check = check_close },
	[PVR_FRAME_PING] = { .header = sizeof(struct pvr_frame_ping),
			     .receivers = BY_REQUESTER | BY_RESPONDER,
			     .check = check_ping },
	[PVR_FRAME_PONG] = { .header = sizeof(struct pvr_frame_ping),
			     .receivers = BY_REQUESTER | BY_RESPONDER,
			     .check = check_ping },
	[PVR_FRAME_VERBS_QP] = { .header = sizeof(struct pvr_frame_verbs_qp),
				 .receivers = BY_REQUESTER | BY_RESPONDER,
				 .check = check_queue_pair },
	[PVR_FRAME_RNDV_DONE] = { .header = sizeof(struct pvr_frame_rndv_done),
				  .receivers = BY_REQUESTER | BY_RESPONDER,
				  .check = check_rndv_done },
	[PVR_FRAME_FABRIC] = { .header = sizeof(struct pvr_frame_fabric),
			       .receivers = BY_RESPONDER,
			       .has_fabric = true,
			       .check = check_fabric },
	[PVR_FRAME_GID_QUERY] = { .header = sizeof(struct pvr_frame_gid_query),
				  .receivers = BY_RESPONDER,
				  .has_fabric = true,
				  .check = check_gid_query },
	[PVR_FRAME_REQUEST] = { .header = sizeof(struct pvr_frame_request),
				.receivers = BY_RESPONDER,
				.payload = PAYLOAD_CHUNK,
				.has_fabric = true,
				.flags = REQUEST_FLAGS,
				.check = check_request },
	[PVR_FRAME_DATAGRAM] = { .header = sizeof(struct pvr_frame_datagram),
				 .receivers = BY_RESPONDER,
				 .payload = PAYLOAD_DATAGRAM,
				 .has_fabric = true,
				 .flags = PVR_REQUEST_F_SOLICITED,
				 .check = check_datagram },
	[PVR_FRAME_QP_GONE] = { .header = sizeof(struct pvr_frame_qp_gone),
				.receivers = BY_RESPONDER,
				.has_fabric = true,
				.check = check_qp_gone },
	[PVR_FRAME_FAULT] = { .header = sizeof(struct pvr_frame_request),
			      .receivers = BY_RESPONDER,
			      .has_fabric = true,
			      .flags = FAULT_FLAGS,
			      .check = check_fault },
	[PVR_FRAME_MOVED] = { .header = sizeof(struct pvr_frame_moved),
			      .receivers = BY_RESPONDER,
			      .has_fabric = true,
			      .check = check_moved },
	[PVR_FRAME_TAKE] = { .header = sizeof(struct pvr_frame_take),
			     .receivers = BY_RESPONDER,
			     .payload = PAYLOAD_LOAD,
			     .has_fabric = true,
			     .check = check_take },
	[PVR_FRAME_TAKEN] = { .header = sizeof(struct pvr_frame_take),
			      .receivers = BY_REQUESTER,
			      .has_fabric = true,
			      .check = check_taken },
	[PVR_FRAME_GID_REPLY] = { .header = sizeof(struct pvr_frame_gid_query),
				  .receivers = BY_REQUESTER,
				  .has_fabric = true,
				  .check = check_gid_reply },
	[PVR_FRAME_REFERRAL] = { .header = sizeof(struct pvr_frame_referral),
				 .receivers = BY_REQUESTER,
				 .has_fabric = true,
				 .check = check_referral },
	[PVR_FRAME_ADDRESS] = { .header = sizeof(struct pvr_frame_address),
				.receivers = BY_RESPONDER,
				.has_fabric = true,
				.check = check_address },
	[PVR_FRAME_ACK] = { .header = sizeof(struct pvr_frame_ack),
			    .receivers = BY_REQUESTER | BY_PIGGYBACK,
			    .has_fabric = true,
			    .check = check_ack },
	[PVR_FRAME_ATOMIC_ACK] = { .header = sizeof(struct pvr_frame_atomic_ack),
				   .receivers = BY_REQUESTER,
				   .has_fabric = true,
				   .check = check_atomic_ack },
	[PVR_FRAME_READ_DATA] = { .header = sizeof(struct pvr_frame_read_data),
				  .receivers = BY_REQUESTER,
				  .payload = PAYLOAD_CHUNK,
				  .has_fabric = true,
				  .flags = PVR_FRAME_F_RNDV,
				  .check = check_read_data },
};

static size_t payload_max(const struct frame_kind *kind, uint32_t chunk)
{
	const size_t max[] = {
		[PAYLOAD_NONE] = 0,
		[PAYLOAD_LOAD] = sizeof(__le64),
		[PAYLOAD_CHUNK] = chunk,
		[PAYLOAD_DATAGRAM] = PVR_FRAME_DATAGRAM_MAX,
	};

	return max[kind->payload];
}

static const char *check_begin(const struct pvr_frame *frame, const struct frame_kind *kind)
{
	uint16_t fabric = le16toh(frame->fabric);

	if (frame->flags & ~kind->flags)
		return "unknown flag";
	if (fabric > PVR_FRAME_FABRICS || kind->has_fabric != (fabric != 0))
		return "fabric number out of range";
	return NULL;
}

size_t pvr_frame_header_size(const struct pvr_frame *frame, enum pvr_frame_role receiver,
			     uint32_t chunk, const char **why)
{
	const struct frame_kind *kind;
	uint32_t size = le32toh(frame->size);

	*why = "unknown frame type";
	if (frame->type >= PVR_FRAME_NUM || !kinds[frame->type].check)
		return 0;
	kind = &kinds[frame->type];
	*why = "frame type of the other direction";
	if (!(kind->receivers & 1u << receiver))
		return 0;
	*why = "frame too short";
	if (size < kind->header)
		return 0;
	*why = "frame too long";
	if (size - kind->header > payload_max(kind, chunk))
		return 0;
	*why = check_begin(frame, kind);
	return *why ? 0 : kind->header;
}

bool pvr_frame_check(const union pvr_any_frame *any, size_t size, size_t *payload, const char **why)
{
	*payload = le32toh(any->frame.size) - size;
	*why = kinds[any->frame.type].check(any, *payload);
	return !*why;
}

/* ------------------------------------------------------------------------- CLOSE */

static const char *const close_names[] = {
	[PVR_CLOSE_DONE] = "not needed any more",
	[PVR_CLOSE_VERSION] = "no common version",
	[PVR_CLOSE_IDENTITY] = "wrong identity",
	[PVR_CLOSE_PROTOCOL] = "protocol error",
	[PVR_CLOSE_REPLACED] = "replaced by a newer connection",
	[PVR_CLOSE_LIMIT] = "limit reached",
	[PVR_CLOSE_DEVICE] = "no RDMA",
};

static_assert(sizeof(close_names) / sizeof(close_names[0]) == PVR_CLOSE_NUM, "a name is missing");

/* Replaces characters that are not printable: the peer would refuse the CLOSE. */
static void fill_text(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
}

const char *pvr_close_name(uint32_t reason)
{
	return reason < PVR_CLOSE_NUM ? close_names[reason] : "unknown reason";
}

void pvr_frame_fill_close(union pvr_any_frame *any, enum pvr_close_reason reason, const char *text)
{
	memset(&any->close, 0, sizeof(any->close));
	any->frame.size = htole32(sizeof(any->close));
	any->frame.type = PVR_FRAME_CLOSE;
	any->close.reason = htole32(reason);
	fill_text(any->close.text, sizeof(any->close.text), text);
}
