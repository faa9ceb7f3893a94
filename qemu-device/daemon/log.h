/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon's log: one line per event on stderr. Any thread. */
#ifndef PVR_DAEMON_LOG_H
#define PVR_DAEMON_LOG_H

#include <stdbool.h>

#include "base/error.h"
#include "engine.h"

/* @on: start each line with the time of day; journald adds it by itself. */
void pvrd_log_timestamps(bool on);
/* @on: each line is a JSON object, see log_json.h. */
void pvrd_log_set_json(bool on);
void pvrd_log_set_level(enum pvr_log_level level);
enum pvr_log_level pvrd_log_level(void);

/* Return: false if @name is no level. */
bool pvrd_log_parse_level(const char *name, enum pvr_log_level *level);

/* From here on, pvrd_log() never waits: a thread writes the lines. */
bool pvrd_log_start(struct pvr_error *err);
/* Waits for the last lines, for 2 s at most. No other thread logs. */
void pvrd_log_stop(void);

/*
 * Waits until the lines so far are written, for 100 ms at most. If stderr is stuck, only the first
 * call waits.
 */
void pvrd_log_flush(void);

/* @adapter: the name of the adapter concerned; NULL: the daemon. */
__attribute__((format(printf, 3, 4))) void pvrd_log(enum pvr_log_level level, const char *adapter,
						    const char *fmt, ...);

/* A line about another host. */
__attribute__((format(printf, 3, 4))) void pvrd_log_host(enum pvr_log_level level, const char *host,
							 const char *fmt, ...);

struct pvrd_log_stats {
	uint64_t lines[PVR_LOG_DEBUG + 1]; /* by enum pvr_log_level, dropped ones included */
	uint64_t dropped; /* lines without space in the ring, or that stderr did not take */
};

/* Since the start. Any thread. */
void pvrd_log_get_stats(struct pvrd_log_stats *stats);
const char *pvrd_log_level_name(enum pvr_log_level level);

#endif /* PVR_DAEMON_LOG_H */
