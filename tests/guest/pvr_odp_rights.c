// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_odp_rights FILE
 *
 * Checks that regions on demand give the device no more rights than the process has. FILE has
 * AREA bytes, and the program may only read it. One device talks to itself.
 *
 * Memory of each kind below is registered with each right to write, as a region of its pages and
 * as one of all addresses. Then each advice of ibv_advise_mr(3) is given, and the device writes. If
 * the process may not write, the request fails, and each byte stays. Otherwise only the memory of
 * the process changes: neither the file, nor the zero page, nor memory that it shares by fork() or
 * KSM. KSM must be running. The same holds for pages that the device had before they became
 * read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"

#define PAGE 4096u
#define PAGES 40u /* of an area; each case has one */
#define AREA (PAGES * PAGE)
#define WORD 8u /* bytes of each request, at the begin of a page */
#define MERGED_SECONDS 120
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define ADDEND 0x0101010101010101ull

struct lab {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *peer;
	struct ibv_mr *plain; /* pinned: what the device writes */
	int fill; /* the byte that it writes */
	const char *path; /* of a file */
	uint8_t file[AREA]; /* its content */
	uint8_t *area; /* of the current kind */
	uint8_t expected[AREA]; /* its content */
	/* A region of it whose pages the device had before they became read-only; or NULL. */
	struct ibv_mr *early;
	pid_t child; /* it has a copy of the area; 0: none */
	int go; /* a pipe to it */
};

/* Memory that the process may not write, or of which it gets a copy before it does. */
struct kind {
	const char *name;
	bool is_writable;
	/* Sets lab->area, and may set lab->early. */
	void (*make)(struct lab *lab);
};

/* What a peer or a request of the process does. */
struct use {
	const char *name;
	int access;
	enum ibv_wr_opcode opcode;
	bool is_local; /* the region has the SGE */
	enum ibv_wc_status refused;
};

static const struct use uses[] = {
	{ "READ to it", IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_READ, true, IBV_WC_LOC_PROT_ERR },
	{ "WRITE", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, false,
	  IBV_WC_REM_ACCESS_ERR },
	{ "FETCH ADD", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	  IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_REM_ACCESS_ERR },
};

#define NO_ADVICE (-1)

static const struct {
	const char *name;
	int advice;
} advices[] = {
	{ "no advice", NO_ADVICE },
	{ "PREFETCH", IBV_ADVISE_MR_ADVICE_PREFETCH },
	{ "PREFETCH_WRITE", IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE },
	{ "PREFETCH_NO_FAULT", IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT },
};

/* ------------------------------------------------------------------------- the device */

static void connect_qps(struct lab *lab)
{
	struct address a, b;

	if (lab->qp) {
		MUST(ibv_destroy_qp(lab->qp));
		MUST(ibv_destroy_qp(lab->peer));
	}
	lab->qp = qp_create_rc(&lab->node, lab->cq, 4);
	lab->peer = qp_create_rc(&lab->node, lab->cq, 4);
	a = qp_address(&lab->node, lab->qp);
	b = qp_address(&lab->node, lab->peer);
	qp_connect(&lab->node, lab->qp, &b);
	qp_connect(&lab->node, lab->peer, &a);
}

static void lab_open(struct lab *lab, const char *path)
{
	int fd = open(path, O_RDONLY);

	lab->path = path;
	if (fd < 0 || read(fd, lab->file, AREA) != AREA)
		die("%s, expected %u bytes:", path, AREA);
	close(fd);
	if (open(path, O_RDWR) >= 0)
		die("%s may be written: run as another user", path);
	node_open(&lab->node);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 8, NULL, NULL, 0));
	connect_qps(lab);
	lab->plain = mr_create(&lab->node, PAGE, ALL);
	lab->fill = 'X';
}

static enum ibv_wc_status execute(struct lab *lab, const struct use *use, struct ibv_mr *mr,
				  uint8_t *at)
{
	struct ibv_mr *own = use->is_local ? mr : lab->plain;
	struct ibv_mr *far = use->is_local ? lab->plain : mr;
	uint8_t *own_at = use->is_local ? at : (uint8_t *)lab->plain->addr;
	uint8_t *far_at = use->is_local ? lab->plain->addr : at;
	struct ibv_send_wr wr = { .opcode = use->opcode, ONE_SGE(own, own_at, WORD) };
	enum ibv_wc_status status;

	if (use->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)far_at;
		wr.wr.atomic.rkey = far->rkey;
		wr.wr.atomic.compare_add = ADDEND;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)far_at;
		wr.wr.rdma.rkey = far->rkey;
	}
	memset(lab->plain->addr, lab->fill, WORD);
	post_send_wr(lab->qp, &wr);
	status = cq_wait(lab->cq).status;
	if (status != IBV_WC_SUCCESS)
		connect_qps(lab);
	return status;
}

/* -------------------------------------------------------------------------- the memory */

static void map(struct lab *lab, int protection, int flags, int fd)
{
	lab->area = mmap(NULL, AREA, protection, flags, fd, 0);
	if (lab->area == MAP_FAILED)
		die("mmap:");
	for (size_t at = 0; at < AREA; at += PAGE)
		(void)*(const volatile uint8_t *)(lab->area + at);
}

static void map_file(struct lab *lab, int protection, int flags)
{
	int fd = open(lab->path, O_RDONLY);

	if (fd < 0)
		die("%s:", lab->path);
	map(lab, protection, flags, fd);
	close(fd);
}

static void make_shared_file(struct lab *lab)
{
	map_file(lab, PROT_READ, MAP_SHARED);
}

static void make_private_file(struct lab *lab)
{
	map_file(lab, PROT_READ, MAP_PRIVATE);
}

static void make_writable_private_file(struct lab *lab)
{
	map_file(lab, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void make_read_only_zeroes(struct lab *lab)
{
	map(lab, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void make_zeroes(struct lab *lab)
{
	map(lab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Memory of equal pages, all of which the device has. */
static void make_same(struct lab *lab)
{
	static const struct use write = { "WRITE", 0, IBV_WR_RDMA_WRITE, false, 0 };

	make_zeroes(lab);
	memset(lab->area, 'S', AREA);
	lab->early =
		MUST_HAVE(ibv_reg_mr(lab->node.pd, lab->area, AREA, ALL | IBV_ACCESS_ON_DEMAND));
	lab->fill = 'S';
	for (size_t at = 0; at < AREA; at += PAGE)
		if (execute(lab, &write, lab->early, lab->area + at))
			die("WRITE to memory that may be written");
	lab->fill = 'X';
}

static void make_read_only(struct lab *lab)
{
	make_same(lab);
	MUST(mprotect(lab->area, AREA, PROT_READ));
}

static void make_forked(struct lab *lab)
{
	int ends[2];
	char byte;

	make_same(lab);
	MUST(pipe(ends));
	memcpy(lab->expected, lab->area, AREA);
	lab->child = fork();
	if (lab->child < 0)
		die("fork:");
	if (!lab->child) {
		close(ends[1]);
		if (read(ends[0], &byte, 1))
			_exit(2);
		_exit(memcmp(lab->area, lab->expected, AREA) ? 1 : 0);
	}
	close(ends[0]);
	lab->go = ends[1];
}

static unsigned int pages_sharing(void)
{
	FILE *file = fopen("/sys/kernel/mm/ksm/pages_sharing", "r");
	unsigned int n;

	if (!file || fscanf(file, "%u", &n) != 1)
		die("/sys/kernel/mm/ksm/pages_sharing:");
	fclose(file);
	return n;
}

static void make_merged(struct lab *lab)
{
	double until = now() + MERGED_SECONDS;

	make_same(lab);
	if (madvise(lab->area, AREA, MADV_MERGEABLE))
		die("MADV_MERGEABLE:");
	while (pages_sharing() < PAGES - 1) {
		if (now() > until)
			die("KSM has merged %u pages within %d s, expected %u", pages_sharing(),
			    MERGED_SECONDS, PAGES - 1);
		usleep(10000);
	}
}

static const struct kind kinds[] = {
	{ "a file, mapped shared", false, make_shared_file },
	{ "a file, mapped private", false, make_private_file },
	{ "a file, mapped private and writable", true, make_writable_private_file },
	{ "read-only memory", false, make_read_only },
	{ "the zero page, read-only", false, make_read_only_zeroes },
	{ "the zero page", true, make_zeroes },
	{ "memory shared by fork", true, make_forked },
	{ "memory merged by KSM", true, make_merged },
};

/* --------------------------------------------------------------------------- the checks */

struct test_case {
	const struct kind *kind;
	const struct use *use;
	const char *region;
	const char *advice;
};

static void expect_unharmed(struct lab *lab, const struct test_case *t)
{
	static uint8_t file[AREA];
	uint8_t *zeroes;
	int fd;

	for (size_t i = 0; i < AREA; i++)
		if (lab->area[i] != lab->expected[i])
			die("%s, %s, %s, %s: byte %zu is %#x, expected %#x", t->kind->name,
			    t->region, t->advice, t->use->name, i, lab->area[i], lab->expected[i]);
	fd = open(lab->path, O_RDONLY);
	if (fd < 0 || read(fd, file, AREA) != AREA)
		die("%s:", lab->path);
	close(fd);
	if (memcmp(file, lab->file, AREA))
		die("%s, %s, %s, %s: the file has changed", t->kind->name, t->region, t->advice,
		    t->use->name);
	zeroes = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < PAGE; i++)
		if (zeroes[i])
			die("%s, %s, %s, %s: the zero page has changed", t->kind->name, t->region,
			    t->advice, t->use->name);
	MUST(munmap(zeroes, PAGE));
}

/* The expected content after a request has succeeded. */
static void note_success(struct lab *lab, const struct use *use, size_t at)
{
	uint64_t word;

	memcpy(&word, lab->expected + at, WORD);
	word += ADDEND;
	if (use->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
		memset(&word, lab->fill, WORD);
	memcpy(lab->expected + at, &word, WORD);
}

static void advise(struct lab *lab, const struct test_case *t, struct ibv_mr *mr, size_t at,
		   int advice)
{
	struct ibv_sge sge = { (uintptr_t)lab->area + at, PAGE, mr->lkey };
	bool fails = !t->kind->is_writable && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	int err = ibv_advise_mr(lab->node.pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);

	if (fails != !!err)
		die("%s, %s, %s: %s, expected %s", t->kind->name, t->region, t->advice,
		    strerror(err), fails ? "an error" : "success");
}

static void check_case(struct lab *lab, const struct test_case *t, struct ibv_mr *mr, size_t at,
		       int advice)
{
	enum ibv_wc_status expected = t->kind->is_writable ? IBV_WC_SUCCESS : t->use->refused;
	enum ibv_wc_status status;

	if (advice != NO_ADVICE)
		advise(lab, t, mr, at, advice);
	expect_unharmed(lab, t);
	status = execute(lab, t->use, mr, lab->area + at);
	if (status == IBV_WC_SUCCESS && t->kind->is_writable)
		note_success(lab, t->use, at);
	expect_unharmed(lab, t);
	if (status != expected)
		die("%s, %s, %s, %s: %s, expected %s", t->kind->name, t->region, t->advice,
		    t->use->name, ibv_wc_status_str(status), ibv_wc_status_str(expected));
}

/* Each has a page of its own. */
static size_t check_cases(struct lab *lab, struct test_case t, struct ibv_mr *region, size_t at)
{
	struct ibv_mr *mr;
	int access;

	for (size_t use = 0; use < sizeof(uses) / sizeof(uses[0]); use++)
		for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++, at += PAGE) {
			t.use = &uses[use];
			t.advice = advices[i].name;
			access = t.use->access | IBV_ACCESS_ON_DEMAND;
			mr = region;
			if (!mr && !strcmp(t.region, "explicit"))
				mr = MUST_HAVE(
					ibv_reg_mr(lab->node.pd, lab->area + at, PAGE, access));
			else if (!mr)
				mr = MUST_HAVE(ibv_reg_mr(lab->node.pd, NULL, SIZE_MAX, access));
			check_case(lab, &t, mr, at, advices[i].advice);
			if (mr != region)
				MUST(ibv_dereg_mr(mr));
		}
	return at;
}

/* Without the right to write, a region has all pages that can be read. */
static void check_reading(struct lab *lab, const struct kind *kind)
{
	static const struct use from = { "WRITE from it", 0, IBV_WR_RDMA_WRITE, true, 0 };
	uint8_t *at = lab->area + AREA - PAGE;
	struct ibv_sge sge = { (uintptr_t)at, PAGE };
	struct ibv_mr *mr = MUST_HAVE(
		ibv_reg_mr(lab->node.pd, at, PAGE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));

	sge.lkey = mr->lkey;
	MUST(ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			   IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	if (ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) != EPERM)
		die("%s: PREFETCH_WRITE of a region without write right: expected EPERM",
		    kind->name);
	if (execute(lab, &from, mr, at) || memcmp(lab->plain->addr, at, WORD))
		die("%s: cannot be read by a region without write right", kind->name);
	MUST(ibv_dereg_mr(mr));
}

static void check_kind(struct lab *lab, const struct kind *kind)
{
	struct test_case t = { .kind = kind, .region = "explicit" };
	int status = 0;
	size_t at;

	kind->make(lab);
	memcpy(lab->expected, lab->area, AREA);
	check_reading(lab, kind);
	at = check_cases(lab, t, NULL, 0);
	t.region = "implicit";
	at = check_cases(lab, t, NULL, at);
	t.region = "older";
	if (lab->early) {
		check_cases(lab, t, lab->early, at);
		MUST(ibv_dereg_mr(lab->early));
		lab->early = NULL;
	}
	if (lab->child) {
		close(lab->go);
		if (waitpid(lab->child, &status, 0) != lab->child || status)
			die("%s: memory of the child has changed", kind->name);
		lab->child = 0;
	}
	MUST(munmap(lab->area, AREA));
}

int main(int argc, char **argv)
{
	static struct lab lab;

	if (argc != 2)
		die("usage: pvr_odp_rights FILE");
	lab_open(&lab, argv[1]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		check_kind(&lab, &kinds[i]);
	puts("odp_rights: ok");
	return 0;
}
