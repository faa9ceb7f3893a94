// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A segment by a packet socket at a network interface of the host. It needs CAP_NET_RAW.
 *
 * DOC: the interface
 *
 * - A filter in the kernel passes UDP at the port of RoCEv2 to the adapter's MAC and to
 *   groups only. The interface receives all groups, as the guest's NIC has joined them.
 * - The kernel takes VLAN tags out of frames that it receives. They are put in again.
 * - Without the interface, or while it is down, frames are lost, as on a cable that is not
 *   plugged in. An interface that returns, also as a new one of this name, is used again.
 * - The MTU is that of the begin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "segment/kind.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

#define ROCE_PORT 4791
/* A RoCE frame with 4096 bytes of payload; longer ones are cut, and then malformed. */
#define FRAME_MAX 4400u
#define TAG_BYTES 4u
#define MACS_BYTES 12u
/* Frames of a system call, and calls before other sources have their turn. */
#define BATCH 32u
#define RECEPTIONS 4u
#define SOCKET_BUFFER (4 << 20)
#define LOOK_AGAIN PVR_SEC

/* A received frame: room for its tag, then the frame. */
struct packet_slot {
	uint8_t data[TAG_BYTES + FRAME_MAX];
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
};

struct packet {
	struct pvr_segment segment;
	struct pvr_source source;
	struct pvr_loop_timer timer; /* while the interface is down */
	unsigned int index; /* of the interface */
	bool is_down;
	uint8_t mac[6];
	struct packet_slot slots[BATCH];
};

/* ------------------------------------------------------------------------------- output */

static bool port_send(void *opaque, const uint8_t *frame, size_t bytes)
{
	const struct packet *packet = opaque;

	/* After other errors the frame is lost. */
	return send(packet->source.fd, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

static const struct pvr_port_ops port_ops = { .send = port_send };

/* ------------------------------------------------------------------------ the interface */

static bool ask(const struct packet *packet, unsigned long request, struct ifreq *ifr)
{
	memset(ifr, 0, sizeof(*ifr));
	memcpy(ifr->ifr_name, packet->segment.where,
	       strnlen(packet->segment.where, IF_NAMESIZE - 1));
	return ioctl(packet->source.fd, request, ifr) == 0;
}

/* Return: 0 without the interface. */
static unsigned int index_of(const struct packet *packet)
{
	struct ifreq ifr;

	return ask(packet, SIOCGIFINDEX, &ifr) ? (unsigned int)ifr.ifr_ifindex : 0;
}

static bool is_up(const struct packet *packet)
{
	struct ifreq ifr;

	return ask(packet, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP;
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
	    !join(packet, &mreq) || !join(packet, &groups))
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

/* Return: the frame, with the tag that the kernel has taken out. */
static struct iovec with_tag(struct packet_slot *slot, struct mmsghdr *message)
{
	struct iovec frame = { slot->data + TAG_BYTES, message->msg_len };
	struct tpacket_auxdata aux;
	struct cmsghdr *cmsg;
	uint16_t tag[2];

	for (cmsg = CMSG_FIRSTHDR(&message->msg_hdr); cmsg;
	     cmsg = CMSG_NXTHDR(&message->msg_hdr, cmsg)) {
		if (cmsg->cmsg_level != SOL_PACKET || cmsg->cmsg_type != PACKET_AUXDATA ||
		    cmsg->cmsg_len < CMSG_LEN(sizeof(aux)))
			continue;
		memcpy(&aux, CMSG_DATA(cmsg), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || message->msg_len < MACS_BYTES)
			break;
		tag[0] = htons(ETH_P_8021Q);
		tag[1] = htons(aux.tp_vlan_tci);
		memmove(slot->data, slot->data + TAG_BYTES, MACS_BYTES);
		memcpy(slot->data + MACS_BYTES, tag, sizeof(tag));
		return (struct iovec){ slot->data, message->msg_len + TAG_BYTES };
	}
	return frame;
}

/* Return: whether more may be there. */
static bool receive(struct packet *packet)
{
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH], frames[BATCH];
	int n, i;

	for (i = 0; i < (int)BATCH; i++) {
		struct packet_slot *slot = &packet->slots[i];

		parts[i] = (struct iovec){ slot->data + TAG_BYTES, FRAME_MAX };
		messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &parts[i],
			.msg_iovlen = 1,
			.msg_control = slot->control.bytes,
			.msg_controllen = sizeof(slot->control.bytes),
		};
	}
	n = recvmmsg(packet->source.fd, messages, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno == ENETDOWN)
		went_down(packet);
	if (n <= 0)
		return false;
	for (i = 0; i < n; i++)
		frames[i] = with_tag(&packet->slots[i], &messages[i]);
	pvr_port_input(packet->segment.port, frames, (unsigned int)n);
	return n == (int)BATCH;
}

static void packet_ready(struct pvr_source *source, uint32_t events)
{
	struct packet *packet = (struct packet *)((char *)source - offsetof(struct packet, source));
	unsigned int i;

	(void)events;
	for (i = 0; i < RECEPTIONS; i++) {
		if (!receive(packet))
			return;
		pvr_loop_worked(packet->segment.loop);
	}
}

/* -------------------------------------------------------------------------------- a life */

/* IPv4 without fragments and IPv6 without extension headers, as RoCEv2 has them. */
static bool set_filter(struct packet *packet)
{
	const uint8_t *mac = packet->mac;
	const uint32_t high = (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 |
			      (uint32_t)mac[2] << 8 | mac[3];
	const uint32_t low = (uint32_t)mac[4] << 8 | mac[5];
	struct sock_filter code[] = {
		/* Multicast datagrams: those without a member are dropped later. */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 4, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 17),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 15),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 12),
		/* IPv6 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 10),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56),
		BPF_JUMP(BPF_JMP | BPF_JA, 6, 0, 0),
		/* IPv4 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 6),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 4, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
		/* the port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return setsockopt(packet->source.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) == 0;
}

static bool set_options(struct packet *packet, struct pvr_error *err)
{
	const int on = 1, buffer = SOCKET_BUFFER;
	int fd = packet->source.fd;

	if (!set_filter(packet) ||
	    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0)
		return pvr_fail(err, "cannot set up a packet socket: %s", strerror(errno));
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
	if (!open_socket(packet, err) || !set_options(packet, err) ||
	    !open_interface(packet, engine, err))
		return false;
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
