// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The cost of a log of dirty pages, and the pause of an adapter whose state moves. */
#include <stdlib.h>
#include <string.h>

#include "fg_dirty.h"
#include "fg_migrate.h"
#include "load.h"

#define PAGES_PER_QP 4

/* ---------------------------------------------------------------- the log */

/* The same pair with and without the log: the places of two pairs in memory make a difference. */
struct logged {
	struct bench_load load;
	double (*run)(void *arg, uint64_t ns);
};

/* A side of a row; @arg: struct logged. */
static double log_on(void *arg, uint64_t ns)
{
	struct logged *logged = arg;
	double value;

	for (unsigned int i = 0; i < 2; i++)
		fg_dirty_start(logged->load.pair->guest[i]);
	value = logged->run(&logged->load, ns);
	for (unsigned int i = 0; i < 2; i++)
		pvr_adapter_stop_dirty_log(logged->load.pair->guest[i]->adapter);
	return value;
}

static void logged_row(const char *name, const char *unit, uint32_t size,
		       double (*run)(void *arg, uint64_t ns))
{
	struct logged logged = { .run = run };
	struct bench_side us = { "log on", log_on, &logged };
	struct bench_side peer = { "log off", run, &logged.load };
	struct bench_pair pair;

	bench_pair_open(&pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	bench_load_init(&logged.load, &pair, PVRDMA_WR_RDMA_WRITE, size);
	bench_row_of(name, size, unit, &us, &peer);
	bench_pair_close(&pair);
}

/* -------------------------------------------------------------- the pause */

enum part { PAUSE, SAVE, LOAD, BYTES, PARTS };

static const struct {
	const char *name, *unit;
} parts[PARTS] = {
	[PAUSE] = { "migrate_pause", "s" },
	[SAVE] = { "migrate_save", "s" },
	[LOAD] = { "migrate_load", "s" },
	[BYTES] = { "migrate_state", "B" },
};

struct move {
	struct fg_guest *guest;
	enum part part;
};

static double seconds(uint64_t begin)
{
	return (double)(bench_now() - begin) / FG_SEC;
}

static void check(int err, const char *what)
{
	if (err)
		fg_die("%s: %s", what, strerror(-err));
}

/* To the adapter itself, whose emptying does not count: another one is empty. */
static void run_move(struct fg_guest *guest, double value[PARTS])
{
	struct fg_state state;
	uint64_t begin = bench_now();

	fg_stop(guest);
	value[PAUSE] = seconds(begin);
	begin = bench_now();
	check(fg_state_save(guest, &state), "save");
	value[SAVE] = seconds(begin);
	value[BYTES] = (double)state.size;
	fg_drop(guest);
	begin = bench_now();
	check(fg_state_load(guest, &state), "load");
	value[LOAD] = seconds(begin);
	fg_state_free(&state);
	begin = bench_now();
	check(fg_start(guest), "start");
	fg_run(guest->host);
	value[PAUSE] += value[SAVE] + value[LOAD] + seconds(begin);
}

/* A side of a row; @arg: struct move. */
static double move(void *arg, uint64_t ns)
{
	struct move *move = arg;
	double value[PARTS];

	run_move(move->guest, value);
	return value[move->part];
}

/* Besides the pair's own one. */
static struct fg_qp *open_qps(struct bench_pair *pair, uint32_t n)
{
	struct fg_qp *qps = calloc(n ? n : 1, sizeof(*qps));
	struct fg_qp_spec spec = { .pd = &pair->a.pd,
				   .scq = &pair->a.scq,
				   .rcq = &pair->a.rcq,
				   .type = PVR_QPT_RC,
				   .sq_wr = 16,
				   .sq_sge = 1,
				   .rq_wr = 16,
				   .rq_sge = 1,
				   .kind = FG_LINEAR };

	if (!qps)
		fg_die("no memory for %u QPs", n);
	for (uint32_t i = 0; i < n; i++)
		if (fg_qp_create(&spec, &qps[i]) ||
		    fg_qp_connect(&qps[i], NULL, pair->b.gid, pair->b.qp.qpn))
			fg_die("cannot connect QP %u", i);
	return qps;
}

static void move_rows(uint32_t n)
{
	struct bench_pair pair;
	struct fg_qp *qps;

	bench_pair_open(&pair, &(struct bench_pair_config){ .type = PVR_QPT_RC,
							    .spare_pages = n * PAGES_PER_QP });
	qps = open_qps(&pair, n - 1);
	for (enum part part = PAUSE; part < PARTS; part++) {
		struct move arg = { pair.guest[0], part };
		struct bench_side us = { "device", move, &arg };

		bench_row_of(parts[part].name, n, parts[part].unit, &us, NULL);
	}
	bench_pair_close(&pair);
	free(qps);
}

void bench_migrate(void)
{
	logged_row("write_rate_logged", "1/s", 8, bench_load_rate);
	logged_row("write_bw_logged", "B/s", 65536, bench_load_bandwidth);
	move_rows(1);
	move_rows(bench_count(1000));
	move_rows(bench_count(10000));
}
