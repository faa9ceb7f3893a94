// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Segments of all kinds. */
#include "segment/segment.h"

#include <stdio.h>
#include <string.h>

#include "base/unix_socket.h"
#include "segment/kind.h"

static const struct pvr_segment_kind *const kinds[] = { &pvr_segment_stream, &pvr_segment_packet,
							&pvr_segment_tap };

struct pvr_segment *pvr_segment_create(const struct pvr_segment_env *env, const char *wire,
				       struct pvr_error *err)
{
	size_t i, len;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		len = strlen(kinds[i]->prefix);
		if (!strncmp(wire, kinds[i]->prefix, len))
			return kinds[i]->create(env, wire + len, err);
	}
	pvr_fail(err, "wire '%s' is neither unix:PATH, eth:INTERFACE nor tap:NAME", wire);
	return NULL;
}

struct pvr_port *pvr_segment_port(const struct pvr_segment *segment)
{
	return segment->port;
}

void pvr_segment_destroy(struct pvr_segment *segment)
{
	if (segment)
		segment->kind->destroy(segment);
}

void pvr_segment_init(struct pvr_segment *segment, const struct pvr_segment_kind *kind,
		      const struct pvr_segment_env *env, const char *where)
{
	segment->kind = kind;
	segment->loop = env->loop;
	segment->ops = env->ops;
	segment->opaque = env->opaque;
	snprintf(segment->name, sizeof(segment->name), "%s", env->name);
	snprintf(segment->where, sizeof(segment->where), "%s", where);
}

void pvr_segment_say(const struct pvr_segment *segment, enum pvr_log_level level, const char *what,
		     const char *why)
{
	char line[320];

	snprintf(line, sizeof(line), "wire %s%s: %s%s", segment->kind->prefix, segment->where, what,
		 why);
	segment->ops->log(segment->opaque, level, segment->name, line);
}
