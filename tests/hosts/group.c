// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A multicast group over several hosts. The first guest posts datagrams to it, all at once;
 * they are its first traffic. The others are members, and check what arrives.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guests.h"

#define MAX_GUESTS 8
#define MAX_COUNT 64 /* a power of two, as the depth of a queue is */
#define GRH 40u
#define SIZE 1000u
#define SLOT 2048u
#define RAM_MIB 64
#define MULTICAST_QPN 0xffffffu

struct member {
	struct fg_guest *guest;
	struct fg_end end;
	unsigned int got;
};

struct run {
	struct fg_host *host;
	struct member member[MAX_GUESTS];
	int guests;
	unsigned int count;
	bool leaves; /* the sender does, at once */
	uint8_t group[16];
	unsigned int wrong;
};

static void open_member(struct run *run, struct member *member, const char *spec)
{
	const struct fg_qp_spec qp = {
		.type = PVR_QPT_UD,
		.sq_wr = MAX_COUNT,
		.rq_wr = 2 * MAX_COUNT,
	};

	member->guest = guests_plug(run->host, spec, RAM_MIB);
	fg_end_open_spec(&member->end, &member->guest->kernel, &qp,
			 2 * run->count * SLOT / PVR_PAGE_SIZE + 1);
	fg_end_ready(&member->end);
}

static void post_recv(struct member *member, unsigned int slot)
{
	struct pvrdma_sge sge = fg_sge(&member->end.mr, (uint64_t)slot * SLOT, SLOT);

	if (!fg_post_recv(&member->end.qp, slot, &sge, 1))
		fg_die("%s: its receive queue is full", member->guest->name);
}

/* There is room for twice as many as may come. */
static void join(struct run *run, struct member *member)
{
	unsigned int i;

	for (i = 0; i < 2 * run->count; i++)
		post_recv(member, i);
	if (fg_qp_attach(&member->end.qp, run->group))
		fg_die("%s: cannot join the group", member->guest->name);
}

static void send_all(struct run *run)
{
	struct fg_end *from = &run->member[0].end;
	struct pvrdma_av av = fg_av(&from->pd, run->group, 1);
	unsigned int i;

	for (i = 0; i < run->count; i++) {
		struct pvrdma_sge sge = fg_sge(&from->mr, (uint64_t)i * SLOT, SIZE);
		const struct fg_wr wr = {
			.wr_id = i,
			.opcode = PVRDMA_WR_SEND,
			.flags = PVR_SEND_SIGNALED,
			.sge = &sge,
			.num_sge = 1,
			.av = &av,
			.remote_qpn = MULTICAST_QPN,
			.remote_qkey = FG_QKEY,
		};

		fg_fill(from->mr.va + i * SLOT, SIZE, i);
		if (!fg_post_send(&from->qp, &wr))
			fg_die("the send queue is full");
	}
}

/* Completions are not polled, as in mckey, and the memory is reused. */
static void leave(struct fg_end *from)
{
	if (fg_qp_destroy(&from->qp))
		fg_die("the sender's queue pair cannot be destroyed");
	memset(from->mr.va, 0xff, SLOT);
}

/* Datagram number @got must be next, as a network without faults keeps the order. */
static void check(struct run *run, struct member *member, const struct pvrdma_cqe *cqe)
{
	const uint8_t *data = member->end.mr.va + cqe->wr_id * SLOT + GRH;

	if (cqe->status == PVRDMA_WC_SUCCESS && cqe->byte_len == SIZE + GRH &&
	    fg_mismatch(data, SIZE, member->got) == SIZE)
		member->got++;
	else
		run->wrong++;
}

static unsigned int reap_sent(struct run *run)
{
	struct pvrdma_cqe cqe;
	unsigned int sent = 0;

	while (fg_cq_poll(&run->member[0].end.scq, &cqe)) {
		if (cqe.status == PVRDMA_WC_SUCCESS)
			sent++;
		else
			run->wrong++;
	}
	return sent;
}

/* Return: whether all is there. */
static bool reap_received(struct run *run)
{
	struct pvrdma_cqe cqe;
	bool all = true;
	int i;

	for (i = 1; i < run->guests; i++) {
		while (fg_cq_poll(&run->member[i].end.rcq, &cqe))
			check(run, &run->member[i], &cqe);
		all &= run->member[i].got >= run->count;
	}
	return all;
}

static void report(const struct run *run, unsigned int sent, double seconds)
{
	int i;

	printf("{\"sent\": %u, \"wrong\": %u, \"seconds\": %.3f, \"got\": [", sent, run->wrong,
	       seconds);
	for (i = 1; i < run->guests; i++)
		printf("%s%u", i > 1 ? ", " : "", run->member[i].got);
	printf("]}\n");
}

static void work(struct run *run, double patience)
{
	double begin = now_s(), took;
	unsigned int sent = 0;
	bool all;

	send_all(run);
	if (run->leaves)
		leave(&run->member[0].end);
	do {
		all = reap_received(run);
		sent += reap_sent(run);
		took = now_s() - begin;
		usleep(100);
	} while ((!all || sent < run->count) && took < patience);
	/* Wait for duplicates. */
	usleep(200000);
	reap_received(run);
	report(run, sent, took);
}

/* -------------------------------------------------------------------- command line */

static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },	     { "count", required_argument, NULL, 'c' },
	{ "ipv6", no_argument, NULL, '6' },	     { "leave", no_argument, NULL, 'l' },
	{ "seconds", required_argument, NULL, 's' }, { NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: hosts_group [OPTION]... NUMBER=SOCKET NUMBER=SOCKET...\n"
	"Plugs fake guests into adapters of running daemons. The first one sends datagrams to\n"
	"a multicast group in which all others are.\n\n"
	"  --count N    datagrams, posted at once (default 20, at most 64)\n"
	"  --ipv6       to the group ff12::77 instead of 239.77.0.1\n"
	"  --leave      the sender destroys its queue pair as soon as they are posted\n"
	"  --seconds S  how long they are waited for (default 5)\n\n"
	"One line of JSON says what has arrived. Exit status 0, whatever that is.\n";

static bool parse(struct run *run, int argc, char **argv, double *patience)
{
	static const uint8_t ipv6[16] = { 0xff, 0x12, [15] = 0x77 };
	int option;

	fg_gid_from_ipv4(run->group, 239, 77, 0, 1);
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'h':
			fputs(help, stdout);
			exit(0);
		case 'c':
			run->count = (unsigned int)atoi(optarg);
			break;
		case '6':
			memcpy(run->group, ipv6, sizeof(ipv6));
			break;
		case 'l':
			run->leaves = true;
			break;
		case 's':
			*patience = atof(optarg);
			break;
		default:
			return false;
		}
	}
	run->guests = argc - optind;
	return run->guests >= 2 && run->guests <= MAX_GUESTS && run->count &&
	       run->count <= MAX_COUNT;
}

int main(int argc, char **argv)
{
	static struct run run = { .count = 20 };
	double patience = 5;
	int i;

	if (!parse(&run, argc, argv, &patience)) {
		fputs(help, stderr);
		return 2;
	}
	run.host = fg_host_create();
	for (i = 0; i < run.guests; i++) {
		open_member(&run, &run.member[i], argv[optind + i]);
		if (i)
			join(&run, &run.member[i]);
	}
	work(&run, patience);
	return 0;
}
