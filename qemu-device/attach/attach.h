/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An adapter at a vfio-user socket, as the daemon uses it.
 *
 * DOC: trust
 *
 * The client is a QEMU that its guest may have taken over. It can break only its own
 * adapter: no message makes the daemon wait, abort, allocate more than a few
 * pages or keep a descriptor. client.c passes only complete, checked messages of known
 * shape to libvfio-user. It handles guest RAM, interrupts and configuration space itself.
 */
#ifndef PVR_ATTACH_ATTACH_H
#define PVR_ATTACH_ATTACH_H

#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"
#include "engine.h"

struct pvr_attach;

struct pvr_attach_env {
	struct pvr_loop *loop;
	struct pvr_engine *engine;
	const struct pvr_engine_ops *ops; /* for its log() */
	void *opaque; /* argument of ops */
	uint64_t host_ram; /* bytes; limits the guest RAM of adapters without a limit of their own */
	const char *tmp; /* folder for short-lived private folders with sockets */
	bool verbose; /* also log debug messages of libvfio-user */
};

/* Bytes of a folder's path that leave space for a socket's name. */
#define PVR_ATTACH_FOLDER_MAX 96

/**
 * pvr_attach_make_folder() - create a private folder for a socket in @tmp
 * @folder: the path of the new folder, of mode 0700
 *
 * Return: false on failure, with errno.
 */
bool pvr_attach_make_folder(const char *tmp, char folder[PVR_ATTACH_FOLDER_MAX]);

struct pvr_attach_settings {
	const char *path; /* of the socket; copied */
	const uid_t *user; /* whose processes may attach; NULL: each that can open the socket */
	bool msi; /* one MSI vector instead of MSI-X */
};

/**
 * pvr_attach_create() - create an adapter and listen for its VM
 * @env: must stay valid as long as the result
 * @config: copied
 * @settings: copied
 * @err: on failure, one line of text
 *
 * Return: the attachment, which owns the adapter, or NULL.
 */
struct pvr_attach *pvr_attach_create(const struct pvr_attach_env *env,
				     const struct pvr_adapter_config *config,
				     const struct pvr_attach_settings *settings,
				     struct pvr_error *err);

/*
 * Unlinks the socket and begins to detach the VM, for which the device vanishes. The worker
 * destroys the objects in steps, until pvr_adapter_busy() returns false. No VM attaches any more.
 */
void pvr_attach_leave(struct pvr_attach *attach);
/* The same, and destroys the adapter. What pvr_attach_leave() has left is done at once. */
void pvr_attach_destroy(struct pvr_attach *attach);

/*
 * Context: the thread of the adapter's worker, or any while that does not run. Only
 * pvr_attach_get_stats() may be called by any thread at any time.
 */

/*
 * Call between runs of the engine. Disconnects a client whose memory or interrupts
 * failed.
 */
void pvr_attach_check(struct pvr_attach *attach);

/*
 * Passes the adapter with its socket and its VM to the worker @worker, whose environment is @env.
 * Context: no worker runs. Return: false with @err filled, and nothing has changed.
 */
bool pvr_attach_move(struct pvr_attach *attach, const struct pvr_attach_env *env,
		     unsigned int worker, struct pvr_error *err);

struct pvr_adapter *pvr_attach_adapter(const struct pvr_attach *attach);
const char *pvr_attach_path(const struct pvr_attach *attach);

struct pvr_attach_stats {
	pid_t client; /* PID of the peer; 0: none or unknown */
	bool attached;
	uint64_t ram_bytes; /* mapped guest RAM */
	uint64_t ram_counted; /* the same, each page of a file once */
	uint64_t ram_limit; /* of ram_counted; constant */
	uint64_t clients; /* clients that attached, in total */
	uint64_t messages; /* messages of all clients */
	uint64_t refused; /* messages answered with an error, clients disconnected */
};
/* Any thread. */
void pvr_attach_get_stats(const struct pvr_attach *attach, struct pvr_attach_stats *stats);

/*
 * Contains SIGBUS in guest RAM: an anonymous page replaces the page, and
 * pvr_attach_check() disconnects the client. Call once per process. Other faults still
 * kill the process. Return: 0 or -errno.
 */
int pvr_sigbus_init(void);

#endif /* PVR_ATTACH_ATTACH_H */
