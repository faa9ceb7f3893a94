/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The network of the daemon: connections to the daemons of other hosts.
 *
 * DOC: threads of the network
 *
 * The first thread listens, dials, and executes the handshakes (handshake.h), so that an
 * unauthenticated host costs the workers nothing. Then it passes the connection to a
 * worker (traffic.h), the one with number slot or index modulo the number of workers. The
 * connection stays in that worker's loop until it breaks. Then the worker passes it back,
 * and the first thread closes it, logs the reason, and dials again. So only the first
 * thread accesses peers (peer.h), and the threads exchange only work items
 * (base/workq.h).
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
	bool faults_allowed; /* the operator allows faults on demand */
	/* @host: the one that the line is about, or NULL */
	void (*log)(enum pvr_log_level level, const char *host, const char *line);
};

/*
 * Listens, and dials the peers of the settings. Call before the workers run. NULL with
 * @err filled.
 */
struct pvr_net *pvr_net_create(const struct pvr_net_env *env,
			       const struct pvr_net_settings *settings, struct pvr_error *err);
/* Call after the workers have stopped. NULL is allowed. */
void pvr_net_destroy(struct pvr_net *net);

struct pvr_peers *pvr_net_peers(struct pvr_net *net);
const char *pvr_net_name(const struct pvr_net *net);
/* Implements want() of pvr_host_ops. Any thread. */
void pvr_net_request_dial(struct pvr_net *net, struct pvr_host *host, uint8_t dscp);

/* Results of a reload. Strings are valid during the call only. */
struct pvr_reload_ops {
	void (*read)(void *opaque, const char *file, const char *what);
	void (*disconnected)(void *opaque, const char *host, const char *why);
	void (*warn)(void *opaque, const char *text);
};

/*
 * Reload of the key files, in two steps of the first thread. begin() reads them and uses
 * the new keys for new connections; false with @err filled: nothing has changed. Then
 * call cancel() to restore the earlier keys, or end() to check the existing connections.
 */
bool pvr_net_rekey_begin(struct pvr_net *net, struct pvr_error *err);
void pvr_net_rekey_cancel(struct pvr_net *net);
void pvr_net_rekey_end(struct pvr_net *net, const struct pvr_reload_ops *ops, void *opaque);

/* Information for pvrdmactl. */
struct pvr_net_info {
	const char *name;
	uint64_t instance;
	const char *tls; /* "off", or the kind of proof */
	unsigned int listening, handshakes; /* listening sockets; handshakes in progress */
	uint64_t accepted, refused;
	int64_t certificate_expires; /* seconds since 1970; INT64_MAX: there is none */
};

void pvr_net_get_info(const struct pvr_net *net, struct pvr_net_info *info);
/* Return: @buf with the @index-th listening address, or NULL if there are fewer. */
const char *pvr_net_listen_address(const struct pvr_net *net, unsigned int index,
				   char buf[PVR_ADDRESS_TEXT]);

#endif /* PVR_NET_NET_H */
