// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two guests that are plugged in. */
#include "guests.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine.h"
#include "oob.h"
#include "plug.h"

#define MAX_OPTIONS 16
#define FIRST_OPTION 1000

struct fg_guest *guests_plug(struct fg_host *host, const char *spec, uint32_t ram_mib, bool linear)
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
	plug_set_socket(path + 1);
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

_Noreturn void guests_usage(const char *help)
{
	fputs(help, stderr);
	exit(2);
}

static void set_option(const struct guests_option *row, const char *arg)
{
	switch (row->kind) {
	case GUESTS_FLAG:
		*(bool *)row->value = true;
		break;
	case GUESTS_NUMBER:
		*(unsigned int *)row->value = (unsigned int)strtoul(arg, NULL, 10);
		break;
	case GUESTS_SECONDS:
		*(double *)row->value = atof(arg);
		break;
	case GUESTS_TEXT:
		*(const char **)row->value = arg;
		break;
	}
}

void guests_parse(struct guests *guests, const struct guests_option *rows, const char *help,
		  int argc, char **argv)
{
	const struct guests_option own[] = {
		{ "serve", GUESTS_TEXT, guests ? &guests->serve : NULL },
		{ "join", GUESTS_TEXT, guests ? &guests->join : NULL },
		{ "linear", GUESTS_FLAG, guests ? &guests->linear : NULL },
		{ 0 },
	};
	const struct guests_option *row, *found[MAX_OPTIONS];
	struct option options[MAX_OPTIONS + 2] = { { "help", no_argument, NULL, 'h' } };
	int option, num = 0;

	for (row = rows; row->name; row++)
		found[num++] = row;
	for (row = own; guests && row->name; row++)
		found[num++] = row;
	for (int i = 0; i < num; i++)
		options[1 + i] = (struct option){
			.name = found[i]->name,
			.has_arg = found[i]->kind == GUESTS_FLAG ? no_argument : required_argument,
			.val = FIRST_OPTION + i,
		};
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (option < FIRST_OPTION)
			guests_usage(help);
		set_option(found[option - FIRST_OPTION], optarg);
	}
	if (guests && guests->serve && guests->join)
		fg_die("--serve and --join: one of them");
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
		guests->guest[i] = guests_plug(guests->host, *spec++, ram_mib, guests->linear);
	}
	guests->far.fd = guests->serve ? oob_open(NULL, guests->serve) : -1;
	if (guests->join)
		far_join(&guests->far, guests->join);
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

void guests_open_end(struct guests *guests, int i, struct fg_end *end,
		     const struct fg_qp_spec *spec, size_t bytes)
{
	if (guests->guest[i])
		fg_end_open_spec(end, &guests->guest[i]->kernel, spec,
				 (uint32_t)((bytes + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE));
}

void guests_post_wr(struct fg_end *end, const struct fg_wr *wr)
{
	if (!fg_post_send(&end->qp, wr))
		fg_die("%s: a send queue is full", end->guest->name);
}

void guests_post_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&end->mr, offset, len);

	if (!fg_post_recv(&end->qp, wr_id, &sge, 1))
		fg_die("%s: a receive queue is full", end->guest->name);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *values, size_t num)
{
	if (!num)
		fg_die("nothing was measured");
	qsort(values, num, sizeof(*values), compare);
	return values[num / 2];
}
