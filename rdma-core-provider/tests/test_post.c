// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fake_kernel.h"

#define SEND_RUNG(qp) (PVR_DB_QP_SEND | to_pvr_qp(qp)->handle)
#define RECV_RUNG(qp) (PVR_DB_QP_RECV | to_pvr_qp(qp)->handle)

static struct ibv_sge sges[3] = {
	{ .addr = 0x1000, .length = 10, .lkey = 1 },
	{ .addr = 0x2000, .length = 20, .lkey = 2 },
	{ .addr = 0x3000, .length = 30, .lkey = 3 },
};

static struct ibv_send_wr write_wr(void)
{
	return (struct ibv_send_wr){
		.wr_id = 0x1122334455667788,
		.sg_list = sges,
		.num_sge = 2,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		.imm_data = htonl(0xabcd),
		.wr.rdma = { .remote_addr = 0x7777000, .rkey = 0x99 },
	};
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = pvr_post_send(qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

TEST(fake, test_queues_have_the_strides_of_the_abi)
{
	struct pvr_qp *qp = to_pvr_qp(fake_qp(IBV_QPT_RC, 5, 4, 3, 2));

	assert_int_equal(qp->sq.num, 8);
	assert_int_equal(1 << qp->sq.stride_shift, 256);
	assert_int_equal(qp->rq.num, 4);
	assert_int_equal(1 << qp->rq.stride_shift, 64);
	assert_int_equal(qp->sbuf.size, 2 * 4096);
	assert_int_equal((uintptr_t)qp->sbuf.addr % 4096, 0);
}

TEST(fake, test_create_qp_tells_the_real_caps)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 5, .max_inline_data = 64 },
	};

	assert_non_null(pvr_create_qp(&fake.pd.ibv_pd, &attr));
	assert_int_equal(attr.cap.max_send_wr, 8);
	assert_int_equal(attr.cap.max_send_sge, 1);
	assert_int_equal(attr.cap.max_recv_wr, 1);
	assert_int_equal(attr.cap.max_inline_data, 0);
}

TEST(fake, test_create_qp_refuses)
{
	struct ibv_qp_init_attr good = { .send_cq = fake.send_cq,
					 .recv_cq = fake.recv_cq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr attr = good;

	attr.qp_type = IBV_QPT_UC;
	assert_fails(pvr_create_qp(&fake.pd.ibv_pd, &attr), EOPNOTSUPP);
	attr = good;
	attr.cap.max_send_wr = 0x80000001;
	assert_fails(pvr_create_qp(&fake.pd.ibv_pd, &attr), EINVAL);
	attr = good;
	attr.cap.max_recv_sge = 1000;
	assert_fails(pvr_create_qp(&fake.pd.ibv_pd, &attr), EINVAL);
	fake.fail = ENOSPC;
	assert_fails(pvr_create_qp(&fake.pd.ibv_pd, &good), ENOSPC);
}

TEST(fake, test_create_qp_refuses_a_handle_beyond_the_table)
{
	struct ibv_qp_init_attr attr = { .send_cq = fake.send_cq,
					 .recv_cq = fake.recv_cq,
					 .qp_type = IBV_QPT_RC };

	fake.next_handle = FAKE_QP_TBL_SIZE;
	assert_fails(pvr_create_qp(&fake.pd.ibv_pd, &attr), EPROTO);
}

TEST(fake, test_send_writes_the_element)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 3, 1, 1);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(qp, 0);
	struct ibv_send_wr wr = write_wr();

	assert_int_equal(post(qp, &wr), 0);
	assert_int_equal(hdr->wr_id, wr.wr_id);
	assert_int_equal(hdr->num_sge, 2);
	assert_int_equal(hdr->opcode, PVRDMA_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(hdr->send_flags, PVR_SEND_SIGNALED | PVR_SEND_FENCE);
	assert_int_equal(hdr->ex.imm_data, htonl(0xabcd));
	assert_int_equal(hdr->wr.rdma.remote_addr, 0x7777000);
	assert_int_equal(hdr->wr.rdma.rkey, 0x99);
	assert_memory_equal(hdr + 1, sges, 2 * sizeof(sges[0]));
	assert_int_equal(to_pvr_qp(qp)->sq.ring_shm->prod_tail, 1);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), SEND_RUNG(qp));
}

TEST(fake, test_send_leaves_nothing_of_the_slots_former_request)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(qp, 0), clean = {};
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	memset(hdr, 0xff, sizeof(*hdr));
	assert_int_equal(post(qp, &wr), 0);
	clean.opcode = PVRDMA_WR_SEND;
	assert_memory_equal(hdr, &clean, sizeof(clean));
}

TEST(fake, test_send_of_an_atomic)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(qp, 0);
	struct ibv_send_wr wr = {
		.sg_list = sges,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = { .remote_addr = 8, .compare_add = 1, .swap = 2, .rkey = 3 },
	};

	assert_int_equal(post(qp, &wr), 0);
	assert_int_equal(hdr->opcode, PVRDMA_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(hdr->wr.atomic.remote_addr, 8);
	assert_int_equal(hdr->wr.atomic.compare_add, 1);
	assert_int_equal(hdr->wr.atomic.swap, 2);
	assert_int_equal(hdr->wr.atomic.rkey, 3);
}

TEST(fake, test_send_of_a_datagram)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_UD, 1, 1, 1, 1);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(qp, 0);
	struct pvr_ah ah = { .av = { .gid_index = 5, .port_pd = 0x01000002 } };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = &ah.ibv_ah, .remote_qpn = 0x17, .remote_qkey = 0x80000000 },
	};

	assert_int_equal(post(qp, &wr), 0);
	assert_int_equal(hdr->wr.ud.remote_qpn, 0x17);
	assert_int_equal(hdr->wr.ud.remote_qkey, 0x80000000);
	assert_memory_equal(&hdr->wr.ud.av, &ah.av, sizeof(ah.av));
}

TEST(fake, test_send_of_a_chain_rings_once_for_what_fits)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 2, 1, 1, 1);
	struct ibv_send_wr wrs[3], *bad = NULL;
	int i;

	for (i = 0; i < 3; i++)
		wrs[i] = (struct ibv_send_wr){ .wr_id = i,
					       .opcode = IBV_WR_SEND,
					       .next = i < 2 ? &wrs[i + 1] : NULL };
	assert_int_equal(pvr_post_send(qp, wrs, &bad), ENOMEM);
	assert_ptr_equal(bad, &wrs[2]);
	assert_int_equal(to_pvr_qp(qp)->sq.ring_shm->prod_tail, 2);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), SEND_RUNG(qp));
}

TEST(fake, test_send_wraps)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct pvr_wq *sq = &to_pvr_qp(qp)->sq;
	uint32_t i;

	for (i = 0; i < 50; i++) {
		wr.wr_id = i;
		assert_int_equal(post(qp, &wr), 0);
		assert_int_equal(fake_send_wqe(qp, i % 4)->wr_id, i);
		assert_int_equal(sq->ring_shm->prod_tail, (i + 1) % 8);
		if (i >= 2)
			fake_consume(sq, 1);
	}
}

TEST(fake, test_send_takes_a_broken_index_for_a_full_ring)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	to_pvr_qp(qp)->sq.ring_shm->cons_head = 0xdeadbeef;
	assert_int_equal(post(qp, &wr), ENOMEM);
}

static const struct {
	enum ibv_wr_opcode opcode;
	int err;
} on_uc[] = {
	{ IBV_WR_SEND, 0 },
	{ IBV_WR_SEND_WITH_IMM, 0 },
	{ IBV_WR_RDMA_WRITE, 0 },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, 0 },
	{ IBV_WR_RDMA_READ, EINVAL },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, EINVAL },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, EINVAL },
};

TEST(fake, test_uc_neither_reads_nor_has_atomics)
{
	struct ibv_qp *qp;
	size_t i;

	fake.ctx.features = PVR_EXT_UC;
	qp = fake_qp(IBV_QPT_UC, 8, 1, 1, 1);
	for (i = 0; i < ARRAY_SIZE(on_uc); i++) {
		struct ibv_send_wr wr = { .opcode = on_uc[i].opcode };

		assert_int_equal(post(qp, &wr), on_uc[i].err);
	}
}

TEST(fake, test_send_needs_a_state_that_sends)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	for (qp->state = IBV_QPS_RESET; qp->state < IBV_QPS_RTS; qp->state++)
		assert_int_equal(post(qp, &wr), EINVAL);
	/* Posted to be flushed. */
	qp->state = IBV_QPS_ERR;
	assert_int_equal(post(qp, &wr), 0);
}

TEST(fake, test_send_drops_the_inline_flag_of_an_empty_message)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	struct ibv_sge empty = { .addr = 5, .length = 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE,
				  .num_sge = 1,
				  .sg_list = &empty };

	assert_int_equal(post(qp, &wr), 0);
	assert_int_equal(fake_send_wqe(qp, 0)->send_flags, 0);
	assert_int_equal(fake_send_wqe(qp, 0)->num_sge, 0);
}

TEST(fake, test_recv_writes_the_element)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 2, 2);
	struct pvrdma_rq_wqe_hdr *hdr = (void *)to_pvr_qp(qp)->rq.wqes;
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = sges, .num_sge = 2 }, *bad;

	qp->state = IBV_QPS_INIT;
	assert_int_equal(pvr_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(hdr->wr_id, 7);
	assert_int_equal(hdr->num_sge, 2);
	assert_memory_equal(hdr + 1, sges, 2 * sizeof(sges[0]));
	assert_int_equal(to_pvr_qp(qp)->rq.ring_shm->prod_tail, 1);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), RECV_RUNG(qp));
}

TEST(fake, test_recv_refuses)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 2);
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 3 }, *bad = NULL;

	assert_int_equal(pvr_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.num_sge = 1;
	qp->state = IBV_QPS_RESET;
	assert_int_equal(pvr_post_recv(qp, &wr, &bad), EINVAL);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(pvr_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(pvr_post_recv(qp, &wr, &bad), ENOMEM);
}

TEST(fake, test_srq_has_its_own_doorbell)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 3, .max_sge = 3 } };
	struct ibv_srq *srq = pvr_create_srq(&fake.pd.ibv_pd, &attr);
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 3 }, *bad;

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 4);
	assert_int_equal(pvr_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_SRQ_OFFSET),
			 PVR_DB_SRQ_RECV | to_pvr_srq(srq)->handle);
	assert_int_equal(pvr_destroy_srq(srq), 0);
}

TEST(fake, test_recv_on_a_qp_with_srq_is_refused)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = pvr_create_srq(&fake.pd.ibv_pd, &srq_attr);
	struct ibv_qp_init_attr attr = { .send_cq = fake.send_cq,
					 .recv_cq = fake.recv_cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_recv_wr = 9 } };
	struct ibv_qp *qp = pvr_create_qp(&fake.pd.ibv_pd, &attr);
	struct ibv_recv_wr wr = {}, *bad;

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	qp->state = IBV_QPS_RTS;
	assert_int_equal(pvr_post_recv(qp, &wr, &bad), EINVAL);
	pvr_destroy_qp(qp);
	pvr_destroy_srq(srq);
}
