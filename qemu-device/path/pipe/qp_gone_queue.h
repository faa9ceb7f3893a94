/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QP_GONE frames that wait for a connection to their host.
 *
 * A guest may end before its host has a connection to the peer's host, or while that one is down
 * or full. Without the frame its peers would wait for all their retries, and a queue pair that
 * only receives would wait for ever.
 */
#ifndef PVR_QP_GONE_QUEUE_H
#define PVR_QP_GONE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "path/pipe/frame.h"

/* Maximum frames that wait for a host, and for all hosts of an engine. */
#define PVR_QP_GONE_PER_HOST 4096u
#define PVR_QP_GONE_PER_PIPE 65536u
/* A frame is dropped after so long, so that it cannot reach a later connection of the same numbers. */
#define PVR_QP_GONE_KEPT_NS 60000000000ull

struct pvr_pipe;

struct pvr_qp_gone_kept {
	STAILQ_ENTRY(pvr_qp_gone_kept) link;
	uint64_t since;
	struct pvr_frame_qp_gone frame; /* its fabric's number is not set */
	char fabric[PVR_FRAME_FABRIC_MAX];
};

/* Of a host, under its lock. */
struct pvr_qp_gone_queue {
	STAILQ_HEAD(, pvr_qp_gone_kept) kept;
	uint32_t num;
};

void pvr_qp_gone_queue_init(struct pvr_qp_gone_queue *queue);
void pvr_qp_gone_queue_exit(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe);

/* Return: false if a limit is reached or memory is short: the frame is lost. */
bool pvr_qp_gone_queue_add(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe, uint64_t now,
			   const char *fabric, const struct pvr_frame_qp_gone *frame);
/* Return: the oldest one, which belongs to the caller now; NULL if there is none. */
struct pvr_qp_gone_kept *pvr_qp_gone_queue_take(struct pvr_qp_gone_queue *queue,
						struct pvr_pipe *pipe, uint64_t now);
/* It was taken, and could not be sent: it is the next again. */
void pvr_qp_gone_queue_put_back(struct pvr_qp_gone_queue *queue, struct pvr_qp_gone_kept *kept);
/* Needs no lock. */
void pvr_qp_gone_kept_free(struct pvr_qp_gone_kept *kept, struct pvr_pipe *pipe);

#endif /* PVR_QP_GONE_QUEUE_H */
