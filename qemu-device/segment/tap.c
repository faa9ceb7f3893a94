// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A segment by a tap device of the host, a port of the VM's bridge. The user of the daemon owns
 * the device, so the daemon needs no capability for it.
 *
 * DOC: frames
 *
 * - Each frame is one system call. In front of it is a struct virtio_net_hdr.
 * - The kernel takes and gives frames of several packets whole since Linux 6.2 (UDP segmentation
 *   offload), and cuts them for receivers that need packets.
 * - VLAN tags are in the frames.
 * - The kernel counts frames that find its queue full, as tx_dropped of the device.
 *
 * DOC: the device
 *
 * - It exists before the adapter, and the adapter never makes one: a device that the daemon
 *   made would be no port of the bridge.
 * - A device that is removed and made again is attached again, with the same descriptor. While it
 *   is down or gone, frames are lost.
 * - The MTU is that of the begin.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "segment/interface.h"
#include "segment/kind.h"
#include "segment/vnet.h"

#ifndef TUN_F_USO4 /* Linux 6.2 */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_DEVICE "/dev/net/tun"
/* The longest IP packet, an Ethernet header with a VLAN tag and a struct virtio_net_hdr. */
#define SLOT_BYTES (65536u + 64u)
/* Frames and bytes that are handled at once, before other sources have their turn. */
#define BATCH 64u
#define INPUT_BYTES (512u << 10)
#define ALIGNMENT 64u
#define LOOK_AGAIN PVR_SEC

struct tap {
	struct pvr_segment segment;
	struct pvr_source source;
	struct pvr_loop_timer timer; /* while the device is gone */
	int query; /* a socket for questions about the device */
	enum pvr_segment_gso gso;
	bool has_gso;
	bool is_lost; /* atomic; the last frame was not taken */
	struct pvr_interface_filter filter;
	uint8_t *input;
	struct pvr_port_frame frames[BATCH]; /* refer to @input */
	unsigned int first, count; /* of @frames: the first that is not handled, and their end */
};

/* ------------------------------------------------------------------------------- output */

/* Logs the begin and the end of a loss. Any thread. */
static void note_loss(struct tap *tap, bool is_lost)
{
	if (__atomic_load_n(&tap->is_lost, __ATOMIC_RELAXED) == is_lost ||
	    __atomic_exchange_n(&tap->is_lost, is_lost, __ATOMIC_RELAXED) == is_lost)
		return;
	if (is_lost)
		pvr_segment_say(
			&tap->segment, PVR_LOG_WARN,
			"the interface is down or gone: frames are lost until it is up again", "");
	else
		pvr_segment_say(&tap->segment, PVR_LOG_INFO, "the interface is up again", "");
}

static unsigned int port_send(void *opaque, const struct pvr_port_frame *frames, unsigned int count)
{
	struct tap *tap = opaque;
	unsigned int i;
	ssize_t n;

	for (i = 0; i < count; i++) {
		struct virtio_net_hdr vnet = pvr_vnet_of(&frames[i]);
		const struct iovec iov[2] = { { &vnet, sizeof(vnet) },
					      { frames[i].data, frames[i].bytes } };

		n = writev(tap->source.fd, iov, 2);
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			break;
		/* After another error the frame is lost, as on a cable that is not plugged in. */
		if (n >= 0)
			note_loss(tap, false);
		else if (errno == EIO || errno == EBADFD)
			note_loss(tap, true);
	}
	return i;
}

static const struct pvr_port_ops port_ops = { .send = port_send };

/* --------------------------------------------------------------------------- the device */

/* Return: 0 or an errno. */
static int attach(struct tap *tap)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	const unsigned int uso = TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6;

	memcpy(ifr.ifr_name, tap->segment.where, strnlen(tap->segment.where, IF_NAMESIZE - 1));
	/* Else the kernel would make a device for a daemon that may do so. */
	if (!pvr_interface_index(tap->query, tap->segment.where))
		return ENODEV;
	if (ioctl(tap->source.fd, TUNSETIFF, &ifr) < 0)
		return errno;
	tap->has_gso = ioctl(tap->source.fd, TUNSETOFFLOAD, uso) == 0;
	return ioctl(tap->source.fd, TUNATTACHFILTER, &tap->filter.program) < 0 ? errno : 0;
}

static void look_again(struct pvr_loop_timer *timer)
{
	struct tap *tap = (struct tap *)((char *)timer - offsetof(struct tap, timer));

	if (attach(tap)) {
		pvr_loop_timer_arm(tap->segment.loop, timer, LOOK_AGAIN);
		return;
	}
	pvr_port_set_gso(tap->segment.port, tap->has_gso && tap->gso != PVR_SEGMENT_GSO_OFF);
	if (pvr_interface_is_up(tap->query, tap->segment.where))
		note_loss(tap, false);
	/* Frames may have come before the next event. */
	pvr_loop_again(&tap->source);
}

static void is_gone(struct tap *tap)
{
	note_loss(tap, true);
	pvr_loop_timer_arm(tap->segment.loop, &tap->timer, LOOK_AGAIN);
}

/* -------------------------------------------------------------------------------- input */

/* Reads a frame at @at, where SLOT_BYTES are free. Return: its bytes with its header, or -1. */
static ssize_t read_frame(struct tap *tap, uint8_t *at, struct pvr_port_frame *frame)
{
	struct virtio_net_hdr vnet;
	ssize_t n = read(tap->source.fd, at, SLOT_BYTES);

	if (n < (ssize_t)sizeof(vnet))
		return -1;
	memcpy(&vnet, at, sizeof(vnet));
	*frame = (struct pvr_port_frame){
		.data = at + sizeof(vnet),
		.bytes = (uint32_t)((size_t)n - sizeof(vnet)),
		.segment = pvr_vnet_segment(&vnet),
	};
	return n;
}

static void read_frames(struct tap *tap)
{
	size_t used = 0;
	ssize_t bytes;

	tap->first = 0;
	tap->count = 0;
	errno = 0;
	while (tap->count < BATCH && INPUT_BYTES - used >= SLOT_BYTES) {
		bytes = read_frame(tap, tap->input + used, &tap->frames[tap->count]);
		if (bytes < 0)
			break;
		used += ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		tap->count++;
	}
	if (errno == EBADFD)
		is_gone(tap);
}

/* Edge-triggered: a descriptor without a device always has EPOLLERR. */
static void tap_ready(struct pvr_source *source, uint32_t events)
{
	struct tap *tap = (struct tap *)((char *)source - offsetof(struct tap, source));

	(void)events;
	/* Frames that the last turn has left come first. */
	if (tap->first == tap->count)
		read_frames(tap);
	if (!tap->count)
		return;
	tap->first += pvr_port_input(tap->segment.port, tap->frames + tap->first,
				     tap->count - tap->first);
	pvr_loop_worked(tap->segment.loop);
	pvr_loop_again(source);
}

/* -------------------------------------------------------------------------------- a life */

static bool open_files(struct tap *tap, struct pvr_error *err)
{
	tap->input = malloc(INPUT_BYTES);
	if (!tap->input)
		return pvr_fail(err, "out of memory");
	tap->query = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (tap->query < 0)
		return pvr_fail(err, "cannot open a socket: %s", strerror(errno));
	tap->source.fd = open(TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return tap->source.fd >= 0 ||
	       pvr_fail(err, "cannot open " TUN_DEVICE ": %s, see docs/native-endpoints.md",
			strerror(errno));
}

static bool open_device(struct tap *tap, struct pvr_error *err)
{
	const char *name = tap->segment.where;
	int error = attach(tap);

	switch (error) {
	case 0:
		return true;
	case ENODEV:
		return pvr_fail(
			err,
			"there is no tap device '%s': make it with 'ip tuntap add %s mode tap user USER'",
			name, name);
	case EINVAL:
		return pvr_fail(err, "the network interface '%s' is no tap device with one queue",
				name);
	case EBUSY:
		return pvr_fail(err, "another process uses the tap device '%s'", name);
	case EPERM:
		return pvr_fail(
			err,
			"the tap device '%s' is of another user: make it with 'ip tuntap add %s mode tap user USER'",
			name, name);
	default:
		return pvr_fail(err, "cannot use the tap device '%s': %s", name, strerror(error));
	}
}

static bool open_port(struct tap *tap, struct pvr_engine *engine, struct pvr_error *err)
{
	const char *name = tap->segment.where;
	struct ifreq ifr;

	if (tap->gso == PVR_SEGMENT_GSO_ON && !tap->has_gso)
		return pvr_fail(
			err, "wire-gso=on needs Linux 6.2 or later: omit it, or use wire-gso=off");
	if (!pvr_interface_ask(tap->query, name, SIOCGIFMTU, &ifr))
		return pvr_fail(err, "cannot read the MTU of '%s': %s", name, strerror(errno));
	tap->segment.port = pvr_port_create(engine, name, (uint32_t)ifr.ifr_mtu, &port_ops, tap);
	if (!tap->segment.port)
		return pvr_fail(err, "out of memory");
	pvr_port_set_gso(tap->segment.port, tap->has_gso && tap->gso != PVR_SEGMENT_GSO_OFF);
	return true;
}

static bool open_tap(struct tap *tap, struct pvr_engine *engine, struct pvr_error *err)
{
	if (!open_files(tap, err) || !open_device(tap, err) || !open_port(tap, engine, err))
		return false;
	if (pvr_loop_add(tap->segment.loop, &tap->source, EPOLLIN | EPOLLET) < 0)
		return pvr_fail(err, "cannot watch a tap device: %s", strerror(errno));
	if (!pvr_interface_is_up(tap->query, tap->segment.where))
		note_loss(tap, true);
	return true;
}

static void destroy(struct pvr_segment *segment)
{
	struct tap *tap = (struct tap *)segment;

	pvr_loop_timer_disarm(&tap->timer);
	pvr_loop_remove(&tap->source);
	if (tap->source.fd >= 0)
		close(tap->source.fd);
	if (tap->query >= 0)
		close(tap->query);
	if (segment->port)
		pvr_port_destroy(segment->port);
	free(tap->input);
	free(tap);
}

static struct pvr_segment *create(const struct pvr_segment_env *env, const char *where,
				  struct pvr_error *err)
{
	struct tap *tap = calloc(1, sizeof(*tap));

	if (!tap) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	pvr_segment_init(&tap->segment, &pvr_segment_tap, env, where);
	pvr_interface_filter_init(&tap->filter, env->mac);
	tap->gso = env->gso;
	tap->query = -1;
	tap->source = (struct pvr_source){ .fd = -1, .ready = tap_ready };
	tap->timer.expired = look_again;
	if (open_tap(tap, env->engine, err))
		return &tap->segment;
	destroy(&tap->segment);
	return NULL;
}

const struct pvr_segment_kind pvr_segment_tap = {
	.prefix = "tap:",
	.create = create,
	.destroy = destroy,
};
