// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A QEMU that one process of the daemon hands over to the next one. */
#include "attach/handover.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECE 65536 /* bytes of state at a time */

/* ------------------------------------------------------------- the earlier process */

/* Return: 0, or -errno as of pvr_handover_stop(). */
static int check_busy(const struct pvr_client *client)
{
	if (client->is_leaving || pvr_client_is_gone(client) ||
	    __atomic_load_n(&client->ram.broken, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&client->irq.stalled, __ATOMIC_RELAXED) || client->migrate.is_prepared)
		return -EAGAIN;
	return 0;
}

static int check_client(const struct pvr_client *client, struct pvr_error *err)
{
	int ret = check_busy(client);

	if (ret)
		return ret;
	if (client->migrate.state == PVR_MIGRATE_RUNNING &&
	    !pvr_adapter_has_dirty_log(client->adapter))
		return 0;
	pvr_fail(err, "QEMU (process %d) pauses, migrates or saves the VM", (int)client->pid);
	return -EBUSY;
}

int pvr_handover_check(const struct pvr_attach *attach, struct pvr_error *err)
{
	const struct pvr_client *client = pvr_attach_client(attach);

	return client ? check_client(client, err) : 0;
}

bool pvr_handover_is_paused(const struct pvr_attach *attach)
{
	const struct pvr_client *client = pvr_attach_client(attach);

	return client && !client->is_leaving && client->migrate.state == PVR_MIGRATE_STOP &&
	       pvr_adapter_run_state(client->adapter) == PVR_RUN_STOPPED;
}

/* QEMU has stopped its adapter. */
static int check_paused(const struct pvr_client *client, struct pvr_error *err)
{
	int ret = check_busy(client);

	if (ret || !pvr_adapter_has_dirty_log(client->adapter))
		return ret;
	pvr_fail(err, "QEMU (process %d) migrates the VM", (int)client->pid);
	return -EBUSY;
}

int pvr_handover_stop(struct pvr_attach *attach, struct pvr_error *err)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	int ret = pvr_handover_check(attach, err);

	if (ret)
		return ret;
	if (pvr_adapter_busy(adapter))
		return -EAGAIN;
	ret = pvr_adapter_stop(adapter);
	if (!ret || ret == -EINPROGRESS)
		return ret ? -EAGAIN : 0;
	pvr_fail(err, "the adapter does not stop: %s", strerror(-ret));
	return ret;
}

int pvr_handover_suspend(struct pvr_attach *attach, bool *was_stopped, struct pvr_error *err)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);

	*was_stopped = pvr_adapter_run_state(adapter) == PVR_RUN_STOPPED;
	if (!pvr_handover_is_paused(attach))
		return pvr_handover_stop(attach, err);
	return pvr_adapter_busy(adapter) ? -EAGAIN : check_paused(pvr_attach_client(attach), err);
}

int pvr_handover_resume(struct pvr_attach *attach, bool was_stopped)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);

	return was_stopped ? pvr_adapter_stay_stopped(adapter) : pvr_adapter_start(adapter);
}

int pvr_handover_start(struct pvr_attach *attach)
{
	return pvr_adapter_start(pvr_attach_adapter(attach));
}

static int write_all(int fd, const char *data, size_t size)
{
	ssize_t n;

	for (; size; data += n, size -= (size_t)n) {
		n = write(fd, data, size);
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

static int write_state(struct pvr_adapter *adapter, int fd)
{
	struct pvr_save *save;
	char piece[PIECE];
	ssize_t n;
	int ret = pvr_adapter_save_again(adapter, &save);

	if (ret)
		return ret;
	do {
		n = pvr_save_read(save, piece, sizeof(piece));
		ret = n < 0 ? (int)n : write_all(fd, piece, (size_t)n);
	} while (!ret && n);
	pvr_save_end(save);
	return ret;
}

size_t pvr_handover_version(const struct pvr_attach *attach, const uint8_t **version)
{
	const struct pvr_client *client = pvr_attach_client(attach);

	if (!client || !client->vfu || pvr_adapter_is_uar_mapped(client->adapter))
		return 0;
	*version = client->version;
	return client->version_len;
}

static void export_ram(const struct pvr_vm_ram *ram, struct pvr_handover *to)
{
	const struct pvr_vm_ram_region *region;
	unsigned int i;

	to->num_regions = ram->num;
	for (i = 0; i < ram->num; i++) {
		region = &ram->regions[i];
		to->regions[i] = (struct pvr_handover_region){
			.gpa = region->gpa,
			.size = region->size,
			.offset = region->offset,
			.fd = region->va ? region->fd : -1,
			.writable = region->writable,
		};
	}
}

static void export_irqs(const struct pvr_irq *irq, struct pvr_handover *to)
{
	memcpy(to->irq_fds, irq->fds, sizeof(to->irq_fds));
	memcpy(to->irq_pending, irq->pending, sizeof(to->irq_pending));
	to->irq_enabled = irq->enabled;
}

int pvr_handover_export(struct pvr_attach *attach, struct pvr_handover *to, int state,
			struct pvr_error *err)
{
	struct pvr_client *client = pvr_attach_client(attach);
	int ret;

	if (!client)
		return 0;
	to->socket = client->source.fd;
	to->version_len = 0;
	to->num_regions = 0;
	if (!client->vfu)
		return 1;
	to->version_len = client->version_len;
	memcpy(to->version, client->version, client->version_len);
	to->uar = client->uar.fd;
	to->checked_unshared = client->checked_unshared;
	to->migratable = client->migrate.is_used;
	to->is_paused = pvr_handover_is_paused(attach);
	to->is_saved = client->migrate.is_saved;
	pvr_device_get_config(client, to->config);
	export_irqs(&client->irq, to);
	export_ram(&client->ram, to);
	ret = write_state(client->adapter, state);
	if (!ret)
		return 1;
	pvr_fail(err, "its state cannot be saved: %s", strerror(-ret));
	return ret;
}

/* --------------------------------------------------------------- the later process */

void pvr_handover_prepare(struct pvr_attach *attach, const uint8_t *version, size_t len)
{
	struct pvr_client *client = pvr_client_alloc(attach), *previous;
	struct pvr_error err;

	if (!client)
		return;
	if (!pvr_client_set_version(client, version, len) || !pvr_device_prepare(client, &err)) {
		pvr_client_free(client);
		return;
	}
	previous = pvr_attach_prepared(attach, client);
	if (previous)
		pvr_client_free(previous);
}

void pvr_handover_discard(struct pvr_attach *attach)
{
	struct pvr_client *client = pvr_attach_prepared(attach, NULL);

	if (client)
		pvr_client_free(client);
}

/* The context of a prepared client depends on nothing but the VERSION message. */
static struct pvr_client *new_client(struct pvr_attach *attach, const struct pvr_handover *from)
{
	struct pvr_client *client = pvr_attach_prepared(attach, NULL);

	if (client && (client->version_len != from->version_len || from->uar >= 0 ||
		       memcmp(client->version, from->version, from->version_len))) {
		pvr_client_free(client);
		client = NULL;
	}
	if (!client)
		return pvr_client_create(attach, from->socket);
	return pvr_client_connect(client, from->socket) ? client : NULL;
}

static bool import_ram(struct pvr_client *client, const struct pvr_handover *from,
		       struct pvr_error *err)
{
	struct pvr_vm_ram_request request;
	unsigned int i;

	for (i = 0; i < from->num_regions; i++) {
		request = (struct pvr_vm_ram_request){
			.gpa = from->regions[i].gpa,
			.size = from->regions[i].size,
			.offset = from->regions[i].offset,
			.fd = from->regions[i].fd,
			.readable = true,
			.writable = from->regions[i].writable,
		};
		if (pvr_vm_ram_map(&client->ram, &request, err))
			return false;
	}
	return true;
}

/* The adapter raises vectors of a client under its lock. */
static void import_irqs(struct pvr_client *client, const struct pvr_handover *from)
{
	struct pvr_irq *irq = &client->irq;

	pvr_adapter_pause(client->adapter);
	memcpy(irq->fds, from->irq_fds, sizeof(irq->fds));
	memcpy(irq->pending, from->irq_pending, sizeof(irq->pending));
	irq->enabled = from->irq_enabled;
	pvr_adapter_resume(client->adapter);
}

static int read_state(struct pvr_adapter *adapter, int fd)
{
	char piece[PIECE];
	ssize_t n;
	int ret = 0;

	while (!ret && (n = read(fd, piece, sizeof(piece))))
		ret = n < 0 ? -errno : pvr_adapter_load_push(adapter, piece, (size_t)n);
	return ret;
}

/* No worker executes the steps of the load. */
static int load(const struct pvr_attach_env *env, struct pvr_adapter *adapter, int fd)
{
	int ret = read_state(adapter, fd);

	if (ret)
		return ret;
	while ((ret = pvr_adapter_load_finish(adapter)) == -EINPROGRESS)
		pvr_engine_run(env->engine, pvr_adapter_worker(adapter));
	return ret;
}

static bool import_state(struct pvr_client *client, int fd, struct pvr_error *err)
{
	int ret = load(pvr_attach_env(client->attach), client->adapter, fd);
	char why[256] = "";

	if (!ret) {
		pvr_adapter_load_is_last(client->adapter);
		return true;
	}
	pvr_adapter_load_error(client->adapter, why, sizeof(why));
	return pvr_fail(err, "its state is refused: %s", why[0] ? why : strerror(-ret));
}

static bool import_device(struct pvr_client *client, const struct pvr_handover *from,
			  struct pvr_error *err)
{
	if (from->version_len > sizeof(from->version) || from->num_regions > PVR_RAM_REGIONS)
		return pvr_fail(err, "its description has %zu bytes of version, %u regions",
				from->version_len, from->num_regions);
	if ((from->uar >= 0) != pvr_adapter_is_uar_mapped(client->adapter))
		return pvr_fail(err, "its doorbells are %smapped, and those of the adapter not",
				from->uar >= 0 ? "" : "not ");
	if (from->uar >= 0 && !pvr_uar_map_adopt(&client->uar, from->uar, err))
		return false;
	if (!client->vfu && !pvr_client_set_version(client, from->version, from->version_len))
		return pvr_fail(err, "out of memory");
	if (!client->vfu && !pvr_device_prepare(client, err))
		return false;
	if (!pvr_device_adopt(client, from->config, err))
		return false;
	pvr_loop_timer_disarm(&client->patience);
	client->checked_unshared = from->checked_unshared;
	if (from->migratable)
		pvr_migrate_set_used(&client->migrate);
	if (from->is_paused)
		pvr_migrate_set_paused(&client->migrate, from->is_saved);
	import_irqs(client, from);
	return import_ram(client, from, err);
}

bool pvr_handover_import(struct pvr_attach *attach, const struct pvr_handover *from, int state,
			 struct pvr_error *err)
{
	struct pvr_client *client = new_client(attach, from);

	if (!client)
		return pvr_fail(err, "out of memory");
	pvr_attach_set_client(attach, client);
	if (!from->version_len)
		return true;
	if (!import_device(client, from, err) || !import_state(client, state, err))
		return false;
	pvr_attach_notify(attach);
	return true;
}
