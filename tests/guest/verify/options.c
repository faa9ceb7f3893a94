// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <argp.h>
#include <errno.h>
#include <stdlib.h>

#include "verify.h"

static const char doc[] =
	"Moves random data with all RDMA operations and compares every byte.\v"
	"Without PEER it waits for one, whose options it takes; else it connects to it.";

enum {
	OPT_HERE = 256,
	OPT_ITERATIONS,
	OPT_BYTES,
	OPT_SEED,
	OPT_CPUS,
	OPT_SKIP_WINDOWS,
	OPT_RELIABLE
};

static const struct argp_option rows[] = {
	{ "both-ends-here", OPT_HERE, .doc = "both ends here: two QPs, then one QP and itself" },
	{ "iterations", OPT_ITERATIONS, "N", .doc = "operations per kind of QP (default 1000)" },
	{ "bytes-max", OPT_BYTES, "N", .doc = "largest message (default 65536)" },
	{ "seed", OPT_SEED, "N", .doc = "default: from the clock; printed" },
	{ "events", 'e', .doc = "sleep until completion events" },
	{ "cpus", OPT_CPUS, .doc = "the CPUs' own atomics contend with the device's" },
	{ "skip-windows", OPT_SKIP_WINDOWS, .doc = "no memory windows" },
	{ "reliable", OPT_RELIABLE, .doc = "no UC and UD, whose messages may be lost" },
	{ "port", 'p', "N", .doc = "TCP port (default 18600)" },
	{},
};

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || value < min || value > max)
		die("--%s is '%s', expected %llu to %llu", name, text, (unsigned long long)min,
		    (unsigned long long)max);
	return value;
}

static error_t set_option(int key, char *value, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPT_HERE:
		options->both_ends_here = true;
		break;
	case OPT_ITERATIONS:
		options->params.iterations = number("iterations", value, 1, UINT32_MAX);
		break;
	case OPT_BYTES:
		options->params.bytes_max = number("bytes-max", value, 1, 16 << 20);
		break;
	case OPT_SEED:
		options->params.seed = number("seed", value, 0, UINT64_MAX);
		break;
	case OPT_CPUS:
		options->params.cpus = 1;
		break;
	case OPT_SKIP_WINDOWS:
		options->skip_windows = true;
		break;
	case OPT_RELIABLE:
		options->reliable = true;
		break;
	case 'e':
		options->params.events = 1;
		break;
	case 'p':
		options->port = value;
		break;
	case ARGP_KEY_ARG:
		if (options->peer || options->both_ends_here)
			argp_usage(state);
		options->peer = value;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

struct options parse_options(int argc, char **argv)
{
	const struct argp argp = { rows, set_option, "[PEER]", doc };
	struct options options = {
		.params = { .magic = PARAMS_MAGIC,
			    .iterations = 1000,
			    .bytes_max = 65536,
			    .depth = 16,
			    .seed = (uint64_t)(now() * 1e6) },
		.port = "18600",
	};

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	return options;
}
