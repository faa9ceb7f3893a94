// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_regions NAME: runs a test of memory regions, between two QPs of one device
 * pvr_regions time BYTES: measures the registration of BYTES
 */
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

static void lab_connect(struct lab *lab)
{
	struct address address[2];

	for (int i = 0; i < 2; i++) {
		lab->qp[i] = qp_create_rc(&lab->node, lab->cq, 4);
		address[i] = qp_address(&lab->node, lab->qp[i]);
	}
	for (int i = 0; i < 2; i++)
		qp_connect(&lab->node, lab->qp[i], &address[!i]);
}

static void lab_disconnect(struct lab *lab)
{
	MUST(ibv_destroy_qp(lab->qp[0]));
	MUST(ibv_destroy_qp(lab->qp[1]));
}

static struct ibv_mr *reg(struct lab *lab, void *memory, size_t bytes, int more_rights)
{
	return MUST_HAVE(ibv_reg_mr(lab->node.pd, memory, bytes, RIGHTS | more_rights));
}

static void lab_open(struct lab *lab)
{
	node_open(&lab->node);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 16, NULL, NULL, 0));
	lab->local_mr = mr_create(&lab->node, SMALL, RIGHTS);
	lab->local = lab->local_mr->addr;
	lab_connect(lab);
}

static void lab_close(struct lab *lab)
{
	lab_disconnect(lab);
	mr_destroy(lab->local_mr);
	MUST(ibv_destroy_cq(lab->cq));
	node_close(&lab->node);
}

/* Return: the status of an RDMA operation of one side on the other's memory. */
static enum ibv_wc_status rdma(struct lab *lab, enum ibv_wr_opcode opcode, uint64_t addr,
			       uint32_t rkey, uint32_t bytes)
{
	post_send(lab->qp[0], .opcode = opcode, ONE_SGE(lab->local_mr, lab->local, bytes),
		  .wr.rdma = { .remote_addr = addr, .rkey = rkey });
	return cq_wait(lab->cq).status;
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
	/* A failed work request ends the connection. */
	lab_disconnect(lab);
	lab_connect(lab);
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
	uint8_t *mem = map_memory(SMALL, 0);
	uint64_t iova = 0x123456789000 + 0x234;
	struct ibv_mr *mr =
		MUST_HAVE(ibv_reg_mr_iova(lab->node.pd, mem + 0x234, SMALL - PAGE, iova, RIGHTS));

	CHECK(!covers(lab, mr, iova, mem + 0x234, SMALL - PAGE));
	CHECK(!refused(lab, mr->rkey, (uintptr_t)mem + 0x234, 8));
	MUST(ibv_dereg_mr(mr));
	return 0;
}

/* All page offsets of the memory. */
static int test_zero_based(struct lab *lab)
{
	uint8_t *mem = map_memory(SMALL, 0);

	for (size_t offset = 0; offset < PAGE; offset += 1357) {
		struct ibv_mr *mr = reg(lab, mem + offset, SMALL - PAGE, IBV_ACCESS_ZERO_BASED);

		CHECK(!covers(lab, mr, 0, mem + offset, SMALL - PAGE));
		MUST(ibv_dereg_mr(mr));
	}
	return 0;
}

/* Large pages; the region starts and ends within one. */
static int test_huge_pages(struct lab *lab)
{
	uint8_t *mem = map_memory(8 * HUGE, MAP_HUGETLB | MAP_POPULATE);
	size_t bytes = 6 * HUGE - 5000;
	struct ibv_mr *mr = reg(lab, mem + HUGE / 2 + 12345, bytes, 0);

	CHECK(!covers(lab, mr, (uintptr_t)mem + HUGE / 2 + 12345, mem + HUGE / 2 + 12345, bytes));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + 2 * HUGE - 4000, mem + 2 * HUGE - 4000, 8000));
	MUST(ibv_dereg_mr(mr));
	return 0;
}

/* Maps @bytes of address space, all to the same 64 MiB. */
static uint8_t *alias(size_t bytes)
{
	int fd = memfd_create("pvr_regions", MFD_CLOEXEC);
	uint8_t *mem = map_memory(bytes, MAP_NORESERVE);

	MUST(ftruncate(fd, ALIAS));
	for (size_t at = 0; at < bytes; at += ALIAS)
		if (mmap(mem + at, ALIAS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			die("mmap:");
	close(fd);
	return mem;
}

/* More pages than fit into a directory of two levels. */
static int test_above_1_gib(struct lab *lab)
{
	size_t bytes = (1ul << 30) + ALIAS, far = bytes - 3 * PAGE;
	uint8_t *mem = alias(bytes);
	struct ibv_mr *mr = reg(lab, mem, bytes, 0);

	CHECK(!reaches(lab, mr, (uintptr_t)mem, mem, 5000));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + (1ul << 30) - 2000, mem + (1ul << 30) - 2000,
		       4000));
	CHECK(!reaches(lab, mr, (uintptr_t)mem + far, mem + far, 3 * PAGE));
	CHECK(!refused(lab, mr->rkey, (uintptr_t)mem + far + 1, 3 * PAGE));
	MUST(ibv_dereg_mr(mr));
	return 0;
}

/* Each change alone; the former keys must be invalid. */
static int test_rereg(struct lab *lab)
{
	uint8_t *mem = map_memory(SMALL, 0), *other = map_memory(SMALL, 0);
	struct ibv_mr *mr = reg(lab, mem, SMALL, 0);
	struct ibv_pd *pd = MUST_HAVE(ibv_alloc_pd(lab->node.ctx));
	uint32_t old = mr->rkey;

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
	MUST(ibv_dereg_mr(mr));
	MUST(ibv_dealloc_pd(pd));
	return 0;
}

/* A failed change leaves the region as it was. */
static int test_rereg_fails(struct lab *lab)
{
	uint8_t *mem = map_memory(SMALL, 0);
	struct ibv_mr *mr = reg(lab, mem, SMALL, 0);
	uint32_t old = mr->rkey;

	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)PAGE, SMALL, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 0, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE));
	CHECK(mr->rkey == old);
	CHECK(!covers(lab, mr, (uintptr_t)mem, mem, SMALL));
	MUST(ibv_dereg_mr(mr));
	return 0;
}

static void bind_window(struct lab *lab, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr,
			       .addr = (uintptr_t)mr->addr,
			       .length = length,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};

	MUST(ibv_bind_mw(lab->qp[1], mw, &bind));
	cq_expect(lab->cq, IBV_WC_SUCCESS, "binding");
}

/* A region with bound windows can be neither changed nor deregistered. */
static int test_bound_window(struct lab *lab)
{
	uint8_t *mem = map_memory(SMALL, 0);
	struct ibv_mr *mr = reg(lab, mem, SMALL, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = MUST_HAVE(ibv_alloc_mw(lab->node.pd, IBV_MW_TYPE_1));
	uint32_t old = mr->rkey;

	bind_window(lab, mw, mr, 2 * PAGE);
	CHECK(rdma(lab, IBV_WR_RDMA_WRITE, (uintptr_t)mem, mw->rkey, 8) == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) &&
	      errno == EBUSY);
	CHECK(mr->rkey == old);
	CHECK(!reaches(lab, mr, (uintptr_t)mem, mem, SMALL));
	CHECK(!refused(lab, mw->rkey, (uintptr_t)mem + 2 * PAGE - 4, 8));
	MUST(ibv_dealloc_mw(mw));
	MUST(ibv_dereg_mr(mr));
	return 0;
}

static long meminfo_available(void)
{
	FILE *file = MUST_HAVE(fopen("/proc/meminfo", "r"));
	char line[128];
	long kib = 0;

	while (!kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %ld", &kib);
	fclose(file);
	return kib;
}

#define MANY 4096

/*
 * A region needs memory of the kernel's verbs and of the driver, but no page directory: the
 * device has read that.
 */
static int test_memory_of_regions(struct lab *lab)
{
	struct ibv_mr **mr = MUST_HAVE(calloc(MANY, sizeof(struct ibv_mr *)));
	uint8_t *mem = map_memory(SMALL, 0);
	long before, used;

	scramble(mem, SMALL);
	MUST(ibv_dereg_mr(reg(lab, mem, SMALL, 0)));
	before = meminfo_available();
	for (int i = 0; i < MANY; i++)
		mr[i] = reg(lab, mem, SMALL, 0);
	used = before - meminfo_available();
	printf("%d regions: %ld KiB\n", MANY, used);
	CHECK(used < 4 * MANY);
	CHECK(!covers(lab, mr[MANY - 1], (uintptr_t)mem, mem, SMALL));
	for (int i = 0; i < MANY; i++)
		MUST(ibv_dereg_mr(mr[i]));
	free(mr);
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
	{ "memory-of-regions", test_memory_of_regions },
};
#define NTESTS (sizeof(tests) / sizeof(tests[0]))

static void run_time(struct lab *lab, size_t bytes)
{
	uint8_t *mem = alias(bytes);
	size_t touched = 0;
	struct ibv_mr *mr;
	double begin;
	long before;

	/* excludes page tables of the process */
	for (size_t at = 0; at < bytes; at += PAGE)
		touched += *(volatile uint8_t *)(mem + at);
	before = meminfo_available();
	begin = now();
	mr = reg(lab, mem, bytes, 0);
	printf("%zu MiB: registered in %.2f s, %ld KiB of memory used", bytes >> 20, now() - begin,
	       before - meminfo_available());
	begin = now();
	MUST(ibv_dereg_mr(mr));
	printf(", deregistered in %.2f s\n", now() - begin);
	if (touched)
		die("the memory is not zero");
}

int main(int argc, char **argv)
{
	struct lab lab = {};
	int bad = -1;

	lab_open(&lab);
	if (argc == 3 && !strcmp(argv[1], "time")) {
		run_time(&lab, strtoull(argv[2], NULL, 0) / ALIAS * ALIAS);
		bad = 0;
	}
	for (size_t i = 0; i < NTESTS && argc == 2; i++)
		if (!strcmp(tests[i].name, argv[1]))
			bad = tests[i].run(&lab);
	if (bad < 0)
		die("usage: pvr_regions NAME | time BYTES");
	if (!bad)
		lab_close(&lab);
	return bad;
}
