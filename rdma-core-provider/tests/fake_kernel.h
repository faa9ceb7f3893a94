/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Runs the provider without kernel and device: fake uverbs commands replace the kernel,
 * the doorbell page is memory, and a test acts as the device by writing CQEs and indices.
 */
#ifndef PVR_TEST_FAKE_KERNEL_H
#define PVR_TEST_FAKE_KERNEL_H

#include "pvrdma.h"
#include "test.h"

#define FAKE_QP_TBL_SIZE 16
#define FAKE_PD_HANDLE 0x123456u
#define FAKE_KERNEL_PD 41u /* handles in the kernel of an exported PD and MR */
#define FAKE_PDN 0x00abcdefu /* handle in the device of that PD */
#define FAKE_KERNEL_MR 43u
#define FAKE_MR_KEY 0x4300u
#define FAKE_DM 77u
#define FAKE_DM_LENGTH 5000u
#define FAKE_DM_OFFSET 0x3000u /* of its mapping */
#define FAKE_RESOLVED_MAC "\x02\x11\x22\x33\x44\x55"
#define FAKE_MAX_OBJECTS 16
#define FAKE_MAX_WR 16384u /* limits of the device */
#define FAKE_MAX_SGE 64u
#define FAKE_MAX_CQE 262144u
#define FAKE_MAX_SRQ 32u

/* Existing objects of a kind; fake_teardown() destroys them. */
struct fake_objects {
	void *object[FAKE_MAX_OBJECTS];
	size_t num;
};

/* A context with a PD and two CQs of 8 entries, and the state of the fake kernel. */
struct fake {
	struct pvr_context ctx;
	struct verbs_device dev;
	struct pvr_pd pd;
	struct ibv_context *ibctx; /* ctx */
	struct ibv_pd *ibpd; /* pd */
	struct ibv_cq *send_cq, *recv_cq;
	struct fake_objects cqs, srqs, mrs, mws;
	uint32_t uar[1024];
	uint32_t next_handle; /* of any object; QPs have number 0x100 + handle */
	int fail; /* errno of the next command; 0 after it */
	int fails_again; /* further commands that return it */
	int fail_query; /* errno of queries of PDs, DMs and clocks */
	int resolved; /* number of resolved addresses */
	int async[2]; /* pipe of the async file; bytes in it are unread events */
	int port_queries; /* number of QUERY_PORT, which check for a dead device */
	int pds, dms, xrcds; /* existing PDs, DMs, XRC domains */
	uint32_t xrc_srqn; /* number of the next XRC SRQ */
	bool repeats_srqn; /* and of all later ones */
	int srq_mask; /* of the last modification of an SRQ */
	struct ibv_srq_attr srq_attr;
	struct ibv_modify_cq_attr modified_cq; /* the last ibv_modify_cq() */
	struct ibv_cq_init_attr_ex cq_attr; /* of the last CQ in the kernel */
	struct pvr_clock_query_resp clocks; /* of device and guest */
	int clock_queries;
	bool resized_locked; /* locks were held during the last resize */
	const uint32_t *resized_tail; /* prod_tail after a resize; NULL: the right one */
	struct ibv_qp_cap asked; /* requested sizes of the last QP */
	uint64_t iova, length; /* of the last MR */
	int access;
	uint32_t rereg_flags;
	void (*in_create_qp)(void), (*in_destroy_qp)(void); /* called by these commands, or NULL */
	void (*in_destroy_srq)(void); /* the same */
	uint32_t xrc_srqs, destroyed_srqs; /* number of created XRC SRQs, and of destroyed SRQs */
	uint32_t destroyed_qps; /* number of destroyed QPs in the kernel */
	int fail_dontfork; /* errno of ibv_dontfork_range() */
	unsigned int dontfork_calls; /* of it that succeeded */
	size_t not_inherited; /* bytes that children of fork() do not get */
	void (*end)(void); /* fake_teardown() calls it first, unless NULL */
	/* The mark of ibv_qp_to_qp_ex() in struct verbs_qp. Older libraries have it farther in front. */
	size_t qp_ex_mark;
};

extern struct fake fake;

int fake_setup(void **state);
int fake_teardown(void **state);

/*
 * TEST(fixture, name) { ... } is a test with a context as above. It begins with
 * fixture_begin(), which adds to the context.
 */
#define TEST(fixture, test)                         \
	static void test##_body(void);              \
	TEST_SETUP(fake_setup, fake_teardown, test) \
	{                                           \
		fixture##_begin();                  \
		test##_body();                      \
	}                                           \
	static void test##_body(void)

/* The same for each row of the array rows, see TEST_CASES_WITH(). */
#define TEST_CASES(fixture, test, rows)                                     \
	static void test##_body(const __typeof__((rows)[0]) *row);          \
	TEST_CASES_WITH(void *state, fake_setup, fake_teardown, test, rows) \
	{                                                                   \
		fixture##_begin();                                          \
		test##_body(row);                                           \
	}                                                                   \
	static void test##_body(const __typeof__((rows)[0]) *row)

/* The fixture "fake" is only the context. */
static inline void fake_begin(void)
{
}

/* Asserts that call returns NULL and sets errno to err. */
#define assert_fails(call, err)               \
	do {                                  \
		errno = 0;                    \
		assert_null(call);            \
		assert_int_equal(errno, err); \
	} while (0)

/* ------------------------------------------------------------------ objects */

/*
 * Creates a QP in RTS, in the fixture's PD, with the fixture's CQs if attr has none.
 * Returns NULL and sets errno if that fails.
 */
struct ibv_qp *fake_create_qp(struct ibv_qp_init_attr *attr);
/* The same for ibv_create_qp_ex(3); adds the PD to attr->comp_mask. */
struct ibv_qp *fake_create_qp_ex(struct ibv_qp_init_attr_ex *attr);
/* Creates a QP, which must not fail. */
struct ibv_qp *fake_qp(enum ibv_qp_type type, uint32_t send_wr, uint32_t send_sge, uint32_t recv_wr,
		       uint32_t recv_sge);
int fake_reset_qp(struct ibv_qp *qp);
struct ibv_srq *fake_srq(uint32_t max_wr, uint32_t max_sge);
struct ibv_cq *fake_cq(int cqe);
/* FAKE_CQ_EX(.cqe = 8, ...): ibv_create_cq_ex(3). */
#define FAKE_CQ_EX(...) pvr_create_cq_ex(fake.ibctx, &(struct ibv_cq_init_attr_ex){ __VA_ARGS__ })
/* A CQ with all readable fields that takes no lock. */
struct ibv_cq_ex *fake_single_threaded_cq(void);

static inline uint32_t fake_handle(struct ibv_qp *qp)
{
	return to_pvr_qp(qp)->handle;
}

static inline struct pvr_wq *fake_sq(struct ibv_qp *qp)
{
	return &to_pvr_qp(qp)->sq;
}

static inline struct pvr_wq *fake_rq(struct ibv_qp *qp)
{
	return &to_pvr_qp(qp)->rq;
}

/* The suppression words of the device in the first page of a QP or SRQ. */
struct fake_db_suppress {
	_Atomic uint32_t sq, rq;
};
struct fake_db_suppress *fake_db_suppress(const struct pvr_buf *buf);

/* ------------------------------------------------------------------ posting */

/* Post a request and assert bad_wr. Return an errno. */
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr);
/* FAKE_SEND(qp, err, .opcode = IBV_WR_SEND, ...): the same, and asserts the errno. */
#define FAKE_SEND(qp, err, ...) \
	assert_int_equal(fake_post_send(qp, &(struct ibv_send_wr){ __VA_ARGS__ }), err)
#define FAKE_RECV(qp, err, ...) \
	assert_int_equal(fake_post_recv(qp, &(struct ibv_recv_wr){ __VA_ARGS__ }), err)
#define FAKE_SRQ_RECV(srq, err, ...) \
	assert_int_equal(fake_post_srq_recv(srq, &(struct ibv_recv_wr){ __VA_ARGS__ }), err)

/* SGEs of requests, each with other values. */
extern struct ibv_sge fake_sges[3];
#define FAKE_SGES(num) .sg_list = fake_sges, .num_sge = (num)

/* Returns the last value of a doorbell (PVRDMA_UAR_*_OFFSET) and clears it. */
uint32_t fake_rung(size_t offset);
#define FAKE_SEND_RUNG(qp) (PVR_DB_QP_SEND | fake_handle(qp))
#define FAKE_RECV_RUNG(qp) (PVR_DB_QP_RECV | fake_handle(qp))
#define FAKE_SRQ_RUNG(srq) (PVR_DB_SRQ_RECV | to_pvr_srq(srq)->handle)

/* --------------------------------------------------------------- the device */

/*
 * FAKE_COMPLETE(cq, .qp = fake_handle(qp), ...): writes the CQE of a request, which it posts
 * before.
 */
#define FAKE_COMPLETE(cq, ...) fake_complete(cq, &(struct pvr_cqe){ __VA_ARGS__ })
void fake_complete(struct ibv_cq *ibcq, const struct pvr_cqe *cqe);
/* The same without a post: the wr_id of a send is its number, from 0 on. */
#define FAKE_CQE(cq, ...) fake_write_cqe(cq, &(struct pvr_cqe){ __VA_ARGS__ })
void fake_write_cqe(struct ibv_cq *ibcq, const struct pvr_cqe *cqe);
/* An empty CQ continues at an index, so that the next CQEs wrap. */
void fake_start_at(struct ibv_cq *ibcq, uint32_t idx);
/* The device takes n elements: advances cons_head. */
void fake_take(struct pvr_wq *wq, uint32_t n);
/* Also ends the requests, as if their completions were polled. */
void fake_consume(struct pvr_wq *wq, uint32_t n);

struct pvr_sq_wqe *fake_send_wqe(struct ibv_qp *ibqp, uint32_t slot);
/* Returns the wr_id of the application. */
static inline uint64_t fake_send_wr_id(struct ibv_qp *ibqp, uint32_t slot)
{
	return fake_sq(ibqp)->wr_ids[slot];
}
/*
 * FAKE_EXPECT_WQE(qp, slot, sges, .opcode = ..., ...): asserts all bytes of the WQE: its
 * header, and the SGEs behind it unless sges is NULL.
 */
#define FAKE_EXPECT_WQE(qp, slot, sges, ...) \
	fake_expect_wqe(qp, slot, sges, &(struct pvr_sq_wqe){ __VA_ARGS__ })
void fake_expect_wqe(struct ibv_qp *qp, uint32_t slot, const struct ibv_sge *sges,
		     const struct pvr_sq_wqe *expected);
/* The same of a bind with FAKE_EXPECT_BIND(qp, slot, wr_id, flags, .addr = ..., ...). */
#define FAKE_EXPECT_BIND(qp, slot, wr_id, flags, ...) \
	fake_expect_bind(qp, slot, wr_id, flags, &(struct pvr_wqe_bind_mw){ __VA_ARGS__ })
void fake_expect_bind(struct ibv_qp *qp, uint32_t slot, uint64_t wr_id, uint32_t flags,
		      const struct pvr_wqe_bind_mw *bind);

/* ------------------------------------------------------------------ threads */

#define FAKE_THREADS 4

/* Starts FAKE_THREADS threads at the same time; each calls run(its number). */
void fake_threads_start(void (*run)(uintptr_t number));
bool fake_threads_running(void);
void fake_threads_join(void);

/*
 * A device in a thread of its own. In each round it calls round() while the test does
 * something between fake_race_begin() and fake_race_wait():
 *
 *	fake_race_start(round);
 *	while (fake_race_next()) {
 *		fake_race_begin();
 *		...
 *		fake_race_wait();
 *	}
 *
 * There are FAKE_RACE_ROUNDS, fewer beside much other load.
 */
#define FAKE_RACE_ROUNDS 200000
void fake_race_start(void (*round)(void));
bool fake_race_next(void);
void fake_race_begin(void);
void fake_race_wait(void);

#endif
