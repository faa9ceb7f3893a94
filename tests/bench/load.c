// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Batches of work requests, and the device's time for them. */
#include "load.h"

#include <string.h>

#define GRH 40 /* bytes before the data of a received datagram */
#define COPIED_BYTES (64u << 10) /* requests between two reads of the clock */

void bench_load_init(struct bench_load *load, struct bench_pair *pair, enum pvrdma_wr_opcode opcode,
		     uint32_t size)
{
	*load = (struct bench_load){
		.pair = pair,
		.opcode = opcode,
		.size = size,
		.batch = 128,
		.signal_every = 64,
		.span = pair->src.size,
		.rkey = pair->dst_mr.rkey,
	};
	if (pair->a.qp.type == PVR_QPT_UD)
		load->av = fg_av(&pair->a.pd, pair->b.gid, 0);
}

static bool is_send(const struct bench_load *load)
{
	return load->opcode == PVRDMA_WR_SEND;
}

/* Messages move through the buffers from one end to the other, and start again. */
static size_t next_offset(struct bench_load *load)
{
	size_t offset = load->offset;

	load->offset = offset + 2 * (size_t)load->size > load->span ? 0 : offset + load->size;
	return offset;
}

static void put_recv(struct bench_load *load, size_t offset)
{
	struct bench_pair *pair = load->pair;
	struct pvrdma_sge sge[2] = { fg_sge(&pair->b.mr, 0, GRH),
				     fg_sge(&pair->dst_mr, offset, load->size) };
	bool datagram = pair->a.qp.type == PVR_QPT_UD;

	if (!fg_put_recv(&pair->b.qp, 0, datagram ? sge : sge + 1, datagram ? 2 : 1))
		fg_die("no room in the receive queue");
}

void bench_load_put(struct bench_load *load, bool signaled)
{
	struct bench_pair *pair = load->pair;
	size_t offset = next_offset(load);
	struct pvrdma_sge sge = fg_sge(&pair->src_mr, offset, load->size);
	struct fg_wr wr = {
		.opcode = load->opcode,
		.flags = signaled ? PVR_SEND_SIGNALED : 0,
		.sge = &sge,
		.num_sge = 1,
		.remote_addr = pair->dst_mr.start + offset,
		.rkey = load->rkey,
		.av = &load->av,
		.remote_qpn = pair->b.qp.qpn,
		.remote_qkey = FG_QKEY,
	};

	if (load->in_line) {
		wr.flags |= PVR_SEND_INLINE;
		wr.num_sge = 0;
		wr.data = pair->src.va + offset;
		wr.data_len = load->size;
	}
	if (is_send(load))
		put_recv(load, offset);
	if (!fg_put_send(&pair->a.qp, &wr))
		fg_die("no room in the send queue");
}

void bench_load_fill(struct bench_load *load)
{
	for (uint32_t i = 1; i <= load->batch; i++)
		bench_load_put(load, i % load->signal_every == 0);
}

void bench_load_run(struct bench_load *load)
{
	fg_ring_send(&load->pair->a.qp);
	fg_run(load->pair->host);
}

static void reap(struct fg_cq *cq, uint32_t expected)
{
	struct pvrdma_cqe cqe;
	uint32_t n = 0;

	while (fg_cq_poll(cq, &cqe)) {
		if (cqe.status != PVRDMA_WC_SUCCESS)
			fg_die("a completion with status %d", (int)cqe.status);
		n++;
	}
	if (n != expected)
		fg_die("%u completions, expected %u", n, expected);
}

void bench_load_reap(struct bench_load *load)
{
	reap(&load->pair->a.scq, load->batch / load->signal_every);
	reap(&load->pair->b.rcq, is_send(load) ? load->batch : 0);
}

double bench_load_rate_of(struct bench_load *load, uint64_t ns,
			  void (*fill)(struct bench_load *load, void *arg), void *arg)
{
	struct bench_watch watch = { 0 };
	uint64_t done = 0;

	while (watch.sum < ns) {
		fill(load, arg);
		bench_watch_start(&watch);
		bench_load_run(load);
		bench_watch_stop(&watch);
		bench_load_reap(load);
		done += load->batch;
	}
	return (double)done * FG_SEC / watch.sum;
}

static void fill(struct bench_load *load, void *arg)
{
	bench_load_fill(load);
}

double bench_load_rate(void *arg, uint64_t ns)
{
	return bench_load_rate_of(arg, ns, fill, NULL);
}

double bench_load_bandwidth(void *arg, uint64_t ns)
{
	return bench_load_rate(arg, ns) * ((struct bench_load *)arg)->size;
}

/* Keeps the compiler from optimising the copy. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

/* Addresses of a message; a READ copies in the other direction. */
static struct fg_buf *target(struct bench_load *load)
{
	return load->opcode == PVRDMA_WR_RDMA_READ ? &load->pair->src : &load->pair->dst;
}

static struct fg_buf *source(struct bench_load *load)
{
	return load->opcode == PVRDMA_WR_RDMA_READ ? &load->pair->dst : &load->pair->src;
}

static void copy_whole(struct bench_load *load)
{
	size_t offset = next_offset(load);

	copy(target(load)->va + offset, source(load)->va + offset, load->size);
}

static uint8_t *ram_at(const struct fg_buf *buf, size_t offset)
{
	return (uint8_t *)fg_page_va(buf->ram, buf->page[offset / PVR_PAGE_SIZE]) +
	       offset % PVR_PAGE_SIZE;
}

static void copy_pages(struct bench_load *load)
{
	size_t offset = next_offset(load), end = offset + load->size, n;

	for (; offset < end; offset += n) {
		n = PVR_PAGE_SIZE - offset % PVR_PAGE_SIZE;
		n = n < end - offset ? n : end - offset;
		copy(ram_at(target(load), offset), ram_at(source(load), offset), n);
	}
}

/* One @copy_message per request, many between two reads of the clock. */
static double copy_bandwidth(struct bench_load *load, uint64_t ns,
			     void (*copy_message)(struct bench_load *load))
{
	uint32_t n = 1 + COPIED_BYTES / load->size;
	struct bench_watch watch = { 0 };
	uint64_t done = 0;

	while (watch.sum < ns) {
		bench_watch_start(&watch);
		for (uint32_t i = 0; i < n; i++)
			copy_message(load);
		bench_watch_stop(&watch);
		done += n;
	}
	return (double)done * load->size * FG_SEC / watch.sum;
}

double bench_load_memcpy(void *arg, uint64_t ns)
{
	return copy_bandwidth(arg, ns, copy_whole);
}

double bench_load_memcpy_pages(void *arg, uint64_t ns)
{
	return copy_bandwidth(arg, ns, copy_pages);
}
