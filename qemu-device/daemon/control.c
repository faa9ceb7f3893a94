// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The control socket: clients, request lines, timeouts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unix_socket.h"
#include "daemon/capture.h"
#include "daemon/control.h"
#include "daemon/control_path.h"
#include "daemon/log.h"
#include "daemon/upgrade.h"

#define CONTROL_CLIENTS_MAX 16
#define CONTROL_LINE_MAX 4096
#define CONTROL_PATIENCE (10 * PVR_SEC)

struct control_client {
	struct pvr_source source;
	struct pvr_loop_timer patience;
	struct pvr_control *control;
	size_t len; /* of line */
	char line[CONTROL_LINE_MAX];
	struct json_object *reply; /* NULL: reading a request */
	const char *text; /* the text of reply */
	size_t left; /* bytes of text not sent yet */
	struct pvr_capture_session *capture; /* gets the connection after the reply */
};

struct pvr_control {
	struct pvr_source listener;
	struct pvr_daemon *daemon;
	char path[PVR_PATH_MAX];
	struct control_client *clients[CONTROL_CLIENTS_MAX];
};

/* Forget the client, and close its connection unless a capture has it. */
static void client_end(struct control_client *client, bool closes)
{
	struct pvr_control *control = client->control;
	size_t i;

	for (i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->clients[i] == client)
			control->clients[i] = NULL;
	}
	pvr_loop_timer_disarm(&client->patience);
	pvr_loop_remove(&client->source);
	if (closes)
		close(client->source.fd);
	json_object_put(client->reply);
	free(client);
}

static void client_close(struct control_client *client)
{
	struct pvr_capture_session *capture = client->capture;

	client_end(client, true);
	pvr_capture_end(capture);
}

static void hand_over(struct control_client *client)
{
	struct pvr_capture_session *capture = client->capture;
	int fd = client->source.fd;

	client_end(client, false);
	pvr_capture_stream(capture, fd);
}

static void client_expired(struct pvr_loop_timer *timer)
{
	client_close((struct control_client *)((char *)timer -
					       offsetof(struct control_client, patience)));
}

/* Return: false if the client has been closed. */
static bool send_reply(struct control_client *client)
{
	ssize_t n;

	while (client->left) {
		n = send(client->source.fd, client->text, client->left,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return pvr_loop_modify(&client->source, EPOLLOUT) == 0;
		if (n <= 0) {
			client_close(client);
			return false;
		}
		client->text += n;
		client->left -= (size_t)n;
	}
	json_object_put(client->reply);
	client->reply = NULL;
	if (client->capture) {
		hand_over(client);
		return false;
	}
	pvr_loop_modify(&client->source, EPOLLIN);
	return true;
}

/* Log a change and its author: JSON escapes all that could look like another line. */
static void audit(const struct control_client *client, struct json_object *request)
{
	struct json_object *error = NULL;
	struct ucred author;

	if (!pvr_unix_peer(client->source.fd, &author))
		return;
	json_object_object_get_ex(client->reply, "error", &error);
	pvrd_log(PVR_LOG_INFO, NULL, "control: uid %u, pid %d: %.500s: %s%s", author.uid,
		 (int)author.pid, json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN),
		 error ? "refused: " : "done", error ? json_object_get_string(error) : "");
}

static bool answer(struct control_client *client, const char *line)
{
	struct json_object *request = json_tokener_parse(line);
	struct pvr_request_effect effect;

	client->reply = pvr_request_run(client->control->daemon, request, &effect);
	client->capture = effect.capture;
	if (effect.upgrade) {
		json_object_put(request);
		pvr_upgrade_give_client(effect.upgrade, client->source.fd);
		client_end(client, false);
		return false;
	}
	if (client->reply && effect.is_change)
		audit(client, request);
	json_object_put(request);
	/* An operator that has the reply finds the lines of its events in the log. */
	pvrd_log_flush();
	if (client->reply)
		client->text = json_object_to_json_string_length(
			client->reply, JSON_C_TO_STRING_PLAIN, &client->left);
	if (!client->reply || !client->text) {
		client_close(client);
		return false;
	}
	/* The newline replaces the NUL behind the text. */
	((char *)(uintptr_t)client->text)[client->left++] = '\n';
	return send_reply(client);
}

/* Answers all requests that have arrived completely. */
static void run_lines(struct control_client *client)
{
	char *end;

	while (!client->reply && (end = memchr(client->line, '\n', client->len))) {
		*end++ = '\0';
		pvr_loop_timer_arm(client->control->daemon->loop, &client->patience,
				   CONTROL_PATIENCE);
		if (!answer(client, client->line))
			return;
		client->len -= (size_t)(end - client->line);
		memmove(client->line, end, client->len);
	}
	if (client->len == sizeof(client->line) && !client->reply) {
		pvrd_log(PVR_LOG_WARN, NULL,
			 "a control client sent a line of more than %d "
			 "bytes: closed",
			 CONTROL_LINE_MAX);
		client_close(client);
	}
}

static void client_ready(struct pvr_source *source, uint32_t events)
{
	struct control_client *client = (struct control_client *)source;
	ssize_t n;

	if (client->reply) {
		if (send_reply(client))
			run_lines(client);
		return;
	}
	n = recv(source->fd, client->line + client->len, sizeof(client->line) - client->len,
		 MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		client_close(client);
		return;
	}
	client->len += (size_t)n;
	run_lines(client);
}

static struct control_client *client_create(struct pvr_control *control, int fd)
{
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->control = control;
	client->source.fd = fd;
	client->source.ready = client_ready;
	client->patience.expired = client_expired;
	if (pvr_loop_add(control->daemon->loop, &client->source, EPOLLIN) < 0) {
		free(client);
		return NULL;
	}
	pvr_loop_timer_arm(control->daemon->loop, &client->patience, CONTROL_PATIENCE);
	return client;
}

static void listener_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_control *control = (struct pvr_control *)source;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	size_t i;

	if (fd < 0)
		return;
	for (i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->clients[i])
			continue;
		control->clients[i] = client_create(control, fd);
		if (control->clients[i])
			return;
		break;
	}
	close(fd);
}

/* Creates the folder of the default path only: another path is the operator's. */
static bool choose_path(struct pvr_control *control, const char *path, struct pvr_error *err)
{
	char folder[PVR_PATH_MAX], *slash;

	if (*path) {
		snprintf(control->path, sizeof(control->path), "%s", path);
		return true;
	}
	if (!pvr_control_default_path(control->path, sizeof(control->path)))
		return pvr_fail(err, "no default path for the control socket: "
				     "XDG_RUNTIME_DIR is not set: give --control PATH");
	snprintf(folder, sizeof(folder), "%s", control->path);
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		mkdir(folder, 0755); /* on failure, bind() reports it */
	}
	return true;
}

static bool start_listening(struct pvr_control *control, struct pvr_error *err)
{
	mode_t mask = umask(0177); /* mode 0600: only the owner controls the daemon */
	struct pvr_error why;
	bool replaced;

	control->listener.ready = listener_ready;
	control->listener.fd = pvr_unix_listen(control->path, &replaced, &why);
	umask(mask);
	if (control->listener.fd < 0)
		return pvr_fail(err, "control %.490s", why.text);
	if (replaced)
		pvrd_log(PVR_LOG_INFO, NULL, "replaced stale socket %s", control->path);
	if (pvr_loop_add(control->daemon->loop, &control->listener, EPOLLIN) < 0)
		return pvr_fail(err, "cannot watch socket %s: %s", control->path, strerror(errno));
	return true;
}

struct pvr_control *pvr_control_create(struct pvr_daemon *daemon, const char *path,
				       struct pvr_error *err)
{
	struct pvr_control *control = calloc(1, sizeof(*control));

	if (!control) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	control->daemon = daemon;
	control->listener.fd = -1;
	if (choose_path(control, path, err) && start_listening(control, err))
		return control;
	pvr_control_destroy(control);
	return NULL;
}

void pvr_control_destroy(struct pvr_control *control)
{
	size_t i;

	if (!control)
		return;
	for (i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->clients[i])
			client_close(control->clients[i]);
	}
	pvr_loop_remove(&control->listener);
	if (control->listener.fd >= 0) {
		close(control->listener.fd);
		unlink(control->path);
	}
	free(control);
}
