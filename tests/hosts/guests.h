/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The two guests of a test between hosts: this process is both, so it knows what is right. */
#ifndef HOSTS_GUESTS_H
#define HOSTS_GUESTS_H

#include "fake_guest.h"

struct guests {
	struct fg_host *host;
	struct fg_guest *guest[2];
	const char *name[2];
};

/*
 * @spec: "NUMBER=SOCKET" each: the guest's number gives its MAC, 52:54:00:12:34:NUMBER in
 * hexadecimal, and its GIDs: the default one at index 0, ::ffff:10.77.0.NUMBER at 1.
 */
void guests_open(struct guests *guests, const char *const spec[2], uint32_t ram_mib);
void guests_close(struct guests *guests);

/* Monotonic seconds. */
double now_s(void);

#endif /* HOSTS_GUESTS_H */
