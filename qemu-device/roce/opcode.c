// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Opcodes of RoCE packets. */
#include "roce/opcode.h"

#include <stddef.h>

#define DETH PVR_ROCE_DETH
#define FETH PVR_ROCE_FETH
#define RETH PVR_ROCE_RETH
#define AETH PVR_ROCE_AETH
#define IMM PVR_ROCE_IMM
#define IETH PVR_ROCE_IETH

#define FIRST .begins = true, .payload = true
#define MIDDLE .payload = true
#define LAST .ends = true, .payload = true
#define ONLY .begins = true, .ends = true, .payload = true
#define NO_DATA .begins = true, .ends = true

/* Indexed by bits 4..0 of the opcode: RC has all, UC those below 0x0c. */
static const struct pvr_roce_opcode connected[32] = {
	[0x00] = { "SEND_FIRST", PVR_ROCE_SEND, FIRST },
	[0x01] = { "SEND_MIDDLE", PVR_ROCE_SEND, MIDDLE },
	[0x02] = { "SEND_LAST", PVR_ROCE_SEND, LAST },
	[0x03] = { "SEND_LAST_IMM", PVR_ROCE_SEND, LAST, .ext = IMM },
	[0x04] = { "SEND_ONLY", PVR_ROCE_SEND, ONLY },
	[0x05] = { "SEND_ONLY_IMM", PVR_ROCE_SEND, ONLY, .ext = IMM },
	[0x06] = { "WRITE_FIRST", PVR_ROCE_WRITE, FIRST, .ext = RETH },
	[0x07] = { "WRITE_MIDDLE", PVR_ROCE_WRITE, MIDDLE },
	[0x08] = { "WRITE_LAST", PVR_ROCE_WRITE, LAST },
	[0x09] = { "WRITE_LAST_IMM", PVR_ROCE_WRITE, LAST, .ext = IMM },
	[0x0a] = { "WRITE_ONLY", PVR_ROCE_WRITE, ONLY, .ext = RETH },
	[0x0b] = { "WRITE_ONLY_IMM", PVR_ROCE_WRITE, ONLY, .ext = RETH | IMM },
	[0x0c] = { "READ_REQUEST", PVR_ROCE_READ_REQUEST, NO_DATA, .ext = RETH },
	[0x0d] = { "READ_RESPONSE_FIRST", PVR_ROCE_READ_RESPONSE, FIRST, .ext = AETH },
	[0x0e] = { "READ_RESPONSE_MIDDLE", PVR_ROCE_READ_RESPONSE, MIDDLE },
	[0x0f] = { "READ_RESPONSE_LAST", PVR_ROCE_READ_RESPONSE, LAST, .ext = AETH },
	[0x10] = { "READ_RESPONSE_ONLY", PVR_ROCE_READ_RESPONSE, ONLY, .ext = AETH },
	[0x11] = { "ACKNOWLEDGE", PVR_ROCE_ACK, NO_DATA, .ext = AETH },
	[0x12] = { "ATOMIC_ACKNOWLEDGE", PVR_ROCE_ATOMIC_ACK, NO_DATA,
		   .ext = AETH | PVR_ROCE_ATOMIC_ACK_ETH },
	[0x13] = { "CMP_SWAP", PVR_ROCE_CMP_SWAP, NO_DATA, .ext = PVR_ROCE_ATOMIC_ETH },
	[0x14] = { "FETCH_ADD", PVR_ROCE_FETCH_ADD, NO_DATA, .ext = PVR_ROCE_ATOMIC_ETH },
	[0x16] = { "SEND_LAST_INV", PVR_ROCE_SEND, LAST, .ext = IETH },
	[0x17] = { "SEND_ONLY_INV", PVR_ROCE_SEND, ONLY, .ext = IETH },
	[0x1c] = { "FLUSH", PVR_ROCE_FLUSH, NO_DATA, .ext = FETH | RETH },
	[0x1d] = { "ATOMIC_WRITE", PVR_ROCE_ATOMIC_WRITE, ONLY, .ext = RETH },
};

static const struct pvr_roce_opcode ud_send = { "UD_SEND_ONLY", PVR_ROCE_SEND, ONLY, .ext = DETH };
static const struct pvr_roce_opcode ud_send_imm = { "UD_SEND_ONLY_IMM", PVR_ROCE_SEND, ONLY,
						    .ext = DETH | IMM };
static const struct pvr_roce_opcode cnp = { "CNP", PVR_ROCE_CONGESTION, NO_DATA,
					    .ext = PVR_ROCE_CNP_PAD };

#define UC_OPCODES 0x0c

const struct pvr_roce_opcode *pvr_roce_opcode(uint8_t opcode)
{
	const struct pvr_roce_opcode *op = &connected[opcode & 0x1f];

	switch (opcode >> 5) {
	case PVR_ROCE_RC:
		return op->name ? op : NULL;
	case PVR_ROCE_UC:
		return (opcode & 0x1f) < UC_OPCODES ? op : NULL;
	case PVR_ROCE_UD:
		return opcode == 0x64 ? &ud_send : opcode == 0x65 ? &ud_send_imm : NULL;
	case PVR_ROCE_CNP:
		return opcode == PVR_ROCE_OP_CNP ? &cnp : NULL;
	default:
		return NULL;
	}
}

/* Bits 4..0 by kind, begins, ends, and nothing or IMM or IETH. Packets that are not defined have 0. */
static const uint8_t bits_of[PVR_ROCE_KINDS][2][2][3] = {
	[PVR_ROCE_SEND][0][0] = { 0x01 },
	[PVR_ROCE_SEND][0][1] = { 0x02, 0x03, 0x16 },
	[PVR_ROCE_SEND][1][0] = { 0x00 },
	[PVR_ROCE_SEND][1][1] = { 0x04, 0x05, 0x17 },
	[PVR_ROCE_WRITE][0][0] = { 0x07 },
	[PVR_ROCE_WRITE][0][1] = { 0x08, 0x09 },
	[PVR_ROCE_WRITE][1][0] = { 0x06 },
	[PVR_ROCE_WRITE][1][1] = { 0x0a, 0x0b },
	[PVR_ROCE_READ_REQUEST][1][1] = { 0x0c },
	[PVR_ROCE_READ_RESPONSE][0][0] = { 0x0e },
	[PVR_ROCE_READ_RESPONSE][0][1] = { 0x0f },
	[PVR_ROCE_READ_RESPONSE][1][0] = { 0x0d },
	[PVR_ROCE_READ_RESPONSE][1][1] = { 0x10 },
	[PVR_ROCE_ACK][1][1] = { 0x11 },
	[PVR_ROCE_ATOMIC_ACK][1][1] = { 0x12 },
	[PVR_ROCE_CMP_SWAP][1][1] = { 0x13 },
	[PVR_ROCE_FETCH_ADD][1][1] = { 0x14 },
	[PVR_ROCE_FLUSH][1][1] = { 0x1c },
	[PVR_ROCE_ATOMIC_WRITE][1][1] = { 0x1d },
	[PVR_ROCE_CONGESTION][1][1] = { PVR_ROCE_OP_CNP & 0x1f },
};

int pvr_roce_opcode_of(enum pvr_roce_transport transport, enum pvr_roce_kind kind, bool begins,
		       bool ends, uint16_t ext)
{
	uint8_t bits = bits_of[kind][begins][ends][ext == IMM ? 1 : ext == IETH ? 2 : 0];
	uint8_t opcode = (uint8_t)((unsigned int)transport << 5 | bits);
	const struct pvr_roce_opcode *op = pvr_roce_opcode(opcode);

	if (op && op->kind == kind && op->begins == begins && op->ends == ends &&
	    (op->ext & (IMM | IETH)) == ext)
		return opcode;
	return -1;
}

unsigned int pvr_roce_ext_bytes(uint16_t ext)
{
	static const uint8_t bytes[PVR_ROCE_EXTS] = { 8, 4, 16, 28, 4, 8, 4, 4, 16 };
	unsigned int sum = 0, left;

	for (left = ext; left; left &= left - 1)
		sum += bytes[__builtin_ctz(left)];
	return sum;
}
