/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The instances of pvrdmad on this host.
 *
 * DOC: instances
 *
 * A host has the service pvrdmad, an instance pvrdmad@NAME for the fabrics of another tenant, or
 * several of them. Each is a process with a user, a folder, a control group and a memory of its own.
 *
 *   instance       configuration file              control socket, unless the file has "control"
 *   pvrdmad        /etc/pvrdma/pvrdmad.conf        /run/pvrdma/control
 *   pvrdmad@NAME   /etc/pvrdma/pvrdmad@NAME.conf   /run/pvrdma-NAME/control
 *
 * The setting "fabrics" of the file lists the fabrics that the instance serves. $PVRDMA_SYSROOT, for
 * tests, is the folder that has /etc and /run.
 */
#ifndef PVR_DAEMON_CTL_INSTANCE_H
#define PVR_DAEMON_CTL_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "daemon/adapter_settings.h"

struct pvr_instance {
	char service[PVR_NAME_MAX + 8]; /* "pvrdmad" or "pvrdmad@NAME" */
	char control[PVR_PATH_MAX];
	char fabrics[PVR_FABRIC_LIST_MAX]; /* "": all that no other instance lists */
	char metrics[PVR_PATH_MAX]; /* "": none */
};

/* @name: of pvrdmad@NAME; "": pvrdmad. Return: false with @err filled, for a file with an error too. */
bool pvr_instance_find(const char *name, struct pvr_instance *instance, struct pvr_error *err);

/*
 * All with a configuration file, pvrdmad first, else by name. A file with an error is left out, with
 * a note to standard error. Return: the caller's array of @num members, free(); or NULL with @err
 * filled.
 */
struct pvr_instance *pvr_instances(size_t *num, struct pvr_error *err);

/*
 * The instance that lists @fabric, else pvrdmad. @fabric "": the default one. Return: false with
 * @err filled, also if two instances list it, or if none does and a file with an error is left out.
 */
bool pvr_instance_of_fabric(const char *fabric, struct pvr_instance *instance,
			    struct pvr_error *err);

/* Print the instances' metrics as Prometheus' file_sd_config reads them. */
bool pvr_instances_print_targets(struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_INSTANCE_H */
