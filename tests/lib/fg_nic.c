// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The RDMA NICs at both ends of a connection in memory. */
#include "fg_nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fg_lock.h"
#include "fg_ram.h"

/* A rendezvous address differs from the address in this process. */
#define ADDR_BASE 0x5100000000000000ull

struct fg_rndv {
	struct fg_rndv *next;
	int count;
	struct iovec iov[PVR_FRAME_RNDV_SEGS];
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
};

static void add(uint64_t *stat, uint64_t n)
{
	__atomic_fetch_add(stat, n, __ATOMIC_RELAXED);
}

static uint32_t new_rkey(void)
{
	static uint32_t last = 0x10000;

	return __atomic_add_fetch(&last, 0x101, __ATOMIC_RELAXED);
}

void fg_nic_pair_init(struct fg_nic_pair *pair, const struct fg_nic_rules *rules,
		      struct fg_stream *one, struct fg_stream *other, struct fg_nic_stats *stats[2])
{
	pthread_mutex_init(&pair->lock, NULL);
	for (int i = 0; i < 2; i++) {
		pair->nic[i] = (struct fg_nic){
			.peer = &pair->nic[!i],
			.tx = i ? other : one,
			.rx = i ? one : other,
			.rules = rules,
			.stats = stats[i],
			.lock = &pair->lock,
			.rdma_read.own = malloc(PVR_READ_BUFFER),
		};
		if (!pair->nic[i].rdma_read.own)
			fg_die("no memory for a NIC's buffer");
	}
}

void fg_nic_pair_exit(struct fg_nic_pair *pair)
{
	for (int i = 0; i < 2; i++) {
		fg_nic_expect_idle(&pair->nic[i]);
		free(pair->nic[i].rdma_read.own);
	}
	pthread_mutex_destroy(&pair->lock);
}

/* The lock is held. */
static void break_both(struct fg_nic *nic)
{
	nic->broken = nic->peer->broken = true;
	fg_stream_break(nic->tx);
	fg_stream_break(nic->rx);
}

void fg_nic_pair_break(struct fg_nic_pair *pair)
{
	FG_GUARD(&pair->lock);

	break_both(&pair->nic[0]);
}

void fg_nic_expect_idle(struct fg_nic *nic)
{
	FG_GUARD(nic->lock);

	if (nic->rndvs)
		fg_die("memory that was exposed has never been taken back");
	if (nic->rdma_read.on && nic->rdma_read.count)
		fg_die("memory that is read into is forgotten");
	nic->rdma_read.on = false;
}

static size_t iov_size(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (int i = 0; i < count; i++) {
		if (!iov[i].iov_len || !iov[i].iov_base)
			fg_die("a run of memory that is none");
		size += iov[i].iov_len;
	}
	return size;
}

/* --------------------------------------------------------------------- exposed memory */

static struct fg_rndv *rndv_new(const struct iovec *iov, int count, struct pvr_rndv_seg *part)
{
	struct fg_rndv *rndv = calloc(1, sizeof(*rndv));

	if (!rndv)
		fg_die("no memory for a rendezvous");
	rndv->count = count;
	for (int i = 0; i < count; i++) {
		rndv->iov[i] = iov[i];
		rndv->part[i] = (struct pvr_rndv_seg){
			.addr = ADDR_BASE + (uintptr_t)iov[i].iov_base,
			.rkey = new_rkey(),
			.len = (uint32_t)iov[i].iov_len,
		};
		part[i] = rndv->part[i];
	}
	return rndv;
}

void *fg_nic_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part)
{
	struct fg_nic *nic = opaque;
	FG_GUARD(nic->lock);
	struct fg_rndv *rndv;
	size_t size = iov_size(iov, count);

	if (count < 1 || count > (int)PVR_FRAME_RNDV_SEGS)
		fg_die("a rendezvous of %d parts", count);
	if (nic->rules->no_expose || nic->broken)
		return NULL;
	rndv = rndv_new(iov, count, part);
	rndv->next = nic->rndvs;
	nic->rndvs = rndv;
	add(&nic->stats->exposed, 1);
	add(&nic->stats->parts, (uint64_t)count);
	add(&nic->stats->zerocopy_tx_bytes, size);
	return rndv;
}

/* The lock is held. */
static void rndv_end(struct fg_nic *nic, struct fg_rndv **at)
{
	struct fg_rndv *rndv = *at;

	*at = rndv->next;
	free(rndv);
	add(&nic->stats->revoked, 1);
}

void fg_nic_revoke(void *opaque, void *rndv)
{
	struct fg_nic *nic = opaque;
	FG_GUARD(nic->lock);
	struct fg_rndv **at;

	for (at = &nic->rndvs; *at && *at != rndv; at = &(*at)->next)
		;
	if (!*at)
		fg_die("a rendezvous that is taken back and was not given, or is not any more");
	rndv_end(nic, at);
}

void fg_nic_forget_rndvs(struct fg_nic *nic)
{
	FG_GUARD(nic->lock);

	while (nic->rndvs)
		rndv_end(nic, &nic->rndvs);
}

/* Return: the exposed memory of @len bytes at @addr under this key, or NULL. */
static const uint8_t *find_exposed(const struct fg_nic *nic, uint64_t addr, uint32_t rkey,
				   size_t len)
{
	for (const struct fg_rndv *rndv = nic->rndvs; rndv; rndv = rndv->next) {
		for (int i = 0; i < rndv->count; i++) {
			const struct pvr_rndv_seg *part = &rndv->part[i];

			if (part->rkey == rkey && addr >= part->addr &&
			    addr - part->addr <= part->len &&
			    len <= part->len - (addr - part->addr))
				return (const uint8_t *)rndv->iov[i].iov_base + (addr - part->addr);
		}
	}
	return NULL;
}

/* --------------------------------------------------------------------------- reading */

static size_t parts_size(const struct pvr_rndv_seg *part, int parts)
{
	size_t size = 0;

	for (int i = 0; i < parts; i++)
		size += part[i].len;
	return size;
}

static void rdma_read_begin(struct fg_nic *nic, const struct pvr_rndv_seg *part, int parts,
			    const struct iovec *iov, int count)
{
	struct fg_rdma_read *rdma_read = &nic->rdma_read;

	*rdma_read = (struct fg_rdma_read){
		.on = true,
		.size = parts_size(part, parts),
		.parts = parts,
		.count = count,
		.own = rdma_read->own,
	};
	memcpy(rdma_read->part, part, (size_t)parts * sizeof(*part));
	if (count)
		memcpy(rdma_read->iov, iov, (size_t)count * sizeof(*iov));
	else
		rdma_read->iov[0] = (struct iovec){ rdma_read->own, rdma_read->size };
	add(count ? &nic->stats->read : &nic->stats->read_own, 1);
}

static int nic_read(void *opaque, const struct pvr_rndv_seg *part, int parts,
		    const struct iovec *iov, int count)
{
	struct fg_nic *nic = opaque;
	FG_GUARD(nic->lock);

	if (parts < 1 || parts > (int)PVR_FRAME_RNDV_SEGS || count < 0 ||
	    count > (int)PVR_FRAME_RNDV_SEGS)
		fg_die("%d parts are read into %d runs", parts, count);
	if (count ? iov_size(iov, count) != parts_size(part, parts)
		  : parts_size(part, parts) > PVR_READ_BUFFER)
		fg_die("what is read does not fit its place");
	if (nic->rdma_read.on && (nic->rdma_read.count || !nic->rdma_read.done))
		fg_die("two reads at once");
	if (nic->broken)
		return -ECONNRESET;
	if (count && nic->rules->no_read)
		return -ENOMEM;
	rdma_read_begin(nic, part, parts, iov, count);
	return 0;
}

/* The contiguous run of the list at offset @at. Return: its length. */
static size_t run_at(const struct iovec *iov, size_t at, uint8_t **run)
{
	for (; at >= iov->iov_len; iov++)
		at -= iov->iov_len;
	*run = (uint8_t *)iov->iov_base + at;
	return iov->iov_len - at;
}

static const struct pvr_rndv_seg *part_at(const struct pvr_rndv_seg *part, size_t *at)
{
	for (; *at >= part->len; part++)
		*at -= part->len;
	return part;
}

/* Copies one step. Return: false if the part is not exposed. */
static bool copy_some(struct fg_nic *nic, size_t limit)
{
	struct fg_rdma_read *rdma_read = &nic->rdma_read;
	size_t done = rdma_read->at, n;
	const struct pvr_rndv_seg *part = part_at(rdma_read->part, &done);
	const uint8_t *from;
	uint8_t *to;

	n = run_at(rdma_read->iov, rdma_read->at, &to);
	n = n < part->len - done ? n : part->len - done;
	n = n < limit - rdma_read->at ? n : limit - rdma_read->at;
	/* A NIC requests the part as a whole. */
	from = find_exposed(nic->peer, part->addr, part->rkey, part->len);
	if (!from)
		return false;
	memcpy(to, from + done, n);
	rdma_read->at += n;
	return true;
}

static void copy_up_to(struct fg_nic *nic, size_t limit)
{
	while (nic->rdma_read.at < limit) {
		if (copy_some(nic, limit))
			continue;
		add(&nic->stats->forbidden, 1);
		break_both(nic);
		return;
	}
}

bool fg_nic_work(struct fg_nic *nic)
{
	FG_GUARD(nic->lock);
	struct fg_rdma_read *rdma_read = &nic->rdma_read;

	if (!rdma_read->on || rdma_read->done || nic->broken)
		return false;
	if (nic->rules->reads == FG_READS_HELD)
		return false;
	copy_up_to(nic, nic->rules->reads == FG_READS_HALF ? rdma_read->size / 2 : rdma_read->size);
	rdma_read->done = rdma_read->at == rdma_read->size;
	if (rdma_read->done)
		add(&nic->stats->zerocopy_rx_bytes, rdma_read->size);
	return rdma_read->done || nic->broken;
}

bool fg_nic_rdma_read_is_busy(struct fg_nic *nic)
{
	FG_GUARD(nic->lock);

	return nic->rdma_read.on && !nic->rdma_read.done && !nic->broken;
}

static int rdma_read_poll(void *opaque, uint8_t **data)
{
	struct fg_nic *nic = opaque;
	FG_GUARD(nic->lock);
	const struct fg_rdma_read *rdma_read = &nic->rdma_read;

	if (!rdma_read->size)
		fg_die("poll of a read that has not begun");
	*data = rdma_read->done && !rdma_read->count ? rdma_read->own : NULL;
	if (rdma_read->done)
		return 1;
	return nic->broken ? -ECONNRESET : 0;
}

static void rdma_read_cancel(void *opaque)
{
	struct fg_nic *nic = opaque;
	FG_GUARD(nic->lock);
	struct fg_rdma_read *rdma_read = &nic->rdma_read;

	if (!rdma_read->on || !rdma_read->count)
		fg_die("a read into no guest memory is stopped, or one is twice");
	if (!rdma_read->done) {
		add(&nic->stats->stopped, 1);
		break_both(nic);
	}
	rdma_read->on = false;
}

/* ------------------------------------------------------------------------ stream ops */

static ssize_t nic_send(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_send(((struct fg_nic *)opaque)->tx, iov, count);
}

static ssize_t nic_recv(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_recv(((struct fg_nic *)opaque)->rx, iov, count);
}

static void nic_want(void *opaque)
{
	__atomic_store_n(&((struct fg_nic *)opaque)->wants, true, __ATOMIC_RELAXED);
}

const struct pvr_stream_ops fg_nic_copy_ops = {
	.send = nic_send,
	.recv = nic_recv,
	.want_output = nic_want,
};
const struct pvr_stream_ops fg_nic_ops = {
	.send = nic_send,
	.recv = nic_recv,
	.want_output = nic_want,
	.expose = fg_nic_expose,
	.revoke = fg_nic_revoke,
	.read = nic_read,
	.rdma_read_poll = rdma_read_poll,
	.rdma_read_cancel = rdma_read_cancel,
};
