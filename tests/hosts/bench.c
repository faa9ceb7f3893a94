// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Speed between two hosts, seen by their guests: bandwidth of messages, latency of a WRITE. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guests.h"

#define MIN_WR 256
#define MAX_DEPTH 4096
#define MAX_QPS 64
#define PATIENT_NAPS 32
/* A nap ends before a queue is empty, at speeds above all that are measured. */
#define NAP_BYTES_PER_US 20000ull
#define NAP_MESSAGES_PER_US 20ull
#define NAP_MIN_US 20ull
#define NAP_MAX_US 200ull
#define PATIENCE 10 /* s, for what is still in flight at the end */
#define SLICE_BYTES (8u << 20) /* of a connection's buffers, above the size of caches */

struct bench {
	struct guests guests;
	struct fg_end from[MAX_QPS], to[MAX_QPS]; /* guest is NULL: it is elsewhere */
	unsigned int qps, in_flight[MAX_QPS];
	size_t offset[MAX_QPS];
	uint32_t size, depth, mtu;
	double seconds;
	uint64_t bytes;
};

static uint32_t path_mtu(uint32_t bytes)
{
	uint32_t mtu = PVR_MTU_256;

	while (mtu < PVR_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	if (128u << mtu != bytes)
		fg_die("--mtu %u, expected 256, 512, 1024, 2048 or 4096", bytes);
	return mtu;
}

static void open_ends(struct bench *bench, size_t bytes)
{
	uint32_t wr = bench->depth > MIN_WR ? bench->depth : MIN_WR;
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = wr, .rq_wr = wr };
	struct fg_conn conn = fg_conn_default;

	conn.mtu = path_mtu(bench->mtu);
	for (unsigned int i = 0; i < bench->qps; i++) {
		guests_open_end(&bench->guests, 0, &bench->from[i], &spec, bytes);
		guests_open_end(&bench->guests, 1, &bench->to[i], &spec, bytes);
		guests_connect(&bench->guests, &bench->from[i], &bench->to[i], &conn);
	}
	guests_meet(&bench->guests);
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void must_succeed(const struct pvrdma_cqe *cqe)
{
	if (cqe->status != PVRDMA_WC_SUCCESS)
		fg_die("a request failed with status %d", cqe->status);
}

/* ------------------------------------------------------------------- bandwidth */

static void post(struct bench *bench, unsigned int i, enum pvrdma_wr_opcode opcode)
{
	size_t at = bench->offset[i];

	if (opcode == PVRDMA_WR_SEND)
		guests_post_recv(&bench->to[i], 0, at, bench->size);
	guests_post(&bench->from[i], .opcode = opcode, .flags = PVR_SEND_SIGNALED,
		    ONE_SGE(&bench->from[i].mr, at, bench->size), REMOTE(&bench->to[i].mr, at));
	bench->in_flight[i]++;
	bench->offset[i] += bench->size;
	if (bench->offset[i] + bench->size > bench->from[i].buf.size)
		bench->offset[i] = 0;
}

static bool reap(struct bench *bench, unsigned int i)
{
	struct pvrdma_cqe cqe;
	bool any = false;

	while (fg_cq_poll(&bench->from[i].scq, &cqe)) {
		must_succeed(&cqe);
		bench->in_flight[i]--;
		bench->bytes += bench->size;
		any = true;
	}
	while (bench->to[i].guest && fg_cq_poll(&bench->to[i].rcq, &cqe))
		must_succeed(&cqe);
	return any;
}

/*
 * The guests of both hosts and their daemons share the machine's cores. A guest that looks often is
 * another busy thread, and slows down the workers that are measured.
 */
static long nap_ns(const struct bench *bench)
{
	uint64_t messages = (uint64_t)bench->qps * bench->depth;
	uint64_t by_bytes = messages * bench->size / NAP_BYTES_PER_US;
	uint64_t by_messages = messages / NAP_MESSAGES_PER_US;
	uint64_t us = by_bytes > by_messages ? by_bytes : by_messages;

	if (us < NAP_MIN_US)
		us = NAP_MIN_US;
	return (long)(us < NAP_MAX_US ? us : NAP_MAX_US) * 1000;
}

static void drive(struct bench *bench, enum pvrdma_wr_opcode opcode, double seconds)
{
	double end = now() + seconds;
	const long usual = nap_ns(bench);
	unsigned int idle = 0;

	while (now() < end) {
		bool any = false;

		for (unsigned int i = 0; i < bench->qps; i++) {
			while (bench->in_flight[i] < bench->depth)
				post(bench, i, opcode);
			any |= reap(bench, i);
		}
		/* Polling without a pause slows down a message that takes long. */
		idle = any ? 0 : idle + 1;
		if (idle)
			nap(idle < PATIENT_NAPS ? usual : 1000000);
	}
}

/* A guest that ends during a transfer revokes its memory from NICs: see DOC: rendezvous. */
static void finish(struct bench *bench)
{
	double end = now() + PATIENCE;

	for (unsigned int i = 0; i < bench->qps; i++) {
		while (bench->in_flight[i] && now() < end) {
			if (!reap(bench, i))
				nap(1000000);
		}
	}
}

static double bandwidth(struct bench *bench, enum pvrdma_wr_opcode opcode)
{
	size_t slice = bench->size > SLICE_BYTES / 2 ? 2 * (size_t)bench->size : SLICE_BYTES;
	double begin, value;

	open_ends(bench, slice);
	/* The serving side is passive: its memory is written and read. */
	if (!bench->guests.guest[0])
		return 0;
	drive(bench, opcode, bench->seconds / 4);
	bench->bytes = 0;
	begin = now();
	drive(bench, opcode, bench->seconds);
	value = (double)bench->bytes / (now() - begin);
	finish(bench);
	return value;
}

/* --------------------------------------------------------------------- latency */

static void bounce(struct fg_end *from, const struct fg_end *to, uint64_t value, uint32_t size)
{
	volatile uint64_t *there = (uint64_t *)(to->mr.va + PVR_PAGE_SIZE);
	struct pvrdma_cqe cqe;

	memcpy(from->mr.va, &value, sizeof(value));
	guests_post(from, .opcode = PVRDMA_WR_RDMA_WRITE, .flags = PVR_SEND_SIGNALED,
		    ONE_SGE(&from->mr, 0, size), REMOTE(&to->mr, PVR_PAGE_SIZE));
	/* Yield the CPU to the daemons until data arrives. */
	while (*there != value)
		sched_yield();
	while (fg_cq_poll(&from->scq, &cqe))
		must_succeed(&cqe);
}

/* Seconds of half a round trip, in the median. */
static double latency(struct bench *bench)
{
	static double trip[1 << 20];
	double begin, end = now() + bench->seconds;
	size_t n = 0;

	open_ends(bench, 2 * PVR_PAGE_SIZE);
	for (uint64_t value = 1; n < 1 << 20 && now() < end; value++) {
		begin = now();
		bounce(&bench->from[0], &bench->to[0], value, bench->size);
		bounce(&bench->to[0], &bench->from[0], value, bench->size);
		trip[n++] = (now() - begin) / 2;
	}
	return median(trip, n);
}

/* ---------------------------------------------------------------- command line */

static const struct {
	const char *name;
	enum pvrdma_wr_opcode opcode;
} bandwidths[] = {
	{ "write_bw", PVRDMA_WR_RDMA_WRITE },
	{ "read_bw", PVRDMA_WR_RDMA_READ },
	{ "send_bw", PVRDMA_WR_SEND },
};

static const char help[] =
	"Usage: hosts_bench [OPTION]... NUMBER=SOCKET [NUMBER=SOCKET]\n"
	"Measures between two fake guests that are plugged into adapters of running daemons.\n\n"
	"  --what W     write_bw, read_bw, send_bw (bytes/s) or write_lat (s, half a round trip)\n"
	"  --size B     of the messages (default 1048576; write_lat: 8)\n"
	"  --seconds S  how long (default 3)\n"
	"  --qps N      connections at the same time (default 1, at most 64)\n"
	"  --depth N    messages in flight on each (default 8, at most 4096)\n"
	"  --mtu B      path MTU of the connections (default 1024)\n" GUESTS_HELP
	"               (write_bw and read_bw only)\n\n"
	"The result is one line of JSON. A program with --serve prints none.\n";

/* Both ends have something to do: they are in one process. */
static void need_both_guests(const struct bench *bench, const char *what)
{
	if (guests_here(&bench->guests) != 2)
		fg_die("--what %s is not possible with --serve and --join", what);
}

static double measure(struct bench *bench, const char *what)
{
	for (size_t i = 0; i < sizeof(bandwidths) / sizeof(*bandwidths); i++) {
		if (strcmp(what, bandwidths[i].name))
			continue;
		if (bandwidths[i].opcode == PVRDMA_WR_SEND)
			need_both_guests(bench, what);
		if (!bench->size)
			bench->size = 1 << 20;
		return bandwidth(bench, bandwidths[i].opcode);
	}
	if (strcmp(what, "write_lat"))
		fg_die("--what %s is unknown", what);
	need_both_guests(bench, what);
	if (!bench->size)
		bench->size = sizeof(uint64_t);
	if (bench->size < sizeof(uint64_t) || bench->size > PVR_PAGE_SIZE)
		fg_die("write_lat of %u bytes, expected 8 to 4096", bench->size);
	return latency(bench);
}

int main(int argc, char **argv)
{
	static struct bench bench = { .qps = 1, .depth = 8, .mtu = 1024, .seconds = 3 };
	const char *what = "write_bw";
	const struct guests_option options[] = {
		{ "what", GUESTS_TEXT, &what },
		{ "size", GUESTS_NUMBER, &bench.size },
		{ "seconds", GUESTS_SECONDS, &bench.seconds },
		{ "qps", GUESTS_NUMBER, &bench.qps },
		{ "depth", GUESTS_NUMBER, &bench.depth },
		{ "mtu", GUESTS_NUMBER, &bench.mtu },
		{ 0 },
	};
	double value;

	guests_parse(&bench.guests, options, help, argc, argv);
	if (argc - optind != guests_here(&bench.guests) || !bench.qps || bench.qps > MAX_QPS ||
	    !bench.depth || bench.depth > MAX_DEPTH)
		guests_usage(help);
	guests_open(&bench.guests, (const char *const *)argv + optind,
		    bench.qps * 2 * (bench.size >> 20) + bench.qps * 10 + 64);
	value = measure(&bench, what);
	guests_meet(&bench.guests);
	if (bench.guests.guest[0])
		printf("{\"what\": \"%s\", \"value\": %.9g}\n", what, value);
	return 0;
}
