// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command line of the simulator: one seed, or many in several processes, or the shrinking of one. */
#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define MAX_JOBS 64
#define RUN_SECONDS 120 /* an engine that does not come to rest */

static const char help[] =
	"Usage: pvr_sim --seed N [--only LIST] [--trace]\n"
	"       pvr_sim --seconds S [--first N] [--runs R] [--jobs J]\n"
	"       pvr_sim --shrink N\n"
	"Simulates hosts, VMs and what happens to them, and checks what InfiniBand promises.\n\n"
	"  --seed N      one run; the last line has the hash of its trace\n"
	"  --only LIST   the events of these numbers only: 3,17,20\n"
	"  --trace       print each line of the trace\n"
	"  --seconds S   runs of one seed after the other, for so long\n"
	"  --runs R      or until so many seeds were run\n"
	"  --first N     the first seed (default 1)\n"
	"  --jobs J      processes (default: one for each CPU)\n"
	"  --shrink N    leave out events of a run that fails, while it still fails, and trace the rest\n\n"
	"Exit status 0: no rule was violated. 1: one was; its seed and the last events are printed. 2: the\n"
	"command line is wrong, or the seed to shrink violates no rule.\n"
	"The lines \"never: EVENT within STATE\" name the pairs that no run has reached.\n";

/* What a process has done; shared with the process that waits for it. */
struct job {
	uint64_t seed; /* of the present run */
	struct sim_count count;
};

/* The C library's function is replaced, see chance.c. */
static double now(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ------------------------------------------------------------------------- many seeds */

static void work(struct job *job, uint64_t seed, uint64_t last, unsigned int stride, double end)
{
	for (; now() < end && seed <= last; seed += stride) {
		const struct sim_order order = { .seed = seed };
		struct sim_result result;

		job->seed = seed;
		alarm(RUN_SECONDS);
		result = sim_run_seed(&order);
		sim_count_add(&job->count, &result.count);
	}
}

static void report(const struct job *jobs, unsigned int num, double seconds)
{
	struct sim_count sum = { 0 };

	for (unsigned int i = 0; i < num; i++)
		sim_count_add(&sum, &jobs[i].count);
	printf("%" PRIu64 " runs, %" PRIu64 " checked operations in %.0f s: %.0f runs an hour, "
	       "traces %016" PRIx64 "\n",
	       sum.runs, sum.checks, seconds, (double)sum.runs / seconds * 3600, sum.hash);
	sim_count_report(&sum);
}

/* Return: its number; @num: no process is left. */
static unsigned int wait_for_one(const pid_t *pids, unsigned int num, int *status)
{
	pid_t pid = wait(status);
	unsigned int i = 0;

	while (pid > 0 && i < num && pids[i] != pid)
		i++;
	return pid > 0 ? i : num;
}

/* The first violation ends all processes. */
static int many(uint64_t first, uint64_t last, unsigned int num, double seconds)
{
	struct job *jobs = mmap(NULL, MAX_JOBS * sizeof(*jobs), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[MAX_JOBS];
	double start = now();
	int status, failed = 0;
	unsigned int i;

	if (jobs == MAP_FAILED)
		fg_die("out of memory");
	for (i = 0; i < num; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			fg_die("cannot make a process");
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(&jobs[i], first + i, last, num, start + seconds);
		_exit(0);
	}
	while ((i = wait_for_one(pids, num, &status)) < num) {
		if (!status || failed)
			continue;
		failed = 1;
		if (WIFSIGNALED(status))
			printf("seed %" PRIu64 ": the process was killed by signal %d (%s)\n"
			       "repeat: pvr_sim --seed %" PRIu64 " --trace\n",
			       jobs[i].seed, WTERMSIG(status), strsignal(WTERMSIG(status)),
			       jobs[i].seed);
		for (i = 0; i < num; i++)
			kill(pids[i], SIGKILL);
	}
	report(jobs, num, now() - start);
	return failed;
}

/* -------------------------------------------------------------------------- shrinking */

/* In a process of its own, without output. Return: whether the run fails. */
static bool fails(const struct sim_order *order)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fg_die("cannot make a process");
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		alarm(RUN_SECONDS);
		sim_run_seed(order);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status != 0;
}

/* Leaves out [at, at + size) if the run still fails. Return: whether it does. */
static bool leave_out(struct sim_order *order, uint8_t *flags, unsigned int at, unsigned int size)
{
	uint8_t kept[SIM_STEPS];

	memcpy(kept, flags, sizeof(kept));
	memset(flags + at, 1, size);
	if (memcmp(kept, flags, sizeof(kept)) && fails(order))
		return true;
	memcpy(flags, kept, sizeof(kept));
	return false;
}

static int shrink(uint64_t seed)
{
	static uint8_t flags[SIM_STEPS];
	struct sim_order order = { .seed = seed, .left_out = flags };
	unsigned int size, at, steps, left = 0;
	bool shorter = true;

	if (!fails(&order)) {
		printf("seed %" PRIu64 " does not fail\n", seed);
		return 2;
	}
	while (shorter) {
		shorter = false;
		for (size = SIM_STEPS / 2; size; size /= 2)
			for (at = 0; at + size <= SIM_STEPS; at += size)
				shorter |= leave_out(&order, flags, at, size);
	}
	steps = sim_steps(seed);
	for (at = 0; at < steps; at++)
		left += !flags[at];
	printf("%u events are left: pvr_sim --seed %" PRIu64 " --trace --only ", left, seed);
	for (at = 0; at < steps; at++)
		if (!flags[at])
			printf("%u%s", at, --left ? "," : "\n");
	fflush(stdout);
	order.prints = true;
	sim_run_seed(&order);
	return 0;
}

/* ----------------------------------------------------------------------- command line */

static int usage(void)
{
	fputs(help, stderr);
	return 2;
}

/* The process ends if @text is no number above 0. */
static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);

	if (number && *text >= '0' && *text <= '9' && !*end)
		return number;
	fprintf(stderr, "pvr_sim: '%s' is no number above 0\n", text);
	exit(2);
}

/* @only: or NULL */
static int one(uint64_t seed, bool prints, const char *only)
{
	static uint8_t flags[SIM_STEPS];
	const struct sim_order order = {
		.seed = seed,
		.prints = prints,
		.left_out = only ? flags : NULL,
	};
	struct sim_result result;
	char *end;

	memset(flags, 1, sizeof(flags));
	while (only && *only) {
		unsigned long step = strtoul(only, &end, 10);

		if (end == only || step >= SIM_STEPS)
			return usage();
		flags[step] = 0;
		only = *end ? end + 1 : end;
	}
	result = sim_run_seed(&order);
	printf("seed %" PRIu64 ": %u events, %" PRIu64 " checked operations, trace %016" PRIx64
	       "\n",
	       seed, result.steps, result.count.checks, result.hash);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ "only", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 'S' },
		{ "first", required_argument, NULL, 'f' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "runs", required_argument, NULL, 'r' },
		{ "shrink", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t jobs = cpus > 0 ? (uint64_t)cpus : 1, seed = 0, first = 1, runs = 0, shrinks = 0;
	const char *only = NULL;
	bool prints = false;
	double seconds = 0;
	int option;

	/* json-c draws random bytes for its hashes once: here, outside of all runs. */
	json_object_put(json_object_new_object());
	json_object_put(json_tokener_parse("{\"a\":0}"));
	/* Page faults and calls of the kernel took half of the time. */
	fg_ram_keeps = true;
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 's':
			seed = number_of(optarg);
			break;
		case 'o':
			only = optarg;
			break;
		case 't':
			prints = true;
			break;
		case 'S':
			seconds = (double)number_of(optarg);
			break;
		case 'f':
			first = number_of(optarg);
			break;
		case 'r':
			runs = number_of(optarg);
			break;
		case 'j':
			jobs = number_of(optarg);
			break;
		case 'k':
			shrinks = number_of(optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return usage();
		}
	if (optind < argc || jobs > MAX_JOBS || ((only || prints) && !seed) ||
	    !!seed + !!shrinks + (seconds > 0) != 1)
		return usage();
	if (seed)
		return one(seed, prints, only);
	if (shrinks)
		return shrink(shrinks);
	return many(first, runs ? first + runs - 1 : UINT64_MAX, (unsigned int)jobs, seconds);
}
