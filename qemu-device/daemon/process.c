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

uint64_t pvr_environment_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long value;

	if (!text || *text < '0' || *text > '9')
		return 0;
	value = strtoull(text, &end, 10);
	return *end ? 0 : value;
}

static bool no_receiver;

/* Return: the path of its socket; NULL: there is none. */
static const char *find_manager(void)
{
	const char *path = no_receiver ? NULL : getenv("NOTIFY_SOCKET");
	bool ok = path && *path && strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path);

	return ok ? path : NULL;
}

bool pvr_is_managed(void)
{
	return find_manager() != NULL;
}

static bool send_state(int fd, const char *path, const char *state, const int *fds, size_t num_fds)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(PVR_NOTIFY_FDS * sizeof(int))];
	} control = { .head = { .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(num_fds * sizeof(int)) } };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct iovec iov = { (void *)(uintptr_t)state, strlen(state) };
	struct msghdr msg = {
		.msg_name = &addr,
		.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};

	memcpy(addr.sun_path, path, strlen(path));
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = '\0'; /* abstract namespace */
	if (num_fds) {
		memcpy(CMSG_DATA(&control.head), fds, num_fds * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0;
}

bool pvr_notify_fds(const char *state, const int *fds, size_t num_fds, uint64_t timeout_ns)
{
	const struct timeval limit = {
		.tv_sec = (time_t)(timeout_ns / PVR_SEC),
		.tv_usec = (suseconds_t)(timeout_ns % PVR_SEC / 1000),
	};
	const char *path = find_manager();
	bool ok;
	int fd;

	if (!path)
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	ok = send_state(fd, path, state, fds, num_fds);
	/* No error of the daemon. Without heartbeats the service would end, so descriptors do not count. */
	if (!ok && !num_fds)
		no_receiver = errno != EAGAIN && errno != EINTR;
	close(fd);
	return ok;
}

bool pvr_notify(const char *state, uint64_t timeout_ns)
{
	return pvr_notify_fds(state, NULL, 0, timeout_ns);
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
