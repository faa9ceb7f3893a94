// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An adapter and the socket that its VM's QEMU connects to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/client.h"
#include "base/closer.h"
#include "base/unix_socket.h"

#define ACCEPT_PAUSE PVR_SEC
#define STALL_PAUSES_MAX 7 /* the last one takes 64 s */
#define LOG_BURST 20 /* lines */
#define LOG_PERIOD (5 * PVR_SEC) /* LOG_BURST lines per this period */

struct pvr_attach {
	struct pvr_source listener;
	struct pvr_loop_timer pause;
	const struct pvr_attach_env *env;
	struct pvr_adapter *adapter;
	struct pvr_client *client; /* NULL: none */
	struct pvr_client *prepared; /* see pvr_attach_prepared() */
	struct pvr_closer *closer;
	struct pvr_attach_stats stats;
	uint64_t log_since;
	unsigned int log_lines, log_dropped;
	unsigned int stalls; /* clients that stalled the worker; up to STALL_PAUSES_MAX - 1 */
	char *path;
	bool has_user; /* false: a client of each user is accepted */
	uid_t user;
	bool msi;
};

const struct pvr_attach_env *pvr_attach_env(const struct pvr_attach *attach)
{
	return attach->env;
}

struct pvr_closer *pvr_attach_closer(const struct pvr_attach *attach)
{
	return attach->closer;
}

bool pvr_attach_has_msi(const struct pvr_attach *attach)
{
	return attach->msi;
}

struct pvr_attach_stats *pvr_attach_stats(struct pvr_attach *attach)
{
	return &attach->stats;
}

struct pvr_adapter *pvr_attach_adapter(const struct pvr_attach *attach)
{
	return attach->adapter;
}

const char *pvr_attach_path(const struct pvr_attach *attach)
{
	return attach->path;
}

/* pvr_attach_get_stats() runs in another thread and must not access the client. */
void pvr_attach_notify(struct pvr_attach *attach)
{
	const struct pvr_client *client = attach->client;
	struct pvr_attach_stats *stats = &attach->stats;

	__atomic_store_n(&stats->client, client ? client->pid : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&stats->attached, client && client->vfu, __ATOMIC_RELAXED);
	__atomic_store_n(&stats->ram_bytes, client ? client->ram.bytes : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&stats->ram_counted, client ? client->ram.counted : 0, __ATOMIC_RELAXED);
}

void pvr_attach_get_stats(const struct pvr_attach *attach, struct pvr_attach_stats *stats)
{
	const struct pvr_attach_stats *from = &attach->stats;

	*stats = (struct pvr_attach_stats){
		.client = __atomic_load_n(&from->client, __ATOMIC_RELAXED),
		.attached = __atomic_load_n(&from->attached, __ATOMIC_RELAXED),
		.ram_bytes = __atomic_load_n(&from->ram_bytes, __ATOMIC_RELAXED),
		.ram_counted = __atomic_load_n(&from->ram_counted, __ATOMIC_RELAXED),
		.ram_limit = from->ram_limit,
		.clients = __atomic_load_n(&from->clients, __ATOMIC_RELAXED),
		.messages = __atomic_load_n(&from->messages, __ATOMIC_RELAXED),
		.refused = __atomic_load_n(&from->refused, __ATOMIC_RELAXED),
	};
}

static void emit(struct pvr_attach *attach, enum pvr_log_level level, const char *line)
{
	attach->env->ops->log(attach->env->opaque, level, pvr_adapter_name(attach->adapter), line);
}

static bool may_log(struct pvr_attach *attach)
{
	uint64_t now = pvr_loop_now();
	char line[80];

	if (now - attach->log_since > LOG_PERIOD) {
		if (attach->log_dropped) {
			snprintf(line, sizeof(line),
				 "%u more messages of this kind were suppressed",
				 attach->log_dropped);
			emit(attach, PVR_LOG_WARN, line);
		}
		attach->log_since = now;
		attach->log_lines = 0;
		attach->log_dropped = 0;
	}
	if (attach->log_lines < LOG_BURST) {
		attach->log_lines++;
		return true;
	}
	attach->log_dropped++;
	return false;
}

void pvr_attach_log(struct pvr_attach *attach, enum pvr_log_level level, const char *fmt, ...)
{
	char line[768];
	va_list ap;

	bool verbose = __atomic_load_n(&attach->env->verbose, __ATOMIC_RELAXED);

	if (level == PVR_LOG_DEBUG ? !verbose : !may_log(attach))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	emit(attach, level, line);
}

struct pvr_client *pvr_attach_client(const struct pvr_attach *attach)
{
	return attach->client;
}

/* raise_vector() reads attach->client. */
void pvr_attach_set_client(struct pvr_attach *attach, struct pvr_client *client)
{
	pvr_adapter_pause(attach->adapter);
	attach->client = client;
	pvr_adapter_resume(attach->adapter);
	pvr_attach_notify(attach);
}

struct pvr_client *pvr_attach_prepared(struct pvr_attach *attach, struct pvr_client *next)
{
	struct pvr_client *previous = attach->prepared;

	attach->prepared = next;
	return previous;
}

void pvr_attach_forget(struct pvr_attach *attach, struct pvr_client *client)
{
	if (attach->client != client)
		return;
	pvr_attach_set_client(attach, NULL);
}

/* ------------------------------------------------------------------ listening */

static void resume_listening(struct pvr_loop_timer *timer)
{
	struct pvr_attach *attach =
		(struct pvr_attach *)((char *)timer - offsetof(struct pvr_attach, pause));

	if (pvr_loop_add(attach->env->loop, &attach->listener, EPOLLIN) < 0)
		pvr_loop_timer_arm(attach->env->loop, &attach->pause, ACCEPT_PAUSE);
}

/* New connections stay in the backlog. */
static void pause_listening(struct pvr_attach *attach, uint64_t ns)
{
	pvr_loop_remove(&attach->listener);
	pvr_loop_timer_arm(attach->env->loop, &attach->pause, ns);
}

static void accept_later(struct pvr_attach *attach, const char *why)
{
	pvr_attach_log(attach, PVR_LOG_ERR, "cannot accept a QEMU: %s; trying again in 1 s", why);
	pause_listening(attach, ACCEPT_PAUSE);
}

void pvr_attach_stalled(struct pvr_attach *attach)
{
	unsigned int seconds = 1u << attach->stalls;

	if (attach->stalls < STALL_PAUSES_MAX - 1)
		attach->stalls++;
	pvr_attach_log(attach, PVR_LOG_ERR,
		       "the client stopped the worker; the next QEMU is accepted in %u s", seconds);
	pause_listening(attach, seconds * PVR_SEC);
}

static void accept_failed(struct pvr_attach *attach)
{
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	accept_later(attach, strerror(errno)); /* out of descriptors */
}

static void refuse_second(struct pvr_attach *attach, int fd)
{
	pvr_attach_log(attach, PVR_LOG_WARN,
		       "process %d is refused: QEMU (process %d) is attached; give every VM "
		       "an adapter and a socket of its own",
		       (int)pvr_unix_peer_pid(fd), (int)attach->client->pid);
	pvr_attach_count(&attach->stats.refused, 1);
	pvr_closer_close(attach->closer, fd);
}

/* Return: whether the client's user may attach. Closes @fd and logs the reason if not. */
static bool check_user(struct pvr_attach *attach, int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };

	if (!attach->has_user)
		return true;
	if (pvr_unix_peer(fd, &cred) && cred.uid == attach->user)
		return true;
	pvr_attach_log(attach, PVR_LOG_WARN,
		       "process %d of user %u is refused: the adapter is for user %u; run QEMU as "
		       "that user, or change the adapter's setting user",
		       (int)cred.pid, (unsigned int)cred.uid, (unsigned int)attach->user);
	pvr_attach_count(&attach->stats.refused, 1);
	pvr_closer_close(attach->closer, fd);
	return false;
}

static void listener_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_attach *attach = (struct pvr_attach *)source;
	struct pvr_client *client;
	int fd;

	/*
	 * The next VM can connect before the end of the previous one is noticed. It waits in
	 * the backlog until the adapter is reset.
	 */
	if (attach->client && pvr_client_is_gone(attach->client) &&
	    !pvr_client_leave(attach->client))
		return;
	if (pvr_closer_is_full(attach->closer)) {
		accept_later(attach, "descriptors of an earlier one cannot be closed");
		return;
	}
	if (pvr_closer_has_memory(attach->closer, 2 * attach->stats.ram_limit)) {
		accept_later(attach, "memory of an earlier one is not unmapped yet");
		return;
	}
	fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		accept_failed(attach);
		return;
	}
	if (!check_user(attach, fd))
		return;
	if (attach->client) {
		refuse_second(attach, fd);
		return;
	}
	client = pvr_client_create(attach, fd);
	pvr_attach_set_client(attach, client);
	if (!client)
		pvr_attach_log(attach, PVR_LOG_ERR, "a QEMU is refused: out of memory");
}

static bool start_listening(struct pvr_attach *attach, struct pvr_error *err)
{
	bool replaced;
	int ret;

	attach->listener.ready = listener_ready;
	attach->pause.expired = resume_listening;
	attach->listener.fd = pvr_unix_listen(attach->path, &replaced, err);
	if (attach->listener.fd < 0)
		return false;
	if (replaced)
		pvr_attach_log(attach, PVR_LOG_INFO, "replaced stale socket %s", attach->path);
	ret = pvr_loop_add(attach->env->loop, &attach->listener, EPOLLIN);
	if (ret)
		return pvr_fail(err, "cannot watch socket %s: %s", attach->path, strerror(-ret));
	return true;
}

/* ----------------------------------------------------------------- life cycle */

/*
 * Any worker with an event for this VM calls it. The adapter's own worker handles errors.
 */
static void raise_vector(void *host, uint32_t vector)
{
	struct pvr_attach *attach = host;
	struct pvr_client *client = attach->client;

	if (!client)
		return;
	pvr_irq_raise(&client->irq, vector);
	if (client->irq.stalled)
		pvr_loop_wake(attach->env->loop);
}

static const struct pvr_adapter_ops adapter_ops = { .raise = raise_vector };

static bool init(struct pvr_attach *attach, const struct pvr_attach_env *env,
		 const struct pvr_attach_settings *settings)
{
	attach->env = env;
	attach->has_user = settings->user;
	attach->user = settings->user ? *settings->user : 0;
	attach->msi = settings->msi;
	attach->listener.fd = -1;
	attach->closer = pvr_closer_create();
	if (!attach->closer)
		return false;
	attach->path = strdup(settings->path);
	if (attach->path)
		return true;
	pvr_closer_destroy(attach->closer);
	return false;
}

struct pvr_attach *pvr_attach_create(const struct pvr_attach_env *env,
				     const struct pvr_adapter_config *config,
				     const struct pvr_attach_settings *settings,
				     struct pvr_error *err)
{
	struct pvr_attach *attach = calloc(1, sizeof(*attach));

	if (!attach || !init(attach, env, settings)) {
		pvr_fail(err, "out of memory");
		free(attach);
		return NULL;
	}
	attach->stats.ram_limit = config->memory ? config->memory : env->host_ram;
	attach->adapter = pvr_adapter_create(env->engine, config, &adapter_ops, attach, err->text,
					     sizeof(err->text));
	if (!attach->adapter) {
		pvr_closer_destroy(attach->closer);
		free(attach->path);
		free(attach);
		return NULL;
	}
	if (!start_listening(attach, err)) {
		pvr_attach_destroy(attach);
		return NULL;
	}
	return attach;
}

static void stop_listening(struct pvr_attach *attach)
{
	pvr_loop_timer_disarm(&attach->pause);
	pvr_loop_remove(&attach->listener);
	if (attach->listener.fd < 0)
		return;
	close(attach->listener.fd);
	unlink(attach->path);
	attach->listener.fd = -1;
}

bool pvr_attach_move(struct pvr_attach *attach, const struct pvr_attach_env *env,
		     unsigned int worker, struct pvr_error *err)
{
	struct pvr_loop *from = attach->env->loop;
	int ret = pvr_loop_move(&attach->listener, env->loop);

	if (!ret && attach->client)
		ret = pvr_client_move(attach->client, env->loop);
	if (ret) {
		pvr_loop_move(&attach->listener, from);
		return pvr_fail(err, "cannot watch its sockets in worker %u: %s", worker,
				strerror(-ret));
	}
	pvr_loop_timer_move(&attach->pause, env->loop);
	attach->env = env;
	pvr_adapter_set_worker(attach->adapter, worker);
	return true;
}

void pvr_attach_leave(struct pvr_attach *attach)
{
	stop_listening(attach);
	if (attach->client)
		pvr_client_leave(attach->client);
}

void pvr_attach_destroy(struct pvr_attach *attach)
{
	if (attach->client)
		pvr_client_destroy(attach->client);
	stop_listening(attach);
	pvr_adapter_destroy(attach->adapter);
	pvr_closer_destroy(attach->closer);
	free(attach->path);
	free(attach);
}

void pvr_attach_check(struct pvr_attach *attach)
{
	if (attach->client)
		pvr_client_check(attach->client);
}
