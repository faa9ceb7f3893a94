// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The state of an adapter itself: records HEAD, REGS, RING, EQE, CQ_EVENT, GID, MCAST. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/state.h"
#include "ctrl/ctrl.h"
#include "ctrl/revision.h"
#include "gid/fabric.h"
#include "gid/mcast_group.h"
#include "rdma/event.h"
#include "rdma/qp_sweep.h"

#define HWVERSION_BYTES 16

/* ------------------------------------------------------------------------- HEAD */

/* Compare a field with that of this adapter. */
static void same_bytes(struct pvr_codec *codec, const char *field, const void *own, size_t size)
{
	uint8_t bytes[PVR_NAME_MAX];

	memcpy(bytes, own, size);
	pvr_codec_bytes(codec, field, bytes, size);
	if (!codec->err && memcmp(bytes, own, size))
		pvr_codec_fault(codec, -EINVAL, "%s is not that of this adapter", field);
}

static void same_name(struct pvr_codec *codec, const char *field, const char *own)
{
	char name[PVR_NAME_MAX + 1] = "";

	strncpy(name, own, PVR_NAME_MAX - 1);
	pvr_codec_bytes(codec, field, name, PVR_NAME_MAX);
	if (!codec->err && strcmp(name, own))
		pvr_codec_fault(codec, -EINVAL, "%s is '%.31s', expected '%s'", field, name, own);
}

void pvr_head_state(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	uint64_t magic = PVR_STATE_MAGIC, clock = adapter->stopped_at - adapter->clock_start;
	uint32_t format = PVR_STATE_FORMAT, ext = adapter->revision->ext;

	pvr_codec_u64(codec, "magic", &magic);
	if (magic != PVR_STATE_MAGIC)
		pvr_codec_fault(codec, -EINVAL, "this is no state of a pvrdma adapter");
	pvr_codec_u32(codec, "format", &format);
	if (format != PVR_STATE_FORMAT)
		pvr_codec_fault(codec, -EINVAL, "format %" PRIu32 ", expected %u", format,
				PVR_STATE_FORMAT);
	same_bytes(codec, "MAC address", adapter->mac, sizeof(adapter->mac));
	same_name(codec, "fabric", adapter->fabric->name);
	same_name(codec, "hardware version", adapter->revision->name);
	same_bytes(codec, "RoCE version", &adapter->gid_type, sizeof(adapter->gid_type));
	pvr_codec_u32(codec, "extensions", &ext);
	if (ext & ~adapter->revision->ext)
		pvr_codec_fault(codec, -EINVAL,
				"extensions 0x%" PRIx32 ", of which this version has 0x%" PRIx32
				": use a newer pvrdmad",
				ext, ext & adapter->revision->ext);
	pvr_codec_u64(codec, "clock", &clock);
	if (codec->loads && !codec->err)
		adapter->clock_start = adapter->stopped_at - clock;
	pvr_move_state(codec);
}

/* ------------------------------------------------------------------------- REGS */

static void table_fields(struct pvr_codec *codec, struct pvr_adapter *adapter)
{
	struct pvr_table *const tables[] = { &adapter->ucs,  &adapter->pds, &adapter->mrs,
					     &adapter->cqs,  &adapter->qps, &adapter->srqs,
					     &adapter->xrcds };
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		pvr_codec_u32_max(codec, "next handle", &tables[i]->next, tables[i]->max);
		if (!codec->loads || tables[i]->next >= tables[i]->min)
			continue;
		pvr_codec_fault(codec, -EINVAL,
				"next handle is %" PRIu32 ", expected at least %" PRIu32,
				tables[i]->next, tables[i]->min);
		tables[i]->next = tables[i]->min;
	}
}

static void handshake_fields(struct pvr_codec *codec, struct pvr_adapter *adapter)
{
	uint8_t state = adapter->state;
	void *dsr = adapter->dsr_shm;

	pvr_codec_u8_max(codec, "state", &state, PVR_ADAPTER_FAILED);
	adapter->state = state;
	pvr_codec_u32(codec, "DSRLOW", &adapter->dsr_low);
	pvr_codec_u32(codec, "DSRHIGH", &adapter->dsr_high);
	pvr_codec_u32(codec, "ERR", &adapter->err);
	pvr_codec_u32(codec, "ICR", &adapter->icr);
	pvr_codec_u32(codec, "IMR", &adapter->imr);
	pvr_codec_bytes(codec, "pending vectors", adapter->pending, sizeof(adapter->pending));
	pvr_codec_u32(codec, "EXT_ACK", &adapter->ext_ack);
	pvr_codec_u32(codec, "features", &adapter->features);
	pvr_codec_u32(codec, "driver version", &adapter->driver_version);
	pvr_codec_u32(codec, "version", &adapter->version);
	pvr_codec_u64(codec, "doorbell frame", &adapter->uar_pfn);
	pvr_codec_u32(codec, "clock, high", &adapter->clock_high);
	pvr_codec_page(codec, "shared region", &dsr, true);
	pvr_codec_page(codec, "command slot", &adapter->cmd_shm, true);
	pvr_codec_page(codec, "response slot", &adapter->resp_shm, true);
	adapter->dsr_shm = dsr;
}

static void generation_fields(struct pvr_codec *codec, struct pvr_adapter *adapter)
{
	/* pvr_peer_gone_settle() may find one in a later record. */
	bool lost = adapter->has_lost_peers || adapter->features & PVR_EXT_PEER_GONE;
	uint32_t reasons = adapter->qp_sweep.reasons | adapter->qp_sweep.next;

	/* The start of the adapter kicks all, and resumes what waits for other hosts. */
	reasons &= PVR_SWEEP_ERRORS | PVR_SWEEP_PEERS;
	pvr_codec_u8(codec, "region generation", &adapter->mr_generation);
	pvr_codec_u8(codec, "queue pair generation", &adapter->qpn_generation);
	table_fields(codec, adapter);
	pvr_codec_bytes(codec, "counters", adapter->stat, sizeof(adapter->stat));
	pvr_codec_u64(codec, "commands", &adapter->stats.commands);
	pvr_codec_u64(codec, "failed commands", &adapter->stats.commands_failed);
	pvr_codec_u64(codec, "bad accesses", &adapter->stats.bad_accesses);
	pvr_codec_u64(codec, "interrupts", &adapter->stats.interrupts);
	pvr_codec_bool(codec, "lost peers", &lost);
	pvr_codec_u32_max(codec, "sweep", &reasons, PVR_SWEEP_ERRORS | PVR_SWEEP_PEERS);
	pvr_codec_timer(codec, "peers timer", &adapter->peers);
	if (!codec->loads)
		return;
	__atomic_store_n(&adapter->has_lost_peers, lost, __ATOMIC_RELAXED);
	adapter->qp_sweep.reasons = reasons;
	adapter->qp_sweep.next = 0;
	adapter->qp_sweep.handle = 0;
}

static bool has_unknown_vectors(const struct pvr_adapter *adapter)
{
	uint32_t vector;

	for (vector = PVR_VEC_MAX; vector < PVR_VEC_WORDS * 64; vector++)
		if (adapter->pending[vector / 64] & 1ull << vector % 64)
			return true;
	return false;
}

static void check_regs(struct pvr_codec *codec, const struct pvr_adapter *adapter)
{
	const uint32_t own = adapter->revision->version;
	bool attached = adapter->state == PVR_ADAPTER_READY || adapter->state == PVR_ADAPTER_ACTIVE;
	uint32_t version = adapter->driver_version < own ? adapter->driver_version : own;

	if ((adapter->ext_ack | adapter->features) & ~adapter->revision->ext)
		pvr_codec_fault(codec, -EINVAL,
				"features 0x%" PRIx32 ", expected some of 0x%" PRIx32,
				adapter->ext_ack | adapter->features, adapter->revision->ext);
	if (attached &&
	    (adapter->driver_version < PVR_VERSION_ROCEV1 || adapter->version != version))
		pvr_codec_fault(codec, -EINVAL,
				"version %" PRIu32 " with driver version %" PRIu32
				", expected %" PRIu32,
				adapter->version, adapter->driver_version, version);
	if (has_unknown_vectors(adapter))
		pvr_codec_fault(codec, -EINVAL, "a vector is pending that does not exist");
	if (attached && (!adapter->dsr_shm || !adapter->cmd_shm || !adapter->resp_shm))
		pvr_codec_fault(codec, -EINVAL, "the shared region or a slot is missing");
}

void pvr_regs_state(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;

	handshake_fields(codec, adapter);
	generation_fields(codec, adapter);
	if (codec->loads && !codec->err)
		check_regs(codec, adapter);
}

/* ------------------------------------------------------------------------ rings */

#define RINGS (1 + PVR_CQ_VECTORS_MAX)

/* Ring 0 is that of async events, the others are those of completion vectors. */
static struct pvr_event_ring *ring_of(struct pvr_adapter *adapter, uint32_t i)
{
	return i ? &adapter->events.cq[i - 1].ring : &adapter->events.async;
}

static void ring_fields(struct pvr_codec *codec, uint32_t *index, struct pvr_event_ring *ring)
{
	void *header = ring->shm ? (char *)ring->shm - offsetof(struct pvr_ring_state, rx) : NULL;

	pvr_codec_u32_max(codec, "ring", index, RINGS - 1);
	pvr_codec_page(codec, "header", &header, true);
	pvr_codec_page(codec, "slots", &ring->slots_shm, true);
	ring->slots = *index ? PVR_CQNE_SLOTS : PVR_EQE_SLOTS;
	pvr_codec_u32_max(codec, "producer index", &ring->prod, 2 * ring->slots - 1);
	ring->shm = header ? &((struct pvr_ring_state *)header)->rx : NULL;
}

bool pvr_ring_save(struct pvr_codec *codec, uint32_t i)
{
	struct pvr_event_ring ring;

	if (i >= RINGS)
		return false;
	ring = *ring_of(codec->adapter, i);
	if (!ring.shm)
		return true;
	pvr_codec_begin(codec, PVR_STATE_RING);
	ring_fields(codec, &i, &ring);
	pvr_codec_end(codec);
	return true;
}

void pvr_ring_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_event_ring ring = { 0 };
	uint32_t index = 0;

	ring_fields(codec, &index, &ring);
	if (codec->err)
		return;
	if (!ring.shm || !ring.slots_shm)
		pvr_codec_fault(codec, -EINVAL, "ring %" PRIu32 " has no memory", index);
	else if (ring_of(adapter, index)->shm)
		pvr_codec_fault(codec, -EINVAL, "ring %" PRIu32 " exists already", index);
	else
		*ring_of(adapter, index) = ring;
}

/* ----------------------------------------------------------------- waiting events */

void pvr_eqes_save(struct pvr_codec *codec)
{
	struct pvr_event_rings *events = &codec->adapter->events;
	uint32_t i, n = events->backlog_count;
	struct pvr_eqe eqe;

	pvr_codec_begin(codec, PVR_STATE_EQE);
	pvr_codec_u64(codec, "delay", &events->retry_ns);
	pvr_codec_timer(codec, "timer", &events->retry);
	pvr_codec_u32(codec, "events", &n);
	for (i = 0; i < n; i++) {
		eqe = events->backlog[(events->backlog_head + i) % PVR_EQE_BACKLOG];
		pvr_codec_bytes(codec, "event", &eqe, sizeof(eqe));
	}
	pvr_codec_end(codec);
}

void pvr_eqes_load(struct pvr_codec *codec)
{
	struct pvr_event_rings *events = &codec->adapter->events;
	uint32_t i, n = 0;

	/* Older daemons could have a longer one. */
	pvr_codec_u64_max(codec, "delay", &events->retry_ns, 2 * PVR_EVENT_RETRY_MAX_NS);
	if (events->retry_ns > PVR_EVENT_RETRY_MAX_NS)
		events->retry_ns = PVR_EVENT_RETRY_MAX_NS;
	if (events->retry_ns < PVR_EVENT_RETRY_MIN_NS)
		pvr_codec_fault(codec, -EINVAL, "delay %" PRIu64 " ns, expected at least %llu",
				events->retry_ns, PVR_EVENT_RETRY_MIN_NS);
	pvr_codec_timer(codec, "timer", &events->retry);
	pvr_codec_u32_max(codec, "events", &n, PVR_EQE_BACKLOG);
	for (i = 0; i < n && !codec->err; i++)
		pvr_codec_bytes(codec, "event", &events->backlog[i], sizeof(events->backlog[i]));
	if (n && !events->async.shm)
		pvr_codec_fault(codec, -EINVAL, "events wait for a ring that does not exist");
	events->backlog_head = 0;
	events->backlog_count = codec->err ? 0 : n;
}

/* In the order in which the guest gets them. */
bool pvr_cq_events_save(struct pvr_codec *codec, uint32_t vector)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_cq *cq;

	if (vector >= PVR_CQ_VECTORS_MAX)
		return false;
	TAILQ_FOREACH(cq, &adapter->events.cq[vector].backlog, backlog) {
		pvr_codec_begin(codec, PVR_STATE_CQ_EVENT);
		pvr_codec_u32(codec, "cq", &cq->handle);
		pvr_codec_end(codec);
	}
	return true;
}

void pvr_cq_event_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_cq *cq;
	uint32_t handle;

	pvr_codec_u32(codec, "cq", &handle);
	cq = codec->err ? NULL : pvr_cq_get(adapter, handle);
	if (!cq || cq->in_backlog || !pvr_events_have_vector(adapter, cq->comp_vector)) {
		pvr_codec_fault(codec, -EINVAL, "CQ %" PRIu32 " does not exist or waits already",
				handle);
		return;
	}
	cq->in_backlog = true;
	adapter->events.cqs_waiting++;
	TAILQ_INSERT_TAIL(&adapter->events.cq[cq->comp_vector].backlog, cq, backlog);
}

/* ------------------------------------------------------------------------- GIDs */

static void gid_fields(struct pvr_codec *codec, uint32_t *index, struct pvr_gid_entry *entry)
{
	pvr_codec_u32_max(codec, "index", index, PVR_GID_TABLE_LEN - 1);
	pvr_codec_u8(codec, "RoCE version", &entry->type);
	pvr_codec_u16(codec, "VLAN", &entry->vlan);
	pvr_codec_bytes(codec, "GID", entry->gid, sizeof(entry->gid));
}

bool pvr_gid_save(struct pvr_codec *codec, uint32_t i)
{
	if (i >= PVR_GID_TABLE_LEN)
		return false;
	if (!codec->adapter->gids[i].bound)
		return true;
	pvr_codec_begin(codec, PVR_STATE_GID);
	gid_fields(codec, &i, &codec->adapter->gids[i]);
	pvr_codec_end(codec);
	return true;
}

/* The fabric gets it at the start. */
void pvr_gid_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_gid_entry entry = { .bound = true };
	uint32_t index = 0;

	gid_fields(codec, &index, &entry);
	if (codec->err)
		return;
	if (adapter->gids[index].bound || entry.type != adapter->gid_type ||
	    entry.vlan > PVR_VLAN_NONE || !pvr_gid_is_usable(entry.gid))
		pvr_codec_fault(codec, -EINVAL,
				"CREATE_BIND refuses GID %" PRIu32 " or its RoCE version or VLAN",
				index);
	else
		adapter->gids[index] = entry;
}

/* ------------------------------------------------------------- multicast groups */

static void mcast_fields(struct pvr_codec *codec, uint32_t *handle, uint8_t mgid[16])
{
	pvr_codec_u32(codec, "qp", handle);
	pvr_codec_bytes(codec, "group", mgid, 16);
}

/* The list of a queue pair begins with the group that it has joined last. */
static void save_groups(struct pvr_codec *codec, const struct pvr_mcast_qp *mcast_qp,
			uint32_t handle)
{
	if (!mcast_qp)
		return;
	save_groups(codec, LIST_NEXT(mcast_qp, of_qp), handle);
	pvr_codec_begin(codec, PVR_STATE_MCAST);
	mcast_fields(codec, &handle, mcast_qp->mcast_adapter->group->mgid);
	pvr_codec_end(codec);
}

void pvr_mcast_save(struct pvr_codec *codec, struct pvr_qp *qp)
{
	save_groups(codec, LIST_FIRST(&qp->groups), qp->handle);
}

void pvr_mcast_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	uint8_t mgid[16];
	struct pvr_qp *qp;
	uint32_t handle;

	mcast_fields(codec, &handle, mgid);
	qp = codec->err ? NULL : pvr_qp_get(adapter, handle);
	if (!qp || qp->type != PVR_QPT_UD || !pvr_gid_is_multicast(mgid))
		pvr_codec_fault(codec, -EINVAL, "queue pair %" PRIu32 " cannot join this group",
				handle);
	else if (pvr_group_attach(qp, mgid))
		pvr_codec_fault(codec, -ENOMEM, "the guest has joined too many groups");
}
