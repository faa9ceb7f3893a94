// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Benchmarks of the device library; scripts/bench/native formats the output. */
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
	{ "neighbors", bench_neighbors, "256 adapters: rate, shares and delay" },
	{ "qos", bench_qos, "a pair beside a limited one, and the error of limits" },
	{ "migrate", bench_migrate, "a log of dirty pages, and the pause of a move" },
	{ "regions", bench_regions, "registration of 1 GiB, 100,000 regions" },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void usage(FILE *out)
{
	fprintf(out, "Usage: bench [-c] [-k] [-r ROUNDS] [-t MILLISECONDS] [GROUP...]\n\n"
		     "Prints a line of JSON per row. Groups, default all:\n");
	for (size_t i = 0; i < GROUPS; i++)
		fprintf(out, "  %-12s %s\n", groups[i].name, groups[i].what);
	fprintf(out, "Options:\n"
		     "  -c  by the CPU time of the threads\n"
		     "  -k  only see that all rows work: small, once, and TAP beside the JSON\n"
		     "  -r  rounds of each row, default 11\n"
		     "  -t  how long each side of a row takes in a round, default 20\n");
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

	while ((c = getopt(argc, argv, "chkr:t:")) != -1) {
		switch (c) {
		case 'c':
			bench_options.cpu_time = true;
			break;
		case 'k':
			bench_options.small = true;
			bench_options.rounds = 1;
			bench_options.slice_ns = 1000000;
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

static void run(const struct group *group)
{
	static unsigned int n;

	group->run();
	/* A failure ends the process. */
	if (bench_options.small)
		printf("ok %u - bench_%s\n", ++n, group->name);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	bench_clock_init();
	if (bench_options.small)
		printf("1..%zu\n", optind == argc ? GROUPS : (size_t)(argc - optind));
	for (int i = optind; i < argc; i++)
		run(group_named(argv[i]));
	for (size_t i = 0; i < GROUPS && optind == argc; i++)
		run(&groups[i]);
	return 0;
}
