/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmad's command line. */
#ifndef PVR_DAEMON_OPTIONS_H
#define PVR_DAEMON_OPTIONS_H

#include "daemon/settings.h"

enum pvr_options_result {
	PVR_OPTIONS_RUN,
	PVR_OPTIONS_DONE, /* --help or --version was printed */
	PVR_OPTIONS_BAD, /* @err is filled */
};

enum pvr_options_result pvr_options_parse(int argc, char **argv, struct pvr_settings *settings,
					  struct pvr_error *err);

#endif /* PVR_DAEMON_OPTIONS_H */
