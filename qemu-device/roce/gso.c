// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* UDP segmentation offload: several RoCEv2 packets in one frame. */
#include "roce/gso.h"

#include <string.h>

#include "roce/bytes.h"
#include "roce/crc.h"
#include "roce/frame.h"
#include "roce/icrc.h"

/* Offsets in the headers. */
#define IPV4_LENGTH 2
#define IPV4_ID 4
#define IPV4_TTL 8
#define IPV4_PROTOCOL 9
#define IPV4_CHECKSUM 10
#define IPV4_ADDRESSES 12
#define IPV6_LENGTH 4
#define IPV6_NEXT_HEADER 6
#define IPV6_ADDRESSES 8
#define UDP_LENGTH 4
#define UDP_CHECKSUM 6

static bool is_ipv4(const uint8_t *frame, size_t net)
{
	return get16(frame + net - 2) == ETHERTYPE_IPV4;
}

size_t pvr_roce_gso_headers(const uint8_t *frame, size_t bytes)
{
	size_t net, headers;

	if (bytes < ETHERNET_BYTES)
		return 0;
	net = net_offset(frame);
	headers = net + IPV4_BYTES + UDP_BYTES;
	if (bytes < headers)
		return 0;
	if (is_ipv4(frame, net))
		return frame[net] == IPV4_VERSION_IHL &&
				       frame[net + IPV4_PROTOCOL] == NEXT_HEADER_UDP
			       ? headers
			       : 0;
	headers = net + IPV6_BYTES + UDP_BYTES;
	if (get16(frame + net - 2) != ETHERTYPE_IPV6 || bytes < headers ||
	    frame[net + IPV6_NEXT_HEADER] != NEXT_HEADER_UDP)
		return 0;
	return headers;
}

bool pvr_roce_gso_is_same_flow(const uint8_t *a, const uint8_t *b, size_t headers)
{
	size_t net = net_offset(a), udp = headers - UDP_BYTES;
	size_t ports = udp + UDP_LENGTH;

	if (is_ipv4(a, net))
		return !memcmp(a, b, net + IPV4_LENGTH) &&
		       !memcmp(a + net + IPV4_TTL, b + net + IPV4_TTL, 2) &&
		       !memcmp(a + net + IPV4_ADDRESSES, b + net + IPV4_ADDRESSES,
			       ports - net - IPV4_ADDRESSES);
	return !memcmp(a, b, net + IPV6_LENGTH) &&
	       !memcmp(a + net + IPV6_NEXT_HEADER, b + net + IPV6_NEXT_HEADER,
		       ports - net - IPV6_NEXT_HEADER);
}

/* Sets the length fields of the headers at @frame, for a frame of @bytes bytes. */
static void put_lengths(uint8_t *frame, size_t headers, size_t bytes)
{
	size_t net = net_offset(frame), udp = headers - UDP_BYTES;

	put16(frame + udp + UDP_LENGTH, (uint32_t)(bytes - udp));
	if (is_ipv4(frame, net))
		put16(frame + net + IPV4_LENGTH, (uint32_t)(bytes - net));
	else
		put16(frame + net + IPV6_LENGTH, (uint32_t)(bytes - udp));
}

/* The same, and IPv4's checksum. */
static void set_lengths(uint8_t *frame, size_t headers, size_t bytes)
{
	uint8_t *ip = frame + net_offset(frame);

	put_lengths(frame, headers, bytes);
	if (!is_ipv4(frame, net_offset(frame)))
		return;
	put16(ip + IPV4_CHECKSUM, 0);
	put16(ip + IPV4_CHECKSUM, ~ipv4_sum(ip) & 0xffff);
}

static uint32_t sum_of(const uint8_t *p, size_t bytes)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < bytes; i += 2)
		sum += get16(p + i);
	return sum;
}

void pvr_roce_gso_close(uint8_t *frame, size_t headers, size_t bytes)
{
	size_t net = net_offset(frame), udp = headers - UDP_BYTES;
	size_t addresses = net + (is_ipv4(frame, net) ? IPV4_ADDRESSES : IPV6_ADDRESSES);
	uint32_t sum = NEXT_HEADER_UDP + (uint32_t)(bytes - udp) +
		       sum_of(frame + addresses, udp - addresses);

	set_lengths(frame, headers, bytes);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(frame + udp + UDP_CHECKSUM, (sum + (sum >> 16)) & 0xffff);
}

bool pvr_roce_cut_begin(struct pvr_roce_cut *cut, uint8_t *frame, size_t bytes, size_t segment)
{
	size_t headers = pvr_roce_gso_headers(frame, bytes);

	if (!headers || bytes <= headers || !segment ||
	    bytes - headers > segment * PVR_ROCE_CUT_MAX)
		return false;
	cut->headers = headers;
	memcpy(cut->header, frame, headers);
	cut->at = frame + headers;
	cut->left = bytes - headers;
	cut->segment = segment;
	cut->index = 0;
	return true;
}

static size_t next_bytes(const struct pvr_roce_cut *cut)
{
	return cut->left < cut->segment ? cut->left : cut->segment;
}

static void put_id(const struct pvr_roce_cut *cut, uint8_t *frame)
{
	uint8_t *ip = frame + net_offset(frame);

	if (is_ipv4(frame, net_offset(frame)))
		put16(ip + IPV4_ID, get16(ip + IPV4_ID) + (uint32_t)cut->index);
}

uint8_t *pvr_roce_cut_next(struct pvr_roce_cut *cut, size_t *bytes)
{
	uint8_t *packet = cut->at - cut->headers;
	size_t n = next_bytes(cut);

	if (!n)
		return NULL;
	memcpy(packet, cut->header, cut->headers);
	put_id(cut, packet);
	pvr_roce_cut_skip(cut);
	*bytes = cut->headers + n;
	set_lengths(packet, cut->headers, *bytes);
	return packet;
}

const uint8_t *pvr_roce_cut_peek(const struct pvr_roce_cut *cut, size_t *bytes)
{
	*bytes = next_bytes(cut);
	return *bytes ? cut->at : NULL;
}

bool pvr_roce_cut_is_icrc_ok(const struct pvr_roce_cut *cut)
{
	uint8_t header[PVR_ROCE_GSO_HEADERS_MAX];
	size_t net = net_offset(cut->header), n = next_bytes(cut);

	if (n < BTH_BYTES + PVR_ROCE_ICRC_BYTES)
		return false;
	memcpy(header, cut->header, cut->headers);
	put_id(cut, header);
	put_lengths(header, cut->headers, cut->headers + n);
	return pvr_roce_icrc_is_ok(header + net, cut->headers - net - UDP_BYTES, cut->at, n);
}

void pvr_roce_cut_head(const struct pvr_roce_cut *cut, struct pvr_roce_crc_head *head)
{
	uint8_t header[PVR_ROCE_GSO_HEADERS_MAX];
	size_t net = net_offset(cut->header);

	memcpy(header, cut->header, cut->headers);
	put_lengths(header, cut->headers, cut->headers + next_bytes(cut));
	pvr_roce_icrc_head(head, header + net, cut->headers - net - UDP_BYTES, cut->at);
}

bool pvr_roce_cut_is_middle_ok(const struct pvr_roce_cut *cut, const struct pvr_roce_crc_head *head,
			       const uint8_t *next)
{
	size_t bytes = next_bytes(cut) - BTH_BYTES - PVR_ROCE_ICRC_BYTES;
	uint16_t id = get16(cut->header + net_offset(cut->header) + IPV4_ID);
	const uint8_t *payload = cut->at + BTH_BYTES;
	uint32_t crc;

	crc = pvr_roce_crc_packet(head, (uint16_t)(id + cut->index), get32(payload - 4), payload,
				  bytes, next);
	return crc == pvr_roce_icrc_get(payload + bytes);
}

void pvr_roce_cut_skip(struct pvr_roce_cut *cut)
{
	size_t n = next_bytes(cut);

	cut->index++;
	cut->at += n;
	cut->left -= n;
}
