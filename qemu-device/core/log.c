// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Log lines, and their rate limit per guest. */
#include <stdio.h>

#include "core/adapter.h"

#define LINE_MAX_LEN 256
#define GUEST_LINES 20 /* per GUEST_PERIOD_NS */
#define GUEST_PERIOD_NS 5000000000ull

static void log_line(struct pvr_engine *engine, const struct pvr_adapter *adapter,
		     enum pvr_log_level level, const char *fmt, va_list ap)
{
	char line[LINE_MAX_LEN];

	vsnprintf(line, sizeof(line), fmt, ap);
	engine->ops->log(engine->opaque, level, adapter ? adapter->name : NULL, line);
}

void pvr_log(struct pvr_engine *engine, struct pvr_adapter *adapter, enum pvr_log_level level,
	     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(engine, adapter, level, fmt, ap);
	va_end(ap);
}

/* Begin a new period, and report the suppressed lines of the last one. */
static void limit_restart(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_log_limit *limit = &adapter->log_limit;

	if (limit->suppressed)
		pvr_log(adapter->engine, adapter, PVR_LOG_WARN,
			"%u more messages about this guest were suppressed", limit->suppressed);
	*limit = (struct pvr_log_limit){ .since = now };
}

void pvr_log_limited(struct pvr_adapter *adapter, enum pvr_log_level level, const char *fmt, ...)
{
	struct pvr_log_limit *limit = &adapter->log_limit;
	uint64_t now = pvr_now(adapter->engine);
	va_list ap;

	if (now - limit->since >= GUEST_PERIOD_NS)
		limit_restart(adapter, now);
	if (limit->count++ >= GUEST_LINES) {
		limit->suppressed++;
		return;
	}
	va_start(ap, fmt);
	log_line(adapter->engine, adapter, level, fmt, ap);
	va_end(ap);
}
