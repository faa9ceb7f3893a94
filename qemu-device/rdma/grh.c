// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The GRH area: 40 bytes before the payload of a received datagram. */
#include "rdma/grh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stddef.h>
#include <string.h>

#include "core/adapter.h"

/* BTH, DETH and ICRC. */
#define WIRE_OVERHEAD (12 + 8 + 4)
#define IMMEDIATE_SIZE 4
#define UDP_SIZE 8
#define NEXT_HEADER_IBA 0x1b /* IBTA 8.3 */

static uint32_t iba_length(uint32_t payload, bool immediate)
{
	return WIRE_OVERHEAD + ((payload + 3) & ~3u) + (immediate ? IMMEDIATE_SIZE : 0);
}

static uint16_t ip_checksum(const uint8_t *p)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return htons(~sum & 0xffff);
}

static void build_ipv4(uint8_t grh[PVR_GRH_SIZE], const struct pvrdma_av *av,
		       const uint8_t sgid[16], uint32_t length)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = av->sl_tclass_flowlabel >> 20,
		.tot_len = htons(20 + length),
		.frag_off = htons(IP_DF),
		.ttl = av->hop_limit,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, sgid + 12, 4);
	memcpy(&ip.daddr, av->dgid + 12, 4);
	memset(grh, 0, 20);
	memcpy(grh + 20, &ip, 20);
	ip.check = ip_checksum(grh + 20);
	memcpy(grh + 20 + offsetof(struct iphdr, check), &ip.check, sizeof(ip.check));
}

static void build_ipv6(uint8_t grh[PVR_GRH_SIZE], const struct pvrdma_av *av,
		       const uint8_t sgid[16], uint8_t next_header, uint32_t length)
{
	struct ip6_hdr ip6 = { 0 };

	ip6.ip6_flow = htonl(6u << 28 | (av->sl_tclass_flowlabel & 0x0fffffff));
	ip6.ip6_plen = htons(length);
	ip6.ip6_nxt = next_header;
	ip6.ip6_hlim = av->hop_limit;
	memcpy(&ip6.ip6_src, sgid, 16);
	memcpy(&ip6.ip6_dst, av->dgid, 16);
	memcpy(grh, &ip6, sizeof(ip6));
}

uint8_t pvr_grh_network_type(uint8_t gid_type, const uint8_t dgid[16])
{
	if (gid_type == PVR_GID_TYPE_ROCE_V1)
		return PVRDMA_NETWORK_ROCE_V1;
	return pvr_gid_is_ipv4(dgid) ? PVRDMA_NETWORK_IPV4 : PVRDMA_NETWORK_IPV6;
}

void pvr_grh_build(uint8_t grh[PVR_GRH_SIZE], uint8_t gid_type, const struct pvrdma_av *av,
		   const uint8_t sgid[16], uint32_t payload, bool immediate)
{
	uint32_t length = iba_length(payload, immediate);

	if (gid_type == PVR_GID_TYPE_ROCE_V1)
		build_ipv6(grh, av, sgid, NEXT_HEADER_IBA, length);
	else if (pvr_gid_is_ipv4(av->dgid))
		build_ipv4(grh, av, sgid, UDP_SIZE + length);
	else
		build_ipv6(grh, av, sgid, IPPROTO_UDP, UDP_SIZE + length);
}
