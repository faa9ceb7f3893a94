// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_random [-s SEED] [-t SECONDS] [-p PROCESSES] [-n NUMBER]
 *
 * Random verbs of an ordinary user, until the time is over: all verbs with valid and hostile
 * arguments, in processes of some threads that live for seconds and are often killed. It prints the
 * seed, its progress, and how often each verb succeeded/was refused. Each thread draws from the seed,
 * the number of its process and its own. -n starts with another process than the first.
 *
 * It ends with 1 if a process that is not hostile crashes, or if one does not end once it is
 * killed. The caller looks for complaints of the kernel.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random.h"

#define PROCESSES_MAX 8
#define LIFE_MIN 3 /* seconds */
#define LIFE_MAX 30
#define END_SECONDS 900 /* from the end of a life to that of its process, on a starved machine */
#define PROGRESS_SECONDS 10

struct process {
	pid_t pid; /* 0: none */
	uint64_t number;
	double kill_at, gone_at;
	bool killed;
};

static struct {
	uint64_t seed, next;
	double seconds;
	struct ibv_device *device;
	int processes;
	int mail[2];
	struct chance chance;
	struct process table[PROCESSES_MAX];
	uint64_t started, killed, crashed;
} run = { .seconds = 10, .processes = 3 };

static void start(struct process *process)
{
	double life = LIFE_MIN + below(&run.chance, (LIFE_MAX - LIFE_MIN) * 1000) / 1e3;
	bool dies_early = one_in(&run.chance, 2);

	*process = (struct process){ .number = run.next++ };
	process->kill_at = now() + (dies_early ? life * below(&run.chance, 1000) / 1e3 : life + 5);
	process->gone_at = process->kill_at + END_SECONDS;
	process->pid = fork();
	if (process->pid < 0)
		die("fork:");
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		actor_run(run.device, run.seed, process->number, life,
			  run.mail[process->number / 2 % 2]);
	}
	run.started++;
}

static void end(struct process *process)
{
	if (!process->killed)
		kill(process->pid, SIGKILL);
	process->killed = true;
}

static void report_end(const struct process *process, int status)
{
	bool is_hostile = process->number % 2;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		run.killed++;
	else if (status && is_hostile)
		run.crashed++;
	else if (status)
		die("process %llu of seed %llu ended with %s %d",
		    (unsigned long long)process->number, (unsigned long long)run.seed,
		    WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void look_after(struct process *process)
{
	int status;
	pid_t pid = waitpid(process->pid, &status, WNOHANG);

	if (pid == process->pid) {
		process->pid = 0;
		report_end(process, status);
	} else if (now() > process->gone_at) {
		die("process %llu of seed %llu (pid %d) was killed, but does not end in %d s",
		    (unsigned long long)process->number, (unsigned long long)run.seed, process->pid,
		    END_SECONDS);
	} else if (now() > process->kill_at) {
		end(process);
	}
}

static void print_progress(double seconds)
{
	uint64_t ok = 0, refused = 0;

	for (int i = 0; i < VERB_NUM; i++) {
		ok += tally->ok[i];
		refused += tally->refused[i];
	}
	printf("random: %.0f s, %llu processes, %llu killed, %llu hostile ones crashed, "
	       "calls: %llu ok, %llu refused\n",
	       seconds, (unsigned long long)run.started, (unsigned long long)run.killed,
	       (unsigned long long)run.crashed, (unsigned long long)ok,
	       (unsigned long long)refused);
	fflush(stdout);
}

static void run_processes(void)
{
	double begin = now(), progress = begin + PROGRESS_SECONDS;

	while (now() < begin + run.seconds) {
		for (int i = 0; i < run.processes; i++) {
			if (run.table[i].pid)
				look_after(&run.table[i]);
			else
				start(&run.table[i]);
		}
		if (now() > progress) {
			print_progress(now() - begin);
			progress += PROGRESS_SECONDS;
		}
		usleep(20000);
	}
	for (int i = 0; i < run.processes; i++) {
		if (run.table[i].pid) {
			end(&run.table[i]);
			run.table[i].gone_at = now() + END_SECONDS;
		}
		for (; run.table[i].pid; usleep(20000))
			look_after(&run.table[i]);
	}
	print_progress(now() - begin);
}

/* Without a seed, one of the time. */
static void read_options(int argc, char **argv)
{
	int option;

	run.seed = time(NULL);
	while ((option = getopt(argc, argv, "s:t:p:n:")) != -1) {
		if (option == 's')
			run.seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			run.seconds = atof(optarg);
		else if (option == 'p')
			run.processes = atoi(optarg);
		else if (option == 'n')
			run.next = strtoull(optarg, NULL, 0);
		else
			die("usage: pvr_random [-s SEED] [-t SECONDS] [-p PROCESSES] [-n NUMBER]");
	}
	if (run.processes < 1 || run.processes > PROCESSES_MAX)
		die("-p %d: expected 1 to %d", run.processes, PROCESSES_MAX);
}

int main(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };

	read_options(argc, argv);
	printf("random: seed %llu\n", (unsigned long long)run.seed);
	fflush(stdout);
	run.chance = chance_of(run.seed, UINT64_MAX);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		die("mmap:");
	MUST(setrlimit(RLIMIT_CORE, &none));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, run.mail));
	run.device = device_find();
	run_processes();
	tally_print();
	return 0;
}
