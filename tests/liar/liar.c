// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A pvrdmad whose device lies: it does what is asked of it, and then says something
 * else. Which lie an adapter tells is what the file $PVR_LIES/ADAPTER says at that
 * moment; without one it is honest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lies.h"

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

/* A name that nobody knows ends us: a test that tells no lie would prove nothing. */
static const struct lie *lie_named(const char *name)
{
	const struct lie *lie = lie_find(name);

	if (lie)
		return lie;
	fprintf(stderr, "pvrdmad-liar: there is no lie '%s'\n", name);
	exit(EXIT_FAILURE);
}

static const struct lie *lie_of(const struct pvr_adapter *adapter)
{
	const char *folder = getenv("PVR_LIES");
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
	return name[0] ? lie_named(name) : NULL;
}

static void tell(const struct lie *lie, const struct lie_moment *moment)
{
	if (lie->tell)
		lie->tell(moment);
	else
		memcpy((char *)moment->told + lie->offset, &lie->value, lie->size);
}

/* The GSI's QP is left alone: without it nobody could make another one. */
static bool is_about(const struct lie *lie, const union pvr_cmd_req *req)
{
	if (lie->cmd == LIE_ANY_CMD)
		return true;
	return req && req->hdr.cmd == lie->cmd &&
	       (lie->cmd != PVR_CMD_CREATE_QP || req->create_qp.qp_type != PVR_QPT_GSI);
}

static bool is_reg(const struct lie *lie, uint64_t offset)
{
	return lie && lie->when == LIE_REGISTER && lie->offset == offset;
}

void __wrap_pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf,
				  size_t len)
{
	const struct lie *lie = lie_of(adapter);

	__real_pvr_adapter_regs_read(adapter, offset, buf, len);
	if (is_reg(lie, offset) && len == lie->size && is_about(lie, adapter->cmd_shm))
		memcpy(buf, &lie->value, len);
}

static void after_dsr(struct pvr_adapter *adapter, const struct lie *lie)
{
	struct lie_moment moment = { .adapter = adapter };

	if (lie->when != LIE_CAPS || !adapter->dsr_shm)
		return;
	moment.told = &adapter->dsr_shm->caps;
	tell(lie, &moment);
}

/* The driver may be looking at the slot already (PVR_EXT_ANSWER), so it never sees the truth in it. */
static void request(struct pvr_adapter *adapter, const struct lie *lie, const void *buf, size_t len)
{
	const size_t key = sizeof(uint64_t);
	void *slot_shm = adapter->resp_shm;
	union pvr_cmd_resp answer;
	struct lie_moment moment = {
		.adapter = adapter,
		.req = adapter->cmd_shm,
		.told = &answer,
	};

	memcpy(&answer, slot_shm, sizeof(answer));
	adapter->resp_shm = &answer;
	__real_pvr_adapter_regs_write(adapter, PVR_REG_REQUEST, buf, len);
	adapter->resp_shm = slot_shm;
	if (is_about(lie, moment.req))
		tell(lie, &moment);
	memcpy((uint8_t *)slot_shm + key, (uint8_t *)&answer + key, sizeof(answer) - key);
	__atomic_store_n((uint64_t *)slot_shm, answer.hdr.response, __ATOMIC_RELEASE);
}

void __wrap_pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
				   size_t len)
{
	const struct lie *lie = lie_of(adapter);

	if (lie && offset == PVR_REG_REQUEST && adapter->resp_shm &&
	    (lie->when == LIE_RESPONSE || lie->when == LIE_EVENT)) {
		request(adapter, lie, buf, len);
		return;
	}
	__real_pvr_adapter_regs_write(adapter, offset, buf, len);
	if (lie && offset == PVR_REG_DSRHIGH)
		after_dsr(adapter, lie);
}

/* Programs are told the truth: this is about the driver. */
void __wrap_pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
			bool solicited)
{
	struct pvr_adapter *adapter = qp->adapter;
	struct lie_moment moment = {
		.adapter = adapter,
		.qp = qp,
		.cq = cq,
		.cqe = cqe,
		.solicited = solicited,
	};
	const struct lie *lie = NULL;

	if (cq->uc == &adapter->kernel_uc)
		lie = lie_of(adapter);
	if (lie && lie->when == LIE_COMPLETION)
		lie->tell(&moment);
	else
		__real_pvr_cq_push(qp, cq, cqe, solicited);
}
