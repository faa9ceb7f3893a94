// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCE of a VM behind a bridge: rules of tc at the VM's tap, for adapters with wire=eth:BRIDGE or
 * wire=tap:NAME.
 *
 * A bridge does not show frames for its ports to a packet socket, and sends them to the VM's tap,
 * not to the adapter's. The rules redirect RoCE for the VM to the bridge itself, or to the
 * adapter's tap, where pvrdmad receives it. The VM's kernel does not see it, so it does not answer
 * by ICMP. The rules end with the VM's tap.
 *
 * Frames with a VLAN tag have rules of their own, which check the version of IP: it is not part
 * of their protocol.
 */
#include "daemon/ctl_redirect.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 40
#define LINE_MAX_BYTES 256

/* Standard output is libvirt's: it reads the domain's new XML from there. */
static bool run(char *const words[], const char *line, struct pvr_error *err)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	int error, status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		return pvr_fail(err, "cannot run '%.200s': %s: install iproute2", line,
				strerror(error));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return (WIFEXITED(status) && !WEXITSTATUS(status)) ||
	       pvr_fail(err,
			"'%.200s' failed: the kernel needs cls_u32, sch_ingress and act_mirred",
			line);
}

/* @line: separated by single spaces. */
static bool run_line(const char *line, struct pvr_error *err)
{
	char copy[LINE_MAX_BYTES], *rest = copy, *words[WORDS_MAX + 1];
	size_t num = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	while (num < WORDS_MAX && (words[num] = strsep(&rest, " ")))
		num++;
	words[num] = NULL;
	return run(words, line, err);
}

static bool is_bridge(const char *name)
{
	char path[LINE_MAX_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", name);
	return !stat(path, &st);
}

/* The tap of the interface that has the adapter's MAC. */
static bool find_tap(xmlDoc *doc, const struct pvr_adapter_settings *settings,
		     char tap[PVR_DOMAIN_TEXT], struct pvr_error *err)
{
	xmlNode *nic = pvr_domain_nic(doc, settings->mac);

	if (nic && pvr_domain_attr(pvr_domain_child(nic, "target"), "dev", tap, PVR_DOMAIN_TEXT) &&
	    !strpbrk(tap, " /"))
		return true;
	return pvr_fail(
		err,
		"adapter '%s' has %s, but the NIC with its MAC address has no <target dev>: "
		"expected a NIC on that bridge",
		settings->name, settings->wire);
}

static const struct rule {
	const char *protocol, *version, *ip;
} rules[] = {
	{ "ip", "", "ip" },
	{ "ipv6", "", "ip6" },
	{ "802.1Q", "match u8 0x40 0xf0 at 0 ", "ip" },
	{ "802.1Q", "match u8 0x60 0xf0 at 0 ", "ip6" },
};

static bool add_rule(const char *tap, unsigned int pref, const struct rule *rule, const char *way,
		     const char *interface, struct pvr_error *err)
{
	char line[LINE_MAX_BYTES];

	snprintf(line, sizeof(line),
		 "tc filter add dev %.16s egress pref %u protocol %s u32 %smatch %s protocol 17 "
		 "0xff match %s dport 4791 0xffff action mirred %s redirect dev %.16s",
		 tap, pref, rule->protocol, rule->version, rule->ip, rule->ip, way, interface);
	return run_line(line, err);
}

bool pvr_ctl_redirect(xmlDoc *doc, const struct pvr_adapter_settings *settings,
		      struct pvr_error *err)
{
	const char *way = pvr_adapter_has_tap(settings) ? "egress" : "ingress";
	const char *interface = pvr_adapter_interface(settings);
	char tap[PVR_DOMAIN_TEXT], line[LINE_MAX_BYTES];
	unsigned int i;

	if (!interface || (!pvr_adapter_has_tap(settings) && !is_bridge(interface)))
		return true;
	if (!find_tap(doc, settings, tap, err))
		return false;
	snprintf(line, sizeof(line), "tc qdisc replace dev %.16s clsact", tap);
	if (!run_line(line, err))
		return false;
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!add_rule(tap, i + 1, &rules[i], way, interface, err))
			return false;
	return true;
}
