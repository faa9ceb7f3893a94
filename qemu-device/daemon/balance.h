/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The balance of the workers of "--workers auto", see balance_choice.h. */
#ifndef PVR_DAEMON_BALANCE_H
#define PVR_DAEMON_BALANCE_H

struct pvr_balance;
struct pvr_daemon;

/* Balances the workers of @daemon from now on. Return: NULL without memory. */
struct pvr_balance *pvr_balance_start(struct pvr_daemon *daemon);
void pvr_balance_stop(struct pvr_balance *balance);

#endif /* PVR_DAEMON_BALANCE_H */
