// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl capture: packets of an adapter to a file. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/ctl_capture.h"
#include "daemon/ctl_client.h"

#define SNAPLEN_MAX 65535
#define BUFFER_BYTES (256u << 10)

static volatile sig_atomic_t has_stopped;

static void stop(int signal)
{
	(void)signal;
	has_stopped = 1;
}

/* Without SA_RESTART, so that recv() ends. */
static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = stop };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool pvr_capture_parse_snaplen(const char *text, unsigned int *snaplen, struct pvr_error *err)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > SNAPLEN_MAX)
		return pvr_fail(err, "--snaplen '%.32s' is no number from 1 to %d", text,
				SNAPLEN_MAX);
	*snaplen = (unsigned int)value;
	return true;
}

static struct json_object *make_request(const struct pvr_capture_options *options)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_new_string("capture"));
	json_object_object_add(request, "name", json_object_new_string(options->adapter));
	json_object_object_add(request, "payload", json_object_new_boolean(options->payload));
	if (options->snaplen)
		json_object_object_add(request, "snaplen",
				       json_object_new_int((int)options->snaplen));
	return request;
}

/* Return: false with @err filled if pvrdmad refuses. */
static bool ask(int fd, const struct pvr_capture_options *options, struct pvr_error *err)
{
	struct json_object *request = make_request(options);
	struct json_object *reply = pvr_ctl_ask_line(fd, options->control, request, err);
	bool ok = reply && pvr_ctl_is_ok(reply, err);

	json_object_put(request);
	json_object_put(reply);
	return ok;
}

static bool write_all(int fd, const uint8_t *data, size_t bytes)
{
	ssize_t n;

	while (bytes) {
		n = write(fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* Ask for the packets that pvrdmad still has, once. A second signal ends it at once. */
static bool go_on(int fd, bool *has_asked)
{
	if (!has_stopped)
		return true;
	if (*has_asked)
		return false;
	*has_asked = true;
	has_stopped = 0;
	return shutdown(fd, SHUT_WR) == 0;
}

/* Return: false with @err filled if the file cannot be written. */
static bool copy(int from, int to, const struct pvr_capture_options *options, struct pvr_error *err)
{
	static uint8_t buffer[BUFFER_BYTES];
	bool has_asked = false;
	ssize_t n = 1;

	while (n && go_on(from, &has_asked)) {
		n = recv(from, buffer, sizeof(buffer), 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return pvr_fail(err, "the connection to pvrdmad has failed: %s",
					strerror(errno));
		if (write_all(to, buffer, (size_t)n))
			continue;
		/* The reader of a pipe, such as tshark, has ended. */
		return errno == EPIPE ||
		       pvr_fail(err, "cannot write to %s: %s", options->file, strerror(errno));
	}
	return has_asked || pvr_fail(err,
				     "the capture has ended: adapter '%s' was removed, or "
				     "pvrdmad has ended",
				     options->adapter);
}

/* Only the owner can read it: it may have payload. */
static int open_file(const char *path, struct pvr_error *err)
{
	int fd;

	if (!strcmp(path, "-"))
		return STDOUT_FILENO;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		pvr_fail(err, "cannot create %s: %s", path, strerror(errno));
	return fd;
}

static bool capture(int fd, const struct pvr_capture_options *options, struct pvr_error *err)
{
	int file;
	bool ok;

	if (!ask(fd, options, err))
		return false;
	file = open_file(options->file, err);
	if (file < 0)
		return false;
	ok = copy(fd, file, options, err);
	if (file != STDOUT_FILENO && close(file) && ok)
		ok = pvr_fail(err, "cannot write to %s: %s", options->file, strerror(errno));
	return ok;
}

bool pvr_ctl_capture(const struct pvr_capture_options *options, struct pvr_error *err)
{
	int fd;
	bool ok;

	if (!strcmp(options->file, "-") && isatty(STDOUT_FILENO))
		return pvr_fail(err, "'-' is a terminal: name a file, or a pipe to 'tshark -i -'");
	fd = pvr_ctl_connect(options->control, err);
	if (fd < 0)
		return false;
	catch_signals();
	ok = capture(fd, options, err);
	close(fd);
	return ok;
}
