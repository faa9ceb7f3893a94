// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fixtures and assertions that all unit tests share. */
#include "common.h"

#include "fg_migrate.h"
#include "fg_trap.h"

#include <stdlib.h>

#include "rdma/ud.h"
#include "core/objects.h"

static struct t_env *env_new(void **state)
{
	struct t_env *env = calloc(1, sizeof(*env));

	if (!env)
		fg_die("out of memory");
	fg_migrate_init();
	t_phase_hook = fg_trap_install;
	*state = env;
	return env;
}

struct fg_host *t_other_host(struct t_env *env)
{
	if (env->segment)
		return fg_segment_host(env->segment, 1);
	return env->wire ? fg_wire_host(env->wire, 1) : env->host;
}

int t_setup_host(void **state)
{
	struct t_env *env = env_new(state);

	if (getenv("FG_SEGMENT"))
		env->segment = fg_segment_create();
	else if (getenv("FG_WIRE"))
		env->wire = fg_wire_create(NULL);
	if (env->segment)
		env->host = fg_segment_host(env->segment, 0);
	else
		env->host = env->wire ? fg_wire_host(env->wire, 0) : fg_host_create();
	return 0;
}

T_SHARED_SETUP(unprobed, host)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, 1);
	env->g[0] = fg_guest_create(env->host, &config);
}

T_SHARED_SETUP(guest, host)
{
	env->g[0] = fg_guest_start(env->host, 1);
}

T_SHARED_SETUP(guests, guest)
{
	env->g[1] = fg_guest_start(t_other_host(env), 2);
	/* The hosts exchange their announcements. */
	fg_run(env->host);
}

static void open_ends(struct t_env *env, enum pvr_qp_type type)
{
	fg_end_open(&env->a, env->g[0], type);
	fg_end_open(&env->b, env->g[1], type);
}

T_SHARED_SETUP(rc, guests)
{
	open_ends(env, PVR_QPT_RC);
}

T_SHARED_SETUP(rc_connected, rc)
{
	fg_end_connect(&env->a, &env->b, NULL);
}

int t_setup_ext(void **state, uint32_t ext, t_fixture *setup)
{
	uint32_t before = fg_default_ext;
	int err;

	fg_default_ext = ext;
	err = setup(state);
	fg_default_ext = before;
	return err;
}

T_SETUP(uc_ends, guests)
{
	open_ends(env, PVR_QPT_UC);
}

int t_setup_uc(void **state)
{
	return t_setup_ext(state, fg_default_ext | PVR_EXT_UC, t_setup_uc_ends);
}

T_SHARED_SETUP(rc_loopback, guest)
{
	t_open_pair(&env->a, env->g[0], &env->b, env->g[0]);
}

static void open_ready(struct t_env *env, enum pvr_qp_type type)
{
	open_ends(env, type);
	fg_end_ready(&env->a);
	fg_end_ready(&env->b);
}

T_SHARED_SETUP(ud_ready, guests)
{
	open_ready(env, PVR_QPT_UD);
}

T_SHARED_SETUP(gsi_ready, guests)
{
	open_ready(env, PVR_QPT_GSI);
}

struct t_env *t_env_of_hosts(void **state, const struct fg_wire_config *config)
{
	struct t_env *env = env_new(state);

	env->wire = fg_wire_create(config);
	env->host = fg_wire_host(env->wire, 0);
	for (unsigned int i = 0; i < config->hosts; i++)
		env->g[i] = fg_guest_start(fg_wire_host(env->wire, i), i + 1);
	return env;
}

int t_teardown(void **state)
{
	struct t_env *env = *state;

	for (int i = 0; i < T_GUESTS; i++)
		fg_guest_destroy(env->g[i]);
	if (env->segment)
		fg_segment_destroy(env->segment);
	else if (env->wire)
		fg_wire_destroy(env->wire);
	else
		fg_host_destroy(env->host);
	free(env);
	return 0;
}

void t_leave_memory(struct fg_guest *guest, uint64_t bytes)
{
	guest->adapter->charge_limit = guest->adapter->charged + bytes;
}

struct t_env *t_renew(t_fixture *setup)
{
	void **state = t_state();

	t_teardown(state);
	setup(state);
	return *state;
}

void t_open_self(struct fg_end *end, struct fg_guest *guest)
{
	fg_end_open(end, guest, PVR_QPT_RC);
	fg_end_connect(end, end, NULL);
}

void t_open_pair(struct fg_end *c, struct fg_guest *gc, struct fg_end *d, struct fg_guest *gd)
{
	fg_end_open(c, gc, PVR_QPT_RC);
	fg_end_open(d, gd, PVR_QPT_RC);
	fg_end_connect(c, d, NULL);
}

void t_reconnect_ends(struct fg_end *a, struct fg_end *b)
{
	expect_ok(fg_qp_to_reset(&a->qp));
	expect_ok(fg_qp_to_reset(&b->qp));
	fg_end_connect(a, b, NULL);
}

void t_reconnect(struct t_env *env)
{
	t_reconnect_ends(&env->a, &env->b);
}

struct pvr_qp *t_device_qp(struct fg_end *end)
{
	struct pvr_qp *qp = pvr_qp_get(end->guest->adapter, end->qp.handle);

	assert_non_null(qp);
	return qp;
}

struct pvrdma_cqe t_cqe_at(struct fg_cq *cq, uint64_t wr_id, uint32_t status, const char *file,
			   int line)
{
	struct pvrdma_cqe cqe = { 0 };

	if (!fg_cq_poll(cq, &cqe)) {
		print_error("no completion of work request %llu\n", (unsigned long long)wr_id);
		_fail(file, line);
	}
	_assert_int_equal(cqe.wr_id, wr_id, file, line);
	_assert_int_equal(cqe.status, status, file, line);
	return cqe;
}

struct pvrdma_cqe t_cqe_ok_at(struct fg_cq *cq, uint64_t wr_id, uint32_t opcode, uint32_t len,
			      const char *file, int line)
{
	struct pvrdma_cqe cqe = t_cqe_at(cq, wr_id, PVRDMA_WC_SUCCESS, file, line);

	_assert_int_equal(cqe.opcode, opcode, file, line);
	if (len != UINT32_MAX)
		_assert_int_equal(cqe.byte_len, len, file, line);
	return cqe;
}

struct fg_cq *t_run_for(struct fg_cq *cq)
{
	fg_run(cq->ctx->guest->host);
	return cq;
}

void t_send(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	t_post(end, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, T_SGE(&end->mr, offset, len));
}

void t_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&end->mr, offset, len);

	assert_true(fg_post_recv(&end->qp, wr_id, &sge, 1));
}

void t_rdma(struct fg_end *end, enum pvrdma_wr_opcode op, uint64_t wr_id, uint64_t offset,
	    const struct fg_mr *host, uint64_t remote_offset, uint32_t len)
{
	t_post(end, .wr_id = wr_id, .opcode = op, .imm = 0x78563412, T_SGE(&end->mr, offset, len),
	       T_REMOTE(host, remote_offset));
}

/* @sge: of @end's. */
static void post_ud(struct fg_end *end, const uint8_t dgid[16], uint32_t qpn, uint32_t qkey,
		    uint64_t wr_id, struct pvrdma_sge sge)
{
	struct pvrdma_av av = fg_av(&end->pd, dgid, 0);

	t_post(end, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, .sge = &sge, .num_sge = 1, .av = &av,
	       .remote_qpn = qpn, .remote_qkey = qkey);
}

void t_send_ud(struct fg_end *end, const struct fg_end *to, uint64_t wr_id, uint64_t offset,
	       uint32_t len)
{
	post_ud(end, to->gid, to->qp.qpn, to->qp.type == PVR_QPT_GSI ? FG_GSI_QKEY : FG_QKEY, wr_id,
		fg_sge(&end->mr, offset, len));
}

void t_send_group(struct fg_end *end, const uint8_t mgid[16], uint64_t wr_id, uint64_t offset,
		  uint32_t len)
{
	post_ud(end, mgid, PVR_MULTICAST_QPN, FG_QKEY, wr_id, fg_sge(&end->mr, offset, len));
}

void t_run_ud(struct fg_host *host)
{
	fg_settle(host, 5 * FG_MS);
}

static void ping(struct fg_host *host, struct fg_end *from, struct fg_end *to, const char *file,
		 int line)
{
	const uint32_t len = 300;

	fg_fill(from->mr.va, len, 77);
	memset(to->mr.va + 1000, 0, len);
	t_recv(to, 9001, 1000, len);
	t_send(from, 9002, 0, len);
	fg_run(host);
	t_cqe_ok_at(&to->rcq, 9001, PVRDMA_WC_RECV, len, file, line);
	t_cqe_ok_at(&from->scq, 9002, PVRDMA_WC_SEND, UINT32_MAX, file, line);
	_assert_int_equal(fg_mismatch(to->mr.va + 1000, len, 77), len, file, line);
}

void t_message(struct t_env *env, uint32_t flags)
{
	t_recv(&env->b, 7, 0, 0);
	t_post(&env->a, .wr_id = 7, .opcode = PVRDMA_WR_SEND, .flags = flags);
	fg_run(env->host);
}

void t_exchange_at(struct t_env *env, uint64_t wr_id, uint32_t len, const char *file, int line)
{
	t_recv(&env->b, wr_id, 0, len);
	t_send(&env->a, wr_id, 0, len);
	fg_run(env->host);
	t_cqe_ok_at(&env->b.rcq, wr_id, PVRDMA_WC_RECV, len, file, line);
	t_cqe_ok_at(&env->a.scq, wr_id, PVRDMA_WC_SEND, UINT32_MAX, file, line);
}

void t_ping_pong_at(struct fg_host *host, struct fg_end *a, struct fg_end *b, const char *file,
		    int line)
{
	ping(host, a, b, file, line);
	ping(host, b, a, file, line);
}

uint64_t t_wide_pdir(struct fg_guest *guest, uint32_t npages, uint32_t *page)
{
	struct fg_ram *ram = &guest->ram;
	uint32_t dir = fg_ram_get_page(ram), table = fg_ram_get_page(ram);
	uint64_t *dir_va = fg_page_va(ram, dir), *table_va = fg_page_va(ram, table);

	*page = fg_ram_get_page(ram);
	for (uint32_t i = 0; i < PVR_PDIR_ENTRIES; i++)
		table_va[i] = fg_page_gpa(ram, *page);
	for (uint32_t i = 0; i < (npages + PVR_PDIR_ENTRIES - 1) / PVR_PDIR_ENTRIES; i++)
		dir_va[i] = fg_page_gpa(ram, table);
	return fg_page_gpa(ram, dir);
}

void t_wide_mr(struct fg_end *end, uint32_t npages, struct fg_mr *mr)
{
	struct pvr_cmd_create_mr req = fg_mr_request(&end->pd, &end->buf, 0, 1, FG_ACCESS_ALL);
	uint32_t page;

	req.nchunks = npages;
	req.length = (uint64_t)npages * PVR_PAGE_SIZE;
	req.pdir_dma = t_wide_pdir(end->guest, npages, &page);
	expect_ok(fg_mr_create_as(&end->pd, &req, mr));
}

uint8_t *t_map_rom(struct fg_guest *guest)
{
	static uint8_t rom[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));

	memset(rom, 0, sizeof(rom));
	expect_ok(pvr_adapter_map_ram(guest->adapter, T_ROM_GPA, sizeof(rom), rom, false));
	return rom;
}

uint8_t t_spare[4 * PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));

void t_plug_spare(struct fg_guest *guest)
{
	expect_ok(pvr_adapter_map_ram(guest->adapter, T_SPARE_GPA, sizeof(t_spare), t_spare, true));
}

void t_unplug_spare(struct fg_guest *guest)
{
	pvr_adapter_unmap_ram(guest->adapter, T_SPARE_GPA, sizeof(t_spare));
}
