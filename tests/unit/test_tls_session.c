// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * TLS sessions with a hostile peer: records that carry no payload, or little of it. The peer
 * is OpenSSL without the limits of pvrdmad.
 */
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/core_names.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "net/net_settings.h"
#include "net/tls.h"
#include "net/tls_input.h"
#include "text_file.h"

#define KEY "00112233445566778899aabbccddeeff"
#define FLOOD 1000

static const unsigned char key[] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

struct session {
	int fd[2];
	struct pvr_tls_context *context;
	struct pvr_tls *tls; /* of host a */
	SSL_CTX *peer_context;
	SSL *peer; /* of host b */
	uint8_t secret[32]; /* of the records that the peer sends, as OpenSSL logs it */
};

/* ------------------------------------------------------------------- the peer */

static SSL_SESSION *make_session(SSL *ssl)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	SSL_SESSION *session = SSL_SESSION_new();

	SSL_SESSION_set1_master_key(session, key, sizeof(key));
	SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256));
	SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
	return session;
}

static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		       SSL_SESSION **session)
{
	*id = (const unsigned char *)"b";
	*id_len = 1;
	*session = make_session(ssl);
	return 1;
}

static int find_session(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	*session = make_session(ssl);
	return 1;
}

/* A line of the key log: LABEL RANDOM SECRET. */
static void log_secret(const SSL *ssl, const char *line)
{
	struct session *session = SSL_get_app_data(ssl);
	const char *label = SSL_is_server(ssl) ? "SERVER_TRAFFIC_SECRET_0 "
					       : "CLIENT_TRAFFIC_SECRET_0 ";
	const char *hex = strrchr(line, ' ') + 1;

	if (strncmp(line, label, strlen(label)))
		return;
	for (size_t i = 0; i < sizeof(session->secret); i++)
		sscanf(hex + 2 * i, "%2hhx", &session->secret[i]);
}

static void init_peer(struct session *session, bool dials)
{
	SSL_CTX *context = session->peer_context = SSL_CTX_new(TLS_method());

	SSL_CTX_set_psk_use_session_callback(context, use_session);
	SSL_CTX_set_psk_find_session_callback(context, find_session);
	SSL_CTX_set_keylog_callback(context, log_secret);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
	session->peer = SSL_new(context);
	SSL_set_app_data(session->peer, session);
	SSL_set_fd(session->peer, session->fd[1]);
	if (dials)
		SSL_set_connect_state(session->peer);
	else
		SSL_set_accept_state(session->peer);
}

/* ---------------------------------------------------------------- the session */

static void init(struct session *session, bool peer_dials)
{
	const int size = 1 << 20;
	struct pvr_net_settings settings = { .name = "a" };
	struct pvr_error err = { "" };
	char path[32];

	memset(session, 0, sizeof(*session));
	text_file_create(path, "b:" KEY "\n");
	strcpy(settings.tls_psk_file, path);
	session->context = pvr_tls_context_create(&settings, &err);
	unlink(path);
	assert_non_null(session->context);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, session->fd), 0);
	setsockopt(session->fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	init_peer(session, peer_dials);
	session->tls = pvr_tls_create(session->context, session->fd[0], peer_dials ? NULL : "b");
}

static void shake(struct session *session)
{
	struct pvr_error err = { "" };
	enum pvr_tls_result result;
	int ret;

	do {
		ret = SSL_do_handshake(session->peer);
		result = pvr_tls_handshake(session->tls, &err);
		if (result == PVR_TLS_FAILED)
			fail_msg("%s", err.text);
	} while (result != PVR_TLS_DONE || ret != 1);
}

static int setup(void **state)
{
	struct session *session = test_malloc(sizeof(*session));

	init(session, true);
	shake(session);
	*state = session;
	return 0;
}

static int setup_dialling(void **state)
{
	struct session *session = test_malloc(sizeof(*session));

	init(session, false);
	shake(session);
	*state = session;
	return 0;
}

static void exit_session(struct session *session)
{
	SSL_free(session->peer);
	SSL_CTX_free(session->peer_context);
	pvr_tls_destroy(session->tls);
	pvr_tls_context_put(session->context);
	close(session->fd[0]);
	close(session->fd[1]);
}

static int teardown(void **state)
{
	exit_session(*state);
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

static void expand(const uint8_t *secret, const char *label, uint8_t *out, size_t len)
{
	uint8_t info[64] = { (uint8_t)(len >> 8), (uint8_t)len };
	size_t text = 6 + strlen(label);
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[5];

	info[2] = (uint8_t)text;
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, strlen(label));
	params[0] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	params[1] =
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0);
	params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret,
						      32);
	params[3] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, 4 + text);
	params[4] = OSSL_PARAM_construct_end();
	assert_int_equal(EVP_KDF_derive(context, out, len, params), 1);
	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
}

/* Sends record @number of the session without payload. The peer itself has sent none. */
static void send_empty_record(struct session *session, uint8_t number)
{
	uint8_t record[5 + 1 + 16] = { 0x17, 3, 3, 0, 17 }, type = 0x17, secret_key[16], iv[12];
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int len;

	expand(session->secret, "key", secret_key, sizeof(secret_key));
	expand(session->secret, "iv", iv, sizeof(iv));
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
	struct session session;
	struct pvr_error err = { "" };
	size_t calls = 0;

	init(&session, true);
	for (size_t i = 0; i < FLOOD; i++) {
		record[5] = i < sizeof(hello) ? hello[i] : 0;
		assert_int_equal(send(session.fd[1], record, sizeof(record), 0), sizeof(record));
	}
	do {
		assert_int_equal(pvr_tls_handshake(session.tls, &err), PVR_TLS_WAIT);
		calls++;
	} while (pvr_tls_has_more(session.tls));
	assert_true(calls >= FLOOD / (2 * PVR_TLS_RECORDS_PER_CALL));
	exit_session(&session);
}
