// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Save and load of an adapter's state: the order of its records.
 *
 * DOC: loading
 *
 * - Pushed bytes are kept. pvr_adapter_load_finish() checks and applies them, in steps of the
 *   adapter's job. An object comes after all that it refers to.
 * - A fault destroys all objects again.
 * - The bytes are kept until the start. If RAM was unmapped meanwhile, the start applies
 *   them once more: a machine may map its memory anew between load and start.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charge.h"
#include "core/state.h"
#include "ctrl/ctrl.h"
#include "ctrl/uar_poll.h"
#include "gid/fabric.h"
#include "rdma/event.h"
#include "rdma/path.h"
#include "rdma/peer_gone.h"
#include "rdma/responder_state.h"
#include "rdma/worker.h"

/* Bytes of a state: these, and the memory that the guest may make the engine allocate. */
#define STATE_BYTES_MIN (64ull << 20)

/* ------------------------------------------------------------------------ save */

struct pvr_save {
	struct pvr_adapter *adapter;
	struct pvr_codec codec;
	uint64_t stop; /* number of the stop that it belongs to */
	size_t taken; /* bytes of codec.out that were read */
	unsigned int stage;
	uint32_t at; /* handle or index in this stage */
	bool in_pages; /* of the region at @at */
	struct pvr_run_cursor pages;
};

/* Each writes the records of @save->at. Return: false if the stage has no more. */

static void one_record(struct pvr_codec *codec, enum pvr_state_type type,
		       void (*write)(struct pvr_codec *codec))
{
	pvr_codec_begin(codec, type);
	write(codec);
	pvr_codec_end(codec);
}

static bool save_head(struct pvr_save *save)
{
	one_record(&save->codec, PVR_STATE_HEAD, pvr_head_state);
	one_record(&save->codec, PVR_STATE_REGS, pvr_regs_state);
	return false;
}

static bool save_rings(struct pvr_save *save)
{
	return pvr_ring_save(&save->codec, save->at);
}

/* Handle 0 is the context of the guest driver. */
static bool save_kernel_uc(struct pvr_save *save)
{
	pvr_codec_begin(&save->codec, PVR_STATE_UC);
	pvr_uc_save(&save->codec, &save->adapter->kernel_uc);
	pvr_codec_end(&save->codec);
	return false;
}

static bool save_object(struct pvr_save *save, const struct pvr_table *table,
			enum pvr_state_type type, pvr_state_save_fn *write)
{
	void *object = pvr_table_get(table, save->at);

	if (object) {
		pvr_codec_begin(&save->codec, type);
		write(&save->codec, object);
		pvr_codec_end(&save->codec);
	}
	return save->at + 1 < table->size;
}

#define SAVE_OBJECTS(name, table, type)                                                   \
	static bool save_##table(struct pvr_save *save)                                   \
	{                                                                                 \
		return save_object(save, &save->adapter->table, type, pvr_##name##_save); \
	}
SAVE_OBJECTS(uc, ucs, PVR_STATE_UC)
SAVE_OBJECTS(pd, pds, PVR_STATE_PD)
SAVE_OBJECTS(xrcd, xrcds, PVR_STATE_XRCD)
SAVE_OBJECTS(cq, cqs, PVR_STATE_CQ)
SAVE_OBJECTS(srq, srqs, PVR_STATE_SRQ)
SAVE_OBJECTS(qp, qps, PVR_STATE_QP)

/* A region with many pages has several records of them. */
static bool save_mrs(struct pvr_save *save)
{
	const struct pvr_table *table = &save->adapter->mrs;
	const struct pvr_mr *mr = pvr_table_get(table, save->at);

	if (mr && !save->in_pages) {
		save_object(save, table, PVR_STATE_MR, pvr_mr_save);
		save->pages = (struct pvr_run_cursor){ 0 };
	}
	save->in_pages = mr && pvr_mr_save_pages(&save->codec, mr, &save->pages);
	if (save->in_pages)
		save->at--;
	return save->in_pages || save->at + 1 < table->size;
}

static bool save_binds(struct pvr_save *save)
{
	const struct pvr_mr *mr = pvr_table_get(&save->adapter->mrs, save->at);

	if (mr)
		pvr_mw_save_bind(&save->codec, mr);
	return save->at + 1 < save->adapter->mrs.size;
}

/* A part of the state that few queue pairs have. */
static bool save_part(struct pvr_save *save,
		      void (*write)(struct pvr_codec *codec, struct pvr_qp *qp))
{
	struct pvr_qp *qp = pvr_qp_get(save->adapter, save->at);

	if (qp)
		write(&save->codec, qp);
	return save->at + 1 < save->adapter->qps.size;
}

static bool save_responders(struct pvr_save *save)
{
	return save_part(save, pvr_responder_state_save);
}

static bool save_in_flight(struct pvr_save *save)
{
	return save_part(save, pvr_path_save_in_flight);
}

static bool save_mcasts(struct pvr_save *save)
{
	return save_part(save, pvr_mcast_save);
}

static bool save_gids(struct pvr_save *save)
{
	return pvr_gid_save(&save->codec, save->at);
}

static bool save_eqes(struct pvr_save *save)
{
	pvr_eqes_save(&save->codec);
	return false;
}

static bool save_cq_events(struct pvr_save *save)
{
	return pvr_cq_events_save(&save->codec, save->at);
}

static void end_fields(struct pvr_codec *codec)
{
	uint32_t records = codec->records, crc = codec->crc;

	pvr_codec_u32(codec, "records", &records);
	pvr_codec_u32(codec, "CRC", &crc);
	if (codec->loads && !codec->err && records != codec->records)
		pvr_codec_fault(codec, -EINVAL, "%" PRIu32 " records, expected %" PRIu32,
				codec->records, records);
	if (codec->loads && !codec->err && crc != codec->crc)
		pvr_codec_fault(codec, -EINVAL, "CRC 0x%08" PRIx32 ", expected 0x%08" PRIx32,
				codec->crc, crc);
}

static bool save_end(struct pvr_save *save)
{
	one_record(&save->codec, PVR_STATE_END, end_fields);
	return false;
}

static bool (*const stages[])(struct pvr_save *save) = {
	save_head,	save_rings,  save_kernel_uc, save_ucs,	save_pds,	save_xrcds,
	save_cqs,	save_srqs,   save_mrs,	     save_qps,	save_binds,	save_responders,
	save_in_flight, save_mcasts, save_gids,	     save_eqes, save_cq_events, save_end,
};
#define STAGES (sizeof(stages) / sizeof(stages[0]))

/* Write records until there are @size bytes, or all. */
static void write_some(struct pvr_save *save, size_t size)
{
	while (save->stage < STAGES && save->codec.size - save->taken < size && !save->codec.err) {
		if (stages[save->stage](save)) {
			save->at++;
			continue;
		}
		save->stage++;
		save->at = 0;
	}
}

static int save_begin(struct pvr_adapter *adapter, struct pvr_save **save,
		      void (*set_token)(struct pvr_adapter *adapter))
{
	int err = 0;

	*save = calloc(1, sizeof(**save));
	if (!*save)
		return -ENOMEM;
	pvr_adapter_lock(adapter);
	if (!pvr_adapter_is_stopped(adapter))
		err = -EINVAL;
	else if (adapter->port)
		err = -EOPNOTSUPP;
	(*save)->adapter = adapter;
	(*save)->codec.adapter = adapter;
	(*save)->stop = adapter->stops;
	if (!err)
		set_token(adapter);
	pvr_adapter_unlock(adapter);
	if (err) {
		free(*save);
		*save = NULL;
	}
	return err;
}

int pvr_adapter_save_begin(struct pvr_adapter *adapter, struct pvr_save **save)
{
	return save_begin(adapter, save, pvr_move_new_token);
}

int pvr_adapter_save_again(struct pvr_adapter *adapter, struct pvr_save **save)
{
	return save_begin(adapter, save, pvr_move_keep_token);
}

static ssize_t take(struct pvr_save *save, void *buf, size_t size)
{
	size_t left;

	write_some(save, size);
	if (save->codec.err)
		return save->codec.err;
	left = save->codec.size - save->taken;
	if (size > left)
		size = left;
	memcpy(buf, save->codec.out + save->taken, size);
	save->taken += size;
	if (save->taken == save->codec.size) {
		save->taken = 0;
		save->codec.size = 0;
	}
	return (ssize_t)size;
}

ssize_t pvr_save_read(struct pvr_save *save, void *buf, size_t size)
{
	struct pvr_adapter *adapter = save->adapter;
	ssize_t n = -ESTALE;

	pvr_adapter_lock(adapter);
	save->codec.living = 0;
	if (pvr_adapter_is_stopped(adapter) && adapter->stops == save->stop)
		n = take(save, buf, size);
	pvr_adapter_unlock(adapter);
	return n;
}

void pvr_save_end(struct pvr_save *save)
{
	if (!save)
		return;
	pvr_codec_exit(&save->codec);
	free(save);
}

/* ------------------------------------------------------------------------ load */

struct pvr_load {
	uint8_t *data;
	size_t size, room;
	size_t at; /* the next record */
	bool ended; /* END was read */
	bool stale; /* RAM was unmapped since the load */
	struct pvr_codec codec;
	struct pvr_mr_load mr;
};

static void load_mr(struct pvr_codec *codec, struct pvr_load *load)
{
	pvr_mr_load(codec, &load->mr);
}

static void load_mr_pages(struct pvr_codec *codec, struct pvr_load *load)
{
	pvr_mr_load_pages(codec, &load->mr);
}

/* How to load a record. Records come in the order of these rows. */
static const struct record_ops {
	pvr_state_load_fn *load;
	void (*load_part)(struct pvr_codec *codec, struct pvr_load *load);
	bool once; /* exactly one */
} record_ops[PVR_STATE_TYPES] = {
	[PVR_STATE_HEAD] = { .load = pvr_head_state, .once = true },
	[PVR_STATE_REGS] = { .load = pvr_regs_state, .once = true },
	[PVR_STATE_RING] = { .load = pvr_ring_load },
	[PVR_STATE_UC] = { .load = pvr_uc_load },
	[PVR_STATE_PD] = { .load = pvr_pd_load },
	[PVR_STATE_XRCD] = { .load = pvr_xrcd_load },
	[PVR_STATE_CQ] = { .load = pvr_cq_load },
	[PVR_STATE_SRQ] = { .load = pvr_srq_load },
	[PVR_STATE_MR] = { .load_part = load_mr },
	[PVR_STATE_MR_PAGES] = { .load_part = load_mr_pages },
	[PVR_STATE_QP] = { .load = pvr_qp_load },
	[PVR_STATE_MW_BIND] = { .load = pvr_mw_load_bind },
	[PVR_STATE_RESPONDER] = { .load = pvr_responder_state_load },
	[PVR_STATE_IN_FLIGHT] = { .load = pvr_path_load_in_flight },
	[PVR_STATE_MCAST] = { .load = pvr_mcast_load },
	[PVR_STATE_GID] = { .load = pvr_gid_load },
	[PVR_STATE_EQE] = { .load = pvr_eqes_load, .once = true },
	[PVR_STATE_CQ_EVENT] = { .load = pvr_cq_event_load },
	[PVR_STATE_END] = { .load = end_fields, .once = true },
};

/* Regions and their pages alternate. */
static uint32_t rank(uint32_t type)
{
	return type == PVR_STATE_MR_PAGES ? PVR_STATE_MR : type;
}

/*
 * References need no more than the order; a record that exists once must not be left out.
 * @last: the type of the record before it, 0 for none.
 */
static void check_order(struct pvr_codec *codec, uint32_t last)
{
	uint32_t type = codec->type, i;

	if (type >= PVR_STATE_TYPES || (!record_ops[type].load && !record_ops[type].load_part)) {
		pvr_codec_fault(codec, -EINVAL, "type %" PRIu32 " is unknown: use a newer pvrdmad",
				type);
		return;
	}
	if (rank(type) < rank(last) || (type == last && record_ops[type].once))
		pvr_codec_fault(codec, -EINVAL, "it follows a record %s",
				pvr_state_type_name(last));
	for (i = last + 1; i < type; i++)
		if (record_ops[i].once)
			pvr_codec_fault(codec, -EINVAL, "the record %s is missing",
					pvr_state_type_name(i));
	if (type > PVR_STATE_REGS && type != PVR_STATE_END && type != PVR_STATE_EQE &&
	    type != PVR_STATE_UC && codec->adapter->state == PVR_ADAPTER_IDLE)
		pvr_codec_fault(codec, -EINVAL, "an adapter without a driver has no objects");
}

static void load_record(struct pvr_load *load)
{
	struct pvr_codec *codec = &load->codec;
	const uint8_t *data = load->data + load->at;
	uint32_t last = codec->type;
	size_t bytes = pvr_codec_open(codec, data, load->size - load->at);

	if (!bytes)
		return;
	check_order(codec, last);
	if (codec->type != PVR_STATE_MR_PAGES)
		pvr_mr_load_end(codec, &load->mr);
	if (codec->err)
		return;
	pvr_job_spend(codec->adapter, PVR_WORK_OBJECT);
	if (record_ops[codec->type].load)
		record_ops[codec->type].load(codec);
	else
		record_ops[codec->type].load_part(codec, load);
	if (codec->err)
		return;
	load->ended = codec->type == PVR_STATE_END;
	load->at += bytes;
	pvr_codec_close(codec, data, bytes);
	if (load->ended && load->at != load->size)
		pvr_codec_fault(codec, -EINVAL, "%zu bytes follow it", load->size - load->at);
}

static void fail(struct pvr_adapter *adapter)
{
	struct pvr_load *load = adapter->load;

	snprintf(adapter->load_why, sizeof(adapter->load_why), "%s", load->codec.why);
	adapter->load_err = load->codec.err;
	pvr_log_limited(adapter, PVR_LOG_ERR, "its state is refused: %s", adapter->load_why);
	pvr_adapter_empty(adapter, false);
}

/* The function adapter->job.step of a load. */
static void load_step(struct pvr_adapter *adapter)
{
	struct pvr_load *load = adapter->load;

	while (!load->ended && !load->codec.err && pvr_job_may_go_on(adapter))
		load_record(load);
	if (!load->codec.err && !load->ended)
		return;
	pvr_job_set(adapter, NULL);
	if (load->codec.err) {
		fail(adapter);
		return;
	}
	load->stale = false;
	pvr_adapter_set_run_state(adapter, PVR_RUN_LOADED);
	pvr_move_need_source(adapter, true);
	pvr_info(adapter, "state of %zu bytes loaded, %" PRIu32 " records", load->size,
		 load->codec.records);
}

void pvr_load_begin(struct pvr_adapter *adapter)
{
	struct pvr_load *load = adapter->load;

	load->at = 0;
	load->ended = false;
	load->codec = (struct pvr_codec){ .adapter = adapter, .loads = true };
	load->mr = (struct pvr_mr_load){ 0 };
	pvr_lone_start_end(adapter);
	adapter->move.bound = false;
	adapter->move.answer = PVR_TAKE_NONE;
	adapter->move.asked_at = 0;
	adapter->move.unbound_asks = 0;
	adapter->move.ask_next = 0;
	adapter->load_err = 0;
	adapter->load_why[0] = '\0';
	adapter->stopped_at = pvr_now(adapter->engine);
	adapter->job.cancel = NULL;
	pvr_adapter_set_run_state(adapter, PVR_RUN_LOADING);
	pvr_job_set(adapter, load_step);
	pvr_job_step(adapter);
	if (adapter->job.step)
		pvr_worker_queue(adapter);
}

void pvr_load_free(struct pvr_adapter *adapter)
{
	if (!adapter->load)
		return;
	free(adapter->load->data);
	free(adapter->load);
	adapter->load = NULL;
}

void pvr_load_ram_gone(struct pvr_adapter *adapter)
{
	adapter->load->stale = true;
}

/* ---------------------------------------------------------------------- push */

static int grow(struct pvr_adapter *adapter, struct pvr_load *load, size_t size)
{
	uint64_t max = STATE_BYTES_MIN + pvr_charge_limit(adapter);
	size_t room = load->room ? load->room : PVR_STATE_RECORD_MAX;
	uint8_t *data;

	if (size > max - load->size)
		return -E2BIG;
	if (load->size + size <= load->room)
		return 0;
	while (room < load->size + size)
		room *= 2;
	data = realloc(load->data, room);
	if (!data)
		return -ENOMEM;
	load->data = data;
	load->room = room;
	return 0;
}

static int push(struct pvr_adapter *adapter, const void *data, size_t size)
{
	struct pvr_load *load;
	int err;

	if (adapter->job.step ||
	    (adapter->run_state != PVR_RUN_LOADING &&
	     (adapter->run_state != PVR_RUN_RUNNING || adapter->state != PVR_ADAPTER_IDLE)))
		return -EBUSY;
	if (!adapter->load) {
		adapter->load = calloc(1, sizeof(*adapter->load));
		if (!adapter->load)
			return -ENOMEM;
		pvr_move_new_load(adapter);
	}
	pvr_adapter_set_run_state(adapter, PVR_RUN_LOADING);
	load = adapter->load;
	err = grow(adapter, load, size);
	if (err)
		return err;
	memcpy(load->data + load->size, data, size);
	load->size += size;
	return 0;
}

int pvr_adapter_load_push(struct pvr_adapter *adapter, const void *data, size_t size)
{
	int err;

	pvr_adapter_lock(adapter);
	err = push(adapter, data, size);
	pvr_adapter_unlock(adapter);
	return err;
}

static int finish(struct pvr_adapter *adapter)
{
	if (adapter->job.step)
		return -EINPROGRESS;
	if (adapter->run_state == PVR_RUN_LOADED)
		return 0;
	if (adapter->run_state != PVR_RUN_LOADING)
		return adapter->load_err ? adapter->load_err : -EINVAL;
	pvr_load_begin(adapter);
	if (adapter->job.step)
		return -EINPROGRESS;
	return adapter->run_state == PVR_RUN_LOADED ? 0 : adapter->load_err;
}

int pvr_adapter_load_finish(struct pvr_adapter *adapter)
{
	int err;

	pvr_adapter_lock(adapter);
	err = finish(adapter);
	pvr_adapter_unlock(adapter);
	return err;
}

void pvr_adapter_load_error(struct pvr_adapter *adapter, char *why, size_t size)
{
	pvr_adapter_lock(adapter);
	snprintf(why, size, "%s", adapter->load_why);
	pvr_adapter_unlock(adapter);
}

/* ----------------------------------------------------------------------- start */

int pvr_load_bind(struct pvr_adapter *adapter)
{
	struct pvr_adapter *loser;
	uint32_t i;
	int err = 0;

	if (adapter->move.bound)
		return 0;
	for (i = 0; i < PVR_GID_TABLE_LEN && !err; i++) {
		if (!adapter->gids[i].bound)
			continue;
		err = pvr_fabric_bind(adapter, adapter->gids[i].gid, &loser);
		if (loser)
			pvr_worker_check(loser->worker);
		if (err)
			snprintf(adapter->load_why, sizeof(adapter->load_why),
				 "GID %" PRIu32 ": %s", i,
				 err == -ENOMEM ? "out of memory"
						: "another adapter of the fabric has it");
	}
	adapter->move.bound = !err;
	return err;
}

int pvr_load_prepare(struct pvr_adapter *adapter)
{
	if (!adapter->load->stale)
		return 0;
	pvr_adapter_empty(adapter, true);
	return -EINPROGRESS;
}

void pvr_load_done(struct pvr_adapter *adapter)
{
	pvr_load_free(adapter);
}
