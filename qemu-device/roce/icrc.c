// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The invariant CRC of RoCE packets. */
#include "roce/icrc.h"

#include <string.h>

#include "core/compiler.h"
#include "roce/bytes.h"
#include "roce/crc.h"
#include "roce/frame.h"

#define LRH_BYTES 8 /* of InfiniBand's local route header, which counts as ones */
#define EXT_MAX 32 /* of the headers behind the BTH */
/* With a small payload, and its padding. */
#define HEADERS_MAX (LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES + EXT_MAX + PVR_ROCE_SMALL)

static void mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff; /* TOS */
	ip[8] = 0xff; /* TTL */
	memset(ip + 10, 0xff, 2); /* checksum */
}

/* A GRH is alike. */
static void mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f; /* traffic class */
	memset(ip + 1, 0xff, 3); /* traffic class, flow label */
	ip[7] = 0xff; /* hop limit */
}

void pvr_roce_icrc_head(struct pvr_roce_crc_head *head, const uint8_t *net, size_t net_bytes,
			const uint8_t *bth)
{
	size_t bytes = LRH_BYTES / 2 + net_bytes + UDP_BYTES + BTH_BYTES;
	uint8_t *p;

	*head = (struct pvr_roce_crc_head){ .has_id = net_bytes == IPV4_BYTES };
	head->count = (unsigned int)((bytes + PVR_ROCE_CRC_WORD - 1) / PVR_ROCE_CRC_WORD);
	p = head->bytes + head->count * PVR_ROCE_CRC_WORD - bytes;
	memset(p, 0xff, LRH_BYTES / 2);
	p = put_bytes(p + LRH_BYTES / 2, net, net_bytes + UDP_BYTES);
	memset(p - 2, 0xff, 2); /* UDP's checksum */
	if (net_bytes == IPV4_BYTES)
		mask_ipv4(p - UDP_BYTES - net_bytes);
	else
		mask_ipv6(p - UDP_BYTES - net_bytes);
	put_bytes(p, bth, BTH_BYTES);
	p[4] = 0xff; /* FECN, BECN, reserved bits */
}

uint32_t pvr_roce_icrc_headers(const uint8_t *net, size_t net_bytes, int udp, const uint8_t *bth,
			       size_t bth_bytes)
{
	size_t before = net_bytes + (udp ? UDP_BYTES : 0);
	uint8_t masked[HEADERS_MAX] PVR_UNINITIALIZED;
	uint8_t *copy = masked + LRH_BYTES;

	memset(masked, 0xff, LRH_BYTES);
	memcpy(copy, net, before);
	memcpy(copy + before, bth, bth_bytes);
	if (net_bytes == IPV4_BYTES)
		mask_ipv4(copy);
	else
		mask_ipv6(copy);
	if (udp)
		memset(copy + net_bytes + 6, 0xff, 2); /* checksum */
	copy[before + 4] = 0xff; /* FECN, BECN, reserved bits */
	return pvr_roce_crc(0, masked, LRH_BYTES + before + bth_bytes);
}

uint32_t pvr_roce_icrc(const uint8_t *net, size_t net_bytes, int udp, size_t bytes)
{
	const uint8_t *bth = net + net_bytes + (udp ? UDP_BYTES : 0);
	uint32_t crc = pvr_roce_icrc_headers(net, net_bytes, udp, bth, BTH_BYTES);

	return pvr_roce_crc(crc, bth + BTH_BYTES, (size_t)(net + bytes - bth) - BTH_BYTES);
}

bool pvr_roce_icrc_is_ok(const uint8_t *net, size_t net_bytes, const uint8_t *bth, size_t bytes)
{
	bool is_small = bytes <= BTH_BYTES + PVR_ROCE_SMALL;
	size_t begin = is_small ? bytes - PVR_ROCE_ICRC_BYTES : BTH_BYTES;
	uint32_t crc = pvr_roce_icrc_headers(net, net_bytes, true, bth, begin);
	const uint8_t *icrc = bth + bytes - PVR_ROCE_ICRC_BYTES;

	if (is_small)
		return crc == pvr_roce_icrc_get(icrc);
	crc = pvr_roce_crc(crc, bth + BTH_BYTES, bytes - BTH_BYTES - PVR_ROCE_ICRC_BYTES);
	return crc == pvr_roce_icrc_get(icrc);
}
