// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two guests that are plugged in. */
#include "guests.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "plug.h"

static struct fg_guest *start(struct fg_host *host, const char *spec, uint32_t ram_mib, bool linear)
{
	struct fg_guest_config config;
	struct fg_guest *guest;
	uint8_t gid[16];
	char *path;
	unsigned long number = strtoul(spec, &path, 10);

	if (*path != '=' || !number || number > 254)
		fg_die("'%s' is no NUMBER=SOCKET", spec);
	fg_guest_config_init(&config, (uint32_t)number);
	config.ram_mib = ram_mib;
	if (linear) {
		config.linear_mib = ram_mib;
		config.ends = FG_LINEAR;
	}
	config.ext = PVR_ENGINE_EXT;
	plug_set_socket(config.name, path + 1);
	guest = fg_guest_create(host, &config);
	if (fg_guest_boot(guest))
		fg_die("%s: the device does not come up", config.name);
	fg_gid_from_mac(gid, config.mac);
	if (fg_bind_gid(guest, 0, gid))
		fg_die("%s: its default GID is refused", config.name);
	fg_gid_from_ipv4(gid, 10, 77, 0, (uint8_t)number);
	if (fg_bind_gid(guest, 1, gid))
		fg_die("%s: GID ::ffff:10.77.0.%lu is refused", config.name, number);
	return guest;
}

static void take_option(struct guests *guests, int option, const char *arg)
{
	if (option == GUESTS_LINEAR) {
		guests->linear = true;
		return;
	}
	if (guests->serve || guests->join)
		fg_die("--serve and --join: one of them, once");
	*(option == GUESTS_SERVE ? &guests->serve : &guests->join) = arg;
}

int guests_next_option(struct guests *guests, int argc, char **argv, const struct option *options,
		       const char *help)
{
	int option;

	while (true) {
		option = getopt_long(argc, argv, "h", options, NULL);
		if (option == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (option < GUESTS_SERVE || option > GUESTS_LINEAR)
			return option;
		take_option(guests, option, optarg);
	}
}

int guests_here(const struct guests *guests)
{
	return guests->serve || guests->join ? 1 : 2;
}

/* The second one serves. */
static bool is_here(const struct guests *guests, int i)
{
	return i ? !guests->join : !guests->serve;
}

void guests_open(struct guests *guests, const char *const *spec, uint32_t ram_mib)
{
	guests->host = fg_host_create();
	for (int i = 0; i < 2; i++) {
		if (!is_here(guests, i))
			continue;
		guests->guest[i] = start(guests->host, *spec++, ram_mib, guests->linear);
		guests->name[i] = guests->guest[i]->name;
	}
	guests->far.fd = -1;
	if (guests->serve)
		far_serve(&guests->far, guests->serve);
	if (guests->join)
		far_join(&guests->far, guests->join);
}

void guests_close(struct guests *guests)
{
	far_close(&guests->far);
	for (int i = 0; i < 2; i++) {
		if (guests->guest[i])
			fg_guest_destroy(guests->guest[i]);
	}
	fg_host_destroy(guests->host);
}

static void use_ipv4_gid(struct fg_end *end)
{
	fg_gid_from_ipv4(end->gid, 10, 77, 0, end->guest->config.mac[5]);
}

void guests_connect(struct guests *guests, struct fg_end *a, struct fg_end *b,
		    const struct fg_conn *conn)
{
	struct fg_end *here = a->guest ? a : b, *there = a->guest ? b : a;

	if (conn && conn->sgid_index) {
		use_ipv4_gid(here);
		if (there->guest)
			use_ipv4_gid(there);
	}
	if (there->guest) {
		fg_end_connect(a, b, conn);
		return;
	}
	far_exchange(&guests->far, here, there);
	if (fg_qp_connect(&here->qp, conn, there->gid, there->qp.qpn))
		fg_die("%s: cannot connect to the guest elsewhere", here->guest->name);
}

void guests_meet(struct guests *guests)
{
	if (guests->far.fd >= 0)
		far_meet(&guests->far);
}

struct fg_guest *guests_plug(struct fg_host *host, const char *spec, uint32_t ram_mib)
{
	return start(host, spec, ram_mib, false);
}

double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
