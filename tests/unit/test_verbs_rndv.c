// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions of an RDMA NIC: their contents, their peer, their lifetime. libibverbs
 * and the loop are fakes of this test.
 */
#include <endian.h>
#include <poll.h>
#include <stdlib.h>

#include "test.h"
#include "net/verbs_qp.h"

#define MRS 64
#define WCS 128
#define SENT 64
#define NAME "nic0"

struct fake_mr {
	struct ibv_mr mr;
	int access;
	bool live;
};

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[WCS];
	unsigned int num, arms;
	int size;
};

struct sent {
	uint64_t id, addr, remote_addr;
	uint32_t len, lkey, rkey;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
};

static struct {
	struct fake_mr mr[MRS];
	unsigned int mrs, pds, cqs, until_refusal; /* 0: none is refused */
	struct ibv_pd pd[4];
	struct fake_cq cq[4];
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr[8]; /* of each modify */
	int mask[8];
	unsigned int modifies;
	struct sent sent[SENT];
	unsigned int num_sent;
	int post_error, dereg_error;
	struct ibv_wc *on_arm; /* arrives when the CQ is armed */
	bool failed_before_dereg; /* the queue pair was in error when the last region went */
	struct pvr_source *source[4]; /* of each: its news, its kicks */
	unsigned int sources, readies;
} fake;

static struct ibv_context context;
static struct ibv_device device = { .name = NAME };
static struct ibv_comp_channel channel;
static struct pvr_verbs_nic nic;
static struct pvr_verbs *verbs;
static uint8_t memory[1 << 16];

/* -------------------------------------------------- what the real ones would be */

const char *ibv_get_device_name(struct ibv_device *of)
{
	return of->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_ACCESS_ERR ? "remote access error" : "flushed";
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	assert_true(fake.pds < 4);
	fake.pd[fake.pds].context = of;
	return &fake.pd[fake.pds++];
}

static bool any_mr_of(const struct ibv_pd *pd)
{
	for (unsigned int i = 0; i < fake.mrs; i++) {
		if (fake.mr[i].live && fake.mr[i].mr.pd == pd)
			return true;
	}
	return false;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	assert_false(any_mr_of(pd));
	return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct fake_mr *mr = &fake.mr[fake.mrs];

	/* No region has more rights than these. */
	assert_true(access == IBV_ACCESS_REMOTE_READ || access == IBV_ACCESS_LOCAL_WRITE);
	if (fake.until_refusal && !--fake.until_refusal) {
		errno = ENOMEM;
		return NULL;
	}
	assert_true(fake.mrs < MRS);
	*mr = (struct fake_mr){
		.mr = { .pd = pd,
			.addr = addr,
			.length = length,
			.lkey = 100 + fake.mrs,
			.rkey = 200 + fake.mrs },
		.access = access,
		.live = true,
	};
	fake.mrs++;
	return &mr->mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	assert_int_equal(iova, (uintptr_t)addr);
	return reg(pd, addr, length, (int)access);
}

static bool has_failed(void)
{
	return fake.modifies && fake.attr[fake.modifies - 1].qp_state == IBV_QPS_ERR;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr *of = (struct fake_mr *)mr;

	assert_true(of->live);
	of->live = false;
	fake.failed_before_dereg = has_failed();
	return fake.dereg_error;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
	channel.fd = 0;
	return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *of)
{
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **cq, void **opaque)
{
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
}

/* The first is that of what is sent. */
struct ibv_cq *ibv_create_cq(struct ibv_context *of, int size, void *opaque,
			     struct ibv_comp_channel *to, int vector)
{
	struct fake_cq *cq = &fake.cq[fake.cqs++];

	cq->cq.context = of;
	cq->size = size;
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	assert_false(init->sq_sig_all);
	fake.cap = init->cap;
	fake.qp = (struct ibv_qp){ .context = &context, .pd = pd, .qp_num = 17 };
	return &fake.qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_true(fake.modifies < 8);
	fake.mask[fake.modifies] = mask;
	fake.attr[fake.modifies++] = *attr;
	if (mask & IBV_QP_ACCESS_FLAGS)
		assert_true(!attr->qp_access_flags ||
			    attr->qp_access_flags == IBV_ACCESS_REMOTE_READ);
	return 0;
}

static void record(const struct ibv_send_wr *wr)
{
	assert_true(fake.num_sent < SENT);
	fake.sent[fake.num_sent++] = (struct sent){
		.id = wr->wr_id,
		.addr = wr->sg_list->addr,
		.len = wr->sg_list->length,
		.lkey = wr->sg_list->lkey,
		.remote_addr = wr->wr.rdma.remote_addr,
		.rkey = wr->wr.rdma.rkey,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
	};
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	if (fake.post_error)
		return fake.post_error;
	for (; wr; wr = wr->next)
		record(wr);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct fake_cq *of = (struct fake_cq *)cq;

	assert_int_equal(max, 1);
	if (!of->num)
		return 0;
	*wc = of->wc[0];
	memmove(of->wc, of->wc + 1, --of->num * sizeof(*wc));
	return 1;
}

static void comes(unsigned int cq, uint64_t id, enum ibv_wc_status status)
{
	assert_true(fake.cq[cq].num < WCS);
	fake.cq[cq].wc[fake.cq[cq].num++] = (struct ibv_wc){ .wr_id = id, .status = status };
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	((struct fake_cq *)cq)->arms++;
	if (fake.on_arm)
		fake.cq[0].wc[fake.cq[0].num++] = *fake.on_arm;
	fake.on_arm = NULL;
	return 0;
}

int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events)
{
	assert_true(fake.sources < 4);
	fake.source[fake.sources++] = source;
	return 0;
}

void pvr_loop_remove(struct pvr_source *source)
{
}

bool pvr_verbs_find_place(struct pvr_verbs_nics *nics, const struct pvr_address *local,
			  struct pvr_verbs_place *place, struct pvr_error *err)
{
	*place = (struct pvr_verbs_place){ .nic = &nic, .port = 1, .mtu = IBV_MTU_1024 };
	return true;
}

void pvr_verbs_nic_hold(struct pvr_verbs_nic *of)
{
	of->users++;
}

void pvr_verbs_nic_put(struct pvr_verbs_nic *of)
{
	of->users--;
}

/* ------------------------------------------------------------------ what tests call */

static void ready(void *opaque)
{
	fake.readies++;
}

static void create(bool expose)
{
	struct pvr_address local = { 0 };
	struct pvr_error err;

	verbs = pvr_verbs_create(NULL, &local, expose, &err);
	assert_non_null(verbs);
	assert_int_equal(pvr_verbs_watch(verbs, NULL, ready, NULL), 0);
}

/* Return: the number of reads in our frame. */
static uint8_t connect_to(uint8_t reads)
{
	union pvr_any_frame ours, theirs = { .verbs_qp = {
						     .mtu = 3,
						     .reads = reads,
						     .buffers = htole32(16),
						     .buffer_size = htole32(65536),
					     } };
	struct pvr_error err;

	pvr_verbs_fill(verbs, &ours);
	assert_true(pvr_verbs_connect(verbs, &theirs, &err));
	return ours.verbs_qp.reads;
}

static const struct ibv_qp_attr *attr_of(enum ibv_qp_state state)
{
	for (unsigned int i = 0; i < fake.modifies; i++) {
		if (fake.attr[i].qp_state == state)
			return &fake.attr[i];
	}
	fail();
	return NULL;
}

static unsigned int live_mrs(void)
{
	unsigned int num = 0;

	for (unsigned int i = 0; i < fake.mrs; i++)
		num += fake.mr[i].live;
	return num;
}

static bool is_kicked(void)
{
	struct pollfd pfd = { .fd = verbs->kick.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static ssize_t send_byte(void)
{
	const struct iovec iov = { .iov_base = memory, .iov_len = 1 };

	return pvr_verbs_send(verbs, &iov, 1);
}

/* As many bytes as there are, from 0x1000 up, each part a MiB further. */
static void fill_parts(struct pvr_rndv_seg *part, const uint32_t *len, int parts)
{
	for (int i = 0; i < parts; i++)
		part[i] = (struct pvr_rndv_seg){
			.addr = 0x1000 + ((uint64_t)i << 20),
			.rkey = 900 + (uint32_t)i,
			.len = len[i],
		};
}

/* Ditto, 4 KiB further each. */
static void fill_iov(struct iovec *iov, const uint32_t *len, int count)
{
	for (int i = 0; i < count; i++)
		iov[i] = (struct iovec){ .iov_base = memory + 4096 * i, .iov_len = len[i] };
}

/* Reads parts of @lens bytes into runs of @room bytes. */
static int begin_read(const uint32_t *lens, int parts, const uint32_t *room, int count)
{
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	struct iovec iov[PVR_FRAME_RNDV_SEGS];

	fill_parts(part, lens, parts);
	fill_iov(iov, room, count);
	return pvr_verbs_read(verbs, part, parts, iov, count);
}

/* The state of the read, as pvr_verbs_rdma_read_poll() returns it. */
static int poll_read(void)
{
	uint8_t *data;

	return pvr_verbs_rdma_read_poll(verbs, &data);
}

static void begin_simple_read(void)
{
	assert_int_equal(begin_read((uint32_t[]){ 4096 }, 1, (uint32_t[]){ 4096 }, 1), 0);
}

static void assert_not_broken(void)
{
	assert_string_equal(pvr_verbs_error(verbs), "");
	assert_false(has_failed());
	assert_int_equal(send_byte(), 1);
}

static void assert_broken(const char *why)
{
	assert_string_equal(pvr_verbs_error(verbs), why);
	assert_int_equal(send_byte(), -ECONNRESET);
}

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(&context, 0, sizeof(context));
	context.device = &device;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	nic = (struct pvr_verbs_nic){ .context = &context, .answers = 12, .asks = 8 };
	return 0;
}

static int set_up_connected(void **state)
{
	set_up(state);
	create(true);
	connect_to(16);
	return 0;
}

static int tear_down(void **state)
{
	pvr_verbs_destroy(verbs);
	verbs = NULL;
	assert_int_equal(live_mrs(), 0);
	assert_int_equal(nic.users, 0);
	return 0;
}

#define TEST_NIC(name) TEST_SETUP(set_up, tear_down, name)
#define TEST_CONNECTED(name) TEST_SETUP(set_up_connected, tear_down, name)

/* ------------------------------------------------------------- what NICs agree upon */

TEST_NIC(test_reads_at_once)
{
	create(true);
	assert_int_equal(connect_to(4), 12);
	assert_true(pvr_verbs_has_rndv(verbs));
	assert_int_equal(attr_of(IBV_QPS_INIT)->qp_access_flags, 0);
	assert_int_equal(attr_of(IBV_QPS_RTR)->qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_true(fake.mask[1] & IBV_QP_ACCESS_FLAGS);
	assert_int_equal(attr_of(IBV_QPS_RTR)->max_dest_rd_atomic, 12);
	assert_int_equal(attr_of(IBV_QPS_RTS)->max_rd_atomic, 4);
}

TEST_NIC(test_no_more_reads_than_the_nic_can)
{
	create(true);
	connect_to(255);
	assert_int_equal(attr_of(IBV_QPS_RTS)->max_rd_atomic, 8);
}

static const struct {
	const char *label;
	bool wanted;
	unsigned int asks, answers; /* of this host's NIC */
	uint8_t theirs, ours; /* reads at once, as the two hosts report them */
} no_reads[] = {
	{ "not wanted", false, 8, 12, 16, 0 },
	{ "NIC sends none", true, 0, 12, 16, 0 },
	{ "NIC answers none", true, 8, 0, 16, 0 },
	{ "other side answers none", true, 8, 12, 0, 12 },
};

TEST_CASES_WITH(void *unused, set_up, tear_down, test_no_reads_unless_both_sides_can, no_reads)
{
	nic.asks = row->asks;
	nic.answers = row->answers;
	create(row->wanted);
	assert_int_equal(pvr_verbs_has_rndv(verbs), row->ours != 0);
	assert_int_equal(connect_to(row->theirs), row->ours);
	assert_false(pvr_verbs_has_rndv(verbs));
	assert_int_equal(attr_of(IBV_QPS_RTR)->qp_access_flags, 0);
	assert_int_equal(attr_of(IBV_QPS_RTR)->max_dest_rd_atomic, 0);
	assert_int_equal(attr_of(IBV_QPS_RTS)->max_rd_atomic, 0);
}

TEST_CONNECTED(test_queues_have_room_for_reads)
{
	assert_int_equal(fake.cap.max_send_wr, PVR_VERBS_SENDS + 15);
	assert_int_equal(fake.cq[0].size, PVR_VERBS_SENDS + 15);
}

/* ------------------------------------------------------------------------- rendezvous */

TEST_CONNECTED(test_exposes_exactly_that)
{
	struct pvr_rndv_seg part[2];
	const struct iovec iov[] = { { memory + 5, 4093 }, { memory + 10000, 1 } };
	unsigned int first = fake.mrs;
	void *rndv = pvr_verbs_expose(verbs, iov, 2, part);

	assert_non_null(rndv);
	assert_int_equal(fake.mrs, first + 2);
	for (unsigned int i = 0; i < 2; i++) {
		const struct fake_mr *mr = &fake.mr[first + i];

		assert_ptr_equal(mr->mr.addr, iov[i].iov_base);
		assert_int_equal(mr->mr.length, iov[i].iov_len);
		assert_int_equal(mr->access, IBV_ACCESS_REMOTE_READ);
		assert_ptr_equal(mr->mr.pd, fake.qp.pd);
		assert_int_equal(part[i].addr, (uintptr_t)iov[i].iov_base);
		assert_int_equal(part[i].len, iov[i].iov_len);
		assert_int_equal(part[i].rkey, mr->mr.rkey);
	}
	pvr_verbs_revoke(verbs, rndv);
	assert_int_equal(live_mrs(), 1);
	assert_not_broken();
}

TEST_CONNECTED(test_exposes_all_or_nothing)
{
	struct pvr_rndv_seg part[3];
	const struct iovec iov[] = { { memory, 10 }, { memory + 10, 10 }, { memory + 20, 10 } };
	struct pvr_error why;
	void *rndv;

	assert_false(pvr_verbs_zerocopy_error(verbs, &why));
	fake.until_refusal = 3;
	assert_null(pvr_verbs_expose(verbs, iov, 3, part));
	assert_int_equal(live_mrs(), 1);
	assert_true(pvr_verbs_zerocopy_error(verbs, &why));
	assert_string_equal(why.text,
			    "the RDMA NIC cannot register a guest's memory: Cannot allocate "
			    "memory (is ulimit -l too small?)");
	rndv = pvr_verbs_expose(verbs, iov, 3, part);
	assert_non_null(rndv);
	assert_false(pvr_verbs_zerocopy_error(verbs, &why));
	pvr_verbs_revoke(verbs, rndv);
	assert_not_broken();
}

/* A key of one peer's memory is of no use to another one. */
TEST_CONNECTED(test_each_has_a_domain_of_its_own)
{
	struct pvr_verbs *other = verbs;

	create(true);
	assert_ptr_not_equal(verbs->pd, other->pd);
	assert_ptr_equal(fake.qp.pd, verbs->pd);
	pvr_verbs_destroy(other);
}

TEST_CONNECTED(test_nic_that_does_not_let_go)
{
	struct pvr_rndv_seg part;
	void *rndv = pvr_verbs_expose(verbs, &(struct iovec){ memory, 10 }, 1, &part);

	fake.dereg_error = EBUSY;
	pvr_verbs_revoke(verbs, rndv);
	assert_true(has_failed());
	assert_broken("the RDMA NIC does not let go of memory");
	assert_true(is_kicked());
}

/* ----------------------------------------------------------------------- requests */

struct piece {
	unsigned int part, part_pos, iov, pos, len;
};

static void check_regions(const struct piece *piece, unsigned int num, unsigned int first_mr)
{
	assert_int_equal(fake.num_sent, num);
	for (unsigned int i = 0; i < num; i++) {
		const struct sent *sent = &fake.sent[i];

		assert_int_equal(sent->opcode, IBV_WR_RDMA_READ);
		assert_int_equal(sent->remote_addr,
				 0x1000 + ((uint64_t)piece[i].part << 20) + piece[i].part_pos);
		assert_int_equal(sent->rkey, 900 + piece[i].part);
		assert_int_equal(sent->addr,
				 (uintptr_t)(memory + 4096 * piece[i].iov + piece[i].pos));
		assert_int_equal(sent->lkey, fake.mr[first_mr + piece[i].iov].mr.lkey);
		assert_int_equal(sent->len, piece[i].len);
		/* One completion for all. */
		assert_int_equal(sent->flags, i + 1 == num ? IBV_SEND_SIGNALED : 0);
	}
}

static void expect_read_done(void)
{
	assert_int_equal(poll_read(), 1);
	pvr_verbs_rdma_read_cancel(verbs);
	assert_int_equal(live_mrs(), 1);
	assert_not_broken();
}

static void end_read(void)
{
	comes(0, PVR_VERBS_ID_READ, IBV_WC_SUCCESS);
	expect_read_done();
}

TEST_CONNECTED(test_splits_at_both_lists_ends)
{
	static const struct piece pieces[] = {
		{ 0, 0, 0, 0, 30 },  { 0, 30, 1, 0, 70 }, { 1, 0, 1, 70, 20 },
		{ 1, 20, 2, 0, 30 }, { 2, 0, 3, 0, 7 },
	};
	unsigned int first = fake.mrs;

	assert_int_equal(
		begin_read((uint32_t[]){ 100, 50, 7 }, 3, (uint32_t[]){ 30, 90, 30, 7 }, 4), 0);
	check_regions(pieces, 5, first);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(fake.mr[first + i].access, IBV_ACCESS_LOCAL_WRITE);
		assert_ptr_equal(fake.mr[first + i].mr.addr, memory + 4096 * i);
		assert_ptr_equal(fake.mr[first + i].mr.pd, fake.qp.pd);
	}
	assert_int_equal(fake.mr[first + 1].mr.length, 90);
	assert_int_equal(fake.mrs, first + 4);
	end_read();
}

TEST_CONNECTED(test_as_many_ram_regions_as_there_can_be)
{
	const uint32_t lens[8] = { 10, 10, 10, 10, 10, 10, 10, 11 };
	const uint32_t room[8] = { 1, 10, 10, 10, 10, 10, 10, 20 };
	uint64_t sum = 0;

	assert_int_equal(begin_read(lens, 8, room, 8), 0);
	assert_int_equal(fake.num_sent, PVR_VERBS_READS);
	for (unsigned int i = 0; i < fake.num_sent; i++)
		sum += fake.sent[i].len;
	assert_int_equal(sum, 81);
	end_read();
}

TEST_CONNECTED(test_into_its_own_buffer)
{
	unsigned int before = fake.mrs;
	uint8_t *data;

	assert_int_equal(begin_read((uint32_t[]){ 1000, 24 }, 2, NULL, 0), 0);
	assert_int_equal(fake.mrs, before);
	assert_int_equal(fake.num_sent, 2);
	assert_int_equal(pvr_verbs_rdma_read_poll(verbs, &data), 0);
	assert_int_equal(fake.sent[0].addr, (uintptr_t)data);
	assert_int_equal(fake.sent[1].addr, (uintptr_t)data + 1000);
	assert_int_equal(fake.sent[0].lkey, verbs->mr->lkey);
	/* It is not one of those that messages are in. */
	assert_true(data >= verbs->memory + PVR_VERBS_TX_SIZE + PVR_VERBS_RX_SIZE);
	assert_true(data + PVR_READ_BUFFER <= verbs->memory + verbs->mr->length);
	comes(0, PVR_VERBS_ID_READ, IBV_WC_SUCCESS);
	assert_int_equal(pvr_verbs_rdma_read_poll(verbs, &data), 1);
	assert_not_broken();
}

TEST_CONNECTED(test_what_does_not_fit)
{
	assert_int_equal(begin_read((uint32_t[]){ PVR_READ_BUFFER, 1 }, 2, NULL, 0), -EINVAL);
	assert_int_equal(begin_read((uint32_t[]){ 10 }, 1, (uint32_t[]){ 11 }, 1), -EINVAL);
	assert_int_equal(begin_read((uint32_t[]){ 11 }, 1, (uint32_t[]){ 10 }, 1), -EINVAL);
	assert_int_equal(begin_read((uint32_t[]){ 0 }, 1, (uint32_t[]){ 0 }, 1), -EINVAL);
	assert_int_equal(begin_read((uint32_t[]){ 0 }, 0, NULL, 0), -EINVAL);
	assert_int_equal(fake.num_sent, 0);
	assert_int_equal(live_mrs(), 1);
}

TEST_CONNECTED(test_one_at_a_time)
{
	begin_simple_read();
	assert_int_equal(begin_read((uint32_t[]){ 10 }, 1, NULL, 0), -EINVAL);
	assert_int_equal(fake.num_sent, 1);
	end_read();
	begin_simple_read();
	end_read();
}

TEST_CONNECTED(test_memory_that_cannot_be_registered)
{
	fake.until_refusal = 2;
	assert_int_equal(begin_read((uint32_t[]){ 20 }, 1, (uint32_t[]){ 10, 10 }, 2), -ENOMEM);
	assert_int_equal(fake.num_sent, 0);
	assert_int_equal(live_mrs(), 1);
	assert_not_broken();
	fake.num_sent = 0;
	begin_simple_read();
	end_read();
}

TEST_CONNECTED(test_nic_that_refuses_requests)
{
	/* Not as if it could be done otherwise. */
	fake.post_error = ENOMEM;
	assert_int_equal(begin_read((uint32_t[]){ 10 }, 1, (uint32_t[]){ 10 }, 1), -ECONNRESET);
	assert_true(fake.failed_before_dereg);
	assert_int_equal(live_mrs(), 1);
	pvr_verbs_rdma_read_cancel(verbs);
	assert_broken("the RDMA NIC refuses to read");
}

/* --------------------------------------------------------------------- what happens */

/*
 * A poll for another purpose takes the read's completion, and does not count it as a
 * send.
 */
TEST_CONNECTED(test_another_thread_polls)
{
	begin_simple_read();
	comes(0, PVR_VERBS_ID_READ, IBV_WC_SUCCESS);
	assert_int_equal(pvr_verbs_is_proved(verbs), 0);
	assert_int_equal(fake.cq[0].num, 0);
	assert_int_equal(verbs->stream.notes_done, 0);
	expect_read_done();
}

/*
 * Arming gives an event for later completions; a completion from just before is polled.
 */
TEST_CONNECTED(test_waits_for_news)
{
	struct ibv_wc late = { .wr_id = PVR_VERBS_ID_READ, .status = IBV_WC_SUCCESS };
	begin_simple_read();
	assert_int_equal(fake.cq[0].arms, 0);
	assert_int_equal(poll_read(), 0);
	assert_int_equal(fake.cq[0].arms, 1);
	assert_int_equal(fake.cq[1].arms, 1);
	fake.on_arm = &late;
	expect_read_done();
}

/* A flush of the other queue is not the reported reason. */
TEST_CONNECTED(test_other_side_has_taken_it_back)
{
	begin_simple_read();
	comes(0, PVR_VERBS_ID_READ, IBV_WC_REM_ACCESS_ERR);
	comes(1, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(poll_read(), -ECONNRESET);
	pvr_verbs_rdma_read_cancel(verbs);
	assert_true(fake.failed_before_dereg);
	assert_int_equal(live_mrs(), 1);
	assert_broken("remote access error");
}

TEST_CONNECTED(test_stopped_when_it_is_done)
{
	begin_simple_read();
	comes(0, PVR_VERBS_ID_READ, IBV_WC_SUCCESS);
	pvr_verbs_rdma_read_cancel(verbs);
	assert_int_equal(live_mrs(), 1);
	assert_int_equal(poll_read(), 1);
	assert_false(is_kicked());
	assert_not_broken();
}

/* The region is deregistered before the memory goes, and the connection's thread is notified. */
TEST_CONNECTED(test_stopped_in_the_middle)
{
	begin_simple_read();
	assert_int_equal(poll_read(), 0);
	pvr_verbs_rdma_read_cancel(verbs);
	assert_true(has_failed());
	assert_true(fake.failed_before_dereg);
	assert_int_equal(live_mrs(), 1);
	assert_true(is_kicked());
	fake.source[1]->ready(fake.source[1], 1);
	assert_int_equal(fake.readies, 1);
	assert_int_equal(poll_read(), -ECONNRESET);
	/* Later completions change nothing. */
	comes(0, PVR_VERBS_ID_READ, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(poll_read(), -ECONNRESET);
	assert_broken("memory was taken back that the RDMA NIC was writing to");
}
