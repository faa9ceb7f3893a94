// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: the state of an adapter, and what the adapter does after its load.
 *
 * An input is a sequence of records without END, which is made here: with the right CRC, so that
 * the checks of the fields decide. If the state is loaded, it is saved again and started. Then the
 * adapter has to work: requests of peers on its host and on another one, requests of its guest,
 * each command, a stop, the destruction of each object, and a reset.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <errno.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/objects.h"
#include "core/state.h"
#include "core/wq.h"
#include "fake_guest.h"
#include "fg_cmd.h"
#include "fg_migrate.h"
#include "fg_wire.h"
#include "fg_xrc.h"

#define ALL_EXT (PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL)
#define INPUT_MAX (64u << 10)
#define ROUNDS 100000 /* until the engine must rest */
#define HANDLES 7u /* that get doorbells and commands */

#define REGIONS 8u /* that peers access */
#define STARTS 5
#define RECORDS_MAX 256 /* that mutations reach */

/* Numbers of the guest's queue pairs; none was destroyed before. */
#define NUMBER(handle) ((handle) | ((handle)-2) << 16)

/* Ends of peers: on the guest's host, on another host; an XRC initiator; datagrams. */
enum { NEAR, FAR, INITIATOR, UD, ENDS };

static const enum pvr_qp_type peer_type[ENDS] = { PVR_QPT_RC, PVR_QPT_RC, PVR_QPT_XRC_INI,
						  PVR_QPT_UD };
/* The guest's queue pairs that they are connected to. */
static const uint32_t peer_number[ENDS] = { NUMBER(2u), NUMBER(5u), NUMBER(4u), 0 };

struct world {
	struct fg_wire *wire;
	struct fg_host *host; /* of the guest */
	struct fg_guest *guest, *peer, *far;
	struct fg_end end[ENDS];
	struct fg_buf ring; /* of the guest: pages that its commands name */
	uint8_t gid[16]; /* of the guest */
};

static struct world w;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* ------------------------------------------------------------------------------ world */

static void must(uint32_t err, const char *what)
{
	if (err)
		fg_die("%s: ERR %u", what, err);
}

static void connect_peers(struct world *world)
{
	for (int i = 0; i < ENDS; i++) {
		struct fg_end *end = &world->end[i];

		if (fg_qp_state(&end->qp) != PVR_QPS_RESET)
			must(fg_qp_to_reset(&end->qp), "reset");
		must(fg_qp_connect(&end->qp, NULL, world->gid, peer_number[i]), "connect");
		fg_cq_drain(&end->scq);
		fg_cq_drain(&end->rcq);
	}
}

static void world_init(struct world *world)
{
	struct fg_guest_config config;

	world->wire = fg_wire_create(NULL);
	world->host = fg_wire_host(world->wire, 0);
	fg_guest_config_init(&config, 1);
	world->guest = fg_guest_create(world->host, &config);
	fg_buf_init(&world->ring, &world->guest->ram, 8, FG_LINEAR);
	fg_gid_from_mac(world->gid, config.mac);
	world->peer = fg_guest_start(world->host, 2);
	world->far = fg_guest_start(fg_wire_host(world->wire, 1), 3);
	for (int i = 0; i < ENDS; i++)
		fg_end_open(&world->end[i], i == FAR ? world->far : world->peer, peer_type[i]);
	connect_peers(world);
}

/* ------------------------------------------------------------------------------ seeds */

static void write_seed(const char *name, struct fg_guest *guest)
{
	struct fg_state state;
	char path[512];
	FILE *file;

	fg_stop(guest);
	if (fg_state_save(guest, &state))
		fg_die("cannot save %s", name);
	snprintf(path, sizeof(path), "%s/%s", getenv("FUZZ_SEEDS"), name);
	file = fopen(path, "wb");
	/* Without END. */
	state.size -= PVR_STATE_HEADER + 8;
	if (!file || fwrite(state.data, 1, state.size, file) != state.size || fclose(file))
		fg_die("cannot write %s", path);
	fg_state_free(&state);
	if (fg_start(guest))
		fg_die("cannot start %s", name);
}

static void connect(struct world *seed, struct fg_qp *qp, int peer)
{
	const struct fg_end *end = &seed->end[peer];

	must(fg_qp_connect(qp, NULL, end->gid, end->qp.qpn), "connect");
}

static void make_demand(struct fg_end *end)
{
	struct pvr_cmd_create_mr req =
		fg_layout_request(&end->pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, 4 * PVR_PAGE_SIZE);
	struct fg_mr mr;

	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	must(fg_mr_create_as(&end->pd, &req, &mr), "region on demand");
}

/* Return: the SRQ of the target. */
static struct fg_srq all_kinds(struct world *seed, struct fg_end *rc, struct fg_end *far)
{
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 9 };
	const struct pvrdma_sge sge = fg_sge(&rc->mr, 0, 64);
	struct fg_guest *guest = seed->guest;
	struct fg_srq srq, xrc_srq;
	struct fg_xrcd xrcd;
	struct fg_end ud;
	struct fg_qp target;
	struct fg_mr mr;

	must(fg_mr_create_dma(&rc->pd, &mr), "DMA region");
	must(fg_mw_create(&rc->pd, PVR_MR_FLAG_MW1, &mr), "window");
	must(fg_mw_create(&rc->pd, PVR_MR_FLAG_MW2, &mr), "window");
	make_demand(rc);
	fg_end_open(&ud, guest, PVR_QPT_UD);
	fg_end_ready(&ud);
	must(fg_qp_attach(&ud.qp, group), "group");
	must(fg_xrcd_create(guest, &xrcd), "XRC domain");
	must(fg_xrc_srq_create(&xrcd, &rc->pd, &rc->scq, 16, 2, &xrc_srq), "SRQ");
	must(fg_xrc_tgt_create(&xrcd, &target), "target");
	connect(seed, &target, INITIATOR);
	must(fg_srq_create(&rc->pd, 16, 2, &srq), "SRQ");
	must(fg_modify_cq(guest, rc->rcq.handle, 3, 50), "moderation");
	fg_cq_arm(&rc->rcq);
	fg_post_recv(&rc->qp, 1, &sge, 1);
	fg_end_open(far, guest, PVR_QPT_RC);
	connect(seed, &far->qp, FAR);
	fg_run(seed->host);
	return xrc_srq;
}

static void post(struct fg_end *end, const struct fg_wr *fields)
{
	const struct pvrdma_sge sge = fg_sge(&end->mr, 0, fields->remote_addr ? 8 : 64);
	struct fg_wr wr = *fields;

	wr.flags = PVR_SEND_SIGNALED;
	wr.sge = &sge;
	wr.num_sge = 1;
	fg_post_send(&end->qp, &wr);
}

/* Each peer waits for a receive, and the far one has got the value of an atomic. */
static void make_requesters_wait(struct world *seed, const struct fg_end *far, uint32_t srqn)
{
	post(&seed->end[FAR], &(struct fg_wr){ .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
					       .remote_addr = far->mr.start,
					       .rkey = far->mr.rkey });
	for (int i = NEAR; i <= INITIATOR; i++)
		for (int n = 0; n < 2; n++)
			post(&seed->end[i],
			     &(struct fg_wr){ .opcode = PVRDMA_WR_SEND, .srqn = srqn });
	fg_run(seed->host);
}

/* Requests of the guest to the other host have no answer. */
static void make_requests_wait(struct world *seed, struct fg_end *far)
{
	const struct fg_mr *to = &seed->end[FAR].mr;

	fg_wire_hold(seed->wire, 0, 1, true);
	post(far, &(struct fg_wr){ .opcode = PVRDMA_WR_SEND });
	post(far, &(struct fg_wr){ .opcode = PVRDMA_WR_RDMA_READ,
				   .remote_addr = to->start,
				   .rkey = to->rkey });
	fg_run(seed->host);
}

/* Of a guest of the same MAC on another host. */
static void write_seeds(void)
{
	struct world *seed = &w;
	struct fg_end rc, far;
	struct fg_srq srq;

	write_seed("idle", seed->guest);
	must(fg_guest_boot(seed->guest), "boot");
	write_seed("active", seed->guest);
	must(fg_bind_gid(seed->guest, 0, seed->gid), "GID");
	fg_end_open(&rc, seed->guest, PVR_QPT_RC);
	connect(seed, &rc.qp, NEAR);
	write_seed("connected", seed->guest);
	srq = all_kinds(seed, &rc, &far);
	write_seed("all-kinds", seed->guest);
	make_requesters_wait(seed, &far, srq.handle);
	write_seed("requesters-wait", seed->guest);
	make_requests_wait(seed, &far);
	write_seed("requests-wait", seed->guest);
}

/* --------------------------------------------------------------------------- mutations */

/* Mutations by bytes break the sizes of records, and so most states. */

struct span {
	size_t at, size; /* of a record, with its header */
};

static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* Return: their number. What follows the last one is no record. */
static uint32_t find_records(const uint8_t *data, size_t size, struct span *span, uint32_t max)
{
	uint32_t n = 0, bytes;
	size_t at = 0;

	for (; n < max && at + PVR_STATE_HEADER <= size; at += span[n++].size) {
		memcpy(&bytes, data + at + 4, sizeof(bytes));
		if (bytes > size - at - PVR_STATE_HEADER)
			break;
		span[n] = (struct span){ at, PVR_STATE_HEADER + (size_t)bytes };
	}
	return n;
}

static void change_fields(uint8_t *data, const struct span *record, uint64_t *state)
{
	static const uint8_t values[] = { 0, 1, 2, 3, 4, 5, 0x7f, 0xff };
	uint8_t *fields = data + record->at + PVR_STATE_HEADER;
	size_t size = record->size - PVR_STATE_HEADER;

	if (!size)
		return;
	if (next(state) % 4)
		fields[next(state) % size] = values[next(state) % sizeof(values)];
	else
		LLVMFuzzerMutate(fields, size, size);
}

/* Return: the new size. */
static size_t mutate_records(uint8_t *data, size_t size, size_t max, uint64_t *state)
{
	static uint8_t copy[INPUT_MAX];
	struct span span[RECORDS_MAX], *record;
	uint32_t n = find_records(data, size, span, RECORDS_MAX);

	if (!n)
		return LLVMFuzzerMutate(data, size, max);
	record = &span[next(state) % n];
	switch (next(state) % 16) {
	case 0:
		memmove(data + record->at, data + record->at + record->size,
			size - record->at - record->size);
		return size - record->size;
	case 1:
		if (size + record->size > max)
			return size;
		memcpy(copy, data + record->at, record->size);
		memmove(data + record->at + record->size, data + record->at, size - record->at);
		memcpy(data + record->at, copy, record->size);
		return size + record->size;
	case 2:
		return LLVMFuzzerMutate(data, size, max);
	default:
		change_fields(data, record, state);
		return size;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const size_t max = max_size < INPUT_MAX ? max_size : INPUT_MAX;
	uint64_t state = seed;

	for (uint32_t i = 1 + next(&state) % 4; i; i--)
		size = mutate_records(data, size, max, &state);
	return size;
}

/* ------------------------------------------------------------------------------ inputs */

/* Return: the records of the input and END. The caller frees them. */
static struct fg_state complete(const uint8_t *data, size_t size)
{
	struct fg_state state = { .data = malloc(size + PVR_STATE_HEADER + 8), .size = size };
	uint8_t end[PVR_STATE_HEADER + 8] = { PVR_STATE_END, [4] = 8 };
	uint32_t records = 0, crc = crc32_iscsi((unsigned char *)(uintptr_t)data, (int)size, 0);
	uint32_t bytes;
	size_t at;

	if (!state.data)
		fg_die("out of memory");
	for (at = 0; at + PVR_STATE_HEADER <= size; at += PVR_STATE_HEADER + (size_t)bytes) {
		memcpy(&bytes, data + at + 4, sizeof(bytes));
		records++;
	}
	memcpy(end + PVR_STATE_HEADER, &records, sizeof(records));
	memcpy(end + PVR_STATE_HEADER + 4, &crc, sizeof(crc));
	memcpy(state.data, data, size);
	memcpy(state.data + size, end, sizeof(end));
	state.size += sizeof(end);
	return state;
}

static void rest(void)
{
	if (!fg_run_bounded(w.host, ROUNDS))
		fg_die("the engine does not come to rest");
}

/* Each loaded state can be saved. */
static void save_again(void)
{
	struct fg_state state;

	if (fg_state_save(w.guest, &state))
		fg_die("a loaded state cannot be saved");
	fg_state_free(&state);
}

/* The source may be asked, and does not answer. */
static void start(void)
{
	for (int i = 0; i < STARTS && pvr_adapter_start(w.guest->adapter) == -EINPROGRESS; i++) {
		while (pvr_adapter_busy(w.guest->adapter))
			pvr_engine_run(w.host->engine, 0);
		rest();
		fg_advance(w.host, FG_SEC);
	}
}

/* ------------------------------------------------------------------- traffic of peers */

/* To regions and windows of the state. */
static void send_rdma(struct fg_end *end)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ,
						     PVRDMA_WR_ATOMIC_FETCH_AND_ADD };
	uint32_t handle, left = REGIONS;
	const struct pvr_mr *mr;

	PVR_TABLE_FOR_EACH(&w.guest->adapter->mrs, handle, mr) {
		if (!left--)
			return;
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			post(end, &(struct fg_wr){ .opcode = ops[i],
						   .remote_addr = mr->start,
						   .rkey = mr->key });
		rest();
	}
}

static void send_datagrams(void)
{
	const struct pvrdma_av av = fg_av(&w.end[UD].pd, w.gid, 0);

	for (uint32_t i = 1; i < HANDLES; i++)
		post(&w.end[UD], &(struct fg_wr){ .opcode = PVRDMA_WR_SEND,
						  .av = &av,
						  .remote_qpn = NUMBER(i),
						  .remote_qkey = FG_QKEY });
}

static void use_by_peers(void)
{
	for (int i = NEAR; i <= FAR; i++) {
		post(&w.end[i], &(struct fg_wr){ .opcode = PVRDMA_WR_SEND });
		rest();
		send_rdma(&w.end[i]);
	}
	send_datagrams();
	for (uint32_t i = 0; i < 3; i++) {
		post(&w.end[INITIATOR], &(struct fg_wr){ .opcode = PVRDMA_WR_SEND, .srqn = i });
		rest();
	}
	fg_advance(w.host, 100 * FG_MS);
	rest();
}

/* ---------------------------------------------------------------- the guest's requests */

static void ring_all(void)
{
	for (uint32_t i = 0; i < HANDLES; i++) {
		fg_uar_write(w.guest, 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | PVR_DB_QP_RECV | i);
		fg_uar_write(w.guest, 0, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM | i);
		fg_uar_write(w.guest, 0, PVRDMA_UAR_SRQ_OFFSET, PVR_DB_SRQ_RECV | i);
	}
}

/* An empty request, at the end of a queue that has no other. */
static void put(struct pvr_wq *wq, size_t header)
{
	if (!wq->count || wq->pages->broken)
		return;
	memset(pvr_wq_element(wq, wq->head), 0, header);
	wq->shm->prod_tail = (wq->head + 1) & (2 * wq->count - 1);
}

/* The guest has the memory that the device has: both see the loaded queues. */
static void use_queues(void)
{
	struct pvr_adapter *adapter = w.guest->adapter;
	struct pvr_srq *srq;
	struct pvr_qp *qp;
	uint32_t i;

	PVR_TABLE_FOR_EACH(&adapter->srqs, i, srq)
		put(&srq->wq, sizeof(struct pvrdma_rq_wqe_hdr));
	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp) {
		put(&qp->rq, sizeof(struct pvrdma_rq_wqe_hdr));
		if (!qp->sq_inflight)
			put(&qp->sq, sizeof(struct pvrdma_sq_wqe_hdr));
	}
	ring_all();
	rest();
}

/* --------------------------------------------------------------------------- commands */

static uint32_t command(const void *req, size_t size)
{
	uint8_t slot[PVR_CMD_REQ_SIZE] = { 0 };

	memcpy(slot, req, size);
	memcpy(w.guest->cmd_slot, slot, sizeof(slot));
	fg_reg_write(w.guest, PVR_REG_REQUEST, 0);
	rest();
	return fg_reg_read(w.guest, PVR_REG_ERR);
}
#define COMMAND(type, ...) command(&(struct type){ __VA_ARGS__ }, sizeof(struct type))
#define BY_HANDLE(op, number) COMMAND(pvr_cmd_handle, .hdr = FG_CMD_HDR(op), .handle = (number))

static void modify_qp(uint32_t handle, uint32_t mask, struct pvr_qp_attr attr)
{
	attr.port_num = 1;
	attr.path_mtu = PVR_MTU_1024;
	attr.ah_attr.ah_flags = PVR_AH_GRH;
	memcpy(attr.ah_attr.dgid, w.end[NEAR].gid, 16);
	attr.dest_qp_num = w.end[NEAR].qp.qpn;
	COMMAND(pvr_cmd_modify_qp, .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_QP), .qp_handle = handle,
		.attr_mask = PVR_QPA_STATE | mask, .attrs = attr);
}

static void use_qp(uint32_t handle)
{
	static const struct {
		enum pvr_qp_state state;
		uint32_t mask;
	} steps[] = {
		{ PVR_QPS_SQD, 0 },
		{ PVR_QPS_RTS, 0 },
		{ PVR_QPS_ERR, 0 },
		{ PVR_QPS_RESET, 0 },
		{ PVR_QPS_INIT, PVR_QPA_PKEY_INDEX | PVR_QPA_PORT | PVR_QPA_ACCESS_FLAGS },
		{ PVR_QPS_RTR, PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN |
				       PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_MIN_RNR_TIMER },
	};

	BY_HANDLE(PVR_CMD_QUERY_QP, handle);
	BY_HANDLE(PVR_CMD_QUERY_STATS, handle);
	COMMAND(pvr_cmd_sum_stats, .hdr = FG_CMD_HDR(PVR_CMD_SUM_STATS), .count = 1,
		.qp_handle = { handle });
	for (uint32_t op = PVR_CMD_ATTACH_MCAST; op <= PVR_CMD_DETACH_MCAST; op++)
		COMMAND(pvr_cmd_mcast, .hdr = FG_CMD_HDR(op), .qp_handle = handle,
			.mgid = { 0xff, 0x0e, [15] = 3 });
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		modify_qp(handle, steps[i].mask,
			  (struct pvr_qp_attr){ .qp_state = steps[i].state });
		ring_all();
		rest();
	}
}

static void use_cq(uint32_t handle)
{
	COMMAND(pvr_cmd_modify_cq, .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_CQ), .cq_handle = handle,
		.count = 3, .period_us = 50);
	COMMAND(pvr_cmd_modify_cq, .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_CQ), .cq_handle = handle);
	COMMAND(pvr_cmd_resize_cq, .hdr = FG_CMD_HDR(PVR_CMD_RESIZE_CQ), .cq_handle = handle,
		.cqe = 256, .pdir_dma = w.ring.pdir, .nchunks = w.ring.npages);
}

static void use_srq(uint32_t handle)
{
	BY_HANDLE(PVR_CMD_QUERY_SRQ, handle);
	COMMAND(pvr_cmd_modify_srq, .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_SRQ), .srq_handle = handle,
		.attr_mask = PVR_SRQ_LIMIT, .attrs.srq_limit = 1);
	COMMAND(pvr_cmd_modify_srq, .hdr = FG_CMD_HDR(PVR_CMD_MODIFY_SRQ), .srq_handle = handle,
		.attr_mask = PVR_SRQ_MAX_WR, .attrs.max_wr = 32, .pdir_dma = w.ring.pdir,
		.nchunks = w.ring.npages);
}

static void use_region(uint32_t handle)
{
	BY_HANDLE(PVR_CMD_QUERY_FAULT, handle);
	for (uint32_t state = PVR_PAGES_ABSENT; state <= PVR_PAGES_PRESENT; state++)
		COMMAND(pvr_cmd_set_pages, .hdr = FG_CMD_HDR(PVR_CMD_SET_PAGES),
			.mr_handle = handle, .npages = 1, .list_dma = fg_buf_gpa(&w.ring, 0),
			.state = state);
	COMMAND(pvr_cmd_create_mr, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR), .start = FG_USER_VA,
		.length = PVR_PAGE_SIZE, .pdir_dma = w.ring.pdir, .pd_handle = 1,
		.access_flags = FG_ACCESS_ALL, .flags = PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_REPLACE,
		.nchunks = 1, .page_shift = PVR_PAGE_SHIFT, .pdir_levels = 2, .mr_handle = handle);
}

/* They get the next handles. */
static void create_objects(void)
{
	COMMAND(pvr_cmd_create_uc, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_UC),
		.pfn = (FG_BAR2_GPA >> PVR_PAGE_SHIFT) + 9);
	COMMAND(pvr_cmd_create_pd, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD));
	COMMAND(pvr_cmd_create_mr, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR), .pd_handle = 1,
		.access_flags = PVR_ACCESS_LOCAL_WRITE, .flags = PVR_MR_FLAG_DMA);
	COMMAND(pvr_cmd_create_cq, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_CQ), .cqe = 64,
		.pdir_dma = w.ring.pdir, .nchunks = w.ring.npages);
	COMMAND(pvr_cmd_create_srq, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_SRQ), .pd_handle = 1,
		.pdir_dma = w.ring.pdir, .nchunks = w.ring.npages, .attrs = { 16, 1, 0, 0 });
	COMMAND(pvr_cmd_create_qp, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_QP), .pd_handle = 1,
		.pdir_dma = w.ring.pdir, .qp_type = PVR_QPT_RC, .max_send_wr = 16,
		.max_recv_wr = 16, .total_chunks = 3, .send_chunks = 1);
	command(&(struct pvr_cmd_hdr)FG_CMD_HDR(PVR_CMD_CREATE_XRCD), sizeof(struct pvr_cmd_hdr));
	COMMAND(pvr_cmd_create_bind, .hdr = FG_CMD_HDR(PVR_CMD_CREATE_BIND), .index = 5,
		.vlan = PVR_VLAN_NONE, .new_gid = { 0xfe, 0x80, [15] = 7 },
		.gid_type = PVR_GID_TYPE_ROCE_V2);
}

static void destroy_objects(void)
{
	static const enum pvr_cmd ops[] = { PVR_CMD_DESTROY_QP, PVR_CMD_DESTROY_SRQ,
					    PVR_CMD_DESTROY_MR, PVR_CMD_DESTROY_CQ,
					    PVR_CMD_DESTROY_PD, PVR_CMD_DESTROY_XRCD,
					    PVR_CMD_DESTROY_UC };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (uint32_t handle = 0; handle < HANDLES; handle++)
			BY_HANDLE(ops[i], handle);
}

static void use_commands(void)
{
	create_objects();
	for (uint32_t i = 0; i < HANDLES; i++) {
		use_cq(i);
		use_srq(i);
		use_region(i);
		use_qp(i);
	}
}

/* --------------------------------------------------------------------------- its use */

static void stop_and_start(void)
{
	if (pvr_adapter_stop(w.guest->adapter))
		return;
	ring_all();
	rest();
	save_again();
	start();
	rest();
}

/* @first: what comes first; the state decides what the rest finds. */
static void use(uint32_t first)
{
	static void (*const uses[])(void) = { use_by_peers, use_queues, use_commands,
					      stop_and_start, destroy_objects };
	const uint32_t n = sizeof(uses) / sizeof(uses[0]);

	uses[first % n]();
	ring_all();
	rest();
	for (uint32_t i = 0; i < n; i++)
		uses[i]();
	fg_advance(w.host, FG_SEC);
	rest();
}

static void clean_up(void)
{
	pvr_adapter_reset(w.guest->adapter);
	while (pvr_adapter_busy(w.guest->adapter))
		pvr_engine_run(w.host->engine, 0);
	if (fg_stats(w.guest).memory)
		fg_die("%llu bytes are left", (unsigned long long)fg_stats(w.guest).memory);
	connect_peers(&w);
	rest();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fg_state state;
	uint32_t first;

	if (size > INPUT_MAX)
		return -1;
	state = complete(data, size);
	memcpy(&first, state.data + state.size - sizeof(first), sizeof(first));
	if (!fg_state_load(w.guest, &state)) {
		save_again();
		start();
		use(first);
	}
	fg_state_free(&state);
	clean_up();
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fg_default_ext = ALL_EXT;
	world_init(&w);
	if (getenv("FUZZ_SEEDS")) {
		write_seeds();
		exit(0);
	}
	return 0;
}
