// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TLS records that the kernel makes. */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>
#include <sys/socket.h>

#include "base/kernel_version.h"
#include "net/tls_kernel.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

#define RECORD (16u << 10) /* bytes of payload; the kernel makes no longer ones */
#define NONCE 12u
#define KEY_MAX 32u
#define HANDSHAKE 22u /* type of a record */
/* RFC 8446, 4.6.3: a KeyUpdate that asks for none. */
static const uint8_t key_update[] = { 24, 0, 0, 1, 0 };

/*
 * What the kernel takes: a struct tls_crypto_info, the rest of the nonce, the key, the nonce's
 * beginning (salt), and the number of the next record. They have no holes between them.
 */
struct pvr_tls_cipher {
	uint16_t suite; /* of TLS */
	uint16_t type; /* of the kernel */
	const char *digest;
	uint8_t key_bytes, salt_bytes;
};

static const struct pvr_tls_cipher ciphers[] = {
	{ 0x1301, TLS_CIPHER_AES_GCM_128, "SHA256", TLS_CIPHER_AES_GCM_128_KEY_SIZE,
	  TLS_CIPHER_AES_GCM_128_SALT_SIZE },
	{ 0x1302, TLS_CIPHER_AES_GCM_256, "SHA384", TLS_CIPHER_AES_GCM_256_KEY_SIZE,
	  TLS_CIPHER_AES_GCM_256_SALT_SIZE },
	{ 0x1303, TLS_CIPHER_CHACHA20_POLY1305, "SHA256", TLS_CIPHER_CHACHA20_POLY1305_KEY_SIZE,
	  0 },
};

#define INFO_BYTES(key) (sizeof(struct tls_crypto_info) + NONCE + (key) + sizeof(uint64_t))
_Static_assert(sizeof(struct tls12_crypto_info_aes_gcm_128) == INFO_BYTES(16), "holes");
_Static_assert(sizeof(struct tls12_crypto_info_aes_gcm_256) == INFO_BYTES(32), "holes");
_Static_assert(sizeof(struct tls12_crypto_info_chacha20_poly1305) == INFO_BYTES(32), "holes");

/* ------------------------------------------------------------------------------- secrets */

/* LABEL RANDOM SECRET, as in NSS. */
void pvr_tls_kernel_log(struct pvr_tls_kernel *kernel, bool is_server, const char *line)
{
	const char *label = is_server ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";

	if (strncmp(line, label, strlen(label)))
		return;
	if (!OPENSSL_hexstr2buf_ex(kernel->secret, sizeof(kernel->secret), &kernel->secret_bytes,
				   strrchr(line, ' ') + 1, '\0'))
		kernel->secret_bytes = 0;
}

/* RFC 8446, 7.1: HKDF-Expand-Label without a context. */
static bool expand(const struct pvr_tls_kernel *kernel, const struct pvr_tls_cipher *cipher,
		   const char *label, uint8_t *to, size_t bytes)
{
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						 (char *)(uintptr_t)cipher->digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY,
						  (void *)(uintptr_t)kernel->secret,
						  kernel->secret_bytes),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX,
						  (void *)(uintptr_t) "tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label,
						  strlen(label)),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
	EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	bool ok = context && EVP_KDF_derive(context, to, bytes, params) == 1;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return ok;
}

/* ----------------------------------------------------------------------------------- keys */

static uint8_t *put(uint8_t *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return to + bytes;
}

/* Gives the kernel the key of the current secret. Return: 0 or -errno. */
static int set_key(const struct pvr_tls_kernel *kernel, const struct pvr_tls_cipher *cipher, int fd)
{
	const struct tls_crypto_info head = { .version = TLS_1_3_VERSION,
					      .cipher_type = cipher->type };
	uint8_t info[INFO_BYTES(KEY_MAX)], key[KEY_MAX], nonce[NONCE];
	const uint64_t first = 0;
	uint8_t *end = info;
	int ret = -ENOKEY;

	if (expand(kernel, cipher, "key", key, cipher->key_bytes) &&
	    expand(kernel, cipher, "iv", nonce, sizeof(nonce))) {
		end = put(end, &head, sizeof(head));
		end = put(end, nonce + cipher->salt_bytes, NONCE - cipher->salt_bytes);
		end = put(end, key, cipher->key_bytes);
		end = put(end, nonce, cipher->salt_bytes);
		end = put(end, &first, sizeof(first));
		ret = setsockopt(fd, SOL_TLS, TLS_TX, info, (socklen_t)(end - info)) < 0 ? -errno
											 : 0;
	}
	OPENSSL_cleanse(info, sizeof(info));
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(nonce, sizeof(nonce));
	return ret;
}

/* RFC 8446, 7.2. */
static int next_key(struct pvr_tls_kernel *kernel, int fd)
{
	uint8_t secret[PVR_TLS_SECRET_MAX];

	if (!expand(kernel, kernel->cipher, "traffic upd", secret, kernel->secret_bytes))
		return -ENOKEY;
	memcpy(kernel->secret, secret, kernel->secret_bytes);
	OPENSSL_cleanse(secret, sizeof(secret));
	return set_key(kernel, kernel->cipher, fd);
}

static const struct pvr_tls_cipher *cipher_of(const SSL *ssl)
{
	uint16_t suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl));
	size_t i;

	for (i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		if (ciphers[i].suite == suite)
			return &ciphers[i];
	return NULL;
}

void pvr_tls_kernel_end(struct pvr_tls_kernel *kernel)
{
	OPENSSL_cleanse(kernel, sizeof(*kernel));
}

bool pvr_tls_kernel_start(struct pvr_tls_kernel *kernel, int fd, const SSL *ssl)
{
	const struct pvr_tls_cipher *cipher = cipher_of(ssl);

	if (kernel->cipher)
		return true;
	if (!cipher || !kernel->secret_bytes || !pvr_kernel_is_at_least(6, 14) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", strlen("tls")) < 0 ||
	    set_key(kernel, cipher, fd) < 0) {
		pvr_tls_kernel_end(kernel);
		return false;
	}
	kernel->cipher = cipher;
	return true;
}

/* -------------------------------------------------------------------------------- records */

static ssize_t send_message(int fd, const struct msghdr *message)
{
	ssize_t n = sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static ssize_t send_key_update(int fd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)key_update,
			     .iov_len = sizeof(key_update) };
	union {
		struct cmsghdr header; /* for its alignment */
		char buf[CMSG_SPACE(1)];
	} control = { 0 };
	const struct msghdr message = { .msg_iov = &iov,
					.msg_iovlen = 1,
					.msg_control = &control,
					.msg_controllen = sizeof(control.buf) };
	struct cmsghdr *type = CMSG_FIRSTHDR(&message);

	type->cmsg_level = SOL_TLS;
	type->cmsg_type = TLS_SET_RECORD_TYPE;
	type->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(type) = HANDSHAKE;
	return send_message(fd, &message);
}

/* The last record with the old key says that a new one follows. Return: false: *n is the result. */
static bool change_key(struct pvr_tls_kernel *kernel, int fd, ssize_t *n)
{
	bool wanted = __atomic_load_n(&kernel->wants_key, __ATOMIC_RELAXED);

	if (kernel->records < PVR_TLS_RECORDS_PER_KEY && !wanted)
		return true;
	*n = send_key_update(fd);
	if (*n <= 0)
		return false;
	if (*n != sizeof(key_update)) {
		*n = -EIO;
		return false;
	}
	__atomic_store_n(&kernel->wants_key, false, __ATOMIC_RELAXED);
	kernel->records = 0;
	*n = next_key(kernel, fd);
	return !*n;
}

ssize_t pvr_tls_kernel_send(struct pvr_tls_kernel *kernel, int fd, const struct iovec *iov,
			    int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)iov,
					.msg_iovlen = (size_t)count };
	ssize_t n;

	if (!change_key(kernel, fd, &n))
		return n;
	n = send_message(fd, &message);
	/* The kernel may divide a record where it waited for memory: that is in the limit's reserve. */
	if (n > 0)
		kernel->records += (uint32_t)((size_t)n / RECORD + 1);
	return n;
}

void pvr_tls_kernel_want_key(struct pvr_tls_kernel *kernel)
{
	__atomic_store_n(&kernel->wants_key, true, __ATOMIC_RELAXED);
}
