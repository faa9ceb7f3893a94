// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RoCE packets in Ethernet frames. */
#include "roce/frame.h"

#include <string.h>

#include "roce/bytes.h"
#include "roce/crc.h"
#include "roce/icrc.h"
#include "roce/opcode.h"

#define MAC_BYTES 6
#define ETHERTYPE_ROCE_V1 0x8915
#define NEXT_HEADER_BTH 0x1b /* IBTA 8.3 */
#define IPV4_DF 0x4000
#define IPV4_FRAGMENT 0x3fff /* offset, more fragments */
#define PSN_MASK 0xffffffu

/* ------------------------------------------------------------------- parts of a frame */

static bool has_udp(const struct pvr_roce_frame *frame)
{
	return frame->net != PVR_ROCE_V1;
}

static uint32_t padding(uint32_t bytes)
{
	return -bytes & 3;
}

/* Return: bytes of BTH to ICRC. */
static uint32_t transport_bytes(const struct pvr_roce_frame *frame)
{
	return BTH_BYTES + pvr_roce_ext_bytes(pvr_roce_opcode(frame->opcode)->ext) +
	       frame->payload_bytes + padding(frame->payload_bytes) + PVR_ROCE_ICRC_BYTES;
}

static uint8_t *build_ethernet(uint8_t *p, const struct pvr_roce_frame *frame)
{
	static const uint16_t types[] = { [PVR_ROCE_V1] = ETHERTYPE_ROCE_V1,
					  [PVR_ROCE_IPV4] = ETHERTYPE_IPV4,
					  [PVR_ROCE_IPV6] = ETHERTYPE_IPV6 };

	p = put_bytes(p, frame->dst_mac, MAC_BYTES);
	p = put_bytes(p, frame->src_mac, MAC_BYTES);
	if (frame->vlan)
		p = put16(put16(p, ETHERTYPE_VLAN), frame->vlan);
	return put16(p, types[frame->net]);
}

static uint8_t *build_ipv4(uint8_t *ip, const struct pvr_roce_frame *frame)
{
	uint8_t *p = ip;

	*p++ = IPV4_VERSION_IHL;
	*p++ = frame->traffic_class;
	p = put16(p, IPV4_BYTES + UDP_BYTES + transport_bytes(frame));
	p = put16(p, frame->ip_id);
	p = put16(p, IPV4_DF);
	*p++ = frame->hop_limit;
	*p++ = NEXT_HEADER_UDP;
	p = put16(p, 0);
	p = put_bytes(p, frame->src_gid + 12, 4);
	p = put_bytes(p, frame->dst_gid + 12, 4);
	put16(ip + 10, ~ipv4_sum(ip));
	return p;
}

static uint8_t *build_ipv6(uint8_t *p, const struct pvr_roce_frame *frame)
{
	p = put32(p, 6u << 28 | (uint32_t)frame->traffic_class << 20 | frame->flow_label);
	p = put16(p, (has_udp(frame) ? UDP_BYTES : 0) + transport_bytes(frame));
	*p++ = has_udp(frame) ? NEXT_HEADER_UDP : NEXT_HEADER_BTH;
	*p++ = frame->hop_limit;
	p = put_bytes(p, frame->src_gid, 16);
	return put_bytes(p, frame->dst_gid, 16);
}

/* The checksum is 0: there is none, and the ICRC is the better one. */
static uint8_t *build_udp(uint8_t *p, const struct pvr_roce_frame *frame)
{
	p = put16(p, frame->src_port);
	p = put16(p, PVR_ROCE_UDP_PORT);
	p = put16(p, UDP_BYTES + transport_bytes(frame));
	return put16(p, 0);
}

static uint8_t *build_bth(uint8_t *p, const struct pvr_roce_frame *frame)
{
	*p++ = frame->opcode;
	*p++ = (uint8_t)(frame->solicited << 7 | frame->migrated << 6 |
			 padding(frame->payload_bytes) << 4);
	p = put16(p, frame->pkey);
	p = put32(p, (uint32_t)frame->fecn << 31 | (uint32_t)frame->becn << 30 | frame->dest_qpn);
	return put32(p, (uint32_t)frame->ack_request << 31 | frame->psn);
}

static uint8_t *build_ext(uint8_t *p, const struct pvr_roce_frame *frame, uint16_t ext)
{
	if (ext & PVR_ROCE_DETH)
		p = put32(put32(p, frame->qkey), frame->src_qpn);
	if (ext & PVR_ROCE_FETH)
		p = put32(p, frame->flush);
	if (ext & PVR_ROCE_RETH)
		p = put32(put32(put64(p, frame->addr), frame->rkey), frame->length);
	if (ext & PVR_ROCE_ATOMIC_ETH) {
		p = put32(put64(p, frame->addr), frame->rkey);
		p = put64(put64(p, frame->swap_add), frame->compare);
	}
	if (ext & PVR_ROCE_AETH)
		p = put32(p, (uint32_t)frame->syndrome << 24 | frame->msn);
	if (ext & PVR_ROCE_ATOMIC_ACK_ETH)
		p = put64(p, frame->original);
	if (ext & PVR_ROCE_IMM)
		p = put_bytes(p, frame->imm, sizeof(frame->imm));
	if (ext & PVR_ROCE_IETH)
		p = put32(p, frame->inv_rkey);
	if (ext & PVR_ROCE_CNP_PAD)
		p = put64(put64(p, 0), 0);
	return p;
}

size_t pvr_roce_build(uint8_t *buf, const struct pvr_roce_frame *frame)
{
	uint8_t *p = build_ethernet(buf, frame);

	p = frame->net == PVR_ROCE_IPV4 ? build_ipv4(p, frame) : build_ipv6(p, frame);
	if (has_udp(frame))
		p = build_udp(p, frame);
	p = build_bth(p, frame);
	return (size_t)(build_ext(p, frame, pvr_roce_opcode(frame->opcode)->ext) - buf);
}

void pvr_roce_build_next(uint8_t *header, const struct pvr_roce_frame *frame)
{
	uint8_t *p = header + ETHERNET_BYTES + (frame->vlan ? VLAN_BYTES : 0);

	if (frame->net == PVR_ROCE_IPV4)
		put16(p + 4, frame->ip_id);
	p += frame->net == PVR_ROCE_IPV4 ? IPV4_BYTES : IPV6_BYTES;
	p += (has_udp(frame) ? UDP_BYTES : 0) + BTH_BYTES - 4;
	p = put32(p, (uint32_t)frame->ack_request << 31 | frame->psn);
	build_ext(p, frame, pvr_roce_opcode(frame->opcode)->ext);
}

size_t pvr_roce_frame_bytes(size_t headers, const struct pvr_roce_frame *frame)
{
	return headers + frame->payload_bytes + padding(frame->payload_bytes) + PVR_ROCE_ICRC_BYTES;
}

/* ---------------------------------------------------------------------------- ICRC */

/* @end: offset of the ICRC */
static uint32_t icrc_of(const uint8_t *buf, size_t end)
{
	size_t net = net_offset(buf);
	uint16_t type = get16(buf + net - 2);

	return pvr_roce_icrc(buf + net, type == ETHERTYPE_IPV4 ? IPV4_BYTES : IPV6_BYTES,
			     type != ETHERTYPE_ROCE_V1, end - net);
}

uint32_t pvr_roce_crc_headers(const uint8_t *header, size_t headers,
			      const struct pvr_roce_frame *frame)
{
	const uint8_t *net = header + ETHERNET_BYTES + (frame->vlan ? VLAN_BYTES : 0);
	size_t net_bytes = frame->net == PVR_ROCE_IPV4 ? IPV4_BYTES : IPV6_BYTES;
	const uint8_t *bth = net + net_bytes + (has_udp(frame) ? UDP_BYTES : 0);

	return pvr_roce_icrc_headers(net, net_bytes, has_udp(frame), bth,
				     (size_t)(header + headers - bth));
}

uint32_t pvr_roce_crc_small(const uint8_t *header, const uint8_t *bth, size_t bytes,
			    const struct pvr_roce_frame *frame)
{
	const uint8_t *net = header + ETHERNET_BYTES + (frame->vlan ? VLAN_BYTES : 0);

	return pvr_roce_icrc_headers(net, frame->net == PVR_ROCE_IPV4 ? IPV4_BYTES : IPV6_BYTES,
				     true, bth, bytes);
}

void pvr_roce_frame_head(struct pvr_roce_crc_head *head, const uint8_t *header,
			 const struct pvr_roce_frame *frame)
{
	const uint8_t *net = header + ETHERNET_BYTES + (frame->vlan ? VLAN_BYTES : 0);
	size_t net_bytes = frame->net == PVR_ROCE_IPV4 ? IPV4_BYTES : IPV6_BYTES;

	pvr_roce_icrc_head(head, net, net_bytes, net + net_bytes + UDP_BYTES);
}

size_t pvr_roce_close(uint8_t *payload, uint32_t crc, uint32_t bytes)
{
	uint8_t *p = payload + bytes;
	uint32_t pad = padding(bytes);

	if (pad) {
		memset(p, 0, pad);
		crc = pvr_roce_crc(crc, p, pad);
	}
	pvr_roce_icrc_put(p + pad, crc);
	return bytes + pad + PVR_ROCE_ICRC_BYTES;
}

size_t pvr_roce_finish(uint8_t *buf, size_t headers, const struct pvr_roce_frame *frame)
{
	uint32_t crc = pvr_roce_crc_headers(buf, headers, frame);

	crc = pvr_roce_crc(crc, buf + headers, frame->payload_bytes);
	return headers + pvr_roce_close(buf + headers, crc, frame->payload_bytes);
}

enum pvr_roce_drop pvr_roce_check_icrc(const uint8_t *buf, size_t end)
{
	return pvr_roce_icrc_get(buf + end) == icrc_of(buf, end) ? PVR_ROCE_OK : PVR_ROCE_DROP_ICRC;
}

/* ------------------------------------------------------------------------- parsing */

/* What is still to be read. */
struct unread {
	const uint8_t *p;
	size_t left;
};

/* Return: @bytes of the frame, or NULL if it ends before. */
static const uint8_t *take(struct unread *in, size_t bytes)
{
	const uint8_t *p = in->p;

	if (in->left < bytes)
		return NULL;
	in->p += bytes;
	in->left -= bytes;
	return p;
}

static enum pvr_roce_drop parse_ethernet(struct unread *in, struct pvr_roce_frame *frame)
{
	const uint8_t *p = take(in, 14);
	uint16_t type;

	if (!p)
		return PVR_ROCE_DROP_SHORT;
	memcpy(frame->dst_mac, p, MAC_BYTES);
	memcpy(frame->src_mac, p + MAC_BYTES, MAC_BYTES);
	type = get16(p + 12);
	if (type == ETHERTYPE_VLAN) {
		p = take(in, 4);
		if (!p)
			return PVR_ROCE_DROP_SHORT;
		frame->vlan = get16(p);
		type = get16(p + 2);
	}
	switch (type) {
	case ETHERTYPE_IPV4:
		frame->net = PVR_ROCE_IPV4;
		return PVR_ROCE_OK;
	case ETHERTYPE_IPV6:
		frame->net = PVR_ROCE_IPV6;
		return PVR_ROCE_OK;
	case ETHERTYPE_ROCE_V1:
		frame->net = PVR_ROCE_V1;
		return PVR_ROCE_OK;
	default:
		return PVR_ROCE_DROP_TYPE;
	}
}

static void map_ipv4(uint8_t gid[16], const uint8_t *addr)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, addr, 4);
}

/* Ethernet pads short frames: a packet ends where its length says. */
static enum pvr_roce_drop end_at(struct unread *in, size_t bytes)
{
	if (in->left < bytes)
		return PVR_ROCE_DROP_IP;
	in->left = bytes;
	return PVR_ROCE_OK;
}

static enum pvr_roce_drop parse_ipv4(struct unread *in, struct pvr_roce_frame *frame)
{
	const uint8_t *ip = take(in, IPV4_BYTES);

	if (!ip)
		return PVR_ROCE_DROP_SHORT;
	/* First: IGMP has options, which RoCE has not. */
	if (ip[9] != NEXT_HEADER_UDP)
		return PVR_ROCE_DROP_TYPE;
	if (ip[0] != IPV4_VERSION_IHL || get16(ip + 6) & IPV4_FRAGMENT || ipv4_sum(ip) != 0xffff ||
	    get16(ip + 2) < IPV4_BYTES)
		return PVR_ROCE_DROP_IP;
	frame->traffic_class = ip[1];
	frame->ip_id = get16(ip + 4);
	frame->hop_limit = ip[8];
	map_ipv4(frame->src_gid, ip + 12);
	map_ipv4(frame->dst_gid, ip + 16);
	return end_at(in, get16(ip + 2) - (size_t)IPV4_BYTES);
}

static enum pvr_roce_drop parse_ipv6(struct unread *in, struct pvr_roce_frame *frame)
{
	const uint8_t *ip = take(in, IPV6_BYTES);

	if (!ip)
		return PVR_ROCE_DROP_SHORT;
	if (ip[0] >> 4 != 6)
		return PVR_ROCE_DROP_IP;
	if (ip[6] != (has_udp(frame) ? NEXT_HEADER_UDP : NEXT_HEADER_BTH))
		return PVR_ROCE_DROP_TYPE;
	frame->traffic_class = (uint8_t)(get16(ip) >> 4);
	frame->flow_label = get32(ip) & 0xfffff;
	frame->hop_limit = ip[7];
	memcpy(frame->src_gid, ip + 8, 16);
	memcpy(frame->dst_gid, ip + 24, 16);
	return end_at(in, get16(ip + 4));
}

/* The checksum is not checked: the ICRC is, and it covers more. */
static enum pvr_roce_drop parse_udp(struct unread *in, struct pvr_roce_frame *frame)
{
	const uint8_t *udp = take(in, UDP_BYTES);
	size_t length;

	if (!udp)
		return PVR_ROCE_DROP_SHORT;
	if (get16(udp + 2) != PVR_ROCE_UDP_PORT)
		return PVR_ROCE_DROP_TYPE;
	length = get16(udp + 4);
	if (length < UDP_BYTES || length - UDP_BYTES > in->left)
		return PVR_ROCE_DROP_UDP;
	frame->src_port = get16(udp);
	in->left = length - UDP_BYTES;
	return PVR_ROCE_OK;
}

/* @padding: bytes behind the payload */
static enum pvr_roce_drop parse_bth(struct unread *in, struct pvr_roce_frame *frame,
				    uint32_t *padding)
{
	const uint8_t *bth = take(in, BTH_BYTES);

	if (!bth)
		return PVR_ROCE_DROP_SHORT;
	frame->opcode = bth[0];
	frame->solicited = bth[1] >> 7;
	frame->migrated = bth[1] >> 6 & 1;
	*padding = bth[1] >> 4 & 3;
	frame->pkey = get16(bth + 2);
	frame->fecn = bth[4] >> 7;
	frame->becn = bth[4] >> 6 & 1;
	frame->dest_qpn = get32(bth + 4) & PSN_MASK;
	frame->ack_request = bth[8] >> 7;
	frame->psn = get32(bth + 8) & PSN_MASK;
	return bth[1] & 0x0f || (frame->pkey & 0x7fff) != 0x7fff ? PVR_ROCE_DROP_BTH : PVR_ROCE_OK;
}

static void parse_ext(const uint8_t *p, struct pvr_roce_frame *frame, uint16_t ext)
{
	if (ext & PVR_ROCE_DETH) {
		frame->qkey = get32(p);
		frame->src_qpn = get32(p + 4) & PSN_MASK;
		p += 8;
	}
	if (ext & PVR_ROCE_FETH) {
		frame->flush = get32(p);
		p += 4;
	}
	if (ext & (PVR_ROCE_RETH | PVR_ROCE_ATOMIC_ETH)) {
		frame->addr = get64(p);
		frame->rkey = get32(p + 8);
		p += 12;
	}
	if (ext & PVR_ROCE_RETH) {
		frame->length = get32(p);
		p += 4;
	}
	if (ext & PVR_ROCE_ATOMIC_ETH) {
		frame->swap_add = get64(p);
		frame->compare = get64(p + 8);
		p += 16;
	}
	if (ext & PVR_ROCE_AETH) {
		frame->syndrome = p[0];
		frame->msn = get32(p) & PSN_MASK;
		p += 4;
	}
	if (ext & PVR_ROCE_ATOMIC_ACK_ETH) {
		frame->original = get64(p);
		p += 8;
	}
	if (ext & PVR_ROCE_IMM) {
		memcpy(frame->imm, p, sizeof(frame->imm));
		p += sizeof(frame->imm);
	}
	if (ext & PVR_ROCE_IETH)
		frame->inv_rkey = get32(p);
}

/* @pad: bytes behind the payload. ICRC and payload are left. */
static enum pvr_roce_drop parse_payload(struct unread *in, struct pvr_roce_frame *frame,
					uint32_t pad)
{
	const struct pvr_roce_opcode *op = pvr_roce_opcode(frame->opcode);
	const uint8_t *ext;

	if (!op)
		return PVR_ROCE_DROP_OPCODE;
	ext = take(in, pvr_roce_ext_bytes(op->ext));
	if (!ext || in->left < PVR_ROCE_ICRC_BYTES)
		return PVR_ROCE_DROP_SHORT;
	in->left -= PVR_ROCE_ICRC_BYTES;
	if (in->left < pad || in->left % 4 || (!op->payload && in->left))
		return PVR_ROCE_DROP_BTH;
	parse_ext(ext, frame, op->ext);
	frame->payload_bytes = (uint32_t)(in->left - pad);
	return PVR_ROCE_OK;
}

enum pvr_roce_drop pvr_roce_parse(const uint8_t *buf, size_t bytes, struct pvr_roce_frame *frame,
				  size_t *payload, size_t *end)
{
	struct unread in = { .p = buf, .left = bytes };
	enum pvr_roce_drop drop;
	uint32_t pad = 0;

	memset(frame, 0, sizeof(*frame));
	drop = parse_ethernet(&in, frame);
	if (!drop)
		drop = frame->net == PVR_ROCE_IPV4 ? parse_ipv4(&in, frame)
						   : parse_ipv6(&in, frame);
	if (!drop && has_udp(frame))
		drop = parse_udp(&in, frame);
	if (!drop)
		drop = parse_bth(&in, frame, &pad);
	if (!drop)
		drop = parse_payload(&in, frame, pad);
	*payload = (size_t)(in.p - buf);
	*end = *payload + in.left;
	return drop;
}

void pvr_roce_parse_next(const uint8_t *bth, struct pvr_roce_frame *frame)
{
	frame->ack_request = bth[8] >> 7;
	frame->psn = get32(bth + 8) & PSN_MASK;
	parse_ext(bth + BTH_BYTES, frame, pvr_roce_opcode(frame->opcode)->ext);
}

/* --------------------------------------------------------------------------- names */

uint16_t pvr_roce_src_port(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t product = (uint64_t)qpn * dest_qpn;
	uint32_t flow = flow_label;

	if (!flow) {
		product ^= product >> 20;
		product ^= product >> 40;
		flow = product & 0xfffff;
	}
	return (uint16_t)(0xc000 | ((flow & 0x3fff) ^ flow >> 14));
}

const char *pvr_roce_drop_name(enum pvr_roce_drop drop)
{
	static const char *const names[PVR_ROCE_DROPS] = {
		[PVR_ROCE_OK] = "ok",
		[PVR_ROCE_DROP_SHORT] = "truncated",
		[PVR_ROCE_DROP_TYPE] = "not RoCE",
		[PVR_ROCE_DROP_IP] = "IP header",
		[PVR_ROCE_DROP_UDP] = "UDP length",
		[PVR_ROCE_DROP_BTH] = "BTH",
		[PVR_ROCE_DROP_OPCODE] = "opcode",
		[PVR_ROCE_DROP_ICRC] = "ICRC",
	};

	return names[drop];
}
