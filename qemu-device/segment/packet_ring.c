// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The receive ring of a packet socket. */
#include "segment/packet_ring.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "segment/vnet.h"

#define TAG_BYTES 4u
#define MACS_BYTES 12u
/* Free bytes in front of each frame, for its VLAN tag; they keep its alignment. */
#define RESERVE TPACKET_ALIGNMENT
/* Alignment of the Ethernet header in a slot. */
#define PADDING 64u
#define BLOCK_BYTES (1u << 20)

static struct tpacket2_hdr *slot_at(const struct pvr_packet_ring *ring, unsigned int i)
{
	i %= ring->slots;
	return (struct tpacket2_hdr *)(ring->map + i / ring->slots_per_block * ring->block_bytes +
				       i % ring->slots_per_block * ring->slot_bytes);
}

bool pvr_packet_ring_open(struct pvr_packet_ring *ring, int fd, size_t frame_bytes,
			  unsigned int slots, bool has_vnet)
{
	const int version = TPACKET_V2;
	const unsigned int reserve = RESERVE;
	struct tpacket_req request;
	uint8_t *map;

	ring->slot_bytes = TPACKET_ALIGN(TPACKET2_HDRLEN + RESERVE + PADDING +
					 sizeof(struct virtio_net_hdr) + frame_bytes);
	ring->block_bytes = BLOCK_BYTES;
	ring->slots_per_block = (unsigned int)(BLOCK_BYTES / ring->slot_bytes);
	slots -= slots % ring->slots_per_block;
	request = (struct tpacket_req){
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = slots / ring->slots_per_block,
		.tp_frame_size = (unsigned int)ring->slot_bytes,
		.tp_frame_nr = slots,
	};
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) < 0)
		return false;
	map = mmap(NULL, (size_t)request.tp_block_nr * BLOCK_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return false;
	ring->map = map;
	ring->slots = slots;
	ring->next = 0;
	ring->has_vnet = has_vnet;
	return true;
}

void pvr_packet_ring_close(struct pvr_packet_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->slots / ring->slots_per_block * ring->block_bytes);
	ring->map = NULL;
}

/* Puts the tag in again that the kernel has taken out. */
static void insert_tag(struct pvr_port_frame *frame, uint16_t tci)
{
	const uint16_t tag[2] = { htons(ETH_P_8021Q), htons(tci) };

	memmove(frame->data - TAG_BYTES, frame->data, MACS_BYTES);
	frame->data -= TAG_BYTES;
	memcpy(frame->data + MACS_BYTES, tag, sizeof(tag));
	frame->bytes += TAG_BYTES;
}

static void read_slot(const struct pvr_packet_ring *ring, struct tpacket2_hdr *slot,
		      struct pvr_port_frame *frame)
{
	struct virtio_net_hdr vnet;

	*frame = (struct pvr_port_frame){
		.data = (uint8_t *)slot + slot->tp_mac,
		.bytes = slot->tp_snaplen,
	};
	if (ring->has_vnet) {
		memcpy(&vnet, frame->data - sizeof(vnet), sizeof(vnet));
		frame->segment = pvr_vnet_segment(&vnet);
	}
	if (slot->tp_status & TP_STATUS_VLAN_VALID && frame->bytes >= MACS_BYTES)
		insert_tag(frame, slot->tp_vlan_tci);
}

unsigned int pvr_packet_ring_peek(struct pvr_packet_ring *ring, struct pvr_port_frame *frames,
				  unsigned int max, size_t max_bytes, bool *lost)
{
	size_t bytes = 0;
	unsigned int n;

	*lost = false;
	for (n = 0; n < max && n < ring->slots && bytes < max_bytes; n++) {
		struct tpacket2_hdr *slot = slot_at(ring, ring->next + n);
		uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);

		if (!(status & TP_STATUS_USER))
			break;
		*lost |= status & TP_STATUS_LOSING;
		read_slot(ring, slot, &frames[n]);
		bytes += frames[n].bytes;
	}
	return n;
}

void pvr_packet_ring_release(struct pvr_packet_ring *ring, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		__atomic_store_n(&slot_at(ring, ring->next + i)->tp_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
	ring->next = (ring->next + count) % ring->slots;
}
