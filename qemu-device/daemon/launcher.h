/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process that starts the next pvrdmad.
 *
 * DOC: launcher
 *
 * The daemon cannot start a program after it has limited its system calls, and a program would
 * keep these limits. So it forks this process at its start, before that. The launcher starts
 * one program only, that of its own executable file's path, with its own arguments. It ends with
 * the daemon.
 */
#ifndef PVR_DAEMON_LAUNCHER_H
#define PVR_DAEMON_LAUNCHER_H

#include <stdbool.h>

#include "base/error.h"

/* The descriptor of the channel in the environment of the next pvrdmad. */
#define PVR_LAUNCHER_ENV "PVRDMAD_UPGRADE"

/*
 * Forks the launcher. Before any thread is started. @argv: of main(). Without a launcher the
 * daemon works, but pvr_launcher_start() fails.
 */
void pvr_launcher_fork(char **argv);

/* Starts the program with one end of a channel. Return: the other end, or -1 with @err filled. */
int pvr_launcher_start(struct pvr_error *err);

/* Return: whether the file at the path of the executable differs from the running one. */
bool pvr_launcher_is_replaced(void);
/* Return: that path. */
const char *pvr_launcher_path(void);

#endif /* PVR_DAEMON_LAUNCHER_H */
