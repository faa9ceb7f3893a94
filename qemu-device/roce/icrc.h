/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The invariant CRC of RoCE packets.
 *
 * Source: IBTA volume 1, 7.8.1; annexes A16.5.1 and A17.9.3 (variant fields count as ones).
 */
#ifndef PVR_ROCE_ICRC_H
#define PVR_ROCE_ICRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * @net: the GRH, IPv4 or IPv6 header of a packet of @bytes bytes without ICRC
 * @net_bytes: of that header; with @udp, a UDP header follows
 * Return: the ICRC, which a packet has with its least significant byte first.
 */
uint32_t pvr_roce_icrc(const uint8_t *net, size_t net_bytes, int udp, size_t bytes);

/*
 * The same for a packet in two parts: @headers bytes of headers, the BTH included, and the rest
 * at @rest.
 */
uint32_t pvr_roce_icrc_parts(const uint8_t *net, size_t headers, size_t net_bytes, int udp,
			     const uint8_t *rest, size_t rest_bytes);

#endif /* PVR_ROCE_ICRC_H */
