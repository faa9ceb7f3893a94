// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The daemon's log: one line per event on stderr. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/log_ring.h"

#define LOG_LEVELS (PVR_LOG_DEBUG + 1)
#define FLUSH_SEC 2 /* at the end of the process */

static struct {
	enum pvr_log_level level;
	bool timestamps;
	bool has_thread; /* changes while there is one thread that logs */
	pthread_t thread;
	struct pvr_log_ring ring;
} log_state = { .level = PVR_LOG_INFO, .ring = PVR_LOG_RING_INIT };

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

/* One write() per line: lines of several threads and processes do not mix. */
static void write_line(const char *line, size_t len)
{
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* stderr is gone: there is no other place to report it */
}

/* Return: the length. */
static size_t format_line(char *line, size_t size, enum pvr_log_level level, const char *adapter,
			  const char *text)
{
	char when[32] = "";

	if (log_state.timestamps)
		format_time(when, sizeof(when));
	return (size_t)snprintf(line, size, "%s%spvrdmad: %s%s%s\n",
				getenv("JOURNAL_STREAM") ? journal_prefixes[level] : "", when,
				adapter ? adapter : "", adapter ? ": " : "", text);
}

static void report_dropped(uint64_t num)
{
	char text[100], line[PVR_LOG_LINE];

	snprintf(text, sizeof(text), "%llu log lines were dropped: the log's reader is too slow",
		 (unsigned long long)num);
	write_line(line, format_line(line, sizeof(line), PVR_LOG_WARN, NULL, text));
}

/* The only thread that a reader of stderr can stop: it holds no lock while it writes. */
static void *write_lines(void *opaque)
{
	struct pvr_log_slot slot;

	while (pvr_log_ring_take(&log_state.ring, &slot)) {
		if (slot.dropped)
			report_dropped(slot.dropped);
		if (slot.len)
			write_line(slot.text, slot.len);
	}
	return NULL;
}

bool pvrd_log_start(struct pvr_error *err)
{
	sigset_t set, before;
	int ret;

	/* Signals of the process are for the first thread. */
	sigfillset(&set);
	sigdelset(&set, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &set, &before);
	ret = pthread_create(&log_state.thread, NULL, write_lines, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		return pvr_fail(err, "cannot start the log's thread: %s", strerror(ret));
	pthread_setname_np(log_state.thread, "pvrdmad/log");
	log_state.has_thread = true;
	return true;
}

void pvrd_log_stop(void)
{
	struct timespec until;

	if (!log_state.has_thread)
		return;
	pvr_log_ring_end(&log_state.ring);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FLUSH_SEC;
	/* After a timeout the thread ends with the process; later lines stay in the ring. */
	if (!pthread_timedjoin_np(log_state.thread, NULL, &until))
		log_state.has_thread = false;
}

void pvrd_log(enum pvr_log_level level, const char *adapter, const char *fmt, ...)
{
	char text[900], line[PVR_LOG_LINE];
	va_list ap;
	size_t len;

	if (level > pvrd_log_level())
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = format_line(line, sizeof(line), level, adapter, text);
	if (log_state.has_thread)
		pvr_log_ring_put(&log_state.ring, line, len);
	else
		write_line(line, len);
}
