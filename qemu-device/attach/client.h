/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One QEMU at an adapter's socket. */
#ifndef PVR_ATTACH_CLIENT_H
#define PVR_ATTACH_CLIENT_H

#include <libvfio-user.h>

#include "attach/attach.h"
#include "attach/irq.h"
#include "attach/migrate.h"
#include "attach/ram.h"
#include "attach/uar_map.h"

/*
 * The limit of a message. Registers and doorbells have 4 bytes, the configuration space
 * 256. The limit is below the buffer of a socket, so a complete message fits into the
 * buffer. So does a message with a part of a saved state, which may be larger: migrate.h.
 */
#define PVR_MESSAGE_MAX 4096
#define PVR_MESSAGE_FDS 16

struct pvr_client {
	struct pvr_source source;
	struct pvr_loop_timer patience; /* until the version is negotiated */
	struct pvr_loop_timer retry; /* until less of its memory waits to be unmapped */
	struct pvr_attach *attach;
	struct pvr_adapter *adapter;
	pid_t pid;
	/*
	 * NULL until the version is negotiated, also by pvr_device_prepare(). Has a descriptor of
	 * its own for the connection and may close that at any time.
	 */
	vfu_ctx_t *vfu;
	struct pvr_vm_ram ram;
	struct pvr_irq irq;
	struct pvr_migrate migrate;
	struct pvr_uar_map uar; /* open if the adapter has uar=mapped and the version is negotiated */
	bool blocked; /* waits until the client reads replies */
	bool is_checked; /* whether another host uses the adapter: that is asked, or known */
	bool is_late; /* this call of ready() has used its time, or the adapter is busy */
	uint64_t since; /* the begin of this call of ready(), in ns */
	bool is_leaving; /* waits for the end of the adapter's reset */
	bool emptied; /* the last window held all data, and all of it was handled */
	bool checked_unshared;
	uint8_t *version; /* its VERSION message; NULL until that has come */
	size_t version_len;
	char complaint[128]; /* the last log message of libvfio-user */
};

/* Takes ownership of @fd, also on failure. Return: NULL without memory. */
struct pvr_client *pvr_client_create(struct pvr_attach *attach, int fd);
/*
 * The same in two steps: a client without a connection, which pvr_client_free() frees, and its
 * connection. Return: NULL, or false, without memory; then the client is freed.
 */
struct pvr_client *pvr_client_alloc(struct pvr_attach *attach);
bool pvr_client_connect(struct pvr_client *client, int fd);
void pvr_client_free(struct pvr_client *client);
/*
 * Ends the connection, and destroys the client when the adapter's reset is complete: at
 * once, or later from the loop. Return: whether the client was destroyed.
 */
bool pvr_client_leave(struct pvr_client *client);
/* The same at once. Resets the adapter and unmaps the guest RAM. */
void pvr_client_destroy(struct pvr_client *client);

/* Keeps a copy of the client's VERSION message. Return: false without memory. */
bool pvr_client_set_version(struct pvr_client *client, const void *version, size_t len);

/* Passes the client to another loop. Neither loop's thread runs. Return: 0 or -errno. */
int pvr_client_move(struct pvr_client *client, struct pvr_loop *to);

/* Return: whether the peer has closed the connection. */
bool pvr_client_is_gone(const struct pvr_client *client);
/* Destroys the client if its memory or interrupts have failed. */
void pvr_client_check(struct pvr_client *client);

/*
 * Warns once per client that guest RAM is not shared, the most frequent mistake of users.
 */
void pvr_client_warn_unshared(struct pvr_client *client);

/*
 * Each client has a libvfio-user context of its own, without state of an earlier VM.
 */

/**
 * pvr_device_attach() - negotiate the version with a client
 * @client: has its VERSION message, and gets a context
 *
 * Return: true, or false with @err filled. The client has got the reply in both cases.
 */
bool pvr_device_attach(struct pvr_client *client, struct pvr_error *err);

#define PVR_CONFIG_SIZE 256 /* bytes of the configuration space */

void pvr_device_get_config(struct pvr_client *client, uint8_t config[PVR_CONFIG_SIZE]);
/*
 * The same as pvr_device_attach() for a client that another process has negotiated with, in two
 * steps: the client gets a context, before or after it gets its connection, and then the context
 * gets that connection. The client sends and gets nothing. Only bits that a guest can write are
 * taken from @config.
 */
bool pvr_device_prepare(struct pvr_client *client, struct pvr_error *err);
bool pvr_device_adopt(struct pvr_client *client, const uint8_t config[PVR_CONFIG_SIZE],
		      struct pvr_error *err);

/* Undoes pvr_device_prepare(). */
void pvr_device_discard(struct pvr_client *client);

/*
 * Lets libvfio-user handle a message that was already received, and passes its reply on to the
 * client. Return: 0 or -errno; after an error the client must be destroyed.
 */
int pvr_device_run(struct pvr_client *client, const void *message, size_t len);

/* Executes a BAR write that needs no reply. */
void pvr_device_write(struct pvr_client *client, uint32_t region, uint64_t offset, const void *buf,
		      size_t len);

/* ---------------------------------------- functions of attach.c for clients */

/* Closes descriptors that the client has sent. */
struct pvr_closer *pvr_attach_closer(const struct pvr_attach *attach);
const struct pvr_attach_env *pvr_attach_env(const struct pvr_attach *attach);
struct pvr_attach_stats *pvr_attach_stats(struct pvr_attach *attach);
/* Return: whether the device has one MSI vector instead of MSI-X. */
bool pvr_attach_has_msi(const struct pvr_attach *attach);
/* Rate-limited per adapter, since clients can cause any number of lines. */
__attribute__((format(printf, 3, 4))) void
pvr_attach_log(struct pvr_attach *attach, enum pvr_log_level level, const char *fmt, ...);
/* Publishes changes of the client to pvr_attach_get_stats(). */
void pvr_attach_notify(struct pvr_attach *attach);
/* Adds to a counter of struct pvr_attach_stats, which other threads read. */
static inline void pvr_attach_count(uint64_t *stat, uint64_t n)
{
	__atomic_store_n(stat, *stat + n, __ATOMIC_RELAXED);
}
/*
 * The client stopped its worker until the stall guard ended that. The socket accepts the
 * next client later, each time twice as late, so that other VMs keep the worker.
 */
void pvr_attach_stalled(struct pvr_attach *attach);
struct pvr_client *pvr_attach_client(const struct pvr_attach *attach);
/* Begins the delivery of interrupts to the client. */
void pvr_attach_set_client(struct pvr_attach *attach, struct pvr_client *client);
/* A client that waits for pvr_handover_import(). NULL: none. The previous one is the caller's. */
struct pvr_client *pvr_attach_prepared(struct pvr_attach *attach, struct pvr_client *next);
/* Stops the delivery of interrupts; called by pvr_client_destroy(). */
void pvr_attach_forget(struct pvr_attach *attach, struct pvr_client *client);

#endif /* PVR_ATTACH_CLIENT_H */
