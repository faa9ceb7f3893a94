/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Good-byes: why a connection ends. */
#ifndef PVR_BYE_H
#define PVR_BYE_H

#include "path/pipe/rx.h"
#include "path/pipe/frame.h"

/* All of a BYE, so that the caller can send sizeof(struct pvr_frame_bye) bytes of @any. */
void pvr_bye_fill(union pvr_any_frame *any, enum pvr_bye reason, const char *text);
/* The other side has said one: that is why nothing more comes. Return: what it said. */
const char *pvr_bye_read(struct pvr_pipe_rx *box, const struct pvr_frame_bye *bye);

#endif /* PVR_BYE_H */
