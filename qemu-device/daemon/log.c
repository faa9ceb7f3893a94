// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The daemon's log: one line per event on stderr. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"

#define LOG_LEVELS (PVR_LOG_DEBUG + 1)

static struct {
	enum pvr_log_level level;
	bool timestamps;
} log_state = { .level = PVR_LOG_INFO };

static const char *const level_names[LOG_LEVELS] = {
	[PVR_LOG_ERR] = "error",
	[PVR_LOG_WARN] = "warn",
	[PVR_LOG_INFO] = "info",
	[PVR_LOG_DEBUG] = "debug",
};

/* journald strips this prefix and uses it as the priority, see sd-daemon(3). */
static const char *const journal_prefixes[LOG_LEVELS] = {
	[PVR_LOG_ERR] = "<3>",
	[PVR_LOG_WARN] = "<4>",
	[PVR_LOG_INFO] = "<6>",
	[PVR_LOG_DEBUG] = "<7>",
};

void pvrd_log_timestamps(bool on)
{
	log_state.timestamps = on;
}

void pvrd_log_set_level(enum pvr_log_level level)
{
	__atomic_store_n(&log_state.level, level, __ATOMIC_RELAXED);
}

enum pvr_log_level pvrd_log_level(void)
{
	return __atomic_load_n(&log_state.level, __ATOMIC_RELAXED);
}

bool pvrd_log_parse_level(const char *name, enum pvr_log_level *level)
{
	unsigned int i;

	for (i = 0; i < LOG_LEVELS; i++) {
		if (!strcmp(name, level_names[i])) {
			*level = (enum pvr_log_level)i;
			return true;
		}
	}
	return false;
}

static void format_time(char *buf, size_t size)
{
	struct timespec ts;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	len = strftime(buf, size, "%H:%M:%S", &tm);
	snprintf(buf + len, size - len, ".%06ld ", ts.tv_nsec / 1000);
}

void pvrd_log(enum pvr_log_level level, const char *adapter, const char *fmt, ...)
{
	char text[900], line[1024], when[32] = "";
	va_list ap;
	int len;

	if (level > pvrd_log_level())
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (log_state.timestamps)
		format_time(when, sizeof(when));
	len = snprintf(line, sizeof(line), "%s%spvrdmad: %s%s%s\n",
		       getenv("JOURNAL_STREAM") ? journal_prefixes[level] : "", when,
		       adapter ? adapter : "", adapter ? ": " : "", text);
	/* One write() per line: lines of several threads and processes do not mix. */
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* stderr is gone: there is no other place to report it */
}
