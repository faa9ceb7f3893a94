/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Requesters whose peer is on another host: there are none yet. */
#include "transport/link.h"

void pvr_remote_resume(struct pvr_engine *engine, struct pvr_remote *remote)
{
	(void)engine;
	(void)remote;
}
