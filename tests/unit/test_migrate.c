// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* States of adapters: saved, loaded by another engine, damaged, forged. */
#include "ends.h"

#include "core/objects.h"
#include "core/state.h"
#include "fg_migrate.h"
#include "fg_xrc.h"

#include <isa-l/crc.h>
#include <stdlib.h>

#define ALL_EXT (PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL)

TEST_EXT(ALL_EXT)

/* ------------------------------------------------------------------- an adapter to load into */

/* The state of the first guest, and another host with an adapter of the same MAC. */
struct move {
	struct t_env *env;
	struct fg_state state;
	struct fg_host *host;
	struct fg_guest *to;
};

static struct fg_guest *twin(const struct fg_guest *guest, struct fg_host *host)
{
	struct fg_guest_config config = guest->config;

	return fg_guest_create(host, &config);
}

/* Objects of each kind, in states that are not the first ones. */
static void fill(struct t_env *env)
{
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 9 };
	struct fg_guest *g = env->g[0];
	struct fg_end ud;
	struct fg_xrcd xrcd;
	struct fg_srq srq, xrc_srq;
	struct fg_qp target;
	struct fg_mr mw, dma;

	expect_ok(fg_mr_create_dma(&env->a.pd, &dma));
	expect_ok(fg_mw_create(&env->a.pd, PVR_MR_FLAG_MW1, &mw));
	expect_ok(fg_srq_create(&env->a.pd, 16, 2, &srq));
	t_open_ready(&ud, g, PVR_QPT_UD);
	expect_ok(fg_qp_attach(&ud.qp, group));
	expect_ok(fg_xrcd_create(g, &xrcd));
	expect_ok(fg_xrc_srq_create(&xrcd, &env->a.pd, &env->a.scq, 16, 2, &xrc_srq));
	expect_ok(fg_xrc_tgt_create(&xrcd, &target));
	fg_cq_arm(&env->a.rcq);
	t_recv(&env->a, 1, 0, 8);
	t_exchange(env, 2, 8);
}

static int setup_move(void **state)
{
	struct move *m = calloc(1, sizeof(*m));
	void *env;

	assert_non_null(m);
	t_setup_rc_connected(&env);
	m->env = env;
	fill(env);
	fg_stop(m->env->g[0]);
	assert_int_equal(fg_state_save(m->env->g[0], &m->state), 0);
	m->host = fg_host_create();
	m->to = twin(m->env->g[0], m->host);
	*state = m;
	return 0;
}

static int teardown_move(void **state)
{
	struct move *m = *state;
	void *env = m->env;

	fg_guest_destroy(m->to);
	fg_host_destroy(m->host);
	fg_state_free(&m->state);
	free(m);
	*state = env;
	return t_teardown(state);
}

#define TEST_MOVE(test) TEST_WITH(struct move *m, setup_move, teardown_move, test)
#define TEST_MOVE_CASES(test, rows) \
	TEST_CASES_WITH(struct move *m, setup_move, teardown_move, test, rows)

/* ----------------------------------------------------------------------------- records */

static uint32_t u32_at(const uint8_t *data)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return value;
}

static uint16_t type_at(const uint8_t *data)
{
	return (uint16_t)(data[0] | data[1] << 8);
}

/* Return: the first record of @type. */
static uint8_t *find(const struct fg_state *state, uint32_t type)
{
	size_t at;

	for (at = 0; at < state->size; at += PVR_STATE_HEADER + u32_at(state->data + at + 4))
		if (type_at(state->data + at) == type)
			return state->data + at;
	fail_msg("there is no record %u", type);
	return NULL;
}

/* The number of records and the CRC of END fit what is there. */
static void repair(struct fg_state *state)
{
	uint8_t *end = find(state, PVR_STATE_END);
	uint32_t records = 0, crc = crc32_iscsi(state->data, (int)(end - state->data), 0);
	uint8_t *at;

	for (at = state->data; at < end; at += PVR_STATE_HEADER + u32_at(at + 4))
		records++;
	memcpy(end + PVR_STATE_HEADER, &records, sizeof(records));
	memcpy(end + PVR_STATE_HEADER + 4, &crc, sizeof(crc));
}

/* The state is refused for this reason. Nothing is left, and a driver can start. */
static void expect_refusal(struct move *m, const char *why)
{
	char error[200];

	assert_in_range(-fg_state_load(m->to, &m->state), 1, 4095);
	pvr_adapter_load_error(m->to->adapter, error, sizeof(error));
	if (!strstr(error, why))
		fail_msg("'%s' does not contain '%s'", error, why);
	assert_int_equal(pvr_adapter_run_state(m->to->adapter), PVR_RUN_RUNNING);
	assert_int_equal(fg_stats(m->to).memory, 0);
	assert_int_equal(fg_stats(m->to).qps, 0);
	expect_ok(fg_guest_boot(m->to));
}

/* ---------------------------------------------------------------------------- good states */

TEST_MOVE(test_state_is_loaded_by_another_engine)
{
	struct fg_state again;

	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	assert_int_equal(pvr_adapter_run_state(m->to->adapter), PVR_RUN_LOADED);
	assert_int_equal(fg_stats(m->to).qps, fg_stats(m->env->g[0]).qps);
	assert_int_equal(fg_state_save(m->to, &again), 0);
	fg_state_compare(m->to, &m->state, &again);
	fg_state_free(&again);
	assert_int_equal(fg_start(m->to), 0);
}

TEST_MOVE(test_source_goes_on_after_its_state_was_read)
{
	assert_int_equal(fg_start(m->env->g[0]), 0);
	t_exchange(m->env, 3, 8);
}

TEST_MOVE(test_state_is_loaded_again_if_ram_was_unmapped_before_the_start)
{
	const struct fg_ram_region *region = &m->to->ram.region[1];

	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	pvr_adapter_unmap_ram(m->to->adapter, region->gpa, region->size);
	assert_int_equal(
		pvr_adapter_map_ram(m->to->adapter, region->gpa, region->size, region->va, true),
		0);
	assert_int_equal(pvr_adapter_start(m->to->adapter), -EINPROGRESS);
	assert_int_equal(fg_start(m->to), 0);
	assert_int_equal(fg_stats(m->to).state, PVR_ADAPTER_ACTIVE);
	assert_int_equal(fg_stats(m->to).qps, fg_stats(m->env->g[0]).qps);
}

TEST_MOVE(test_ram_that_does_not_come_back_is_refused_at_the_start)
{
	const struct fg_ram_region *region = &m->to->ram.region[2];

	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	pvr_adapter_unmap_ram(m->to->adapter, region->gpa, region->size);
	assert_int_equal(fg_start(m->to), -EFAULT);
	assert_int_equal(fg_stats(m->to).state, PVR_ADAPTER_IDLE);
	assert_int_equal(fg_stats(m->to).qps, 0);
}

TEST_MOVE(test_reset_ends_a_load)
{
	assert_int_equal(pvr_adapter_load_push(m->to->adapter, m->state.data, 100), 0);
	assert_int_equal(pvr_adapter_run_state(m->to->adapter), PVR_RUN_LOADING);
	assert_int_equal(pvr_adapter_start(m->to->adapter), -EINVAL);
	pvr_adapter_reset(m->to->adapter);
	assert_int_equal(pvr_adapter_run_state(m->to->adapter), PVR_RUN_RUNNING);
	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	pvr_adapter_reset(m->to->adapter);
	fg_run(m->host);
	expect_ok(fg_guest_boot(m->to));
}

/* The guest has booted elsewhere, too: two adapters cannot have one GID. */
TEST_MOVE(test_gid_that_another_adapter_has_fails_the_start)
{
	struct fg_guest *other = fg_guest_start(m->host, 9);
	char error[200];
	uint8_t gid[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

	assert_int_equal(fg_start(m->env->g[0]), 0);
	expect_ok(fg_bind_gid(m->env->g[0], 5, gid));
	fg_stop(m->env->g[0]);
	fg_state_free(&m->state);
	assert_int_equal(fg_state_save(m->env->g[0], &m->state), 0);
	expect_ok(fg_bind_gid(other, 5, gid));
	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	assert_int_equal(fg_start(m->to), -EADDRINUSE);
	assert_int_equal(fg_stats(m->to).state, PVR_ADAPTER_FAILED);
	pvr_adapter_load_error(m->to->adapter, error, sizeof(error));
	assert_non_null(strstr(error, "GID 5"));
	fg_guest_destroy(other);
}

TEST_MOVE(test_calls_in_other_run_states_are_refused)
{
	struct pvr_adapter *from = m->env->g[0]->adapter;
	struct pvr_save *save;
	char buf[64];

	assert_int_equal(pvr_adapter_load_push(from, m->state.data, 8), -EBUSY);
	assert_int_equal(pvr_adapter_save_begin(from, &save), 0);
	assert_int_equal(pvr_save_read(save, buf, sizeof(buf)), sizeof(buf));
	assert_int_equal(fg_start(m->env->g[0]), 0);
	assert_int_equal(pvr_save_read(save, buf, sizeof(buf)), -ESTALE);
	pvr_save_end(save);
	pvr_save_end(NULL);
	assert_int_equal(pvr_adapter_save_begin(from, &save), -EINVAL);
	assert_int_equal(pvr_adapter_drop(from), -EINVAL);
	assert_int_equal(pvr_adapter_load_push(from, m->state.data, 8), -EBUSY);
	assert_int_equal(pvr_adapter_load_finish(from), -EINVAL);
}

TEST_MOVE(test_state_beyond_its_limit_is_refused)
{
	const size_t size = 16 << 20;
	uint8_t *zeros = calloc(1, size);
	int err, n = 0;

	assert_non_null(zeros);
	do
		err = pvr_adapter_load_push(m->to->adapter, zeros, size);
	while (!err && ++n < 100);
	assert_int_equal(err, -E2BIG);
	free(zeros);
	pvr_adapter_reset(m->to->adapter);
	assert_int_equal(fg_state_load(m->to, &m->state), 0);
}

/* -------------------------------------------------------------------------- damaged states */

TEST_MOVE(test_truncated_state_is_refused)
{
	struct fg_state all = m->state;

	for (size_t size = 1; size < all.size; size += 1 + size / 40) {
		m->state.size = size;
		assert_in_range(-fg_state_load(m->to, &m->state), 1, 4095);
		assert_int_equal(fg_stats(m->to).memory, 0);
	}
	m->state.size = all.size - 1;
	expect_refusal(m, "truncated");
	m->state = all;
}

TEST_MOVE(test_flipped_bit_is_refused)
{
	for (size_t at = 0; at < m->state.size; at += 7) {
		m->state.data[at] ^= 1 << at % 8;
		assert_in_range(-fg_state_load(m->to, &m->state), 1, 4095);
		assert_int_equal(fg_stats(m->to).memory, 0);
		m->state.data[at] ^= 1 << at % 8;
	}
	assert_int_equal(fg_state_load(m->to, &m->state), 0);
}

/* The CRC fits: the checks of fields decide. What is loaded does no harm. */
TEST_MOVE(test_forged_byte_does_no_harm)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0xff };
	uint8_t *end = find(&m->state, PVR_STATE_END);
	uint32_t loaded = 0, refused = 0;

	for (uint8_t *at = m->state.data; at < end; at++) {
		uint8_t before = *at;

		*at ^= values[(uintptr_t)at % sizeof(values)];
		if (at < end && type_at(end) == PVR_STATE_END)
			memcpy(end + PVR_STATE_HEADER + 4,
			       &(uint32_t){
				       crc32_iscsi(m->state.data, (int)(end - m->state.data), 0) },
			       4);
		if (fg_state_load(m->to, &m->state)) {
			refused++;
		} else {
			loaded++;
			fg_start(m->to);
			fg_uar_write(m->to, 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | 2);
			fg_settle(m->host, FG_SEC);
			pvr_adapter_reset(m->to->adapter);
			fg_run(m->host);
		}
		assert_int_equal(fg_stats(m->to).memory, 0);
		*at = before;
	}
	assert_in_range(loaded, 100, UINT32_MAX);
	assert_in_range(refused, 100, UINT32_MAX);
}

/* --------------------------------------------------------------------------- forged states */

/* Offsets are those of format 1, without the header of the record. */
static const struct forgery {
	const char *label;
	uint32_t type, offset, size;
	uint64_t value;
	const char *why;
} forgeries[] = {
	{ "magic", PVR_STATE_HEAD, 0, 8, 1, "no state of a pvrdma adapter" },
	{ "format", PVR_STATE_HEAD, 8, 4, 2, "format 2, expected 1" },
	{ "MAC address", PVR_STATE_HEAD, 12, 1, 0x50, "MAC address is not that" },
	{ "fabric", PVR_STATE_HEAD, 18, 4, 0x61626364, "fabric is 'dcba" },
	{ "hardware version", PVR_STATE_HEAD, 50, 1, 'x', "hardware version is 'xatest'" },
	{ "RoCE version", PVR_STATE_HEAD, 82, 1, 1, "RoCE version is not that" },
	{ "extension of the future", PVR_STATE_HEAD, 83, 4, 0xffffffff, "use a newer pvrdmad" },
	{ "adapter state", PVR_STATE_REGS, 0, 1, 9, "state is 9" },
	{ "idle with objects", PVR_STATE_REGS, 0, 1, 0, "without a driver has no objects" },
	{ "driver version", PVR_STATE_REGS, 1 + 6 * 4 + PVR_VEC_WORDS * 8 + 4, 4, 3,
	  "driver version 3" },
	{ "doorbell page", PVR_STATE_UC, 4, 4, 5000, "doorbell page is 5000" },
	{ "context of a PD", PVR_STATE_PD, 4, 4, 77, "context 77 does not exist" },
	{ "handle of a PD", PVR_STATE_PD, 0, 4, 0, "handle 0" },
	{ "huge handle of a PD", PVR_STATE_PD, 0, 4, 0x7fffffff, "out of range" },
	{ "context of a CQ", PVR_STATE_CQ, 4, 4, 9, "context 9 does not exist" },
	{ "vector of a CQ", PVR_STATE_CQ, 8, 4, 63, "vector 63 has no ring" },
	{ "notified beyond produced", PVR_STATE_CQ, 22, 8, 1000, "notified is 1000" },
	{ "kind of a region", PVR_STATE_MR, 4, 1, 8, "kind is 8" },
	{ "PD of a region", PVR_STATE_MR, 5, 4, 99, "PD 99 does not exist" },
	{ "key of a region", PVR_STATE_MR, 9, 4, 0x12345678, "expected one of handle" },
	{ "length of a region", PVR_STATE_MR, 21, 8, 1ull << 40, "region" },
	{ "pages of a region", PVR_STATE_MR, 41, 8, 1ull << 62, "wrong number of pages" },
	{ "region of the pages", PVR_STATE_MR_PAGES, 0, 4, 9, "does not follow its region" },
	{ "number of a queue pair", PVR_STATE_QP, 4, 4, 0x30007, "does not fit number" },
	{ "type of a queue pair", PVR_STATE_QP, 8, 1, 99, "CREATE_QP refuses" },
	{ "PD of a queue pair", PVR_STATE_QP, 9, 4, 99, "PD 99" },
	{ "size of a send queue", PVR_STATE_QP, 30, 4, 3, "CREATE_QP refuses" },
	{ "state of a queue pair", PVR_STATE_QP, 56, 4, 7, "state is 7" },
	{ "group", PVR_STATE_MCAST, 4, 1, 0x20, "cannot join this group" },
	{ "GID index", PVR_STATE_GID, 0, 4, 128, "index is 128" },
	{ "GID", PVR_STATE_GID, 7, 1, 0xff, "CREATE_BIND refuses" },
	{ "waiting events", PVR_STATE_EQE, 16, 4, 600, "events is 600" },
};

TEST_MOVE_CASES(test_forged_field_is_refused, forgeries)
{
	uint8_t *record = find(&m->state, row->type);

	memcpy(record + PVR_STATE_HEADER + row->offset, &row->value, row->size);
	repair(&m->state);
	expect_refusal(m, row->why);
}

/* The state of the source, some object of which is one that no command makes. */
static void save_again(struct move *m)
{
	fg_state_free(&m->state);
	assert_int_equal(fg_state_save(m->env->g[0], &m->state), 0);
}

TEST_MOVE(test_region_on_demand_with_the_right_to_bind_is_refused)
{
	struct fg_guest *g = m->env->g[0];
	struct pvr_cmd_create_mr req =
		fg_layout_request(&m->env->a.pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, PVR_PAGE_SIZE);
	struct pvr_mr *region;
	struct fg_mr mr;

	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	assert_int_equal(fg_start(g), 0);
	expect_ok(fg_mr_create_as(&m->env->a.pd, &req, &mr));
	fg_stop(g);
	region = pvr_table_get(&g->adapter->mrs, mr.handle);
	region->access |= PVR_ACCESS_MW_BIND;
	save_again(m);
	expect_refusal(m, "on demand");
}

/* Members that contradict each other, set and cleared in the source. */

static void target_waits(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->state = on ? PVR_QPS_RTR : PVR_QPS_RESET;
	qp->attr.path_mtu = on ? PVR_MTU_1024 : 0;
	qp->rnr_nak_sent = on;
}

static void target_holds(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->held->valid = on;
}

static void resumes(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->rnr_resume_pending = on;
}

static void waits(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->rnr_nak_sent = on;
}

static void sends_to_group(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->mcast_next = on;
}

static void fails_alone(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->state = on ? PVR_QPS_SQE : PVR_QPS_RTS;
}

static void head_moves(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	qp->sq.head = on;
}

static void next_is_gsi(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	adapter->qps.next = on ? 1 : adapter->qps.min;
}

static void next_is_all_memory(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on)
{
	adapter->mrs.next = on ? 0 : adapter->mrs.min;
}

enum of_source { RELIABLE, DATAGRAM, TARGET };

static const struct contradiction {
	const char *label;
	enum of_source which;
	void (*set)(struct pvr_adapter *adapter, struct pvr_qp *qp, bool on);
	const char *why;
} contradictions[] = {
	{ "RNR NAK of a target without an SRQ", TARGET, target_waits, "of no SRQ" },
	{ "receive of a target without an SRQ", TARGET, target_holds, "has no SRQ" },
	{ "receive for a peer in RESET", TARGET, resumes, "in state 0" },
	{ "RNR NAK to a datagram", DATAGRAM, waits, "waits for a receive" },
	{ "receive for the peer of datagrams", DATAGRAM, resumes, "waits for a receive" },
	{ "reliable request to a group", RELIABLE, sends_to_group, "only datagrams" },
	{ "SQE of a reliable queue pair", RELIABLE, fails_alone, "SQE" },
	{ "head of a queue without requests", TARGET, head_moves, "out of range" },
	{ "handle of the GSI queue pair", RELIABLE, next_is_gsi, "next handle is 1" },
	{ "region of all memory", RELIABLE, next_is_all_memory, "next handle is 0" },
};

static struct pvr_qp *qp_of_source(const struct pvr_adapter *adapter, enum of_source which)
{
	struct pvr_qp *qp;
	uint32_t i;

	PVR_TABLE_FOR_EACH(&adapter->qps, i, qp)
		if (which == (qp->type == PVR_QPT_UD ? DATAGRAM
			      : qp->xrc_target	     ? TARGET
						     : RELIABLE))
			return qp;
	fail();
	return NULL;
}

TEST_MOVE_CASES(test_contradiction_is_refused, contradictions)
{
	struct pvr_adapter *adapter = m->env->g[0]->adapter;
	struct pvr_qp *qp = qp_of_source(adapter, row->which);

	row->set(adapter, qp, true);
	save_again(m);
	row->set(adapter, qp, false);
	expect_refusal(m, row->why);
}

/* As CREATE_QP, which ignores the flags of a driver without this extension. */
TEST_MOVE(test_flag_without_its_extension_is_ignored)
{
	struct pvr_adapter *adapter = m->env->g[0]->adapter;
	struct pvr_qp *qp = t_device_qp(&m->env->a);

	adapter->features &= ~(uint32_t)PVR_EXT_USER_OPS;
	qp->user_ops = true;
	save_again(m);
	assert_int_equal(fg_state_load(m->to, &m->state), 0);
	qp = pvr_qp_get(m->to->adapter, qp->handle);
	assert_non_null(qp);
	assert_false(qp->user_ops);
}

/* The types of two records, swapped by their headers. */
TEST_MOVE(test_records_in_another_order_are_refused)
{
	find(&m->state, PVR_STATE_GID)[0] = PVR_STATE_PD;
	repair(&m->state);
	expect_refusal(m, "it follows a record");
}

TEST_MOVE(test_unknown_record_is_refused)
{
	find(&m->state, PVR_STATE_GID)[0] = 200;
	repair(&m->state);
	expect_refusal(m, "type 200 is unknown");
}

TEST_MOVE(test_missing_record_is_refused)
{
	const uint8_t *regs = find(&m->state, PVR_STATE_REGS);
	size_t bytes = PVR_STATE_HEADER + u32_at(regs + 4), at = regs - m->state.data;

	memmove(m->state.data + at, m->state.data + at + bytes, m->state.size - at - bytes);
	m->state.size -= bytes;
	repair(&m->state);
	expect_refusal(m, "REGS is missing");
}

TEST_MOVE(test_bytes_behind_the_end_are_refused)
{
	m->state.data = realloc(m->state.data, m->state.size + 9);
	assert_non_null(m->state.data);
	memset(m->state.data + m->state.size, 0, 9);
	m->state.size += 9;
	expect_refusal(m, "9 bytes follow it");
}

TEST_MOVE(test_record_above_its_limit_is_refused)
{
	const uint32_t size = PVR_STATE_RECORD_MAX + 1;

	memcpy(find(&m->state, PVR_STATE_REGS) + 4, &size, sizeof(size));
	expect_refusal(m, "expected at most 262144");
}

TEST_MOVE(test_guest_above_its_memory_is_refused)
{
	pvr_adapter_count_ram(m->to->adapter, 0);
	t_leave_memory(m->to, 5000);
	assert_int_equal(fg_state_load(m->to, &m->state), -ENOMEM);
}

TEST_MOVE(test_adapter_with_another_hwversion_refuses_the_state)
{
	struct fg_guest_config config = m->to->config;

	fg_guest_destroy(m->to);
	config.hwversion = "20";
	m->to = fg_guest_create(m->host, &config);
	expect_refusal(m, "hardware version is 'latest', expected '20'");
}

/* ---------------------------------------------------------------------- all adapters of a host */

/* As when a daemon is replaced: the peer's GID is bound after the start of this adapter. */
TEST(rc_connected, test_end_of_a_peer_that_was_loaded_later_is_noticed)
{
	struct fg_state state[2];

	for (int i = 0; i < 2; i++) {
		fg_stop(env->g[i]);
		assert_int_equal(fg_state_save(env->g[i], &state[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		fg_drop(env->g[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fg_state_load(env->g[i], &state[i]), 0);
		fg_state_free(&state[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(fg_start(env->g[i]), 0);
	t_exchange(env, 1, 8);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, 20 * FG_MS);
	expect_state(&env->a, PVR_QPS_ERR);
}

/* ------------------------------------------------------------ states of a host without a name */

static void save(struct fg_guest *guest, struct fg_state *state)
{
	fg_stop(guest);
	assert_int_equal(fg_state_save(guest, state), 0);
}

static void load_and_start(struct fg_guest *guest, struct fg_state *state)
{
	fg_drop(guest);
	assert_int_equal(fg_state_load(guest, state), 0);
	fg_state_free(state);
	assert_int_equal(fg_start(guest), 0);
}

TEST(rc_connected, test_last_state_keeps_the_connections)
{
	struct fg_state state;

	save(env->g[1], &state);
	load_and_start(env->g[1], &state);
	t_exchange(env, 1, 8);
}

/* Its peer would acknowledge new requests as repeated ones, and not execute them. */
TEST(rc_connected, test_state_of_an_adapter_that_has_run_since_ends_the_connections)
{
	struct fg_state state;

	save(env->g[1], &state);
	assert_int_equal(fg_start(env->g[1]), 0);
	t_exchange(env, 1, 8);
	fg_stop(env->g[1]);
	load_and_start(env->g[1], &state);
	expect_state(&env->b, PVR_QPS_ERR);
	t_send(&env->a, 9, 0, 8);
	fg_settle(env->host, 5 * FG_SEC);
	expect_state(&env->a, PVR_QPS_ERR);
}

TEST(rc_connected, test_state_before_the_last_one_ends_the_connections)
{
	struct fg_state first, second;

	save(env->g[1], &first);
	assert_int_equal(fg_start(env->g[1]), 0);
	t_exchange(env, 1, 8);
	save(env->g[1], &second);
	fg_state_free(&second);
	load_and_start(env->g[1], &first);
	expect_state(&env->b, PVR_QPS_ERR);
}

TEST(rc_connected, test_process_that_replaces_another_one_keeps_the_connections)
{
	struct fg_state state;
	char *origin = env->host->engine->origin;

	save(env->g[1], &state);
	/* As in a process that has just started. */
	memset(env->g[1]->adapter->move.token, 0, PVR_TOKEN_BYTES);
	strcpy(origin, ":another");
	fg_drop(env->g[1]);
	assert_int_equal(fg_state_load(env->g[1], &state), 0);
	fg_state_free(&state);
	pvr_adapter_load_is_last(env->g[1]->adapter);
	assert_string_not_equal(origin, ":another");
	assert_int_equal(fg_start(env->g[1]), 0);
	t_exchange(env, 1, 8);
}

/* Only that process knew whether the adapter has run since. */
TEST(rc_connected, test_state_of_an_earlier_process_without_a_name_ends_the_connections)
{
	struct fg_state state;

	save(env->g[1], &state);
	memset(env->g[1]->adapter->move.token, 0, PVR_TOKEN_BYTES);
	strcpy(env->host->engine->origin, ":another");
	load_and_start(env->g[1], &state);
	expect_state(&env->b, PVR_QPS_ERR);
}
