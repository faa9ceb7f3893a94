/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The statuses of commands and their causes. No kernel header: tests read it too. */
#ifndef PVR_STATUS_H
#define PVR_STATUS_H

#include <linux/types.h>

/*
 * DOC: Causes of an answer
 *
 * A program without rights must not cost another program the adapter. So an answer that a
 * program can cause goes to the caller, and nothing else follows from it: no restart, no
 * object that stays at the device, no count towards either. Only an answer that needs a
 * defect may have such an effect.
 */
enum pvr_cause {
	PVR_CAUSE_DEFECT, /* only a defect of the device or of this driver */
	PVR_CAUSE_HOST, /* the administrator, of the host or of the VM */
	PVR_CAUSE_PROGRAM, /* arguments, number, order or timing of a program's calls */
};

/**
 * pvr_status_cause() - cause of a status
 * @cmd: enum pvr_cmd
 * @code: the status, a positive errno
 *
 * Return: the least privileged cause; PVR_CAUSE_DEFECT if the command cannot have this
 * status.
 */
enum pvr_cause pvr_status_cause(__u32 cmd, __u32 code);

/**
 * pvr_status_is_listed() - whether a device that keeps to docs/abi.rst can give a status
 * @cmd: enum pvr_cmd
 * @code: the status, a positive errno
 */
_Bool pvr_status_is_listed(__u32 cmd, __u32 code);

#endif /* PVR_STATUS_H */
