// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The main() of unit tests: runs the tests that constructors of the source file registered. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TESTS 256

static struct CMUnitTest tests[MAX_TESTS];
void (*t_phase_hook)(void);

static struct {
	void (*run)(void **state);
	t_fixture *setup, *teardown;
	const void *row;
	char name[120];
} entries[MAX_TESTS];
static size_t count, current;
static const char *file;
static void **slot;
static const void *current_row;

void **t_state(void)
{
	return slot;
}

const void *t_row(void)
{
	return current_row;
}

/* cmocka passes the test's initial state, which is its entry of tests[]. */
static int begin(void **state)
{
	current = (const struct CMUnitTest *)*state - tests;
	slot = state;
	current_row = entries[current].row;
	*state = NULL;
	if (t_phase_hook)
		t_phase_hook();
	return entries[current].setup ? entries[current].setup(state) : 0;
}

static void run(void **state)
{
	if (t_phase_hook)
		t_phase_hook();
	entries[current].run(state);
}

static int end(void **state)
{
	if (t_phase_hook)
		t_phase_hook();
	return entries[current].teardown ? entries[current].teardown(state) : 0;
}

void t_register(const char *source, const char *name, void (*test)(void **state), t_fixture *setup,
		t_fixture *teardown, const char *label, const void *row)
{
	if (count == MAX_TESTS) {
		fprintf(stderr, "%s: more than %d tests\n", source, MAX_TESTS);
		abort();
	}
	file = source;
	entries[count].run = test;
	entries[count].setup = setup;
	entries[count].teardown = teardown;
	entries[count].row = row;
	snprintf(entries[count].name, sizeof(entries[count].name), label ? "%s[%s]" : "%s", name,
		 label);
	tests[count] = (struct CMUnitTest){ .name = entries[count].name,
					    .test_func = run,
					    .setup_func = begin,
					    .teardown_func = end,
					    .initial_state = &tests[count] };
	count++;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests(file, tests, count, NULL, NULL);
}
