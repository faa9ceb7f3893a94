// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * fail_nth FILE.ko NAME: load a module again and again with one allocation failing: the first ones in turn, later ones
 * in growing steps, until none fails.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_ALLOCATIONS 100000
#define DENSE 16 /* steps of 1 up to here, of 1/16 of the way behind */

static int open_or_exit(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		err(2, "cannot open %s", path);
	return fd;
}

/* The kernel lets this task's nth allocation fail; 0: none. */
static void set_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fd, text, len, 0) != len)
		err(2, "cannot write fail-nth");
}

/* Allocations still to come until one fails; 0: it has. */
static int left(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		err(2, "cannot read fail-nth");
	return atoi(text);
}

int main(int argc, char **argv)
{
	int nth, module, control, failed = 0, refused = 0;

	if (argc != 3)
		errx(2, "usage: fail_nth FILE.ko NAME");
	module = open_or_exit(argv[1], O_RDONLY | O_CLOEXEC);
	control = open_or_exit("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	for (nth = 1; nth < MAX_ALLOCATIONS; nth += 1 + nth / DENSE) {
		int refusal, remaining;

		set_nth(control, nth);
		refusal = syscall(SYS_finit_module, module, "", 0);
		remaining = left(control);
		set_nth(control, 0);
		if (refusal)
			refused++;
		else if (syscall(SYS_delete_module, argv[2], O_NONBLOCK))
			err(1, "cannot unload");
		if (remaining)
			break;
		failed++;
	}
	printf("%d of some %d allocations failed, %d times the module was refused\n", failed, nth,
	       refused);
	return nth >= MAX_ALLOCATIONS || !failed;
}
