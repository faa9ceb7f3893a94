/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A network interface of the host, by its name. @fd: any socket. */
#ifndef PVR_SEGMENT_INTERFACE_H
#define PVR_SEGMENT_INTERFACE_H

#include <linux/filter.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* Return: whether ioctl(@request) has filled @ifr for the interface, else errno is set. */
bool pvr_interface_ask(int fd, const char *name, unsigned long request, struct ifreq *ifr);
/* Return: 0 without the interface. */
unsigned int pvr_interface_index(int fd, const char *name);
bool pvr_interface_is_up(int fd, const char *name);

#define PVR_INTERFACE_FILTER 22u

/* A filter of packets for the kernel. */
struct pvr_interface_filter {
	struct sock_filter code[PVR_INTERFACE_FILTER];
	struct sock_fprog program; /* refers to @code */
};

/*
 * A filter that passes UDP at the port of RoCEv2, from IPv4 without fragments and IPv6 without
 * extension headers, to @mac and to groups.
 */
void pvr_interface_filter_init(struct pvr_interface_filter *filter, const uint8_t mac[6]);

#endif /* PVR_SEGMENT_INTERFACE_H */
