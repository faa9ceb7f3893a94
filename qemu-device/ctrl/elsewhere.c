// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Adapters that are in use at another host by a VM that cannot be migrated, see core/move.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/adapter.h"
#include "ctrl/ctrl.h"
#include "gid/fabric.h"
#include "gid/resolve.h"
#include "rdma/worker.h"

#define FIND_NS 500000000ull /* until the directory knows the host, or there is none */
#define ASK_NS 1000000000ull /* from the beginning, until that host has responded, or is dead */
#define ASK_AGAIN_NS 20000000ull

static const uint8_t no_token[PVR_TOKEN_BYTES];

void pvr_adapter_set_migratable(struct pvr_adapter *adapter, bool is)
{
	pvr_adapter_lock(adapter);
	adapter->migratable = is;
	pvr_adapter_unlock(adapter);
}

/* --------------------------------------------------------------- the host that has it */

enum pvr_take pvr_elsewhere_answer(const struct pvr_adapter *adapter)
{
	bool is_here = adapter->run_state == PVR_RUN_RUNNING ||
		       adapter->run_state == PVR_RUN_STOPPED;

	return is_here && adapter->state == PVR_ADAPTER_ACTIVE && !adapter->migratable
		       ? PVR_TAKE_NO
		       : PVR_TAKE_STALE;
}

/* ---------------------------------------------------------------- the host that asks */

void pvr_elsewhere_answered(struct pvr_adapter *adapter, const char *from, enum pvr_take answer)
{
	if (adapter->elsewhere.begun && !strcmp(adapter->elsewhere.host, from))
		adapter->elsewhere.answer = answer;
}

/* Each driver of an adapter binds it. */
static void gid_of_mac(uint8_t gid[16], const uint8_t mac[6])
{
	const uint8_t bytes[16] = {
		0xfe,	    0x80,   0,	    0,	  0,	0,	0,	0,
		mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	};

	memcpy(gid, bytes, sizeof(bytes));
}

/* Return: 0: no host has it; -EINPROGRESS. */
static int find(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_elsewhere *elsewhere = &adapter->elsewhere;
	struct pvr_host *host;
	enum pvr_gid_state state;
	uint8_t gid[16];

	gid_of_mac(gid, adapter->mac);
	state = pvr_gid_resolve(adapter, gid, NULL, &host);
	if (state == PVR_GID_AT_HOST)
		snprintf(elsewhere->host, sizeof(elsewhere->host), "%s",
			 adapter->engine->move_ops->host_name(host));
	return state == PVR_GID_ABSENT || now - elsewhere->begun >= FIND_NS ? 0 : -EINPROGRESS;
}

static int check(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_elsewhere *elsewhere = &adapter->elsewhere;
	int ret = -EINPROGRESS;

	if (!elsewhere->host[0])
		ret = find(adapter, now);
	if (!elsewhere->host[0])
		return ret;
	if (elsewhere->answer != PVR_TAKE_NONE)
		return elsewhere->answer == PVR_TAKE_NO ? -EBUSY : 0;
	if (now - elsewhere->begun >= ASK_NS)
		return 0;
	if (now >= elsewhere->ask_next) {
		elsewhere->ask_next = now + ASK_AGAIN_NS;
		adapter->engine->move_ops->ask(adapter, elsewhere->host, no_token, false);
	}
	return -EINPROGRESS;
}

int pvr_adapter_check_elsewhere(struct pvr_adapter *adapter, bool begin, char *host, size_t size)
{
	struct pvr_elsewhere *elsewhere = &adapter->elsewhere;
	uint64_t now = pvr_now(adapter->engine);
	int ret;

	if (!adapter->engine->fabrics->gid_ops || !adapter->engine->name[0])
		return 0;
	pvr_adapter_lock(adapter);
	if (begin)
		*elsewhere = (struct pvr_elsewhere){ .begun = now, .answer = PVR_TAKE_NONE };
	ret = check(adapter, now);
	snprintf(host, size, "%s", elsewhere->host);
	if (ret != -EINPROGRESS)
		elsewhere->begun = 0;
	pvr_adapter_unlock(adapter);
	return ret;
}
