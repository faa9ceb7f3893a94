// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Confinement, in child processes: what a confined process can and cannot do. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "test.h"

struct ending {
	int status; /* of waitpid() */
	char text[512]; /* of stderr */
};

static void run_confined(enum pvr_seccomp_mode mode, int (*body)(void))
{
	struct pvr_error err;

	if (!pvr_confine_process(&err) || !pvr_confine_syscalls(mode, &err)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(100);
	}
	_exit(body());
}

/* @body: in a child process; its return value is the exit status. */
static struct ending in_child(enum pvr_seccomp_mode mode, int (*body)(void))
{
	struct ending ending = { .status = -1 };
	size_t len = 0;
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_return_code(pipe2(fds, O_CLOEXEC), errno);
	pid = fork();
	assert_return_code(pid, errno);
	if (!pid) {
		alarm(60);
		dup2(fds[1], STDERR_FILENO);
		run_confined(mode, body);
	}
	close(fds[1]);
	while ((n = read(fds[0], ending.text + len, sizeof(ending.text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &ending.status, 0), pid);
	return ending;
}

static void assert_ends_with(int status, enum pvr_seccomp_mode mode, int (*body)(void))
{
	struct ending ending = in_child(mode, body);

	if (!WIFEXITED(ending.status) || WEXITSTATUS(ending.status) != status)
		fail_msg("status 0x%x instead of %d: %s", (unsigned int)ending.status, status,
			 ending.text);
}

static void assert_killed(int (*body)(void))
{
	struct ending ending = in_child(PVR_SECCOMP_ON, body);

	assert_true(WIFSIGNALED(ending.status));
	assert_int_equal(WTERMSIG(ending.status), SIGSYS);
	assert_false(WCOREDUMP(ending.status));
	assert_non_null(strstr(ending.text, "is not allowed"));
}

static int run_program(void)
{
	execl("/bin/true", "true", NULL);
	return 1;
}

static int use_crypto_of_the_kernel(void)
{
	return socket(AF_ALG, SOCK_SEQPACKET, 0) < 0;
}

static int make_code(void)
{
	void *va = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	return va == MAP_FAILED;
}

static int make_memory_code(void)
{
	void *va = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(va, 4096, PROT_READ | PROT_EXEC);
}

static int change_root(void)
{
	return chroot("/");
}

static int make_io_uring(void)
{
	return (int)syscall(SYS_io_uring_setup, 1, NULL);
}

static int change_limits_of_others(void)
{
	return prlimit(1, RLIMIT_NOFILE, NULL, NULL);
}

/* Return: 0, or the number of the check that failed. */
static int check_data_limit(void)
{
	struct pvr_error err;
	const size_t size = 64ul << 20;
	void *mem;

	/* Less than the process has already. */
	if (!pvr_confine_data(1 << 20, &err))
		return 1;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem != MAP_FAILED || errno != ENOMEM)
		return 2;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return 3;
	/* A lower limit, as of the service manager, stays. */
	if (!pvr_confine_data(2 << 20, &err))
		return 4;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mem == MAP_FAILED ? 0 : 5;
}

TEST_PLAIN(test_own_memory_is_limited_and_guest_ram_is_not)
{
	assert_ends_with(0, PVR_SECCOMP_OFF, check_data_limit);
}

TEST_PLAIN(test_forbidden_calls_end_the_process)
{
	assert_killed(run_program);
	assert_killed(use_crypto_of_the_kernel);
	assert_killed(make_code);
	assert_killed(make_memory_code);
	assert_killed(change_root);
	assert_killed(make_io_uring);
	assert_killed(change_limits_of_others);
}

/* stderr is a full pipe. Without the handler's own limit, SIGALRM ends the child. */
static int run_program_with_stuck_stderr(void)
{
	static const char page[4096];
	int fds[2];

	if (pipe2(fds, O_NONBLOCK) < 0 || dup2(fds[1], STDERR_FILENO) < 0)
		return 1;
	while (write(STDERR_FILENO, page, sizeof(page)) > 0)
		continue;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	return run_program();
}

TEST_PLAIN(test_forbidden_call_ends_a_process_whose_stderr_is_stuck)
{
	struct ending ending = in_child(PVR_SECCOMP_ON, run_program_with_stuck_stderr);

	assert_true(WIFSIGNALED(ending.status));
	assert_int_equal(WTERMSIG(ending.status), SIGSYS);
}

TEST_PLAIN(test_forbidden_calls_run_without_the_filter)
{
	assert_ends_with(0, PVR_SECCOMP_OFF, run_program);
	assert_ends_with(0, PVR_SECCOMP_LOG, run_program);
}

static void *do_nothing(void *opaque)
{
	return opaque;
}

/* What libraries do late: threads, resolvers, files. */
static int usual(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	pthread_t thread;
	void *result;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return 1;
	if (pthread_create(&thread, NULL, do_nothing, &fd) || pthread_join(thread, &result))
		return 2;
	if (open("/etc/hosts", O_RDONLY | O_CLOEXEC) < 0 && errno != ENOENT)
		return 3;
	return result == &fd ? 0 : 4;
}

TEST_PLAIN(test_calls_of_libraries_are_allowed)
{
	assert_ends_with(0, PVR_SECCOMP_ON, usual);
}

static int has_no_rights_left(void)
{
	struct rlimit core;

	getrlimit(RLIMIT_CORE, &core);
	return core.rlim_cur || core.rlim_max || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

/* LeakSanitizer needs the opposite. */
static int is_not_dumpable(void)
{
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

TEST_PLAIN(test_memory_is_private_to_the_process)
{
#ifdef __SANITIZE_ADDRESS__
	print_message("# LeakSanitizer traces its own process\n");
	skip();
#endif
	assert_ends_with(0, PVR_SECCOMP_OFF, is_not_dumpable);
}

TEST_PLAIN(test_core_files_and_new_privileges_are_off_in_each_mode)
{
	assert_ends_with(0, PVR_SECCOMP_OFF, has_no_rights_left);
}
