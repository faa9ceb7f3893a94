/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The receive ring of a packet socket (TPACKET_V2): the kernel writes frames to slots in shared
 * memory, so they are read without a system call. The ring holds many more frames than the
 * socket's buffer, which net.core.rmem_max limits. A frame for which no slot is free is lost.
 */
#ifndef PVR_SEGMENT_PACKET_RING_H
#define PVR_SEGMENT_PACKET_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port.h"

struct pvr_packet_ring {
	uint8_t *map; /* NULL: closed */
	size_t slot_bytes, block_bytes;
	unsigned int slots, slots_per_block;
	unsigned int next; /* the slot that the kernel fills first */
	bool has_vnet; /* a struct virtio_net_hdr is in front of each frame */
};

/*
 * Make the ring of a packet socket that is not bound. @frame_bytes: of the longest frame, whose
 * rest is cut off; @slots: about so many. Return: false with errno.
 */
bool pvr_packet_ring_open(struct pvr_packet_ring *ring, int fd, size_t frame_bytes,
			  unsigned int slots, bool has_vnet);
void pvr_packet_ring_close(struct pvr_packet_ring *ring);

/*
 * List frames that have arrived, at most @max, and @max_bytes bytes but one frame at least. A
 * VLAN tag that the kernel has taken out is in its place. @lost: set if frames had no slot.
 * Return: their number. pvr_packet_ring_release() of that number gives the slots back.
 */
unsigned int pvr_packet_ring_peek(struct pvr_packet_ring *ring, struct pvr_port_frame *frames,
				  unsigned int max, size_t max_bytes, bool *lost);
void pvr_packet_ring_release(struct pvr_packet_ring *ring, unsigned int count);

#endif /* PVR_SEGMENT_PACKET_RING_H */
