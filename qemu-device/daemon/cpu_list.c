// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CPU lists, and the CPUs of this machine. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cpu_list.h"

#define NODE_FOLDER "/sys/devices/system/node/"
#define NODES_MAX 1024
#define NODE_PREFERRED 1 /* MPOL_PREFERRED of set_mempolicy(2) */
#define LIST_TEXT 4096
#define BITS_PER_LONG (8 * sizeof(unsigned long))

bool pvr_cpu_list_contain(const struct pvr_cpu_list *cpus, unsigned int cpu)
{
	size_t i;

	for (i = 0; i < cpus->num; i++) {
		if (cpus->cpu[i] == cpu)
			return true;
	}
	return false;
}

void pvr_cpu_list_to_set(const struct pvr_cpu_list *cpus, cpu_set_t *set)
{
	size_t i;

	CPU_ZERO(set);
	for (i = 0; i < cpus->num; i++)
		CPU_SET(cpus->cpu[i], set);
}

const char *pvr_cpu_list_format(const struct pvr_cpu_list *cpus, char *buf, size_t size)
{
	size_t first, last, len = 0;

	buf[0] = '\0';
	for (first = 0; first < cpus->num && len < size; first = last + 1) {
		for (last = first;
		     last + 1 < cpus->num && cpus->cpu[last + 1] == cpus->cpu[last] + 1; last++)
			;
		len += (size_t)snprintf(buf + len, size - len, "%s%u", first ? "," : "",
					cpus->cpu[first]);
		if (last > first && len < size)
			len += (size_t)snprintf(buf + len, size - len, "-%u", cpus->cpu[last]);
	}
	return buf;
}

/* Advances @text past the number. */
static bool parse_number(const char **text, unsigned int *number)
{
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	value = strtoul(*text, &end, 10);
	if (value >= CPU_SETSIZE)
		return false;
	*text = end;
	*number = (unsigned int)value;
	return true;
}

/* "3" or "0-3". */
static bool parse_range(struct pvr_cpu_list *cpus, const char **text)
{
	unsigned int first, last;

	if (!parse_number(text, &first))
		return false;
	last = first;
	if (**text == '-') {
		++*text;
		if (!parse_number(text, &last) || last < first)
			return false;
	}
	for (; first <= last; first++) {
		if (pvr_cpu_list_contain(cpus, first))
			return false;
		cpus->cpu[cpus->num++] = first;
	}
	return true;
}

bool pvr_cpu_list_parse(struct pvr_cpu_list *cpus, const char *text, struct pvr_error *err)
{
	const char *at = text;

	cpus->num = 0;
	while (parse_range(cpus, &at)) {
		if (!*at || *at == '\n')
			return true;
		if (*at++ != ',')
			break;
	}
	return pvr_fail(err, "'%.64s' is not a CPU list: expected one such as 0-3,8, none twice",
			text);
}

static void get_usable(struct pvr_cpu_list *cpus)
{
	cpu_set_t set;
	unsigned int i;

	cpus->num = 0;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			cpus->cpu[cpus->num++] = i;
	}
}

bool pvr_cpu_list_check(const struct pvr_cpu_list *cpus, struct pvr_error *err)
{
	struct pvr_cpu_list usable;
	char text[128];
	size_t i;

	get_usable(&usable);
	for (i = 0; i < cpus->num; i++) {
		if (!pvr_cpu_list_contain(&usable, cpus->cpu[i]))
			return pvr_fail(err, "CPU %u: pvrdmad can use %s here", cpus->cpu[i],
					pvr_cpu_list_format(&usable, text, sizeof(text)));
	}
	return true;
}

/* --------------------------------------------------------------- NUMA nodes */

static bool read_list(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(text, (int)size, file);

	if (file)
		fclose(file);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

static bool no_node(unsigned int node, struct pvr_error *err)
{
	char text[128];

	if (!read_list(NODE_FOLDER "online", text, sizeof(text)))
		return pvr_fail(err, "NUMA node %u: this kernel has no NUMA nodes", node);
	return pvr_fail(err, "NUMA node %u: this machine has %s", node, text);
}

bool pvr_cpu_list_of_node(struct pvr_cpu_list *cpus, unsigned int node, struct pvr_error *err)
{
	char path[64], text[LIST_TEXT];
	struct pvr_cpu_list usable, all;
	size_t i;

	snprintf(path, sizeof(path), NODE_FOLDER "node%u/cpulist", node);
	if (!read_list(path, text, sizeof(text)))
		return no_node(node, err);
	cpus->num = 0;
	get_usable(&usable);
	/* A node with memory only has an empty list. */
	if (*text && !pvr_cpu_list_parse(&all, text, err))
		return false;
	for (i = 0; *text && i < all.num; i++) {
		if (pvr_cpu_list_contain(&usable, all.cpu[i]))
			cpus->cpu[cpus->num++] = all.cpu[i];
	}
	return cpus->num || pvr_fail(err, "NUMA node %u has no CPU that pvrdmad can use", node);
}

bool pvr_numa_prefer(unsigned int node, struct pvr_error *err)
{
	unsigned long mask[NODES_MAX / BITS_PER_LONG] = { 0 };

	if (node >= NODES_MAX)
		return no_node(node, err);
	mask[node / BITS_PER_LONG] = 1ul << node % BITS_PER_LONG;
	/* The kernel takes the number of bits plus one. */
	if (syscall(SYS_set_mempolicy, NODE_PREFERRED, mask, (unsigned long)NODES_MAX + 1) < 0)
		return pvr_fail(err, "cannot prefer the memory of NUMA node %u: %s", node,
				strerror(errno));
	return true;
}
