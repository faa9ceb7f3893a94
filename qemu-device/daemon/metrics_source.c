// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Collects the values of the metrics.
 *
 * DOC: pages
 *
 * The first thread collects, because adapters and peers change in this thread only. It also
 * serves the control socket and handshakes. So it collects in pages of PAGE_NS, with a pause of
 * PAUSE_NS between two of them. An adapter that is removed meanwhile can make another one
 * missing in this scrape; none is there twice.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/workq.h"
#include "daemon/log.h"
#include "daemon/metrics_socket.h"
#include "daemon/metrics_source.h"
#include "metrics/server.h"

#define PAGE_NS (500 * 1000ull)
#define PAUSE_NS PVR_MSEC

struct pvr_metrics_source {
	struct pvr_daemon *daemon;
	struct pvr_metrics *server;
	struct pvr_workq inbox; /* of the first thread */
	struct pvr_work request; /* queued by the server's thread */
	struct pvr_loop_timer next; /* page */
	struct pvr_metrics_snapshot *snapshot; /* in progress, or NULL */
	size_t cursor;
	char address[PVR_PATH_MAX];
};

/* --------------------------------------------------------------------- pages */

static bool add_adapter(struct pvr_metrics_snapshot *snapshot, const struct pvr_attach *attach)
{
	struct pvr_metrics_adapter *row = pvr_metrics_add_adapter(snapshot);
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct pvr_attach_stats client;

	if (!row)
		return false;
	snprintf(row->name, sizeof(row->name), "%s", pvr_adapter_name(adapter));
	snprintf(row->fabric, sizeof(row->fabric), "%s", pvr_adapter_fabric(adapter));
	pvr_adapter_get_stats(adapter, &row->stats);
	pvr_adapter_get_limits(adapter, &row->limits);
	pvr_attach_get_stats(attach, &client);
	row->attached = client.attached;
	row->ram_bytes = client.ram_counted;
	row->ram_limit = client.ram_limit;
	row->clients = client.clients;
	row->messages = client.messages;
	row->refused = client.refused;
	row->has_port = pvr_adapter_port(adapter) != NULL;
	if (row->has_port)
		pvr_port_get_stats(pvr_adapter_port(adapter), &row->port);
	return true;
}

/* Return: false: this was the last page, or there is no memory and no snapshot any more. */
static bool collect_page(struct pvr_metrics_source *source)
{
	const struct pvr_daemon *daemon = source->daemon;
	uint64_t begin = pvr_loop_now();

	while (source->cursor < daemon->num_adapters) {
		if (!add_adapter(source->snapshot, daemon->adapters[source->cursor++])) {
			pvr_metrics_snapshot_free(source->snapshot);
			source->snapshot = NULL;
			return false;
		}
		if (pvr_loop_now() - begin > PAGE_NS)
			return true;
	}
	return false;
}

static void collect(struct pvr_metrics_source *source)
{
	struct pvr_metrics_snapshot *snapshot;

	if (source->snapshot && collect_page(source)) {
		pvr_loop_timer_arm(source->daemon->loop, &source->next, PAUSE_NS);
		return;
	}
	snapshot = source->snapshot;
	source->snapshot = NULL;
	pvr_metrics_deliver(source->server, snapshot);
}

static void next_page(struct pvr_loop_timer *timer)
{
	collect((struct pvr_metrics_source *)((char *)timer -
					      offsetof(struct pvr_metrics_source, next)));
}

static void begin(struct pvr_work *work)
{
	struct pvr_metrics_source *source =
		(struct pvr_metrics_source *)((char *)work -
					      offsetof(struct pvr_metrics_source, request));

	source->snapshot = pvr_metrics_snapshot_create();
	source->cursor = 0;
	collect(source);
}

/* ----------------------------------------------------------------- life cycle */

/* Called by the server's thread, one time per pvr_metrics_deliver(). */
static void request(void *opaque)
{
	struct pvr_metrics_source *source = opaque;

	pvr_workq_queue(&source->inbox, &source->request);
}

static bool start(struct pvr_metrics_source *source, struct pvr_error *err)
{
	const struct pvr_metrics_env env = { .collect = request, .opaque = source };
	int ret = pvr_workq_init(&source->inbox, source->daemon->loop), fd;

	if (ret < 0)
		return pvr_fail(err, "metrics: %s", strerror(-ret));
	fd = pvr_metrics_listen(source->address, err);
	if (fd < 0) {
		source->address[0] = '\0'; /* the file is not ours */
		return false;
	}
	source->server = pvr_metrics_create(&env, fd, err);
	if (!source->server)
		return false;
	pvrd_log(PVR_LOG_INFO, NULL, "metrics at %s, path /metrics, without TLS", source->address);
	return true;
}

bool pvr_metrics_start(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		       struct pvr_error *err)
{
	struct pvr_metrics_source *source;

	if (!settings->metrics[0])
		return true;
	source = calloc(1, sizeof(*source));
	if (!source)
		return pvr_fail(err, "out of memory");
	source->daemon = daemon;
	source->inbox.source.fd = -1;
	source->request.run = begin;
	source->next.expired = next_page;
	memcpy(source->address, settings->metrics, sizeof(source->address));
	daemon->metrics = source;
	return start(source, err);
}

void pvr_metrics_stop(struct pvr_daemon *daemon)
{
	struct pvr_metrics_source *source = daemon->metrics;

	if (!source)
		return;
	daemon->metrics = NULL;
	pvr_metrics_destroy(source->server);
	if (source->address[0])
		pvr_metrics_unlink(source->address);
	pvr_loop_timer_disarm(&source->next);
	pvr_metrics_snapshot_free(source->snapshot);
	if (source->inbox.source.fd >= 0)
		pvr_workq_exit(&source->inbox);
	free(source);
}
