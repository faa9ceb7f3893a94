// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The transmit buffer of a connection. */
#include "path/pipe/tx.h"

#include <endian.h>
#include <stdlib.h>

/* Maximum runs of guest memory in one call: 256 KiB of single pages. */
#define RUNS 64

int pvr_pipe_tx_open(struct pvr_pipe_tx *box, const struct pvr_stream_ops *ops, void *opaque,
		     uint32_t chunk, struct pvr_link_count *count)
{
	size_t size =
		PVR_PIPE_TX_GATHER + sizeof(union pvr_any_frame) + chunk + PVR_PIPE_TX_RESERVE;
	struct pvr_rndv_tx *rndvs = ops->expose ? pvr_rndv_tx_create(ops, opaque) : NULL;
	uint8_t *data = malloc(size);

	if (!data || (ops->expose && !rndvs)) {
		free(rndvs);
		free(data);
		return -ENOMEM;
	}
	*box = (struct pvr_pipe_tx){
		.ops = ops,
		.opaque = opaque,
		.count = count,
		.data = data,
		.size = size,
		.rndvs = rndvs,
	};
	return 0;
}

void pvr_pipe_tx_close(struct pvr_pipe_tx *box)
{
	pvr_rndv_tx_destroy(box->rndvs);
	free(box->data);
	*box = (struct pvr_pipe_tx){ 0 };
}

static size_t backlog(const struct pvr_pipe_tx *box)
{
	return box->tail - box->head;
}

/* The stream is full: the embedder calls when it accepts bytes again. */
static void block(struct pvr_pipe_tx *box)
{
	box->blocked = true;
	box->ops->want_output(box->opaque);
}

/* The embedder detects the error at its next call for output. */
static void fail(struct pvr_pipe_tx *box)
{
	box->broken = true;
	block(box);
}

/* Return: bytes that the stream has accepted; 0: none now, or the stream is broken. */
static size_t give(struct pvr_pipe_tx *box, const struct iovec *iov, int count)
{
	ssize_t n = box->ops->send(box->opaque, iov, count);

	if (n > 0) {
		pvr_stat_add(&box->count->tx_bytes, (uint64_t)n);
		return (size_t)n;
	}
	/* Guest memory was removed: its bytes are sent as zeroes, by a copy. */
	if (n < 0 && n != -EFAULT)
		fail(box);
	return 0;
}

void pvr_pipe_tx_flush(struct pvr_pipe_tx *box)
{
	struct iovec iov;
	size_t n;

	while (backlog(box) && !box->broken) {
		iov = (struct iovec){ box->data + box->head, backlog(box) };
		n = give(box, &iov, 1);
		box->head += n;
		if (!n)
			break;
	}
	if (box->broken)
		return;
	if (backlog(box)) {
		block(box);
		return;
	}
	box->blocked = false;
	box->head = box->tail = 0;
}

/* Return: where @size bytes may be appended, or NULL. */
static uint8_t *make_room(struct pvr_pipe_tx *box, size_t size)
{
	if (box->size - backlog(box) < size)
		return NULL;
	if (box->size - box->tail < size) {
		memmove(box->data, box->data + box->head, backlog(box));
		box->tail -= box->head;
		box->head = 0;
	}
	return box->data + box->tail;
}

/* Appends header and payload from byte @done on. Return: false if there is no space. */
static bool append(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out, size_t done)
{
	size_t header = done < out->header_size ? out->header_size - done : 0;
	size_t skipped = done - (out->header_size - header);
	uint32_t len = out->len - (uint32_t)skipped;
	uint8_t *to = make_room(box, header + len);
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!to)
		return false;
	memcpy(to, (const uint8_t *)out->header + (out->header_size - header), header);
	if (len) {
		pvr_sg_build_flat(&sg, out->payload->adapter, to + header, len);
		if (pvr_sg_copy(&sg, 0, out->payload, out->offset + skipped, len))
			return false;
	}
	box->tail += header + len;
	return true;
}

static void begin(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	out->header->frame.size = htole32((uint32_t)(out->header_size + out->len));
	pvr_stat_add(&box->count->tx_frames, 1);
}

bool pvr_pipe_tx_put(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	if (!box->ops || box->broken)
		return false;
	begin(box, out);
	return append(box, out, 0);
}

/*
 * Collects gathered bytes, then the frame from byte @done on. Return: number of entries,
 * or -EFAULT.
 */
static int gather(const struct pvr_pipe_tx *box, const struct pvr_tx_frame *out, size_t done,
		  struct iovec iov[RUNS + 2])
{
	size_t skipped = 0;
	int n = 0, runs;

	if (backlog(box))
		iov[n++] = (struct iovec){ box->data + box->head, backlog(box) };
	if (done < out->header_size)
		iov[n++] = (struct iovec){ (uint8_t *)out->header + done, out->header_size - done };
	else
		skipped = done - out->header_size;
	runs = pvr_sg_iov(out->payload, out->offset + skipped, out->len - skipped, iov + n, RUNS);
	return runs < 0 ? runs : n + runs;
}

/* Removes @n sent bytes. Return: bytes of these that belong to the new frame. */
static size_t consume(struct pvr_pipe_tx *box, size_t n)
{
	size_t waited = n < backlog(box) ? n : backlog(box);

	box->head += waited;
	if (!backlog(box))
		box->head = box->tail = 0;
	return n - waited;
}

static bool send_large(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	size_t total = out->header_size + out->len, done = 0, n;
	struct iovec iov[RUNS + 2];
	int count;

	begin(box, out);
	while (done < total) {
		count = gather(box, out, done, iov);
		n = count < 0 ? 0 : give(box, iov, count);
		if (!n)
			break;
		done += consume(box, n);
	}
	if (box->broken)
		return false;
	if (done == total)
		return true;
	/* A frame that is cut off breaks the connection. */
	if (append(box, out, done))
		block(box);
	else
		fail(box);
	return !box->broken;
}

/* Gathers a small frame. Return: false if the box is blocked or broken. */
static bool send_small(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	if (backlog(box) + out->header_size + out->len > PVR_PIPE_TX_GATHER)
		pvr_pipe_tx_flush(box);
	if (box->broken || box->blocked)
		return false;
	begin(box, out);
	return append(box, out, 0);
}

/* Return: whether the payload was exposed. The frame then has a list of segments. */
static bool send_rndv(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	struct pvr_frame_rndv_seg wire[PVR_FRAME_RNDV_SEGS];
	struct pvr_tx_frame list = *out;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!box->rndvs || !out->expose_qp || out->len < PVR_PIPE_TX_RNDV_MIN)
		return false;
	list.len = pvr_rndv_tx_expose(box->rndvs, out->expose_qp, out->header, out->payload,
				      out->offset, out->len, wire) *
		   (uint32_t)sizeof(wire[0]);
	if (!list.len)
		return false;
	pvr_sg_build_flat(&sg, out->payload->adapter, (uint8_t *)wire, list.len);
	list.payload = &sg;
	list.offset = 0;
	out->header->frame.flags |= PVR_FRAME_F_RNDV;
	/* If the frame is not sent, the exposure ends with the connection. */
	if (!send_small(box, &list) && !pvr_pipe_tx_put(box, &list))
		fail(box);
	pvr_stat_add(&box->count->tx_bytes, out->len);
	pvr_stat_add(&box->count->zerocopy_tx_bytes, out->len);
	return true;
}

bool pvr_pipe_tx_send(struct pvr_pipe_tx *box, const struct pvr_tx_frame *out)
{
	if (!box->ops || box->broken || box->blocked)
		return false;
	if (out->len <= PVR_PIPE_TX_SMALL)
		return send_small(box, out);
	return send_rndv(box, out) || send_large(box, out);
}
