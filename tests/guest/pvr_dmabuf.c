// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_dmabuf
 *
 * Checks regions of a dma-buf, ibv_reg_dmabuf_mr(3). /dev/udmabuf makes one of the pages of
 * a memory file. One device talks to itself. Exits with status 77 if the kernel has no
 * /dev/udmabuf.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"

#define BYTES (1u << 20)
#define OFFSET 5000u /* of the region in the dma-buf */
#define LENGTH 700000u
#define IOVA 0x123456789000ull
#define PAGE 4096u
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define NO_UDMABUF 77

struct lab {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *plain; /* of BYTES */
	int memory, dmabuf;
	uint8_t *pages; /* those of the dma-buf */
	uint64_t iova; /* of the last region */
};

static int make_memory(void)
{
	int fd = memfd_create("dmabuf", MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd_create:");
	return fd;
}

static int make_dmabuf(int memory)
{
	struct udmabuf_create create = { .memfd = (unsigned)memory, .size = BYTES };
	int device = open("/dev/udmabuf", O_RDWR), fd;

	if (device < 0 && errno == ENOENT) {
		puts("dmabuf: this kernel has no /dev/udmabuf");
		exit(NO_UDMABUF);
	}
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (device < 0 || fd < 0)
		die("/dev/udmabuf:");
	close(device);
	return fd;
}

static void renew_qp(struct lab *lab);

static void lab_open(struct lab *lab)
{
	lab->memory = make_memory();
	lab->dmabuf = make_dmabuf(lab->memory);
	lab->pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, lab->memory, 0);
	if (lab->pages == MAP_FAILED)
		die("mmap:");
	node_open(&lab->node);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 8, NULL, NULL, 0));
	lab->qp = NULL;
	renew_qp(lab);
	lab->plain = mr_create(&lab->node, BYTES, ACCESS);
}

static struct ibv_mr *reg(struct lab *lab, uint64_t offset, size_t length, int fd, int access)
{
	/* The kernel wants the same offset in the page. */
	lab->iova = IOVA + offset % PAGE;
	return ibv_reg_dmabuf_mr(lab->node.pd, offset, length, lab->iova, fd, access);
}

static void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 7 + seed);
}

static void expect_equal(const uint8_t *a, const uint8_t *b, size_t bytes, const char *what)
{
	for (size_t i = 0; i < bytes; i++)
		if (a[i] != b[i])
			die("%s: byte %zu is %#x, expected %#x", what, i, a[i], b[i]);
}

static void renew_qp(struct lab *lab)
{
	if (lab->qp)
		MUST(ibv_destroy_qp(lab->qp));
	lab->qp = qp_create_rc(&lab->node, lab->cq, 4);
	qp_connect_to_itself(&lab->node, lab->qp);
}

/* The region is the peer's: @skip bytes of it are left out. Return: whether it succeeded. */
static bool rdma(struct lab *lab, enum ibv_wr_opcode opcode, const struct ibv_mr *mr, size_t skip,
		 size_t bytes)
{
	post_send(lab->qp, .opcode = opcode, ONE_SGE(lab->plain, lab->plain->addr, bytes),
		  .wr.rdma = { .remote_addr = lab->iova + skip, .rkey = mr->rkey });
	if (cq_wait(lab->cq).status == IBV_WC_SUCCESS)
		return true;
	renew_qp(lab);
	return false;
}

static void must_do(struct lab *lab, enum ibv_wr_opcode opcode, const struct ibv_mr *mr,
		    size_t skip, size_t bytes)
{
	if (!rdma(lab, opcode, mr, skip, bytes))
		die("access of %zu bytes at %zu of a dma-buf failed", bytes, skip);
}

static void check_access(struct lab *lab)
{
	struct ibv_mr *mr = MUST_HAVE(reg(lab, OFFSET, LENGTH, lab->dmabuf, ACCESS));
	uint8_t *plain = lab->plain->addr;
	uint8_t before = lab->pages[OFFSET - 1], behind = lab->pages[OFFSET + LENGTH];

	fill(plain, LENGTH, 1);
	must_do(lab, IBV_WR_RDMA_WRITE, mr, 0, LENGTH);
	expect_equal(lab->pages + OFFSET, plain, LENGTH, "RDMA WRITE");
	if (lab->pages[OFFSET - 1] != before || lab->pages[OFFSET + LENGTH] != behind)
		die("RDMA WRITE wrote outside of the region");
	fill(lab->pages + OFFSET, LENGTH, 2);
	must_do(lab, IBV_WR_RDMA_READ, mr, 100, LENGTH - 100);
	expect_equal(plain, lab->pages + OFFSET + 100, LENGTH - 100, "RDMA READ");
	/* As the requester's memory. */
	post_send(lab->qp, .opcode = IBV_WR_RDMA_WRITE,
		  .sg_list = &(
			  struct ibv_sge){ .addr = lab->iova, .length = LENGTH, .lkey = mr->lkey },
		  .num_sge = 1,
		  .wr.rdma = { .remote_addr = (uintptr_t)plain, .rkey = lab->plain->rkey });
	cq_expect(lab->cq, IBV_WC_SUCCESS, "RDMA WRITE from a dma-buf");
	expect_equal(plain, lab->pages + OFFSET, LENGTH, "RDMA WRITE from a dma-buf");
	MUST(ibv_dereg_mr(mr));
	puts("dmabuf: written, read and sent");
}

/* The region keeps the pages. */
static void check_lifetime(struct lab *lab)
{
	int memory = make_memory(), fd = make_dmabuf(memory);
	struct ibv_mr *mr = MUST_HAVE(reg(lab, 0, BYTES, fd, ACCESS));

	close(fd);
	fill(lab->plain->addr, BYTES, 3);
	must_do(lab, IBV_WR_RDMA_WRITE, mr, 0, BYTES);
	memset(lab->plain->addr, 0, BYTES);
	must_do(lab, IBV_WR_RDMA_READ, mr, 0, BYTES);
	fill(lab->pages, BYTES, 3);
	expect_equal(lab->plain->addr, lab->pages, BYTES, "a closed dma-buf");
	MUST(ibv_dereg_mr(mr));
	close(memory);
	puts("dmabuf: the region outlives the descriptor");
}

static void expect_refused(struct lab *lab, uint64_t offset, size_t length, int fd, int access,
			   int err, const char *what)
{
	struct ibv_mr *mr = reg(lab, offset, length, fd, access);

	if (mr)
		die("%s: registered", what);
	if (errno != err)
		die("%s: %s, expected %s", what, strerror(errno), strerror(err));
}

static void check_errors(struct lab *lab)
{
	int closed = dup(lab->dmabuf);

	close(closed);
	expect_refused(lab, 0, BYTES, closed, ACCESS, EBADF, "a closed descriptor");
	expect_refused(lab, 0, BYTES, -1, ACCESS, EBADF, "descriptor -1");
	expect_refused(lab, 0, BYTES, lab->memory, ACCESS, EINVAL, "a memory file");
	expect_refused(lab, 0, 0, lab->dmabuf, ACCESS, EINVAL, "no bytes");
	expect_refused(lab, 1, BYTES, lab->dmabuf, ACCESS, EINVAL, "a byte too many");
	expect_refused(lab, BYTES, 1, lab->dmabuf, ACCESS, EINVAL, "an offset at the end");
	expect_refused(lab, UINT64_MAX - 10, 100, lab->dmabuf, ACCESS, EINVAL,
		       "an end beyond 2^64");
	expect_refused(lab, 0, SIZE_MAX, lab->dmabuf, ACCESS, EINVAL, "2^64 - 1 bytes");
	puts("dmabuf: each error has its errno");
}

static void check_rights(struct lab *lab)
{
	struct ibv_mr *mr = MUST_HAVE(reg(lab, 0, BYTES, lab->dmabuf, IBV_ACCESS_REMOTE_READ));

	must_do(lab, IBV_WR_RDMA_READ, mr, 0, 100);
	if (rdma(lab, IBV_WR_RDMA_READ, mr, BYTES - 50, 51))
		die("access without a right, or beyond the end, succeeded");
	if (rdma(lab, IBV_WR_RDMA_WRITE, mr, 0, 100))
		die("access without a right, or beyond the end, succeeded");
	MUST(ibv_dereg_mr(mr));
	puts("dmabuf: rights and bounds hold");
}

int main(void)
{
	struct lab lab;

	lab_open(&lab);
	check_access(&lab);
	check_lifetime(&lab);
	check_errors(&lab);
	check_rights(&lab);
	MUST(ibv_destroy_qp(lab.qp));
	MUST(ibv_destroy_cq(lab.cq));
	mr_destroy(lab.plain);
	node_close(&lab.node);
	return 0;
}
