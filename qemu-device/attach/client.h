/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One QEMU at an adapter's socket. */
#ifndef PVR_ATTACH_CLIENT_H
#define PVR_ATTACH_CLIENT_H

#include <libvfio-user.h>

#include "attach/attach.h"
#include "attach/irq.h"
#include "attach/ram.h"
#include "attach/uar_map.h"

/*
 * No request to this device needs more: registers and doorbells have 4 bytes, the
 * configuration space 256. It is below what a socket buffers, so that a message can
 * be waited for as a whole.
 */
#define PVR_MESSAGE_MAX 4096
#define PVR_MESSAGE_FDS 16

struct pvr_client {
	struct pvr_source source;
	struct pvr_loop_timer patience; /* until the version is agreed on */
	struct pvr_attach *attach;
	struct pvr_adapter *adapter;
	pid_t pid;
	vfu_ctx_t *vfu; /* NULL until the version is agreed on */
	struct pvr_vm_ram ram;
	struct pvr_irq irq;
	struct pvr_uar_map uar; /* open if the adapter is async and the version agreed on */
	bool blocked; /* waiting until it reads our replies */
	bool emptied; /* the last window showed all that there was, and it has been taken */
	bool checked_unshared;
	char complaint[128]; /* libvfio-user's last */
};

/* Takes over @fd. NULL if out of memory (@fd is closed). */
struct pvr_client *pvr_client_create(struct pvr_attach *attach, int fd);
/* Resets the adapter and forgets the RAM. */
void pvr_client_destroy(struct pvr_client *client);

/* The other side has closed. */
bool pvr_client_is_gone(const struct pvr_client *client);
/* Its memory or interrupts turned out to be unusable; destroys it then. */
void pvr_client_check(struct pvr_client *client);

/* RAM that is not shared is the most frequent mistake of users: say it once. */
void pvr_client_warn_unshared(struct pvr_client *client);

/* One vfio-user context per client: nothing of the last VM is left in it. */

/**
 * pvr_device_attach() - agree with a client on a version
 * @client: gets a context, and a new descriptor in source.fd
 * @version: its VERSION message, whole
 *
 * Return: true, or false with @err filled; the client then has got the reply.
 */
bool pvr_device_attach(struct pvr_client *client, const void *version, size_t len,
		       struct pvr_error *err);

/* BAR writes that need no reply. */
void pvr_device_write(struct pvr_client *client, uint32_t region, uint64_t offset, const void *buf,
		      size_t len);

/* ------------------------------------------------ what clients need of attach.c */

const struct pvr_attach_env *pvr_attach_env(const struct pvr_attach *attach);
struct pvr_attach_stats *pvr_attach_stats(struct pvr_attach *attach);
/* Rate-limited per adapter, since clients can cause them at will. */
__attribute__((format(printf, 3, 4))) void
pvr_attach_log(struct pvr_attach *attach, enum pvr_log_level level, const char *fmt, ...);
/* What pvr_attach_get_stats() says of the client has changed. */
void pvr_attach_tell(struct pvr_attach *attach);
/* Counters of struct pvr_attach_stats, which others read meanwhile. */
static inline void pvr_attach_count(uint64_t *stat, uint64_t n)
{
	__atomic_store_n(stat, *stat + n, __ATOMIC_RELAXED);
}
/* Interrupts go nowhere from now on; called by pvr_client_destroy(). */
void pvr_attach_forget(struct pvr_attach *attach, struct pvr_client *client);

#endif /* PVR_ATTACH_CLIENT_H */
