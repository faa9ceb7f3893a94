// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TLS keys that are read again: which sessions continue, and which peers are refused. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net_settings.h"
#include "test.h"
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

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct pvr_tls_context *read_keys(struct host *host, const char *text)
{
	struct pvr_error err = { "" };
	struct pvr_tls_context *context;

	write_file(host->path, text);
	context = pvr_tls_context_create(&host->settings, &err);
	if (!context)
		fail_msg("%s", err.text);
	return context;
}

static void init_host(struct host *host, const char *name, const char *text)
{
	memset(host, 0, sizeof(*host));
	strcpy(host->path, "/tmp/test_tls.XXXXXX");
	close(mkstemp(host->path));
	strcpy(host->settings.name, name);
	strcpy(host->settings.tls_psk_file, host->path);
	host->context = read_keys(host, text);
}

static void exit_host(struct host *host)
{
	pvr_tls_context_put(host->context);
	unlink(host->path);
}

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

static bool join(struct pair *pair, struct host *a, struct host *b, struct pvr_error *err)
{
	bool done_a = false, done_b = false, ok = true;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair->fd), 0);
	pair->a = pvr_tls_create(a->context, pair->fd[0], b->settings.name);
	pair->b = pvr_tls_create(b->context, pair->fd[1], NULL);
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

static void assert_joins(struct host *a, struct host *b)
{
	struct pvr_error err = { "" };
	struct pair pair;

	if (!join(&pair, a, b, &err))
		fail_msg("%s", err.text);
	assert_true(pvr_tls_is_host(pair.a, b->settings.name, &err));
	assert_true(pvr_tls_is_host(pair.b, a->settings.name, &err));
	say(pair.a, pair.b);
	say(pair.b, pair.a);
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

TEST_PLAIN(test_session_outlives_its_keys)
{
	struct host a, b;
	struct pair pair;
	struct pvr_error err;

	init_host(&a, "a", "b:" OLD "\n");
	init_host(&b, "b", "a:" OLD "\n");
	assert_true(join(&pair, &a, &b, &err));
	swap(&a, "b:" NEW "\n");
	swap(&b, "a:" NEW "\n");
	say(pair.a, pair.b);
	say(pair.b, pair.a);
	assert_true(pvr_tls_is_host(pair.a, "b", &err));
	assert_true(pvr_tls_is_host(pair.b, "a", &err));
	assert_joins(&a, &b);
	exit_host(&a);
	exit_host(&b);
	/* Their contexts are the last ones' by now. */
	say(pair.a, pair.b);
	part(&pair);
}

TEST_PLAIN(test_session_that_begins_before_and_ends_after)
{
	struct host a, b;
	struct pair pair;
	struct pvr_error err;
	bool done_a = false, done_b = false;

	init_host(&a, "a", "b:" OLD "\n");
	init_host(&b, "b", "a:" OLD "\n");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.fd), 0);
	pair.a = pvr_tls_create(a.context, pair.fd[0], "b");
	pair.b = pvr_tls_create(b.context, pair.fd[1], NULL);
	assert_true(step(pair.a, &done_a, &err));
	swap(&a, "b:" NEW "\n");
	swap(&b, "c:" NEW "\n");
	while (!(done_a && done_b))
		assert_true(step(pair.b, &done_b, &err) && step(pair.a, &done_a, &err));
	assert_true(pvr_tls_is_host(pair.b, "a", &err));
	assert_false(pvr_tls_is_trusted(pair.b, b.context, "a", &err));
	assert_non_null(strstr(err.text, "there is no key for host 'a' in /tmp/"));
	part(&pair);
	exit_host(&a);
	exit_host(&b);
}

TEST_PLAIN(test_peer_is_trusted_by_its_key_only)
{
	static const struct {
		const char *text;
		bool trusted;
		const char *why;
	} files[] = {
		{ "a:" OLD "\n", true, NULL },
		{ "c:" ELSE "\na:" OLD "\n", true, NULL },
		{ "a:" NEW "\na:" OLD "\n", true, NULL },
		{ OLD "\n", true, NULL }, /* all others' */
		{ "a:" NEW "\n", false, "the key of host 'a' is not in" },
		{ "a:" OLD "00\n", false, "the key of host 'a' is not in" },
		{ "a:" NEW "\n" OLD "\n", false, "the key of host 'a' is not in" },
		{ "c:" OLD "\n", false, "there is no key for host 'a' in" },
	};
	struct host a, b;
	struct pvr_tls_context *other;
	struct pvr_error err;
	struct pair pair;
	size_t i;

	init_host(&a, "a", "b:" OLD "\n");
	init_host(&b, "b", "a:" OLD "\n");
	assert_true(join(&pair, &a, &b, &err));
	assert_true(pvr_tls_is_trusted(pair.b, b.context, "a", &err));
	for (i = 0; i < COUNT(files); i++) {
		other = read_keys(&b, files[i].text);
		err.text[0] = '\0';
		if (pvr_tls_is_trusted(pair.b, other, "a", &err) != files[i].trusted)
			fail_msg("%s: %s", files[i].text, err.text);
		assert_true(files[i].trusted || strstr(err.text, files[i].why));
		pvr_tls_context_put(other);
	}
	/* The dialling side checks the same. */
	other = read_keys(&a, "b:" NEW "\n");
	assert_false(pvr_tls_is_trusted(pair.a, other, "b", &err));
	pvr_tls_context_put(other);
	part(&pair);
	exit_host(&a);
	exit_host(&b);
}

/* The steps of two hosts while a key is replaced, in any order. */
TEST_PLAIN(test_two_keys_for_a_host)
{
	static const char *const steps[] = {
		OLD "\n",
		OLD "\n" NEW "\n",
		NEW "\n" OLD "\n",
		NEW "\n",
	};
	struct host a, b;
	size_t i;

	init_host(&a, "a", steps[0]);
	init_host(&b, "b", steps[0]);
	for (i = 1; i < 4; i++) {
		swap(&a, steps[i]);
		assert_joins(&a, &b);
		assert_joins(&b, &a);
		swap(&b, steps[i]);
		assert_joins(&a, &b);
		assert_joins(&b, &a);
	}
	swap(&a, OLD "\n" ELSE "\n");
	assert_is_refused(&a, &b, "host 'a' has shown a key that is not in");
	exit_host(&a);
	exit_host(&b);
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
	char path[] = "/tmp/test_tls.XXXXXX", long_name[600], host[PVR_HOST_NAME_MAX];
	char identity[PVR_PSK_IDENTITY];
	struct pvr_psk_file *file;
	struct pvr_error err;
	size_t i;

	close(mkstemp(path));
	write_file(path, "b:" OLD "\nb:" NEW "\n");
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
