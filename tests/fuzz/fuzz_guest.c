// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: two hostile guests. The input is a program, see records.h. Its head has
 * the extensions of each guest and the form of the engine. The first byte of a record chooses
 * an operation:
 *
 *  - an action of fg_monkey.h, whose choices are the record's bytes
 *  - bytes stored to any memory that the guest shares with the device: shared region, page
 *    directories and tables, rings, WQEs, CQEs, buffers
 *  - the same between two reads of the device, by the hook in pvr_copy_once()
 *  - a command with any bytes, registers and doorbells of any size at any offset
 *  - RAM that is unmapped, mapped in part, or mapped read-only
 *  - one round of one worker, time that passes, reset, failure, a QP of each type
 *
 * After each input all objects must be gone by RESET, and two other guests must still work.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_world.h"
#include "records.h"

#define RECORDS_MAX 256
#define STEP_ROUNDS 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void pvr_fuzz_copied(const void *from_shm, size_t size);

static struct fuzz_world w;

/* The store of the hook: after so many more copies. */
static struct {
	bool armed;
	uint32_t after;
	uint32_t offset;
	uint32_t len;
	uint8_t bytes[16];
} tamper;

void pvr_fuzz_copied(const void *from_shm, size_t size)
{
	uint8_t *at = (uint8_t *)(uintptr_t)from_shm + tamper.offset % (size ? size : 1);
	const struct fuzz_piece *piece;
	size_t room;

	if (!tamper.armed || tamper.after--)
		return;
	tamper.armed = false;
	piece = fuzz_piece_of(&w, at);
	if (!piece)
		return;
	room = (size_t)(piece->va + piece->mapped_size - at);
	memcpy(at, tamper.bytes, tamper.len < room ? tamper.len : room);
}

/* ---------------------------------------------------------------------- operations */

static void do_monkey(struct record *record)
{
	fg_monkey_step(&w.monkey);
}

/* A buffer of an end, or NULL. */
static struct fg_buf *shared_buf(struct record *record, int who)
{
	struct fg_guest *g = w.guest[who];
	struct fg_end *end = &w.monkey.end[who];
	struct fg_buf *bufs[] = { &end->qp.buf,		  &end->scq.buf,
				  &end->rcq.buf,	  &end->buf,
				  &w.monkey.srq[who].buf, &w.monkey.buf[who],
				  &g->async_ring,	  &g->cq_ring };
	struct fg_buf *buf = bufs[record_below(record, sizeof(bufs) / sizeof(bufs[0]))];

	return buf->view ? buf : NULL;
}

/* Memory that guest and device share, or NULL. */
static uint8_t *shared_page(struct record *record, int who)
{
	struct fg_guest *g = w.guest[who];
	struct fg_buf *buf;

	switch (record_below(record, 16)) {
	case 0:
		return (uint8_t *)g->dsr;
	case 1:
		return g->cmd_slot;
	case 2:
		return g->resp_slot;
	}
	buf = shared_buf(record, who);
	if (!buf)
		return NULL;
	switch (record_below(record, 4)) {
	case 0:
		return (uint8_t *)fg_buf_dir(buf);
	case 1:
		return (uint8_t *)fg_buf_table(buf, 0);
	}
	return buf->va + (size_t)record_below(record, buf->npages) * PVR_PAGE_SIZE;
}

static void do_store(struct record *record)
{
	uint8_t *page = shared_page(record, (int)record_below(record, 2));
	const uint32_t offset = record_draw(record) % PVR_PAGE_SIZE;
	uint32_t len = 1 + record_below(record, 20);

	len = len < PVR_PAGE_SIZE - offset ? len : PVR_PAGE_SIZE - offset;
	for (uint32_t i = 0; page && i < len; i++)
		page[offset + i] = record_byte(record);
}

static void do_tamper(struct record *record)
{
	tamper.armed = true;
	tamper.after = record_below(record, 32);
	tamper.offset = record_byte(record);
	tamper.len = 1 + record_below(record, sizeof(tamper.bytes));
	for (size_t i = 0; i < sizeof(tamper.bytes); i++)
		tamper.bytes[i] = record_byte(record);
}

/* The previous command of the slot, in part overwritten. */
static void do_command(struct record *record)
{
	struct fg_guest *g = w.guest[record_below(record, 2)];
	uint8_t *slot = g->cmd_slot;
	const uint32_t cmd = record_below(record, PVR_CMD_NUM + 1);
	const uint32_t offset = record_below(record, 128), len = record_below(record, 25);

	if (record_byte(record) & 1)
		memcpy(slot + offsetof(struct pvr_cmd_hdr, cmd), &cmd, sizeof(cmd));
	for (uint32_t i = 0; i < len; i++)
		slot[sizeof(struct pvr_cmd_hdr) + offset + i] = record_byte(record);
	fg_reg_write(g, PVR_REG_REQUEST, 0);
}

static void do_register(struct record *record)
{
	struct fg_guest *g = w.guest[record_below(record, 2)];
	const uint8_t form = record_byte(record);
	uint8_t value[16];
	const size_t len = form & 1 ? 4 : record_below(record, sizeof(value) + 1);
	uint64_t offset = record_below(record, form & 2 ? PVR_BAR_REGS_SIZE + 8 : 0x40);

	if (form & 4)
		offset &= ~3ull;
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = record_byte(record);
	if (form & 8)
		pvr_adapter_regs_read(g->adapter, offset, value, len);
	else
		pvr_adapter_regs_write(g->adapter, offset, value, len);
}

static void do_doorbell(struct record *record)
{
	struct fg_guest *g = w.guest[record_below(record, 2)];
	const uint8_t form = record_byte(record);
	uint8_t value[16];
	const size_t len = form & 1 ? 4 : record_below(record, sizeof(value) + 1);
	const uint64_t offset = (uint64_t)record_draw(record) % (PVR_MAX_UAR + 1) * PVR_PAGE_SIZE +
				record_draw(record) % (form & 2 ? PVR_PAGE_SIZE : 24);

	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = record_byte(record);
	if (g->uar_shm && form & 4 && offset + len <= PVR_BAR_UAR_SIZE)
		memcpy((uint8_t *)g->uar_shm + offset, value, len);
	else
		pvr_adapter_uar_write(g->adapter, offset, value, len);
}

/* Any piece, or that of a buffer's page. */
static void do_ram(struct record *record)
{
	const int who = (int)record_below(record, 2);
	const uint8_t form = record_byte(record);
	const struct fg_buf *buf = form & 1 ? NULL : shared_buf(record, who);
	int i = (int)record_below(record, FUZZ_PIECES);
	const struct fuzz_piece *piece;

	if (buf)
		i = (int)(buf->page[record_below(record, buf->npages)] / FUZZ_PIECE_PAGES);
	piece = &w.piece[who][i];
	if (piece->mapped)
		fuzz_piece_unmap(&w, who, i);
	else
		fuzz_piece_map(&w, who, i,
			       form & 2 ? 1 + record_draw(record) % piece->size : piece->size,
			       form % 32 < 24);
}

/* One round of one worker: work stays half done. */
static void do_round(struct record *record)
{
	const unsigned int worker = record_below(record, w.host->workers);

	if (record_byte(record) & 1)
		pvr_engine_poll(w.host->engine, worker);
	pvr_engine_run(w.host->engine, worker);
}

static void do_run(struct record *record)
{
	if (!fg_run_bounded(w.host, STEP_ROUNDS))
		fg_die("the device does not come to rest");
}

static void do_time(struct record *record)
{
	w.host->now += (uint64_t)record_draw(record) << record_below(record, 24);
}

static void do_adapter(struct record *record)
{
	struct fg_guest *g = w.guest[record_below(record, 2)];

	switch (record_below(record, 8)) {
	case 0:
		pvr_adapter_fail(g->adapter, "it is fuzzed");
		break;
	case 1:
		pvr_adapter_reset(g->adapter);
		break;
	case 2:
		fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
		break;
	case 3:
		fg_dsr_write(g, g->dsr_gpa);
		break;
	case 4:
		fg_ctl(g, PVR_CTL_ACTIVATE);
		break;
	default:
		pvr_adapter_set_bus_master(g->adapter, record_byte(record) & 3);
		break;
	}
}

/* An end's own objects are in use, and fg_monkey seldom destroys them. */
static void do_destroy(struct record *record)
{
	static const uint32_t cmds[FG_KIND_NUM] = {
		PVR_CMD_DESTROY_UC, PVR_CMD_DESTROY_PD, PVR_CMD_DESTROY_MR,
		PVR_CMD_DESTROY_CQ, PVR_CMD_DESTROY_QP, PVR_CMD_DESTROY_SRQ,
	};
	const uint32_t who = record_below(record, 2), kind = record_below(record, 2 * FG_KIND_NUM);
	const uint32_t i = record_below(record, FG_MONKEY_OBJECTS);

	if (kind < FG_KIND_NUM)
		fg_cmd_destroy(w.guest[who], cmds[kind], w.monkey.handle[who][kind][i]);
	else
		fg_cmd_destroy(w.guest[who], PVR_CMD_DESTROY_QP, w.monkey.end[who].qp.handle);
}

static void do_open(struct record *record)
{
	static const enum pvr_qp_type types[] = { PVR_QPT_RC, PVR_QPT_UC, PVR_QPT_UD, PVR_QPT_GSI };
	enum pvr_qp_type type = types[record_below(record, 4)];
	const bool has_srq = record_byte(record) & 1 && type != PVR_QPT_GSI;

	if (type == PVR_QPT_UC && !(w.guest[0]->config.ext & w.guest[1]->config.ext & PVR_EXT_UC))
		type = PVR_QPT_RC;
	tamper.armed = false;
	fuzz_world_heal(&w);
	for (int i = 0; i < 2; i++)
		fg_reg_write(w.guest[i], PVR_REG_CTL, PVR_CTL_RESET);
	fg_monkey_open(&w.monkey, type, has_srq);
}

static const struct {
	uint8_t below; /* of the first byte */
	void (*run)(struct record *record);
} operations[] = {
	{ 128, do_monkey },   { 152, do_store },    { 164, do_tamper },	 { 180, do_command },
	{ 188, do_register }, { 196, do_doorbell }, { 210, do_ram },	 { 220, do_round },
	{ 232, do_run },      { 242, do_time },	    { 247, do_adapter }, { 251, do_destroy },
	{ 255, do_open },
};

static void execute(const uint8_t *bytes)
{
	struct record record;
	size_t i = 0;
	uint8_t op;

	record_open(&record, bytes);
	w.monkey.opaque = &record;
	op = record_byte(&record);
	while (op >= operations[i].below && operations[i].below < 255)
		i++;
	operations[i].run(&record);
}

/* --------------------------------------------------------------------------- a run */

static uint32_t extensions(const uint8_t *head)
{
	const uint32_t bits = head[0] | (uint32_t)head[1] << 8;

	/* Both all and none are frequent. */
	if (!bits)
		return PVR_ENGINE_EXT;
	return bits == 0xffff ? 0 : (bits | (uint32_t)(head[1] & 1) << 16) & PVR_ENGINE_EXT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_world_options options;
	const uint8_t *at = data + RECORDS_HEAD;

	if (size < RECORDS_HEAD)
		return 0;
	options = (struct fuzz_world_options){
		.workers = 1 + (data[0] & 1),
		.ext = { extensions(data + 2), extensions(data + 4) },
		.uar_mapped = { data[0] & 2, data[0] & 4 },
		.polls = data[0] & 8,
	};
	tamper.armed = false;
	fuzz_world_init(&w, &options);
	fg_monkey_init(&w.monkey, w.host, w.guest[0], w.guest[1], 1);
	w.monkey.draw = record_draw;
	w.monkey.keeps_ends = true;
	for (int i = 0; i < RECORDS_MAX && at + RECORD_SIZE <= data + size; i++, at += RECORD_SIZE)
		execute(at);
	tamper.armed = false;
	w.monkey.draw = NULL;
	fuzz_world_check(&w, !(data[0] & 16));
	fuzz_world_exit(&w);
	return 0;
}
