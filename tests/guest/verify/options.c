// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify.h"

static void usage(FILE *to)
{
	fputs("Usage: pvr_verify [OPTIONS] [PEER]\n"
	      "Moves random data with all RDMA operations and compares every byte.\n"
	      "Without PEER it waits for one, whose options it takes; else it connects to it.\n"
	      "  --both-ends-here     both ends in this process: two QPs, then one QP and itself\n"
	      "  --iterations N       operations per kind of QP (default 1000)\n"
	      "  --bytes-max N        largest message (default 65536)\n"
	      "  --seed N             default: from the clock; printed\n"
	      "  -e, --events         sleep until completion events\n"
	      "  --cpus               the CPUs' own atomics contend with the device's\n"
	      "  -p, --port N         TCP port (default 18600)\n"
	      "  -h, --help           this\n",
	      to);
}

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

enum { OPT_HERE = 256, OPT_ITERATIONS, OPT_BYTES, OPT_SEED, OPT_CPUS };

static const struct option long_options[] = {
	{ "both-ends-here", no_argument, NULL, OPT_HERE },
	{ "iterations", required_argument, NULL, OPT_ITERATIONS },
	{ "bytes-max", required_argument, NULL, OPT_BYTES },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "cpus", no_argument, NULL, OPT_CPUS },
	{ "events", no_argument, NULL, 'e' },
	{ "port", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static void set_option(struct options *options, int option, const char *value)
{
	switch (option) {
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
	case 'e':
		options->params.events = 1;
		break;
	case 'p':
		options->port = value;
		break;
	case 'h':
		usage(stdout);
		exit(0);
	default:
		usage(stderr);
		exit(2);
	}
}

struct options parse_options(int argc, char **argv)
{
	struct options options = {
		.params = { .magic = PARAMS_MAGIC,
			    .iterations = 1000,
			    .bytes_max = 65536,
			    .depth = 16,
			    .seed = (uint64_t)(now() * 1e6) },
		.port = "18600",
	};
	int option;

	while ((option = getopt_long(argc, argv, "ep:h", long_options, NULL)) != -1)
		set_option(&options, option, optarg);
	options.peer = optind < argc ? argv[optind++] : NULL;
	if (optind < argc || (options.peer && options.both_ends_here)) {
		usage(stderr);
		exit(2);
	}
	return options;
}
