// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TLS keys that are read again: which sessions continue, and which peers are refused. */
#include <sys/socket.h>
#include <time.h>

#include "net/net_settings.h"
#include "text_file.h"
#include "net/tls.h"
#include "net/tls_psk.h"

#define OLD "00112233445566778899aabbccddeeff"
#define NEW "ffeeddccbbaa99887766554433221100"
#define ELSE "0123456789abcdef0123456789abcdef"

/* One host with a file of keys. */
struct host {
	char path[32];
	struct pvr_net_settings settings;
	struct pvr_tls_context *context;
};

static struct pvr_tls_context *read_keys(struct host *host, const char *text)
{
	struct pvr_error err = { "" };
	struct pvr_tls_context *context;

	text_file_write(host->path, text);
	context = pvr_tls_context_create(&host->settings, &err);
	if (!context)
		fail_msg("%s", err.text);
	return context;
}

static void init_host(struct host *host, const char *name, const char *text)
{
	memset(host, 0, sizeof(*host));
	text_file_create(host->path, text);
	strcpy(host->settings.name, name);
	strcpy(host->settings.tls_psk_file, host->path);
	host->context = read_keys(host, text);
}

/* Two hosts with the same key. */
struct hosts {
	struct host a, b;
};

static int setup(void **state)
{
	struct hosts *hosts = test_malloc(sizeof(*hosts));

	init_host(&hosts->a, "a", "b:" OLD "\n");
	init_host(&hosts->b, "b", "a:" OLD "\n");
	*state = hosts;
	return 0;
}

static int teardown(void **state)
{
	struct hosts *hosts = *state;

	pvr_tls_context_put(hosts->a.context);
	pvr_tls_context_put(hosts->b.context);
	unlink(hosts->a.path);
	unlink(hosts->b.path);
	test_free(hosts);
	return 0;
}

#define TEST_HOSTS(name) TEST_WITH(struct hosts *hosts, setup, teardown, name)

/* ------------------------------------------------------------------- a connection */

struct pair {
	int fd[2];
	struct pvr_tls *a, *b; /* a has dialled b */
};

static bool step(struct pvr_tls *tls, bool *done, struct pvr_error *err)
{
	enum pvr_tls_result result = *done ? PVR_TLS_DONE : pvr_tls_handshake(tls, err);

	*done = result == PVR_TLS_DONE;
	return result != PVR_TLS_FAILED;
}

static void begin(struct pair *pair, struct host *a, struct host *b)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair->fd), 0);
	pair->a = pvr_tls_create(a->context, pair->fd[0], b->settings.name);
	pair->b = pvr_tls_create(b->context, pair->fd[1], NULL);
}

static bool join(struct pair *pair, struct host *a, struct host *b, struct pvr_error *err)
{
	bool done_a = false, done_b = false, ok = true;

	begin(pair, a, b);
	while (ok && !(done_a && done_b))
		ok = step(pair->a, &done_a, err) && step(pair->b, &done_b, err);
	return ok;
}

static void part(struct pair *pair)
{
	pvr_tls_destroy(pair->a);
	pvr_tls_destroy(pair->b);
	close(pair->fd[0]);
	close(pair->fd[1]);
}

static void say(struct pvr_tls *from, struct pvr_tls *to)
{
	char text[] = "How is the weather?", heard[sizeof(text)] = "";
	const struct iovec out = { .iov_base = text, .iov_len = sizeof(text) };
	const struct iovec in = { .iov_base = heard, .iov_len = sizeof(heard) };

	assert_int_equal(pvr_tls_send(from, &out, 1), sizeof(text));
	assert_int_equal(pvr_tls_recv(to, &in, 1), sizeof(text));
	assert_string_equal(heard, text);
}

static void expect_both_ways(struct pair *pair)
{
	say(pair->a, pair->b);
	say(pair->b, pair->a);
}

static void assert_joins(struct host *a, struct host *b)
{
	struct pvr_error err = { "" };
	struct pair pair;

	if (!join(&pair, a, b, &err))
		fail_msg("%s", err.text);
	assert_true(pvr_tls_is_host(pair.a, b->settings.name, &err));
	assert_true(pvr_tls_is_host(pair.b, a->settings.name, &err));
	expect_both_ways(&pair);
	part(&pair);
}

static void assert_is_refused(struct host *a, struct host *b, const char *why)
{
	struct pvr_error err = { "" };
	struct pair pair;

	assert_false(join(&pair, a, b, &err));
	if (!strstr(err.text, why))
		fail_msg("expected '%s', got '%s'", why, err.text);
	part(&pair);
}

static void swap(struct host *host, const char *text)
{
	struct pvr_tls_context *before = host->context;

	host->context = read_keys(host, text);
	pvr_tls_context_put(before);
}

/* ---------------------------------------------------------------------- the tests */

TEST_HOSTS(test_session_outlives_its_keys)
{
	struct pair pair;
	struct pvr_error err;

	assert_true(join(&pair, &hosts->a, &hosts->b, &err));
	swap(&hosts->a, "b:" NEW "\n");
	swap(&hosts->b, "a:" NEW "\n");
	/* The session has the last references to the old contexts. */
	expect_both_ways(&pair);
	assert_true(pvr_tls_is_host(pair.a, "b", &err));
	assert_true(pvr_tls_is_host(pair.b, "a", &err));
	assert_joins(&hosts->a, &hosts->b);
	expect_both_ways(&pair);
	part(&pair);
}

TEST_HOSTS(test_session_that_begins_before_and_ends_after)
{
	struct pair pair;
	struct pvr_error err;
	bool done_a = false, done_b = false;

	begin(&pair, &hosts->a, &hosts->b);
	assert_true(step(pair.a, &done_a, &err));
	swap(&hosts->a, "b:" NEW "\n");
	swap(&hosts->b, "c:" NEW "\n");
	while (!(done_a && done_b))
		assert_true(step(pair.b, &done_b, &err) && step(pair.a, &done_a, &err));
	assert_true(pvr_tls_is_host(pair.b, "a", &err));
	assert_false(pvr_tls_is_trusted(pair.b, hosts->b.context, "a", &err));
	assert_non_null(strstr(err.text, "there is no key for host 'a' in /tmp/"));
	part(&pair);
}

/* @why: part of the error; NULL: the peer is trusted. */
static void check_trust(struct pvr_tls *tls, struct host *host, const char *peer, const char *keys,
			const char *why)
{
	struct pvr_tls_context *other = read_keys(host, keys);
	struct pvr_error err = { "" };

	if (pvr_tls_is_trusted(tls, other, peer, &err) != !why)
		fail_msg("%s: %s", keys, err.text);
	assert_true(!why || strstr(err.text, why));
	pvr_tls_context_put(other);
}

static const struct {
	const char *label, *keys, *why;
} files[] = {
	{ "same key", "a:" OLD "\n", NULL },
	{ "among others", "c:" ELSE "\na:" OLD "\n", NULL },
	{ "second key", "a:" NEW "\na:" OLD "\n", NULL },
	{ "key of all others", OLD "\n", NULL },
	{ "other key", "a:" NEW "\n", "the key of host 'a' is not in" },
	{ "longer key", "a:" OLD "00\n", "the key of host 'a' is not in" },
	{ "not key of all others", "a:" NEW "\n" OLD "\n", "the key of host 'a' is not in" },
	{ "key of another host", "c:" OLD "\n", "there is no key for host 'a' in" },
};

TEST_CASES_WITH(struct hosts *hosts, setup, teardown, test_peer_is_trusted_by_its_key_only, files)
{
	struct pvr_error err;
	struct pair pair;

	assert_true(join(&pair, &hosts->a, &hosts->b, &err));
	assert_true(pvr_tls_is_trusted(pair.b, hosts->b.context, "a", &err));
	check_trust(pair.b, &hosts->b, "a", row->keys, row->why);
	/* The dialling side checks the same. */
	check_trust(pair.a, &hosts->a, "b", "b:" NEW "\n", "the key of host 'b' is not in");
	part(&pair);
}

/* The steps of two hosts while a key is replaced, in any order. */
TEST_HOSTS(test_two_keys_for_a_host)
{
	static const char *const steps[] = {
		OLD "\n",
		OLD "\n" NEW "\n",
		NEW "\n" OLD "\n",
		NEW "\n",
	};
	struct host *a = &hosts->a, *b = &hosts->b;

	swap(a, steps[0]);
	swap(b, steps[0]);
	for (size_t i = 1; i < COUNT(steps); i++) {
		swap(a, steps[i]);
		assert_joins(a, b);
		assert_joins(b, a);
		swap(b, steps[i]);
		assert_joins(a, b);
		assert_joins(b, a);
	}
	swap(a, OLD "\n" ELSE "\n");
	assert_is_refused(a, b, "host 'a' has shown a key that is not in");
}

TEST_PLAIN(test_identities)
{
	static const struct {
		const char *identity, *host;
		bool found;
	} cases[] = {
		{ "b", "b", true },   { "b:", "b", false }, { "b:0000000000000000", "b", false },
		{ "c", "c", false },  { "", "?", false },   { ":", "?", false },
		{ "b!", "?", false },
	};
	char path[32], long_name[600], host[PVR_HOST_NAME_MAX];
	char identity[PVR_PSK_IDENTITY];
	struct pvr_psk_file *file;
	struct pvr_error err;
	size_t i;

	text_file_create(path, "b:" OLD "\nb:" NEW "\n");
	file = pvr_psk_file_read(path, &err);
	unlink(path);
	assert_non_null(file);
	for (i = 0; i < COUNT(cases); i++) {
		const uint8_t *bytes = (const uint8_t *)cases[i].identity;
		bool found = pvr_psk_identify(file, bytes, strlen(cases[i].identity), host);

		assert_string_equal(host, cases[i].host);
		assert_int_equal(found, cases[i].found);
	}
	memset(long_name, 'b', sizeof(long_name));
	assert_null(pvr_psk_identify(file, (uint8_t *)long_name, sizeof(long_name), host));
	assert_string_equal(host, "?");
	assert_null(pvr_psk_identify(file, (const uint8_t *)"b\0c", 3, host));
	for (i = 0; i < 2; i++) {
		pvr_psk_identity(file, &file->keys[i], "b", "b", identity);
		assert_int_equal(strlen(identity), strlen("b:") + 16);
		assert_ptr_equal(
			pvr_psk_identify(file, (uint8_t *)identity, strlen(identity), host),
			&file->keys[i]);
	}
	/* As the specification of the pipe protocol has it. */
	pvr_psk_identity(file, &file->keys[0], "b", "b", identity);
	assert_string_equal(identity, "b:47ca7734feac4f84");
	pvr_psk_file_free(file);
}

/* Two keys for each of 8,192 hosts: each identity is found without a search of the file. */
TEST_PLAIN(test_many_keys_are_found_by_host)
{
	const size_t hosts = PVR_PSK_KEYS / 2, line = 64;
	char *text = test_malloc(PVR_PSK_KEYS * line), *at = text, path[32];
	char identity[PVR_PSK_IDENTITY], name[32], host[PVR_HOST_NAME_MAX];
	struct pvr_psk_file *file;
	struct pvr_error err = { "" };
	clock_t began = clock();

	for (size_t i = 0; i < PVR_PSK_KEYS; i++)
		at += sprintf(at, "host%zu:%032zx\n", i % hosts, i);
	text_file_create(path, text);
	test_free(text);
	file = pvr_psk_file_read(path, &err);
	unlink(path);
	if (!file)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < PVR_PSK_KEYS; i++) {
		sprintf(name, "host%zu", i % hosts);
		/* The first of the two lines is the key to present. */
		assert_ptr_equal(pvr_psk_find(file, name), &file->keys[i % hosts]);
		pvr_psk_identity(file, &file->keys[i], name, name, identity);
		assert_ptr_equal(
			pvr_psk_identify(file, (uint8_t *)identity, strlen(identity), host),
			&file->keys[i]);
		assert_string_equal(host, name);
	}
	assert_null(pvr_psk_find(file, "host8192"));
	pvr_psk_file_free(file);
	/* Linear searches take several times as long, also with sanitizers. */
	assert_true(clock() - began < 2 * CLOCKS_PER_SEC);
}
