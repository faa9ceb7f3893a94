/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The settings of quality of service, of an adapter or of a fabric. */
#ifndef PVR_DAEMON_QOS_SETTINGS_H
#define PVR_DAEMON_QOS_SETTINGS_H

#include <stdbool.h>

#include "base/error.h"
#include "engine.h"

/* "rate", "messages", "burst" or "weight". */
bool pvr_qos_has_key(const char *key);
/* @value "none" removes a limit. Return: false with @err filled if the value is invalid. */
bool pvr_qos_set(struct pvr_qos *qos, const char *key, const char *value, struct pvr_error *err);
/* Return: false with @err filled if the settings contradict each other. */
bool pvr_qos_check(const struct pvr_qos *qos, struct pvr_error *err);

/* The same for the limits of a fabric, which has no weight. */
bool pvr_fabric_qos_set(struct pvr_qos *qos, const char *key, const char *value,
			struct pvr_error *err);

#endif /* PVR_DAEMON_QOS_SETTINGS_H */
