// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/socket.h>

#include "net/net_settings.h"
#include "text_file.h"
#include "tls_peer.h"

#define KEY "00112233445566778899aabbccddeeff"

static const unsigned char key[] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

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

static void init_ssl(struct session *session, bool dials)
{
	SSL_CTX *context = session->peer_context = SSL_CTX_new(TLS_method());

	SSL_CTX_set_psk_use_session_callback(context, use_session);
	SSL_CTX_set_psk_find_session_callback(context, find_session);
	SSL_CTX_set_keylog_callback(context, log_secret);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_ciphersuites(context, session->suite);
	session->peer = SSL_new(context);
	SSL_set_app_data(session->peer, session);
	SSL_set_fd(session->peer, session->fd[1]);
	if (dials)
		SSL_set_connect_state(session->peer);
	else
		SSL_set_accept_state(session->peer);
}

/* ---------------------------------------------------------------- the session */

static void connect_by_tcp(int fd[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(address);

	assert_int_equal(bind(listener, (const struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (const struct sockaddr *)&address, len), 0);
	fd[1] = accept(listener, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(listener);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fcntl(fd[i], F_SETFL, O_NONBLOCK), 0);
}

void tls_peer_init(struct session *session, bool peer_dials)
{
	const int size = 1 << 20;
	struct pvr_net_settings settings = { .name = "a" };
	struct pvr_error err = { "" };
	char path[32];

	text_file_create(path, "b:" KEY "\n");
	strcpy(settings.tls_psk_file, path);
	session->context = pvr_tls_context_create(&settings, &err);
	unlink(path);
	assert_non_null(session->context);
	if (session->by_tcp)
		connect_by_tcp(session->fd);
	else
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, session->fd),
				 0);
	setsockopt(session->fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	init_ssl(session, peer_dials);
	session->tls = pvr_tls_create(session->context, session->fd[0], peer_dials ? NULL : "b");
}

void tls_peer_shake(struct session *session)
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

void tls_peer_exit(struct session *session)
{
	SSL_free(session->peer);
	SSL_CTX_free(session->peer_context);
	pvr_tls_destroy(session->tls);
	pvr_tls_context_put(session->context);
	close(session->fd[0]);
	close(session->fd[1]);
}

/* RFC 8446, 7.1: HKDF-Expand-Label without a context. */
void tls_peer_expand(const uint8_t *secret, const char *label, uint8_t *out, size_t len)
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
