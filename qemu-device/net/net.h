/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's network: connections to other hosts' daemons.
 *
 * DOC: threads of the network
 *
 * The first thread listens, dials, and takes each connection through TLS and HELLO
 * (handshake.h), so that an unauthenticated host costs the workers nothing. Then it hands the connection
 * to a worker (traffic.h), whose loop it stays in until its end: the slot or index modulo
 * the number of workers says which. When it is broken the worker hands it back, and the
 * first thread closes it, tells people why, and dials again. So everything that is known
 * of peers (peer.h) is the first thread's alone, and only work items (base/workq.h) go between.
 */
#ifndef PVR_NET_NET_H
#define PVR_NET_NET_H

#include "net/net_settings.h"
#include "net/peer.h"

struct pvr_loop;
struct pvr_net;

struct pvr_net_env {
	struct pvr_engine *engine;
	struct pvr_loop *loop; /* of the first thread */
	struct pvr_loop **worker_loops;
	unsigned int workers;
	void (*log)(enum pvr_log_level level, const char *line);
};

/* Listens, and dials the peers of the settings; the workers do not run yet. NULL with @err. */
struct pvr_net *pvr_net_create(const struct pvr_net_env *env,
			       const struct pvr_net_settings *settings, struct pvr_error *err);
/* The workers do not run any more. NULL is allowed. */
void pvr_net_destroy(struct pvr_net *net);

struct pvr_peers *pvr_net_peers(struct pvr_net *net);
const char *pvr_net_name(const struct pvr_net *net);
/* want() of pvr_net_ops. Any thread. */
void pvr_net_request_dial(struct pvr_net *net, struct pvr_remote *remote, uint8_t dscp);

/* What comes of reading files again, for people; strings are valid during the call only. */
struct pvr_reload_ops {
	void (*read)(void *opaque, const char *file, const char *what);
	void (*cut_off)(void *opaque, const char *host, const char *why);
	void (*warn)(void *opaque, const char *text);
};

/*
 * The files of keys, read again, in two steps of one thread, the first: begin() puts the new keys
 * into use for connections that are made from then on. False with @err filled: nothing has
 * happened. Then cancel(), which puts the earlier ones back, or end(), which looks at the
 * connections that there are.
 */
bool pvr_net_rekey_begin(struct pvr_net *net, struct pvr_error *err);
void pvr_net_rekey_cancel(struct pvr_net *net);
void pvr_net_rekey_end(struct pvr_net *net, const struct pvr_reload_ops *ops, void *opaque);

/* For people. */
struct pvr_net_info {
	const char *name;
	uint64_t instance;
	const char *tls; /* "off", or what proves who is there */
	unsigned int listening, handshakes; /* sockets; connections that are not up yet */
	uint64_t accepted, refused;
};

void pvr_net_get_info(const struct pvr_net *net, struct pvr_net_info *info);
/* Where it listens: the @index-th address, NULL behind the last. */
const char *pvr_net_listen_address(const struct pvr_net *net, unsigned int index,
				   char buf[PVR_ADDRESS_TEXT]);

#endif /* PVR_NET_NET_H */
