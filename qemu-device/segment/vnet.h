/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The header by which the kernel and a segment describe frames of several packets to each other. */
#ifndef PVR_SEGMENT_VNET_H
#define PVR_SEGMENT_VNET_H

#include <linux/virtio_net.h>

#include "port.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* Linux 6.2 */
#endif

#define PVR_UDP_BYTES 8u
#define PVR_UDP_CHECKSUM 6u /* its offset */

static inline struct virtio_net_hdr pvr_vnet_of(const struct pvr_port_frame *frame)
{
	if (!frame->segment)
		return (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_NONE };
	return (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = frame->headers,
		.gso_size = frame->segment,
		.csum_start = (uint16_t)(frame->headers - PVR_UDP_BYTES),
		.csum_offset = PVR_UDP_CHECKSUM,
	};
}

/* Return: bytes of the UDP payload of each packet of a received frame; 0: it is one packet. */
static inline uint16_t pvr_vnet_segment(const struct virtio_net_hdr *vnet)
{
	return (vnet->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_UDP_L4
		       ? vnet->gso_size
		       : 0;
}

#endif /* PVR_SEGMENT_VNET_H */
