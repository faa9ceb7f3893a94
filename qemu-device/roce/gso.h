/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * UDP segmentation offload: several RoCEv2 packets in one frame.
 *
 * DOC: segments
 *
 * - Such a frame has one Ethernet, IP and UDP header. Behind it are the UDP payloads of its
 *   packets, BTH to ICRC each. All are equally long, except the last one, which may be shorter.
 * - The network cuts it into packets. It sets lengths and checksums of each, and adds its index to
 *   the IPv4 ID, which the ICRC covers.
 */
#ifndef PVR_ROCE_GSO_H
#define PVR_ROCE_GSO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The network takes no more packets in a frame. */
#define PVR_ROCE_GSO_SEGMENTS 64u
/* Packets of a received frame at most, as in current Linux (UDP_MAX_SEGMENTS). */
#define PVR_ROCE_CUT_MAX 128u
/* Bytes of a frame without its Ethernet header: IP has 16 bits for its length. */
#define PVR_ROCE_GSO_MAX 65535u

/* Bytes of these headers at most: Ethernet 14, VLAN 4, IPv6 40, UDP 8. */
#define PVR_ROCE_GSO_HEADERS_MAX 66u

/* Return: bytes of the Ethernet, IP and UDP headers; 0 if the frame has others. */
size_t pvr_roce_gso_headers(const uint8_t *frame, size_t bytes);

/*
 * Whether two packets, whose headers are at @a and @b, fit into one frame: they differ only in
 * lengths, ID and checksums. @headers: from pvr_roce_gso_headers()
 */
bool pvr_roce_gso_is_same_flow(const uint8_t *a, const uint8_t *b, size_t headers);

/* Set the lengths and checksums of a frame of several packets. UDP's is the pseudo header's. */
void pvr_roce_gso_close(uint8_t *frame, size_t headers, size_t bytes);

/* A frame that is cut. */
struct pvr_roce_cut {
	uint8_t header[PVR_ROCE_GSO_HEADERS_MAX];
	uint8_t *at; /* of the next packet's UDP payload */
	size_t headers, left, segment;
	uint16_t index;
};

/*
 * @segment: bytes of a UDP payload. Return: false if the frame is not IP and UDP, is too short, or
 * has more than PVR_ROCE_CUT_MAX packets.
 */
bool pvr_roce_cut_begin(struct pvr_roce_cut *cut, uint8_t *frame, size_t bytes, size_t segment);
/*
 * Write the next packet's headers in front of its UDP payload, over the packet before it.
 * Return: the packet, or NULL after the last one.
 */
uint8_t *pvr_roce_cut_next(struct pvr_roce_cut *cut, size_t *bytes);

/*
 * The next packet without its headers: its UDP payload, of *bytes bytes. pvr_roce_cut_skip() takes
 * it, pvr_roce_cut_next() too. Return: NULL after the last one.
 */
const uint8_t *pvr_roce_cut_peek(const struct pvr_roce_cut *cut, size_t *bytes);
/* Whether the ICRC of that packet is right. Its headers are computed, but not written. */
bool pvr_roce_cut_is_icrc_ok(const struct pvr_roce_cut *cut);
/*
 * The same in two steps, for packets that have nothing but the payload behind their BTH, are equally
 * long, and have the same PVR_ROCE_BTH_COMMON bytes. @head: set by the first of them; @next: of
 * pvr_roce_crc_packet()
 */
struct pvr_roce_crc_head;
void pvr_roce_cut_head(const struct pvr_roce_cut *cut, struct pvr_roce_crc_head *head);
bool pvr_roce_cut_is_middle_ok(const struct pvr_roce_cut *cut, const struct pvr_roce_crc_head *head,
			       const uint8_t *next);
void pvr_roce_cut_skip(struct pvr_roce_cut *cut);

#endif /* PVR_ROCE_GSO_H */
