/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Rules of tc at a VM's tap, for adapters whose wire is a bridge. */
#ifndef PVR_DAEMON_CTL_REDIRECT_H
#define PVR_DAEMON_CTL_REDIRECT_H

#include "daemon/domain_read.h"

/*
 * Redirect RoCE for the VM to the bridge of "wire". @doc: the domain, whose taps exist. Does
 * nothing for an adapter without such a wire. Return: false with @err filled.
 */
bool pvr_ctl_redirect(xmlDoc *doc, const struct pvr_adapter_settings *settings,
		      struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_REDIRECT_H */
