// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: the state of an adapter, and what the adapter does after its load.
 *
 * An input is a sequence of records without END, which is made here: with the right CRC, so that
 * the checks of the fields decide. If the state is loaded, it is saved again, started, and gets
 * doorbells and requests of a peer.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "fake_guest.h"
#include "fg_migrate.h"
#include "fg_xrc.h"

#define ALL_EXT (PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL)
#define INPUT_MAX (64u << 10)
#define ROUNDS 100000 /* until the engine must rest */
#define HANDLES 6u /* that get doorbells */

static struct {
	struct fg_host *host;
	struct fg_guest *guest, *peer;
	struct fg_end end; /* of the peer, connected to queue pair 2 of the guest */
	uint8_t gid[16]; /* of the guest */
} w;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

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

static void must(uint32_t err, const char *what)
{
	if (err)
		fg_die("%s: ERR %u", what, err);
}

static void all_kinds(struct fg_guest *guest, struct fg_end *rc)
{
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 9 };
	const struct pvrdma_sge sge = fg_sge(&rc->mr, 0, 64);
	struct fg_xrcd xrcd;
	struct fg_srq srq;
	struct fg_end ud;
	struct fg_qp target;
	struct fg_mr mr;

	must(fg_mr_create_dma(&rc->pd, &mr), "DMA region");
	must(fg_mw_create(&rc->pd, PVR_MR_FLAG_MW1, &mr), "window");
	must(fg_mw_create(&rc->pd, PVR_MR_FLAG_MW2, &mr), "window");
	fg_end_open(&ud, guest, PVR_QPT_UD);
	fg_end_ready(&ud);
	must(fg_qp_attach(&ud.qp, group), "group");
	must(fg_xrcd_create(guest, &xrcd), "XRC domain");
	must(fg_xrc_srq_create(&xrcd, &rc->pd, &rc->scq, 16, 2, &srq), "SRQ");
	must(fg_xrc_tgt_create(&xrcd, &target), "target");
	must(fg_srq_create(&rc->pd, 16, 2, &srq), "SRQ");
	fg_cq_arm(&rc->rcq);
	fg_post_recv(&rc->qp, 1, &sge, 1);
	fg_run(guest->host);
}

/* Of a guest of the same MAC on another host. */
static void write_seeds(void)
{
	struct fg_host *host = fg_host_create();
	struct fg_guest_config config;
	struct fg_guest *guest;
	struct fg_end rc;

	fg_guest_config_init(&config, 1);
	guest = fg_guest_create(host, &config);
	write_seed("idle", guest);
	must(fg_guest_boot(guest), "boot");
	write_seed("active", guest);
	must(fg_bind_gid(guest, 0, w.gid), "GID");
	fg_end_open(&rc, guest, PVR_QPT_RC);
	must(fg_qp_connect(&rc.qp, NULL, w.end.gid, w.end.qp.qpn), "connect");
	write_seed("connected", guest);
	all_kinds(guest, &rc);
	write_seed("all-kinds", guest);
	fg_host_destroy(host);
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

static void use(void)
{
	const struct pvrdma_sge sge = fg_sge(&w.end.mr, 0, 64);
	const struct fg_wr wr = { .opcode = PVRDMA_WR_SEND, .sge = &sge, .num_sge = 1 };
	uint32_t i;

	for (i = 0; i < HANDLES; i++) {
		fg_uar_write(w.guest, 0, PVRDMA_UAR_QP_OFFSET, PVR_DB_QP_SEND | PVR_DB_QP_RECV | i);
		fg_uar_write(w.guest, 0, PVRDMA_UAR_CQ_OFFSET, PVR_DB_CQ_ARM | i);
		fg_uar_write(w.guest, 0, PVRDMA_UAR_SRQ_OFFSET, PVR_DB_SRQ_RECV | i);
	}
	fg_post_send(&w.end.qp, &wr);
	rest();
	fg_advance(w.host, 100 * FG_MS);
	fg_reg_write(w.guest, PVR_REG_REQUEST, 0);
	rest();
}

static void clean_up(void)
{
	pvr_adapter_reset(w.guest->adapter);
	while (pvr_adapter_busy(w.guest->adapter))
		pvr_engine_run(w.host->engine, 0);
	if (fg_stats(w.guest).memory)
		fg_die("%llu bytes are left", (unsigned long long)fg_stats(w.guest).memory);
	must(fg_qp_to_reset(&w.end.qp), "reset");
	must(fg_qp_connect(&w.end.qp, NULL, w.gid, 2), "connect");
	fg_cq_drain(&w.end.scq);
	fg_cq_drain(&w.end.rcq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fg_state state;

	if (size > INPUT_MAX)
		return -1;
	state = complete(data, size);
	if (!fg_state_load(w.guest, &state)) {
		save_again();
		fg_start(w.guest);
		use();
	}
	fg_state_free(&state);
	clean_up();
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct fg_guest_config config;

	(void)argc;
	(void)argv;
	fg_default_ext = ALL_EXT;
	w.host = fg_host_create();
	fg_guest_config_init(&config, 1);
	w.guest = fg_guest_create(w.host, &config);
	fg_gid_from_mac(w.gid, config.mac);
	w.peer = fg_guest_start(w.host, 2);
	fg_end_open(&w.end, w.peer, PVR_QPT_RC);
	must(fg_qp_connect(&w.end.qp, NULL, w.gid, 2), "connect");
	if (getenv("FUZZ_SEEDS")) {
		write_seeds();
		exit(0);
	}
	return 0;
}
