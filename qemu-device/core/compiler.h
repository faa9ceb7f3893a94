/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* For functions on the way of every message. */
#ifndef PVR_HOT_H
#define PVR_HOT_H

/* Where the call takes a good part of what the body does, as callgrind counts it. */
#define pvr_always_inline inline __attribute__((always_inline))

#endif /* PVR_HOT_H */
