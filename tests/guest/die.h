/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The end of a test program in case of an error, and the clock. */
#ifndef PVR_TEST_DIE_H
#define PVR_TEST_DIE_H

/* Prints "NAME: ..." on stderr and exits 1; strerror(errno) follows if the format ends in ':'. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Dies unless the call returns 0. Its result is an errno, or negative with errno set. */
#define MUST(call) must(call, #call)
void must(int result, const char *call);
/* The pointer that the call returns; dies if it is NULL. */
#define MUST_HAVE(call) must_have(call, #call)
void *must_have(void *result, const char *call);

/* Seconds of a clock that does not jump. */
double now(void);

#endif
