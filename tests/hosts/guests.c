// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two guests that are plugged in. */
#include "guests.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "plug.h"

static struct fg_guest *start(struct fg_host *host, const char *spec, uint32_t ram_mib)
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

void guests_open(struct guests *guests, const char *const spec[2], uint32_t ram_mib)
{
	guests->host = fg_host_create();
	for (int i = 0; i < 2; i++) {
		guests->guest[i] = start(guests->host, spec[i], ram_mib);
		guests->name[i] = guests->guest[i]->name;
	}
}

void guests_close(struct guests *guests)
{
	for (int i = 0; i < 2; i++)
		fg_guest_destroy(guests->guest[i]);
	fg_host_destroy(guests->host);
}

double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
