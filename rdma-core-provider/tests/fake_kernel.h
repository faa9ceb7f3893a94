/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Runs the provider without kernel and device: fake uverbs commands replace the kernel,
 * the doorbell page is memory, and a test acts as the device by writing CQEs and indices.
 */
#ifndef PVR_TEST_FAKE_KERNEL_H
#define PVR_TEST_FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ccan/array_size.h>

#include "pvrdma.h"

#define FAKE_QP_TBL_SIZE 8
#define FAKE_PD_HANDLE 0x123456u
#define FAKE_RESOLVED_MAC "\x02\x11\x22\x33\x44\x55"

/* A context with a PD and two CQs of 8 entries, and the state of the fake kernel. */
struct fake {
	struct pvr_context ctx;
	struct verbs_device dev;
	struct pvr_pd pd;
	struct ibv_cq *send_cq, *recv_cq;
	uint32_t uar[1024];
	uint32_t next_handle; /* of any object; QPs have number 0x100 + handle */
	int fail; /* errno of the next command; 0 after it */
	int resolved; /* number of resolved addresses */
	int async[2]; /* pipe of the async file; bytes in it are unread events */
	int port_queries; /* number of QUERY_PORT, which check for a dead device */
	int pds; /* existing PDs */
	int srq_mask; /* of the last modification of an SRQ */
	struct ibv_srq_attr srq_attr;
	bool resized_locked; /* locks were held during the last resize */
	struct ibv_qp_cap asked; /* requested sizes of the last QP */
	uint64_t iova; /* of the last MR */
	uint32_t rereg_flags;
	bool short_qp_ex; /* act as libibverbs without ibv_wr_atomic_write() */
};

extern struct fake fake;

/* The fixture "fake": a context as above. */
int fake_setup(void **state);
int fake_teardown(void **state);

/* main.c: tests run in the order of registration. */
void fake_add_test(struct CMUnitTest test);

/*
 * TEST(fixture, name) { ... } defines a test and registers it. It runs between fixture_setup() and
 * fixture_teardown().
 */
#define TEST(fixture, test)                                                       \
	static void test(void **state);                                           \
	__attribute__((constructor)) static void register_##test(void)            \
	{                                                                         \
		fake_add_test((struct CMUnitTest)cmocka_unit_test_setup_teardown( \
			test, fixture##_setup, fixture##_teardown));              \
	}                                                                         \
	static void test(void **state)

struct ibv_qp *fake_qp(enum ibv_qp_type type, uint32_t send_wr, uint32_t send_sge, uint32_t recv_wr,
		       uint32_t recv_sge);
/* Destroys a QP, whose handle the next QP gets. */
void fake_destroy_qp(struct ibv_qp *qp);
/* Fails the test with the name of a table's row. */
void fake_check_err(const char *what, int err, int expected);
/* Asserts that call returns NULL and sets errno to err. */
#define assert_fails(call, err)               \
	do {                                  \
		errno = 0;                    \
		assert_null(call);            \
		assert_int_equal(errno, err); \
	} while (0)
/* Returns the last value of a doorbell (PVRDMA_UAR_*_OFFSET) and clears it. */
uint32_t fake_rung(size_t offset);
/* Writes a CQE, as the device does. */
void fake_complete(struct ibv_cq *ibcq, const struct pvrdma_cqe *cqe);
/* Advances cons_head by n elements, as the device does. */
void fake_consume(struct pvr_wq *wq, uint32_t n);
struct pvrdma_sq_wqe_hdr *fake_send_wqe(struct ibv_qp *ibqp, uint32_t slot);

#endif
