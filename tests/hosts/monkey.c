// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two hostile guests at adapters of running daemons, see fg_monkey.h. They never check data:
 * they disturb other guests. The process ends with status 0 when a daemon closes a connection.
 */
#include <stdio.h>
#include <unistd.h>

#include "fg_monkey.h"
#include "guests.h"
#include "plug.h"

#define RAM_MIB 64
#define STEPS_BETWEEN_LOOKS 64

static const char help[] =
	"Usage: hosts_monkey [OPTION]... NUMBER=SOCKET NUMBER=SOCKET\n"
	"Plugs two hostile guests into adapters of running daemons. Their commands, work requests,\n"
	"doorbells and register accesses are random.\n\n"
	"  --seed N       of the random numbers (default 1)\n"
	"  --seconds S    duration (default 5)\n"
	"  --until FILE   or until there is such a file\n\n"
	"Exit status 0: the time is over, or a daemon has closed a connection.\n";

static bool is_over(const struct fg_monkey *monkey, double deadline, const char *until)
{
	return now() >= deadline || (until && !access(until, F_OK)) ||
	       plug_is_gone(monkey->guest[0]->adapter) || plug_is_gone(monkey->guest[1]->adapter);
}

int main(int argc, char **argv)
{
	static struct fg_monkey monkey;
	struct fg_guest *guest[2];
	struct fg_host *host;
	const char *until = NULL;
	unsigned int seed = 1;
	double seconds = 5;
	uint64_t steps = 0;
	const struct guests_option options[] = {
		{ "seed", GUESTS_NUMBER, &seed },
		{ "seconds", GUESTS_SECONDS, &seconds },
		{ "until", GUESTS_TEXT, &until },
		{ 0 },
	};

	guests_parse(NULL, options, help, argc, argv);
	if (argc - optind != 2)
		guests_usage(help);
	host = fg_host_create();
	for (int i = 0; i < 2; i++)
		guest[i] = guests_plug(host, argv[optind + i], RAM_MIB, false);
	fg_monkey_init(&monkey, host, guest[0], guest[1], seed);
	fprintf(stderr, "begun\n");
	for (seconds += now(); !is_over(&monkey, seconds, until); steps += STEPS_BETWEEN_LOOKS)
		for (int i = 0; i < STEPS_BETWEEN_LOOKS; i++)
			fg_monkey_step(&monkey);
	printf("{\"steps\": %llu}\n", (unsigned long long)steps);
	return 0;
}
