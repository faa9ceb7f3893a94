// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The daemon as a process: limits, privileges, service manager, stall guard. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "daemon/process.h"

#define STALL_NSEC 500000000l
#define FILES_MAX 65536 /* as LimitNOFILE= of the unit; 8 bytes each */

/*
 * When the table of descriptors of a process with threads grows, the kernel waits for a grace period of
 * RCU, and meanwhile a worker serves no VM, or all of them wait for an upgrade. Upgrades of ten VMs
 * took 6 ms with this table, and 17 ms without it. Without threads the kernel does not wait.
 */
static void make_table(rlim_t limit)
{
	int fd = open("/", O_PATH | O_CLOEXEC);
	int last = fcntl(fd, F_DUPFD_CLOEXEC, limit < FILES_MAX ? (int)limit - 1 : FILES_MAX - 1);

	if (last >= 0)
		close(last);
	if (fd >= 0)
		close(fd);
}

void pvr_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		make_table(limit.rlim_cur);
}

bool pvr_drop_privileges(const char *user, struct pvr_error *err)
{
	/* cppcheck-suppress getpwnamCalled ; no other thread calls it. */
	const struct passwd *pw = getpwnam(user);

	if (!pw)
		return pvr_fail(err, "there is no user '%s'", user);
	if (geteuid() == pw->pw_uid)
		return true;
	if (initgroups(user, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
		return pvr_fail(err, "cannot become user '%s': %s; only root can", user,
				strerror(errno));
	return true;
}

void pvr_notify(const char *state, uint64_t timeout_ns)
{
	const struct timeval limit = {
		.tv_sec = (time_t)(timeout_ns / PVR_SEC),
		.tv_usec = (suseconds_t)(timeout_ns % PVR_SEC / 1000),
	};
	static bool no_receiver;
	const char *path = no_receiver ? NULL : getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = '\0'; /* abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		no_receiver = errno != EAGAIN && errno != EINTR; /* not an error of the daemon */
	close(fd);
}

/* Empty: the signal only has to interrupt a system call. */
static void on_tick(int signo)
{
}

bool pvr_stall_guard_init(struct pvr_stall_guard *guard, struct pvr_error *err)
{
	struct sigaction action = { .sa_handler = on_tick }; /* no SA_RESTART */
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
		._sigev_un._tid = gettid(),
	};

	*guard = (struct pvr_stall_guard){ .there = false };
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGALRM, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &guard->timer) < 0)
		return pvr_fail(err, "cannot make a timer: %s", strerror(errno));
	guard->there = true;
	return true;
}

static void set_guard(struct pvr_stall_guard *guard, long nsec)
{
	const struct itimerspec spec = {
		.it_value.tv_nsec = nsec,
		.it_interval.tv_nsec = nsec,
	};

	if (guard->there && timer_settime(guard->timer, 0, &spec, NULL) == 0)
		guard->running = nsec != 0;
}

void pvr_stall_guard_busy(struct pvr_stall_guard *guard)
{
	if (!guard->running)
		set_guard(guard, STALL_NSEC);
}

void pvr_stall_guard_idle(struct pvr_stall_guard *guard)
{
	if (guard->running)
		set_guard(guard, 0);
}

void pvr_stall_guard_exit(struct pvr_stall_guard *guard)
{
	if (guard->there)
		timer_delete(guard->timer);
	guard->there = false;
}
