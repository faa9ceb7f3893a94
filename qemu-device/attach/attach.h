/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An adapter at a vfio-user socket: what the daemon sees of it.
 *
 * DOC: trust
 *
 * The client is a QEMU that its guest may have taken over. It can break its own
 * adapter, nothing else: no message makes the daemon wait, abort, allocate more than
 * a few pages or keep a descriptor. client.c lets whole messages of known
 * shape through to libvfio-user, and keeps from it what it cannot be trusted with
 * (guest RAM, interrupts, configuration space).
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
	const struct pvr_engine_ops *ops; /* its log() */
	void *opaque; /* of ops */
	const char *scratch; /* folder of mode 0700 for short-lived sockets */
	bool verbose; /* libvfio-user's debug messages, too */
};

/**
 * pvr_attach_create() - make an adapter and listen for its VM
 * @env: must stay valid as long as the result
 * @config: copied
 * @path: where to listen; copied
 * @err: on failure, one line that says what is wrong
 *
 * Return: the attachment, which owns the adapter, or NULL.
 */
struct pvr_attach *pvr_attach_create(const struct pvr_attach_env *env,
				     const struct pvr_adapter_config *config, const char *path,
				     struct pvr_error *err);

/* The VM sees its device vanish; the socket is unlinked. */
void pvr_attach_destroy(struct pvr_attach *attach);

/*
 * All but pvr_attach_get_stats() is called by the thread of the adapter's worker, or while
 * that does not run.
 */

/* Call between turns: drops a client whose memory or interrupts turned out bad. */
void pvr_attach_check(struct pvr_attach *attach);

struct pvr_adapter *pvr_attach_adapter(const struct pvr_attach *attach);
const char *pvr_attach_path(const struct pvr_attach *attach);

struct pvr_attach_stats {
	pid_t client; /* process at the other end, 0: none or unknown */
	bool attached;
	uint64_t ram_bytes; /* guest RAM that is mapped */
	uint64_t clients; /* that ever attached */
	uint64_t messages; /* from all of them */
	uint64_t refused; /* messages that got an error, clients thrown out */
};
/* From any thread. */
void pvr_attach_get_stats(const struct pvr_attach *attach, struct pvr_attach_stats *stats);

/*
 * Contain SIGBUS in guest RAM: the page is replaced by an anonymous one and
 * pvr_attach_check() drops the client. Process-wide, once; faults elsewhere kill the
 * process as ever. Return: 0 or -errno.
 */
int pvr_sigbus_init(void);

#endif /* PVR_ATTACH_ATTACH_H */
