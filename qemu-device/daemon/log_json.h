/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Lines of the log as JSON objects, one per line.
 *
 * DOC: fields
 *
 * "time" in UTC, "level" and "message" are in each line. "adapter" and "peer" are those that the line
 * is about, if it is about one. Messages of the engine name their object first: "qp 5: ..." adds
 * "qp": 5, and likewise cq, srq and gid.
 */
#ifndef PVR_DAEMON_LOG_JSON_H
#define PVR_DAEMON_LOG_JSON_H

#include <stddef.h>
#include <time.h>

struct pvr_log_entry {
	struct timespec time; /* CLOCK_REALTIME */
	const char *level;
	const char *adapter, *peer; /* or NULL */
	const char *text;
};

/*
 * Writes a line with its newline, without NUL. A message that does not fit in @size bytes is cut
 * between two characters: the line is a whole object. @size is 1,024 at least.
 * Return: the length.
 */
size_t pvr_log_json(char *buf, size_t size, const struct pvr_log_entry *entry);

#endif /* PVR_DAEMON_LOG_JSON_H */
