// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The world of a fuzzed guest: life cycle, RAM, invariants. */
#include "fuzz_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RAM_MIB 5
#define LINEAR_MIB 1
#define PIECE_SIZE (FUZZ_PIECE_PAGES * PVR_PAGE_SIZE)
#define ROUNDS 1000000

/* ----------------------------------------------------------------------------- RAM */

static void piece_reserve(struct fuzz_piece *piece, uint64_t gpa)
{
	piece->gpa = gpa;
	piece->size = PIECE_SIZE;
	piece->guarded = PIECE_SIZE + 2 * PVR_PAGE_SIZE;
	piece->guard = mmap(NULL, piece->guarded, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (piece->guard == MAP_FAILED)
		fg_die("no address space for RAM");
	piece->va = piece->guard + PVR_PAGE_SIZE;
}

void fuzz_piece_map(struct fuzz_world *w, int who, int i, uint64_t size, bool writable)
{
	struct fuzz_piece *piece = &w->piece[who][i];
	const struct fg_ram *ram = &w->guest[who]->ram;
	const int prot = PROT_READ | (writable ? PROT_WRITE : 0);

	if (piece->mapped || !size || size > piece->size)
		return;
	if (mmap(piece->va, size, prot, MAP_SHARED | MAP_FIXED, ram->fd, (off_t)i * PIECE_SIZE) ==
	    MAP_FAILED)
		fg_die("cannot map RAM");
	if (pvr_adapter_map_ram(w->guest[who]->adapter, piece->gpa, size, piece->va, writable))
		fg_die("the device refuses RAM");
	piece->mapped = true;
	piece->writable = writable;
	piece->mapped_size = size;
}

/* An access after that is a fault, and no other memory takes the place. */
void fuzz_piece_unmap(struct fuzz_world *w, int who, int i)
{
	struct fuzz_piece *piece = &w->piece[who][i];

	if (!piece->mapped)
		return;
	pvr_adapter_unmap_ram(w->guest[who]->adapter, piece->gpa, piece->mapped_size);
	if (mmap(piece->va, piece->mapped_size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		fg_die("cannot unmap RAM");
	piece->mapped = false;
}

void fuzz_world_heal(struct fuzz_world *w)
{
	for (int who = 0; who < 2; who++) {
		for (int i = 0; i < FUZZ_PIECES; i++) {
			const struct fuzz_piece *piece = &w->piece[who][i];

			if (piece->mapped && piece->writable && piece->mapped_size == piece->size)
				continue;
			fuzz_piece_unmap(w, who, i);
			fuzz_piece_map(w, who, i, piece->size, true);
		}
	}
}

const struct fuzz_piece *fuzz_piece_of(const struct fuzz_world *w, const void *va)
{
	for (int who = 0; who < 2; who++) {
		for (int i = 0; i < FUZZ_PIECES; i++) {
			const struct fuzz_piece *piece = &w->piece[who][i];

			if (piece->mapped && piece->writable && (const uint8_t *)va >= piece->va &&
			    (const uint8_t *)va < piece->va + piece->mapped_size)
				return piece;
		}
	}
	return NULL;
}

/* ---------------------------------------------------------------------- life cycle */

static void hostile_init(struct fuzz_world *w, int who, const struct fuzz_world_options *options)
{
	struct fg_guest_config config;
	struct fg_guest *g;
	uint8_t gid[16];

	fg_guest_config_init(&config, (uint32_t)who + 1);
	config.ram_mib = RAM_MIB;
	config.linear_mib = LINEAR_MIB;
	config.ext = options->ext[who];
	config.uar_mapped = options->uar_mapped[who];
	config.worker = who ? options->workers - 1 : 0;
	g = fg_guest_create(w->host, &config);
	w->guest[who] = g;
	if (g->ram.npages != FUZZ_PIECES * FUZZ_PIECE_PAGES)
		fg_die("RAM of %u pages", g->ram.npages);
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		pvr_adapter_unmap_ram(g->adapter, g->ram.region[i].gpa, g->ram.region[i].size);
	for (int i = 0; i < FUZZ_PIECES; i++) {
		piece_reserve(&w->piece[who][i],
			      fg_page_gpa(&g->ram, (uint32_t)i * FUZZ_PIECE_PAGES));
		fuzz_piece_map(w, who, i, PIECE_SIZE, true);
	}
	if (fg_guest_boot(g))
		fg_die("probe fails");
	fg_gid_from_mac(gid, g->config.mac);
	if (fg_bind_gid(g, 0, gid))
		fg_die("cannot bind a GID");
}

static void witness_init(struct fuzz_world *w, int i, unsigned int worker)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, 3 + (uint32_t)i);
	config.ram_mib = RAM_MIB;
	config.linear_mib = LINEAR_MIB;
	config.ext = 0;
	config.worker = worker;
	w->other[i] = fg_guest_create(w->host, &config);
	if (fg_guest_boot(w->other[i]))
		fg_die("probe fails");
	fg_gid_from_mac(w->witness[i].gid, w->other[i]->config.mac);
	if (fg_bind_gid(w->other[i], 0, w->witness[i].gid))
		fg_die("cannot bind a GID");
	fg_end_open(&w->witness[i], w->other[i], PVR_QPT_RC);
}

void fuzz_world_init(struct fuzz_world *w, const struct fuzz_world_options *options)
{
	memset(w, 0, sizeof(*w));
	w->host = fg_host_create_workers(options->workers);
	w->host->polls = options->polls;
	for (int i = 0; i < 2; i++)
		hostile_init(w, i, options);
	for (int i = 0; i < 2; i++)
		witness_init(w, i, i ? options->workers - 1 : 0);
	fg_end_connect(&w->witness[0], &w->witness[1], NULL);
}

void fuzz_world_exit(struct fuzz_world *w)
{
	for (int i = 0; i < 2; i++) {
		fg_guest_destroy(w->guest[i]);
		fg_guest_destroy(w->other[i]);
		for (int r = 0; r < FUZZ_PIECES; r++)
			munmap(w->piece[i][r].guard, w->piece[i][r].guarded);
	}
	fg_host_destroy(w->host);
}

/* ---------------------------------------------------------------------- invariants */

static void run(struct fuzz_world *w)
{
	if (!fg_run_bounded(w->host, ROUNDS))
		fg_die("the device does not come to rest");
}

static void check_ping(struct fuzz_world *w, struct fg_end *from, struct fg_end *to)
{
	const struct pvrdma_sge out = fg_sge(&from->mr, 0, 300), in = fg_sge(&to->mr, 1000, 300);
	const struct fg_wr wr = {
		.wr_id = 2,
		.opcode = PVRDMA_WR_SEND,
		.flags = PVR_SEND_SIGNALED,
		.sge = &out,
		.num_sge = 1,
	};
	struct pvrdma_cqe cqe;

	fg_fill(from->mr.va, 300, 77);
	memset(to->mr.va + 1000, 0, 300);
	fg_post_recv(&to->qp, 1, &in, 1);
	fg_post_send(&from->qp, &wr);
	run(w);
	if (!fg_cq_poll(&to->rcq, &cqe) || cqe.status || cqe.wr_id != 1 ||
	    !fg_cq_poll(&from->scq, &cqe) || cqe.status || cqe.wr_id != 2)
		fg_die("a guest that did nothing wrong lost a message");
	if (fg_mismatch(to->mr.va + 1000, 300, 77) != 300)
		fg_die("a guest that did nothing wrong got other bytes");
}

static void check_reset(struct fg_guest *g)
{
	struct pvr_adapter_stats stats;

	pvr_adapter_set_bus_master(g->adapter, true);
	pvr_adapter_set_link(g->adapter, true);
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	stats = fg_stats(g);
	if (stats.state != PVR_ADAPTER_IDLE)
		fg_die("%s: state %d after RESET", g->name, stats.state);
	if (stats.contexts | stats.pds | stats.mrs | stats.mws | stats.cqs | stats.qps |
	    stats.srqs | stats.gids)
		fg_die("%s: objects are left after RESET", g->name);
}

void fuzz_world_check(struct fuzz_world *w, bool heals)
{
	if (heals)
		fuzz_world_heal(w);
	run(w);
	check_ping(w, &w->witness[0], &w->witness[1]);
	check_ping(w, &w->witness[1], &w->witness[0]);
	for (int i = 0; i < 2; i++)
		check_reset(w->guest[i]);
	fuzz_world_heal(w);
	fg_monkey_recover(&w->monkey);
}
