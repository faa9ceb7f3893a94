// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A process that starts the next pvrdmad. */
#include "daemon/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_message.h"
#include "base/loop.h"

#define EXIT_NO_PROGRAM 127
#define LAUNCHER_FD 3

static int launcher = -1; /* the daemon's end of the socket */
static char path[PATH_MAX];
static struct stat program;

/* The service manager expects the heartbeat of the daemon, and then that of the next one. */
static void inherit_watchdog(pid_t daemon)
{
	const char *text = getenv("WATCHDOG_PID");
	char number[16];

	if (!text || strtol(text, NULL, 10) != daemon)
		return;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("WATCHDOG_PID", number, 1);
}

/*
 * In the child of the launcher. The program is not the launcher's child, but that of the service
 * manager, which would warn otherwise that it does not notice the program's end.
 */
static _Noreturn void execute(char **argv, int channel, pid_t daemon)
{
	pid_t child = fork();
	char number[16];

	if (child > 0)
		_exit(EXIT_SUCCESS);
	inherit_watchdog(daemon);
	snprintf(number, sizeof(number), "%d", channel);
	if (fcntl(channel, F_SETFD, 0) == 0 && setenv(PVR_LAUNCHER_ENV, number, 1) == 0)
		execv(path, argv);
	fprintf(stderr, "pvrdmad: cannot execute %s: %s\n", path, strerror(errno));
	_exit(EXIT_NO_PROGRAM);
}

static _Noreturn void serve(int socket, char **argv, pid_t daemon)
{
	static struct pvr_fd_message msg;

	/* Not those that the daemon has inherited: their other ends wait for the daemon's end. */
	if (socket != LAUNCHER_FD && dup3(socket, LAUNCHER_FD, O_CLOEXEC) < 0)
		_exit(EXIT_FAILURE);
	socket = LAUNCHER_FD;
	close_range(LAUNCHER_FD + 1, ~0u, 0);
	prctl(PR_SET_NAME, "pvrdmad-start");
	signal(SIGCHLD, SIG_IGN); /* no zombies */
	while (pvr_fd_message_receive(socket, &msg, PVR_NEVER) == 1) {
		if (msg.num_fds == 1 && fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			execute(argv, msg.fds[0], daemon);
		}
		while (msg.num_fds)
			close(msg.fds[--msg.num_fds]);
	}
	_exit(EXIT_SUCCESS);
}

void pvr_launcher_fork(char **argv)
{
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	pid_t daemon = getpid(), child;
	int ends[2];

	if (len <= 0 || stat("/proc/self/exe", &program) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	path[len] = '\0';
	child = fork();
	if (child == 0) {
		close(ends[0]);
		serve(ends[1], argv, daemon);
	}
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	else
		launcher = ends[0];
}

int pvr_launcher_start(struct pvr_error *err)
{
	int ends[2], ret;

	if (launcher < 0) {
		pvr_fail(err, "pvrdmad could not fork at its start: restart it");
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		pvr_fail(err, "no socket for the new pvrdmad: %s", strerror(errno));
		return -1;
	}
	ret = pvr_fd_message_send(launcher, "", 1, &ends[1], 1, pvr_loop_now());
	close(ends[1]);
	if (!ret)
		return ends[0];
	close(ends[0]);
	pvr_fail(err, "the process that starts the new pvrdmad has ended: restart pvrdmad");
	return -1;
}

bool pvr_launcher_is_replaced(void)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_dev != program.st_dev || st.st_ino != program.st_ino;
}

const char *pvr_launcher_path(void)
{
	return path;
}
