// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_odp [quick]
 *
 * Checks on-demand paging, IBV_ACCESS_ON_DEMAND, of ibv_reg_mr(3): a region that exceeds the limit
 * of locked memory, whose pages come and go, advice, a region of all addresses, also after its
 * process has ended. One device talks to itself. "quick" checks one WRITE and one SEND. Exits with
 * status 77 if the device does not offer on-demand paging.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"

#define BYTES (64u << 20)
#define PLAIN (1u << 20)
#define LOCKED (4u << 20) /* enough for queues and the pinned region */
#define PAGE 4096u
#define NOT_OFFERED 77
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct lab {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *plain; /* pinned */
	struct ibv_mr *mr; /* on demand */
	uint8_t *memory; /* its memory */
};

static void limit_locked_memory(void)
{
	struct rlimit limit = { LOCKED, LOCKED };

	/* Root is free of the limit. */
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534))
		die("setrlimit, setuid:");
}

static void renew_qp(struct lab *lab)
{
	if (lab->qp)
		MUST(ibv_destroy_qp(lab->qp));
	lab->qp = qp_create_rc(&lab->node, lab->cq, 4);
	qp_connect_to_itself(&lab->node, lab->qp);
}

static void expect_offered(struct lab *lab)
{
	struct ibv_device_attr_ex attr;

	MUST(ibv_query_device_ex(lab->node.ctx, NULL, &attr));
	if (attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT)
		return;
	puts("odp: the device does not offer on-demand paging");
	exit(NOT_OFFERED);
}

static void lab_open(struct lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	node_open(&lab->node);
	expect_offered(lab);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 8, NULL, NULL, 0));
	renew_qp(lab);
	lab->plain = mr_create(&lab->node, PLAIN, ACCESS);
	limit_locked_memory();
	lab->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lab->memory == MAP_FAILED)
		die("mmap:");
	if (ibv_reg_mr(lab->node.pd, lab->memory, BYTES, ACCESS))
		die("64 MiB were pinned beyond the limit of %u bytes", LOCKED);
	lab->mr = MUST_HAVE(
		ibv_reg_mr(lab->node.pd, lab->memory, BYTES, ACCESS | IBV_ACCESS_ON_DEMAND));
}

static void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 7 + i / PAGE + seed);
}

static void expect_filled(const uint8_t *at, size_t bytes, unsigned int seed, const char *what)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != (uint8_t)(i * 7 + i / PAGE + seed))
			die("%s: byte %zu is %#x, expected %#x", what, i, at[i],
			    (uint8_t)(i * 7 + i / PAGE + seed));
}

/* Between the pinned memory and the region at @offset, which is the peer's. */
static void rdma(struct lab *lab, enum ibv_wr_opcode opcode, size_t offset, size_t bytes,
		 enum ibv_wc_status status, const char *what)
{
	post_send(lab->qp, .opcode = opcode, ONE_SGE(lab->plain, lab->plain->addr, bytes),
		  .wr.rdma = { .remote_addr = (uintptr_t)lab->memory + offset,
			       .rkey = lab->mr->rkey });
	cq_expect(lab->cq, status, what);
	if (status != IBV_WC_SUCCESS)
		renew_qp(lab);
}

/* The same, and the region is the requester's. */
static void rdma_from(struct lab *lab, enum ibv_wr_opcode opcode, size_t offset, size_t bytes,
		      enum ibv_wc_status status, const char *what)
{
	post_send(lab->qp, .opcode = opcode, ONE_SGE(lab->mr, lab->memory + offset, bytes),
		  .wr.rdma = { .remote_addr = (uintptr_t)lab->plain->addr,
			       .rkey = lab->plain->rkey });
	cq_expect(lab->cq, status, what);
	if (status != IBV_WC_SUCCESS)
		renew_qp(lab);
}

static void write_and_check(struct lab *lab, size_t offset, unsigned int seed, const char *what)
{
	fill(lab->plain->addr, PLAIN, seed);
	rdma(lab, IBV_WR_RDMA_WRITE, offset, PLAIN, IBV_WC_SUCCESS, what);
	expect_filled(lab->memory + offset, PLAIN, seed, what);
}

static void read_and_check(struct lab *lab, size_t offset, unsigned int seed, const char *what)
{
	fill(lab->memory + offset, PLAIN, seed);
	memset(lab->plain->addr, 0, PLAIN);
	rdma(lab, IBV_WR_RDMA_READ, offset, PLAIN, IBV_WC_SUCCESS, what);
	expect_filled(lab->plain->addr, PLAIN, seed, what);
}

static void check_all_of_it(struct lab *lab)
{
	for (size_t at = 0; at < BYTES; at += PLAIN)
		write_and_check(lab, at, (unsigned int)(at / PLAIN), "WRITE to new memory");
	read_and_check(lab, 12345, 1, "READ");
	fill(lab->memory, PLAIN, 3);
	rdma_from(lab, IBV_WR_RDMA_WRITE, 0, PLAIN, IBV_WC_SUCCESS, "WRITE from the region");
	expect_filled(lab->plain->addr, PLAIN, 3, "WRITE from the region");
}

static void check_send(struct lab *lab)
{
	size_t from = 20u << 20, to = 30u << 20;

	MUST(madvise(lab->memory + to, PLAIN, MADV_DONTNEED));
	fill(lab->memory + from, PLAIN, 9);
	post_recv(lab->qp, .wr_id = 1, ONE_SGE(lab->mr, lab->memory + to, PLAIN));
	post_send(lab->qp, .opcode = IBV_WR_SEND, ONE_SGE(lab->mr, lab->memory + from, PLAIN));
	cq_expect(lab->cq, IBV_WC_SUCCESS, "SEND or receive");
	cq_expect(lab->cq, IBV_WC_SUCCESS, "SEND or receive");
	expect_filled(lab->memory + to, PLAIN, 9, "SEND");
}

static void check_atomic(struct lab *lab)
{
	uint64_t *word = (uint64_t *)(lab->memory + (40u << 20));

	MUST(madvise(word, PAGE, MADV_DONTNEED));
	for (uint64_t i = 0; i < 3; i++) {
		post_send(lab->qp, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			  ONE_SGE(lab->plain, lab->plain->addr, 8),
			  .wr.atomic = { .remote_addr = (uintptr_t)word,
					 .rkey = lab->mr->rkey,
					 .compare_add = 5 });
		cq_expect(lab->cq, IBV_WC_SUCCESS, "FETCH ADD");
		if (*(uint64_t *)lab->plain->addr != 5 * i || *word != 5 * i + 5)
			die("FETCH ADD %d: %d, memory %d", (int)i,
			    (int)*(uint64_t *)lab->plain->addr, (int)*word);
	}
}

/* What a requester sends waits for its pages, also without responses. */
static void check_uc(struct lab *lab)
{
	struct ibv_qp_init_attr init = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = IBV_QPT_UC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	const uint32_t ops = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE;
	struct ibv_qp *qp = qp_create(&lab->node, &init);
	uint8_t *from = lab->memory + (25u << 20);
	struct ibv_device_attr_ex attr;

	MUST(ibv_query_device_ex(lab->node.ctx, NULL, &attr));
	if (attr.odp_caps.per_transport_caps.uc_odp_caps != ops)
		die("uc_odp_caps %#x, expected %#x", attr.odp_caps.per_transport_caps.uc_odp_caps,
		    ops);
	qp_connect_to_itself(&lab->node, qp);
	MUST(madvise(from, PLAIN, MADV_DONTNEED));
	memset(lab->plain->addr, 1, PLAIN);
	post_send(qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(lab->mr, from, PLAIN),
		  .wr.rdma = { .remote_addr = (uintptr_t)lab->plain->addr,
			       .rkey = lab->plain->rkey });
	cq_expect(lab->cq, IBV_WC_SUCCESS, "WRITE of a UC queue pair");
	for (size_t i = 0; i < PLAIN; i++)
		if (((uint8_t *)lab->plain->addr)[i])
			die("WRITE of a UC queue pair: byte %zu did not arrive", i);
	MUST(ibv_destroy_qp(qp));
}

/* Pages that go away return empty, and as often as they go. */
static void check_dontneed(struct lab *lab)
{
	for (unsigned int i = 0; i < 20; i++) {
		write_and_check(lab, 8192, i, "WRITE after MADV_DONTNEED");
		MUST(madvise(lab->memory, 2 * PLAIN, MADV_DONTNEED));
		rdma(lab, IBV_WR_RDMA_READ, 8192, PLAIN, IBV_WC_SUCCESS, "READ of empty pages");
		for (size_t at = 0; at < PLAIN; at++)
			if (((uint8_t *)lab->plain->addr)[at])
				die("READ of empty pages: byte %zu is an old one", at);
	}
}

/* As under memory pressure; without swap the pages stay, and are unmapped and mapped again. */
static void check_pageout(struct lab *lab)
{
	for (unsigned int i = 0; i < 5; i++) {
		write_and_check(lab, 0, i, "WRITE before MADV_PAGEOUT");
		if (madvise(lab->memory, PLAIN, MADV_PAGEOUT) && errno != EINVAL)
			die("madvise:");
		expect_filled(lab->memory, PLAIN, i, "MADV_PAGEOUT");
		read_and_check(lab, 0, i + 1, "READ after MADV_PAGEOUT");
	}
}

static void check_fork(struct lab *lab)
{
	int status;
	pid_t child;

	write_and_check(lab, 0, 1, "WRITE before fork");
	child = fork();
	if (child < 0)
		die("fork:");
	if (!child) {
		sleep(1);
		expect_filled(lab->memory, PLAIN, 1, "memory of the child");
		_exit(0);
	}
	write_and_check(lab, 0, 2, "WRITE after fork");
	if (waitpid(child, &status, 0) != child || status)
		die("the child has the memory of its parent");
}

static void check_unmapped(struct lab *lab)
{
	uint8_t *hole = lab->memory + (50u << 20);

	write_and_check(lab, 50u << 20, 1, "WRITE before munmap");
	MUST(munmap(hole, PLAIN));
	/* The QP is its own responder, which fails first. */
	rdma(lab, IBV_WR_RDMA_WRITE, 50u << 20, 8, IBV_WC_WR_FLUSH_ERR, "WRITE to no memory");
	rdma_from(lab, IBV_WR_RDMA_WRITE, 50u << 20, 8, IBV_WC_LOC_PROT_ERR,
		  "WRITE from no memory");
	if (mmap(hole, PLAIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != hole)
		die("mmap:");
	write_and_check(lab, 50u << 20, 2, "WRITE to memory that came back");
}

static uint64_t faults_of_process(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_SELF, &usage));
	return (uint64_t)usage.ru_minflt;
}

/* Advice fetches pages before a request needs them. */
static void check_advice(struct lab *lab)
{
	struct ibv_sge sge = { (uintptr_t)lab->memory + (55u << 20), PLAIN, lab->mr->lkey };
	uint8_t *at = lab->memory + (55u << 20);
	uint64_t before;

	MUST(madvise(at, PLAIN, MADV_DONTNEED));
	MUST(ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			   IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	MUST(ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			   IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	before = faults_of_process();
	for (size_t i = 0; i < PLAIN; i += PAGE)
		at[i] = 1;
	if (faults_of_process() - before > PLAIN / PAGE / 2)
		die("%d page faults in memory that was fetched before",
		    (int)(faults_of_process() - before));
	sge.length = BYTES;
	if (ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) != EINVAL)
		die("advice beyond the region: expected EINVAL");
	sge = (struct ibv_sge){ (uintptr_t)lab->plain->addr, PAGE, lab->plain->lkey };
	if (ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) != EINVAL)
		die("advice on a pinned region: expected EINVAL");
}

/* Its own region, of all addresses, for memory that is mapped after the registration. */
static void check_implicit(struct lab *lab)
{
	struct ibv_mr *explicit = lab->mr;
	uint8_t *memory = lab->memory, *other;

	lab->mr =
		MUST_HAVE(ibv_reg_mr(lab->node.pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND));
	for (unsigned int i = 0; i < 200; i++) {
		other = mmap((void *)(0x100000000000ull + ((uint64_t)i << 32)), 2 * PLAIN,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (other == MAP_FAILED)
			die("mmap:");
		lab->memory = other;
		write_and_check(lab, PAGE / 2, i, "WRITE by an implicit region");
		if (!(i % 8))
			read_and_check(lab, PLAIN - PAGE, i, "READ by an implicit region");
		MUST(munmap(other, 2 * PLAIN));
	}
	/* Nothing, and an automatic variable. */
	rdma_from(lab, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_LOC_PROT_ERR, "WRITE from no memory");
	lab->memory = (uint8_t *)&memory;
	rdma_from(lab, IBV_WR_RDMA_WRITE, 0, sizeof(memory), IBV_WC_SUCCESS, "WRITE from a stack");
	if (memcmp(lab->plain->addr, &memory, sizeof(memory)))
		die("WRITE from a stack: other bytes");
	MUST(ibv_dereg_mr(lab->mr));
	lab->memory = memory;
	lab->mr = explicit;
}

/* The memory moves away and other memory takes its place: the region is that of the address. */
static void check_moved(struct lab *lab)
{
	uint8_t *from = lab->memory + (10u << 20), *to = map_memory(PLAIN, 0);

	write_and_check(lab, 10u << 20, 1, "WRITE before mremap");
	if (mremap(from, PLAIN, PLAIN, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		die("mremap:");
	if (mmap(from, PLAIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != from)
		die("mmap:");
	write_and_check(lab, 10u << 20, 2, "WRITE after mremap");
	expect_filled(to, PLAIN, 1, "memory that has moved");
}

/* Another process that has the context, of a process whose memory has ended. */
static void advise_without_owner(struct node *node, const struct ibv_mr *mr, uint8_t *memory,
				 int go, int result)
{
	struct ibv_sge sge = { (uintptr_t)memory, PAGE, mr->lkey };
	char byte;
	int err;

	if (read(go, &byte, 1) != 1)
		_exit(1);
	err = ibv_advise_mr(node->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			    &sge, 1);
	if (write(result, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	_exit(0);
}

static void run_owner(const char *program, const int *go, const int *result)
{
	struct ibv_mr *mr;
	struct node node;
	uint8_t *memory;

	node_open(&node);
	mr = MUST_HAVE(ibv_reg_mr(node.pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND));
	memory = map_memory(PLAIN, 0);
	switch (fork()) {
	case -1:
		die("fork:");
	case 0:
		advise_without_owner(&node, mr, memory, go[0], result[1]);
	}
	if (!program)
		_exit(0);
	execl(program, program, "1000", NULL);
	die("%s:", program);
}

static bool executes(pid_t pid, const char *program)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return readlink(link, path, sizeof(path) - 1) > 0 && !strcmp(path, program);
}

/* @program: what the owner executes; NULL: it exits. */
static void check_owner_gone(const char *program)
{
	int go[2], result[2], status, err = 0;
	pid_t owner;

	MUST(pipe(go));
	MUST(pipe(result));
	owner = fork();
	if (owner < 0)
		die("fork:");
	if (!owner)
		run_owner(program, go, result);
	if (!program && (waitpid(owner, &status, 0) != owner || status))
		die("the owner of an implicit region: status %d", status);
	while (program && !executes(owner, program))
		usleep(1000);
	if (write(go[1], "", 1) != 1 || read(result[0], &err, sizeof(err)) != sizeof(err))
		die("advice without an owner:");
	if (err != ESRCH)
		die("advice on memory of a process that has ended: %s, expected ESRCH",
		    strerror(err));
	if (program) {
		MUST(kill(owner, SIGKILL));
		waitpid(owner, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(result[i]);
	}
}

static void check_everything(struct lab *lab)
{
	check_all_of_it(lab);
	check_send(lab);
	check_atomic(lab);
	check_uc(lab);
	check_dontneed(lab);
	check_pageout(lab);
	check_fork(lab);
	check_unmapped(lab);
	check_moved(lab);
	check_advice(lab);
	check_implicit(lab);
	check_owner_gone(NULL);
	check_owner_gone("/usr/bin/sleep");
}

int main(int argc, char **argv)
{
	struct lab lab;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "quick")))
		die("usage: pvr_odp [quick]");
	lab_open(&lab);
	if (argc == 2) {
		write_and_check(&lab, 0, 1, "WRITE to new memory");
		check_send(&lab);
	} else {
		check_everything(&lab);
	}
	MUST(ibv_dereg_mr(lab.mr));
	MUST(munmap(lab.memory, BYTES));
	puts("odp: ok");
	return 0;
}
