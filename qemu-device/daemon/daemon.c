// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The daemon: engine, workers, adapters, control socket. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "attach/ram_use.h"
#include "base/closer.h"
#include "daemon/balance.h"
#include "daemon/confine.h"
#include "daemon/capture.h"
#include "daemon/control.h"
#include "daemon/cpus.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/metrics_source.h"
#include "daemon/network.h"
#include "daemon/process.h"
#include "daemon/qos_requests.h"
#include "daemon/reload.h"
#include "daemon/takeover.h"
#include "daemon/upgrade.h"
#include "segment/segment.h"

/* At the end of the daemon, for the frames to the peers of all VMs. */
#define LEAVE_NS (5 * PVR_SEC)
#define FRAMES_NS PVR_SEC

/*
 * A process has 65,530 mappings by default (vm.max_map_count), and mmap() fails for all adapters
 * without one. Each adapter has the mappings of a client, and those that wait to be unmapped, also
 * of the previous client. The others are for the heap, stacks, libraries and sockets.
 */
#define MAPPINGS_DEFAULT 65530
#define MAPPINGS_OTHER 8192
_Static_assert(PVR_ADAPTERS_MAX *(PVR_RAM_REGIONS + PVR_CLOSER_MEMORY) <=
		       MAPPINGS_DEFAULT - MAPPINGS_OTHER,
	       "no client takes mappings of another one");

/* --------------------------------------------------------- engine callbacks */

static uint64_t engine_now(void *opaque)
{
	return pvr_loop_now();
}

static void engine_log(void *opaque, enum pvr_log_level level, const char *adapter,
		       const char *message)
{
	pvrd_log(level, adapter, "%s", message);
}

static void engine_wake(void *opaque, unsigned int worker)
{
	struct pvr_daemon *daemon = opaque;

	pvr_worker_pool_wake(&daemon->pool, worker);
}

static const struct pvr_engine_ops engine_ops = {
	.now = engine_now,
	.log = engine_log,
	.wake = engine_wake,
};

/* ------------------------------------------------------------------- adapters */

static unsigned int polling_workers(const struct pvr_daemon *daemon)
{
	bool polls[PVR_MAX_WORKERS] = { false };
	unsigned int num = 0;
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++) {
		const struct pvr_adapter *adapter = pvr_attach_adapter(daemon->adapters[i].attach);
		unsigned int worker = pvr_adapter_worker(adapter);

		num += pvr_adapter_is_uar_mapped(adapter) && !polls[worker];
		polls[worker] |= pvr_adapter_is_uar_mapped(adapter);
	}
	return num;
}

/* Warns when the number of polling workers has increased. */
static void warn_of_polling(struct pvr_daemon *daemon)
{
	unsigned int before = daemon->polling;
	struct pvr_error why;

	daemon->polling = polling_workers(daemon);
	if (daemon->polling > before && !pvr_cpus_suffice(pvr_cpus_get(), daemon->polling, &why))
		pvrd_log(PVR_LOG_WARN, NULL, "%s", why.text);
}

/* Return: the first worker with the fewest adapters. */
static unsigned int choose_worker(const struct pvr_daemon *daemon)
{
	unsigned int count[PVR_MAX_WORKERS] = { 0 }, best = 0, i;
	size_t a;

	for (a = 0; a < daemon->num_adapters; a++)
		count[pvr_adapter_worker(pvr_attach_adapter(daemon->adapters[a].attach))]++;
	for (i = 1; i < daemon->pool.num; i++) {
		if (count[i] < count[best])
			best = i;
	}
	return best;
}

static bool check_worker(const struct pvr_daemon *daemon,
			 const struct pvr_adapter_settings *settings, struct pvr_error *err)
{
	if (!settings->has_worker || settings->worker < daemon->pool.num)
		return true;
	return pvr_fail(err,
			"adapter '%s': worker %u: pvrdmad has %u, numbered from 0; see --workers",
			settings->name, settings->worker, daemon->pool.num);
}

/* The workers are paused. Return: NULL with @why filled. */
static struct pvr_attach *attach_with_wire(struct pvr_daemon *daemon,
					   const struct pvr_adapter_settings *settings,
					   struct pvr_adapter_config *config,
					   struct pvr_segment **segment, struct pvr_error *why)
{
	struct pvr_pool_thread *thread = &daemon->pool.threads[config->worker];
	const struct pvr_segment_env env = {
		.loop = thread->loop,
		.engine = daemon->engine,
		.ops = &engine_ops,
		.opaque = daemon,
		.name = settings->name,
		.mac = config->mac,
		.gso = settings->wire_gso,
	};
	const struct pvr_attach_settings attachment = {
		.path = settings->socket,
		.user = settings->has_user ? &settings->user : NULL,
		.msi = settings->msi,
	};
	struct pvr_attach *attach;

	*segment = NULL;
	if (settings->wire[0]) {
		*segment = pvr_segment_create(&env, settings->wire, why);
		if (!*segment)
			return NULL;
		config->port = pvr_segment_port(*segment);
	}
	attach = pvr_attach_create(&thread->env, config, &attachment, why);
	if (!attach)
		pvr_segment_destroy(*segment);
	return attach;
}

/* Another instance has the other fabrics: VMs of two tenants do not share a process. */
static bool check_fabric(const struct pvr_daemon *daemon,
			 const struct pvr_adapter_settings *settings, struct pvr_error *err)
{
	const char *fabric = pvr_fabric_or_default(settings->fabric);

	return !daemon->served_fabrics[0] || pvr_fabric_list_has(daemon->served_fabrics, fabric) ||
	       pvr_fail(err,
			"adapter '%s' has the fabric '%s', but this pvrdmad serves \"%.400s\": use "
			"the instance that lists this fabric, or add it to \"fabrics\"",
			settings->name, fabric, daemon->served_fabrics);
}

static bool add_adapter(struct pvr_daemon *daemon, const struct pvr_adapter_settings *settings,
			struct pvr_error *err)
{
	struct pvr_adapter_config config = {
		.name = settings->name,
		.fabric = settings->fabric[0] ? settings->fabric : NULL,
		.hwversion = settings->hwversion,
		.gid_type = settings->gid_type,
		.uar_mapped = settings->uar_mapped,
		.memory = settings->memory,
		.object_memory = settings->object_memory,
		.port_ecn = settings->wire_ecn,
		.qos = settings->qos,
	};
	struct pvr_daemon_adapter added = { .attach = NULL };
	struct pvr_error why;

	if (!check_fabric(daemon, settings, err) || !check_worker(daemon, settings, err))
		return false;
	if (daemon->num_adapters == PVR_ADAPTERS_MAX)
		return pvr_fail(err, "more than %d adapters", PVR_ADAPTERS_MAX);
	added.settings = malloc(sizeof(*added.settings));
	if (!added.settings)
		return pvr_fail(err, "out of memory");
	*added.settings = *settings;
	config.worker = settings->has_worker ? settings->worker : choose_worker(daemon);
	memcpy(config.mac, settings->mac, sizeof(config.mac));
	pvr_worker_pool_pause(&daemon->pool);
	added.attach = attach_with_wire(daemon, settings, &config, &added.segment, &why);
	if (added.attach)
		daemon->adapters[daemon->num_adapters++] = added;
	pvr_worker_pool_resume(&daemon->pool);
	if (!added.attach) {
		free(added.settings);
		return pvr_fail(err, "%s: %.440s", settings->name, why.text);
	}
	pvrd_log(PVR_LOG_INFO, settings->name, "waiting for its VM at %s", settings->socket);
	return true;
}

bool pvr_daemon_add_adapter(struct pvr_daemon *daemon, const struct pvr_adapter_settings *settings,
			    struct pvr_error *err)
{
	if (!add_adapter(daemon, settings, err))
		return false;
	warn_of_polling(daemon);
	return true;
}

static size_t index_of(const struct pvr_daemon *daemon, const char *name)
{
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++) {
		if (!strcmp(pvr_adapter_name(pvr_attach_adapter(daemon->adapters[i].attach)), name))
			break;
	}
	return i;
}

struct pvr_attach *pvr_daemon_find_adapter(struct pvr_daemon *daemon, const char *name,
					   struct pvr_error *err)
{
	size_t i = index_of(daemon, name);

	if (i < daemon->num_adapters)
		return daemon->adapters[i].attach;
	pvr_fail(err, "there is no adapter '%s': see 'pvrdmactl adapters'", name);
	return NULL;
}

bool pvr_daemon_move_adapter(struct pvr_daemon *daemon, struct pvr_attach *attach,
			     unsigned int worker, struct pvr_error *err)
{
	size_t i = index_of(daemon, pvr_adapter_name(pvr_attach_adapter(attach)));
	bool ok;

	if (worker >= daemon->pool.num)
		return pvr_fail(err, "there is no worker %u: pvrdmad has %u, numbered from 0",
				worker, daemon->pool.num);
	if (daemon->adapters[i].segment)
		return pvr_fail(err, "it has a wire, whose socket belongs to its worker");
	pvr_worker_pool_pause(&daemon->pool);
	ok = pvr_attach_move(attach, &daemon->pool.threads[worker].env, worker, err);
	pvr_worker_pool_resume(&daemon->pool);
	return ok;
}

/*
 * The adapter's worker destroys the objects of the VM in steps, between which it serves others.
 * The first thread has no event for the end of the last step.
 */
static void detach_vm(struct pvr_daemon *daemon, struct pvr_attach *attach)
{
	const struct timespec period = { .tv_nsec = PVR_MSEC };

	pvr_worker_pool_pause(&daemon->pool);
	pvr_attach_leave(attach);
	pvr_worker_pool_resume(&daemon->pool);
	while (pvr_adapter_busy(pvr_attach_adapter(attach)))
		nanosleep(&period, NULL);
}

static void destroy_adapter(const struct pvr_daemon_adapter *adapter)
{
	pvr_attach_destroy(adapter->attach);
	pvr_segment_destroy(adapter->segment);
	free(adapter->settings);
}

void pvr_daemon_remove_adapter(struct pvr_daemon *daemon, struct pvr_attach *attach)
{
	const char *name = pvr_adapter_name(pvr_attach_adapter(attach));
	size_t i = index_of(daemon, name);
	struct pvr_daemon_adapter removed = daemon->adapters[i];

	pvrd_log(PVR_LOG_INFO, name, "removed");
	pvr_captures_end(daemon, attach);
	detach_vm(daemon, attach);
	pvr_worker_pool_pause(&daemon->pool);
	daemon->num_adapters--;
	memmove(&daemon->adapters[i], &daemon->adapters[i + 1],
		(daemon->num_adapters - i) * sizeof(daemon->adapters[0]));
	destroy_adapter(&removed);
	pvr_worker_pool_resume(&daemon->pool);
}

static bool add_adapters(struct pvr_daemon *daemon, const struct pvr_settings *settings,
			 struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < settings->num_adapters; i++) {
		if (!add_adapter(daemon, &settings->adapters[i], err))
			return false;
	}
	warn_of_polling(daemon);
	return true;
}

/* ----------------------------------------------------------------- life cycle */

void pvr_daemon_set_log_level(struct pvr_daemon *daemon, enum pvr_log_level level)
{
	unsigned int i;

	pvrd_log_set_level(level);
	for (i = 0; i < daemon->pool.num; i++)
		__atomic_store_n(&daemon->pool.threads[i].env.verbose, level >= PVR_LOG_DEBUG,
				 __ATOMIC_RELAXED);
}

/* SIGHUP has no reply: the log reports the result. */
static void reload(struct pvr_daemon *daemon)
{
	struct json_object *reply = json_object_new_object();
	struct pvr_error err;

	pvr_reload(daemon, reply, &err);
	json_object_put(reply);
}

static void signals_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_daemon *daemon =
		(struct pvr_daemon *)((char *)source - offsetof(struct pvr_daemon, signals));
	struct signalfd_siginfo info;

	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		reload(daemon);
		return;
	}
	pvrd_log(PVR_LOG_INFO, NULL, "%s: leaving", strsignal((int)info.ssi_signo));
	daemon->stop = true;
}

static bool watch_signals(struct pvr_daemon *daemon, struct pvr_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* of a log or memory file at RLIMIT_FSIZE: the call fails */
	daemon->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	daemon->signals.ready = signals_ready;
	if (daemon->signals.fd < 0 || pvr_loop_add(daemon->loop, &daemon->signals, EPOLLIN) < 0)
		return pvr_fail(err, "cannot watch signals: %s", strerror(errno));
	if (pvr_sigbus_init())
		return pvr_fail(err, "cannot catch SIGBUS");
	return pvr_stall_guard_init(&daemon->guard, err);
}

static uint64_t host_ram(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
}

static const char *tmp_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

/* Each VM that attaches needs a folder for a moment: an error is for the operator, now. */
static bool check_tmp_folder(struct pvr_error *err)
{
	char folder[PVR_ATTACH_FOLDER_MAX];

	if (!pvr_attach_make_folder(tmp_folder(), folder))
		return pvr_fail(err,
				"cannot make a folder in %s: %s; set TMPDIR to a short path "
				"that is writable",
				tmp_folder(), strerror(errno));
	rmdir(folder);
	return true;
}

/* Called by each worker. */
static void check_adapters(void *opaque)
{
	struct pvr_pool_thread *thread = opaque;
	struct pvr_daemon *daemon = thread->env.opaque;
	struct pvr_attach *attach;
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++) {
		attach = daemon->adapters[i].attach;
		if (pvr_adapter_worker(pvr_attach_adapter(attach)) == thread->worker_loop.worker)
			pvr_attach_check(attach);
	}
}

static void equip(struct pvr_daemon *daemon, struct pvr_pool_thread *thread,
		  const struct pvr_settings *settings)
{
	thread->env = (struct pvr_attach_env){
		.loop = thread->loop,
		.engine = daemon->engine,
		.ops = &engine_ops,
		.opaque = daemon,
		.host_ram = host_ram(),
		.tmp = tmp_folder(),
		.verbose = pvrd_log_level() >= PVR_LOG_DEBUG,
	};
	thread->worker_loop.loop = thread->loop;
	thread->worker_loop.engine = daemon->engine;
	thread->worker_loop.check = check_adapters;
	thread->worker_loop.opaque = thread;
	pvr_poll_policy_init(&thread->worker_loop.policy, settings->poll,
			     1000ull * settings->poll_us);
}

static bool init_engine(struct pvr_daemon *daemon, const struct pvr_settings *settings,
			struct pvr_error *err)
{
	unsigned int num = pvr_worker_settings_num(&settings->workers), i;

	if (!pvr_worker_settings_check(&settings->workers, err) ||
	    !pvr_worker_pool_init(&daemon->pool, num, err))
		return false;
	daemon->loop = pvr_loop_create();
	if (!daemon->loop)
		return pvr_fail(err, "cannot make an event loop: %s", strerror(errno));
	daemon->engine = pvr_engine_create(&engine_ops, daemon, num);
	if (!daemon->engine)
		return pvr_fail(err, "out of memory");
	if (settings->hold)
		pvr_engine_set_hold(daemon->engine, settings->hold * PVR_SEC);
	pvr_engine_set_needs_source(daemon->engine, settings->needs_source);
	for (i = 0; i < num; i++) {
		equip(daemon, &daemon->pool.threads[i], settings);
		pvr_worker_settings_cpus(&settings->workers, i, &daemon->pool.threads[i].cpus);
	}
	return true;
}

/* The workers of a take-over begin when the adapters have their VMs. */
static bool start_workers(struct pvr_daemon *daemon, struct pvr_takeover *takeover,
			  struct pvr_error *err)
{
	if (!takeover)
		return pvr_worker_pool_start(&daemon->pool, false, err);
	if (!pvr_worker_pool_start(&daemon->pool, true, err) ||
	    !pvr_takeover_run(takeover, daemon, err))
		return false;
	pvr_worker_pool_resume(&daemon->pool);
	return true;
}

bool pvr_daemon_init(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		     struct pvr_takeover *takeover, struct pvr_error *err)
{
	*daemon = (struct pvr_daemon){
		.signals.fd = -1,
		.faults_allowed = settings->faults_allowed,
	};
	strcpy(daemon->served_fabrics, settings->served_fabrics);
	if (!init_engine(daemon, settings, err) || !watch_signals(daemon, err) ||
	    !check_tmp_folder(err))
		return false;
	daemon->control = pvr_control_create(daemon, settings->control, err);
	if (!daemon->control || !pvr_network_init(daemon, settings, err) ||
	    !pvr_qos_start(daemon, settings, err) || !add_adapters(daemon, settings, err) ||
	    !pvr_metrics_start(daemon, settings, err))
		return false;
	if (settings->workers.balanced && !(daemon->balance = pvr_balance_start(daemon)))
		return pvr_fail(err, "out of memory");
	pvr_engine_measure_copy(daemon->engine);
	return pvr_confine_syscalls(settings->seccomp, err) && start_workers(daemon, takeover, err);
}

static bool is_any_busy(const struct pvr_daemon *daemon)
{
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++)
		if (pvr_adapter_busy(pvr_attach_adapter(daemon->adapters[i].attach)))
			return true;
	return false;
}

/* The workers run: peers at other hosts get the frames that end their connections. */
static void detach_all(struct pvr_daemon *daemon)
{
	const struct timespec period = { .tv_nsec = PVR_MSEC };
	uint64_t until = pvr_loop_now() + LEAVE_NS;
	size_t i;

	pvr_worker_pool_pause(&daemon->pool);
	for (i = 0; i < daemon->num_adapters; i++)
		pvr_attach_leave(daemon->adapters[i].attach);
	pvr_worker_pool_resume(&daemon->pool);
	while (is_any_busy(daemon) && pvr_loop_now() < until)
		nanosleep(&period, NULL);
	/* Some of these frames wait until a peer reads, or for a connection. */
	until = pvr_loop_now() + FRAMES_NS;
	while (pvr_engine_has_unsent(daemon->engine) && pvr_loop_now() < until)
		nanosleep(&period, NULL);
}

void pvr_daemon_exit(struct pvr_daemon *daemon)
{
	pvr_upgrade_cancel(daemon->upgrade);
	pvr_balance_stop(daemon->balance);
	pvr_metrics_stop(daemon);
	pvr_captures_end(daemon, NULL);
	pvr_worker_pool_stop(&daemon->pool);
	pvr_stall_guard_exit(&daemon->guard);
	pvr_control_destroy(daemon->control);
	pvr_network_stop(daemon);
	while (daemon->num_adapters)
		destroy_adapter(&daemon->adapters[--daemon->num_adapters]);
	pvr_loop_remove(&daemon->signals);
	if (daemon->signals.fd >= 0)
		close(daemon->signals.fd);
	pvr_engine_destroy(daemon->engine);
	pvr_network_exit(daemon);
	pvr_loop_destroy(daemon->loop);
	pvr_worker_pool_exit(&daemon->pool);
}

void pvr_daemon_run(struct pvr_daemon *daemon)
{
	pvr_watchdog_start(&daemon->watchdog, daemon->loop, &daemon->pool);
	while (!daemon->stop) {
		if (pvr_loop_wait(daemon->loop, PVR_NEVER)) {
			pvr_stall_guard_busy(&daemon->guard);
			pvr_loop_dispatch(daemon->loop);
		} else {
			/* The guard's own signal, while the thread was idle. */
			pvr_stall_guard_idle(&daemon->guard);
		}
	}
	pvr_upgrade_cancel(daemon->upgrade);
	detach_all(daemon);
}
