// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Traffic to each peer of a segment, for pvrdmactl paths.
 *
 * A guest may name any number of addresses. The first PVR_ETH_PEERS - 1 of an adapter are
 * counted each, the others together. Entries stay as long as the adapter, and are read without
 * its lock.
 */
#include "path/wire/internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "path/wire/ops.h"

static void set_name(struct pvr_eth_peer *peer)
{
	if (pvr_gid_is_ipv4(peer->gid))
		inet_ntop(AF_INET, peer->gid + 12, peer->name, sizeof(peer->name));
	else
		inet_ntop(AF_INET6, peer->gid, peer->name, sizeof(peer->name));
}

static struct pvr_eth_peer *add(struct pvr_eth_adapter *wire, const uint8_t gid[16])
{
	struct pvr_eth_peer *peer;

	if (wire->num_peers == PVR_ETH_PEERS)
		return &wire->peers[PVR_ETH_PEERS - 1];
	peer = &wire->peers[wire->num_peers];
	if (wire->num_peers == PVR_ETH_PEERS - 1) {
		snprintf(peer->name, sizeof(peer->name), "others");
	} else {
		memcpy(peer->gid, gid, sizeof(peer->gid));
		set_name(peer);
	}
	__atomic_store_n(&wire->num_peers, wire->num_peers + 1, __ATOMIC_RELEASE);
	return peer;
}

struct pvr_eth_peer *pvr_eth_peer_of(struct pvr_eth_adapter *wire, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 0; i < wire->num_peers; i++)
		if (!memcmp(wire->peers[i].gid, gid, sizeof(wire->peers[i].gid)))
			return &wire->peers[i];
	return add(wire, gid);
}

const char *pvr_eth_flow(const struct pvr_adapter *adapter, uint32_t i, uint64_t *messages,
			 uint64_t *bytes)
{
	const struct pvr_eth_adapter *wire = adapter->wire;
	const struct pvr_eth_peer *peer;

	if (!wire || i >= __atomic_load_n(&wire->num_peers, __ATOMIC_ACQUIRE))
		return NULL;
	peer = &wire->peers[i];
	*messages = pvr_stat_get(&peer->messages);
	*bytes = pvr_stat_get(&peer->bytes);
	return peer->name;
}
