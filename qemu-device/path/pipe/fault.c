// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FAULT frames: filled, and executed by the responder. */
#include "path/pipe/fault.h"

#include <endian.h>
#include <string.h>

#include "core/objects.h"

static const uint16_t statuses[PVR_FRAME_FAULT_NUM] = {
	[PVR_FRAME_FAULT_INVALID_REQUEST] = PVRDMA_WC_REM_INV_REQ_ERR,
	[PVR_FRAME_FAULT_ACCESS] = PVRDMA_WC_REM_ACCESS_ERR,
	[PVR_FRAME_FAULT_OPERATION] = PVRDMA_WC_REM_OP_ERR,
	[PVR_FRAME_FAULT_RECV_LENGTH] = PVRDMA_WC_LOC_LEN_ERR,
	[PVR_FRAME_FAULT_RECV_QP_OPERATION] = PVRDMA_WC_LOC_QP_OP_ERR,
	[PVR_FRAME_FAULT_RECV_PROTECTION] = PVRDMA_WC_LOC_PROT_ERR,
	[PVR_FRAME_FAULT_RECV_ACCESS] = PVRDMA_WC_LOC_ACCESS_ERR,
	[PVR_FRAME_FAULT_RECV_GENERAL] = PVRDMA_WC_GENERAL_ERR,
	[PVR_FRAME_FAULT_RECV_FATAL] = PVRDMA_WC_FATAL_ERR,
};

static enum pvr_frame_fault fault_of(uint16_t status)
{
	enum pvr_frame_fault fault = PVR_FRAME_FAULT_NUM - 1;

	while (fault > PVR_FRAME_FAULT_INVALID_REQUEST && statuses[fault] != status)
		fault--;
	return fault;
}

bool pvr_pipe_fault_is_of_recv(uint16_t status)
{
	return fault_of(status) >= PVR_FRAME_FAULT_RECV_LENGTH;
}

void pvr_pipe_fault_fill(struct pvr_frame_request *frame, uint16_t status)
{
	const struct pvr_frame_request request = *frame;

	*frame = (struct pvr_frame_request){
		.frame.type = PVR_FRAME_FAULT,
		.frame.flags = request.frame.flags & (PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC),
		.op = request.op,
		.gid_type = request.gid_type,
		.fault = htole16(fault_of(status)),
		.epoch = request.epoch,
		.src_qpn = request.src_qpn,
		.dst_qpn = request.dst_qpn,
		.psn = request.psn,
		.psns = request.psns,
		.srqn = request.srqn,
	};
	memcpy(frame->sgid, request.sgid, sizeof(frame->sgid));
	memcpy(frame->dgid, request.dgid, sizeof(frame->dgid));
}

uint16_t pvr_pipe_fault_status(const struct pvr_frame_request *frame)
{
	return statuses[le16toh(frame->fault)];
}

struct pvr_syndrome pvr_pipe_fault_execute(struct pvr_qp *to, const struct pvr_request *request,
					   const struct pvr_frame_request *frame)
{
	static const char why[] = "a fault of the operator of its peer's host (pvrdmactl fault)";
	enum pvrdma_wc_status status = pvr_pipe_fault_status(frame);
	struct pvr_syndrome syndrome;

	if (!pvr_pipe_fault_is_of_recv(status))
		return pvr_responder_fail(to, status, why);
	syndrome = pvr_responder_fail_recv(to, request, status, why);
	if (syndrome.kind != PVR_SYN_NONE || to->type == PVR_QPT_UC)
		return syndrome;
	return (struct pvr_syndrome){ .kind = PVR_SYN_RNR, .wait_ns = pvr_rnr_timer_ns(to) };
}
