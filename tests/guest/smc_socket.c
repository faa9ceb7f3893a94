// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * LD_PRELOAD library that makes the stream sockets of a program SMC sockets, for guests without
 * smc-tools. See Linux' include/net/smc.h for the protocol numbers.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SMC_OVER_IPV4 0
#define SMC_OVER_IPV6 1

int socket(int domain, int type, int protocol)
{
	int (*make)(int domain, int type, int protocol);
	int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);

	*(void **)&make = dlsym(RTLD_NEXT, "socket");
	if (!make) {
		fprintf(stderr, "smc_socket: %s\n", dlerror());
		exit(1);
	}
	if ((domain != AF_INET && domain != AF_INET6) || (type & ~flags) != SOCK_STREAM ||
	    (protocol && protocol != IPPROTO_TCP))
		return make(domain, type, protocol);
	return make(AF_SMC, type, domain == AF_INET ? SMC_OVER_IPV4 : SMC_OVER_IPV6);
}
