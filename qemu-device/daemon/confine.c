// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Confinement: privileges, core files, system calls. */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "daemon/confine.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define LAST_LINE_NS 100000000l

/*
 * With any argument. What is not here: programs and processes (execve, fork, ptrace, kill),
 * mounts, namespaces, keys, modules, bpf, io_uring, perf_event_open, userfaultfd.
 */
static const char *const allowed[] = {
	/* memory */
	"brk", "munmap", "mremap", "madvise", "mincore", "mlock", "mlock2", "munlock", "membarrier",
	"memfd_create", "set_mempolicy", "get_mempolicy",
	/* threads and their signals */
	"set_robust_list", "rseq", "futex", "exit", "exit_group", "sched_yield",
	"sched_getaffinity", "sched_setaffinity", "gettid", "getpid", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "restart_syscall",
	/* time and limits */
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
	"timer_create", "timer_settime", "timer_gettime", "timer_delete", "timerfd_create",
	"timerfd_settime", "timerfd_gettime", "getrusage", "getrlimit", "sysinfo", "uname",
	"getrandom", "getuid", "geteuid", "getgid", "getegid", "getgroups",
	/* events and streams */
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll",
	"select", "pselect6", "eventfd2", "signalfd4", "pipe2", "read", "write", "readv", "writev",
	"pread64", "pwrite64", "preadv", "pwritev", "close", "close_range", "dup", "dup2", "dup3",
	"fcntl", "ioctl", "lseek",
	/*
	 * Files: keys, configuration, resolv.conf, sysfs of RDMA NICs, sockets of adapters. The
	 * service manager limits which ones.
	 */
	"open", "openat", "stat", "lstat", "fstat", "newfstatat", "statx", "fstatfs", "statfs",
	"access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd",
	"ftruncate", "fallocate", "fadvise64", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir",
	"rename", "renameat", "renameat2", "chmod", "fchmod", "fchmodat", "umask", "fsync",
	/* sockets; socket() itself is below */
	"connect", "bind", "listen", "accept", "accept4", "getsockname", "getpeername",
	"getsockopt", "setsockopt", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
	"recvmmsg", "shutdown"
};

/* LeakSanitizer stops all threads from a process of its own. */
static const char *const allowed_to_sanitizers[] = {
	"clone", "getppid",    "getdents", "tkill", "ptrace", "wait4", "process_vm_readv",
	"prctl", "arch_prctl", "tgkill",   "kill"
};

/* Newer calls: libraries use an older one after ENOSYS, and their arguments cannot be checked. */
static const char *const absent[] = { "clone3", "openat2", "fchmodat2", "mseal",
				      "set_mempolicy_home_node" };

static bool add_names(scmp_filter_ctx ctx, uint32_t action, const char *const *names, size_t num)
{
	size_t i;

	for (i = 0; i < num; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);

		/* Negative: another architecture's, or unknown to this version of libseccomp. */
		if (nr >= 0 && seccomp_rule_add_array(ctx, action, nr, 0, NULL) < 0)
			return false;
	}
	return true;
}

/* Allows @name if argument @arg has the bits @value of @mask. */
static bool add_masked(scmp_filter_ctx ctx, const char *name, unsigned int arg, uint64_t mask,
		       uint64_t value)
{
	const struct scmp_arg_cmp cmp = {
		.arg = arg,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = mask,
		.datum_b = value,
	};

	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name), 1,
				      &cmp) == 0;
}

/* The upper halves of int arguments are not defined: only 32 bits are compared. */
static bool add_int(scmp_filter_ctx ctx, const char *name, unsigned int arg, int value)
{
	return add_masked(ctx, name, arg, UINT32_MAX, (uint32_t)value);
}

static bool add_with_arguments(scmp_filter_ctx ctx)
{
	/* No memory becomes code; libraries are mapped from files, without write permission. */
	bool ok = add_masked(ctx, "mmap", 2, PROT_EXEC, 0) &&
		  add_masked(ctx, "mmap", 2, PROT_WRITE, 0) &&
		  add_masked(ctx, "mprotect", 2, PROT_EXEC, 0) &&
		  add_int(ctx, "socket", 0, AF_UNIX) && add_int(ctx, "socket", 0, AF_INET) &&
		  add_int(ctx, "socket", 0, AF_INET6) && add_int(ctx, "socket", 0, AF_NETLINK) &&
		  add_int(ctx, "socket", 0, AF_PACKET) && add_int(ctx, "socketpair", 0, AF_UNIX) &&
		  add_int(ctx, "prlimit64", 0, 0);

	if (!ok || SANITIZED)
		return ok;
	return add_masked(ctx, "clone", 0, CLONE_THREAD, CLONE_THREAD) &&
	       add_int(ctx, "prctl", 0, PR_SET_NAME) && add_int(ctx, "prctl", 0, PR_GET_NAME) &&
	       add_int(ctx, "tgkill", 0, getpid()); /* abort() */
}

static bool fill(scmp_filter_ctx ctx)
{
	return add_names(ctx, SCMP_ACT_ALLOW, allowed, sizeof(allowed) / sizeof(allowed[0])) &&
	       add_names(ctx, SCMP_ACT_ERRNO(ENOSYS), absent, sizeof(absent) / sizeof(absent[0])) &&
	       (!SANITIZED ||
		add_names(ctx, SCMP_ACT_ALLOW, allowed_to_sanitizers,
			  sizeof(allowed_to_sanitizers) / sizeof(allowed_to_sanitizers[0]))) &&
	       add_with_arguments(ctx);
}

/*
 * A second SIGSYS ends the process after LAST_LINE_NS, also while a thread is inside of write().
 * poll() before write() is not sufficient, because another thread can fill a pipe in between.
 * O_NONBLOCK belongs to all processes that share stderr. glibc's timer_create() may allocate memory.
 */
static bool limit_last_line(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGSYS };
	const struct itimerspec once = { .it_value.tv_nsec = LAST_LINE_NS };
	int id;

	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0 &&
	       syscall(SYS_timer_settime, id, 0, &once, NULL) == 0;
}

/* The system call was not executed. Reports it, then the signal ends the process. */
static void on_forbidden(int signo, siginfo_t *info, void *context)
{
	char line[200];
	/* snprintf() of integers takes no lock and no memory. */
	int len = snprintf(line, sizeof(line),
			   "pvrdmad: system call %d of thread %d is not allowed: ending; "
			   "see --seccomp in pvrdmad(8)\n",
			   info->si_syscall, (int)gettid());

	/* The log's thread may hold locks. */
	if (limit_last_line() && write(STDERR_FILENO, line, (size_t)len) < 0) {
		/* stderr is gone: the exit status remains. */
	}
	raise(SIGSYS); /* SA_RESETHAND and SA_NODEFER: the default action */
	_exit(128 + SIGSYS);
}

static bool catch_forbidden(void)
{
	struct sigaction action = {
		.sa_sigaction = on_forbidden,
		.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGSYS, &action, NULL) == 0;
}

/* Half of the memory of the host; sanitizers need more addresses. */
static bool limit_data(struct pvr_error *err)
{
	struct sysinfo info;

	if (SANITIZED || sysinfo(&info) < 0)
		return true;
	return pvr_confine_data((uint64_t)info.totalram * info.mem_unit / 2, err);
}

bool pvr_confine_data(uint64_t bytes, struct pvr_error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_max < bytes)
		return true;
	limit.rlim_cur = limit.rlim_max = bytes;
	return setrlimit(RLIMIT_DATA, &limit) == 0 ||
	       pvr_fail(err, "cannot limit the memory of the process: %s", strerror(errno));
}

bool pvr_confine_process(struct pvr_error *err)
{
	const struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return pvr_fail(err, "cannot give up new privileges: %s", strerror(errno));
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return pvr_fail(err, "cannot disable core files: %s", strerror(errno));
	/* LeakSanitizer traces its own process. */
	if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return pvr_fail(err, "cannot protect the memory of the process: %s",
				strerror(errno));
	return limit_data(err);
}

bool pvr_confine_syscalls(enum pvr_seccomp_mode mode, struct pvr_error *err)
{
	scmp_filter_ctx ctx;
	int ret = -ENOMEM;

	if (mode == PVR_SECCOMP_OFF)
		return true;
	ctx = seccomp_init(mode == PVR_SECCOMP_LOG ? SCMP_ACT_LOG : SCMP_ACT_TRAP);
	if (ctx && fill(ctx) && catch_forbidden()) {
		/* Threads of libraries exist already: all get the filter, or none does. */
		ret = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
		if (!ret)
			ret = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
		if (!ret)
			ret = seccomp_load(ctx);
	}
	seccomp_release(ctx);
	if (ret)
		return pvr_fail(err,
				"cannot limit system calls: %s; --seccomp off starts without that",
				strerror(-ret));
	return true;
}
