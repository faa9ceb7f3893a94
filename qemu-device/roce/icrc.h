/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The invariant CRC of RoCE packets.
 *
 * Source: IBTA volume 1, 7.8.1; annexes A16.5.1 and A17.9.3 (variant fields count as ones).
 */
#ifndef PVR_ROCE_ICRC_H
#define PVR_ROCE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The ICRC at @p. */
static inline uint32_t pvr_roce_icrc_get(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void pvr_roce_icrc_put(uint8_t *p, uint32_t icrc)
{
	int i;

	for (i = 0; i < 4; i++)
		p[i] = (uint8_t)(icrc >> 8 * i);
}

/*
 * @net: the GRH, IPv4 or IPv6 header of a packet of @bytes bytes without ICRC
 * @net_bytes: of that header; with @udp, a UDP header follows
 * Return: the ICRC, which a packet has with its least significant byte first.
 */
uint32_t pvr_roce_icrc(const uint8_t *net, size_t net_bytes, int udp, size_t bytes);

/*
 * The CRC of a packet's headers, up to the payload. That of the payload continues it, see crc.h.
 * @net: IP header and, with @udp, the UDP header; @bth: those from the BTH on, @bth_bytes bytes, and up
 * to PVR_ROCE_SMALL bytes of payload
 */
uint32_t pvr_roce_icrc_headers(const uint8_t *net, size_t net_bytes, int udp, const uint8_t *bth,
			       size_t bth_bytes);
/*
 * Set the headers of packets of RoCEv2 that have nothing but the payload behind their BTH, for
 * pvr_roce_crc_packet(). @net: IP and UDP headers; @bth: BTH_BYTES bytes
 */
struct pvr_roce_crc_head;
void pvr_roce_icrc_head(struct pvr_roce_crc_head *head, const uint8_t *net, size_t net_bytes,
			const uint8_t *bth);
/*
 * Whether the last 4 bytes of a packet are its ICRC. @net: IP and UDP headers; @bth: the packet from
 * its BTH on, @bytes with the ICRC
 */
bool pvr_roce_icrc_is_ok(const uint8_t *net, size_t net_bytes, const uint8_t *bth, size_t bytes);

#endif /* PVR_ROCE_ICRC_H */
