/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* TAKE, TAKEN, MOVED and REFERRAL frames: adapters that move to another host, see core/move.h. */
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

void pvr_pipe_query(struct pvr_host *host, const char *fabric, const uint8_t gid[16]);

/* Fill the response of this host to a query of @asker. Return: false: there is none. */
bool pvr_pipe_fill_referral(const struct pvr_host *asker, const char *fabric,
			    const struct pvr_frame_gid_query *query,
			    struct pvr_frame_referral *referral);
void pvr_pipe_recv_gid_reply(struct pvr_host *from, const char *fabric,
			     const struct pvr_frame_gid_query *frame);
void pvr_pipe_recv_referral(struct pvr_host *from, const char *fabric,
			    const struct pvr_frame_referral *frame);
/* @load: number of the load; 0: none */
void pvr_pipe_recv_take(struct pvr_rsp_conn *in, const char *fabric,
			const struct pvr_frame_take *frame, uint64_t load);
void pvr_pipe_recv_address(struct pvr_rsp_conn *in, const struct pvr_frame_address *frame);
void pvr_pipe_recv_taken(struct pvr_host *from, const char *fabric,
			 const struct pvr_frame_take *frame);
void pvr_pipe_recv_moved(struct pvr_rsp_conn *in, const char *fabric,
			 const struct pvr_frame_moved *frame);

#endif /* PVR_PIPE_MOVE_H */
