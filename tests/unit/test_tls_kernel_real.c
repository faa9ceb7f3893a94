// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * TLS records of the running kernel, over TCP. Skipped where it has none. With PVRDMA_EXPECT_KTLS=yes or
 * =no the kernel must have them, or must not.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "tls_peer.h"

#define LONG (8u << 20)
#define PIECES 7

static bool is_by_kernel(const struct session *session)
{
	return strstr(pvr_tls_describe(session->tls), ", sent by the kernel");
}

static int setup_with(void **state, const char *suite, bool peer_dials)
{
	struct session *session = test_malloc(sizeof(*session));

	*session = (struct session){ .suite = suite, .by_tcp = true };
	tls_peer_init(session, peer_dials);
	tls_peer_shake(session);
	*state = session;
	return 0;
}

static int setup_dialled(void **state)
{
	return setup_with(state, TLS_PEER_SUITE, false);
}

static int setup_dialling(void **state)
{
	return setup_with(state, TLS_PEER_SUITE, true);
}

static int setup_chacha(void **state)
{
	return setup_with(state, "TLS_CHACHA20_POLY1305_SHA256", true);
}

static int teardown(void **state)
{
	tls_peer_exit(*state);
	test_free(*state);
	return 0;
}

/* Ends the test if the kernel has no TLS, and that is no error. */
static void need_kernel(const struct session *session)
{
	const char *expected = getenv("PVRDMA_EXPECT_KTLS");

	if (expected)
		assert_int_equal(is_by_kernel(session), !strcmp(expected, "yes"));
	if (is_by_kernel(session))
		return;
	print_message(
		"# this kernel makes no TLS records: it needs Linux 6.14 and the module tls\n");
	skip();
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

/* What fits of text[at..], in pieces of different lengths. */
static size_t send_some(struct session *session, uint8_t *text, size_t at)
{
	struct iovec iov[PIECES];
	ssize_t n;

	for (size_t i = 0, from = at; i < PIECES; i++) {
		size_t len = (i * 5003 + 17) % 70001;

		len = len < LONG - from ? len : LONG - from;
		iov[i] = (struct iovec){ .iov_base = text + from, .iov_len = len };
		from += len;
	}
	n = pvr_tls_send(session->tls, iov, PIECES);
	assert_true(n >= 0);
	return (size_t)n;
}

static void wait_for(struct session *session)
{
	struct pollfd fds[] = { { .fd = session->fd[0], .events = POLLOUT },
				{ .fd = session->fd[1], .events = POLLIN } };

	assert_true(poll(fds, COUNT(fds), 10000) > 0);
}

/* @step: called after each send that takes some. */
static void move_long(struct session *session, void (*step)(struct session *session, size_t sent))
{
	uint8_t *text = test_malloc(LONG), *got = test_malloc(LONG);
	size_t sent = 0, received = 0, more;
	int n;

	for (size_t i = 0; i < LONG; i++)
		text[i] = byte_at(i);
	while (received < LONG) {
		more = sent < LONG ? send_some(session, text, sent) : 0;
		sent += more;
		if (more && step)
			step(session, sent);
		n = SSL_read(session->peer, got + received, (int)(LONG - received));
		assert_true(n > 0 || SSL_get_error(session->peer, n) == SSL_ERROR_WANT_READ);
		received += n > 0 ? (size_t)n : 0;
		if (n <= 0 && !more)
			wait_for(session);
	}
	assert_memory_equal(text, got, LONG);
	test_free(text);
	test_free(got);
}

TEST_WITH(struct session *session, setup_dialling, teardown,
	  test_long_text_to_a_peer_that_has_dialled)
{
	need_kernel(session);
	move_long(session, NULL);
}

TEST_WITH(struct session *session, setup_dialled, teardown,
	  test_long_text_to_a_peer_that_was_dialled)
{
	need_kernel(session);
	move_long(session, NULL);
}

TEST_WITH(struct session *session, setup_chacha, teardown, test_long_text_by_chacha)
{
	need_kernel(session);
	move_long(session, NULL);
}

/* The peer asks for a new key in the midst of text, and says something itself. */
static void ask_at_times(struct session *session, size_t sent)
{
	static size_t asked;
	char got[4];
	const struct iovec iov = { .iov_base = got, .iov_len = sizeof(got) };
	struct pollfd wait = { .fd = session->fd[0], .events = POLLIN };
	ssize_t n;

	if (sent < asked)
		asked = 0;
	if (sent - asked < LONG / 8)
		return;
	asked = sent;
	assert_int_equal(SSL_key_update(session->peer, SSL_KEY_UPDATE_REQUESTED), 1);
	assert_int_equal(SSL_write(session->peer, "back", 4), 4);
	while (!(n = pvr_tls_recv(session->tls, &iov, 1)))
		assert_true(poll(&wait, 1, 10000) > 0);
	assert_int_equal(n, 4);
	assert_memory_equal(got, "back", 4);
}

TEST_WITH(struct session *session, setup_dialling, teardown, test_keys_change_in_the_midst_of_text)
{
	need_kernel(session);
	move_long(session, ask_at_times);
}
