// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An adapter: creation, end, RAM, link. See reset.c, too. */
#include "core/adapter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/uar_poll.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "rdma/shaper.h"
#include "rdma/ud.h"
#include "core/objects.h"
#include "rdma/peer_gone.h"
#include "rdma/port_state.h"
#include "rdma/qp_sweep.h"
#include "core/ext_dma.h"
#include "core/persist.h"
#include "ctrl/ctrl.h"
#include "rdma/throttle.h"
#include "rdma/worker.h"
#include "rdma/event.h"
#include "ctrl/revision.h"
#include "gid/fabric.h"

static bool name_ok(const char *name)
{
	size_t i;

	for (i = 0; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	return i > 0 && i < PVR_NAME_MAX;
}

static const char *config_error(const struct pvr_engine *engine,
				const struct pvr_adapter_config *config)
{
	const struct pvr_revision *revision = pvr_revision_find(config->hwversion);
	static const uint8_t zero[6];
	const struct pvr_adapter *other;

	if (!config->name || !name_ok(config->name))
		return "the name must be 1 to 31 letters, digits, '.', '_' or '-'";
	if (config->fabric && !name_ok(config->fabric))
		return "the fabric must be 1 to 31 letters, digits, '.', '_' or '-'";
	if ((config->mac[0] & 1) || !memcmp(config->mac, zero, 6))
		return "the MAC address must be a unicast address and not zero";
	if (!revision)
		return "the hardware version must be one of " PVR_REVISION_NAMES;
	if (config->gid_type & (config->gid_type - 1) || config->gid_type & ~revision->gid_types)
		return "this hardware version does not have that version of RoCE";
	if (config->worker >= engine->num_workers)
		return "there is no worker of this number";
	LIST_FOREACH(other, &engine->adapters, link)
		if (!strcmp(other->name, config->name))
			return "another adapter has this name";
	return NULL;
}

static void tables_init(struct pvr_adapter *adapter)
{
	pvr_table_init(&adapter->ucs, 1, PVR_MAX_UAR);
	pvr_table_init(&adapter->pds, 1, PVR_MAX_PD);
	pvr_table_init(&adapter->mrs, 1, PVR_MAX_MR);
	pvr_table_init(&adapter->cqs, 0, PVR_MAX_CQ);
	/* Numbers 0 and 1 mean SMI and GSI; the GSI QP has number 1. */
	pvr_table_init(&adapter->qps, 2, PVR_MAX_QP);
	pvr_table_init(&adapter->srqs, 0, PVR_MAX_SRQ);
	pvr_table_init(&adapter->xrcds, 1, PVR_MAX_XRCD);
}

static void tables_exit(struct pvr_adapter *adapter)
{
	pvr_table_exit(&adapter->xrcds);
	pvr_table_exit(&adapter->srqs);
	pvr_table_exit(&adapter->qps);
	pvr_table_exit(&adapter->cqs);
	pvr_table_exit(&adapter->mrs);
	pvr_table_exit(&adapter->pds);
	pvr_table_exit(&adapter->ucs);
}

/* @wanted: PVR_GID_TYPE_*, or 0 for the latest type of the revision. */
static uint8_t choose_gid_type(const struct pvr_revision *revision, uint8_t wanted)
{
	if (wanted)
		return wanted;
	return revision->gid_types & PVR_GID_TYPE_ROCE_V2 ? PVR_GID_TYPE_ROCE_V2
							  : PVR_GID_TYPE_ROCE_V1;
}

static struct pvr_adapter *adapter_new(struct pvr_engine *engine,
				       const struct pvr_adapter_config *config,
				       const struct pvr_adapter_ops *ops, void *host)
{
	struct pvr_adapter *adapter = calloc(1, sizeof(*adapter));

	if (!adapter)
		return NULL;
	adapter->engine = engine;
	adapter->deadline = UINT64_MAX;
	adapter->clock_start = pvr_now(engine);
	adapter->qp_gen = 1;
	TAILQ_INIT(&adapter->ready);
	LIST_INIT(&adapter->lost_gids);
	LIST_INIT(&adapter->ext_dmas);
	adapter->ops = ops;
	adapter->host = host;
	adapter->bus_master = true;
	pvr_adapter_update_dma(adapter);
	TAILQ_INIT(&adapter->contexts);
	TAILQ_INIT(&adapter->uar_poll.sweeping);
	adapter->uar_poll.on = config->uar_mapped;
	pvr_uc_init(adapter, &adapter->kernel_uc, 0);
	memcpy(adapter->mac, config->mac, sizeof(adapter->mac));
	adapter->revision = pvr_revision_find(config->hwversion);
	adapter->gid_type = choose_gid_type(adapter->revision, config->gid_type);
	strncpy(adapter->name, config->name, PVR_NAME_MAX - 1);
	pvr_ram_init(&adapter->ram);
	adapter->ram_counted = UINT64_MAX;
	adapter->charge_limit = config->object_memory;
	TAILQ_INIT(&adapter->polled.qps);
	TAILQ_INIT(&adapter->hosts.unanswered);
	adapter->port = config->port;
	adapter->port_ecn = config->port_ecn;
	adapter->active_mtu = PVR_MAX_MTU;
	adapter->quantum_bytes = PVR_QUANTUM_BYTES;
	adapter->quantum_requests = PVR_QUANTUM_REQUESTS;
	pvr_path_adapter_init(adapter);
	tables_init(adapter);
	return adapter;
}

static void adapter_free(struct pvr_adapter *adapter)
{
	pvr_load_free(adapter);
	pvr_path_adapter_exit(adapter);
	pvr_timers_exit(&adapter->timers);
	tables_exit(adapter);
	pvr_ram_exit(&adapter->ram);
	free(adapter);
}

struct pvr_adapter *pvr_adapter_create(struct pvr_engine *engine,
				       const struct pvr_adapter_config *config,
				       const struct pvr_adapter_ops *ops, void *host, char *err,
				       size_t err_size)
{
	const char *why = config_error(engine, config);
	struct pvr_adapter *adapter;
	int ret;

	if (why) {
		snprintf(err, err_size, "%s", why);
		return NULL;
	}
	adapter = adapter_new(engine, config, ops, host);
	if (!adapter)
		goto err_memory;
	if (pvr_events_init(adapter))
		goto err_free;
	if (pvr_peer_gone_init(adapter))
		goto err_events;
	if (pvr_port_state_init(adapter))
		goto err_peers;
	if (pvr_ud_linger_init(adapter))
		goto err_port;
	if (pvr_throttle_init(adapter))
		goto err_ud_linger;
	if (pvr_lone_start_init(adapter))
		goto err_throttle;
	ret = pvr_fabric_join(engine, config->fabric ? config->fabric : "default", adapter);
	if (ret == -EADDRINUSE)
		why = "another adapter of its fabric has this MAC address";
	if (ret)
		goto err_lone_start;
	if (pvr_shaper_join(adapter, &config->qos))
		goto err_fabric;
	LIST_INSERT_HEAD(&engine->adapters, adapter, link);
	pvr_worker_add(&engine->workers[config->worker], adapter);
	return adapter;

err_fabric:
	pvr_fabric_leave(adapter);
err_lone_start:
	pvr_lone_start_exit(adapter);
err_throttle:
	pvr_throttle_exit(adapter);
err_ud_linger:
	pvr_ud_linger_exit(adapter);
err_port:
	pvr_port_state_exit(adapter);
err_peers:
	pvr_peer_gone_exit(adapter);
err_events:
	pvr_events_exit(adapter);
err_free:
	adapter_free(adapter);
err_memory:
	snprintf(err, err_size, "%s", why ? why : "out of memory");
	return NULL;
}

void pvr_adapter_destroy(struct pvr_adapter *adapter)
{
	pvr_adapter_set_capture(adapter, NULL);
	pvr_adapter_lock(adapter);
	pvr_adapter_do_reset(adapter);
	pvr_cmd_finish(adapter);
	pvr_adapter_unlock(adapter);
	LIST_REMOVE(adapter, link);
	pvr_worker_remove(adapter);
	pvr_shaper_leave(adapter);
	pvr_fabric_leave(adapter);
	pvr_lone_start_exit(adapter);
	pvr_throttle_exit(adapter);
	pvr_ud_linger_exit(adapter);
	pvr_port_state_exit(adapter);
	pvr_peer_gone_exit(adapter);
	pvr_events_exit(adapter);
	adapter_free(adapter);
}

int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable)
{
	int err;

	pvr_adapter_lock(adapter);
	err = pvr_ram_add(&adapter->ram, gpa, size, va, writable);
	pvr_adapter_unlock(adapter);
	return err;
}

int pvr_adapter_persist_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size)
{
	int err;

	if (!pvr_can_persist())
		return -EOPNOTSUPP;
	pvr_adapter_lock(adapter);
	err = pvr_ram_persist(&adapter->ram, gpa, size);
	pvr_adapter_unlock(adapter);
	return err;
}

void pvr_adapter_count_ram(struct pvr_adapter *adapter, uint64_t bytes)
{
	pvr_adapter_lock(adapter);
	adapter->ram_counted = bytes;
	pvr_adapter_unlock(adapter);
}

static void set_bus_master(struct pvr_adapter *adapter, bool on)
{
	if (adapter->bus_master == on)
		return;
	/* Its command can neither read page directories any more nor be answered. */
	if (!on && adapter->job.step && adapter->job.cancel) {
		pvr_cmd_cancel(adapter);
		adapter->err = EIO;
		adapter->stats.commands_failed++;
	}
	adapter->bus_master = on;
	pvr_adapter_update_dma(adapter);
	if (!on)
		pvr_ext_dma_revoke_all(adapter);
	pvr_debug(adapter, "bus master %s", on ? "on" : "off");
	if (!on)
		return;
	/* Doorbells and responses had no effect meanwhile. */
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_KICK);
	pvr_peer_gone_check_later(adapter);
}

void pvr_adapter_set_bus_master(struct pvr_adapter *adapter, bool on)
{
	pvr_adapter_lock(adapter);
	set_bus_master(adapter, on);
	pvr_adapter_unlock(adapter);
}

void pvr_adapter_set_link(struct pvr_adapter *adapter, bool up)
{
	pvr_adapter_lock(adapter);
	pvr_port_set_up(adapter, up);
	pvr_interrupt_flush(adapter);
	pvr_adapter_unlock(adapter);
}

void pvr_adapter_pause(struct pvr_adapter *adapter)
{
	pvr_adapter_lock(adapter);
}

void pvr_adapter_resume(struct pvr_adapter *adapter)
{
	pvr_adapter_unlock(adapter);
}

bool pvr_adapter_busy(const struct pvr_adapter *adapter)
{
	return __atomic_load_n(&adapter->job.step, __ATOMIC_RELAXED) != NULL;
}

const char *pvr_adapter_name(const struct pvr_adapter *adapter)
{
	return adapter->name;
}

const char *pvr_adapter_fabric(const struct pvr_adapter *adapter)
{
	return adapter->fabric->name;
}

const uint8_t *pvr_adapter_mac(const struct pvr_adapter *adapter)
{
	return adapter->mac;
}

const char *pvr_adapter_hwversion(const struct pvr_adapter *adapter)
{
	return adapter->revision->name;
}

uint8_t pvr_adapter_gid_type(const struct pvr_adapter *adapter)
{
	return adapter->gid_type;
}

unsigned int pvr_adapter_worker(const struct pvr_adapter *adapter)
{
	return adapter->worker->index;
}

void pvr_adapter_set_worker(struct pvr_adapter *adapter, unsigned int worker)
{
	pvr_worker_move(adapter, &adapter->engine->workers[worker]);
}

const char *pvr_adapter_state_name(enum pvr_adapter_state state)
{
	static const char *const names[] = {
		[PVR_ADAPTER_IDLE] = "idle",
		[PVR_ADAPTER_READY] = "ready",
		[PVR_ADAPTER_ACTIVE] = "active",
		[PVR_ADAPTER_FAILED] = "failed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

void pvr_adapter_for_each_gid(struct pvr_adapter *adapter,
			      void (*fn)(void *opaque, uint32_t index, const uint8_t gid[16],
					 uint8_t gid_type),
			      void *opaque)
{
	uint32_t i;

	pvr_adapter_lock(adapter);
	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound)
			fn(opaque, i, adapter->gids[i].gid, adapter->gids[i].type);
	pvr_adapter_unlock(adapter);
}
