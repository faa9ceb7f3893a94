// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Changes of QPs in the driver, compiled for user space with the fuzzer's kernel: the commands
 * that the device gets for them, and whether the driver waits.
 */
#include "pvrdma.h"
#include "test.h"
#include "wq.h"

#define CMDS_MAX 8
#define HANDLE 7
#define INIT_MASK (IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                   \
	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | \
	 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                          \
	(IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN | \
	 IB_QP_MAX_QP_RD_ATOMIC)

static struct {
	struct pvr_dev dev;
	struct pvr_qp qp;
	struct ib_umem *umem;
	struct {
		struct pvr_cmd_modify_qp req;
		bool posted;
	} cmds[CMDS_MAX];
	u32 num; /* commands */
	int err; /* of the next command that is not posted */
	u32 queried_access;
} w;

/* --------------------------------------------------------- the kernel and other files */

bool ib_modify_qp_is_ok(enum ib_qp_state cur, enum ib_qp_state next, enum ib_qp_type type, int mask)
{
	(void)cur;
	(void)next;
	(void)type;
	(void)mask;
	return true;
}

static void record(const union pvr_cmd_req *req, bool posted)
{
	assert_in_range(w.num, 0, CMDS_MAX - 1);
	assert_int_equal(req->hdr.cmd, PVR_CMD_MODIFY_QP);
	assert_int_equal(req->modify_qp.qp_handle, HANDLE);
	w.cmds[w.num].req = req->modify_qp;
	w.cmds[w.num++].posted = posted;
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	(void)dev;
	memset(resp, 0, sizeof(*resp));
	if (req->hdr.cmd == PVR_CMD_QUERY_QP) {
		resp->query_qp.attrs.qp_state = w.qp.state;
		resp->query_qp.attrs.qp_access_flags = w.queried_access;
		return 0;
	}
	record(req, false);
	return w.err;
}

int pvr_cmd_post_modify_qp(struct pvr_dev *dev, union pvr_cmd_req *req)
{
	(void)dev;
	record(req, true);
	return 0;
}

void pvr_ah_attr_to_dev(struct pvr_ah_attr *to, const struct rdma_ah_attr *from)
{
	(void)to;
	(void)from;
}

void pvr_ah_attr_from_dev(struct rdma_ah_attr *to, const struct pvr_ah_attr *from)
{
	(void)to;
	(void)from;
}

void pvr_cq_purge(struct pvr_cq *cq, struct pvr_qp *qp)
{
	(void)cq;
	(void)qp;
}

void pvr_wq_reset(struct pvr_wq *wq, struct pvr_cq *cq)
{
	(void)wq;
	(void)cq;
}

/* ------------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.caps.max_pkeys = 2; /* more than the device accepts */
	w.dev.caps.max_qp_init_rd_atom = 16;
	w.dev.caps.max_qp_rd_atom = 16;
	w.qp.ibqp.device = &w.dev.ibdev;
	w.qp.ibqp.qp_type = IB_QPT_RC;
	w.qp.handle = HANDLE;
	w.qp.sbuf = (struct ib_umem *)&w.umem;
	mutex_init(&w.qp.lock);
	return 0;
}

#define TEST_QP(name) TEST_SETUP(set_up, NULL, name)

static int modify(enum ib_qp_state to, int mask, int access)
{
	struct ib_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qp_access_flags = access,
	};

	return pvr_modify_qp(&w.qp.ibqp, &attr, mask, NULL);
}

static void to_init(int access)
{
	assert_int_equal(modify(IB_QPS_INIT, INIT_MASK, access), 0);
}

static void to_rtr(void)
{
	assert_int_equal(modify(IB_QPS_RTR, RTR_MASK, 0), 0);
}

static void assert_cmd(u32 i, enum pvr_qp_state to, bool posted)
{
	assert_in_range(i, 0, w.num - 1);
	assert_int_equal(w.cmds[i].req.attrs.qp_state, to);
	assert_int_equal(w.cmds[i].posted, posted);
}

static void assert_access(u32 i, u32 access)
{
	assert_true(w.cmds[i].req.attr_mask & PVR_QPA_ACCESS_FLAGS);
	assert_int_equal(w.cmds[i].req.attrs.qp_access_flags, access);
}

static int queried_access(void)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	assert_int_equal(pvr_query_qp(&w.qp.ibqp, &attr, 0, &init), 0);
	return attr.qp_access_flags;
}

TEST_QP(test_connection_waits_for_rtr_and_error)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_WRITE);
	to_rtr();
	assert_int_equal(modify(IB_QPS_RTS, RTS_MASK, 0), 0);
	assert_int_equal(modify(IB_QPS_ERR, IB_QP_STATE, 0), 0);
	assert_int_equal(w.num, 4);
	assert_cmd(0, PVR_QPS_INIT, true);
	assert_cmd(1, PVR_QPS_RTR, false);
	assert_cmd(2, PVR_QPS_RTS, true);
	assert_cmd(3, PVR_QPS_ERR, false);
}

/* From RTR on the peer uses the rights. */
TEST_QP(test_rights_that_change_with_rts_are_waited_for)
{
	to_init(PVR_ACCESS_REMOTE_WRITE);
	to_rtr();
	assert_int_equal(modify(IB_QPS_RTS, RTS_MASK | IB_QP_ACCESS_FLAGS, 0), 0);
	assert_cmd(2, PVR_QPS_RTS, false);
	assert_access(2, 0);
}

TEST_QP(test_rights_without_a_state_are_waited_for)
{
	to_init(PVR_ACCESS_REMOTE_WRITE);
	to_rtr();
	assert_int_equal(modify(IB_QPS_RTS, RTS_MASK, 0), 0);
	assert_int_equal(modify(IB_QPS_RTS, IB_QP_ACCESS_FLAGS, 0), 0);
	assert_cmd(3, 0, false);
	assert_access(3, 0);
}

TEST_QP(test_reset_is_waited_for)
{
	to_init(0);
	assert_int_equal(modify(IB_QPS_RESET, IB_QP_STATE, 0), 0);
	assert_cmd(1, PVR_QPS_RESET, false);
}

TEST_QP(test_second_init_reaches_the_device_with_rtr)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	to_init(PVR_ACCESS_REMOTE_WRITE);
	assert_int_equal(w.num, 1);
	to_rtr();
	assert_int_equal(w.cmds[1].req.attr_mask, RTR_MASK | PVR_QPA_ACCESS_FLAGS);
	assert_access(1, PVR_ACCESS_REMOTE_WRITE);
}

TEST_QP(test_access_flags_of_rtr_replace_kept_ones)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	assert_int_equal(modify(IB_QPS_RTR, RTR_MASK | IB_QP_ACCESS_FLAGS, PVR_ACCESS_REMOTE_WRITE),
			 0);
	assert_access(1, PVR_ACCESS_REMOTE_WRITE);
	w.queried_access = PVR_ACCESS_REMOTE_WRITE;
	assert_int_equal(queried_access(), PVR_ACCESS_REMOTE_WRITE);
}

TEST_QP(test_flags_set_without_a_state_replace_kept_ones)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	assert_int_equal(modify(IB_QPS_INIT, IB_QP_ACCESS_FLAGS, PVR_ACCESS_REMOTE_WRITE), 0);
	assert_int_equal(w.num, 2);
	to_rtr();
	assert_int_equal(w.cmds[2].req.attr_mask, RTR_MASK);
}

TEST_QP(test_refused_rtr_leaves_the_kept_flags)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	w.err = -EINVAL;
	assert_int_equal(modify(IB_QPS_RTR, RTR_MASK, 0), -EINVAL);
	w.err = 0;
	to_rtr();
	assert_access(2, PVR_ACCESS_REMOTE_READ);
}

TEST_QP(test_kept_flags_end_with_a_reset)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	assert_int_equal(modify(IB_QPS_RESET, IB_QP_STATE, 0), 0);
	to_init(0);
	to_rtr();
	assert_int_equal(w.cmds[3].req.attr_mask, RTR_MASK);
}

TEST_QP(test_query_reports_kept_flags)
{
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	assert_int_equal(queried_access(), PVR_ACCESS_REMOTE_READ);
	to_rtr();
	assert_int_equal(queried_access(), 0);
}

TEST_QP(test_dead_device_keeps_no_flags)
{
	to_init(0);
	w.dev.flags |= 1ul << PVR_DEV_DEAD;
	assert_int_equal(modify(IB_QPS_INIT, INIT_MASK, PVR_ACCESS_REMOTE_READ), -EIO);
}

/* The Q_Key of datagrams is checked in INIT, so the device gets it at once. */
TEST_QP(test_second_init_of_ud_is_a_command)
{
	const int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY;

	w.qp.ibqp.qp_type = IB_QPT_UD;
	assert_int_equal(modify(IB_QPS_INIT, mask, 0), 0);
	assert_int_equal(modify(IB_QPS_INIT, mask, 0), 0);
	assert_int_equal(w.num, 2);
	assert_cmd(1, PVR_QPS_INIT, true);
}

/* Only the device knows the error. */
TEST_QP(test_values_that_a_device_refuses_are_not_posted)
{
	static const struct {
		struct ib_qp_attr attr;
		int mask;
	} bad[] = {
		{ { .pkey_index = 1 }, IB_QP_PKEY_INDEX },
		{ { .timeout = 32 }, IB_QP_TIMEOUT },
		{ { .retry_cnt = 8 }, IB_QP_RETRY_CNT },
		{ { .rnr_retry = 8 }, IB_QP_RNR_RETRY },
		{ { .cur_qp_state = IB_QPS_RTR }, IB_QP_CUR_STATE },
		{ { .qp_state = IB_QPS_RTS }, IB_QP_AV },
	};
	struct ib_qp_attr attr;

	w.err = -EINVAL;
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		w.num = 0;
		w.qp.state = IB_QPS_RTR;
		attr = bad[i].attr;
		attr.qp_state = IB_QPS_RTS;
		assert_int_equal(pvr_modify_qp(&w.qp.ibqp, &attr, RTS_MASK | bad[i].mask, NULL),
				 -EINVAL);
		assert_cmd(0, PVR_QPS_RTS, false);
		assert_int_equal(w.qp.state, IB_QPS_RTR);
	}
}

/* From SQD or SQE the device may refuse it. */
TEST_QP(test_rts_of_a_drained_queue_is_waited_for)
{
	w.qp.state = IB_QPS_SQD;
	assert_int_equal(modify(IB_QPS_RTS, IB_QP_STATE, 0), 0);
	assert_cmd(0, PVR_QPS_RTS, false);
}

TEST_QP(test_changes_of_xrc_targets_are_waited_for)
{
	w.qp.ibqp.qp_type = IB_QPT_XRC_TGT;
	to_init(0);
	to_init(PVR_ACCESS_REMOTE_READ);
	assert_int_equal(w.num, 2);
	assert_cmd(0, PVR_QPS_INIT, false);
	assert_cmd(1, PVR_QPS_INIT, false);
}
