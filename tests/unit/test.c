// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The main() of unit tests: runs the tests that constructors of the source file registered. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TESTS 256

static struct CMUnitTest tests[MAX_TESTS];
static t_fixture *setups[MAX_TESTS];
static size_t count;
static const char *file;
static void **slot;

void **t_state(void)
{
	return slot;
}

/* cmocka passes the test's initial state, which is its entry of setups[]. */
static int begin(void **state)
{
	t_fixture **setup = *state;

	slot = state;
	*state = NULL;
	return *setup ? (*setup)(state) : 0;
}

void t_register(const char *source, const char *name, void (*run)(void **state), t_fixture *setup,
		t_fixture *teardown)
{
	if (count == MAX_TESTS) {
		fprintf(stderr, "%s: more than %d tests\n", source, MAX_TESTS);
		abort();
	}
	file = source;
	setups[count] = setup;
	tests[count] = (struct CMUnitTest){ .name = name,
					    .test_func = run,
					    .setup_func = begin,
					    .teardown_func = teardown,
					    .initial_state = &setups[count] };
	count++;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests(file, tests, count, NULL, NULL);
}
