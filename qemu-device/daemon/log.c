// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The daemon's log: one line per event on stderr. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/log_json.h"
#include "daemon/log_ring.h"

#define LOG_LEVELS (PVR_LOG_DEBUG + 1)
#define END_NS 2000000000ull /* for the last lines, at the end of the process */
#define FLUSH_NS 100000000ull
#define FULL_MS 1000 /* for a stderr that another process has made non-blocking */

static struct {
	enum pvr_log_level level;
	bool timestamps, json;
	bool has_thread; /* changes while there is one thread that logs */
	pthread_t thread;
	struct pvr_log_ring ring;
	struct pvrd_log_stats stats; /* atomic */
} log_state = { .level = PVR_LOG_INFO };

/* Used by the log's thread; before it starts, by the first thread. */
static struct {
	uint64_t lost; /* lines that could not be written since the last good one */
	int error; /* errno of the last of them */
	bool torn; /* the last line was written in part */
} output;

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

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void pvrd_log_get_stats(struct pvrd_log_stats *stats)
{
	unsigned int i;

	for (i = 0; i < LOG_LEVELS; i++)
		stats->lines[i] = __atomic_load_n(&log_state.stats.lines[i], __ATOMIC_RELAXED);
	stats->dropped = __atomic_load_n(&log_state.stats.dropped, __ATOMIC_RELAXED);
}

const char *pvrd_log_level_name(enum pvr_log_level level)
{
	return level_names[level];
}

void pvrd_log_timestamps(bool on)
{
	log_state.timestamps = on;
}

void pvrd_log_set_json(bool on)
{
	log_state.json = on;
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

/* Return: 0 or an errno value: of a full file system, a closed pipe, ... */
static int write_text(const char *text, size_t len)
{
	struct pollfd space = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t n;

	/* Lines of several processes do not mix: write() takes a line as a whole, if it can. */
	while (len) {
		n = write(STDERR_FILENO, text, len);
		if (n > 0) {
			text += n;
			len -= (size_t)n;
			output.torn = len > 0;
		} else if (errno == EAGAIN && poll(&space, 1, FULL_MS) == 0) {
			return EAGAIN;
		} else if (errno != EAGAIN && errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* What a line is about: both NULL: the daemon. */
struct log_subject {
	const char *adapter, *host;
};

static const struct log_subject about_daemon;

static size_t format_text(char *line, size_t size, enum pvr_log_level level,
			  const struct log_subject *subject, const char *text)
{
	const char *adapter = subject->adapter;
	char when[32] = "";

	if (log_state.timestamps)
		format_time(when, sizeof(when));
	return (size_t)snprintf(line, size, "%spvrdmad: %s%s%s\n", when, adapter ? adapter : "",
				adapter ? ": " : "", text);
}

static size_t format_json(char *line, size_t size, enum pvr_log_level level,
			  const struct log_subject *subject, const char *text)
{
	struct pvr_log_entry entry = {
		.level = level_names[level],
		.adapter = subject->adapter,
		.peer = subject->host,
		.text = text,
	};

	clock_gettime(CLOCK_REALTIME, &entry.time);
	return pvr_log_json(line, size, &entry);
}

/* Return: the length. A line that is too long is cut, and ends with a newline as well. */
static size_t format_line(char *line, size_t size, enum pvr_log_level level,
			  const struct log_subject *subject, const char *text)
{
	const char *prefix = getenv("JOURNAL_STREAM") ? journal_prefixes[level] : "";
	size_t start = strlen(prefix), len;

	memcpy(line, prefix, start);
	len = start + (log_state.json ? format_json : format_text)(line + start, size - start,
								   level, subject, text);
	if (len >= size) {
		len = size - 1;
		line[len - 1] = '\n';
	}
	return len;
}

/* Return: an errno value if nothing can be written. */
static int report_lost(uint64_t num, const char *why)
{
	char text[200], line[PVR_LOG_LINE];

	snprintf(text, sizeof(text), "%" PRIu64 " lines lost: %s", num, why);
	return write_text(line, format_line(line, sizeof(line), PVR_LOG_WARN, &about_daemon, text));
}

/* After lines that could not be written: ends a part of a line, and reports their number. */
static int resume_output(void)
{
	char why[150];
	int error = output.torn ? write_text("\n", 1) : 0;

	snprintf(why, sizeof(why), "cannot write to stderr: %s", strerror(output.error));
	if (!error)
		error = report_lost(output.lost, why);
	if (!error)
		output.lost = 0;
	return error;
}

/* There is no other place to report that stderr cannot be written: lines are counted. */
static void write_line(const char *line, size_t len)
{
	int error = output.lost ? resume_output() : 0;

	if (!error)
		error = write_text(line, len);
	if (error) {
		output.lost++;
		output.error = error;
		count(&log_state.stats.dropped);
	}
}

static void report_dropped(uint64_t num)
{
	if (output.lost || report_lost(num, "they came faster than stderr takes them"))
		output.lost += num;
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

	if (!pvr_log_ring_init(&log_state.ring))
		return pvr_fail(err, "cannot make the log: out of memory");
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
	if (!log_state.has_thread)
		return;
	pvr_log_ring_end(&log_state.ring);
	/* After a timeout the thread ends with the process; later lines stay in the ring. */
	if (!pvr_log_ring_flush(&log_state.ring, END_NS))
		return;
	/* The ring is empty and has ended: the thread does not write any more. */
	pthread_join(log_state.thread, NULL);
	log_state.has_thread = false;
}

void pvrd_log_flush(void)
{
	if (log_state.has_thread)
		pvr_log_ring_flush(&log_state.ring, FLUSH_NS);
}

static void log_about(enum pvr_log_level level, const struct log_subject *subject, const char *fmt,
		      va_list ap)
{
	const char *adapter = subject->adapter;
	char text[900], line[PVR_LOG_LINE];
	size_t len;

	if (level > pvrd_log_level())
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	len = format_line(line, sizeof(line), level, subject, text);
	count(&log_state.stats.lines[level]);
	if (!log_state.has_thread)
		write_line(line, len);
	else if (!pvr_log_ring_put(&log_state.ring, adapter ? pvr_log_ring_source(adapter) : 0,
				   line, len))
		count(&log_state.stats.dropped);
}

void pvrd_log(enum pvr_log_level level, const char *adapter, const char *fmt, ...)
{
	const struct log_subject subject = { .adapter = adapter };
	va_list ap;

	va_start(ap, fmt);
	log_about(level, &subject, fmt, ap);
	va_end(ap);
}

void pvrd_log_host(enum pvr_log_level level, const char *host, const char *fmt, ...)
{
	const struct log_subject subject = { .host = host };
	va_list ap;

	va_start(ap, fmt);
	log_about(level, &subject, fmt, ap);
	va_end(ap);
}
