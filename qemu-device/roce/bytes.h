/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Big-endian numbers in headers, and what the headers have in common. For files of this folder. */
#ifndef PVR_ROCE_BYTES_H
#define PVR_ROCE_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ETHERNET_BYTES 14
#define VLAN_BYTES 4
#define IPV4_BYTES 20
#define IPV6_BYTES 40 /* of a GRH, too */
#define UDP_BYTES 8
#define BTH_BYTES 12
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_VERSION_IHL 0x45 /* without options */
#define NEXT_HEADER_UDP 17 /* IPv4's protocol, too */

static inline uint8_t *put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
	return p + 2;
}

static inline uint8_t *put32(uint8_t *p, uint32_t value)
{
	const uint32_t big = htobe32(value);

	memcpy(p, &big, sizeof(big));
	return p + sizeof(big);
}

static inline uint8_t *put64(uint8_t *p, uint64_t value)
{
	const uint64_t big = htobe64(value);

	memcpy(p, &big, sizeof(big));
	return p + sizeof(big);
}

static inline uint8_t *put_bytes(uint8_t *p, const void *from, size_t bytes)
{
	memcpy(p, from, bytes);
	return p + bytes;
}

static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

/* Return: the offset of the IP header or GRH of a frame. */
static inline size_t net_offset(const uint8_t *frame)
{
	return ETHERNET_BYTES + (get16(frame + 12) == ETHERTYPE_VLAN ? VLAN_BYTES : 0);
}

/* Ones' complement sum of an IPv4 header: 0xffff if its checksum is right. */
static inline uint32_t ipv4_sum(const uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < IPV4_BYTES; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum + (sum >> 16)) & 0xffff;
}

#endif /* PVR_ROCE_BYTES_H */
