/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CLOSE frames: the reason why a connection ends. */
#ifndef PVR_CLOSE_H
#define PVR_CLOSE_H

#include "path/pipe/rx.h"
#include "path/pipe/frame.h"

/*
 * Fills a whole CLOSE frame. The caller sends sizeof(struct pvr_frame_close) bytes of
 * @any.
 */
void pvr_close_fill(union pvr_any_frame *any, enum pvr_close_reason reason, const char *text);
/*
 * A CLOSE has arrived. Return: a text with its reason, stored in @box; no more frames are
 * read.
 */
const char *pvr_close_read(struct pvr_pipe_rx *box, const struct pvr_frame_close *close);

#endif /* PVR_CLOSE_H */
