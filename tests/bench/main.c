// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Benchmarks of the device library; scripts/bench makes a table of what this prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static const struct group {
	const char *name;
	void (*run)(void);
	const char *what;
} groups[] = {
	{ "rate", bench_rate, "small messages per second" },
	{ "latency", bench_latency, "from posting to completion" },
	{ "bandwidth", bench_bandwidth, "RDMA WRITE and READ against memcpy" },
	{ "workers", bench_workers, "two workers" },
	{ "hostile", bench_hostile, "a pair beside a hostile guest" },
	{ "scale", bench_scale, "10,000 queue pairs, and memory of an idle one" },
	{ "regions", bench_regions, "registration of 1 GiB, 100,000 regions" },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void usage(FILE *out)
{
	fprintf(out, "Usage: bench [-c] [-r ROUNDS] [-t MILLISECONDS] [GROUP...]\n\n"
		     "Prints a line of JSON per row. -c: by the CPU time of the thread. Groups, "
		     "default all:\n");
	for (size_t i = 0; i < GROUPS; i++)
		fprintf(out, "  %-12s %s\n", groups[i].name, groups[i].what);
}

static const struct group *group_named(const char *name)
{
	for (size_t i = 0; i < GROUPS; i++)
		if (!strcmp(groups[i].name, name))
			return &groups[i];
	fprintf(stderr, "bench: no group '%s'\n", name);
	usage(stderr);
	exit(2);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "chr:t:")) != -1) {
		switch (c) {
		case 'c':
			bench_options.cpu_time = true;
			break;
		case 'r':
			bench_options.rounds = strtoul(optarg, NULL, 10);
			break;
		case 't':
			bench_options.slice_ns = strtoull(optarg, NULL, 10) * 1000000;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	for (int i = optind; i < argc; i++)
		group_named(argv[i]);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	for (int i = optind; i < argc; i++)
		group_named(argv[i])->run();
	for (size_t i = 0; i < GROUPS && optind == argc; i++)
		groups[i].run();
	return 0;
}
