// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fake guests: plugging, probing, registers, doorbells. */
#include "fg_guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fg_gid.h"

#define DEFAULT_RAM_MIB 16
#define DEFAULT_LINEAR_MIB 12
#define DEFAULT_RING_PAGES 4

static void guest_raise(void *opaque, uint32_t vector)
{
	struct fg_guest *guest = opaque;

	if (vector >= PVR_VEC_MAX)
		fg_die("vector %u", vector);
	/* By several threads, but one at a time; read by the guest's own. */
	__atomic_store_n(&guest->irq[vector], guest->irq[vector] + 1, __ATOMIC_RELAXED);
}

static const struct pvr_adapter_ops adapter_ops = {
	.raise = guest_raise,
};

uint32_t fg_default_ext;
bool fg_default_uar_mapped;
void (*fg_plug_hook)(struct fg_guest *guest);

void fg_guest_config_init(struct fg_guest_config *config, uint32_t number)
{
	static char name[16][16];
	const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, (uint8_t)number };

	memset(config, 0, sizeof(*config));
	snprintf(name[number % 16], sizeof(name[0]), "vm%u", number);
	config->name = name[number % 16];
	memcpy(config->mac, mac, sizeof(mac));
	config->ext = fg_default_ext | (getenv("FG_POLL") ? PVR_EXT_DB_SUPPRESS : 0);
	config->uar_mapped = fg_default_uar_mapped || getenv("FG_UAR_MAPPED");
}

static void config_defaults(struct fg_guest_config *config)
{
	config->ram_mib = config->ram_mib ? config->ram_mib : DEFAULT_RAM_MIB;
	config->linear_mib = config->linear_mib ? config->linear_mib : DEFAULT_LINEAR_MIB;
	config->driver_version = config->driver_version ? config->driver_version : PVR_VERSION;
	config->ring_pages = config->ring_pages ? config->ring_pages : DEFAULT_RING_PAGES;
}

/* Untouched pages take no memory. */
static void map_uar(struct fg_guest *guest)
{
	void *va = mmap(NULL, PVR_BAR_UAR_SIZE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (va == MAP_FAILED)
		fg_die("%s: no memory for its doorbells", guest->name);
	guest->uar_shm = va;
	pvr_adapter_map_uar(guest->adapter, va);
}

bool fg_guest_attach(struct fg_guest *guest)
{
	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *region = &guest->ram.region[i];

		if (region->size && pvr_adapter_map_ram(guest->adapter, region->gpa, region->size,
							region->device_va, true))
			return false;
	}
	if (fg_plug_hook)
		fg_plug_hook(guest);
	pvr_adapter_set_bus_master(guest->adapter, true);
	if (guest->config.uar_mapped)
		map_uar(guest);
	return true;
}

bool fg_guest_plug(struct fg_guest *guest)
{
	struct pvr_adapter_config config = {
		.name = guest->name,
		.fabric = guest->config.fabric,
		.hwversion = guest->config.hwversion,
		.gid_type = guest->config.gid_type,
		.worker = guest->config.worker,
		.uar_mapped = guest->config.uar_mapped,
		.object_memory = guest->config.object_memory,
		.port = guest->host->port,
	};
	char err[200] = "";

	memcpy(config.mac, guest->config.mac, sizeof(config.mac));
	guest->adapter = pvr_adapter_create(guest->host->engine, &config, &adapter_ops, guest, err,
					    sizeof(err));
	if (!guest->adapter)
		return false;
	if (!fg_guest_attach(guest)) {
		fg_guest_unplug(guest);
		return false;
	}
	return true;
}

static void shared_region_alloc(struct fg_guest *guest)
{
	uint32_t dsr = fg_ram_get_page(&guest->ram);
	uint32_t cmd = fg_ram_get_page(&guest->ram);
	uint32_t resp = fg_ram_get_page(&guest->ram);

	guest->dsr = fg_page_va(&guest->ram, dsr);
	guest->dsr_gpa = fg_page_gpa(&guest->ram, dsr);
	guest->cmd_slot = fg_page_va(&guest->ram, cmd);
	guest->cmd_gpa = fg_page_gpa(&guest->ram, cmd);
	guest->resp_slot = fg_page_va(&guest->ram, resp);
	guest->resp_gpa = fg_page_gpa(&guest->ram, resp);
	fg_buf_init(&guest->async_ring, &guest->ram, guest->config.ring_pages, guest->config.rings);
	fg_buf_init(&guest->cq_ring, &guest->ram, guest->config.ring_pages, guest->config.rings);
}

struct fg_guest *fg_guest_try_create(struct fg_host *host, const struct fg_guest_config *config)
{
	struct fg_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->host = host;
	LIST_INSERT_HEAD(&host->guests, guest, of_host);
	guest->config = *config;
	config_defaults(&guest->config);
	snprintf(guest->name, sizeof(guest->name), "%s", config->name);
	guest->kernel.guest = guest;
	guest->uar_next = 1;
	fg_ram_init(&guest->ram, guest->config.ram_mib, guest->config.linear_mib);
	if (!fg_guest_plug(guest)) {
		LIST_REMOVE(guest, of_host);
		fg_ram_exit(&guest->ram);
		free(guest);
		return NULL;
	}
	shared_region_alloc(guest);
	return guest;
}

struct fg_guest *fg_guest_create(struct fg_host *host, const struct fg_guest_config *config)
{
	struct fg_guest *guest = fg_guest_try_create(host, config);

	if (!guest)
		fg_die("cannot make adapter %s", config->name);
	return guest;
}

void fg_guest_unplug(struct fg_guest *guest)
{
	if (guest->adapter)
		pvr_adapter_destroy(guest->adapter);
	guest->adapter = NULL;
	if (guest->uar_shm)
		munmap(guest->uar_shm, PVR_BAR_UAR_SIZE);
	guest->uar_shm = NULL;
}

void fg_guest_destroy(struct fg_guest *guest)
{
	if (!guest)
		return;
	fg_guest_unplug(guest);
	LIST_REMOVE(guest, of_host);
	fg_buf_exit(&guest->async_ring);
	fg_buf_exit(&guest->cq_ring);
	fg_ram_exit(&guest->ram);
	free(guest);
}

struct fg_guest *fg_guest_start_as(struct fg_host *host, const struct fg_guest_config *config)
{
	struct fg_guest *guest = fg_guest_create(host, config);
	uint8_t gid[16];
	uint32_t err;

	err = fg_guest_boot(guest);
	if (err)
		fg_die("%s: probe: ERR 0x%x", guest->name, err);
	fg_gid_from_mac(gid, guest->config.mac);
	err = fg_bind_gid(guest, 0, gid);
	if (err)
		fg_die("%s: default GID: ERR 0x%x", guest->name, err);
	return guest;
}

struct fg_guest *fg_guest_start_on(struct fg_host *host, uint32_t number, unsigned int worker)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, number);
	config.worker = worker;
	return fg_guest_start_as(host, &config);
}

struct fg_guest *fg_guest_start(struct fg_host *host, uint32_t number)
{
	return fg_guest_start_on(host, number, 0);
}

void fg_dsr_fill(struct fg_guest *guest)
{
	struct pvr_dsr *dsr = guest->dsr;

	memset(dsr, 0, PVR_PAGE_SIZE);
	dsr->driver_version = guest->config.driver_version;
	dsr->gos_info = PVR_GOS_INFO(PVR_GOS_BITS_64, PVR_GOS_TYPE_LINUX, 1);
	dsr->cmd_slot_dma = guest->cmd_gpa;
	dsr->resp_slot_dma = guest->resp_gpa;
	dsr->async_ring.num_pages = guest->config.ring_pages;
	dsr->async_ring.pdir_dma = guest->async_ring.pdir;
	dsr->cq_ring.num_pages = guest->config.ring_pages;
	dsr->cq_ring.pdir_dma = guest->cq_ring.pdir;
	dsr->uar_pfn = FG_BAR2_GPA >> PVR_PAGE_SHIFT;
}

void fg_dsr_write(struct fg_guest *guest, uint64_t gpa)
{
	fg_reg_write(guest, PVR_REG_DSRLOW, (uint32_t)gpa);
	fg_reg_write(guest, PVR_REG_DSRHIGH, (uint32_t)(gpa >> 32));
}

bool fg_dsr_accepted(const struct fg_guest *guest)
{
	return guest->dsr->caps.max_uar && guest->dsr->caps.gid_types;
}

uint32_t fg_guest_boot(struct fg_guest *guest)
{
	memset(guest->async_ring.va, 0, PVR_PAGE_SIZE);
	memset(guest->cq_ring.va, 0, PVR_PAGE_SIZE);
	guest->async_head = guest->cq_head = 0;
	guest->uar_next = 1;
	fg_dsr_fill(guest);
	if (guest->config.ext)
		fg_reg_write(guest, PVR_REG_EXT_ACK, guest->config.ext);
	fg_dsr_write(guest, guest->dsr_gpa);
	if (!fg_dsr_accepted(guest))
		return UINT32_MAX;
	guest->features = fg_stats(guest).features;
	fg_reg_write(guest, PVR_REG_IMR, PVR_IMR_ALL_ENABLED);
	return fg_ctl(guest, PVR_CTL_ACTIVATE);
}

uint32_t fg_reg_read(struct fg_guest *guest, uint64_t offset)
{
	uint32_t value = 0x5eadbeef;

	pvr_adapter_regs_read(guest->adapter, offset, &value, sizeof(value));
	return value;
}

void fg_reg_write(struct fg_guest *guest, uint64_t offset, uint32_t value)
{
	pvr_adapter_regs_write(guest->adapter, offset, &value, sizeof(value));
}

uint32_t fg_ctl(struct fg_guest *guest, uint32_t value)
{
	fg_reg_write(guest, PVR_REG_CTL, value);
	return fg_reg_read(guest, PVR_REG_ERR);
}

void fg_uar_write(struct fg_guest *guest, uint32_t page, uint32_t offset, uint32_t value)
{
	if (guest->uar_shm) {
		__atomic_store_n(guest->uar_shm +
					 (page * (uint64_t)PVR_PAGE_SIZE + offset) / sizeof(value),
				 value, __ATOMIC_RELEASE);
		return;
	}
	pvr_adapter_uar_write(guest->adapter, (uint64_t)page * PVR_PAGE_SIZE + offset, &value,
			      sizeof(value));
}

struct pvr_adapter_stats fg_stats(const struct fg_guest *guest)
{
	struct pvr_adapter_stats stats;

	memset(&stats, 0, sizeof(stats));
	pvr_adapter_get_stats(guest->adapter, &stats);
	return stats;
}
