// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The invariant CRC of RoCE packets. */
#include "roce/icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "roce/bytes.h"

#define LRH_BYTES 8 /* of InfiniBand's local route header, which counts as ones */
#define EXT_MAX 32 /* of the headers behind the BTH */
#define HEADERS_MAX (LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES + EXT_MAX)

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

uint32_t pvr_roce_icrc_parts(const uint8_t *net, size_t headers, size_t net_bytes, int udp,
			     const uint8_t *rest, size_t rest_bytes)
{
	size_t bth = net_bytes + (udp ? UDP_BYTES : 0);
	uint8_t masked[HEADERS_MAX];
	uint8_t *copy = masked + LRH_BYTES;
	uint32_t crc;

	memset(masked, 0xff, LRH_BYTES);
	memcpy(copy, net, headers);
	if (net_bytes == IPV4_BYTES)
		mask_ipv4(copy);
	else
		mask_ipv6(copy);
	if (udp)
		memset(copy + net_bytes + 6, 0xff, 2); /* checksum */
	copy[bth + 4] = 0xff; /* FECN, BECN, reserved bits */
	crc = crc32_gzip_refl(0, masked, LRH_BYTES + headers);
	return crc32_gzip_refl(crc, rest, rest_bytes);
}

uint32_t pvr_roce_icrc(const uint8_t *net, size_t net_bytes, int udp, size_t bytes)
{
	size_t headers = net_bytes + (udp ? UDP_BYTES : 0) + BTH_BYTES;

	return pvr_roce_icrc_parts(net, headers, net_bytes, udp, net + headers, bytes - headers);
}
