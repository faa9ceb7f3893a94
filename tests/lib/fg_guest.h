/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A fake guest: RAM, an adapter, and what the driver sets up at probe. */
#ifndef FG_GUEST_H
#define FG_GUEST_H

#include "fg_buf.h"
#include "fg_host.h"

struct fg_guest_config {
	const char *name;
	const char *fabric; /* NULL: the default one */
	uint8_t mac[6];
	uint32_t ram_mib; /* scattered pages; 0: 16 */
	uint32_t linear_mib; /* contiguous pages; 0: 12 */
	enum fg_buf_kind ends; /* buffers of struct fg_end */
	enum fg_buf_kind rings; /* of queues */
	uint32_t driver_version; /* 0: 20 */
	uint32_t ring_pages; /* of both device rings, header included; 0: 4 */
	const char *hwversion; /* of the adapter; NULL: latest */
	uint8_t gid_type; /* of the adapter; 0: the highest that it supports */
	unsigned int worker; /* of the adapter */
	uint32_t ext; /* PVR_EXT_* to acknowledge at probe */
	bool uar_mapped; /* doorbells are stores to memory, as with uar=mapped */
	uint64_t object_memory; /* of the adapter; 0: the default */
};

/* A CQ notification ring, and this driver's index, which wraps as in ABI.md. */
struct fg_cq_ring {
	struct fg_buf buf;
	uint32_t head;
};

/* A user process with the device open, or the kernel: handle and UAR page 0. */
struct fg_ctx {
	struct fg_guest *guest;
	uint32_t handle;
	uint32_t uar;
};

struct fg_guest {
	LIST_ENTRY(fg_guest) of_host;
	struct fg_host *host;
	struct pvr_adapter *adapter;
	struct fg_ram ram;
	struct fg_guest_config config;
	char name[PVR_NAME_MAX];

	struct pvr_dsr *dsr;
	uint64_t dsr_gpa;
	void *cmd_slot, *resp_slot;
	uint64_t cmd_gpa, resp_gpa;
	struct fg_buf async_ring, cq_ring;
	uint32_t async_head, cq_head; /* this driver's own, wrap as in ABI.md */
	struct fg_cq_ring vector[PVR_CQ_VECTORS_MAX]; /* from 1 up; 0 is cq_ring */

	struct fg_ctx kernel;
	uint32_t *uar_shm; /* if uar_mapped: BAR2 */
	uint32_t uar_next; /* the next UAR page for a user context */
	uint32_t irq[PVR_VEC_MAX]; /* vectors raised */

	uint32_t features; /* PVR_EXT_* in effect since the last probe */
	/* Of fg_post_*(): doorbells, and those that PVR_EXT_DB_SUPPRESS has made needless. */
	uint64_t doorbells, doorbells_spared;
};

/*
 * Default of fg_guest_config.ext: 0, a stock driver, unless a test's main() sets
 * another value.
 */
extern uint32_t fg_default_ext;
/* Default of uar_mapped; FG_UAR_MAPPED in the environment sets it, too. */
extern bool fg_default_uar_mapped;
/* Called for each adapter that is plugged in, when it has its RAM. NULL: nothing is. */
extern void (*fg_plug_hook)(struct fg_guest *guest);

/* MAC 52:54:00:12:34:<number>, name "vm<number>". */
void fg_guest_config_init(struct fg_guest_config *config, uint32_t number);

/* Plugs the adapter in and maps RAM; no driver yet. Dies if that fails. */
struct fg_guest *fg_guest_create(struct fg_host *host, const struct fg_guest_config *config);
/* Return: NULL if the adapter cannot be created; then all memory is freed. */
struct fg_guest *fg_guest_try_create(struct fg_host *host, const struct fg_guest_config *config);
/* Pulls the plug, if fg_guest_unplug() has not, and frees RAM. */
void fg_guest_destroy(struct fg_guest *guest);
void fg_guest_unplug(struct fg_guest *guest);
/* The reverse, with RAM as it is. Return: false if the adapter cannot be created. */
bool fg_guest_plug(struct fg_guest *guest);
/*
 * A VM whose adapter exists already, as guest->adapter: it gets RAM and bus mastering. Return: false if
 * it refuses the RAM.
 */
bool fg_guest_attach(struct fg_guest *guest);

/* A guest with GID 0 bound. @number: as in fg_guest_config_init(). */
struct fg_guest *fg_guest_start(struct fg_host *host, uint32_t number);
struct fg_guest *fg_guest_start_as(struct fg_host *host, const struct fg_guest_config *config);
struct fg_guest *fg_guest_start_on(struct fg_host *host, uint32_t number, unsigned int worker);

/* Probe, in its parts: what goes into the DSR; write its address; the rest. */
void fg_dsr_fill(struct fg_guest *guest);
void fg_dsr_write(struct fg_guest *guest, uint64_t gpa);
/* True if the device has filled the caps. */
bool fg_dsr_accepted(const struct fg_guest *guest);
/* All of probe: returns ERR after ACTIVATE, or UINT32_MAX if the DSR was refused. */
uint32_t fg_guest_boot(struct fg_guest *guest);

uint32_t fg_reg_read(struct fg_guest *guest, uint64_t offset);
void fg_reg_write(struct fg_guest *guest, uint64_t offset, uint32_t value);
/* CTL = @value; returns ERR. */
uint32_t fg_ctl(struct fg_guest *guest, uint32_t value);
/* A doorbell: @offset is PVRDMA_UAR_*_OFFSET. */
void fg_uar_write(struct fg_guest *guest, uint32_t page, uint32_t offset, uint32_t value);

struct pvr_adapter_stats fg_stats(const struct fg_guest *guest);

#endif /* FG_GUEST_H */
