// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Registers, and the handshake with the driver. */
#include <errno.h>
#include <string.h>

#include "core/objects.h"
#include "core/dirty.h"
#include "core/compiler.h"
#include "ctrl/ctrl.h"
#include "rdma/worker.h"
#include "rdma/event.h"
#include "ctrl/revision.h"

void pvr_regs_reset(struct pvr_adapter *adapter)
{
	adapter->state = PVR_ADAPTER_IDLE;
	adapter->dsr_low = 0;
	adapter->dsr_high = 0;
	adapter->err = 0;
	adapter->icr = 0;
	adapter->imr = PVR_IMR_ALL_ENABLED;
	memset(adapter->pending, 0, sizeof(adapter->pending));
	memset(adapter->qp_errors, 0, sizeof(adapter->qp_errors));
	adapter->ext_ack = 0;
	adapter->features = 0;
	adapter->clock_high = 0;
	adapter->driver_version = 0;
	adapter->version = 0;
	adapter->uar_pfn = 0;
	adapter->dsr_shm = NULL;
	adapter->cmd_shm = NULL;
	adapter->resp_shm = NULL;
}

/*
 * The driver's next access must find the reset complete. An embedder with several adapters
 * has called pvr_adapter_prepare_reset(), so that one step is left.
 */
static void reset_now(struct pvr_adapter *adapter)
{
	pvr_adapter_do_reset(adapter);
	pvr_cmd_finish(adapter);
}

/* ---------------------------------------------------------------- the DSR */

static const char *dsr_check(const struct pvr_dsr *dsr)
{
	if (dsr->driver_version < PVR_VERSION_ROCEV1)
		return "the driver's version is below 17";
	if (dsr->cmd_slot_dma == dsr->resp_slot_dma)
		return "command and response slot are one page";
	return NULL;
}

/* @dsr: a private copy. Return: NULL, or the reason of a refusal. */
static const char *dsr_attach(struct pvr_adapter *adapter, const struct pvr_dsr *dsr)
{
	const char *why = dsr_check(dsr);

	if (why)
		return why;
	adapter->cmd_shm = pvr_ram_page(&adapter->ram, dsr->cmd_slot_dma, true);
	adapter->resp_shm = pvr_ram_page(&adapter->ram, dsr->resp_slot_dma, true);
	if (!adapter->cmd_shm || !adapter->resp_shm)
		return "a command slot is not a page of RAM";
	if (pvr_events_attach(adapter, dsr))
		return "an event ring has a bad size or page directory";
	return NULL;
}

static void dsr_write_caps(struct pvr_adapter *adapter)
{
	struct pvr_caps caps;

	pvr_caps_fill(adapter, &caps);
	memcpy(&adapter->dsr_shm->caps, &caps, sizeof(caps));
	pvr_dirty(adapter, &adapter->dsr_shm->caps, sizeof(caps));
}

/*
 * A write to DSRHIGH first resets the adapter, because a driver may start after a crash
 * of its kernel without a reset. A failure leaves caps zero, which every driver refuses.
 */
static void dsr_load(struct pvr_adapter *adapter)
{
	uint64_t gpa = (uint64_t)adapter->dsr_high << 32 | adapter->dsr_low;
	uint32_t ext_ack = adapter->ext_ack, low = adapter->dsr_low;
	const char *why = "it is not a page of RAM";
	struct pvr_dsr dsr;

	reset_now(adapter);
	adapter->ext_ack = ext_ack;
	adapter->dsr_low = low;
	if (!adapter->bus_master)
		why = "bus mastering is off";
	else
		adapter->dsr_shm = pvr_ram_page(&adapter->ram, gpa, true);
	if (adapter->dsr_shm) {
		pvr_copy_once(&dsr, adapter->dsr_shm, sizeof(dsr));
		why = dsr_attach(adapter, &dsr);
	}
	if (why) {
		pvr_log_guest(adapter, "shared region at %#llx refused: %s",
			      (unsigned long long)gpa, why);
		pvr_regs_reset(adapter);
		adapter->err = EFAULT;
		return;
	}
	adapter->driver_version = dsr.driver_version;
	adapter->version = dsr.driver_version < adapter->revision->version
				   ? dsr.driver_version
				   : adapter->revision->version;
	adapter->features = ext_ack;
	adapter->uar_pfn = adapter->version < PVR_VERSION_PPN64 ? (uint32_t)dsr.uar_pfn
								: dsr.uar_pfn;
	dsr_write_caps(adapter);
	adapter->state = PVR_ADAPTER_READY;
	pvr_info_guest(adapter, "driver version %u attached, extensions %#x",
		       adapter->driver_version, adapter->features);
}

/* ------------------------------------------------------------- registers */

static void write_ctl(struct pvr_adapter *adapter, uint32_t value)
{
	switch (value) {
	case PVR_CTL_ACTIVATE:
		adapter->err = 0;
		if (adapter->state == PVR_ADAPTER_READY) {
			adapter->state = PVR_ADAPTER_ACTIVE;
			/* A state that was read before is not of this life. */
			adapter->move.ran = true;
			pvr_info_guest(adapter, "active");
		} else if (adapter->state != PVR_ADAPTER_ACTIVE) {
			adapter->err = EIO;
		}
		break;
	case PVR_CTL_UNQUIESCE:
		adapter->err = adapter->state == PVR_ADAPTER_FAILED ? EIO : 0;
		break;
	case PVR_CTL_RESET:
		reset_now(adapter);
		break;
	default:
		adapter->err = EINVAL;
		pvr_log_guest(adapter, "CTL %u refused: expected 0, 1 or 2", value);
	}
}

static void write_reg(struct pvr_adapter *adapter, uint64_t reg, uint32_t value)
{
	switch (reg) {
	case PVR_REG_DSRLOW:
		adapter->dsr_low = value;
		break;
	case PVR_REG_DSRHIGH:
		adapter->dsr_high = value;
		dsr_load(adapter);
		break;
	case PVR_REG_CTL:
		write_ctl(adapter, value);
		break;
	case PVR_REG_REQUEST:
		pvr_cmd_finish(adapter);
		if (value == 0)
			pvr_cmd_run(adapter);
		else
			adapter->err = EINVAL;
		break;
	case PVR_REG_IMR:
		adapter->imr = value;
		pvr_interrupt_flush(adapter);
		break;
	case PVR_REG_EXT_ACK:
		adapter->ext_ack = value & adapter->revision->ext;
		break;
	}
}

static uint32_t read_icr(struct pvr_adapter *adapter)
{
	uint32_t icr = adapter->icr;

	adapter->icr = 0;
	return icr;
}

static bool offers(const struct pvr_adapter *adapter, uint32_t ext)
{
	return adapter->revision->ext & ext;
}

static uint32_t read_clock(struct pvr_adapter *adapter)
{
	uint64_t now = offers(adapter, PVR_EXT_CQ_TIMESTAMP) ? pvr_adapter_clock(adapter) : 0;

	adapter->clock_high = now >> 32;
	return (uint32_t)now;
}

static uint32_t read_reg(struct pvr_adapter *adapter, uint64_t reg)
{
	const uint8_t *mac = adapter->mac;

	switch (reg) {
	case PVR_REG_VERSION:
		return adapter->revision->version;
	case PVR_REG_DSRLOW:
		return adapter->dsr_low;
	case PVR_REG_DSRHIGH:
		return adapter->dsr_high;
	case PVR_REG_ERR:
		pvr_cmd_finish(adapter);
		return adapter->err;
	case PVR_REG_ICR:
		return read_icr(adapter);
	case PVR_REG_IMR:
		return adapter->imr;
	case PVR_REG_MACL:
		return mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24;
	case PVR_REG_MACH:
		return mac[4] | mac[5] << 8;
	case PVR_REG_EXT_MAGIC:
		return adapter->revision->ext ? PVR_EXT_MAGIC : 0;
	case PVR_REG_EXT_FEATURES:
		return adapter->revision->ext;
	case PVR_REG_EXT_ACK:
		return adapter->ext_ack;
	case PVR_REG_EXT_CQ_VECTORS:
		return offers(adapter, PVR_EXT_CQ_VECTORS) ? PVR_CQ_VECTORS_MAX : 0;
	case PVR_REG_EXT_CLOCK_LOW:
		return read_clock(adapter);
	case PVR_REG_EXT_CLOCK_HIGH:
		return adapter->clock_high;
	default:
		return 0;
	}
}

/* An embedder that does not postpone accesses waits here for the end of a reset. */
static void finish_reset(struct pvr_adapter *adapter)
{
	if (adapter->job.step && adapter->state == PVR_ADAPTER_IDLE)
		pvr_cmd_finish(adapter);
}

static bool access_ok(struct pvr_adapter *adapter, uint64_t offset, size_t len)
{
	if (len == sizeof(uint32_t) && offset % sizeof(uint32_t) == 0 && offset < PVR_BAR_REGS_SIZE)
		return true;
	adapter->stats.bad_accesses++;
	return false;
}

void pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf, size_t len)
{
	uint32_t value;

	memset(buf, 0xff, len);
	pvr_adapter_lock(adapter);
	if (access_ok(adapter, offset, len)) {
		finish_reset(adapter);
		value = read_reg(adapter, offset);
		memcpy(buf, &value, sizeof(value));
	}
	pvr_adapter_unlock(adapter);
}

void pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			    size_t len)
{
	uint32_t value;

	pvr_adapter_lock(adapter);
	if (access_ok(adapter, offset, len)) {
		memcpy(&value, buf, sizeof(value));
		finish_reset(adapter);
		write_reg(adapter, offset, value);
	}
	pvr_adapter_unlock(adapter);
}
