// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The network of the daemon: creation and destruction of its parts, log, dial requests.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "net/state.h"

#define LOG_LINES 10 /* per PVR_RATELIMIT_NS, of each kind */

/* ------------------------------------------------------------------------- log */

static void log_line(struct pvr_net *net, enum pvr_log_level level, const char *host,
		     const char *fmt, va_list ap)
{
	char line[700];

	vsnprintf(line, sizeof(line), fmt, ap);
	net->env.log(level, host, line);
}

void pvr_net_log(struct pvr_net *net, enum pvr_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(net, level, NULL, fmt, ap);
	va_end(ap);
}

static bool passes(struct pvr_net *net, struct pvr_ratelimit *ratelimit)
{
	uint32_t suppressed;

	if (!pvr_ratelimit_pass(ratelimit, LOG_LINES, pvr_loop_now(), &suppressed))
		return false;
	if (suppressed)
		pvr_net_log(net, PVR_LOG_WARN, "%u more messages of this kind were suppressed",
			    suppressed);
	return true;
}

void pvr_net_log_limited(struct pvr_net *net, struct pvr_ratelimit *ratelimit,
			 enum pvr_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!passes(net, ratelimit))
		return;
	va_start(ap, fmt);
	log_line(net, level, NULL, fmt, ap);
	va_end(ap);
}

void pvr_net_log_host(struct pvr_net *net, struct pvr_ratelimit *ratelimit, const char *host,
		      enum pvr_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!passes(net, ratelimit))
		return;
	va_start(ap, fmt);
	log_line(net, level, host, fmt, ap);
	va_end(ap);
}

/* --------------------------------------------------------------- dial requests */

static bool take_dial_request(struct pvr_dial_requests *requests, struct pvr_dial_request *taken)
{
	struct pvr_dial_request *first;

	pthread_mutex_lock(&requests->lock);
	first = TAILQ_FIRST(&requests->pending);
	if (first) {
		*taken = *first;
		first->dscps = 0;
		TAILQ_REMOVE(&requests->pending, first, link);
	}
	pthread_mutex_unlock(&requests->lock);
	return first;
}

/* Each host is in the list once. */
static void run_dial_requests(struct pvr_work *work)
{
	struct pvr_dial_requests *requests = (struct pvr_dial_requests *)work;
	struct pvr_net *net =
		(struct pvr_net *)((char *)requests - offsetof(struct pvr_net, dial_requests));
	struct pvr_dial_request request;
	uint8_t dscp;

	pthread_mutex_lock(&requests->lock);
	requests->queued = false;
	pthread_mutex_unlock(&requests->lock);
	while (take_dial_request(requests, &request)) {
		for (dscp = 0; dscp <= PVR_DSCP_MAX; dscp++) {
			if (request.dscps >> dscp & 1)
				pvr_peers_dial_class(net->peers, pvr_host_name(request.host), dscp);
		}
	}
}

static struct pvr_dial_request *get_dial_request(struct pvr_dial_requests *requests,
						 struct pvr_host *host)
{
	size_t bucket = (uintptr_t)host / 64 % PVR_DIAL_BUCKETS;
	struct pvr_dial_request *request;

	LIST_FOREACH(request, &requests->hosts[bucket], by_host) {
		if (request->host == host)
			return request;
	}
	request = calloc(1, sizeof(*request));
	if (!request)
		return NULL;
	request->host = host;
	LIST_INSERT_HEAD(&requests->hosts[bucket], request, by_host);
	return request;
}

/* Return: whether the work item has to be queued. */
static bool add_dial_request(struct pvr_dial_requests *requests, struct pvr_host *host,
			     uint8_t dscp)
{
	struct pvr_dial_request *request = get_dial_request(requests, host);
	bool queued = requests->queued;

	if (!request)
		return false;
	if (!request->dscps)
		TAILQ_INSERT_TAIL(&requests->pending, request, link);
	request->dscps |= 1ull << dscp;
	requests->queued = true;
	return !queued;
}

static void exit_dial_requests(struct pvr_dial_requests *requests)
{
	struct pvr_dial_request *request;
	size_t i;

	for (i = 0; i < PVR_DIAL_BUCKETS; i++) {
		while ((request = LIST_FIRST(&requests->hosts[i]))) {
			LIST_REMOVE(request, by_host);
			free(request);
		}
	}
	pthread_mutex_destroy(&requests->lock);
}

void pvr_net_request_dial(struct pvr_net *net, struct pvr_host *host, uint8_t dscp)
{
	struct pvr_dial_requests *requests = &net->dial_requests;
	bool first;

	pthread_mutex_lock(&requests->lock);
	first = add_dial_request(requests, host, dscp);
	pthread_mutex_unlock(&requests->lock);
	/* Only the first request queues the work item: later ones find it queued. */
	if (first)
		pvr_workq_queue(&net->workq, &requests->work);
}

/* -------------------------------------------------------------- information */

struct pvr_peers *pvr_net_peers(struct pvr_net *net)
{
	return net->peers;
}

const char *pvr_net_name(const struct pvr_net *net)
{
	return net->settings.name;
}

void pvr_net_get_info(const struct pvr_net *net, struct pvr_net_info *info)
{
	*info = (struct pvr_net_info){
		.name = net->settings.name,
		.instance = net->instance,
		.tls = !net->tls		       ? "off"
		       : net->settings.tls_psk_file[0] ? "pre-shared keys"
						       : "certificates",
		.listening = net->num_listeners,
		.handshakes = net->num_handshakes,
		.accepted = net->accepted,
		.refused = net->refused,
		.certificate_expires = net->tls ? pvr_tls_context_expires(net->tls) : INT64_MAX,
	};
}

const char *pvr_net_listen_address(const struct pvr_net *net, unsigned int index,
				   char buf[PVR_ADDRESS_TEXT])
{
	if (index >= net->num_listeners)
		return NULL;
	return pvr_address_format(&net->listeners[index].address, buf);
}

/* ------------------------------------------------------------------ life cycle */

static bool init_traffic(struct pvr_net *net, struct pvr_error *err)
{
	unsigned int i;
	int ret = pvr_workq_init(&net->workq, net->env.loop);

	net->traffic = calloc(net->env.workers, sizeof(*net->traffic));
	if (!net->traffic || !(net->peers = pvr_peers_create(net)))
		return pvr_fail(err, "out of memory");
	for (i = 0; i < net->env.workers; i++)
		net->traffic[i].workq.source.fd = -1;
	for (i = 0; i < net->env.workers && !ret; i++)
		ret = pvr_traffic_init(&net->traffic[i], net, net->env.worker_loops[i]);
	return !ret || pvr_fail(err, "cannot create a work queue: %s", strerror(-ret));
}

static bool open_listeners(struct pvr_net *net, struct pvr_error *err)
{
	char text[PVR_ADDRESS_TEXT];
	size_t i;

	for (i = 0; i < net->settings.num_listen; i++) {
		net->num_listeners++;
		if (!pvr_listener_open(&net->listeners[i], net, &net->settings.listen[i], err))
			return false;
		pvr_net_log(net, PVR_LOG_INFO, "host %s listens at %s, TLS: %s", net->settings.name,
			    pvr_address_format(&net->listeners[i].address, text),
			    net->tls ? "on" : "off");
	}
	return true;
}

static bool add_peers(struct pvr_net *net, const struct pvr_net_settings *settings,
		      struct pvr_error *err)
{
	struct pvr_error why;
	size_t i;

	for (i = 0; i < settings->num_peers; i++) {
		if (!pvr_peers_set(net->peers, settings->peers[i].name, settings->peers[i].address,
				   &why))
			return pvr_fail(err, "peer %s: %.400s", settings->peers[i].name, why.text);
		pvr_peers_dial(net->peers, settings->peers[i].name);
	}
	return true;
}

static void nics_changed(void *opaque, const char *what)
{
	struct pvr_net *net = opaque;

	pvr_peers_nics_changed(net->peers, what);
}

/* NICs do not encrypt: with TLS, the operator must allow them explicitly. */
static bool may_use_nics(struct pvr_net *net)
{
	if (!strcmp(net->settings.rdma_device, "none"))
		return pvr_fail(&net->no_nics, "this host does not use RDMA NICs");
	if (net->tls && !net->settings.rdma_unencrypted)
		return pvr_fail(&net->no_nics, "TLS is on, RDMA NICs do not encrypt, and "
					       "--rdma-unencrypted was not given");
	return true;
}

/* A device that the operator names must be reported if it cannot be used. */
static bool open_nics(struct pvr_net *net, struct pvr_error *err)
{
	static const struct pvr_verbs_nics_ops ops = { .changed = nics_changed };
	const char *name = net->settings.rdma_device;
	bool named = strcmp(name, "auto") && strcmp(name, "none");

	if (!may_use_nics(net)) {
		if (named)
			pvr_net_log(net, PVR_LOG_WARN, "the RDMA NIC %s is not used: %s", name,
				    net->no_nics.text);
		return true;
	}
	net->nics = pvr_verbs_nics_create(name, net->env.loop, &ops, net, &net->no_nics);
	if (!net->nics)
		return !named || pvr_fail(err, "%s", net->no_nics.text);
	if (named && !pvr_verbs_nics_any(net->nics))
		pvr_net_log(net, PVR_LOG_WARN, "there is no RDMA NIC %s yet", name);
	return true;
}

static bool init(struct pvr_net *net, const struct pvr_net_settings *settings,
		 struct pvr_error *err)
{
	if (getrandom(&net->instance, sizeof(net->instance), 0) != sizeof(net->instance))
		return pvr_fail(err, "no random numbers: %s", strerror(errno));
	if (pvr_net_settings_has_keys(settings)) {
		net->tls = pvr_tls_context_create(settings, err);
		if (!net->tls)
			return false;
	}
	return init_traffic(net, err) && open_nics(net, err) && open_listeners(net, err) &&
	       add_peers(net, settings, err);
}

struct pvr_net *pvr_net_create(const struct pvr_net_env *env,
			       const struct pvr_net_settings *settings, struct pvr_error *err)
{
	struct pvr_net *net = calloc(1, sizeof(*net));

	if (!net) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	net->env = *env;
	net->settings = *settings;
	net->settings.peers = NULL;
	net->settings.num_peers = 0;
	net->workq.source.fd = -1;
	net->dial_requests.work.run = run_dial_requests;
	pthread_mutex_init(&net->dial_requests.lock, NULL);
	TAILQ_INIT(&net->dial_requests.pending);
	LIST_INIT(&net->handshakes);
	if (init(net, settings, err))
		return net;
	pvr_net_destroy(net);
	return NULL;
}

static void stop_traffic(struct pvr_net *net)
{
	unsigned int i;

	for (i = 0; i < net->env.workers; i++) {
		if (net->traffic[i].workq.source.fd >= 0)
			pvr_traffic_stop(&net->traffic[i]);
	}
}

static void exit_traffic(struct pvr_net *net)
{
	unsigned int i;

	for (i = 0; i < net->env.workers; i++) {
		if (net->traffic[i].workq.source.fd >= 0)
			pvr_traffic_exit(&net->traffic[i]);
	}
	free(net->traffic);
}

void pvr_net_destroy(struct pvr_net *net)
{
	struct pvr_conn *conn;

	if (!net)
		return;
	net->ending = true;
	while (net->num_listeners)
		pvr_listener_close(&net->listeners[--net->num_listeners]);
	while ((conn = LIST_FIRST(&net->handshakes))) {
		LIST_REMOVE(conn, link);
		pvr_conn_destroy(conn);
	}
	if (net->traffic) {
		stop_traffic(net);
		pvr_workq_drain(&net->workq);
	}
	pvr_peers_destroy(net->peers);
	pvr_verbs_nics_destroy(net->nics);
	if (net->traffic)
		exit_traffic(net);
	pvr_workq_exit(&net->workq);
	pvr_tls_context_put(net->tls);
	exit_dial_requests(&net->dial_requests);
	free(net);
}
