// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Print a frame of each opcode and network as a hex dump for text2pcap, with its name. So
 * another dissector judges the frames.
 */
#include <stdio.h>
#include <string.h>

#include "roce/frame.h"
#include "roce/opcode.h"

static const char *const nets[] = { "v1", "ipv4", "ipv6" };

static struct pvr_roce_frame frame_of(uint8_t opcode, uint8_t net)
{
	struct pvr_roce_frame frame = {
		.dst_mac = { 0x52, 0x54, 0, 0, 0, 2 },
		.src_mac = { 0x52, 0x54, 0, 0, 0, 1 },
		.vlan = 7,
		.net = net,
		.src_gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst_gid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.hop_limit = 64,
		.src_port = 0xc001,
		.opcode = opcode,
		.migrated = true,
		.pkey = 0xffff,
		.dest_qpn = 0x123456,
		.psn = 0xabcdef,
		.qkey = 0x80010000,
		.src_qpn = 0x654321,
		.flush = 1,
		.addr = 0x1122334455667788,
		.rkey = 0x99aabbcc,
		.length = 5,
		.swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718,
		.syndrome = 0x1f,
		.msn = 0x13579b,
		.original = 0x2122232425262728,
		.imm = { 1, 2, 3, 4 },
		.inv_rkey = 0xddeeff00,
		.payload_bytes = pvr_roce_opcode(opcode)->payload ? 5 : 0,
	};

	if (net != PVR_ROCE_IPV4)
		memset(frame.src_gid, 0xfd, 10), memset(frame.dst_gid, 0xfd, 10);
	return frame;
}

int main(void)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + 8 + PVR_ROCE_TRAILER_MAX];
	unsigned int opcode, net;
	size_t headers, bytes, i;

	for (opcode = 0; opcode < 256; opcode++) {
		for (net = 0; pvr_roce_opcode((uint8_t)opcode) && net < 3; net++) {
			struct pvr_roce_frame frame = frame_of((uint8_t)opcode, (uint8_t)net);

			headers = pvr_roce_build(buf, &frame);
			memcpy(buf + headers, "hello", 5);
			bytes = pvr_roce_finish(buf, headers, &frame);
			printf("# %u %s %s\n", opcode, nets[net],
			       pvr_roce_opcode((uint8_t)opcode)->name);
			printf("000000");
			for (i = 0; i < bytes; i++)
				printf(" %02x", buf[i]);
			printf("\n\n");
		}
	}
	return 0;
}
