// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CLOSE frames: the reason why a connection ends. */
#include "path/pipe/close.h"

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

static const char *const reasons[] = {
	[PVR_CLOSE_DONE] = "not needed any more",
	[PVR_CLOSE_VERSION] = "no common version",
	[PVR_CLOSE_IDENTITY] = "the certificate or key is of another host",
	[PVR_CLOSE_PROTOCOL] = "protocol error",
	[PVR_CLOSE_REPLACED] = "replaced by a newer connection",
	[PVR_CLOSE_LIMIT] = "limit reached",
	[PVR_CLOSE_DEVICE] = "no RDMA",
};

static_assert(sizeof(reasons) / sizeof(reasons[0]) == PVR_CLOSE_NUM, "a reason is missing");

/* Replaces characters that are not printable: the peer would refuse the CLOSE. */
static void fill_text(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
}

void pvr_close_fill(union pvr_any_frame *any, enum pvr_close_reason reason, const char *text)
{
	memset(&any->close, 0, sizeof(any->close));
	any->frame.size = htole32(sizeof(any->close));
	any->frame.type = PVR_FRAME_CLOSE;
	any->close.reason = htole32(reason);
	fill_text(any->close.text, sizeof(any->close.text), text);
}

const char *pvr_close_read(struct pvr_pipe_rx *box, const struct pvr_frame_close *close)
{
	snprintf(box->close_text, sizeof(box->close_text), "closed by the peer: %s%s%s",
		 reasons[le32toh(close->reason)], close->text[0] ? ": " : "", close->text);
	return box->close_text;
}
