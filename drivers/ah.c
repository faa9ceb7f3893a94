// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. The driver keeps them; each datagram WQE carries a copy of the address
 * vector.
 */
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>

#include "pvrdma.h"

static int check_ah(const struct pvr_dev *dev, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;
	grh = rdma_ah_read_grh(attr);
	if (rdma_is_multicast_addr((struct in6_addr *)grh->dgid.raw) &&
	    !(dev->features & PVR_EXT_MCAST))
		return -EOPNOTSUPP;
	return 0;
}

/* Context: any, also atomic. */
int pvr_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata)
{
	const struct rdma_ah_attr *attr = init->ah_attr;
	struct pvr_av *av = &to_pvr_ah(ibah)->av;
	const struct ib_global_route *grh;
	int err;

	if (udata)
		return -EOPNOTSUPP;
	err = check_ah(to_pvr_dev(ibah->device), attr);
	if (err)
		return err;
	grh = rdma_ah_read_grh(attr);
	av->port_pd =
		cpu_to_le32(to_pvr_pd(ibah->pd)->handle | attr->port_num << 24);
	av->sl_tclass_flowlabel =
		cpu_to_le32(grh->traffic_class << 20 |
			    (grh->flow_label & IB_GRH_FLOWLABEL_MASK));
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	av->src_path_bits = rdma_ah_get_path_bits(attr) | PVR_AV_GRH;
	av->gid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	memcpy(av->dmac, attr->roce.dmac, sizeof(av->dmac));
	return 0;
}

int pvr_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

void pvr_ah_attr_to_dev(struct pvr_ah_attr *to, const struct rdma_ah_attr *from)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(from);

	memcpy(to->dgid, grh->dgid.raw, sizeof(to->dgid));
	to->flow_label = cpu_to_le32(grh->flow_label);
	to->sgid_index = grh->sgid_index;
	to->hop_limit = grh->hop_limit;
	to->traffic_class = grh->traffic_class;
	to->vlan_id = 0;
	to->sl = rdma_ah_get_sl(from);
	to->src_path_bits = rdma_ah_get_path_bits(from);
	to->static_rate = rdma_ah_get_static_rate(from);
	to->ah_flags = rdma_ah_get_ah_flags(from) ? PVR_AH_GRH : 0;
	to->port_num = rdma_ah_get_port_num(from);
	if (from->type == RDMA_AH_ATTR_TYPE_ROCE)
		memcpy(to->dmac, from->roce.dmac, sizeof(to->dmac));
}

void pvr_ah_attr_from_dev(struct rdma_ah_attr *to,
			  const struct pvr_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	to->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_sl(to, from->sl);
	rdma_ah_set_port_num(to, 1);
	rdma_ah_set_static_rate(to, from->static_rate);
	rdma_ah_set_grh(to, NULL, le32_to_cpu(from->flow_label),
			from->sgid_index, from->hop_limit, from->traffic_class);
	rdma_ah_set_dgid_raw(to, (void *)from->dgid);
	rdma_ah_set_ah_flags(to, from->ah_flags & PVR_AH_GRH ? IB_AH_GRH : 0);
	memcpy(to->roce.dmac, from->dmac, sizeof(to->roce.dmac));
}
