// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames of the wire path's length between two packet sockets. No program makes or reads their bytes: it is
 * what the kernel does for a segment, and no more. The receiver prints "ready", and then the bytes of
 * UDP payload per second.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "guests.h"
#include "roce/frame.h"
#include "roce/gso.h"
#include "segment/interface.h"
#include "segment/packet_ring.h"
#include "segment/vnet.h"

#define BATCH 32u /* frames of a system call */
#define HEADERS 16u /* BTH and ICRC */
/* The ring is that of segment/packet.c. */
#define FRAME_MAX (65536u + 64u)
#define SLOTS 256u
#define BATCH_BYTES (512u << 10)
#define SOCKET_BUFFER (4 << 20)
#define FIRST_MS 60000
#define SILENCE_MS 500 /* the sender has ended */

static const uint8_t mac[6] = { 0x52, 0x54, 0, 0x99, 0, 2 }; /* the receiver's */

static int open_socket(void)
{
	const int on = 1, buffer = SOCKET_BUFFER;
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0)
		fg_die("cannot open a packet socket: %s", strerror(errno));
	return fd;
}

static void bind_to(int fd, const char *interface)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)pvr_interface_index(fd, interface),
	};
	struct packet_mreq mreq = {
		.mr_ifindex = address.sll_ifindex,
		.mr_type = PACKET_MR_UNICAST,
		.mr_alen = sizeof(mac),
	};

	memcpy(mreq.mr_address, mac, sizeof(mac));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq, sizeof(mreq)) < 0)
		fg_die("cannot use the interface %s: %s", interface, strerror(errno));
}

static int serve(const char *interface)
{
	struct pvr_port_frame frames[BATCH];
	struct pvr_interface_filter filter;
	struct pvr_packet_ring ring;
	int fd = open_socket();
	struct pollfd source = { .fd = fd, .events = POLLIN };
	double begin = 0, last = 0;
	uint64_t sum = 0;
	unsigned int n;
	bool lost;

	pvr_interface_filter_init(&filter, mac);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter.program, sizeof(filter.program)) <
		    0 ||
	    !pvr_packet_ring_open(&ring, fd, FRAME_MAX, SLOTS, true))
		fg_die("cannot set up a packet socket: %s", strerror(errno));
	bind_to(fd, interface);
	puts("ready");
	fflush(stdout);
	while (poll(&source, 1, sum ? SILENCE_MS : FIRST_MS) > 0) {
		while ((n = pvr_packet_ring_peek(&ring, frames, BATCH, BATCH_BYTES, &lost))) {
			last = now();
			begin = sum ? begin : last;
			for (unsigned int i = 0; i < n; i++)
				sum += frames[i].bytes -
				       pvr_roce_gso_headers(frames[i].data, frames[i].bytes);
			pvr_packet_ring_release(&ring, n);
		}
	}
	if (last <= begin)
		fg_die("nothing has arrived");
	printf("{\"what\": \"frames_bw\", \"value\": %.9g}\n", (double)sum / (last - begin));
	return 0;
}

/* A frame of @count packets with @payload bytes each. */
static struct pvr_port_frame make(uint8_t *buf, uint32_t payload, unsigned int count)
{
	struct pvr_roce_frame frame = {
		.net = PVR_ROCE_IPV6,
		.src_gid = { 0xfe, 0x80, [15] = 1 },
		.dst_gid = { 0xfe, 0x80, [15] = 2 },
		.src_mac = { 0x52, 0x54, 0, 0x99, 0, 1 },
		.hop_limit = 64,
		.src_port = 0xc000,
		.opcode = 0x07, /* WRITE_MIDDLE */
		.pkey = 0xffff,
		.payload_bytes = payload,
	};
	size_t headers, bytes;

	memcpy(frame.dst_mac, mac, sizeof(mac));
	headers = pvr_roce_gso_headers(buf, pvr_roce_build(buf, &frame));
	bytes = headers + count * (payload + HEADERS);
	if (count > 1)
		pvr_roce_gso_close(buf, headers, bytes);
	return (struct pvr_port_frame){
		.data = buf,
		.bytes = (uint32_t)bytes,
		.headers = (uint16_t)headers,
		.segment = count > 1 ? (uint16_t)(payload + HEADERS) : 0,
	};
}

static int measure(const char *interface, uint32_t payload, unsigned int packets, double seconds)
{
	static uint8_t buf[BATCH][FRAME_MAX];
	unsigned int count = packets > 1 ? 1 : BATCH;
	struct virtio_net_hdr vnet[BATCH];
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec iov[BATCH][2];
	double end = now() + seconds;
	int fd = open_socket();

	if (!packets || packets > PVR_ROCE_GSO_SEGMENTS || payload > PVR_ROCE_PAYLOAD_MAX ||
	    packets * (payload + HEADERS) > PVR_ROCE_GSO_MAX - PVR_ROCE_GSO_HEADERS_MAX)
		fg_die("%u packets of %u bytes", packets, payload);
	bind_to(fd, interface);
	for (unsigned int i = 0; i < count; i++) {
		struct pvr_port_frame frame = make(buf[i], payload, packets);

		vnet[i] = pvr_vnet_of(&frame);
		iov[i][0] = (struct iovec){ &vnet[i], sizeof(vnet[i]) };
		iov[i][1] = (struct iovec){ frame.data, frame.bytes };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = iov[i], .msg_iovlen = 2 };
	}
	while (now() < end)
		if (sendmmsg(fd, messages, count, 0) < 0 && errno != ENOBUFS)
			fg_die("cannot send by %s: %s", interface, strerror(errno));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "measure"))
		return measure(argv[2], (uint32_t)atoi(argv[3]), (unsigned int)atoi(argv[4]),
			       atof(argv[5]));
	fputs("Usage: hosts_frames serve INTERFACE | measure INTERFACE BYTES PACKETS SECONDS\n",
	      stderr);
	return 2;
}
