// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Numbered messages by RC SENDs until SIGTERM, as fast as the receiver checks them: how many are
 * wrong, lost or duplicated, and the longest time between two of them. The clock of a VM that
 * migrates stands still meanwhile, so such a VM should be the sender.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oob.h"
#include "rdma.h"

#define DEPTH 16
#define MESSAGE 4096
#define WORDS (MESSAGE / sizeof(uint64_t))
#define PATIENCE 60 /* seconds without a completion */
#define END UINT64_MAX /* number of the last message, whose next word is how many were before */

struct stream {
	struct node node;
	int fd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t *memory; /* DEPTH messages */
	uint64_t next; /* number of the next message */
	uint64_t received, wrong, lost, duplicated;
	double longest, last; /* seconds between messages; when the last one came */
};

static volatile sig_atomic_t is_over;

static void end(int signum)
{
	(void)signum;
	is_over = 1;
}

static uint64_t *slot(struct stream *stream, uint64_t number)
{
	return stream->memory + number % DEPTH * WORDS;
}

/* A word of a message depends on its number and place. */
static uint64_t word(uint64_t number, size_t i)
{
	return (number + 1) * 0x9e3779b97f4a7c15u + i;
}

static void open_stream(struct stream *stream, const char *peer, const char *port)
{
	struct address mine, theirs;

	stream->fd = oob_open(peer, port);
	node_open(&stream->node);
	stream->cq = MUST_HAVE(ibv_create_cq(stream->node.ctx, 2 * DEPTH, NULL, NULL, 0));
	stream->qp = qp_create_rc(&stream->node, stream->cq, DEPTH);
	stream->mr = mr_create(&stream->node, DEPTH * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	stream->memory = stream->mr->addr;
	mine = qp_address(&stream->node, stream->qp);
	oob_exchange(stream->fd, &mine, &theirs, sizeof(mine));
	qp_connect(&stream->node, stream->qp, &theirs);
}

static void close_stream(struct stream *stream)
{
	char mine = 0, theirs;

	oob_exchange(stream->fd, &mine, &theirs, 1);
	MUST(ibv_destroy_qp(stream->qp));
	MUST(ibv_destroy_cq(stream->cq));
	mr_destroy(stream->mr);
	node_close(&stream->node);
}

static struct ibv_wc next_completion(struct stream *stream)
{
	struct ibv_wc wc;

	if (!cq_poll_for(stream->cq, &wc, PATIENCE))
		die("no completion for %d s, after %llu messages", PATIENCE,
		    (unsigned long long)stream->next);
	if (wc.status != IBV_WC_SUCCESS)
		die("completion with '%s', after %llu messages", ibv_wc_status_str(wc.status),
		    (unsigned long long)stream->next);
	return wc;
}

/* ------------------------------------------------------------------------------ sending */

static void send_message(struct stream *stream, uint64_t number)
{
	uint64_t *to = slot(stream, stream->next);

	to[0] = number;
	to[1] = stream->next;
	for (size_t i = number == END ? 2 : 1; i < WORDS; i++)
		to[i] = word(number, i);
	post_send(stream->qp, .wr_id = stream->next, .opcode = IBV_WR_SEND,
		  .send_flags = IBV_SEND_SIGNALED, ONE_SGE(stream->mr, to, MESSAGE));
	stream->next++;
}

static void send_all(struct stream *stream)
{
	uint64_t done = 0;

	while (!is_over) {
		if (stream->next - done == DEPTH) {
			next_completion(stream);
			done++;
		}
		send_message(stream, stream->next);
	}
	if (stream->next - done == DEPTH) {
		next_completion(stream);
		done++;
	}
	send_message(stream, END);
	for (; done < stream->next; done++)
		next_completion(stream);
	printf("stream: %llu messages sent\n", (unsigned long long)stream->next - 1);
}

/* ---------------------------------------------------------------------------- receiving */

static void post_slot(struct stream *stream, uint64_t number)
{
	post_recv(stream->qp, .wr_id = number, ONE_SGE(stream->mr, slot(stream, number), MESSAGE));
}

static void note_time(struct stream *stream)
{
	double at = now();

	if (stream->received && at - stream->last > stream->longest)
		stream->longest = at - stream->last;
	stream->last = at;
}

static void check(struct stream *stream, const uint64_t *message)
{
	uint64_t number = message[0];

	for (size_t i = 1; i < WORDS; i++) {
		if (message[i] != word(number, i)) {
			stream->wrong++;
			break;
		}
	}
	if (number < stream->next) {
		stream->duplicated++;
		return;
	}
	stream->lost += number - stream->next;
	stream->next = number + 1;
}

static void receive_all(struct stream *stream)
{
	uint64_t at = 0;

	for (;; at++) {
		struct ibv_wc wc = next_completion(stream);
		const uint64_t *message = slot(stream, wc.wr_id);

		note_time(stream);
		if (wc.byte_len != MESSAGE) {
			stream->wrong++;
		} else if (message[0] == END) {
			stream->lost += message[1] - stream->next;
			break;
		} else {
			check(stream, message);
		}
		stream->received++;
		post_slot(stream, at + DEPTH);
	}
	printf("stream: %llu messages, %llu wrong, %llu lost, %llu duplicated, longest gap %.1f ms\n",
	       (unsigned long long)stream->received, (unsigned long long)stream->wrong,
	       (unsigned long long)stream->lost, (unsigned long long)stream->duplicated,
	       stream->longest * 1e3);
}

int main(int argc, char **argv)
{
	struct stream stream = { 0 };
	const char *port = "18800";
	char mine = 0, theirs;
	int option;

	while ((option = getopt(argc, argv, "p:")) != -1) {
		if (option != 'p')
			die("usage: pvr_stream [-p PORT] [RECEIVER]");
		port = optarg;
	}
	signal(SIGTERM, end);
	open_stream(&stream, argv[optind], port);
	for (uint64_t i = 0; i < DEPTH && optind == argc; i++)
		post_slot(&stream, i);
	oob_exchange(stream.fd, &mine, &theirs, 1); /* receives are posted */
	if (optind < argc)
		send_all(&stream);
	else
		receive_all(&stream);
	close_stream(&stream);
	return stream.wrong || stream.lost || stream.duplicated;
}
