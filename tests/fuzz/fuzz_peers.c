// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a peers file, and a second version of it that a reload reads. The two
 * texts of an input are separated by a NUL. Hosts are queried for GIDs, and respond.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "directory/directory.h"
#include "directory/peers_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static uint64_t now_ns;
static char path[64];
static int file_fd;
static struct pvr_directory *directory;

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(now_ns / PVR_SEC);
	ts->tv_nsec = (long)(now_ns % PVR_SEC);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file_fd = memfd_create("peers", MFD_CLOEXEC);
	if (file_fd < 0)
		die("no memory file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	return 0;
}

static void write_file(const uint8_t *data, size_t size)
{
	if (ftruncate(file_fd, 0) || pwrite(file_fd, data, size, 0) != (ssize_t)size)
		die("cannot write the memory file");
}

/* ------------------------------------------------------------------------- the daemon */

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *host)
{
	(void)opaque;
	(void)key;
	(void)type;
	(void)state;
	if (host && (!*host || strlen(host) >= PVR_HOST_NAME_MAX))
		die("a host without a name");
	return 0;
}

static bool set_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	(void)opaque;
	(void)err;
	return *host && *address;
}

static void forget_peer(void *opaque, const char *host)
{
	(void)opaque;
	(void)host;
}

static bool want(void *opaque, const char *host)
{
	(void)opaque;
	(void)host;
	return true;
}

static bool ask(void *opaque, const char *host, const struct pvr_key *key)
{
	(void)opaque;
	pvr_directory_located(directory, host, key->fabric, key->gid, PVR_GID_TYPE_ROCE_V2);
	return true;
}

static bool is_up(void *opaque, const char *host)
{
	(void)opaque;
	return host[0] & 1;
}

static void log_line(void *opaque, enum pvr_log_level level, const char *text)
{
	(void)opaque;
	(void)level;
	if (getenv("FUZZ_LOG"))
		fprintf(stderr, "%s\n", text);
}

static void run(struct pvr_loop *loop)
{
	for (int i = 0; i < 8; i++) {
		now_ns += 100 * PVR_MSEC;
		pvr_loop_wait(loop, 0);
		pvr_loop_dispatch(loop);
	}
}

static void query(void)
{
	const uint8_t gids[][16] = { { 0xfe, 0x80, [15] = 1 },
				     { 0xfd, 0, [15] = 1 },
				     { [10] = 0xff, 0xff, 10, 1, 0, 1 },
				     { 0xff, 0x1e, [15] = 1 } };

	for (size_t i = 0; i < sizeof(gids) / sizeof(gids[0]); i++)
		pvr_directory_resolve(directory, i & 1 ? "red" : "", gids[i]);
}

static void reload(struct pvr_loop *loop, const uint8_t *data, size_t size)
{
	struct pvr_directory_files files;
	struct pvr_error err = { "" };

	write_file(data, size);
	if (!pvr_directory_reload(directory, &files, &err) && !err.text[0])
		die("a reload that fails without a reason");
	query();
	run(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pvr_directory_settings settings = { .peers_file = path };
	const uint8_t *end = memchr(data, 0, size);
	struct pvr_loop *loop = pvr_loop_create();
	struct pvr_directory_env env = {
		.loop = loop,
		.name = "self",
		.address = "192.0.2.99:7471",
		.set_gid = set_gid,
		.check_peer = set_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = want,
		.state = ask,
		.is_up = is_up,
		.log = log_line,
	};
	struct pvr_error err = { "" };

	if (!loop)
		die("no memory");
	now_ns = 1000 * PVR_SEC;
	write_file(data, end ? (size_t)(end - data) : size);
	directory = pvr_directory_create(&env, &settings, &err);
	if (!directory && !err.text[0])
		die("a file is refused without a reason");
	if (directory) {
		query();
		run(loop);
		if (end)
			reload(loop, end + 1, size - (size_t)(end + 1 - data));
		pvr_directory_destroy(directory);
	}
	pvr_loop_destroy(loop);
	return 0;
}
