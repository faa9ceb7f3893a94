// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_odp_blocked DIRECTORY
 *
 * Makes page faults of regions on demand that do not end: DIRECTORY is the root of a file system
 * that this program freezes, and the device writes to pages of a file in it. Checks that few of
 * them occupy a thread of the kernel, that advice can be killed, and that ibv_dereg_mr(3) returns.
 * Then it prints "blocked" and sleeps. The caller thaws the file system. Must run as root.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"

#define REGIONS 300u /* more than the works of a CPU that run at once */
#define PAGE 4096u
#define BYTES (REGIONS * PAGE)
#define THREADS_MAX 8 /* 4 of a context, and some of others */
#define SECONDS 120
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct lab {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_mr *plain;
	struct ibv_mr *mrs[REGIONS];
	struct ibv_qp *qps[REGIONS];
	uint8_t *memory;
	int directory;
};

static void lab_open(struct lab *lab, const char *path)
{
	int fd;

	lab->directory = open(path, O_RDONLY | O_DIRECTORY);
	fd = openat(lab->directory, "file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die("%s/file:", path);
	MUST(posix_fallocate(fd, 0, BYTES));
	MUST(fsync(fd));
	lab->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (lab->memory == MAP_FAILED)
		die("mmap:");
	close(fd);
	node_open(&lab->node);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, REGIONS, NULL, NULL, 0));
	lab->plain = mr_create(&lab->node, PAGE, ACCESS);
	for (unsigned int i = 0; i < REGIONS; i++) {
		lab->mrs[i] = MUST_HAVE(ibv_reg_mr(lab->node.pd, lab->memory + (size_t)i * PAGE,
						   PAGE, ACCESS | IBV_ACCESS_ON_DEMAND));
		lab->qps[i] = qp_create_rc(&lab->node, lab->cq, 1);
		qp_connect_to_itself(&lab->node, lab->qps[i]);
	}
}

/* Kernel threads that wait and cannot be interrupted. */
static int count_blocked(void)
{
	DIR *proc = opendir("/proc");
	char path[300], line[300];
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(proc))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (!isdigit(entry->d_name[0]) || !(file = fopen(path, "r")))
			continue;
		if (fgets(line, sizeof(line), file) && strstr(line, "(kworker/") &&
		    strstr(line, ") D "))
			n++;
		fclose(file);
	}
	closedir(proc);
	return n;
}

/* Until the faults wait for the file system, and their number stays the same. */
static int wait_until_blocked(void)
{
	double since = now();
	int last = 0, n;

	while (!last || now() < since + 3) {
		n = count_blocked();
		if (n != last)
			since = now();
		last = n;
		usleep(100000);
	}
	return last;
}

/* It waits behind the faults. */
static void check_advice(struct lab *lab)
{
	struct ibv_sge sge = { (uintptr_t)lab->mrs[0]->addr, PAGE, lab->mrs[0]->lkey };
	int status;
	pid_t child = fork();

	if (child < 0)
		die("fork:");
	if (!child)
		_exit(ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1)
			      ? 1
			      : 0);
	sleep(1);
	if (waitpid(child, &status, WNOHANG))
		die("advice has ended with status %d, expected it to wait", status);
	MUST(kill(child, SIGKILL));
	if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
		die("advice was not killed");
}

/*
 * Another process, with the same context: the kernel holds the lock of a memory map while it
 * resolves a fault, so the owner of the memory can neither map memory nor fork.
 */
static pid_t start_watcher(struct lab *lab, int go)
{
	pid_t pid = fork();
	char byte;
	int n;

	if (pid < 0)
		die("fork:");
	if (pid)
		return pid;
	if (read(go, &byte, 1) != 1)
		_exit(1);
	n = wait_until_blocked();
	if (n > THREADS_MAX)
		die("%u page faults of a context block %d threads, expected %d at most", REGIONS, n,
		    THREADS_MAX);
	check_advice(lab);
	_exit(0);
}

static void block(struct lab *lab)
{
	MUST(ioctl(lab->directory, FIFREEZE, 0));
	for (unsigned int i = 0; i < REGIONS; i++)
		post_send(lab->qps[i], .opcode = IBV_WR_RDMA_WRITE,
			  ONE_SGE(lab->plain, lab->plain->addr, 8),
			  .wr.rdma = { .remote_addr = (uintptr_t)lab->mrs[i]->addr,
				       .rkey = lab->mrs[i]->rkey });
}

/* Of faults in progress, and of faults that wait. */
static void check_dereg(struct lab *lab)
{
	for (unsigned int i = 0; i < REGIONS; i += 2)
		MUST(ibv_dereg_mr(lab->mrs[i]));
}

int main(int argc, char **argv)
{
	static struct lab lab;
	int go[2], status;
	pid_t watcher;

	if (argc != 2)
		die("usage: pvr_odp_blocked DIRECTORY");
	alarm(SECONDS);
	mallopt(M_TRIM_THRESHOLD, -1); /* free() must not change the memory map */
	/* khugepaged would, too: it waits for the faults, and this program's own faults for it. */
	MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	lab_open(&lab, argv[1]);
	MUST(pipe(go));
	watcher = start_watcher(&lab, go[0]);
	block(&lab);
	if (write(go[1], "", 1) != 1)
		die("pipe:");
	if (waitpid(watcher, &status, 0) != watcher || status)
		die("the watcher ended with status %d", status);
	check_dereg(&lab);
	alarm(0);
	if (write(STDOUT_FILENO, "blocked\n", 8) != 8)
		die("stdout:");
	for (;;)
		pause();
}
