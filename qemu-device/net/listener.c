// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Listening TCP sockets. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/state.h"
#include "net/stream.h"

#define ACCEPT_BATCH 16
#define ACCEPT_PAUSE (100 * PVR_MSEC)

/* Out of descriptors or memory: connections stay in the backlog for a while. */
static void pause_accept(struct pvr_listener *listener)
{
	struct pvr_net *net = listener->net;

	pvr_net_log_limited(net, &net->unauthenticated, PVR_LOG_ERR,
			    "cannot accept a connection: %s", strerror(errno));
	pvr_loop_modify(&listener->source, 0);
	pvr_loop_timer_arm(net->env.loop, &listener->pause, ACCEPT_PAUSE);
}

static void pause_over(struct pvr_loop_timer *timer)
{
	struct pvr_listener *listener =
		(struct pvr_listener *)((char *)timer - offsetof(struct pvr_listener, pause));

	pvr_loop_modify(&listener->source, EPOLLIN);
}

static bool is_exhausted(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void listener_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_listener *listener = (struct pvr_listener *)source;
	struct pvr_address address;
	int fd, i;

	for (i = 0; i < ACCEPT_BATCH; i++) {
		memset(&address, 0, sizeof(address));
		address.len = sizeof(address.storage);
		fd = accept4(source->fd, &address.any, &address.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			pvr_incoming_accept(listener->net, fd, &address);
		else if (is_exhausted(errno))
			pause_accept(listener);
		if (fd < 0)
			break;
	}
}

bool pvr_listener_open(struct pvr_listener *listener, struct pvr_net *net,
		       const struct pvr_address *address, struct pvr_error *err)
{
	*listener = (struct pvr_listener){
		.net = net,
		.address = *address,
		.source.ready = listener_ready,
		.pause.expired = pause_over,
	};
	listener->source.fd = pvr_socket_listen(address, err);
	if (listener->source.fd < 0)
		return false;
	if (pvr_loop_add(net->env.loop, &listener->source, EPOLLIN) < 0)
		return pvr_fail(err, "cannot watch a socket: %s", strerror(errno));
	return true;
}

void pvr_listener_close(struct pvr_listener *listener)
{
	pvr_loop_timer_disarm(&listener->pause);
	pvr_loop_remove(&listener->source);
	if (listener->source.fd >= 0)
		close(listener->source.fd);
	listener->source.fd = -1;
}
