/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Answers of responders on other hosts: no queue pair here asks there yet. */
#include "transport/link.h"

void pvr_remote_ack(const struct pvr_route *route, const char *fabric,
		    const struct pvr_frame_ack *frame)
{
	(void)route;
	(void)fabric;
	(void)frame;
}

void pvr_remote_atomic_ack(const struct pvr_route *route, const char *fabric,
			   const struct pvr_frame_atomic_ack *frame)
{
	(void)route;
	(void)fabric;
	(void)frame;
}

enum pvr_handled pvr_remote_read_data(const struct pvr_route *route, const char *fabric,
				      const struct pvr_frame_read_data *frame)
{
	(void)route;
	(void)fabric;
	(void)frame;
	return PVR_HANDLED;
}
