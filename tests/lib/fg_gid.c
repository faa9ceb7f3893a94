// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs: made from MAC and IPv4 addresses, bound and unbound. */
#include "fg_gid.h"

#include <string.h>

#include "fg_cmd.h"

void fg_gid_from_mac(uint8_t gid[16], const uint8_t mac[6])
{
	const uint8_t bytes[16] = {
		0xfe,	    0x80,   0,	    0,	  0,	0,	0,	0,
		mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	};

	memcpy(gid, bytes, sizeof(bytes));
}

void fg_gid_from_ipv4(uint8_t gid[16], uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t bytes[16] = { [10] = 0xff, 0xff, a, b, c, d };

	memcpy(gid, bytes, sizeof(bytes));
}

void fg_mac_of_gid(uint8_t mac[6], const uint8_t gid[16])
{
	const uint8_t of_ipv4[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, gid[15] };
	const uint8_t of_eui64[6] = { gid[8] ^ 2, gid[9], gid[10], gid[13], gid[14], gid[15] };

	memcpy(mac, gid[0] ? of_eui64 : of_ipv4, 6);
}

uint32_t fg_bind_gid_vlan(struct fg_guest *guest, uint32_t index, const uint8_t gid[16],
			  uint32_t vlan)
{
	struct pvr_cmd_create_bind req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_BIND),
		.mtu = 1024,
		.vlan = vlan,
		.index = index,
		.gid_type = guest->dsr->caps.gid_types,
	};

	memcpy(req.new_gid, gid, sizeof(req.new_gid));
	return fg_cmd(guest, &req, sizeof(req), NULL, 0);
}

uint32_t fg_bind_gid(struct fg_guest *guest, uint32_t index, const uint8_t gid[16])
{
	return fg_bind_gid_vlan(guest, index, gid, PVR_VLAN_NONE);
}

uint32_t fg_unbind_gid(struct fg_guest *guest, uint32_t index, const uint8_t gid[16])
{
	struct pvr_cmd_destroy_bind req = {
		.hdr = FG_CMD_HDR(PVR_CMD_DESTROY_BIND),
		.index = index,
	};

	memcpy(req.dest_gid, gid, sizeof(req.dest_gid));
	return fg_cmd(guest, &req, sizeof(req), NULL, 0);
}
