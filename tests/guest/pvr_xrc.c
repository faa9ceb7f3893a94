// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_xrc FILE
 *
 * Checks that an XRC target outlives the process that has created it. FILE stands for the
 * XRC domain. One device talks to itself:
 *
 *   main      has the initiator, and sends
 *   creator   creates the target and ends
 *   receiver  opens the target, has the SRQ, and is killed
 *
 * After that no process has the target, so requests are refused or get no answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"

#define MESSAGES 100
#define BYTES 4096

/* What the processes tell each other, in shared memory. */
struct shared {
	struct address initiator;
	_Atomic uint32_t target; /* its number */
	_Atomic uint32_t opened, received, srqn;
};

static const char *file;

static void await(_Atomic uint32_t *value, uint32_t least, const char *what)
{
	double end = now() + 30;

	while (*value < least) {
		if (now() > end)
			die("%s: %u after 30 s, expected %u", what, *value, least);
		usleep(1000);
	}
}

static struct ibv_xrcd *open_domain(struct node *node)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open(file, O_RDONLY | O_CREAT, 0600),
		.oflags = O_CREAT,
	};

	if (attr.fd < 0)
		die("%s:", file);
	return MUST_HAVE(ibv_open_xrcd(node->ctx, &attr));
}

/* A target is connected like an RC queue pair, but takes no attributes of a requester. */
static void connect_target(struct node *node, struct ibv_qp *qp, const struct address *to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = TEST_PORT,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = to->mtu,
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = TEST_PORT,
			     .grh = { .dgid = node->gid,
				      .sgid_index = node->gid_index,
				      .hop_limit = 64 } },
	};
	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER));
}

static void create(struct shared *shared)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct node node;
	struct ibv_qp *qp;

	node_open(&node);
	attr.xrcd = open_domain(&node);
	qp = MUST_HAVE(ibv_create_qp_ex(node.ctx, &attr));
	connect_target(&node, qp, &shared->initiator);
	shared->target = qp->qp_num;
	await(&shared->opened, 1, "target opened");
}

static void post(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = BYTES, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(ibv_post_srq_recv(srq, &wr, &bad));
}

static void check_message(struct shared *shared, const struct ibv_wc *wc, const uint8_t *memory,
			  uint32_t number)
{
	if (wc->status || wc->wr_id != number || wc->qp_num != shared->target ||
	    wc->byte_len != BYTES)
		die("message %u: request %llu of qp %#x with %u bytes: %s", number,
		    (unsigned long long)wc->wr_id, wc->qp_num, wc->byte_len,
		    ibv_wc_status_str(wc->status));
	for (uint32_t i = 0; i < BYTES; i++)
		if (memory[i] != (uint8_t)number)
			die("message %u: byte %u is %#x", number, i, memory[i]);
}

static void receive(struct shared *shared)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_open_attr target = { .comp_mask = IBV_QP_OPEN_ATTR_NUM |
							IBV_QP_OPEN_ATTR_XRCD |
							IBV_QP_OPEN_ATTR_TYPE,
					   .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_srq *srq;
	struct node node;
	struct ibv_mr *mr;
	uint32_t srqn;

	node_open(&node);
	mr = mr_create(&node, BYTES, IBV_ACCESS_LOCAL_WRITE);
	attr.pd = node.pd;
	attr.xrcd = target.xrcd = open_domain(&node);
	attr.cq = MUST_HAVE(ibv_create_cq(node.ctx, 4, NULL, NULL, 0));
	srq = MUST_HAVE(ibv_create_srq_ex(node.ctx, &attr));
	MUST(ibv_get_srq_num(srq, &srqn));
	await(&shared->target, 1, "target created");
	target.qp_num = shared->target;
	MUST_HAVE(ibv_open_qp(node.ctx, &target));
	shared->srqn = srqn + 1;
	shared->opened = 1;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ibv_wc wc;

		post(srq, mr, i);
		wc = cq_wait(attr.cq);
		check_message(shared, &wc, mr->addr, i);
		shared->received++;
	}
	pause(); /* until it is killed */
}

static pid_t start(void (*run)(struct shared *shared), struct shared *shared)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork:");
	if (pid)
		return pid;
	run(shared);
	_exit(0);
}

static struct ibv_qp *create_initiator(struct node *node, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.send_cq = cq,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = node->pd,
	};
	struct ibv_qp *qp = MUST_HAVE(ibv_create_qp_ex(node->ctx, &attr));
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = TEST_PORT };

	MUST(ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void connect_initiator(struct node *node, struct ibv_qp *qp, uint32_t target, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = node->port.active_mtu,
		.dest_qp_num = target,
		.ah_attr = { .is_global = 1,
			     .port_num = TEST_PORT,
			     .grh = { .dgid = node->gid,
				      .sgid_index = node->gid_index,
				      .hop_limit = 64 } },
	};

	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .sq_psn = psn,
				     .timeout = 12,
				     .retry_cnt = 3,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	MUST(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static enum ibv_wc_status send(struct ibv_qp *qp, struct ibv_mr *mr, uint32_t srqn)
{
	post_send(qp, .opcode = IBV_WR_SEND, ONE_SGE(mr, mr->addr, BYTES),
		  .qp_type.xrc.remote_srqn = srqn);
	return cq_wait(qp->send_cq).status;
}

static void end(pid_t pid, int signal, const char *what)
{
	int status;

	if (signal)
		kill(pid, signal);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid:");
	if (signal ? !WIFSIGNALED(status) : status)
		die("the %s has ended with status %#x", what, status);
}

int main(int argc, char **argv)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t creator, receiver;
	enum ibv_wc_status status;
	struct node node;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	if (argc != 2)
		die("usage: pvr_xrc FILE");
	if (shared == MAP_FAILED)
		die("mmap:");
	file = argv[1];
	node_open(&node);
	mr = mr_create(&node, BYTES, IBV_ACCESS_LOCAL_WRITE);
	cq = MUST_HAVE(ibv_create_cq(node.ctx, 1, NULL, NULL, 0));
	qp = create_initiator(&node, cq);
	shared->initiator = qp_address(&node, qp);
	creator = start(create, shared);
	receiver = start(receive, shared);
	end(creator, 0, "creator");
	connect_initiator(&node, qp, shared->target, shared->initiator.psn);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		memset(mr->addr, (int)i, BYTES);
		status = send(qp, mr, shared->srqn - 1);
		if (status)
			die("message %u: %s", i, ibv_wc_status_str(status));
	}
	await(&shared->received, MESSAGES, "messages received");
	printf("xrc: %u messages after the end of the target's creator\n", MESSAGES);
	end(receiver, SIGKILL, "receiver");
	status = send(qp, mr, shared->srqn - 1);
	if (status != IBV_WC_RETRY_EXC_ERR && status != IBV_WC_REM_INV_REQ_ERR)
		die("message to a killed process: %s", ibv_wc_status_str(status));
	printf("xrc: the receiver was killed, then %s\n", ibv_wc_status_str(status));
	MUST(ibv_destroy_qp(qp));
	MUST(ibv_destroy_cq(cq));
	mr_destroy(mr);
	node_close(&node);
	unlink(file);
	return 0;
}
