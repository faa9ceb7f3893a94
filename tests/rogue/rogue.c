// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A pvrdmad whose device has faults: it executes each request, and then reports a wrong
 * result. The file $PVR_FAULTS/ADAPTER names the current fault of an adapter; without
 * that file the adapter works correctly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

void __real_pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf,
				  size_t len);
void __real_pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
				   size_t len);
void __wrap_pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf,
				  size_t len);
void __wrap_pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
				   size_t len);
void __wrap_pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
			bool solicited);

/* Exit if the name is unknown: a test without its fault would prove nothing. */
static const struct fault *fault_named(const char *name)
{
	const struct fault *fault = fault_find(name);

	if (fault)
		return fault;
	fprintf(stderr, "pvrdmad-rogue: there is no fault '%s'\n", name);
	exit(EXIT_FAILURE);
}

static const struct fault *fault_of(const struct pvr_adapter *adapter)
{
	const char *folder = getenv("PVR_FAULTS");
	char path[4096], name[64] = "";
	FILE *file;

	if (!folder)
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", folder, pvr_adapter_name(adapter));
	file = fopen(path, "r");
	if (!file)
		return NULL;
	if (fscanf(file, "%63s", name) != 1)
		name[0] = 0;
	fclose(file);
	return name[0] ? fault_named(name) : NULL;
}

static void apply(const struct fault *fault, const struct fault_site *site)
{
	if (fault->apply)
		fault->apply(site);
	else
		memcpy((char *)site->data + fault->offset, &fault->value, fault->size);
}

/* The GSI QP is exempt: without it ib_core registers no device. */
static bool is_about(const struct fault *fault, const union pvr_cmd_req *req)
{
	if (fault->cmd == FAULT_ANY_CMD)
		return true;
	return req && req->hdr.cmd == fault->cmd &&
	       (fault->cmd != PVR_CMD_CREATE_QP || req->create_qp.qp_type != PVR_QPT_GSI);
}

static bool is_reg(const struct fault *fault, uint64_t offset)
{
	return fault && fault->when == FAULT_REGISTER && fault->offset == offset;
}

void __wrap_pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf,
				  size_t len)
{
	const struct fault *fault = fault_of(adapter);

	__real_pvr_adapter_regs_read(adapter, offset, buf, len);
	if (is_reg(fault, offset) && len == fault->size && is_about(fault, adapter->cmd_shm))
		memcpy(buf, &fault->value, len);
}

static void after_dsr(struct pvr_adapter *adapter, const struct fault *fault)
{
	struct fault_site site = { .adapter = adapter };

	if (fault->when != FAULT_CAPS || !adapter->dsr_shm)
		return;
	site.data = &adapter->dsr_shm->caps;
	apply(fault, &site);
}

/* The driver may poll the slot (PVR_EXT_RESP_POLL): it never holds the correct response. */
static void request(struct pvr_adapter *adapter, const struct fault *fault, const void *buf,
		    size_t len)
{
	const size_t key = sizeof(uint64_t);
	void *slot_shm = adapter->resp_shm;
	union pvr_cmd_resp answer;
	struct fault_site site = {
		.adapter = adapter,
		.req = adapter->cmd_shm,
		.data = &answer,
	};

	memcpy(&answer, slot_shm, sizeof(answer));
	adapter->resp_shm = &answer;
	__real_pvr_adapter_regs_write(adapter, PVR_REG_REQUEST, buf, len);
	adapter->resp_shm = slot_shm;
	if (is_about(fault, site.req))
		apply(fault, &site);
	if (answer.hdr.err) /* a driver that does not poll the slot reads ERR */
		adapter->err = answer.hdr.err;
	memcpy((uint8_t *)slot_shm + key, (uint8_t *)&answer + key, sizeof(answer) - key);
	__atomic_store_n((uint64_t *)slot_shm, answer.hdr.response, __ATOMIC_RELEASE);
}

void __wrap_pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
				   size_t len)
{
	const struct fault *fault = fault_of(adapter);

	if (fault && offset == PVR_REG_REQUEST && adapter->resp_shm &&
	    (fault->when == FAULT_RESPONSE || fault->when == FAULT_EVENT)) {
		request(adapter, fault, buf, len);
		return;
	}
	__real_pvr_adapter_regs_write(adapter, offset, buf, len);
	if (fault && offset == PVR_REG_DSRHIGH)
		after_dsr(adapter, fault);
}

/* CQs of programs have no faults: the driver is under test. */
void __wrap_pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
			bool solicited)
{
	struct pvr_adapter *adapter = qp->adapter;
	struct fault_site site = {
		.adapter = adapter,
		.qp = qp,
		.cq = cq,
		.data = cqe,
		.cqe = cqe,
		.solicited = solicited,
	};
	const struct fault *fault = NULL;

	if (cq->uc == &adapter->kernel_uc)
		fault = fault_of(adapter);
	if (fault && fault->when == FAULT_COMPLETION)
		apply(fault, &site);
	__real_pvr_cq_push(qp, cq, cqe, solicited);
	if (fault && fault->when == FAULT_COMPLETED)
		apply(fault, &site);
}
