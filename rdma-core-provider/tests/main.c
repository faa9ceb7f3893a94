// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs the tests that TEST() has registered. */
#include <stdlib.h>

#include "fake_kernel.h"

#define MAX_TESTS 64

static struct CMUnitTest tests[MAX_TESTS];
static size_t num_tests;

void fake_add_test(struct CMUnitTest test)
{
	if (num_tests == MAX_TESTS)
		abort();
	tests[num_tests++] = test;
}

int main(void)
{
	/* cmocka_run_group_tests() needs an array of constant size. */
	return _cmocka_run_group_tests("provider", tests, num_tests, NULL, NULL);
}
