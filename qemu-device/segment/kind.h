/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kinds of segments. */
#ifndef PVR_SEGMENT_KIND_H
#define PVR_SEGMENT_KIND_H

#include "base/unix_socket.h"
#include "segment/segment.h"

struct pvr_segment_kind {
	const char *prefix; /* of "wire" */
	/* @where: behind the prefix. Return: NULL with @err filled */
	struct pvr_segment *(*create)(const struct pvr_segment_env *env, const char *where,
				      struct pvr_error *err);
	void (*destroy)(struct pvr_segment *segment);
};

/* The first member of each kind's structure. */
struct pvr_segment {
	const struct pvr_segment_kind *kind;
	struct pvr_port *port;
	struct pvr_loop *loop;
	const struct pvr_engine_ops *ops;
	void *opaque;
	char name[PVR_NAME_MAX]; /* of the adapter */
	char where[PVR_SOCKET_PATH_MAX + 1];
};

extern const struct pvr_segment_kind pvr_segment_stream;
extern const struct pvr_segment_kind pvr_segment_packet;
extern const struct pvr_segment_kind pvr_segment_tap;

void pvr_segment_init(struct pvr_segment *segment, const struct pvr_segment_kind *kind,
		      const struct pvr_segment_env *env, const char *where);
/* Log "wire PREFIXWHERE: @what@why". */
void pvr_segment_say(const struct pvr_segment *segment, enum pvr_log_level level, const char *what,
		     const char *why);

#endif /* PVR_SEGMENT_KIND_H */
