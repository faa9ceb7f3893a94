// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Payload in guest memory: the runs of memory that it has, and that of received packets. */
#include "path/wire/internal.h"

/* The memory of smaller packets is not worth a search. */
#define EXPECTED_MIN 1024u

/* ------------------------------------------------------------------------------- a span */

void pvr_eth_span_init(struct pvr_eth_span *span, const struct pvr_sg *sg, uint64_t offset)
{
	span->sg = sg;
	span->offset = offset;
	span->next = 0;
	span->count = 0;
	if (!sg || !sg->flat)
		return;
	span->runs[0] = (struct iovec){ sg->flat + offset, sg->total - offset };
	span->count = 1;
}

/*
 * Finds the next runs. What is behind the first @bytes may be absent. Return: false if guest memory
 * was unplugged.
 */
static bool find(struct pvr_eth_span *span, uint64_t bytes)
{
	uint64_t left = span->sg->total - span->offset;
	unsigned int i;
	int n;

	n = pvr_sg_iov(span->sg, span->offset,
		       left < PVR_ETH_SPAN_BYTES ? left : PVR_ETH_SPAN_BYTES, span->runs,
		       PVR_ETH_SPAN_RUNS);
	if (n <= 0)
		n = pvr_sg_iov(span->sg, span->offset, bytes, span->runs, PVR_ETH_SPAN_RUNS);
	if (n <= 0)
		return false;
	span->next = 0;
	span->count = (unsigned int)n;
	for (i = 0; i < span->count; i++)
		span->offset += span->runs[i].iov_len;
	return true;
}

uint8_t *pvr_eth_span_take(struct pvr_eth_span *span, uint64_t bytes, uint64_t *len,
			   const uint8_t **next)
{
	struct iovec *run;
	uint8_t *p;

	if (span->next == span->count && !find(span, bytes))
		return NULL;
	run = &span->runs[span->next];
	p = run->iov_base;
	*len = run->iov_len < bytes ? run->iov_len : bytes;
	run->iov_base = p + *len;
	run->iov_len -= *len;
	if (!run->iov_len && ++span->next < span->count)
		run++;
	*next = run->iov_len ? run->iov_base : NULL;
	return p;
}

/* ----------------------------------------------------------------------- stored payload */

/*
 * The memory of the next packets, of @step bytes each, is fetched while they are checked: most is in
 * no cache, and pages are scattered.
 */
static void expect(struct pvr_eth_adapter *wire, const struct pvr_sg *to, uint64_t offset,
		   uint32_t step)
{
	struct pvr_eth_span span PVR_UNINITIALIZED;
	uint64_t left = to->total - offset, len;
	const uint8_t *next;
	unsigned int i = 0;

	/* An old hint costs no more than none. */
	if (step < EXPECTED_MIN)
		return;
	pvr_eth_span_init(&span, to, offset);
	/* A packet in two runs takes two hints: those behind it come late by one packet. */
	for (; i < PVR_ETH_RUN && left; i++, left -= len) {
		len = left < step ? left : step;
		wire->expected[i] = pvr_eth_span_take(&span, len, &len, &next);
		if (!wire->expected[i])
			break;
	}
	for (; i < PVR_ETH_RUN; i++)
		wire->expected[i] = NULL;
}

static int store_one(const struct pvr_sg *to, uint64_t offset, const struct pvr_eth_packet *packet)
{
	uint32_t bytes = packet->frame->payload_bytes;
	struct pvr_sg own PVR_UNINITIALIZED;

	pvr_sg_build_flat(&own, to->adapter, packet->payload, bytes);
	return bytes ? pvr_sg_copy(to, offset, &own, 0, bytes) : 0;
}

/* Copies the payload of one packet. Return: 0 or -EFAULT. */
static int fill(struct pvr_eth_span *span, const uint8_t *from, uint64_t bytes)
{
	struct pvr_adapter *adapter = span->sg->adapter;
	const struct pvr_copy_impl *impl = pvr_copy_impl_for(&adapter->engine->copy, bytes);
	const uint8_t *next;
	uint8_t *to;
	uint64_t len;

	for (; bytes; bytes -= len, from += len) {
		to = pvr_eth_span_take(span, bytes, &len, &next);
		if (!to)
			return -EFAULT;
		pvr_copy_run(impl, to, from, len);
		pvr_dirty(adapter, to, len);
	}
	return 0;
}

/* The payload of a run is in each of its packets. */
static int store_run(const struct pvr_sg *to, uint64_t offset, const struct pvr_eth_packet *packet)
{
	struct pvr_eth_span span PVR_UNINITIALIZED;
	const uint8_t *from = packet->payload;
	unsigned int i;

	pvr_eth_span_init(&span, to, offset);
	for (i = 0; i < packet->count; i++, from += packet->stride)
		if (fill(&span, from, packet->frame->payload_bytes))
			return -EFAULT;
	return 0;
}

int pvr_eth_store(const struct pvr_sg *to, uint64_t offset, const struct pvr_eth_packet *packet)
{
	int err = packet->count > 1 ? store_run(to, offset, packet) : store_one(to, offset, packet);

	if (!err)
		expect(to->adapter->wire, to, offset + pvr_eth_payload(packet),
		       packet->frame->payload_bytes);
	return err;
}
