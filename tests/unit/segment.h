/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Frames of a segment that tests change and send again. */
#ifndef UNIT_SEGMENT_H
#define UNIT_SEGMENT_H

#include "ends.h"
#include "roce/frame.h"
#include "roce/opcode.h"

#define SEGMENT_GRH 40u

struct segment_frame {
	struct pvr_roce_frame frame;
	uint8_t payload[PVR_ROCE_PAYLOAD_MAX];
	uint8_t icrc_error; /* is added to the ICRC */
};

/* The last frame that @host has sent. */
struct segment_frame segment_last(struct t_env *env, unsigned int host);
/* It arrives at @host, with a right ICRC but for icrc_error, and the engines run. */
void segment_inject(struct t_env *env, unsigned int host, const struct segment_frame *frame);

#define SEGMENT_LEN 100u

/* Connected RC ends, of which a has written SEGMENT_LEN bytes to b. */
int t_setup_written(void **state);
/* The next WRITE of a, of that length, which has not arrived: its bytes are 0x77. */
struct segment_frame segment_next_write(struct t_env *env);

#endif /* UNIT_SEGMENT_H */
