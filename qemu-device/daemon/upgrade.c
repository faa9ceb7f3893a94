// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Upgrade of a running daemon: the side that is replaced. */
#include "daemon/upgrade.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/inherited.h"
#include "daemon/handover_message.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"
#include "daemon/launcher.h"
#include "daemon/log.h"
#include "daemon/process.h"

#define START_NS (10 * PVR_SEC) /* until the new process is ready */
#define SEND_NS PVR_SEC /* for the new process to receive what it needs first */
#define STOP_NS (5 * PVR_SEC) /* until all adapters are between two commands */
#define RETRY_NS (5 * PVR_MSEC)
#define LOAD_NS (5 * PVR_SEC) /* until the new process has loaded the states; VMs wait */
#define NOTIFY_NS PVR_SEC /* a service manager that does not know the new process would end it */
#define ADAPTERS_PER_MESSAGE 32
#define LISTENERS_MAX 1024

struct pvr_upgrade {
	struct pvr_source source; /* of the channel's descriptor */
	struct pvr_handover_channel channel;
	struct pvr_loop_timer timer;
	struct pvr_daemon *daemon;
	int client; /* waits for the reply */
	bool is_ready;
	uint64_t stop_until; /* see STOP_NS */
	uint64_t deadline; /* of messages */
	uint64_t since; /* begin of the pause */
	struct json_object *hello; /* of the new process; NULL until it has come */
	struct pvr_handover handover;
	struct pvr_fd_message raw;
};

/* ------------------------------------------------------------------------- the end */

static void reply(struct pvr_upgrade *upgrade, struct json_object *obj)
{
	size_t len = 0;
	const char *text = json_object_to_json_string_length(obj, JSON_C_TO_STRING_PLAIN, &len);

	if (upgrade->client >= 0 && text &&
	    send(upgrade->client, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		send(upgrade->client, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	json_object_put(obj);
}

static void end(struct pvr_upgrade *upgrade)
{
	upgrade->daemon->upgrade = NULL;
	pvr_loop_timer_disarm(&upgrade->timer);
	pvr_loop_remove(&upgrade->source);
	close(upgrade->channel.fd);
	pvr_handover_store_end(&upgrade->channel.store);
	if (upgrade->client >= 0)
		close(upgrade->client);
	json_object_put(upgrade->hello);
	free(upgrade);
}

static void give_up(struct pvr_upgrade *upgrade, const char *why)
{
	struct json_object *obj = json_object_new_object();
	struct pvr_error err;

	/* The new process ends also at the end of the channel, if it has not loaded all states. */
	pvr_handover_send(&upgrade->channel, pvr_handover_message("abort"), NULL, 0,
			  pvr_loop_now());
	pvr_fail(&err, "the new pvrdmad does not replace this one, which goes on: %.400s", why);
	pvrd_log(PVR_LOG_ERR, NULL, "%s", err.text);
	put_bool(obj, "ok", false);
	put_text(obj, "error", err.text);
	reply(upgrade, obj);
	end(upgrade);
}

/*
 * From here on the service manager restarts the service if the new process ends, and not if this
 * one does. Return: false with @err filled, and nothing has changed. A first message may find
 * that there is no service manager at its address.
 */
static bool announce(const struct pvr_upgrade *upgrade, struct pvr_error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "MAINPID=%d", (int)number_of(upgrade->hello, "pid"));
	return !pvr_is_managed() || pvr_notify(text, NOTIFY_NS) || !pvr_is_managed() ||
	       pvr_fail(err, "the service manager does not read, and would end both");
}

static _Noreturn void leave(struct pvr_upgrade *upgrade)
{
	uint64_t pause_us = (pvr_loop_now() - upgrade->since) / 1000;
	uint64_t pid = number_of(upgrade->hello, "pid");
	struct json_object *obj = json_object_new_object();

	pvrd_log(PVR_LOG_INFO, NULL,
		 "process %d, version %.32s, serves the VMs now, which waited for %.1f ms",
		 (int)pid, text_of(upgrade->hello, "version"), (double)pause_us / 1000);
	put_bool(obj, "ok", true);
	put_bool(obj, "changed", true);
	put_number(obj, "pid", pid);
	put_text(obj, "version", text_of(upgrade->hello, "version"));
	put_number(obj, "pause_us", pause_us);
	reply(upgrade, obj);
	pvrd_log_flush();
	/* The new process has the sockets: nothing is unlinked or shut down. */
	_exit(EXIT_SUCCESS);
}

/*
 * The new process has died after it was announced. The service manager restarts the service, and
 * the next process has the VMs by the store.
 */
static _Noreturn void leave_to_manager(const char *why)
{
	pvrd_log(PVR_LOG_ERR, NULL,
		 "the new pvrdmad has ended (%s): the service manager starts another one", why);
	pvrd_log_flush();
	_exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------ before the pause */

static int send_listeners(struct pvr_upgrade *upgrade)
{
	int fds[LISTENERS_MAX], ret = 0;
	size_t num = pvr_listening_find(fds, LISTENERS_MAX), at, n;

	if (num > LISTENERS_MAX)
		return -EMFILE;
	for (at = 0; at < num && !ret; at += n) {
		n = num - at < PVR_FD_MESSAGE_FDS ? num - at : PVR_FD_MESSAGE_FDS;
		ret = pvr_handover_send(&upgrade->channel, pvr_handover_message("listen"), fds + at,
					n, upgrade->deadline);
	}
	return ret;
}

/* Limits and the link may have changed since the adapter was created. */
static struct json_object *describe(const struct pvr_daemon *daemon, size_t i)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(daemon->adapters[i].attach);
	struct pvr_adapter_settings settings = *daemon->adapters[i].settings;
	struct pvr_adapter_stats stats;
	struct json_object *obj;

	pvr_adapter_get_qos(adapter, &settings.qos);
	pvr_adapter_get_stats(adapter, &stats);
	obj = pvr_handover_put_adapter(&settings);
	put_bool(obj, "link_up", stats.link_up);
	return obj;
}

static int send_adapters(struct pvr_upgrade *upgrade)
{
	const struct pvr_daemon *daemon = upgrade->daemon;
	struct json_object *message, *list;
	size_t i = 0, n;
	int ret = 0;

	while (i < daemon->num_adapters && !ret) {
		message = pvr_handover_message("adapters");
		list = json_object_new_array();
		for (n = 0; n < ADAPTERS_PER_MESSAGE && i < daemon->num_adapters; n++)
			json_object_array_add(list, describe(daemon, i++));
		put(message, "adapters", list);
		ret = pvr_handover_send(&upgrade->channel, message, NULL, 0, upgrade->deadline);
	}
	return ret;
}

/* The workers are paused, since they create and free clients. */
static struct json_object *describe_vms(const struct pvr_daemon *daemon)
{
	struct json_object *list = json_object_new_array();
	const uint8_t *version;
	size_t i, len;

	for (i = 0; i < daemon->num_adapters; i++) {
		const struct pvr_attach *attach = daemon->adapters[i].attach;

		len = pvr_handover_version(attach, &version);
		if (len)
			json_object_array_add(
				list,
				pvr_handover_put_vm(pvr_adapter_name(pvr_attach_adapter(attach)),
						    version, len));
	}
	return list;
}

static int send_vms(struct pvr_upgrade *upgrade)
{
	struct pvr_daemon *daemon = upgrade->daemon;
	struct json_object *list;
	size_t i;
	int ret = 0;

	pvr_worker_pool_pause(&daemon->pool);
	list = describe_vms(daemon);
	pvr_worker_pool_resume(&daemon->pool);
	for (i = 0; i < json_object_array_length(list) && !ret; i++)
		ret = pvr_handover_send(&upgrade->channel,
					json_object_get(json_object_array_get_idx(list, i)), NULL,
					0, upgrade->deadline);
	json_object_put(list);
	return ret;
}

static void put_fabric(void *opaque, const char *fabric, const struct pvr_qos *qos)
{
	struct json_object *obj = json_object_new_object();

	put_text(obj, "name", fabric);
	put(obj, "qos", pvr_handover_put_qos(qos));
	json_object_array_add(opaque, obj);
}

static int send_create(struct pvr_upgrade *upgrade)
{
	struct json_object *message = pvr_handover_message("create");
	struct json_object *fabrics = json_object_new_array();

	pvr_engine_for_each_fabric_qos(upgrade->daemon->engine, put_fabric, fabrics);
	put(message, "fabrics", fabrics);
	put_text(message, "log_level", pvrd_log_level_name(pvrd_log_level()));
	return pvr_handover_send(&upgrade->channel, message, NULL, 0, upgrade->deadline);
}

/* A new process that does not know of the store would not discard it. */
static int send_store(struct pvr_upgrade *upgrade)
{
	struct pvr_handover_channel *channel = &upgrade->channel;
	struct pvr_handover_channel only = { channel->fd, PVR_HANDOVER_STORE_NONE };

	if (!truth_of(upgrade->hello, "store"))
		return 0;
	pvr_handover_store_begin(&channel->store);
	return channel->store.file < 0
		       ? 0
		       : pvr_handover_send(&only, pvr_handover_message("store"),
					   &channel->store.file, 1, upgrade->deadline);
}

/* Return: whether the new process is one that this one can hand its VMs over to. */
static bool greet(struct pvr_upgrade *upgrade, struct json_object *message)
{
	int ret;

	upgrade->deadline = pvr_loop_now() + SEND_NS;
	upgrade->hello = message;
	if (number_of(message, "handover") != PVR_HANDOVER_VERSION) {
		give_up(upgrade, "it has another version of the hand-over: restart pvrdmad");
		return false;
	}
	ret = send_store(upgrade);
	if (!ret)
		ret = send_listeners(upgrade);
	if (!ret)
		ret = send_adapters(upgrade);
	if (!ret)
		ret = send_vms(upgrade);
	if (!ret)
		ret = send_create(upgrade);
	if (ret)
		give_up(upgrade, strerror(-ret));
	return !ret;
}

/* --------------------------------------------------------------------------- pause */

/* Start the first @num adapters again. */
static void go_on(struct pvr_daemon *daemon, size_t num)
{
	while (num) {
		num--;
		pvr_handover_resume(daemon->adapters[num].attach,
				    daemon->adapters[num].was_stopped);
	}
	pvr_worker_pool_resume(&daemon->pool);
}

/* An earlier pvrdmad would start the adapter of a paused VM. */
static int check_new_process(const struct pvr_upgrade *upgrade, const struct pvr_attach *attach,
			     struct pvr_error *err)
{
	if (!pvr_handover_is_paused(attach) || truth_of(upgrade->hello, "paused"))
		return 0;
	pvr_fail(err,
		 "its VM is paused, and the new pvrdmad cannot take over such a VM: continue it");
	return -EBUSY;
}

static int stop_adapter(struct pvr_upgrade *upgrade, size_t i, struct pvr_error *err)
{
	struct pvr_daemon *daemon = upgrade->daemon;
	struct pvr_daemon_adapter *adapter = &daemon->adapters[i];
	struct pvr_error why = { "" };
	int ret = check_new_process(upgrade, adapter->attach, &why);

	if (!ret)
		ret = pvr_handover_suspend(adapter->attach, &adapter->was_stopped, &why);
	if (ret == -EAGAIN)
		pvr_fail(&why, "it did not come to rest within %llu s", STOP_NS / PVR_SEC);
	if (ret)
		pvr_fail(err, "adapter %s: %.300s",
			 pvr_adapter_name(pvr_attach_adapter(daemon->adapters[i].attach)),
			 why.text);
	return ret;
}

/* Return: 0, with all adapters stopped and the workers paused; or -errno, and they run. */
static int stop_all(struct pvr_upgrade *upgrade, struct pvr_error *err)
{
	struct pvr_daemon *daemon = upgrade->daemon;
	size_t i;
	int ret = 0;

	upgrade->since = pvr_loop_now();
	pvr_worker_pool_pause(&daemon->pool);
	for (i = 0; i < daemon->num_adapters; i++) {
		ret = stop_adapter(upgrade, i, err);
		if (ret)
			break;
	}
	if (ret)
		go_on(daemon, i);
	return ret;
}

#define ENDED "it ended while it loaded the states of the VMs, see its log"

static bool describe_error(int ret, struct pvr_error *err)
{
	if (ret == -EPIPE || ret == -ECONNRESET)
		return pvr_fail(err, ENDED);
	if (ret == -ETIMEDOUT)
		return pvr_fail(err, "it did not load the states of the VMs within %llu s",
				LOAD_NS / PVR_SEC);
	return pvr_fail(err, "%s", strerror(-ret));
}

static bool hand_over_client(struct pvr_upgrade *upgrade, const struct pvr_daemon_adapter *adapter,
			     struct pvr_error *err)
{
	struct pvr_attach *attach = adapter->attach;
	const char *name = pvr_adapter_name(pvr_attach_adapter(attach));
	int state = memfd_create("pvrdma-state", MFD_CLOEXEC), ret;
	struct pvr_error why = { "" };

	upgrade->handover.was_stopped = adapter->was_stopped;
	ret = state < 0 ? -errno : pvr_handover_export(attach, &upgrade->handover, state, &why);
	if (ret > 0)
		ret = lseek(state, 0, SEEK_SET) < 0
			      ? -errno
			      : pvr_handover_send_client(&upgrade->channel, name,
							 &upgrade->handover, state,
							 upgrade->deadline);
	if (state >= 0)
		close(state);
	if (!ret || !why.text[0])
		return !ret || describe_error(ret, err);
	return pvr_fail(err, "adapter %s: %.300s", name, why.text);
}

static bool wait_loaded(struct pvr_upgrade *upgrade, struct pvr_error *err)
{
	struct json_object *message;
	bool ended, ok;

	message = pvr_handover_receive(&upgrade->channel, &upgrade->raw, upgrade->deadline, &ended,
				       err);
	if (!message && ended)
		return pvr_fail(err, ENDED);
	if (!message && pvr_loop_now() >= upgrade->deadline)
		return describe_error(-ETIMEDOUT, err);
	if (!message)
		return false;
	ok = pvr_handover_is(message, "loaded") ||
	     pvr_fail(err, "it sent '%.32s', expected 'loaded'", text_of(message, "type"));
	json_object_put(message);
	return ok;
}

/* Return: whether the new process has the VMs. */
static bool hand_over_all(struct pvr_upgrade *upgrade, struct pvr_error *err)
{
	struct pvr_daemon *daemon = upgrade->daemon;
	size_t i;
	int ret;

	upgrade->deadline = pvr_loop_now() + LOAD_NS;
	for (i = 0; i < daemon->num_adapters; i++) {
		if (!hand_over_client(upgrade, &daemon->adapters[i], err))
			return false;
	}
	pvr_handover_store_complete(&upgrade->channel.store);
	ret = pvr_handover_send(&upgrade->channel, pvr_handover_message("load"), NULL, 0,
				upgrade->deadline);
	if (ret)
		return describe_error(ret, err);
	return wait_loaded(upgrade, err) && announce(upgrade, err);
}

/* All adapters are stopped. Returns only if the new process has failed. */
static void hand_over(struct pvr_upgrade *upgrade, struct pvr_error *err)
{
	int ret;

	if (!hand_over_all(upgrade, err))
		return;
	ret = pvr_handover_send(&upgrade->channel, pvr_handover_message("go"), NULL, 0,
				upgrade->deadline);
	if (!ret)
		leave(upgrade);
	describe_error(ret, err);
	if (pvr_is_managed())
		leave_to_manager(err->text);
}

static void try(struct pvr_upgrade *upgrade)
{
	struct pvr_error err;
	int ret = stop_all(upgrade, &err);

	if (ret == -EAGAIN && pvr_loop_now() < upgrade->stop_until) {
		pvr_loop_timer_arm(upgrade->daemon->loop, &upgrade->timer, RETRY_NS);
		return;
	}
	if (!ret) {
		hand_over(upgrade, &err);
		pvr_handover_store_discard(upgrade->channel.store.file);
		go_on(upgrade->daemon, upgrade->daemon->num_adapters);
	}
	give_up(upgrade, err.text);
}

/* -------------------------------------------------------------------------- events */

static void channel_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_upgrade *upgrade = (struct pvr_upgrade *)source;
	struct json_object *message;
	struct pvr_error why;
	bool ended;

	message = pvr_handover_receive(&upgrade->channel, &upgrade->raw, pvr_loop_now(), &ended,
				       &why);
	if (!message) {
		give_up(upgrade, ended ? "it ended before it was ready, see its log" : why.text);
		return;
	}
	while (upgrade->raw.num_fds)
		close(upgrade->raw.fds[--upgrade->raw.num_fds]);
	if (!upgrade->hello) {
		greet(upgrade, message);
		return;
	}
	upgrade->is_ready = pvr_handover_is(message, "ready");
	json_object_put(message);
	if (!upgrade->is_ready) {
		give_up(upgrade, "it sent an unexpected message");
		return;
	}
	upgrade->stop_until = pvr_loop_now() + STOP_NS;
	pvr_loop_modify(source, 0); /* the next message is received by wait_loaded() */
	pvr_loop_timer_disarm(&upgrade->timer);
	try(upgrade);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_upgrade *upgrade =
		(struct pvr_upgrade *)((char *)timer - offsetof(struct pvr_upgrade, timer));
	struct pvr_error err;

	if (upgrade->is_ready) {
		try(upgrade);
		return;
	}
	pvr_fail(&err, "it was not ready within %llu s", START_NS / PVR_SEC);
	give_up(upgrade, err.text);
}

/* The state of an adapter has no packets in flight, and only one process can have a tap device. */
static bool check_wires(const struct pvr_daemon *daemon, struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++) {
		if (daemon->adapters[i].segment)
			return pvr_fail(
				err, "adapter %s has a wire, which cannot be handed over",
				pvr_adapter_name(pvr_attach_adapter(daemon->adapters[i].attach)));
	}
	return true;
}

struct pvr_upgrade *pvr_upgrade_begin(struct pvr_daemon *daemon, struct pvr_error *err)
{
	struct pvr_upgrade *upgrade;

	if (!check_wires(daemon, err))
		return NULL;
	upgrade = calloc(1, sizeof(*upgrade));
	if (!upgrade) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	upgrade->daemon = daemon;
	upgrade->client = -1;
	upgrade->source.ready = channel_ready;
	upgrade->channel.store = PVR_HANDOVER_STORE_NONE;
	upgrade->timer.expired = timer_expired;
	upgrade->channel.fd = pvr_launcher_start(err);
	if (upgrade->channel.fd < 0) {
		free(upgrade);
		return NULL;
	}
	upgrade->source.fd = upgrade->channel.fd;
	if (pvr_loop_add(daemon->loop, &upgrade->source, EPOLLIN) < 0) {
		pvr_fail(err, "cannot watch the new pvrdmad: %s", strerror(errno));
		close(upgrade->channel.fd);
		free(upgrade);
		return NULL;
	}
	pvr_loop_timer_arm(daemon->loop, &upgrade->timer, START_NS);
	daemon->upgrade = upgrade;
	pvrd_log(PVR_LOG_INFO, NULL, "upgrade: started %s", pvr_launcher_path());
	return upgrade;
}

void pvr_upgrade_give_client(struct pvr_upgrade *upgrade, int fd)
{
	upgrade->client = fd;
}

void pvr_upgrade_cancel(struct pvr_upgrade *upgrade)
{
	if (upgrade)
		give_up(upgrade, "pvrdmad ends");
}
