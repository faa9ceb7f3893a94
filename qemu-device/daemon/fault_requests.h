/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requests of the control socket about faults on demand. */
#ifndef PVR_DAEMON_FAULT_REQUESTS_H
#define PVR_DAEMON_FAULT_REQUESTS_H

#include <json-c/json.h>

#include "daemon/daemon.h"

/*
 * Adds the rules of @texts, an array of strings: all or none. @reply: gets their numbers as
 * "ids". Return: false with @err filled.
 */
bool pvr_faults_add(struct pvr_daemon *daemon, struct json_object *texts, struct json_object *reply,
		    struct pvr_error *err);
/* @reply: gets the rules and their counters as "faults". */
void pvr_faults_list(struct pvr_daemon *daemon, struct json_object *reply);
/* @id: the number of a rule; NULL: all. @reply: gets the number of removed rules as "cleared". */
bool pvr_faults_clear(struct pvr_daemon *daemon, const char *id, struct json_object *reply,
		      struct pvr_error *err);

#endif /* PVR_DAEMON_FAULT_REQUESTS_H */
