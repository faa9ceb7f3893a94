// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * TLS records that the kernel makes. The kernel is one of this file, and OpenSSL reads its records: so
 * its keys, numbers and types are right. test_tls_kernel_real.c has a real one.
 */
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "net/tls_kernel.h"
#include "tls_peer.h"

#define SOL_TLS 282
#define RECORD (16 << 10)
#define TAG 16
#define PAYLOAD 0x17

/* The kernel's half of a socket. */
static struct {
	const char *version;
	int ulp_error, key_error; /* errno of setsockopt() */
	unsigned int ulps, keys; /* calls */
	unsigned int eagains; /* sends that do not fit */
	unsigned int updates; /* records that say that a new key follows */
	int fd; /* that has a key */
	uint8_t key[32], nonce[12];
	size_t key_bytes;
	uint64_t number;
} fake;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __wrap_uname(struct utsname *name);

int __wrap_uname(struct utsname *name)
{
	snprintf(name->release, sizeof(name->release), "%s", fake.version);
	return 0;
}

static int fails(int error)
{
	errno = error;
	return error ? -1 : 0;
}

/* Only the suites of pre-shared keys. */
static void take_key(int fd, const struct tls_crypto_info *info, socklen_t len)
{
	const struct tls12_crypto_info_aes_gcm_128 *aes = (const void *)info;
	const struct tls12_crypto_info_chacha20_poly1305 *chacha = (const void *)info;

	assert_int_equal(info->version, TLS_1_3_VERSION);
	fake.fd = fd;
	fake.number = 0;
	if (info->cipher_type == TLS_CIPHER_AES_GCM_128) {
		assert_int_equal(len, sizeof(*aes));
		fake.key_bytes = sizeof(aes->key);
		memcpy(fake.key, aes->key, sizeof(aes->key));
		memcpy(fake.nonce, aes->salt, 4);
		memcpy(fake.nonce + 4, aes->iv, 8);
		assert_memory_equal(aes->rec_seq, (uint8_t[8]){ 0 }, 8);
		return;
	}
	assert_int_equal(info->cipher_type, TLS_CIPHER_CHACHA20_POLY1305);
	assert_int_equal(len, sizeof(*chacha));
	fake.key_bytes = sizeof(chacha->key);
	memcpy(fake.key, chacha->key, sizeof(chacha->key));
	memcpy(fake.nonce, chacha->iv, sizeof(chacha->iv));
	assert_memory_equal(chacha->rec_seq, (uint8_t[8]){ 0 }, 8);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == IPPROTO_TCP && name == TCP_ULP) {
		fake.ulps++;
		return fails(fake.ulp_error);
	}
	if (level != SOL_TLS)
		return __real_setsockopt(fd, level, name, value, len);
	fake.keys++;
	if (!fake.key_error)
		take_key(fd, value, len);
	return fails(fake.key_error);
}

/* RFC 8446, 5.2 and 5.3. */
static void send_record(const uint8_t *text, size_t bytes, uint8_t type)
{
	size_t inner = bytes + 1 + TAG;
	uint8_t record[5 + RECORD + 1 + TAG] = { 0x17, 3, 3, (uint8_t)(inner >> 8),
						 (uint8_t)inner };
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int len;

	memcpy(nonce, fake.nonce, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[11 - i] ^= (uint8_t)(fake.number >> (8 * i));
	fake.number++;
	EVP_EncryptInit_ex(context,
			   fake.key_bytes == 16 ? EVP_aes_128_gcm() : EVP_chacha20_poly1305(), NULL,
			   fake.key, nonce);
	EVP_EncryptUpdate(context, NULL, &len, record, 5);
	EVP_EncryptUpdate(context, record + 5, &len, text, (int)bytes);
	EVP_EncryptUpdate(context, record + 5 + bytes, &len, &type, 1);
	EVP_EncryptFinal_ex(context, record + 5 + bytes + 1, &len);
	EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG, record + 5 + bytes + 1);
	EVP_CIPHER_CTX_free(context);
	assert_int_equal(send(fake.fd, record, 5 + inner, 0), 5 + inner);
}

static uint8_t type_of(const struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	if (!control)
		return PAYLOAD;
	assert_int_equal(control->cmsg_level, SOL_TLS);
	assert_int_equal(control->cmsg_type, TLS_SET_RECORD_TYPE);
	return *CMSG_DATA(control);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	uint8_t text[RECORD], type = type_of(message);
	size_t used = 0;
	ssize_t total = 0;

	if (fd != fake.fd)
		return __real_sendmsg(fd, message, flags);
	assert_int_equal(flags, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (fake.eagains && fake.eagains--)
		return fails(EAGAIN);
	fake.updates += type != PAYLOAD;
	for (size_t i = 0; i < message->msg_iovlen; i++)
		for (size_t at = 0; at < message->msg_iov[i].iov_len; at++) {
			text[used++] = ((const uint8_t *)message->msg_iov[i].iov_base)[at];
			total++;
			if (used == RECORD) {
				send_record(text, used, type);
				used = 0;
			}
		}
	if (used)
		send_record(text, used, type);
	return total;
}

/* ------------------------------------------------------------------------------ a session */

static int setup_row(struct session *session, const char *suite, bool peer_dials)
{
	*session = (struct session){ .suite = suite };
	fake.fd = -1;
	tls_peer_init(session, peer_dials);
	tls_peer_shake(session);
	return 0;
}

static int setup(void **state)
{
	struct session *session = test_malloc(sizeof(*session));

	memset(&fake, 0, sizeof(fake));
	fake.version = "6.14.0-test";
	*state = session;
	return 0;
}

static int teardown(void **state)
{
	tls_peer_exit(*state);
	test_free(*state);
	return 0;
}

#define TEST_KERNEL(name) TEST_WITH(struct session *session, setup, teardown, name)

static ssize_t send_text(struct session *session, const char *text)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };

	return pvr_tls_send(session->tls, &iov, 1);
}

static void assert_peer_reads(struct session *session, const char *text)
{
	char got[256] = { 0 };

	assert_int_equal(SSL_read(session->peer, got, sizeof(got)), strlen(text));
	assert_string_equal(got, text);
}

static bool is_by_kernel(const struct session *session)
{
	return strstr(pvr_tls_describe(session->tls), ", sent by the kernel");
}

/* Both directions carry text. */
static void assert_works(struct session *session, bool by_kernel)
{
	char got[8] = { 0 };
	const struct iovec iov = { .iov_base = got, .iov_len = sizeof(got) };

	assert_int_equal(is_by_kernel(session), by_kernel);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_text(session, "there"), 5);
		assert_peer_reads(session, "there");
		assert_int_equal(SSL_write(session->peer, "back", 4), 4);
		assert_int_equal(pvr_tls_recv(session->tls, &iov, 1), 4);
		assert_string_equal(got, "back");
	}
	assert_int_equal(fake.number, by_kernel ? 3 : 0);
}

/* ---------------------------------------------------------------------------------- tests */

TEST_KERNEL(test_peer_that_has_dialled_reads_the_records_of_the_kernel)
{
	setup_row(session, TLS_PEER_SUITE, true);
	assert_works(session, true);
}

TEST_KERNEL(test_peer_that_was_dialled_reads_the_records_of_the_kernel)
{
	setup_row(session, TLS_PEER_SUITE, false);
	assert_works(session, true);
}

/* Else records of OpenSSL would have the numbers of the kernel's. */
TEST_KERNEL(test_second_call_of_the_handshake_leaves_it_to_the_kernel)
{
	struct pvr_error err = { "" };

	setup_row(session, TLS_PEER_SUITE, true);
	fake.ulp_error = EEXIST;
	assert_int_equal(pvr_tls_handshake(session->tls, &err), PVR_TLS_DONE);
	assert_int_equal(fake.ulps, 1);
	assert_works(session, true);
}

TEST_KERNEL(test_chacha_has_a_nonce_without_a_salt)
{
	setup_row(session, "TLS_CHACHA20_POLY1305_SHA256", true);
	assert_works(session, true);
}

TEST_KERNEL(test_long_text_of_several_pieces_arrives_in_order)
{
	static uint8_t text[3 * RECORD], got[sizeof(text)];
	const struct iovec iov[] = { { text, 5 }, { text + 5, RECORD }, { text + 5 + RECORD, 7 } };
	int n, done = 0;

	setup_row(session, TLS_PEER_SUITE, true);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7 >> 3);
	assert_int_equal(pvr_tls_send(session->tls, iov, 3), RECORD + 12);
	while (done < RECORD + 12 &&
	       (n = SSL_read(session->peer, got + done, (int)sizeof(got) - done)) > 0)
		done += n;
	assert_int_equal(done, RECORD + 12);
	assert_memory_equal(got, text, RECORD + 12);
}

TEST_KERNEL(test_kernel_without_tls_changes_nothing)
{
	fake.ulp_error = ENOENT;
	setup_row(session, TLS_PEER_SUITE, true);
	assert_int_equal(fake.keys, 0);
	assert_works(session, false);
}

TEST_KERNEL(test_kernel_that_refuses_the_key_changes_nothing)
{
	fake.key_error = ENOENT;
	setup_row(session, TLS_PEER_SUITE, true);
	assert_int_equal(fake.ulps, 1);
	assert_works(session, false);
}

/* Linux 6.13 and earlier cannot take a second key. */
TEST_KERNEL(test_kernel_that_cannot_change_keys_is_not_used)
{
	fake.version = "6.13.99";
	setup_row(session, TLS_PEER_SUITE, true);
	assert_int_equal(fake.ulps, 0);
	assert_works(session, false);
}

/* -------------------------------------------------------------------------------- new keys */

static void ask_for_a_key(struct session *session)
{
	char byte;
	const struct iovec iov = { .iov_base = &byte, .iov_len = 1 };

	assert_int_equal(SSL_key_update(session->peer, SSL_KEY_UPDATE_REQUESTED), 1);
	assert_int_equal(SSL_do_handshake(session->peer), 1);
	assert_int_equal(pvr_tls_recv(session->tls, &iov, 1), 0);
}

TEST_KERNEL(test_peer_gets_the_new_key_that_it_asks_for)
{
	setup_row(session, TLS_PEER_SUITE, true);
	for (unsigned int i = 1; i < 4; i++) {
		assert_int_equal(send_text(session, "old"), 3);
		assert_peer_reads(session, "old");
		ask_for_a_key(session);
		assert_int_equal(fake.keys, i);
		assert_int_equal(send_text(session, "new"), 3);
		assert_int_equal(fake.keys, i + 1);
		assert_int_equal(fake.updates, i);
		assert_peer_reads(session, "new");
	}
	/* No record of OpenSSL's own has left. */
	assert_int_equal(SSL_pending(session->peer), 0);
}

TEST_KERNEL(test_key_update_that_does_not_fit_is_sent_later_and_once)
{
	setup_row(session, TLS_PEER_SUITE, true);
	ask_for_a_key(session);
	fake.eagains = 2;
	assert_int_equal(send_text(session, "new"), 0);
	assert_int_equal(send_text(session, "new"), 0);
	assert_int_equal(fake.keys, 1);
	assert_int_equal(send_text(session, "new"), 3);
	assert_int_equal(fake.keys, 2);
	assert_int_equal(fake.updates, 1);
	assert_peer_reads(session, "new");
}

TEST_KERNEL(test_kernel_that_refuses_the_next_key_ends_the_session)
{
	setup_row(session, TLS_PEER_SUITE, true);
	ask_for_a_key(session);
	fake.key_error = EBUSY;
	assert_int_equal(send_text(session, "new"), -EBUSY);
}

/* The peer's half by the kernel, so that its count of records can be set. */
TEST_KERNEL(test_key_changes_before_its_limit_of_records)
{
	struct pvr_tls_kernel kernel = { .secret_bytes = sizeof(session->secret) };
	const struct iovec iov = { .iov_base = (char[]){ "text" }, .iov_len = 4 };
	char got[8] = { 0 };
	const struct iovec to = { .iov_base = got, .iov_len = sizeof(got) };

	fake.ulp_error = ENOENT; /* of the other half */
	setup_row(session, TLS_PEER_SUITE, true);
	fake.ulp_error = 0;
	memcpy(kernel.secret, session->secret, sizeof(session->secret));
	assert_true(pvr_tls_kernel_start(&kernel, session->fd[1], session->peer));
	kernel.records = PVR_TLS_RECORDS_PER_KEY - 1;
	for (unsigned int keys = 1; keys < 3; keys++) {
		assert_int_equal(pvr_tls_kernel_send(&kernel, session->fd[1], &iov, 1), 4);
		assert_int_equal(fake.keys, keys);
		assert_int_equal(pvr_tls_recv(session->tls, &to, 1), 4);
		assert_string_equal(got, "text");
	}
	assert_int_equal(kernel.records, 1);
	pvr_tls_kernel_end(&kernel);
}

TEST_KERNEL(test_log_without_a_secret_of_this_side_is_no_key)
{
	static const char *const lines[] = { "SERVER_TRAFFIC_SECRET_0 00 aabb",
					     "CLIENT_HANDSHAKE_TRAFFIC_SECRET 00 aabb",
					     "CLIENT_TRAFFIC_SECRET_0 00 aab",
					     "CLIENT_TRAFFIC_SECRET_0 00 aaxb" };
	struct pvr_tls_kernel kernel = { .cipher = NULL };

	setup_row(session, TLS_PEER_SUITE, true);
	for (size_t i = 0; i < COUNT(lines); i++) {
		pvr_tls_kernel_log(&kernel, false, lines[i]);
		assert_int_equal(kernel.secret_bytes, 0);
	}
	pvr_tls_kernel_log(&kernel, false, "CLIENT_TRAFFIC_SECRET_0 00 aabb");
	assert_int_equal(kernel.secret_bytes, 2);
}
