// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. They exist only in the provider: posting copies the address vector
 * into each datagram WQE.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "pvrdma.h"

#define MAC_LEN 6

static bool is_v4_mapped(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

/* IPv4-mapped 224.0.0.0/4, or ff00::/8. */
static bool is_multicast(const union ibv_gid *gid)
{
	return is_v4_mapped(gid) ? (gid->raw[12] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;
}

static void multicast_mac(const union ibv_gid *gid, uint8_t *mac)
{
	if (is_v4_mapped(gid)) {
		const uint8_t v4[MAC_LEN] = { 0x01,	    0x00,	 0x5e, gid->raw[13] & 0x7f,
					      gid->raw[14], gid->raw[15] };

		memcpy(mac, v4, MAC_LEN);
		return;
	}
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, gid->raw + 12, 4);
}

/* fe80::/64 with a low half of a MAC address around ff:fe. */
static bool is_eui64_link_local(const union ibv_gid *gid)
{
	static const uint8_t prefix[8] = { 0xfe, 0x80 };

	return !memcmp(gid->raw, prefix, sizeof(prefix)) && gid->raw[11] == 0xff &&
	       gid->raw[12] == 0xfe;
}

static void eui64_mac(const union ibv_gid *gid, uint8_t *mac)
{
	const uint8_t eui[MAC_LEN] = { gid->raw[8] ^ 2, gid->raw[9],  gid->raw[10],
				       gid->raw[13],	gid->raw[14], gid->raw[15] };

	memcpy(mac, eui, MAC_LEN);
}

/*
 * Every port has the EUI-64 GID of its MAC address, even if its network interface has no
 * such IPv6 address. Neighbor discovery cannot resolve it then, so take the MAC address
 * from the GID. The resolution of other GIDs blocks until the neighbor responds.
 */
static int resolve_mac(struct ibv_context *ibctx, struct ibv_ah_attr *attr, uint8_t *mac)
{
	int err;

	if (is_multicast(&attr->grh.dgid)) {
		multicast_mac(&attr->grh.dgid, mac);
		return 0;
	}
	if (is_eui64_link_local(&attr->grh.dgid)) {
		eui64_mac(&attr->grh.dgid, mac);
		return 0;
	}
	err = ibv_resolve_eth_l2_from_gid(ibctx, attr, mac, NULL);
	if (err)
		verbs_err(verbs_get_ctx(ibctx),
			  "cannot resolve the destination GID to an Ethernet address\n");
	return err < 0 ? -err : err;
}

static void fill_av(struct pvr_av *av, const struct pvr_pd *pd, const struct ibv_ah_attr *attr,
		    const uint8_t *mac)
{
	av->port_pd = htole32((pd->handle & PVR_AV_PD_MASK) | (uint32_t)attr->port_num << 24);
	av->sl_tclass_flowlabel =
		htole32((uint32_t)attr->grh.traffic_class << 20 | (attr->grh.flow_label & 0xfffff));
	memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
	av->src_path_bits = (attr->src_path_bits & ~PVR_AV_GRH) | PVR_AV_GRH;
	av->gid_index = attr->grh.sgid_index;
	av->hop_limit = attr->grh.hop_limit;
	memcpy(av->dmac, mac, sizeof(av->dmac));
}

struct ibv_ah *pvr_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	const struct pvr_context *ctx = to_pvr_context(ibpd->context);
	uint8_t mac[MAC_LEN];
	struct pvr_ah *ah;
	int err = 0;

	/* RoCE requires a GRH. */
	if (!attr->is_global || !attr->port_num || attr->port_num > ctx->num_ports)
		err = EINVAL;
	if (!err)
		err = resolve_mac(ibpd->context, attr, mac);
	if (err) {
		errno = err;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	fill_av(&ah->av, to_pvr_pd(ibpd), attr, mac);
	return &ah->ibv_ah;
}

int pvr_destroy_ah(struct ibv_ah *ibah)
{
	free(to_pvr_ah(ibah));
	return 0;
}
