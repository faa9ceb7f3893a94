/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams from other hosts. */
#include "transport/link.h"

enum pvr_handled pvr_remote_datagram(struct pvr_in *in, const char *fabric,
				     const struct pvr_frame_datagram *frame, uint8_t *payload)
{
	(void)in;
	(void)fabric;
	(void)frame;
	(void)payload;
	return PVR_HANDLED;
}
