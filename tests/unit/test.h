/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Declares and registers tests. Each program of unit tests links test.c, which has main() and
 * runs the registered tests in the order of the source file. An argument of the program is a
 * pattern as of a shell ('*' and '?') and selects tests by name.
 */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef int t_fixture(void **state);

/*
 * Called by constructors only: GCC and Clang call those of a file in their order. @label: NULL, or
 * that of @row, which becomes part of the test's name.
 */
void t_register(const char *source, const char *name, void (*run)(void **state), t_fixture *setup,
		t_fixture *teardown, const char *label, const void *row);
/* The slot of the running test: its fixture stores the environment there. */
void **t_state(void);
/* Called in each phase of a test: cmocka has set its signal handlers. NULL: nothing is. */
extern void (*t_phase_hook)(void);
/* The row of the running test, also in its fixture; NULL outside TEST_CASES(). */
const void *t_row(void);

#define T_REGISTER(test, setup, teardown)                                             \
	__attribute__((constructor)) static void test##_register(void)                \
	{                                                                             \
		t_register(__FILE__, #test, test##_run, setup, teardown, NULL, NULL); \
	}

/* TEST_SETUP(setup, teardown, name) { ... }: a test whose body has no parameter. */
#define TEST_SETUP(setup, teardown, test)                 \
	__attribute__((noinline)) static void test(void); \
	static void test##_run(void **state)              \
	{                                                 \
		test();                                   \
	}                                                 \
	T_REGISTER(test, setup, teardown)                 \
	static void test(void)

#define TEST_PLAIN(test) TEST_SETUP(NULL, NULL, test)

/*
 * TEST_WITH(struct pair *pair, setup, teardown, name) { ... }: a test with a fixture of its own.
 * @decl declares the body's parameter, which is the pointer that @setup has stored.
 */
#define TEST_WITH(decl, setup, teardown, test)            \
	__attribute__((noinline)) static void test(decl); \
	static void test##_run(void **state)              \
	{                                                 \
		test(*state);                             \
	}                                                 \
	T_REGISTER(test, setup, teardown)                 \
	static void test(decl)

/*
 * TEST_CASES_WITH(decl, setup, teardown, name, rows) { ... }: a test for each row of the array
 * @rows, with a fixture each. The body also has row, a pointer to its row. A row's member label
 * names it: the test is "name[label]".
 */
#define TEST_CASES_WITH(decl, setup, teardown, test, rows)                                      \
	__attribute__((noinline)) static void test(decl, const __typeof__((rows)[0]) *row);     \
	static void test##_run(void **state)                                                    \
	{                                                                                       \
		test(*state, t_row());                                                          \
	}                                                                                       \
	__attribute__((constructor)) static void test##_register(void)                          \
	{                                                                                       \
		for (size_t i = 0; i < COUNT(rows); i++)                                        \
			t_register(__FILE__, #test, test##_run, setup, teardown, rows[i].label, \
				   &rows[i]);                                                   \
	}                                                                                       \
	static void test(decl, const __typeof__((rows)[0]) *row)

/* TEST_INIT { ... }: runs before the first test; at most one per program. */
#define TEST_INIT __attribute__((constructor)) static void t_init(void)

#endif /* UNIT_TEST_H */
