// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_peerdeath [PEER]
 *
 * Checks a requester whose peer's machine dies. The client streams RDMA WRITEs to the
 * server, reports that it does, and waits for the first failed completion. That must be a
 * retry-exceeded error in time, and all later requests must be flushed.
 */
#include <stdio.h>
#include <unistd.h>

#include "oob.h"
#include "rdma.h"

#define PORT "18601"
#define MESSAGE 65536
#define DEPTH 8
#define DEATH_SECONDS 120 /* until the peer dies */
#define ERROR_SECONDS 30 /* from the last success to the error */
#define FLUSH_SECONDS 10

struct stream {
	struct node node;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct place peer;
	uint64_t posted, done;
};

static void open_stream(struct stream *stream)
{
	node_open(&stream->node);
	stream->node.timeout = 14;
	stream->node.retry_cnt = 5;
	stream->mr =
		mr_create(&stream->node, MESSAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	stream->cq = MUST_HAVE(ibv_create_cq(stream->node.ctx, DEPTH, NULL, NULL, 0));
	stream->qp = qp_create_rc(&stream->node, stream->cq, DEPTH);
}

static void connect_stream(struct stream *stream, int fd)
{
	struct place mine = {
		.address = qp_address(&stream->node, stream->qp),
		.memory = (uintptr_t)stream->mr->addr,
		.rkey = stream->mr->rkey,
	};
	uint32_t ready = 1;

	oob_exchange(fd, &mine, &stream->peer, sizeof(mine));
	qp_connect(&stream->node, stream->qp, &stream->peer.address);
	oob_exchange(fd, &ready, &ready, sizeof(ready));
}

static void post_write(struct stream *stream)
{
	post_send(stream->qp, .wr_id = stream->posted++, .opcode = IBV_WR_RDMA_WRITE,
		  ONE_SGE(stream->mr, stream->mr->addr, MESSAGE),
		  .wr.rdma = { .remote_addr = stream->peer.memory, .rkey = stream->peer.rkey });
}

static enum ibv_wc_status next_status(struct stream *stream, double seconds)
{
	struct ibv_wc wc;

	if (!cq_poll_for(stream->cq, &wc, seconds))
		die("no completion for %g s", seconds);
	if (wc.wr_id != stream->done)
		die("completion %llu, expected %llu", (unsigned long long)wc.wr_id,
		    (unsigned long long)stream->done);
	stream->done++;
	return wc.status;
}

static void stream_until_error(struct stream *stream)
{
	double end = now() + DEATH_SECONDS, last_good = now();
	enum ibv_wc_status status;

	for (;;) {
		while (stream->posted - stream->done < DEPTH)
			post_write(stream);
		status = next_status(stream, ERROR_SECONDS);
		if (status != IBV_WC_SUCCESS)
			break;
		last_good = now();
		if (stream->done == 100) {
			puts("peerdeath: streaming");
			fflush(stdout);
		}
		if (last_good > end)
			die("the peer is still there after %d s", DEATH_SECONDS);
	}
	if (status != IBV_WC_RETRY_EXC_ERR)
		die("%s, expected %s", ibv_wc_status_str(status),
		    ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
	printf("peerdeath: IBV_WC_RETRY_EXC_ERR %.2f s after the last success, %llu writes done\n",
	       now() - last_good, (unsigned long long)stream->done - 1);
}

static void expect_flushes(struct stream *stream)
{
	enum ibv_wc_status status;

	while (stream->done < stream->posted) {
		status = next_status(stream, FLUSH_SECONDS);
		if (status != IBV_WC_WR_FLUSH_ERR)
			die("request %llu behind the failed one: %s, expected %s",
			    (unsigned long long)stream->done - 1, ibv_wc_status_str(status),
			    ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
	}
	puts("peerdeath: the requests behind it are flushed");
}

static void close_stream(struct stream *stream)
{
	MUST(ibv_destroy_qp(stream->qp));
	MUST(ibv_destroy_cq(stream->cq));
	mr_destroy(stream->mr);
	node_close(&stream->node);
}

int main(int argc, char **argv)
{
	struct stream stream = {};

	open_stream(&stream);
	connect_stream(&stream, oob_open(argv[1], PORT));
	if (argc == 2) {
		stream_until_error(&stream);
		expect_flushes(&stream);
		close_stream(&stream);
		return 0;
	}
	puts("peerdeath: waiting to be killed");
	fflush(stdout);
	for (;;)
		pause();
}
