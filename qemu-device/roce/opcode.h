/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Opcodes of RoCE packets.
 *
 * Source: IBTA volume 1, 9.2 (BTH) and table 38 (opcodes); annex A17 (RoCEv2, CNP);
 * annex A19 (FLUSH, ATOMIC WRITE).
 */
#ifndef PVR_ROCE_OPCODE_H
#define PVR_ROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits 7..5 of an opcode. */
enum pvr_roce_transport {
	PVR_ROCE_RC = 0,
	PVR_ROCE_UC = 1,
	PVR_ROCE_UD = 3,
	PVR_ROCE_CNP = 4, /* of one opcode, PVR_ROCE_OP_CNP */
};

enum pvr_roce_kind {
	PVR_ROCE_SEND,
	PVR_ROCE_WRITE,
	PVR_ROCE_READ_REQUEST,
	PVR_ROCE_READ_RESPONSE,
	PVR_ROCE_ACK,
	PVR_ROCE_ATOMIC_ACK,
	PVR_ROCE_CMP_SWAP,
	PVR_ROCE_FETCH_ADD,
	PVR_ROCE_FLUSH,
	PVR_ROCE_ATOMIC_WRITE,
	PVR_ROCE_CONGESTION, /* CNP */
	PVR_ROCE_KINDS,
};

/* The headers between BTH and payload, in the order in which a packet has them. */
enum pvr_roce_ext {
	PVR_ROCE_DETH = 1 << 0,
	PVR_ROCE_FETH = 1 << 1,
	PVR_ROCE_RETH = 1 << 2,
	PVR_ROCE_ATOMIC_ETH = 1 << 3,
	PVR_ROCE_AETH = 1 << 4,
	PVR_ROCE_ATOMIC_ACK_ETH = 1 << 5,
	PVR_ROCE_IMM = 1 << 6,
	PVR_ROCE_IETH = 1 << 7,
	PVR_ROCE_CNP_PAD = 1 << 8, /* 16 bytes, zero */
};
#define PVR_ROCE_EXTS 9

struct pvr_roce_opcode {
	const char *name; /* NULL: the opcode is not defined */
	uint8_t kind; /* enum pvr_roce_kind */
	bool begins, ends; /* first, last packet of a message */
	bool payload; /* may carry one */
	uint16_t ext; /* enum pvr_roce_ext */
};

#define PVR_ROCE_OP_ACK 0x11
#define PVR_ROCE_OP_ATOMIC_ACK 0x12
#define PVR_ROCE_OP_READ_REQUEST 0x0c
#define PVR_ROCE_OP_CNP 0x81

/* Return: NULL if the opcode is not defined. */
const struct pvr_roce_opcode *pvr_roce_opcode(uint8_t opcode);

static inline enum pvr_roce_transport pvr_roce_transport(uint8_t opcode)
{
	return (enum pvr_roce_transport)(opcode >> 5);
}

/*
 * The opcode of a packet of a message. @ext: PVR_ROCE_IMM or PVR_ROCE_IETH on its last
 * packet, or 0.
 * Return: -1 if no such packet is defined.
 */
int pvr_roce_opcode_of(enum pvr_roce_transport transport, enum pvr_roce_kind kind, bool begins,
		       bool ends, uint16_t ext);

/* Whether a packet of RC or UC is the middle of a message, and has nothing but payload behind the BTH. */
static inline bool pvr_roce_is_middle(const struct pvr_roce_opcode *op)
{
	return op->payload && !op->begins && !op->ends && !op->ext;
}

/* Return: bytes of the headers @ext. */
unsigned int pvr_roce_ext_bytes(uint16_t ext);

#endif /* PVR_ROCE_OPCODE_H */
