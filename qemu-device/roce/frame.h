/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RoCE packets in Ethernet frames: v1 (IBTA annex A16), v2 over IPv4 and IPv6 (annex A17).
 *
 * DOC: layout
 *
 *	Ethernet, [VLAN], GRH or IPv4 or IPv6, [UDP], BTH, headers of the opcode, payload,
 *	0 to 3 zero bytes, ICRC
 *
 * Fields are big-endian, except the ICRC. These are pure functions without state.
 */
#ifndef PVR_ROCE_FRAME_H
#define PVR_ROCE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_ROCE_UDP_PORT 4791
/* Bytes of all headers at most: Ethernet 14, VLAN 4, IPv6 40, UDP 8, BTH 12, 32 more. */
#define PVR_ROCE_HEADER_MAX 110
#define PVR_ROCE_ICRC_BYTES 4
#define PVR_ROCE_SMALL 64u /* bytes of a payload that is not worth a CRC of its own */
#define PVR_ROCE_PAYLOAD_MAX 4096 /* the largest path MTU */
#define PVR_ROCE_TRAILER_MAX (3 + PVR_ROCE_ICRC_BYTES)

/* ECN, the lower bits of the traffic class (RFC 3168). */
#define PVR_ROCE_ECN 3u
#define PVR_ROCE_ECT0 2u /* routers may mark it */
#define PVR_ROCE_CE 3u /* a router has marked it: congestion */

enum pvr_roce_net {
	PVR_ROCE_V1, /* Ethertype 0x8915 */
	PVR_ROCE_IPV4,
	PVR_ROCE_IPV6,
};

struct pvr_roce_frame {
	/* Ethernet. @vlan: VLAN ID and priority; 0: no tag */
	uint8_t dst_mac[6], src_mac[6];
	uint16_t vlan;
	/* IP, or the GRH. An IPv4 address is ::ffff:a.b.c.d. */
	uint8_t net; /* enum pvr_roce_net */
	uint8_t src_gid[16], dst_gid[16];
	uint8_t traffic_class; /* DSCP and ECN */
	uint8_t hop_limit;
	uint32_t flow_label; /* 20 bits; not in IPv4 */
	uint16_t ip_id; /* IPv4 only */
	uint16_t src_port; /* UDP */
	/* BTH */
	uint8_t opcode;
	bool solicited, migrated, fecn, becn, ack_request;
	uint16_t pkey;
	uint32_t dest_qpn, psn; /* 24 bits each */
	/* Of the opcode, see struct pvr_roce_opcode. */
	uint32_t qkey, src_qpn; /* DETH */
	uint32_t flush; /* FETH: placement in bits 3..0, selectivity in bits 5..4 */
	uint64_t addr; /* RETH, AtomicETH */
	uint32_t rkey; /* RETH, AtomicETH */
	uint32_t length; /* RETH: bytes of the message */
	uint64_t swap_add, compare; /* AtomicETH */
	uint8_t syndrome; /* AETH */
	uint32_t msn; /* AETH, 24 bits */
	uint64_t original; /* AtomicAckETH */
	uint8_t imm[4]; /* ImmDt, in network order as the WQE has it */
	uint32_t inv_rkey; /* IETH */
	/* Bytes of payload, without padding. */
	uint32_t payload_bytes;
};

/* The reasons for which a receiver drops a frame. */
enum pvr_roce_drop {
	PVR_ROCE_OK,
	PVR_ROCE_DROP_SHORT, /* it ends inside a header */
	PVR_ROCE_DROP_TYPE, /* not RoCE: Ethertype, IP protocol, UDP port */
	PVR_ROCE_DROP_IP, /* IP version, options, fragment, checksum, length */
	PVR_ROCE_DROP_UDP, /* length */
	PVR_ROCE_DROP_BTH, /* TVer, P_Key, PadCnt */
	PVR_ROCE_DROP_OPCODE, /* not defined */
	PVR_ROCE_DROP_ICRC,
	PVR_ROCE_DROPS,
};

/*
 * Build all headers at @buf, of PVR_ROCE_HEADER_MAX bytes. The opcode is a defined one.
 * Return: their bytes; payload, padding and ICRC follow.
 */
size_t pvr_roce_build(uint8_t *buf, const struct pvr_roce_frame *frame);

/*
 * Build the headers from the PSN on again, and the IPv4 ID. The others at @header are those of
 * @frame; the checksum of IPv4 stays that of the ID before.
 */
void pvr_roce_build_next(uint8_t *header, const struct pvr_roce_frame *frame);

/* Return: bytes of a frame with @headers bytes of headers. */
size_t pvr_roce_frame_bytes(size_t headers, const struct pvr_roce_frame *frame);

/*
 * Build padding and ICRC behind the payload.
 * @frame: bytes of headers and payload at @buf, with room for PVR_ROCE_TRAILER_MAX more
 * @headers: bytes that pvr_roce_build() returned
 * Return: bytes of the whole frame.
 */
size_t pvr_roce_finish(uint8_t *buf, size_t headers, const struct pvr_roce_frame *frame);
/*
 * The same in steps, for a payload whose CRC is computed while it is copied (crc.h). The CRC of the
 * headers at @header is continued by that of the payload.
 */
uint32_t pvr_roce_crc_headers(const uint8_t *header, size_t headers,
			      const struct pvr_roce_frame *frame);
/*
 * The same of a packet of RoCEv2 with at most PVR_ROCE_SMALL bytes of payload, up to the end of that: in
 * one piece. @bth: @bytes from its BTH on
 */
uint32_t pvr_roce_crc_small(const uint8_t *header, const uint8_t *bth, size_t bytes,
			    const struct pvr_roce_frame *frame);
/* The headers at @header, of RoCEv2, for pvr_roce_crc_packet(); see pvr_roce_icrc_head(). */
struct pvr_roce_crc_head;
void pvr_roce_frame_head(struct pvr_roce_crc_head *head, const uint8_t *header,
			 const struct pvr_roce_frame *frame);
/*
 * Build padding and ICRC behind @bytes of payload. @crc: of headers and payload. Return: bytes of
 * payload, padding and ICRC.
 */
size_t pvr_roce_close(uint8_t *payload, uint32_t crc, uint32_t bytes);

/*
 * Read the headers of a frame. All but the ICRC is checked.
 * @payload: its offset in @buf
 * @end: the offset of the ICRC, behind payload and padding
 */
enum pvr_roce_drop pvr_roce_parse(const uint8_t *buf, size_t bytes, struct pvr_roce_frame *frame,
				  size_t *payload, size_t *end);

/* Bytes of the BTH that packets of a message have in common: all but A and the PSN. */
#define PVR_ROCE_BTH_COMMON 8u
/*
 * Read the rest of the BTH and the headers behind it. @frame: of a packet that has the same
 * PVR_ROCE_BTH_COMMON bytes at its BTH, and the same length
 */
void pvr_roce_parse_next(const uint8_t *bth, struct pvr_roce_frame *frame);

/* Of a packet's BTH. */
static inline uint32_t pvr_roce_bth_psn(const uint8_t *bth)
{
	return (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
}

/* The same with A, as it is in the BTH. */
#define PVR_ROCE_BTH_ACK (1u << 31)
static inline void pvr_roce_bth_set_psn(uint8_t *bth, uint32_t psn)
{
	bth[8] = (uint8_t)(psn >> 24);
	bth[9] = (uint8_t)(psn >> 16);
	bth[10] = (uint8_t)(psn >> 8);
	bth[11] = (uint8_t)psn;
}

static inline bool pvr_roce_bth_ack_request(const uint8_t *bth)
{
	return bth[8] >> 7;
}

/* Check the ICRC of a frame that pvr_roce_parse() accepted. @end: from there */
enum pvr_roce_drop pvr_roce_check_icrc(const uint8_t *buf, size_t end);

/* The UDP source port of two queue pairs: constant, so that packets stay in order. */
uint16_t pvr_roce_src_port(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);

const char *pvr_roce_drop_name(enum pvr_roce_drop drop);

#endif /* PVR_ROCE_FRAME_H */
