// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_regions NAME: runs a test of memory regions, between two QPs of one device
 * pvr_regions list: prints the names
 * pvr_regions time BYTES: measures the registration of BYTES
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"

#define PAGE 4096ul
#define HUGE (2ul << 20)
#define SMALL (64 * PAGE) /* of most regions */
#define ALIAS (64ul << 20) /* bytes of memory behind larger address ranges */
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct lab {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	uint8_t *local; /* local buffer of RDMA operations */
	struct ibv_mr *local_mr;
};

#define CHECK(cond)                                                                             \
	do {                                                                                    \
		if (!(cond)) {                                                                  \
			printf("line %d: expected %s (errno %d, %s)\n", __LINE__, #cond, errno, \
			       strerror(errno));                                                \
			return 1;                                                               \
		}                                                                               \
	} while (0)

static void *memory(size_t bytes, int flags)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			 -1, 0);

	if (mem != MAP_FAILED)
		return mem;
	perror("pvr_regions: mmap");
	exit(2);
}

static void lab_connect(struct lab *lab)
{
	struct retries retries = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct ibv_qp_init_attr attr = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct address address[2];
	int i;

	for (i = 0; i < 2; i++) {
		lab->qp[i] = qp_create(&lab->node, &attr);
		address[i] = qp_address(&lab->node, lab->qp[i], 0);
	}
	for (i = 0; i < 2; i++)
		qp_connect(&lab->node, lab->qp[i], 0, &address[!i], IBV_MTU_1024, &retries);
}

static void lab_open(struct lab *lab)
{
	node_open(&lab->node, NULL, -1);
	lab->cq = ibv_create_cq(lab->node.ctx, 16, NULL, NULL, 0);
	lab->local = memory(SMALL, MAP_POPULATE);
	lab->local_mr = ibv_reg_mr(lab->node.pd, lab->local, SMALL, RIGHTS);
	if (!lab->cq || !lab->local_mr) {
		perror("pvr_regions: no CQ or no region");
		exit(2);
	}
	lab_connect(lab);
}

static int lab_close(struct lab *lab)
{
	CHECK(!ibv_destroy_qp(lab->qp[0]) && !ibv_destroy_qp(lab->qp[1]));
	CHECK(!ibv_dereg_mr(lab->local_mr));
	CHECK(!ibv_destroy_cq(lab->cq));
	node_close(&lab->node);
	return 0;
}

/* A failed work request ends the connection. */
static void reconnect(struct lab *lab)
{
	ibv_destroy_qp(lab->qp[0]);
	ibv_destroy_qp(lab->qp[1]);
	lab_connect(lab);
}

/* Return: the status of an RDMA operation of one side on the other's memory. */
static enum ibv_wc_status rdma(struct lab *lab, enum ibv_wr_opcode opcode, uint64_t addr,
			       uint32_t rkey, uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)lab->local,
			       .length = bytes,
			       .lkey = lab->local_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(lab->qp[0], &wr, &bad))
		return IBV_WC_GENERAL_ERR;
	do
		n = ibv_poll_cq(lab->cq, 1, &wc);
	while (!n);
	return n < 0 ? IBV_WC_GENERAL_ERR : wc.status;
}

static void scramble(uint8_t *mem, size_t bytes)
{
	while (bytes--)
		*mem++ = random();
}

/* Checks that RDMA to @addr writes and reads the memory at @mem. */
static int reaches(struct lab *lab, struct ibv_mr *mr, uint64_t addr, uint8_t *mem, uint32_t bytes)
{
	scramble(lab->local, SMALL);
	CHECK(rdma(lab, IBV_WR_RDMA_WRITE, addr, mr->rkey, bytes) == IBV_WC_SUCCESS);
	CHECK(!memcmp(lab->local, mem, bytes));
	scramble(mem, bytes);
	CHECK(rdma(lab, IBV_WR_RDMA_READ, addr, mr->rkey, bytes) == IBV_WC_SUCCESS);
	CHECK(!memcmp(lab->local, mem, bytes));
	return 0;
}

static int refused(struct lab *lab, uint32_t rkey, uint64_t addr, uint32_t bytes)
{
	CHECK(rdma(lab, IBV_WR_RDMA_WRITE, addr, rkey, bytes) == IBV_WC_REM_ACCESS_ERR);
	reconnect(lab);
	return 0;
}

/*
 * Accesses the first and the last bytes and some across pages, but fails beyond both
 * ends.
 */
static int covers(struct lab *lab, struct ibv_mr *mr, uint64_t addr, uint8_t *mem, size_t bytes)
{
	CHECK(!reaches(lab, mr, addr, mem, 777));
	CHECK(!reaches(lab, mr, addr + bytes - 777, mem + bytes - 777, 777));
	CHECK(!reaches(lab, mr, addr + PAGE - 1, mem + PAGE - 1, 2 * PAGE + 3));
	CHECK(!refused(lab, mr->rkey, addr + bytes - 776, 777));
	CHECK(!refused(lab, mr->rkey, addr - 1, 777));
	return 0;
}

/* The iova differs from the program's address. */
static int test_iova(struct lab *lab)
{
	uint8_t *mem = memory(SMALL, 0);
	uint64_t iova = 0x123456789000 + 0x234;
	struct ibv_mr *mr = ibv_reg_mr_iova(lab->node.pd, mem + 0x234, SMALL - PAGE, iova, RIGHTS);

	CHECK(mr);
	CHECK(!covers(lab, mr, iova, mem + 0x234, SMALL - PAGE));
	CHECK(!refused(lab, mr->rkey, (uintptr_t)mem + 0x234, 8));
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

/* All page offsets of the memory. */
static int test_zero_based(struct lab *lab)
{
	uint8_t *mem = memory(SMALL, 0);
	size_t offset;

	for (offset = 0; offset < PAGE; offset += 1357) {
		struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem + offset, SMALL - PAGE,
					       RIGHTS | IBV_ACCESS_ZERO_BASED);

		CHECK(mr);
		CHECK(!covers(lab, mr, 0, mem + offset, SMALL - PAGE));
		CHECK(!ibv_dereg_mr(mr));
	}
	return 0;
}

/* Large pages; the region starts and ends within one. */
static int test_huge_pages(struct lab *lab)
{
	uint8_t *mem = memory(8 * HUGE, MAP_HUGETLB | MAP_POPULATE);
	size_t bytes = 6 * HUGE - 5000;
	struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem + HUGE / 2 + 12345, bytes, RIGHTS);

	CHECK(mr);
	CHECK(!covers(lab, mr, (uintptr_t)mem + HUGE / 2 + 12345, mem + HUGE / 2 + 12345, bytes));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + 2 * HUGE - 4000, mem + 2 * HUGE - 4000, 8000));
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

/* Maps @bytes of address space, all to the same 64 MiB. */
static uint8_t *alias(size_t bytes)
{
	int fd = memfd_create("pvr_regions", MFD_CLOEXEC);
	uint8_t *mem = memory(bytes, MAP_NORESERVE);
	size_t at;

	if (fd < 0 || ftruncate(fd, ALIAS))
		exit(2);
	for (at = 0; at < bytes; at += ALIAS)
		if (mmap(mem + at, ALIAS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			exit(2);
	close(fd);
	return mem;
}

/* More pages than fit into a directory of two levels. */
static int test_above_1_gib(struct lab *lab)
{
	size_t bytes = (1ul << 30) + ALIAS, far = bytes - 3 * PAGE;
	uint8_t *mem = alias(bytes);
	struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem, bytes, RIGHTS);

	CHECK(mr);
	CHECK(!reaches(lab, mr, (uintptr_t)mem, mem, 5000));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + (1ul << 30) - 2000, mem + (1ul << 30) - 2000,
		       4000));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + far, mem + far, 3 * PAGE));
	CHECK(!refused(lab, mr->rkey, (uintptr_t)mem + far + 1, 3 * PAGE));
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

/* Each change alone; the former keys must be invalid. */
static int test_rereg(struct lab *lab)
{
	uint8_t *mem = memory(SMALL, 0), *other = memory(SMALL, 0);
	struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem, SMALL, RIGHTS);
	struct ibv_pd *pd = ibv_alloc_pd(lab->node.ctx);
	uint32_t old;

	CHECK(mr && pd);
	old = mr->rkey;
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, SMALL - PAGE, 0));
	CHECK(!covers(lab, mr, (uintptr_t)other, other, SMALL - PAGE));
	CHECK(!refused(lab, old, (uintptr_t)mem, 8));
	old = mr->rkey;
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	CHECK(rdma(lab, IBV_WR_RDMA_READ, (uintptr_t)other, mr->rkey, 8) == IBV_WC_SUCCESS);
	CHECK(!refused(lab, mr->rkey, (uintptr_t)other, 8));
	CHECK(!refused(lab, old, (uintptr_t)other, 8));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0,
			    RIGHTS));
	CHECK(!refused(lab, mr->rkey, (uintptr_t)other, 8));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, lab->node.pd, NULL, 0, 0));
	CHECK(!covers(lab, mr, (uintptr_t)other, other, SMALL - PAGE));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	return 0;
}

/* A failed change leaves the region as it was. */
static int test_rereg_fails(struct lab *lab)
{
	uint8_t *mem = memory(SMALL, 0);
	struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem, SMALL, RIGHTS);
	uint32_t old;

	CHECK(mr);
	old = mr->rkey;
	munmap(memory(SMALL, 0), SMALL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)PAGE, SMALL, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 0, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE));
	CHECK(mr->rkey == old);
	CHECK(!covers(lab, mr, (uintptr_t)mem, mem, SMALL));
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

static int bind_window(struct lab *lab, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr,
			       .addr = (uintptr_t)mr->addr,
			       .length = length,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};
	struct ibv_wc wc;
	int n, err = ibv_bind_mw(lab->qp[1], mw, &bind);

	if (err)
		return err;
	do
		n = ibv_poll_cq(lab->cq, 1, &wc);
	while (!n);
	return n < 0 ? EIO : wc.status ? EINVAL : 0;
}

/* A region with bound windows can be neither changed nor deregistered. */
static int test_bound_window(struct lab *lab)
{
	uint8_t *mem = memory(SMALL, 0);
	struct ibv_mr *mr = ibv_reg_mr(lab->node.pd, mem, SMALL, RIGHTS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(lab->node.pd, IBV_MW_TYPE_1);
	uint32_t old;

	CHECK(mr && mw);
	old = mr->rkey;
	CHECK(!bind_window(lab, mw, mr, 2 * PAGE));
	CHECK(rdma(lab, IBV_WR_RDMA_WRITE, (uintptr_t)mem, mw->rkey, 8) == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) &&
	      errno == EBUSY);
	CHECK(mr->rkey == old);
	CHECK(!reaches(lab, mr, (uintptr_t)mem, mem, SMALL));
	CHECK(!refused(lab, mw->rkey, (uintptr_t)mem + 2 * PAGE - 4, 8));
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct lab *lab);
} tests[] = {
	{ "iova", test_iova },
	{ "zero-based", test_zero_based },
	{ "huge-pages", test_huge_pages },
	{ "above-1-gib", test_above_1_gib },
	{ "rereg", test_rereg },
	{ "rereg-fails", test_rereg_fails },
	{ "bound-window", test_bound_window },
};
#define NTESTS (sizeof(tests) / sizeof(tests[0]))

static long meminfo_available(void)
{
	char line[128];
	long kib = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static int run_time(struct lab *lab, size_t bytes)
{
	uint8_t *mem = alias(bytes);
	size_t at, touched = 0;
	struct ibv_mr *mr;
	double begin;
	long before;

	/* excludes page tables of the process */
	for (at = 0; at < bytes; at += PAGE)
		touched += *(volatile uint8_t *)(mem + at);
	before = meminfo_available();
	begin = now();
	mr = ibv_reg_mr(lab->node.pd, mem, bytes, RIGHTS);
	CHECK(mr);
	printf("%zu MiB: registered in %.2f s, %ld KiB of memory used", bytes >> 20, now() - begin,
	       before - meminfo_available());
	begin = now();
	CHECK(!ibv_dereg_mr(mr));
	printf(", deregistered in %.2f s\n", now() - begin);
	return touched ? 1 : 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: pvr_regions list | NAME | time BYTES\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct lab lab = { .cq = NULL };
	size_t i;
	int bad = -1;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < NTESTS; i++)
			puts(tests[i].name);
		return 0;
	}
	if (argc < 2)
		return usage();
	lab_open(&lab);
	if (argc == 3 && !strcmp(argv[1], "time"))
		bad = run_time(&lab, strtoull(argv[2], NULL, 0) / ALIAS * ALIAS);
	for (i = 0; i < NTESTS && argc == 2; i++)
		if (!strcmp(tests[i].name, argv[1]))
			bad = tests[i].run(&lab);
	if (bad < 0)
		return usage();
	return bad ? bad : lab_close(&lab);
}
