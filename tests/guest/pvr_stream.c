// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Numbered messages until SIGTERM: how many are wrong, lost or duplicated, and the longest time
 * between two of them. RC SENDs go as fast as the receiver checks them, datagrams (-u) at most
 * 2,000 a second; those may be lost. The clock of a VM that migrates stands still meanwhile, so
 * such a VM should be the sender.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oob.h"
#include "rdma.h"

#define DEPTH 16
#define MESSAGE 4096
#define DATAGRAM 512
#define GRH 40 /* bytes before a received datagram */
#define SLOT (MESSAGE + 64)
#define PACE 500 /* us between datagrams */
#define END_PAUSE 10 /* ms between copies of the last datagram */
#define PATIENCE 60 /* seconds without a completion */
#define END UINT64_MAX /* number of the last message, whose next word is how many were before */

struct stream {
	struct node node;
	int fd;
	bool is_ud;
	uint32_t bytes; /* of a message */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* NULL for RC */
	uint32_t peer; /* its QP number */
	char *memory; /* DEPTH slots */
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

static char *slot(const struct stream *stream, uint64_t number)
{
	return stream->memory + number % DEPTH * SLOT;
}

static size_t words(const struct stream *stream)
{
	return stream->bytes / sizeof(uint64_t);
}

/* A word of a message depends on its number and place. */
static uint64_t word(uint64_t number, size_t i)
{
	return (number + 1) * 0x9e3779b97f4a7c15u + i;
}

static struct ibv_qp *create_qp(struct stream *stream)
{
	struct ibv_qp_init_attr ud = {
		.send_cq = stream->cq,
		.recv_cq = stream->cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return stream->is_ud ? qp_create(&stream->node, &ud)
			     : qp_create_rc(&stream->node, stream->cq, DEPTH);
}

static void open_stream(struct stream *stream, const char *peer, const char *port)
{
	struct address mine, theirs;

	stream->fd = oob_open(peer, port);
	node_open(&stream->node);
	stream->cq = MUST_HAVE(ibv_create_cq(stream->node.ctx, 2 * DEPTH, NULL, NULL, 0));
	stream->qp = create_qp(stream);
	stream->mr = mr_create(&stream->node, DEPTH * SLOT, IBV_ACCESS_LOCAL_WRITE);
	stream->memory = stream->mr->addr;
	mine = qp_address(&stream->node, stream->qp);
	oob_exchange(stream->fd, &mine, &theirs, sizeof(mine));
	qp_connect(&stream->node, stream->qp, &theirs);
	stream->peer = theirs.qpn;
	if (stream->is_ud)
		stream->ah = ah_create(&stream->node, &theirs);
}

static void close_stream(struct stream *stream)
{
	char mine = 0, theirs;

	oob_exchange(stream->fd, &mine, &theirs, 1);
	if (stream->ah)
		MUST(ibv_destroy_ah(stream->ah));
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
	uint64_t *to = (uint64_t *)slot(stream, stream->next);

	to[0] = number;
	to[1] = stream->next;
	for (size_t i = number == END ? 2 : 1; i < words(stream); i++)
		to[i] = word(number, i);
	post_send(stream->qp, .wr_id = stream->next, .opcode = IBV_WR_SEND,
		  .send_flags = IBV_SEND_SIGNALED, ONE_SGE(stream->mr, to, stream->bytes),
		  .wr.ud = { stream->ah, stream->peer, TEST_QKEY });
	stream->next++;
}

/* The receiver has got the last datagram: see close_stream(). */
static bool has_received_all(const struct stream *stream)
{
	struct pollfd answer = { .fd = stream->fd, .events = POLLIN };

	return poll(&answer, 1, END_PAUSE) > 0;
}

/* One after the other. The last one goes again until it has arrived. */
static void send_datagrams(struct stream *stream)
{
	uint64_t count;

	while (!is_over) {
		send_message(stream, stream->next);
		next_completion(stream);
		usleep(PACE);
	}
	count = stream->next;
	do {
		stream->next = count;
		send_message(stream, END);
		next_completion(stream);
	} while (!has_received_all(stream));
	printf("stream: %llu datagrams sent\n", (unsigned long long)count);
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
	post_recv(stream->qp, .wr_id = number, ONE_SGE(stream->mr, slot(stream, number), SLOT));
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

	for (size_t i = 1; i < words(stream); i++) {
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
	const uint32_t before = stream->is_ud ? GRH : 0;
	uint64_t at = 0;

	for (;; at++) {
		struct ibv_wc wc = next_completion(stream);
		const uint64_t *message = (uint64_t *)(slot(stream, wc.wr_id) + before);

		note_time(stream);
		if (wc.byte_len != before + stream->bytes) {
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
	printf("%s: %llu messages, %llu wrong, %llu lost, %llu duplicated, longest gap %.1f ms\n",
	       stream->is_ud ? "datagrams" : "stream", (unsigned long long)stream->received,
	       (unsigned long long)stream->wrong, (unsigned long long)stream->lost,
	       (unsigned long long)stream->duplicated, stream->longest * 1e3);
}

int main(int argc, char **argv)
{
	struct stream stream = { 0 };
	const char *port = "18800";
	char mine = 0, theirs;
	int option;

	while ((option = getopt(argc, argv, "p:u")) != -1) {
		if (option == 'p')
			port = optarg;
		else if (option == 'u')
			stream.is_ud = true;
		else
			die("usage: pvr_stream [-p PORT] [-u] [RECEIVER]");
	}
	stream.bytes = stream.is_ud ? DATAGRAM : MESSAGE;
	signal(SIGTERM, end);
	open_stream(&stream, argv[optind], port);
	for (uint64_t i = 0; i < DEPTH && optind == argc; i++)
		post_slot(&stream, i);
	oob_exchange(stream.fd, &mine, &theirs, 1); /* receives are posted */
	if (optind < argc && stream.is_ud)
		send_datagrams(&stream);
	else if (optind < argc)
		send_all(&stream);
	else
		receive_all(&stream);
	close_stream(&stream);
	return stream.wrong || (stream.lost && !stream.is_ud) || stream.duplicated;
}
