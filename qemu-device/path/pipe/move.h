/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* TAKE, TAKEN and MOVED frames: adapters that move to another host, see core/move.h. */
#ifndef PVR_PIPE_MOVE_H
#define PVR_PIPE_MOVE_H

#include "engine.h"
#include "path/pipe/frame.h"

struct pvr_adapter;
struct pvr_host;
struct pvr_rsp_conn;

/* See struct pvr_move_ops. */
bool pvr_pipe_ask(struct pvr_adapter *adapter, const char *host,
		  const uint8_t token[PVR_TOKEN_BYTES], bool bound);
void pvr_pipe_ask_others(struct pvr_adapter *adapter, const char *host,
			 const uint8_t token[PVR_TOKEN_BYTES],
			 bool (*may)(const struct pvr_adapter *adapter, struct pvr_host *host));
struct pvr_host *pvr_pipe_tell_moved(struct pvr_adapter *adapter, struct pvr_host *told,
				     uint32_t *work);

/* @load: number of the load; 0: none */
void pvr_pipe_recv_take(struct pvr_rsp_conn *in, const char *fabric,
			const struct pvr_frame_take *frame, uint64_t load);
void pvr_pipe_recv_taken(struct pvr_host *from, const char *fabric,
			 const struct pvr_frame_take *frame);
void pvr_pipe_recv_moved(struct pvr_rsp_conn *in, const char *fabric,
			 const struct pvr_frame_moved *frame);

#endif /* PVR_PIPE_MOVE_H */
