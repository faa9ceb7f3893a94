// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Network interfaces of the host. */
#include "segment/interface.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#define ROCE_PORT 4791

bool pvr_interface_ask(int fd, const char *name, unsigned long request, struct ifreq *ifr)
{
	memset(ifr, 0, sizeof(*ifr));
	memcpy(ifr->ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
	return ioctl(fd, request, ifr) == 0;
}

unsigned int pvr_interface_index(int fd, const char *name)
{
	struct ifreq ifr;

	return pvr_interface_ask(fd, name, SIOCGIFINDEX, &ifr) ? (unsigned int)ifr.ifr_ifindex : 0;
}

bool pvr_interface_is_up(int fd, const char *name)
{
	struct ifreq ifr;

	return pvr_interface_ask(fd, name, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP;
}

void pvr_interface_filter_init(struct pvr_interface_filter *filter, const uint8_t mac[6])
{
	const uint32_t high = (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 |
			      (uint32_t)mac[2] << 8 | mac[3];
	const uint32_t low = (uint32_t)mac[4] << 8 | mac[5];
	const struct sock_filter code[PVR_INTERFACE_FILTER] = {
		/* Multicast datagrams: those without a member are dropped later. */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 4, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 17),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 15),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 12),
		/* IPv6 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 10),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56),
		BPF_JUMP(BPF_JMP | BPF_JA, 6, 0, 0),
		/* IPv4 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 6),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 4, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
		/* the port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	memcpy(filter->code, code, sizeof(code));
	filter->program = (struct sock_fprog){ PVR_INTERFACE_FILTER, filter->code };
}
