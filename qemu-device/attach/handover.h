/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A QEMU that one process of the daemon hands over to the next one.
 *
 * DOC: hand-over
 *
 *    the earlier process                 the later process
 *    pvr_handover_version() ---------->  pvr_handover_prepare()
 *    pvr_handover_suspend()
 *    pvr_handover_export()  ---------->  pvr_handover_import()
 *    ends                                pvr_handover_resume(), pvr_handover_discard()
 *
 * QEMU notices nothing: it sends no message, and gets none. Messages that arrive meanwhile stay in
 * its socket. Until the later process calls pvr_handover_resume(), the earlier one can go on by
 * pvr_handover_resume(). The later one must then end without pvr_attach_destroy(), which would
 * shut down the connection for both.
 *
 * Context: no worker runs.
 */
#ifndef PVR_ATTACH_HANDOVER_H
#define PVR_ATTACH_HANDOVER_H

#include "attach/attach.h"
#include "attach/client.h"

struct pvr_handover_region {
	uint64_t gpa, size, offset; /* as in struct pvr_vm_ram_request */
	int fd; /* -1: it is no RAM */
	bool writable;
};

/* A client. All but the state, which is in a file. */
struct pvr_handover {
	int socket;
	/* Its VERSION message. version_len 0: it has not come, and the members below are empty. */
	uint8_t version[PVR_MESSAGE_MAX];
	size_t version_len;
	uint8_t config[PVR_CONFIG_SIZE];
	int uar; /* the memory of mapped doorbells; -1: none */
	int irq_fds[PVR_VEC_MAX]; /* -1: none */
	bool irq_pending[PVR_VEC_MAX];
	bool irq_enabled;
	bool checked_unshared;
	bool migratable;
	bool was_stopped; /* the adapter, before pvr_handover_suspend() */
	bool is_paused; /* its VM: QEMU has stopped the adapter */
	bool is_saved; /* is_paused: QEMU has read the state */
	unsigned int num_regions;
	struct pvr_handover_region regions[PVR_RAM_REGIONS];
};

/*
 * Finds the VERSION message of the client. Return: its bytes; 0: there is nothing to prepare, since
 * no client has attached, or its context needs the memory of mapped doorbells.
 */
size_t pvr_handover_version(const struct pvr_attach *attach, const uint8_t **version);
/*
 * Makes the libvfio-user context of a client with this VERSION message, which takes most of the time
 * of pvr_handover_import() otherwise. If it fails, or another client is imported, or none,
 * nothing is lost.
 */
void pvr_handover_prepare(struct pvr_attach *attach, const uint8_t *version, size_t len);
/* Frees a prepared client that pvr_handover_import() has not used. */
void pvr_handover_discard(struct pvr_attach *attach);

/*
 * Whether the client lets the daemon stop and start its adapter. Return: 0, also without a client,
 * or -errno as of pvr_handover_stop().
 */
int pvr_handover_check(const struct pvr_attach *attach, struct pvr_error *err);

/*
 * Stops the adapter. Return: 0; -EAGAIN: the client or the adapter is busy for a moment; other
 * -errno, with @err filled: its client cannot be handed over now.
 */
int pvr_handover_stop(struct pvr_attach *attach, struct pvr_error *err);

/* Starts an adapter that was stopped. Return: 0, also for a running one, or -errno. */
int pvr_handover_start(struct pvr_attach *attach);

/* Return: whether QEMU has stopped the adapter, and does not migrate the VM from here. */
bool pvr_handover_is_paused(const struct pvr_attach *attach);

/*
 * As pvr_handover_stop(), also for an adapter that QEMU has stopped. @was_stopped: set if it, or an
 * operator, has.
 */
int pvr_handover_suspend(struct pvr_attach *attach, bool *was_stopped, struct pvr_error *err);

/* The adapter runs again, or is stopped as before. Return: 0 or -errno. */
int pvr_handover_resume(struct pvr_attach *attach, bool was_stopped);

/**
 * pvr_handover_export() - describe the client of a stopped adapter
 * @client: filled; the descriptors stay the property of @attach
 * @state: a file; the adapter's state is appended
 *
 * Return: 1; 0: there is no client; -errno with @err filled.
 */
int pvr_handover_export(struct pvr_attach *attach, struct pvr_handover *client, int state,
			struct pvr_error *err);

/**
 * pvr_handover_import() - take over a client of an adapter that has none
 * @client: what another process has exported; all descriptors belong to @attach from now on
 * @state: a file with the state from its current position on; stays the caller's
 *
 * The adapter does not run yet. Return: false with @err filled. The client is unharmed in
 * the other process if this one ends then without a call for @attach.
 */
bool pvr_handover_import(struct pvr_attach *attach, const struct pvr_handover *client, int state,
			 struct pvr_error *err);

#endif /* PVR_ATTACH_HANDOVER_H */
