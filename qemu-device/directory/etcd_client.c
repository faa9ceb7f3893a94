// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls to etcd through its JSON gateway, by one of several URLs and with authentication.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "directory/etcd_client.h"
#include "directory/key.h"

#define PAUSE_MIN (100 * PVR_MSEC)
#define PAUSE_MAX (5 * PVR_SEC)
#define LOGIN_PAUSE_MIN (2 * PVR_SEC)
#define LOGIN_PAUSE_MAX (120 * PVR_SEC)
#define LOGIN_MS 30000l
#define LOGIN_USUAL PVR_SEC /* one that fails sooner has not loaded etcd */
#define LAST_CALL_MS 500l

struct etcd_call {
	struct pvr_etcd_client *client;
	size_t url;
	unsigned int login; /* number of its token */
	uint64_t begun;
	pvr_etcd_done done;
	void *opaque;
};

const char *pvr_etcd_client_url(const struct pvr_etcd_client *client)
{
	return client->settings.urls[client->current];
}

/* --------------------------------------------------------------- success, failure */

static void set_connected(struct pvr_etcd_client *client, bool connected, const char *why)
{
	if (connected == client->connected)
		return;
	client->connected = connected;
	client->changed(client->opaque, connected, why);
}

/* Return: @first, doubled @times and up to @max, or up to half less. */
static uint64_t pause_of(struct pvr_etcd_client *client, uint64_t first, uint64_t max,
			 unsigned int times)
{
	uint64_t pause = times > 6 ? max : first << times;

	if (pause > max)
		pause = max;
	client->random = client->random * 6364136223846793005ull + 1442695040888963407ull;
	return pause / 2 + (client->random >> 33) % (pause / 2);
}

static uint64_t pause_after(struct pvr_etcd_client *client)
{
	if (client->login_failures)
		return pause_of(client, LOGIN_PAUSE_MIN, LOGIN_PAUSE_MAX,
				client->login_failures - 1);
	if (client->failures % client->settings.num_urls)
		return 0; /* the next URL is tried */
	return pause_of(client, PAUSE_MIN, PAUSE_MAX,
			client->failures / (unsigned int)client->settings.num_urls);
}

static void note_failure(struct pvr_etcd_client *client, size_t url, const char *why)
{
	uint64_t now = pvr_loop_now();

	client->failed++;
	if (url != client->current || now < client->retry_at)
		return; /* one of several calls in progress */
	set_connected(client, false, why);
	client->failures++;
	client->current = (client->current + 1) % client->settings.num_urls;
	client->retry_at = now + pause_after(client);
	pvr_loop_timer_arm(client->loop, &client->timer, client->retry_at - now);
}

static void note_success(struct pvr_etcd_client *client)
{
	client->failures = 0;
	set_connected(client, true, NULL);
}

static void retry(struct pvr_loop_timer *timer)
{
	struct pvr_etcd_client *client = pvr_container_of(timer, struct pvr_etcd_client, timer);

	client->ready(client->opaque);
}

/* -------------------------------------------------------------------------- calls */

static enum pvr_etcd_result judge(const struct pvr_http_reply *reply, struct json_object *object)
{
	if (reply->status == 200 && object)
		return PVR_ETCD_OK;
	/* 503: no leader, for instance. */
	if (reply->status >= 400 && reply->status < 500 && object)
		return PVR_ETCD_REFUSED;
	return PVR_ETCD_FAILED;
}

static void describe(char *text, size_t size, const struct pvr_http_reply *reply)
{
	if (reply->error)
		snprintf(text, size, "%.150s", reply->error);
	else if (reply->status == 200)
		snprintf(text, size, "its response is not JSON");
	else
		snprintf(text, size, "HTTP status %ld", reply->status);
}

/* A token with an earlier state of etcd's users and roles has its own status. */
static bool refuses_token(const struct pvr_http_reply *reply, struct json_object *object)
{
	const char *error = pvr_json_text(object, "error");

	return reply->status == 401 ||
	       (reply->status == 400 && error && strstr(error, "revision of auth store is old"));
}

static void authenticated(void *opaque, enum pvr_etcd_result result, struct json_object *reply);

static void note_login(struct pvr_etcd_client *client, const struct etcd_call *call,
		       enum pvr_etcd_result result)
{
	if (call->done != authenticated)
		return;
	if (result == PVR_ETCD_OK)
		client->login_failures = 0;
	else if (result == PVR_ETCD_REFUSED || pvr_loop_now() - call->begun > LOGIN_USUAL)
		client->login_failures++;
}

/* Return: whether the call need only be repeated with a new token. */
static bool token_expired(struct pvr_etcd_client *client, const struct etcd_call *call)
{
	if (call->login == client->logins)
		client->token[0] = '\0';
	return client->settings.user[0] && call->login <= client->worked;
}

static void call_done(void *opaque, const struct pvr_http_reply *reply)
{
	struct etcd_call *call = opaque;
	struct pvr_etcd_client *client = call->client;
	struct json_object *object = reply->status ? pvr_json_parse(reply->body, reply->len) : NULL;
	enum pvr_etcd_result result = judge(reply, object);
	char why[200];

	describe(why, sizeof(why), reply);
	note_login(client, call, result);
	if (refuses_token(reply, object) && token_expired(client, call))
		result = PVR_ETCD_FAILED;
	else if (!client->ending && result == PVR_ETCD_FAILED)
		note_failure(client, call->url, why);
	else if (!client->ending)
		note_success(client);
	if (result == PVR_ETCD_OK)
		client->worked = call->login;
	call->done(call->opaque, result, object);
	json_object_put(object);
	free(call);
	if (!client->ending)
		client->ready(client->opaque);
}

static void make_url(const struct pvr_etcd_client *client, const char *path, char url[320])
{
	snprintf(url, 320, "%s%s", pvr_etcd_client_url(client), path);
}

static bool post(struct pvr_etcd_client *client, const char *path, const struct pvr_text *body,
		 pvr_etcd_done done, void *opaque)
{
	long timeout_ms = done == authenticated ? LOGIN_MS : PVR_HTTP_TIMEOUT_MS;
	struct etcd_call *call = malloc(sizeof(*call));
	char url[320];

	if (!call)
		return false;
	*call = (struct etcd_call){
		.client = client,
		.url = client->current,
		.login = client->logins,
		.begun = pvr_loop_now(),
		.done = done,
		.opaque = opaque,
	};
	make_url(client, path, url);
	if (pvr_http_post(client->http, url, client->token, body->data, body->len, timeout_ms,
			  call_done, call))
		return true;
	free(call);
	return false;
}

bool pvr_etcd_call(struct pvr_etcd_client *client, const char *path, struct pvr_text *body,
		   pvr_etcd_done done, void *opaque)
{
	bool ok = !body->bad && post(client, path, body, done, opaque);

	free(body->data);
	*body = (struct pvr_text){ .len = 0 };
	return ok;
}

struct pvr_http_call *pvr_etcd_stream(struct pvr_etcd_client *client, const char *path,
				      const struct pvr_http_stream_ops *ops, void *opaque)
{
	char url[320];

	make_url(client, path, url);
	return pvr_http_stream(client->http, url, client->token, ops, opaque);
}

void pvr_etcd_stream_ended(struct pvr_etcd_client *client, long status, const char *why)
{
	/* Versions of etcd differ in the status of a token that they refuse. */
	if (status >= 400 && status < 500)
		client->token[0] = '\0';
	note_failure(client, client->current, why);
}

void pvr_etcd_client_log_out(struct pvr_etcd_client *client)
{
	client->token[0] = '\0';
}

void pvr_etcd_call_now(struct pvr_etcd_client *client, const char *path, const char *body)
{
	char url[320];

	make_url(client, path, url);
	pvr_http_post_now(client->http, url, client->token, body, LAST_CALL_MS);
}

/* ----------------------------------------------------------- authentication */

static void authenticated(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd_client *client = opaque;
	const char *token = pvr_json_text(reply, "token");

	client->authenticating = false;
	if (result == PVR_ETCD_OK && token && strlen(token) < sizeof(client->token) &&
	    !strpbrk(token, "\r\n")) {
		strcpy(client->token, token);
		client->logins++;
		return;
	}
	if (result != PVR_ETCD_FAILED)
		note_failure(client, client->current, "it does not accept user or password");
}

/* On failure the earlier one stays. */
static bool read_password(struct pvr_etcd_client *client, struct pvr_error *err)
{
	const char *path = client->settings.password_file;
	char password[sizeof(client->password)] = "";
	FILE *file;

	if (!*path)
		return true;
	file = fopen(path, "re");
	if (!file)
		return pvr_fail(err, "cannot read etcd-password-file %s: %s", path,
				strerror(errno));
	if (!fgets(password, sizeof(password), file))
		password[0] = '\0';
	fclose(file);
	password[strcspn(password, "\r\n")] = '\0';
	if (!password[0])
		return pvr_fail(err, "etcd-password-file %s is empty", path);
	strcpy(client->password, password);
	return true;
}

static void authenticate(struct pvr_etcd_client *client)
{
	struct json_object *object = json_object_new_object();
	struct pvr_text body = { .len = 0 };
	struct pvr_error why;

	/* The operator may have replaced it. Without a file etcd tells whether the last one is good. */
	(void)read_password(client, &why);
	json_object_object_add(object, "name", json_object_new_string(client->settings.user));
	json_object_object_add(object, "password", json_object_new_string(client->password));
	pvr_text_add(&body, "%s", json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
	client->authenticating =
		pvr_etcd_call(client, "/v3/auth/authenticate", &body, authenticated, client);
}

void pvr_etcd_client_retry(struct pvr_etcd_client *client)
{
	client->failures = client->login_failures = 0;
	client->retry_at = 0;
	pvr_loop_timer_disarm(&client->timer);
	client->ready(client->opaque);
}

bool pvr_etcd_client_usable(struct pvr_etcd_client *client)
{
	if (client->ending || pvr_loop_now() < client->retry_at)
		return false;
	if (!client->settings.user[0] || client->token[0])
		return true;
	if (!client->authenticating)
		authenticate(client);
	return false;
}

/* ---------------------------------------------------------------------- life cycle */

bool pvr_etcd_client_init(struct pvr_etcd_client *client, struct pvr_loop *loop,
			  const struct pvr_etcd_settings *settings, struct pvr_error *err)
{
	struct pvr_http_tls tls;

	client->loop = loop;
	client->settings = *settings;
	client->timer.expired = retry;
	tls = (struct pvr_http_tls){ client->settings.ca, client->settings.cert,
				     client->settings.key };
	if (getrandom(&client->random, sizeof(client->random), GRND_NONBLOCK) < 0)
		client->random = pvr_loop_now();
	if (!read_password(client, err))
		return false;
	client->http = pvr_http_create(loop, &tls, err);
	return client->http;
}

void pvr_etcd_client_exit(struct pvr_etcd_client *client)
{
	client->ending = true;
	pvr_loop_timer_disarm(&client->timer);
	pvr_http_destroy(client->http);
}
