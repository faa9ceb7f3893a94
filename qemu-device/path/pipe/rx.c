// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The receive buffer of a connection. */
#include "path/pipe/rx.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#define STAGING (64u << 10)
/* Payloads up to this size are handled when all of their bytes are staged. */
#define SMALL PVR_FRAME_DATAGRAM_MAX
/*
 * After a larger payload read ahead little: the next payload is probably large, and
 * read-ahead bytes are copied.
 */
#define LARGE (16u << 10)
#define READ_AHEAD_SHORT 256u
#define RUNS 64
/* Limits of one call: frames, bytes, and reads. */
#define FRAMES_PER_RUN 64
#define BYTES_PER_RUN (512u << 10)
#define READS_PER_RUN 64

int pvr_pipe_rx_open(struct pvr_pipe_rx *box, const struct pvr_stream_ops *ops, void *opaque,
		     enum pvr_frame_role role, uint32_t chunk, struct pvr_link_count *count)
{
	uint8_t *data = malloc(STAGING);

	if (!data)
		return -ENOMEM;
	*box = (struct pvr_pipe_rx){
		.ops = ops,
		.opaque = opaque,
		.role = role,
		.chunk = chunk,
		.count = count,
		.data = data,
	};
	pvr_rdma_read_open(&box->rdma_read, ops, opaque,
			   role == PVR_FRAME_REQUESTER ? PVR_EXT_DMA_REQ_DST
						       : PVR_EXT_DMA_RESP_DST);
	return 0;
}

void pvr_pipe_rx_close(struct pvr_pipe_rx *box)
{
	pvr_rdma_read_stop(&box->rdma_read);
	free(box->data);
	*box = (struct pvr_pipe_rx){ 0 };
}

static size_t have(const struct pvr_pipe_rx *box)
{
	return box->tail - box->head;
}

/* ---------------------------------------------------------------- from the stream */

/* Return: bytes read; 0: none now. An error of the stream is permanent. */
static size_t take(struct pvr_pipe_rx *box, struct iovec *iov, int count, size_t size)
{
	ssize_t n = box->error ? box->error : box->ops->recv(box->opaque, iov, count);

	box->fault = n == -EFAULT;
	if (n < 0 && !box->fault)
		box->error = (int)n;
	if (n < 0)
		n = 0;
	box->dry = !n;
	box->short_read = (size_t)n < size;
	pvr_stat_add(&box->count->rx_bytes, (uint64_t)n);
	return (size_t)n;
}

/* Reads ahead. Return: false if no bytes arrived. */
static bool read_ahead(struct pvr_pipe_rx *box)
{
	struct iovec iov;
	size_t n;

	if (box->head) {
		memmove(box->data, box->data + box->head, have(box));
		box->tail -= box->head;
		box->head = 0;
	}
	iov.iov_base = box->data + box->tail;
	iov.iov_len = STAGING - box->tail;
	if (box->was_large && !box->header && iov.iov_len > READ_AHEAD_SHORT)
		iov.iov_len = READ_AHEAD_SHORT;
	n = take(box, &iov, 1, iov.iov_len);
	box->tail += n;
	return n;
}

/* ---------------------------------------------------------------------- payload */

static size_t missing(const struct pvr_pipe_rx *box)
{
	return box->payload - box->taken;
}

/* The read of the exposed payload has ended. */
static void end_rndv(struct pvr_pipe_rx *box)
{
	box->exposed = false;
	box->payload = box->taken = 0;
	box->handler->rndv_over(box->owner);
}

static int recv_staged(struct pvr_pipe_rx *box, const struct pvr_sg *to, uint64_t offset)
{
	size_t n = have(box) < missing(box) ? have(box) : missing(box);
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!n)
		return 0;
	pvr_sg_build_flat(&sg, to->adapter, box->data + box->head, (uint32_t)n);
	if (pvr_sg_copy(to, offset + box->taken, &sg, 0, n))
		return -EFAULT;
	box->head += n;
	box->taken += n;
	return 0;
}

/*
 * Reads the rest of the payload directly, and some bytes behind it. The staging area is
 * empty.
 */
static int recv_straight(struct pvr_pipe_rx *box, const struct pvr_sg *to, uint64_t offset)
{
	struct iovec iov[RUNS + 1];
	size_t n, size = 0;
	int count, i;

	count = pvr_sg_iov(to, offset + box->taken, missing(box), iov, RUNS);
	if (count < 0)
		return count;
	for (i = 0; i < count; i++)
		size += iov[i].iov_len;
	box->head = box->tail = 0;
	if (size == missing(box)) {
		iov[count++] = (struct iovec){ box->data, READ_AHEAD_SHORT };
		size += READ_AHEAD_SHORT;
	}
	n = take(box, iov, count, size);
	/* An error, too, may leave bytes anywhere in them. */
	if (pvr_dirty_is_on(to->adapter))
		pvr_sg_mark(to, offset + box->taken, missing(box));
	box->tail = n > missing(box) ? n - missing(box) : 0;
	box->taken += n - box->tail;
	/*
	 * If guest memory was removed, a system call cannot write it: use the staging
	 * area.
	 */
	return box->fault && read_ahead(box) ? recv_staged(box, to, offset) : 0;
}

/* @n: bytes that the NIC has read, or -errno. Return: whether to continue. */
static bool took_rndv(struct pvr_pipe_rx *box, int n)
{
	box->dry = n <= 0;
	if (n < 0)
		box->error = n;
	if (n <= 0)
		return false;
	box->taken += (size_t)n;
	pvr_stat_add(&box->count->rx_bytes, (uint64_t)n);
	pvr_stat_add(&box->count->zerocopy_rx_bytes, (uint64_t)n);
	return true;
}

static int recv_rndv(struct pvr_pipe_rx *box, const struct pvr_qp *qp, const struct pvr_sg *to,
		     uint64_t offset, uint32_t skip)
{
	int n;

	/* A read in progress has begun before it. */
	if (box->taken < skip && !box->rdma_read.busy)
		box->taken = skip;
	do {
		n = pvr_rdma_read_recv_payload(&box->rdma_read, qp, to, offset + box->taken,
					       (uint32_t)box->taken, (uint32_t)missing(box));
		if (n == -EFAULT)
			return n;
	} while (took_rndv(box, n) && missing(box));
	if (missing(box))
		return 0;
	end_rndv(box);
	return 1;
}

/* Discards payload up to byte @skip. Return: false if there is more to come. */
static bool skip_bytes(struct pvr_pipe_rx *box, uint32_t skip, unsigned int *reads)
{
	size_t n;

	for (;;) {
		n = skip - box->taken;
		n = have(box) < n ? have(box) : n;
		box->head += n;
		box->taken += n;
		if (box->taken == skip)
			return true;
		if (!*reads || !read_ahead(box))
			return false;
		--*reads;
	}
}

int pvr_pipe_rx_recv_payload(struct pvr_pipe_rx *box, const struct pvr_qp *qp,
			     const struct pvr_sg *to, uint64_t offset, uint32_t len, uint32_t skip)
{
	unsigned int reads = READS_PER_RUN;
	int err;

	if (len != box->payload)
		return -EFAULT;
	if (box->exposed)
		return recv_rndv(box, qp, to, offset, skip);
	if (box->taken < skip && !skip_bytes(box, skip, &reads))
		return 0;
	err = recv_staged(box, to, offset);
	box->dry = false;
	while (!err && missing(box) && !box->dry && reads--)
		err = recv_straight(box, to, offset);
	return err ? err : !missing(box);
}

/* Return: false if there is more to come. */
static bool discard_bytes(struct pvr_pipe_rx *box)
{
	size_t n = have(box) < missing(box) ? have(box) : missing(box);

	box->head += n;
	box->taken += n;
	return !missing(box);
}

/* Return: false if the NIC still reads. */
static bool drop_rndv(struct pvr_pipe_rx *box)
{
	int ret = pvr_rdma_read_drop(&box->rdma_read);

	box->dry = ret <= 0;
	if (ret < 0)
		box->error = ret;
	if (ret <= 0)
		return false;
	end_rndv(box);
	return true;
}

/* Return: false if there is more to come. */
static bool discard(struct pvr_pipe_rx *box)
{
	if (box->exposed)
		return drop_rndv(box);
	return discard_bytes(box);
}

/* ----------------------------------------------------------------------- frames */

enum progress {
	CONTINUE,
	NEED_MORE, /* bytes */
	BAD_FRAME,
};

/*
 * The list behind the header, which is not payload any more. Return: false if it has not come
 * yet, or *why.
 */
static bool read_rndv(struct pvr_pipe_rx *box, size_t header, const char **why)
{
	uint32_t chunk = pvr_frame_chunk(&box->frame);
	struct pvr_frame_rndv_seg rndv[PVR_FRAME_RNDV_SEGS];
	size_t parts = box->payload / sizeof(rndv[0]);

	*why = box->ops->read ? NULL : "RNDV flag set, but rendezvous was not negotiated";
	if (!*why && chunk > box->chunk)
		*why = "rendezvous above the negotiated size";
	if (*why || have(box) < header + box->payload)
		return false;
	memcpy(rndv, box->data + box->head + header, box->payload);
	if (!pvr_frame_check_rndv(rndv, parts, chunk, why))
		return false;
	pvr_rdma_read_begin(&box->rdma_read, rndv, (unsigned int)parts);
	box->head += box->payload;
	box->payload = chunk;
	box->exposed = true;
	return true;
}

static enum progress read_header(struct pvr_pipe_rx *box, const char **why)
{
	struct pvr_frame frame;
	size_t header;

	if (have(box) < sizeof(frame))
		return NEED_MORE;
	memcpy(&frame, box->data + box->head, sizeof(frame));
	header = pvr_frame_header_size(&frame, box->role, box->chunk, why);
	if (!header)
		return BAD_FRAME;
	if (have(box) < header)
		return NEED_MORE;
	memcpy(&box->frame, box->data + box->head, header);
	if (!pvr_frame_check(&box->frame, header, &box->payload, why))
		return BAD_FRAME;
	if (box->frame.frame.flags & PVR_FRAME_F_RNDV && !read_rndv(box, header, why))
		return *why ? BAD_FRAME : NEED_MORE;
	box->head += header;
	box->header = header;
	box->taken = 0;
	box->drop = false;
	pvr_stat_add(&box->count->rx_frames, 1);
	return CONTINUE;
}

static void next_frame(struct pvr_pipe_rx *box)
{
	box->was_large = box->payload >= LARGE;
	box->header = 0;
	box->payload = box->taken = 0;
}

/* RNDV_DONE is handled here, other frames by the connection. */
static enum progress handle(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops, void *owner,
			    enum pvr_handled *handled, const char **why)
{
	bool whole = !box->exposed && have(box) >= missing(box) && !box->taken;

	if (!box->drop && !box->exposed && box->payload <= SMALL && !whole)
		return NEED_MORE;
	if (!box->drop) {
		if (box->frame.frame.type == PVR_FRAME_RNDV_DONE)
			*why = ops->rndv_done(owner, &box->frame.rndv_done);
		else
			*handled = ops->frame(owner, &box->frame,
					      whole ? box->data + box->head : NULL, why);
		if (*why)
			return BAD_FRAME;
		if (*handled != PVR_HANDLED)
			return box->dry && missing(box) ? NEED_MORE : CONTINUE;
		box->drop = true;
	}
	if (!discard(box))
		return NEED_MORE;
	next_frame(box);
	return CONTINUE;
}

static enum pvr_input broken(const struct pvr_pipe_rx *box, const char *why,
			     struct pvr_input_error *err)
{
	err->reason = why && !box->close_text[0] ? PVR_CLOSE_PROTOCOL : -1;
	if (box->close_text[0])
		why = box->close_text;
	snprintf(err->why, sizeof(err->why), "%s", why ? why : strerror(-box->error));
	return PVR_INPUT_BROKEN;
}

/* Return: whether to continue with the run. */
static bool more(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops, void *owner)
{
	/* Send responses first: an empty read takes a while. */
	if (box->short_read && ops->rest)
		ops->rest(owner);
	/* The frame's handler reads a large payload, and the NIC an exposed payload. */
	if (box->header && (box->exposed || (!box->drop && box->payload > SMALL)))
		return !box->dry;
	return read_ahead(box);
}

static enum pvr_input run_frames(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops,
				 void *owner, struct pvr_input_error *err)
{
	uint64_t bytes = box->count->rx_bytes, frames = box->count->rx_frames;
	unsigned int steps = 4 * FRAMES_PER_RUN;
	enum progress progress;

	box->handler = ops;
	box->owner = owner;
	box->dry = false;
	while (steps-- && box->count->rx_bytes - bytes < BYTES_PER_RUN &&
	       box->count->rx_frames - frames < FRAMES_PER_RUN) {
		enum pvr_handled handled = PVR_HANDLED;
		const char *why = NULL;

		if (box->header && ops->ready && !ops->ready(owner))
			return PVR_INPUT_OUTPUT;
		progress = box->header ? handle(box, ops, owner, &handled, &why)
				       : read_header(box, &why);
		switch (progress) {
		case BAD_FRAME:
			return broken(box, why, err);
		case NEED_MORE:
			if (more(box, ops, owner))
				break;
			return box->error ? broken(box, NULL, err) : PVR_INPUT_IDLE;
		case CONTINUE:
			if (handled == PVR_HANDLED_STALLED)
				return PVR_INPUT_STALLED;
			break;
		}
	}
	return PVR_INPUT_MORE;
}

enum pvr_input pvr_pipe_rx_run(struct pvr_pipe_rx *box, const struct pvr_pipe_rx_ops *ops,
			       void *owner, struct pvr_input_error *err)
{
	enum pvr_input result;

	if (!box->ops) {
		err->reason = -1;
		snprintf(err->why, sizeof(err->why), "out of memory");
		return PVR_INPUT_BROKEN;
	}
	result = run_frames(box, ops, owner, err);
	if (ops->rest)
		ops->rest(owner);
	return result;
}

static const char *closed(struct pvr_pipe_rx *box, const struct pvr_frame_close *close)
{
	snprintf(box->close_text, sizeof(box->close_text), "closed by the peer: %s%s%s",
		 pvr_close_name(le32toh(close->reason)), close->text[0] ? ": " : "", close->text);
	return box->close_text;
}

const char *pvr_pipe_rx_end(struct pvr_pipe_rx *box, const union pvr_any_frame *any)
{
	switch (any->frame.type) {
	case PVR_FRAME_HELLO:
		return "second HELLO";
	case PVR_FRAME_VERBS_QP:
		return "VERBS_QP, but none was requested";
	case PVR_FRAME_CLOSE:
		return closed(box, &any->close);
	}
	return NULL;
}
