// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* IP addresses with a port, in text form. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

/*
 * Finds the host and the port in @host, a private copy of the text, and ends the host
 * with NUL.
 */
static bool split(char *host, char **start, const char **port, struct pvr_error *err)
{
	char *end = strchr(host, ']'), *colon = strrchr(host, ':');

	*start = host;
	*port = NULL;
	if (*host == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return pvr_fail(err, "address '%s': expected [ADDRESS]:PORT", host);
		*start = host + 1;
		*port = end[1] ? end + 2 : NULL;
		*end = '\0';
	} else if (colon && strchr(host, ':') == colon) {
		*port = colon + 1;
		*colon = '\0';
	}
	return true;
}

static bool check_port(const char *text, const char *port, struct pvr_error *err)
{
	unsigned long number;
	char *end;

	if (!port)
		return true;
	number = strtoul(port, &end, 10);
	if (*port >= '0' && *port <= '9' && !*end && number && number <= 65535)
		return true;
	return pvr_fail(err, "address '%s': port '%s' is not a number from 1 to 65535", text, port);
}

bool pvr_address_parse(struct pvr_address *address, const char *text, struct pvr_error *err)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char host[PVR_ADDRESS_TEXT], number[8], *start;
	struct addrinfo *info;
	const char *port;

	if (strlen(text) >= sizeof(host))
		return pvr_fail(err, "address '%.100s' is too long", text);
	strcpy(host, text);
	if (!split(host, &start, &port, err) || !check_port(text, port, err))
		return false;
	snprintf(number, sizeof(number), "%d", PVR_DEFAULT_PORT);
	if (!*start || getaddrinfo(start, port ? port : number, &hints, &info))
		return pvr_fail(err,
				"'%s' is not an IP address, such as 192.0.2.1:%d or "
				"[2001:db8::1]:%d; names are not looked up",
				text, PVR_DEFAULT_PORT, PVR_DEFAULT_PORT);
	memset(address, 0, sizeof(*address));
	memcpy(&address->storage, info->ai_addr, info->ai_addrlen);
	address->len = info->ai_addrlen;
	freeaddrinfo(info);
	return true;
}

const char *pvr_address_format(const struct pvr_address *address, char buf[PVR_ADDRESS_TEXT])
{
	char host[PVR_ADDRESS_TEXT - 16], port[8];

	if (getnameinfo(&address->any, address->len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(buf, PVR_ADDRESS_TEXT, "?");
	else
		snprintf(buf, PVR_ADDRESS_TEXT,
			 address->any.sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return buf;
}

bool pvr_address_is_loopback(const struct pvr_address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

bool pvr_address_same_host(const struct pvr_address *a, const struct pvr_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

bool pvr_address_equal(const struct pvr_address *a, const struct pvr_address *b)
{
	return a->len == b->len && !memcmp(&a->storage, &b->storage, a->len);
}
