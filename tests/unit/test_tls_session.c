// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TLS sessions with a hostile peer: records that carry no payload, or little of it. */
#include <openssl/evp.h>
#include <sys/socket.h>

#include "net/tls_input.h"
#include "tls_peer.h"

#define FLOOD 1000

/* ---------------------------------------------------------------- the session */

static int setup_with(void **state, bool peer_dials)
{
	struct session *session = test_malloc(sizeof(*session));

	*session = (struct session){ .suite = TLS_PEER_SUITE };
	tls_peer_init(session, peer_dials);
	tls_peer_shake(session);
	*state = session;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, true);
}

static int setup_dialling(void **state)
{
	return setup_with(state, false);
}

static int teardown(void **state)
{
	tls_peer_exit(*state);
	test_free(*state);
	return 0;
}

#define TEST_SESSION(name) TEST_WITH(struct session *session, setup, teardown, name)

static ssize_t recv_some(struct session *session, void *data, size_t len)
{
	const struct iovec iov = { .iov_base = data, .iov_len = len };

	return pvr_tls_recv(session->tls, &iov, 1);
}

/* As the event loop does: until the socket is empty. Return: the last result. */
static ssize_t recv_all(struct session *session, size_t *total)
{
	char data[4096];
	ssize_t n;

	*total = 0;
	do {
		n = recv_some(session, data, sizeof(data));
		*total += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (!n && pvr_tls_has_more(session->tls)));
	return n;
}

static void send_text(struct session *session, const char *text)
{
	assert_int_equal(SSL_write(session->peer, text, (int)strlen(text)), strlen(text));
}

/* --------------------------------------------------------- records made by hand */

/* Sends record @number of the session without payload. The peer itself has sent none. */
static void send_empty_record(struct session *session, uint8_t number)
{
	uint8_t record[5 + 1 + 16] = { 0x17, 3, 3, 0, 17 }, type = 0x17, secret_key[16], iv[12];
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int len;

	tls_peer_expand(session->secret, "key", secret_key, sizeof(secret_key));
	tls_peer_expand(session->secret, "iv", iv, sizeof(iv));
	iv[11] ^= number;
	EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), NULL, secret_key, iv);
	EVP_EncryptUpdate(context, NULL, &len, record, 5);
	EVP_EncryptUpdate(context, record + 5, &len, &type, 1);
	EVP_EncryptFinal_ex(context, record + 6, &len);
	EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, record + 6);
	EVP_CIPHER_CTX_free(context);
	assert_int_equal(send(session->fd[1], record, sizeof(record), 0), sizeof(record));
}

/* ------------------------------------------------------------------- the tests */

static void update_keys(struct session *session, int num, int answer)
{
	for (int i = 0; i < num; i++) {
		assert_int_equal(SSL_key_update(session->peer, answer), 1);
		assert_int_equal(SSL_do_handshake(session->peer), 1);
	}
}

static void assert_is_ended(struct session *session, ssize_t n)
{
	assert_int_equal(n, -ECONNRESET);
	assert_non_null(strstr(pvr_tls_error(session->tls),
			       "key updates or session tickets in 65536 records"));
	/* It stays ended, also for a sender. */
	assert_int_equal(recv_some(session, (char[1]){ 0 }, 1), -ECONNRESET);
	assert_int_equal(pvr_tls_send(session->tls,
				      &(struct iovec){ .iov_base = (char[1]){ 0 }, .iov_len = 1 },
				      1),
			 -ECONNRESET);
}

TEST_SESSION(test_a_few_key_updates_work)
{
	size_t total;

	update_keys(session, 16, SSL_KEY_UPDATE_REQUESTED);
	send_text(session, "text");
	assert_int_equal(recv_all(session, &total), 0);
	assert_int_equal(total, strlen("text"));
}

TEST_SESSION(test_key_updates_without_end_end_the_session)
{
	size_t total;

	update_keys(session, FLOOD, SSL_KEY_UPDATE_REQUESTED);
	assert_is_ended(session, recv_all(session, &total));
}

TEST_SESSION(test_key_updates_between_payload_end_the_session)
{
	size_t total;
	ssize_t n = 0;

	for (int i = 0; i < FLOOD && n >= 0; i++) {
		update_keys(session, 1, SSL_KEY_UPDATE_NOT_REQUESTED);
		send_text(session, "x");
		n = recv_all(session, &total);
	}
	assert_is_ended(session, n);
}

TEST_SESSION(test_a_window_of_records_allows_new_key_updates)
{
	char text[4096];
	size_t total;

	memset(text, 'x', sizeof(text));
	text[64] = '\0';
	update_keys(session, 16, SSL_KEY_UPDATE_NOT_REQUESTED);
	for (int i = 0; i < 65536; i++) {
		send_text(session, text);
		if (i % 256 == 255)
			assert_int_equal(recv_all(session, &total), 0);
	}
	update_keys(session, 16, SSL_KEY_UPDATE_NOT_REQUESTED);
	send_text(session, "text");
	assert_int_equal(recv_all(session, &total), 0);
	assert_int_equal(total, strlen("text"));
}

TEST_WITH(struct session *session, setup_dialling, teardown,
	  test_session_tickets_without_end_end_the_session)
{
	size_t total;

	for (int i = 0; i < FLOOD; i++) {
		assert_int_equal(SSL_new_session_ticket(session->peer), 1);
		/* Also several in one record: the peer sends them with payload. */
		if (i % 100 == 99)
			send_text(session, "x");
	}
	assert_is_ended(session, recv_all(session, &total));
}

/* One call handles a bounded number of records, and all payload arrives. */
TEST_SESSION(test_records_of_one_byte_are_bounded_per_call)
{
	char data[FLOOD];
	size_t total = 0, calls = 0;
	ssize_t n;

	for (int i = 0; i < FLOOD; i++)
		send_text(session, "x");
	while ((n = recv_some(session, data, sizeof(data))) > 0) {
		assert_in_range(n, 1, 2 * PVR_TLS_RECORDS_PER_CALL);
		total += (size_t)n;
		calls++;
		assert_true(total == FLOOD || pvr_tls_has_more(session->tls));
	}
	assert_int_equal(n, 0);
	assert_int_equal(total, FLOOD);
	assert_false(pvr_tls_has_more(session->tls));
	assert_true(calls >= FLOOD / (2 * PVR_TLS_RECORDS_PER_CALL));
}

TEST_SESSION(test_empty_records_without_end_end_the_session)
{
	size_t total;

	for (unsigned int i = 0; i < 200; i++)
		send_empty_record(session, (uint8_t)i);
	assert_int_equal(recv_all(session, &total), -ECONNRESET);
	assert_int_equal(total, 0);
}

TEST_SESSION(test_few_empty_records_carry_nothing)
{
	char byte;

	for (uint8_t i = 0; i < 8; i++)
		send_empty_record(session, i);
	assert_int_equal(recv_some(session, &byte, 1), 0);
}

/* A ClientHello in records of one byte does not hold the thread. */
TEST_PLAIN(test_handshake_in_small_records_is_bounded_per_call)
{
	uint8_t record[6] = { 0x16, 3, 1, 0, 1, 0 };
	static const uint8_t hello[4] = { 1, 1, 0xff, 0 }; /* a ClientHello of 130,816 bytes */
	struct session session = { .suite = TLS_PEER_SUITE };
	struct pvr_error err = { "" };
	size_t calls = 0;

	tls_peer_init(&session, true);
	for (size_t i = 0; i < FLOOD; i++) {
		record[5] = i < sizeof(hello) ? hello[i] : 0;
		assert_int_equal(send(session.fd[1], record, sizeof(record), 0), sizeof(record));
	}
	do {
		assert_int_equal(pvr_tls_handshake(session.tls, &err), PVR_TLS_WAIT);
		calls++;
	} while (pvr_tls_has_more(session.tls));
	assert_true(calls >= FLOOD / (2 * PVR_TLS_RECORDS_PER_CALL));
	tls_peer_exit(&session);
}
