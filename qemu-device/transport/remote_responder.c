/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Responders to requesters on other hosts: no queue pair here answers yet. */
#include "transport/link.h"

enum pvr_handled pvr_remote_request(struct pvr_in *in, const char *fabric,
				    const struct pvr_frame_request *frame, uint8_t *payload)
{
	union pvr_any_frame any = {
		.ack = {
			.frame = { .type = PVR_FRAME_ACK, .fabric = frame->frame.fabric },
			.verdict = PVR_WIRE_NOBODY,
			.epoch = frame->epoch,
			.qpn = frame->src_qpn,
			.psn = frame->psn,
		},
	};

	(void)fabric;
	(void)payload;
	memcpy(any.ack.gid, frame->sgid, sizeof(any.ack.gid));
	if (!(frame->frame.flags & PVR_REQUEST_F_UC))
		pvr_in_reply(in, &any, sizeof(any.ack), NULL, 0, 0);
	return PVR_HANDLED;
}

void pvr_remote_request_end(struct pvr_in *in)
{
	(void)in;
}
