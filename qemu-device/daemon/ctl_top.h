/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl top: rates of adapters or queue pairs, between two queries of pvrdmad. */
#ifndef PVR_DAEMON_CTL_TOP_H
#define PVR_DAEMON_CTL_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PVR_TOP_DELAY_MS 2000

struct pvr_top_options {
	const char *control; /* path of the control socket */
	const char *adapter; /* its queue pairs; NULL: all adapters */
	const char *sort; /* key of a column; NULL: tx_bytes_rate */
	bool batch, json; /* json implies batch */
	uint32_t delay_ms;
	uint64_t count; /* of outputs; 0: no end */
};

bool pvr_top_parse_delay(const char *text, uint32_t *delay_ms, struct pvr_error *err);
bool pvr_top_parse_count(const char *text, uint64_t *count, struct pvr_error *err);

/* Return: false with @err filled if an option names no column. */
bool pvr_top_check(const struct pvr_top_options *options, struct pvr_error *err);

/* Return: false with @err filled, as soon as a query or an output fails. */
bool pvr_top_run(const struct pvr_top_options *options, struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_TOP_H */
