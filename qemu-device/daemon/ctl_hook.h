/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl libvirt-hook: adapters that come and go with their libvirt domains. */
#ifndef PVR_DAEMON_CTL_HOOK_H
#define PVR_DAEMON_CTL_HOOK_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Do what libvirt's call of a qemu hook needs: @operation and @step are its second and third
 * argument, and standard input has the domain's XML. @control is the path of the control socket, or
 * NULL: that of the instance that serves the fabric of an adapter.
 * Return: false with @err filled, which makes libvirt refuse the operation if it can.
 */
bool pvr_ctl_hook(const char *control, const char *operation, const char *step,
		  struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_HOOK_H */
