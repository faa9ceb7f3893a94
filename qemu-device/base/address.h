/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* IP addresses with a port, in text form. */
#ifndef PVR_BASE_ADDRESS_H
#define PVR_BASE_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"

#define PVR_DEFAULT_PORT 7471
#define PVR_ADDRESS_TEXT 96

struct pvr_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage storage;
	};
	socklen_t len;
};

/*
 * Parses "192.0.2.1", "192.0.2.1:7471", "2001:db8::1" or "[2001:db8::1]:7471". Host names
 * are refused: their resolution blocks and can fail. Return: true, or false with @err
 * filled.
 */
bool pvr_address_parse(struct pvr_address *address, const char *text, struct pvr_error *err);
/* Writes the address with its port. Return: @buf. */
const char *pvr_address_format(const struct pvr_address *address, char buf[PVR_ADDRESS_TEXT]);
bool pvr_address_is_loopback(const struct pvr_address *address);
/* Compares the IP addresses and ignores the ports. */
bool pvr_address_same_host(const struct pvr_address *a, const struct pvr_address *b);
bool pvr_address_equal(const struct pvr_address *a, const struct pvr_address *b);

#endif /* PVR_BASE_ADDRESS_H */
