// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How many small messages the device executes in a second, on one thread. */
#include "load.h"

static const struct {
	const char *name;
	enum pvr_qp_type type;
	enum pvrdma_wr_opcode opcode;
	uint32_t signal_every;
} rates[] = {
	{ "write_rate", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 64 },
	{ "write_rate_signaled", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 1 },
	{ "send_rate", PVR_QPT_RC, PVRDMA_WR_SEND, 64 },
	{ "read_rate", PVR_QPT_RC, PVRDMA_WR_RDMA_READ, 64 },
	{ "ud_rate", PVR_QPT_UD, PVRDMA_WR_SEND, 64 },
};

void bench_rate(void)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bench_load load;
		struct bench_side us = { "device", bench_load_rate, &load };
		struct bench_pair pair;

		bench_pair_open(&pair, &(struct bench_pair_config){ .type = rates[i].type });
		bench_load_init(&load, &pair, rates[i].opcode, 8);
		load.signal_every = rates[i].signal_every;
		bench_row_of(rates[i].name, 8, "1/s", &us, NULL);
		bench_pair_close(&pair);
	}
}
