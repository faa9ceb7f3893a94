/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The terminal of pvrdmactl top: a full screen, keys, and its state afterwards. */
#ifndef PVR_DAEMON_CTL_SCREEN_H
#define PVR_DAEMON_CTL_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Results of pvr_screen_wait() beside a key. */
#define PVR_SCREEN_TIMEOUT 0
#define PVR_SCREEN_RESIZED (-1)
#define PVR_SCREEN_ENDED (-2) /* by a signal, or the terminal is gone */

/* Return: whether standard input and output are terminals. */
bool pvr_screen_is_possible(void);

/* Take the terminal over. pvr_screen_close() restores it. Return: false with errno set. */
bool pvr_screen_open(void);
void pvr_screen_close(void);

/* Begin an output: clear the screen. Return: its number of lines. */
unsigned int pvr_screen_begin(void);

/* Wait for a key for at most @ms milliseconds. Return: the key, or PVR_SCREEN_*. */
int pvr_screen_wait(uint32_t ms);

#endif /* PVR_DAEMON_CTL_SCREEN_H */
