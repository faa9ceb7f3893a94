// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks a requester whose peer's machine dies. The client streams RDMA WRITEs to the
 * server, reports that it does, and waits for the first failed completion. That must be a
 * retry-exceeded error in time, and all later requests must be flushed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oob.h"
#include "rdma.h"

#define MESSAGE 65536
#define DEPTH 8

struct contact {
	struct address address;
	uint64_t memory;
	uint32_t rkey;
	uint32_t mtu;
};

struct stream {
	struct node node;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct contact peer;
	uint64_t posted, done;
	double last_good;
};

static const struct retries retries = { .timeout = 14, .retry_cnt = 5, .rnr_retry = 5 };

static void open_stream(struct stream *stream, const char *device, int gid_index)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_wr = 1,
			 .max_recv_sge = 1 },
	};
	void *memory;

	node_open(&stream->node, device, gid_index);
	if (posix_memalign(&memory, 4096, MESSAGE))
		die("no memory");
	memset(memory, 0x5a, MESSAGE);
	stream->mr = ibv_reg_mr(stream->node.pd, memory, MESSAGE,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!stream->mr)
		die("ibv_reg_mr:");
	stream->cq = ibv_create_cq(stream->node.ctx, DEPTH, NULL, NULL, 0);
	if (!stream->cq)
		die("ibv_create_cq:");
	attr.send_cq = attr.recv_cq = stream->cq;
	stream->qp = qp_create(&stream->node, &attr);
}

static void connect_stream(struct stream *stream, int fd, uint32_t psn)
{
	struct contact mine = {
		.address = qp_address(&stream->node, stream->qp, psn),
		.memory = (uintptr_t)stream->mr->addr,
		.rkey = stream->mr->rkey,
		.mtu = stream->node.port.active_mtu,
	};
	uint32_t ready = 1;

	oob_exchange(fd, &mine, &stream->peer, sizeof(mine));
	qp_connect(&stream->node, stream->qp, psn, &stream->peer.address,
		   mine.mtu < stream->peer.mtu ? mine.mtu : stream->peer.mtu, &retries);
	oob_exchange(fd, &ready, &ready, sizeof(ready));
}

static void post_write(struct stream *stream)
{
	struct ibv_sge sge = { .addr = (uintptr_t)stream->mr->addr,
			       .length = MESSAGE,
			       .lkey = stream->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = stream->posted,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = stream->peer.memory, .rkey = stream->peer.rkey },
	};
	int err = ibv_post_send(stream->qp, &wr, &bad);

	if (err)
		die("ibv_post_send: %s", strerror(err));
	stream->posted++;
}

/* Returns false if there is no completion before a time of now(). */
static bool next_completion(struct stream *stream, struct ibv_wc *wc, double until)
{
	int num;

	while (!(num = ibv_poll_cq(stream->cq, 1, wc)))
		if (now() > until)
			return false;
	if (num < 0)
		die("ibv_poll_cq returns %d", num);
	if (wc->wr_id != stream->done)
		die("completion %llu, expected %llu", (unsigned long long)wc->wr_id,
		    (unsigned long long)stream->done);
	stream->done++;
	return true;
}

/* Returns the first status that is not success. */
static struct ibv_wc stream_until_failure(struct stream *stream, double seconds, double bound)
{
	double end = now() + seconds;
	struct ibv_wc wc;

	stream->last_good = now();
	for (;;) {
		while (stream->posted - stream->done < DEPTH)
			post_write(stream);
		if (!next_completion(stream, &wc, stream->last_good + bound))
			die("no completion for %g s, expected %s", bound,
			    ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
		if (wc.status != IBV_WC_SUCCESS)
			return wc;
		stream->last_good = now();
		if (stream->done == 100) {
			puts("peerdeath: streaming");
			fflush(stdout);
		}
		if (stream->last_good > end)
			die("the peer is still there after %g s", seconds);
	}
}

static void expect_flushes(struct stream *stream)
{
	struct ibv_wc wc;

	while (stream->done < stream->posted) {
		if (!next_completion(stream, &wc, now() + 10))
			die("request %llu of %llu is not flushed", (unsigned long long)stream->done,
			    (unsigned long long)stream->posted);
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			die("request %llu behind the failed one: %s, expected %s",
			    (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
	}
}

static void close_stream(struct stream *stream)
{
	int err = ibv_destroy_qp(stream->qp);

	if (!err)
		err = ibv_destroy_cq(stream->cq);
	if (!err)
		err = ibv_dereg_mr(stream->mr);
	if (err)
		die("closing: %s", strerror(err));
	node_close(&stream->node);
}

static int run_client(struct stream *stream, double seconds, double bound)
{
	struct ibv_wc wc = stream_until_failure(stream, seconds, bound);
	double after = now() - stream->last_good;

	printf("peerdeath: %s %.2f s after the last success, %llu writes done\n",
	       wc.status == IBV_WC_RETRY_EXC_ERR ? "IBV_WC_RETRY_EXC_ERR"
						 : ibv_wc_status_str(wc.status),
	       after, (unsigned long long)stream->done - 1);
	if (wc.status != IBV_WC_RETRY_EXC_ERR)
		die("expected %s", ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
	expect_flushes(stream);
	puts("peerdeath: the requests behind it are flushed");
	close_stream(stream);
	return 0;
}

static void usage(FILE *to)
{
	fputs("Usage: pvr_peerdeath [OPTIONS] [PEER]\n"
	      "With PEER: streams RDMA WRITEs to it until it dies; a retry-exceeded error is due.\n"
	      "Without: is the one that dies. \"peerdeath: streaming\" tells when to kill it.\n"
	      "  --bound SECONDS      from the last success to the error (default 30)\n"
	      "  --for SECONDS        how long to wait for the death (default 120)\n"
	      "  -d, --device NAME    default: $RDMA_DEV, else the first\n"
	      "  -g, --gid-index N    default: $GID_INDEX, else 0\n"
	      "  -p, --port N         TCP port (default 18601)\n"
	      "  -h, --help           this\n",
	      to);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = { { "bound", required_argument, NULL, 'b' },
						      { "for", required_argument, NULL, 'f' },
						      { "device", required_argument, NULL, 'd' },
						      { "gid-index", required_argument, NULL, 'g' },
						      { "port", required_argument, NULL, 'p' },
						      { "help", no_argument, NULL, 'h' },
						      {} };
	const char *device = NULL, *port = "18601", *peer;
	double bound = 30, seconds = 120;
	static struct stream stream;
	int option, fd, gid_index = -1;

	while ((option = getopt_long(argc, argv, "d:g:p:h", long_options, NULL)) != -1) {
		switch (option) {
		case 'b':
			bound = atof(optarg);
			break;
		case 'f':
			seconds = atof(optarg);
			break;
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	peer = argv[optind];
	open_stream(&stream, device, gid_index);
	fd = peer ? oob_connect(peer, port, 60) : oob_accept(port);
	connect_stream(&stream, fd, peer ? 100 : 200);
	if (peer)
		return run_client(&stream, seconds, bound);
	puts("peerdeath: waiting to be killed");
	fflush(stdout);
	for (;;)
		pause();
}
