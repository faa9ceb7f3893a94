/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* GIDs of fake guests. */
#ifndef FG_GID_H
#define FG_GID_H

#include "fg_guest.h"

/* fe80::<modified EUI-64>, the default GID. */
void fg_gid_from_mac(uint8_t gid[16], const uint8_t mac[6]);
/* ::ffff:a.b.c.d */
void fg_gid_from_ipv4(uint8_t gid[16], uint8_t a, uint8_t b, uint8_t c, uint8_t d);

/*
 * What a guest's neighbour table has: the MAC in a GID of fg_gid_from_mac(); for an IPv4 address
 * that of the guest whose number is its last byte.
 */
void fg_mac_of_gid(uint8_t mac[6], const uint8_t gid[16]);

/* CREATE_BIND with what the stock driver sends: RoCE v2, MTU 1024, no VLAN. */
uint32_t fg_bind_gid(struct fg_guest *guest, uint32_t index, const uint8_t gid[16]);
/* The same with a VLAN. */
uint32_t fg_bind_gid_vlan(struct fg_guest *guest, uint32_t index, const uint8_t gid[16],
			  uint32_t vlan);
uint32_t fg_unbind_gid(struct fg_guest *guest, uint32_t index, const uint8_t gid[16]);

#endif /* FG_GID_H */
