/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Good-byes: why a connection ends. */
#include "path/pipe/bye.h"

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

static const char *const reasons[] = {
	[PVR_BYE_DONE] = "not needed any more",
	[PVR_BYE_VERSION] = "no common version",
	[PVR_BYE_IDENTITY] = "not the host that it says it is",
	[PVR_BYE_PROTOCOL] = "protocol error",
	[PVR_BYE_REPLACED] = "replaced by a newer connection",
	[PVR_BYE_LIMIT] = "limit reached",
	[PVR_BYE_DEVICE] = "no RDMA",
};

static_assert(sizeof(reasons) / sizeof(reasons[0]) == PVR_BYE_NUM, "a reason is missing");

/* A text that is no text would be a reason to say good-bye in turn. */
static void fill_text(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
}

void pvr_bye_fill(union pvr_any_frame *any, enum pvr_bye reason, const char *text)
{
	memset(&any->bye, 0, sizeof(any->bye));
	any->frame.size = htole32(sizeof(any->bye));
	any->frame.type = PVR_FRAME_BYE;
	any->bye.reason = htole32(reason);
	fill_text(any->bye.text, sizeof(any->bye.text), text);
}

const char *pvr_bye_read(struct pvr_pipe_rx *box, const struct pvr_frame_bye *bye)
{
	snprintf(box->said, sizeof(box->said), "it says: %s%s%s", reasons[le32toh(bye->reason)],
		 bye->text[0] ? ": " : "", bye->text);
	return box->said;
}
