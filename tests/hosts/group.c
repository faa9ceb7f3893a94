// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A multicast group over several hosts. The first guest posts datagrams to it, all at once;
 * they are its first traffic. The others are members, and check what arrives.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guests.h"

#define MAX_GUESTS 8
#define COUNT 20u
#define DEPTH 64 /* a power of two, with room for twice as many as may come */
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
	bool leaves; /* the sender does, at once */
	uint8_t group[16];
	unsigned int wrong;
};

static void open_member(struct run *run, struct member *member, const char *spec)
{
	const struct fg_qp_spec qp = {
		.type = PVR_QPT_UD,
		.sq_wr = DEPTH,
		.rq_wr = DEPTH,
	};

	member->guest = guests_plug(run->host, spec, RAM_MIB, false);
	fg_end_open_spec(&member->end, &member->guest->kernel, &qp,
			 2 * COUNT * SLOT / PVR_PAGE_SIZE);
	fg_end_ready(&member->end);
}

static void join(struct run *run, struct member *member)
{
	for (unsigned int i = 0; i < 2 * COUNT; i++)
		guests_post_recv(&member->end, i, (uint64_t)i * SLOT, SLOT);
	if (fg_qp_attach(&member->end.qp, run->group))
		fg_die("%s: cannot join the group", member->guest->name);
}

static void send_all(struct run *run)
{
	struct fg_end *from = &run->member[0].end;
	struct pvrdma_av av = fg_av(&from->pd, run->group, 1);

	for (unsigned int i = 0; i < COUNT; i++) {
		fg_fill(from->mr.va + i * SLOT, SIZE, i);
		guests_post(from, .wr_id = i, .opcode = PVRDMA_WR_SEND, .flags = PVR_SEND_SIGNALED,
			    ONE_SGE(&from->mr, (uint64_t)i * SLOT, SIZE), .av = &av,
			    .remote_qpn = MULTICAST_QPN, .remote_qkey = FG_QKEY);
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

	for (int i = 1; i < run->guests; i++) {
		while (fg_cq_poll(&run->member[i].end.rcq, &cqe))
			check(run, &run->member[i], &cqe);
		all &= run->member[i].got >= COUNT;
	}
	return all;
}

static void report(const struct run *run, unsigned int sent, double seconds)
{
	printf("{\"sent\": %u, \"wrong\": %u, \"seconds\": %.3f, \"got\": [", sent, run->wrong,
	       seconds);
	for (int i = 1; i < run->guests; i++)
		printf("%s%u", i > 1 ? ", " : "", run->member[i].got);
	printf("]}\n");
}

static void work(struct run *run, double patience)
{
	double begin = now(), took;
	unsigned int sent = 0;
	bool all;

	send_all(run);
	if (run->leaves)
		leave(&run->member[0].end);
	do {
		all = reap_received(run);
		sent += reap_sent(run);
		took = now() - begin;
		usleep(100);
	} while ((!all || sent < COUNT) && took < patience);
	/* Wait for duplicates. */
	usleep(200000);
	reap_received(run);
	report(run, sent, took);
}

/* -------------------------------------------------------------------- command line */

static const char help[] =
	"Usage: hosts_group [OPTION]... NUMBER=SOCKET NUMBER=SOCKET...\n"
	"Plugs fake guests into adapters of running daemons. The first one sends datagrams to\n"
	"a multicast group in which all others are, 20 at once.\n\n"
	"  --ipv6       to the group ff12::77 instead of 239.77.0.1\n"
	"  --leave      the sender destroys its queue pair as soon as they are posted\n"
	"  --seconds S  how long to wait for them (default 5)\n\n"
	"One line of JSON shows what has arrived. The exit status is 0 in any case.\n";

int main(int argc, char **argv)
{
	static const uint8_t ipv6_group[16] = { 0xff, 0x12, [15] = 0x77 };
	static struct run run;
	double patience = 5;
	bool ipv6 = false;
	const struct guests_option options[] = {
		{ "ipv6", GUESTS_FLAG, &ipv6 },
		{ "leave", GUESTS_FLAG, &run.leaves },
		{ "seconds", GUESTS_SECONDS, &patience },
		{ 0 },
	};

	guests_parse(NULL, options, help, argc, argv);
	run.guests = argc - optind;
	if (run.guests < 2 || run.guests > MAX_GUESTS)
		guests_usage(help);
	if (ipv6)
		memcpy(run.group, ipv6_group, sizeof(ipv6_group));
	else
		fg_gid_from_ipv4(run.group, 239, 77, 0, 1);
	run.host = fg_host_create();
	for (int i = 0; i < run.guests; i++) {
		open_member(&run, &run.member[i], argv[optind + i]);
		if (i)
			join(&run, &run.member[i]);
	}
	work(&run, patience);
	return 0;
}
