/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Each header of the kernel that the driver includes is a link to this file: kernel.h has all. */
