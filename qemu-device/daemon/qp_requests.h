/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Replies of the control socket about queue pairs. */
#ifndef PVR_DAEMON_QP_REQUESTS_H
#define PVR_DAEMON_QP_REQUESTS_H

#include <json-c/json.h>

#include "base/error.h"
#include "engine.h"

/* An entry of the reply to "qps". */
struct json_object *pvr_describe_qp(const struct pvr_qp_info *qp);
/*
 * Adds "qp", all about the queue pair of @number: decimal, or hexadecimal after 0x. Return:
 * false with @err filled.
 */
bool pvr_put_qp(struct pvr_adapter *adapter, const char *number, struct json_object *reply,
		struct pvr_error *err);

#endif /* PVR_DAEMON_QP_REQUESTS_H */
