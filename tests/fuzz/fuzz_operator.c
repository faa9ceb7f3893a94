// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: what an operator writes. The first byte of an input is its kind:
 *
 *  c  a configuration file
 *  o  the command line of pvrdmad, one argument per line
 *  a  the argument of --adapter, one per line
 *  l  a list of CPUs
 *  r  bytes for the control socket. A NUL byte ends a part: then the daemon runs, and the
 *     replies are read.
 *  s  the same; replies are read in the end only
 *
 * The daemon has no worker threads. Its sockets are bound to no path, and it unlinks nothing.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control.h"
#include "daemon/cpu_list.h"
#include "daemon/log.h"
#include "daemon/options.h"

#define ARGS_MAX 64
#define PARTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int __wrap_pvr_unix_listen(const char *path, bool *replaced, struct pvr_error *err);
int __wrap_unlink(const char *path);
bool __wrap_pvr_worker_pool_start(struct pvr_worker_pool *pool, bool paused, struct pvr_error *err);
void __wrap_pvrd_log(enum pvr_log_level level, const char *adapter, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static struct pvr_daemon d;
static struct sockaddr_un control;
static socklen_t control_len;
static int config_fd;

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* ------------------------------------------------------------------------- wrapped */

/* The kernel chooses an abstract address. The first one is the control socket's. */
int __wrap_pvr_unix_listen(const char *path, bool *replaced, struct pvr_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(address);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*replaced = false;
	if (fd < 0 || bind(fd, (void *)&address, sizeof(address.sun_family)) || listen(fd, 8) ||
	    getsockname(fd, (void *)&address, &len))
		die("cannot make a socket");
	if (!control_len) {
		control = address;
		control_len = len;
	}
	return fd;
}

int __wrap_unlink(const char *path)
{
	return 0;
}

bool __wrap_pvr_worker_pool_start(struct pvr_worker_pool *pool, bool paused, struct pvr_error *err)
{
	return true;
}

void __wrap_pvrd_log(enum pvr_log_level level, const char *adapter, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (strchr(line, '\n'))
		die("a log line with a newline");
}

/* ------------------------------------------------------------------ files, options */

static void check_error(const struct pvr_error *err)
{
	if (!*err->text)
		die("a failure without a reason");
}

static void feed_config(const char *text, size_t size)
{
	struct pvr_settings settings = { .timestamps = false };
	struct pvr_error err = { "" };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", config_fd);
	if (ftruncate(config_fd, 0) || pwrite(config_fd, text, size, 0) != (ssize_t)size)
		die("cannot write the file");
	if (!pvr_settings_read_file(&settings, path, &err))
		check_error(&err);
	pvr_settings_free(&settings);
}

/* The lines of @text. */
static size_t split(char *text, char **lines, size_t max)
{
	size_t num = 0;
	char *end;

	for (; text && num < max; text = end) {
		end = strchr(text, '\n');
		if (end)
			*end++ = '\0';
		lines[num++] = text;
	}
	return num;
}

static void feed_options(char *text)
{
	char name[] = "pvrdmad", *args[ARGS_MAX + 2] = { name };
	const size_t num = 1 + split(text, args + 1, ARGS_MAX);
	struct pvr_settings settings = { .timestamps = false };
	struct pvr_error err = { "" };

	/* Files are for feed_config(): these may be devices or pipes. */
	for (size_t i = 1; i < num; i++)
		if (!strncmp(args[i], "--c", 3))
			return;
	optind = 0;
	if (pvr_options_parse((int)num, args, &settings, &err) == PVR_OPTIONS_BAD)
		check_error(&err);
	pvr_settings_free(&settings);
}

static void feed_adapters(char *text)
{
	char *lines[ARGS_MAX];
	const size_t num = split(text, lines, ARGS_MAX);
	struct pvr_settings settings = { .timestamps = false };

	for (size_t i = 0; i < num; i++) {
		struct pvr_adapter_settings adapter = { .has_mac = false };
		struct pvr_error err = { "" };

		if (!pvr_adapter_settings_parse(&adapter, lines[i], &err) ||
		    !pvr_settings_add_adapter(&settings, &adapter, &err))
			check_error(&err);
	}
	pvr_settings_free(&settings);
}

static void feed_cpus(const char *text)
{
	struct pvr_cpu_list list;
	struct pvr_error err = { "" };
	char again[128];

	if (pvr_cpu_list_parse(&list, text, &err))
		pvr_cpu_list_format(&list, again, sizeof(again));
	else
		check_error(&err);
}

/* ------------------------------------------------------------------ control socket */

static void run(void)
{
	for (int i = 0; i < 32 && pvr_loop_wait(d.loop, 0) && pvr_loop_dispatch(d.loop); i++)
		;
}

/* Each line is an object with "ok". A line may be incomplete. */
static void read_replies(int fd)
{
	static char replies[1 << 20];
	char *line = replies, *end;
	struct json_object *reply;
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, replies + len, sizeof(replies) - 1 - len, MSG_DONTWAIT)) > 0) {
		len += (size_t)n;
		run();
	}
	replies[len] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		reply = json_tokener_parse(line);
		if (!reply || !json_object_object_get_ex(reply, "ok", NULL))
			die("a reply that is no JSON object with \"ok\"");
		json_object_put(reply);
		line = end + 1;
	}
}

static void feed_requests(const uint8_t *data, size_t size, bool reads)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const uint8_t *end;
	size_t len;

	if (fd < 0 || connect(fd, (void *)&control, control_len))
		die("cannot connect");
	run();
	for (int i = 0; i < PARTS_MAX && size; i++) {
		end = memchr(data, 0, size);
		len = end ? (size_t)(end - data) : size;
		if (send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		run();
		if (reads)
			read_replies(fd);
		len += end ? 1 : 0;
		data += len;
		size -= len;
	}
	/* The read position may be within a line if replies were not read. */
	if (reads)
		read_replies(fd);
	close(fd);
	run();
	while (d.num_adapters)
		pvr_daemon_remove_adapter(&d, d.adapters[0].attach);
	pvr_daemon_set_log_level(&d, PVR_LOG_INFO);
}

/* --------------------------------------------------------------------------- a run */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	if (*data == 'r' || *data == 's') {
		feed_requests(data + 1, size - 1, *data == 'r');
		return 0;
	}
	text = malloc(size);
	if (!text)
		die("no memory");
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (*data) {
	case 'c':
		feed_config(text, size - 1);
		break;
	case 'o':
		feed_options(text);
		break;
	case 'a':
		feed_adapters(text);
		break;
	case 'l':
		feed_cpus(text);
		break;
	}
	free(text);
	return 0;
}

static void clean_up(void)
{
	pvr_daemon_exit(&d);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* libFuzzer makes other system calls than the daemon. */
	struct pvr_settings settings = { .control = "control", .seccomp = PVR_SECCOMP_OFF };
	struct pvr_error err;
	sigset_t before;

	sigprocmask(SIG_BLOCK, NULL, &before);
	if (!pvr_daemon_init(&d, &settings, NULL, &err))
		die(err.text);
	sigprocmask(SIG_SETMASK, &before, NULL);
	atexit(clean_up);
	config_fd = memfd_create("config", MFD_CLOEXEC);
	if (config_fd < 0)
		die("cannot make a file");
	return 0;
}
