// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* HELLO, the first frame in each direction: identity and negotiation. */
#include <endian.h>
#include <string.h>

#include "net/hello.h"

void pvr_hello_write(union pvr_any_frame *any, const struct pvr_hello *hello)
{
	struct pvr_frame_hello *frame = &any->hello;

	memset(any, 0, sizeof(*any));
	frame->frame.size = htole32(sizeof(*frame));
	frame->frame.type = PVR_FRAME_HELLO;
	frame->magic = htole32(PVR_FRAME_MAGIC);
	frame->version_min = htole16(hello->version_min);
	frame->version_max = htole16(hello->version_max);
	frame->instance = htole64(hello->instance);
	frame->features = htole32(hello->features);
	frame->chunk = htole32(hello->chunk);
	frame->index = hello->index;
	frame->count = hello->count;
	frame->dscp = hello->dscp;
	frame->keepalive_ms = htole32(hello->keepalive_ms);
	snprintf(frame->name, sizeof(frame->name), "%s", hello->name);
}

void pvr_hello_read(const union pvr_any_frame *any, struct pvr_hello *hello)
{
	const struct pvr_frame_hello *frame = &any->hello;

	*hello = (struct pvr_hello){
		.version_min = le16toh(frame->version_min),
		.version_max = le16toh(frame->version_max),
		.instance = le64toh(frame->instance),
		.features = le32toh(frame->features),
		.chunk = le32toh(frame->chunk),
		.index = frame->index,
		.count = frame->count,
		.dscp = frame->dscp,
		.keepalive_ms = le32toh(frame->keepalive_ms),
	};
	memcpy(hello->name, frame->name, sizeof(hello->name));
}

bool pvr_hello_has_version(const struct pvr_hello *hello, struct pvr_error *err)
{
	if (hello->version_min <= PVR_FRAME_VERSION && hello->version_max >= PVR_FRAME_VERSION)
		return true;
	return pvr_fail(err, "the peer has protocol versions %u to %u, expected %u",
			hello->version_min, hello->version_max, PVR_FRAME_VERSION);
}
