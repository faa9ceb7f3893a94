// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames of a segment that tests change and send again. */
#include "segment.h"

#include <stdlib.h>

/* The guests of this program are on two engines, see t_setup_host(). */
TEST_INIT
{
	setenv("FG_SEGMENT", "1", 1);
}

struct segment_frame segment_last(struct t_env *env, unsigned int host)
{
	struct segment_frame last = { 0 };
	size_t bytes, payload, end;
	const uint8_t *data = fg_segment_last(env->segment, host, &bytes);

	assert_non_null(data);
	assert_int_equal(pvr_roce_parse(data, bytes, &last.frame, &payload, &end), PVR_ROCE_OK);
	assert_int_equal(pvr_roce_check_icrc(data, end), PVR_ROCE_OK);
	memcpy(last.payload, data + payload, last.frame.payload_bytes);
	return last;
}

void segment_inject(struct t_env *env, unsigned int host, const struct segment_frame *frame)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	size_t headers = pvr_roce_build(buf, &frame->frame), bytes;

	memcpy(buf + headers, frame->payload, frame->frame.payload_bytes);
	bytes = pvr_roce_finish(buf, headers, &frame->frame);
	buf[bytes - 1] = (uint8_t)(buf[bytes - 1] + frame->icrc_error);
	fg_segment_inject(env->segment, host, buf, bytes);
	fg_run(env->host);
}

T_SHARED_SETUP(written, rc_connected)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, SEGMENT_LEN);
	await_written(&env->a, 1);
}

struct segment_frame segment_next_write(struct t_env *env)
{
	fg_segment_rules(env->segment)->cut = true;
	memset(env->a.mr.va, 0x77, SEGMENT_LEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, SEGMENT_LEN);
	fg_run(env->host);
	fg_segment_rules(env->segment)->cut = false;
	return segment_last(env, 0);
}
