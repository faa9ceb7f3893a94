/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon: engine, workers, adapters, control socket. */
#ifndef PVR_DAEMON_DAEMON_H
#define PVR_DAEMON_DAEMON_H

#include "attach/attach.h"
#include "daemon/settings.h"
#include "daemon/worker_pool.h"

struct pvr_balance;
struct pvr_control;
struct pvr_metrics_source;
struct pvr_network;
struct pvr_segment;
struct pvr_takeover;
struct pvr_upgrade;

struct pvr_daemon_adapter {
	struct pvr_attach *attach;
	struct pvr_segment *segment; /* of its wire; NULL: it has none */
	struct pvr_adapter_settings *settings; /* those at its creation */
	bool was_stopped; /* of an upgrade: before its pause */
};

struct pvr_daemon {
	struct pvr_loop *loop; /* of the first thread, see worker_pool.h */
	struct pvr_stall_guard guard;
	struct pvr_engine *engine;
	struct pvr_worker_pool pool;
	/* In the order of their creation. Changes only while the pool is paused. */
	struct pvr_daemon_adapter adapters[PVR_ADAPTERS_MAX];
	size_t num_adapters;
	unsigned int polling; /* workers that uar=mapped keeps from sleeping, at the last check */
	struct pvr_control *control;
	struct pvr_network *network; /* NULL: no other hosts */
	struct pvr_metrics_source *metrics; /* NULL: not configured */
	struct pvr_balance *balance; /* NULL: adapters stay with their workers */
	LIST_HEAD(, pvr_capture_session) captures;
	struct pvr_upgrade *upgrade; /* NULL: none is in progress */
	struct pvr_source signals;
	struct pvr_watchdog watchdog;
	bool faults_allowed; /* the setting "faults" */
	char served_fabrics[PVR_FABRIC_LIST_MAX]; /* the setting "fabrics"; "": all */
	bool stop;
};

/*
 * @takeover: of the daemon that this one replaces, or NULL. Return: false with @err filled;
 * pvr_daemon_exit() is needed in any case but a failed take-over.
 */
bool pvr_daemon_init(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		     struct pvr_takeover *takeover, struct pvr_error *err);
/* Runs until SIGTERM or SIGINT. */
void pvr_daemon_run(struct pvr_daemon *daemon);
void pvr_daemon_exit(struct pvr_daemon *daemon);

bool pvr_daemon_add_adapter(struct pvr_daemon *daemon, const struct pvr_adapter_settings *settings,
			    struct pvr_error *err);
/* Return: the adapter, or NULL with @err filled. */
struct pvr_attach *pvr_daemon_find_adapter(struct pvr_daemon *daemon, const char *name,
					   struct pvr_error *err);
/*
 * Lets another worker execute the adapter. Its VM notices nothing. Return: false with @err filled:
 * there is no such worker, or the adapter has a wire.
 */
bool pvr_daemon_move_adapter(struct pvr_daemon *daemon, struct pvr_attach *attach,
			     unsigned int worker, struct pvr_error *err);
void pvr_daemon_remove_adapter(struct pvr_daemon *daemon, struct pvr_attach *attach);
void pvr_daemon_set_log_level(struct pvr_daemon *daemon, enum pvr_log_level level);

#endif /* PVR_DAEMON_DAEMON_H */
