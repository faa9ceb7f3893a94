// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A segment by a packet socket at a network interface of the host. It needs CAP_NET_RAW.
 *
 * DOC: frames of several packets
 *
 * - The kernel passes them whole between sockets, bridges, veths and taps, and cuts them for
 *   receivers that need packets (UDP segmentation offload). A NIC may cut them, too, but the ICRC
 *   depends on the IPv4 IDs that it gives the packets. So "auto" sends them only by an interface
 *   that is no NIC. Received ones are understood at any interface but a NIC.
 * - They need struct virtio_net_hdr in front of each frame (PACKET_VNET_HDR), which describes them
 *   since Linux 6.2.
 *
 * DOC: the interface
 *
 * - A filter in the kernel passes UDP at the port of RoCEv2 to the adapter's MAC and to
 *   groups only. The interface receives all groups, as the guest's NIC has joined them.
 * - A bridge shows frames for its ports only if rules redirect them to it, see
 *   daemon/ctl_redirect.c.
 * - The kernel takes VLAN tags out of frames that it receives. They are put in again.
 * - Without the interface, or while it is down, frames are lost, as on a cable that is not
 *   plugged in. An interface that returns, also as a new one of this name, is used again.
 * - The MTU is that of the begin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/kernel_version.h"
#include "core/compiler.h"
#include "segment/interface.h"
#include "segment/kind.h"
#include "segment/packet_ring.h"
#include "segment/vnet.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

/* A RoCE frame with 4096 bytes of payload; longer ones are cut, and then malformed. */
#define FRAME_MAX 4400u
#define GSO_FRAME_MAX (65536u + 64u)
/* Slots of the ring: 8 MiB, or 17 MiB for frames of several packets. */
#define SLOTS 2048u
#define GSO_SLOTS 256u
/* Frames and bytes that are handled at once, before other sources have their turn. */
#define BATCH 64u
#define BATCH_BYTES (512u << 10)
#define SOCKET_BUFFER (4 << 20)
#define LOOK_AGAIN PVR_SEC

struct packet {
	struct pvr_segment segment;
	struct pvr_source source;
	struct pvr_loop_timer timer; /* while the interface is down */
	unsigned int index; /* of the interface */
	bool is_down;
	bool has_vnet; /* a struct virtio_net_hdr is in front of each frame */
	bool sends_gso;
	enum pvr_segment_gso gso;
	uint8_t mac[6];
	int small_mtu; /* atomic; the last one that frames did not fit in; 0: none */
	struct pvr_packet_ring ring;
};

static bool ask(const struct packet *packet, unsigned long request, struct ifreq *ifr)
{
	return pvr_interface_ask(packet->source.fd, packet->segment.where, request, ifr);
}

/* ------------------------------------------------------------------------------- output */

/* Logs an MTU that is too small, once for each. */
static void is_too_long(struct packet *packet)
{
	struct ifreq ifr;
	char text[64];

	if (!ask(packet, SIOCGIFMTU, &ifr) ||
	    __atomic_exchange_n(&packet->small_mtu, ifr.ifr_mtu, __ATOMIC_RELAXED) == ifr.ifr_mtu)
		return;
	snprintf(text, sizeof(text), "%d: they are lost; set it back, or add the adapter again",
		 ifr.ifr_mtu);
	pvr_segment_say(&packet->segment, PVR_LOG_WARN,
			"frames are longer than the interface's MTU of ", text);
}

/* At most BATCH frames. Return: those that were sent, or lost. */
static unsigned int send_batch(struct packet *packet, const struct pvr_port_frame *frames,
			       unsigned int count)
{
	unsigned int skip = packet->has_vnet ? 0 : 1, i;
	/* Only those of @count frames are written and read. */
	struct virtio_net_hdr vnet[BATCH] PVR_UNINITIALIZED;
	struct mmsghdr messages[BATCH] PVR_UNINITIALIZED;
	struct iovec iov[BATCH][2] PVR_UNINITIALIZED;
	int n;

	for (i = 0; i < count; i++) {
		vnet[i] = pvr_vnet_of(&frames[i]);
		iov[i][0] = (struct iovec){ &vnet[i], sizeof(vnet[i]) };
		iov[i][1] = (struct iovec){ frames[i].data, frames[i].bytes };
		messages[i].msg_hdr =
			(struct msghdr){ .msg_iov = &iov[i][skip], .msg_iovlen = 2 - skip };
	}
	n = sendmmsg(packet->source.fd, messages, count, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		return (unsigned int)n;
	if (errno == EMSGSIZE)
		is_too_long(packet);
	/* After another error the first frame is lost. */
	return errno == EAGAIN || errno == ENOBUFS ? 0 : 1;
}

static unsigned int port_send(void *opaque, const struct pvr_port_frame *frames, unsigned int count)
{
	unsigned int done = 0, n;

	while (done < count) {
		n = send_batch(opaque, frames + done, count - done < BATCH ? count - done : BATCH);
		if (!n)
			break;
		done += n;
	}
	return done;
}

static const struct pvr_port_ops port_ops = { .send = port_send };

/* ------------------------------------------------------------------------ the interface */

static unsigned int index_of(const struct packet *packet)
{
	return pvr_interface_index(packet->source.fd, packet->segment.where);
}

static bool is_up(const struct packet *packet)
{
	return pvr_interface_is_up(packet->source.fd, packet->segment.where);
}

static struct ethtool_drvinfo driver_of(const struct packet *packet)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { .ifr_data = (void *)&info };

	memcpy(ifr.ifr_name, packet->segment.where,
	       strnlen(packet->segment.where, IF_NAMESIZE - 1));
	/* Without an answer it is empty. */
	(void)ioctl(packet->source.fd, SIOCETHTOOL, &ifr);
	return info;
}

/* A bridge that receives frames for another MAC passes all frames of its ports to this host. */
static bool is_bridge(const struct packet *packet)
{
	const struct ethtool_drvinfo info = driver_of(packet);

	return !strncmp(info.driver, "bridge", sizeof(info.driver));
}

/* Return: false with errno. */
static bool join(const struct packet *packet, const struct packet_mreq *mreq)
{
	return setsockopt(packet->source.fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, mreq,
			  sizeof(*mreq)) == 0;
}

/* Return: false with errno. */
static bool bind_to(struct packet *packet, unsigned int index)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)index,
	};
	struct packet_mreq mreq = {
		.mr_ifindex = (int)index,
		.mr_type = PACKET_MR_UNICAST,
		.mr_alen = sizeof(packet->mac),
	};

	const struct packet_mreq groups = {
		.mr_ifindex = (int)index,
		.mr_type = PACKET_MR_ALLMULTI,
	};

	memcpy(mreq.mr_address, packet->mac, sizeof(packet->mac));
	if (bind(packet->source.fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !join(packet, &groups) || (!is_bridge(packet) && !join(packet, &mreq)))
		return false;
	packet->index = index;
	return true;
}

static void look_again(struct pvr_loop_timer *timer)
{
	struct packet *packet = (struct packet *)((char *)timer - offsetof(struct packet, timer));
	unsigned int index = index_of(packet);

	if (index && is_up(packet) && (index == packet->index || bind_to(packet, index))) {
		packet->is_down = false;
		pvr_segment_say(&packet->segment, PVR_LOG_INFO, "the interface is up again", "");
		return;
	}
	pvr_loop_timer_arm(packet->segment.loop, timer, LOOK_AGAIN);
}

static void went_down(struct packet *packet)
{
	if (packet->is_down)
		return;
	packet->is_down = true;
	pvr_segment_say(&packet->segment, PVR_LOG_WARN,
			"the interface is down or gone: frames are lost until it is up again", "");
	pvr_loop_timer_arm(packet->segment.loop, &packet->timer, LOOK_AGAIN);
}

/* -------------------------------------------------------------------------------- input */

/* The kernel resets its count. */
static void count_lost(const struct packet *packet)
{
	struct tpacket_stats stats;
	socklen_t bytes = sizeof(stats);

	if (getsockopt(packet->source.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes) == 0)
		pvr_port_lost(packet->segment.port, stats.tp_drops);
}

/* The error of the socket: its interface is down, or gone. */
static void take_error(struct packet *packet)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (getsockopt(packet->source.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
	    error == ENETDOWN)
		went_down(packet);
}

static void packet_ready(struct pvr_source *source, uint32_t events)
{
	struct packet *packet = (struct packet *)((char *)source - offsetof(struct packet, source));
	struct pvr_port_frame frames[BATCH] PVR_UNINITIALIZED;
	unsigned int n;
	bool lost;

	if (events & EPOLLERR)
		take_error(packet);
	n = pvr_packet_ring_peek(&packet->ring, frames, BATCH, BATCH_BYTES, &lost);
	if (!n)
		return;
	n = pvr_port_input(packet->segment.port, frames, n);
	pvr_packet_ring_release(&packet->ring, n);
	if (lost)
		count_lost(packet);
	pvr_loop_worked(packet->segment.loop);
	pvr_loop_again(source);
}

/* -------------------------------------------------------------------------------- a life */

static bool set_filter(struct packet *packet)
{
	struct pvr_interface_filter filter;

	pvr_interface_filter_init(&filter, packet->mac);
	return setsockopt(packet->source.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter.program,
			  sizeof(filter.program)) == 0;
}

static bool set_options(struct packet *packet, struct pvr_error *err)
{
	const int on = 1, buffer = SOCKET_BUFFER;
	int fd = packet->source.fd;

	/* A larger buffer is for speed only, and may be refused. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (!set_filter(packet) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    (packet->has_vnet &&
	     setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0) ||
	    !pvr_packet_ring_open(&packet->ring, fd, packet->has_vnet ? GSO_FRAME_MAX : FRAME_MAX,
				  packet->has_vnet ? GSO_SLOTS : SLOTS, packet->has_vnet))
		return pvr_fail(err, "cannot set up a packet socket: %s", strerror(errno));
	return true;
}

/* A device on a bus, whose address is like 0000:00:03.0, gets packets from a cable. */
static bool is_nic(const struct ethtool_drvinfo *info)
{
	return memchr(info->bus_info, ':', sizeof(info->bus_info));
}

/* Whether frames stay in this kernel, up to another interface. */
static bool is_virtual(const struct ethtool_drvinfo *info)
{
	static const char *const drivers[] = { "bridge", "veth", "tun" };
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strncmp(info->driver, drivers[i], sizeof(info->driver)))
			return true;
	return false;
}

static bool choose_gso(struct packet *packet, struct pvr_error *err)
{
	const struct ethtool_drvinfo info = driver_of(packet);
	/* Since then it describes a frame of several UDP packets. */
	bool is_possible = pvr_kernel_is_at_least(6, 2);

	if (packet->gso == PVR_SEGMENT_GSO_ON && !is_possible)
		return pvr_fail(
			err, "wire-gso=on needs Linux 6.2 or later: omit it, or use wire-gso=off");
	packet->has_vnet = is_possible && (packet->gso == PVR_SEGMENT_GSO_ON || !is_nic(&info));
	packet->sends_gso = packet->has_vnet &&
			    (packet->gso == PVR_SEGMENT_GSO_ON ||
			     (packet->gso == PVR_SEGMENT_GSO_AUTO && is_virtual(&info)));
	return true;
}

/* Protocol 0: it receives nothing before it is bound, behind its filter. */
static bool open_socket(struct packet *packet, struct pvr_error *err)
{
	packet->source.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (packet->source.fd >= 0)
		return true;
	if (errno == EPERM)
		return pvr_fail(err,
				"wire=eth:%s needs the capability CAP_NET_RAW, see "
				"docs/native-endpoints.md",
				packet->segment.where);
	return pvr_fail(err, "cannot open a packet socket: %s", strerror(errno));
}

static bool open_interface(struct packet *packet, struct pvr_engine *engine, struct pvr_error *err)
{
	const char *name = packet->segment.where;
	unsigned int index = index_of(packet);
	struct ifreq ifr;

	if (!index)
		return pvr_fail(err, "there is no network interface '%s'", name);
	if (!ask(packet, SIOCGIFHWADDR, &ifr) || ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return pvr_fail(err, "the network interface '%s' is no Ethernet", name);
	if (!ask(packet, SIOCGIFMTU, &ifr))
		return pvr_fail(err, "cannot read the MTU of '%s': %s", name, strerror(errno));
	packet->segment.port =
		pvr_port_create(engine, name, (uint32_t)ifr.ifr_mtu, &port_ops, packet);
	if (!packet->segment.port)
		return pvr_fail(err, "out of memory");
	if (!bind_to(packet, index))
		return pvr_fail(err, "cannot use the network interface '%s': %s", name,
				strerror(errno));
	return true;
}

static bool open_packet(struct packet *packet, struct pvr_engine *engine, struct pvr_error *err)
{
	if (!open_socket(packet, err) || !choose_gso(packet, err) || !set_options(packet, err) ||
	    !open_interface(packet, engine, err))
		return false;
	pvr_port_set_gso(packet->segment.port, packet->sends_gso);
	if (pvr_loop_add(packet->segment.loop, &packet->source, EPOLLIN) < 0)
		return pvr_fail(err, "cannot watch a packet socket: %s", strerror(errno));
	if (!is_up(packet))
		went_down(packet);
	return true;
}

static void destroy(struct pvr_segment *segment)
{
	struct packet *packet = (struct packet *)segment;

	pvr_loop_timer_disarm(&packet->timer);
	pvr_loop_remove(&packet->source);
	pvr_packet_ring_close(&packet->ring);
	if (packet->source.fd >= 0)
		close(packet->source.fd);
	if (segment->port)
		pvr_port_destroy(segment->port);
	free(packet);
}

static struct pvr_segment *create(const struct pvr_segment_env *env, const char *where,
				  struct pvr_error *err)
{
	struct packet *packet = calloc(1, sizeof(*packet));

	if (!packet) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	pvr_segment_init(&packet->segment, &pvr_segment_packet, env, where);
	memcpy(packet->mac, env->mac, sizeof(packet->mac));
	packet->gso = env->gso;
	packet->source = (struct pvr_source){ .fd = -1, .ready = packet_ready };
	packet->timer.expired = look_again;
	if (open_packet(packet, env->engine, err))
		return &packet->segment;
	destroy(&packet->segment);
	return NULL;
}

const struct pvr_segment_kind pvr_segment_packet = {
	.prefix = "eth:",
	.create = create,
	.destroy = destroy,
};
