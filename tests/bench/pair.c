// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pairs of fake guests for measurements. */
#include "pair.h"

#include <string.h>

#define DEFAULT_PAGES 16
#define DEFAULT_DEPTH 256
#define MIB_PAGES (1u << (20 - PVR_PAGE_SHIFT))
#define OTHER_MIB 16 /* RAM for rings, directories and the like */

/* Page directories also use scattered pages: two for each buffer. */
static struct fg_guest *guest_start(struct fg_host *host, const struct bench_pair_config *pair,
				    int i)
{
	uint32_t mib = (pair->pages + pair->spare_pages) / MIB_PAGES;
	struct fg_guest_config config;
	struct fg_guest *guest;
	uint8_t gid[16];

	fg_guest_config_init(&config, (pair->first ? pair->first : 1) + i);
	config.worker = pair->worker[i];
	config.ext = BENCH_EXT;
	config.ram_mib = OTHER_MIB + mib;
	config.linear_mib = 1 + mib;
	guest = fg_guest_create(host, &config);
	fg_gid_from_mac(gid, config.mac);
	if (fg_guest_boot(guest) || fg_bind_gid(guest, 0, gid))
		fg_die("%s does not start", guest->name);
	return guest;
}

static void buf_open(struct fg_end *end, const struct bench_pair_config *config, struct fg_buf *buf,
		     struct fg_mr *mr)
{
	uint32_t pages = config->pages ? config->pages : DEFAULT_PAGES;

	fg_buf_init(buf, &end->guest->ram, pages, config->kind);
	fg_fill(buf->va, buf->size, 1);
	if (fg_mr_create(&end->pd, buf, FG_ACCESS_ALL, mr))
		fg_die("cannot register %u pages", pages);
}

void bench_pair_open(struct bench_pair *pair, const struct bench_pair_config *config)
{
	uint32_t depth = config->depth ? config->depth : DEFAULT_DEPTH;
	struct fg_qp_spec spec = { .type = config->type,
				   .sq_wr = depth,
				   .rq_wr = depth,
				   .sq_sge = 1,
				   .rq_sge = 2,
				   .max_inline = config->max_inline };

	memset(pair, 0, sizeof(*pair));
	pair->own_host = !config->host;
	pair->host = config->host ? config->host : fg_host_create();
	for (int i = 0; i < 2; i++)
		pair->guest[i] = guest_start(pair->host, config, i);
	fg_end_open_spec(&pair->a, &pair->guest[0]->kernel, &spec, 1);
	fg_end_open_spec(&pair->b, &pair->guest[1]->kernel, &spec, 1);
	buf_open(&pair->a, config, &pair->src, &pair->src_mr);
	buf_open(&pair->b, config, &pair->dst, &pair->dst_mr);
	if (config->type == PVR_QPT_UD) {
		fg_end_ready(&pair->a);
		fg_end_ready(&pair->b);
	} else {
		fg_end_connect(&pair->a, &pair->b, NULL);
	}
}

void bench_pair_close(struct bench_pair *pair)
{
	for (int i = 0; i < 2; i++)
		fg_guest_destroy(pair->guest[i]);
	if (pair->own_host)
		fg_host_destroy(pair->host);
}
