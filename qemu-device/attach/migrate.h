/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Migration of a device by its vfio-user client: version 2 of VFIO's protocol.
 *
 * DOC: states
 *
 * A client requests a state, and gets the reply when the adapter has it. An adapter that
 * works in steps needs several calls for one transition. So the request stays in the
 * socket, and pvr_migrate_prepare() is called until the transition is complete.
 *
 *    PVR_MIGRATE_RUNNING <-> PVR_MIGRATE_STOP <-> PVR_MIGRATE_STOP_COPY
 *                             ^
 *                             +--> PVR_MIGRATE_RESUMING
 *
 * All transitions take the shortest path in this graph. PVR_MIGRATE_ERROR is the state after a
 * transition that the adapter could neither complete nor undo. A reset ends it.
 */
#ifndef PVR_ATTACH_MIGRATE_H
#define PVR_ATTACH_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine.h"

/* Commands of vfio-user that the bundled libvfio-user does not know. */
enum {
	PVR_VFIO_USER_REGION_WRITE_MULTI = 15,
	PVR_VFIO_USER_DEVICE_FEATURE = 16,
	PVR_VFIO_USER_MIG_DATA_READ = 17,
	PVR_VFIO_USER_MIG_DATA_WRITE = 18,
	PVR_VFIO_USER_NUM
};

/* Bytes of state in one message; also the limit of a bitmap. */
#define PVR_MIG_DATA_MAX 65536

/*
 * A private feature of VFIO_USER_DEVICE_FEATURE, SET: a uint32_t, the percentage of the time for which
 * QEMU stops the vCPUs (auto-converge). Peers of the adapter wait for as long, see
 * pvr_adapter_throttle().
 */
#define PVR_MIG_FEATURE_THROTTLE 0x7676u

/* Values of the protocol. */
enum pvr_migrate_state {
	PVR_MIGRATE_ERROR,
	PVR_MIGRATE_STOP,
	PVR_MIGRATE_RUNNING,
	PVR_MIGRATE_STOP_COPY,
	PVR_MIGRATE_RESUMING,
	PVR_MIGRATE_NUM
};

struct pvr_migrate {
	struct pvr_adapter *adapter;
	enum pvr_migrate_state state;
	struct pvr_save *save; /* in PVR_MIGRATE_STOP_COPY */
	bool is_used; /* the client has asked for it, so it can migrate the VM */
	bool is_saved; /* the client has read the whole state, and the adapter has not run since */
	bool is_prepared; /* the transition of the next message is over, with @result */
	int result;
	uint8_t *buffer; /* PVR_MIG_BODY_MAX bytes; NULL until the first use */
};

/* A body with the largest payload. */
#define PVR_MIG_BODY_MAX (PVR_MIG_DATA_MAX + 64)

struct pvr_mig_reply {
	const void *body;
	size_t len;
};

void pvr_migrate_init(struct pvr_migrate *mig, struct pvr_adapter *adapter);
/* Call after the last use of the adapter by the client. */
void pvr_migrate_exit(struct pvr_migrate *mig);

/* Return: space for the largest body, until pvr_migrate_exit(); NULL without memory. */
void *pvr_migrate_get_buffer(struct pvr_migrate *mig);

/* The client can migrate the VM. */
void pvr_migrate_set_used(struct pvr_migrate *mig);

/* Another process has stopped the adapter for the client. @is_saved: as in struct pvr_migrate. */
void pvr_migrate_set_paused(struct pvr_migrate *mig, bool is_saved);

/* The adapter was reset. */
void pvr_migrate_reset(struct pvr_migrate *mig);

/* Return: whether the client's end must leave the peers of the adapter as they are. */
bool pvr_migrate_lives_elsewhere(const struct pvr_migrate *mig);

/*
 * Executes the transition that a DEVICE_FEATURE message requests, whose body is @len bytes at
 * @body. Return: false if the adapter needs time: call again when pvr_adapter_busy() is
 * false.
 */
bool pvr_migrate_prepare(struct pvr_migrate *mig, const void *body, size_t len);

/*
 * Handle the body of a message. Return: 0, with @reply, which is valid until the next call; or
 * -errno, with @err.
 */
int pvr_migrate_feature(struct pvr_migrate *mig, const void *body, size_t len,
			struct pvr_mig_reply *reply, struct pvr_error *err);
int pvr_migrate_read(struct pvr_migrate *mig, const void *body, size_t len,
		     struct pvr_mig_reply *reply, struct pvr_error *err);
int pvr_migrate_write(struct pvr_migrate *mig, const void *body, size_t len,
		      struct pvr_mig_reply *reply, struct pvr_error *err);

#endif /* PVR_ATTACH_MIGRATE_H */
