// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One TLS session. OpenSSL reads from the socket directly, and writes records to a buffer
 * here. The buffer is sent as a whole: a record is never accepted in part, and many
 * records take one system call.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "net/tls.h"
#include "net/tls_context.h"
#include "net/tls_input.h"
#include "net/tls_kernel.h"
#include "pipe.h"

#define RECORD (16 << 10) /* bytes of plain text per record */
#define OUT_MAX (64 << 10) /* bytes in the buffer before a record is added */
#define OUT_FIRST (4 << 10)
/*
 * Hard limit of the buffer in bytes: a flight of the handshake or a record above OUT_MAX.
 * OpenSSL writes its answers to key updates without a check for space.
 */
#define OUT_LIMIT (256 << 10)
/*
 * Key updates and session tickets of the peer per MESSAGE_WINDOW records. A pvrdmad sends
 * one key update per PVR_TLS_RECORDS_PER_KEY. Others send a few session tickets at first.
 */
#define MESSAGES_MAX 16
#define MESSAGE_WINDOW (1u << 16)

struct pvr_tls {
	struct pvr_tls_context *context; /* may be older than the current keys */
	SSL *ssl;
	int fd;
	pthread_mutex_t lock; /* protects the members below and the SSL */
	uint8_t *out; /* records to be sent */
	size_t out_size, out_begin, out_end;
	bool broken;
	bool ready; /* the handshake is done */
	uint32_t records; /* since the last key update */
	struct pvr_tls_kernel kernel; /* used by the sender without the lock, once it is on */
	struct pvr_tls_input input;
	uint64_t window; /* number of MESSAGE_WINDOW records that have arrived ... */
	unsigned int messages; /* ... and messages without payload in the current one */
	char dialled[PVR_HOST_NAME_MAX]; /* the dialled host; "": incoming */
	char psk_host[PVR_HOST_NAME_MAX]; /* incoming: the host that its key proves */
	char identity[PVR_PSK_IDENTITY]; /* identity presented to the peer */
	const struct pvr_psk *psk; /* the key, owned by the context's file; NULL: none yet */
	unsigned int identities; /* that an incoming peer has presented */
	int64_t expires; /* first expiry of the peer's chain, seconds since 1970 */
	char error[300], description[100];
};

struct pvr_tls *pvr_tls_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

const char *pvr_tls_dialled_host(const struct pvr_tls *tls)
{
	return tls->dialled;
}

const struct pvr_tls_context *pvr_tls_context_of(const struct pvr_tls *tls)
{
	return tls->context;
}

void pvr_tls_set_psk(struct pvr_tls *tls, const struct pvr_psk *psk, const char *host)
{
	tls->psk = psk;
	snprintf(tls->psk_host, sizeof(tls->psk_host), "%s", host);
}

unsigned int pvr_tls_count_identity(struct pvr_tls *tls)
{
	return ++tls->identities;
}

char *pvr_tls_identity(struct pvr_tls *tls)
{
	return tls->identity;
}

void pvr_tls_set_error(struct pvr_tls *tls, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(tls->error, sizeof(tls->error), fmt, ap);
	va_end(ap);
}

const char *pvr_tls_error(const struct pvr_tls *tls)
{
	return tls->error;
}

/* ------------------------------------------------------------ records and socket */

static bool grow(struct pvr_tls *tls, size_t len)
{
	size_t size = tls->out_size ? tls->out_size : OUT_FIRST;
	uint8_t *grown;

	if (tls->out_begin) {
		memmove(tls->out, tls->out + tls->out_begin, tls->out_end - tls->out_begin);
		tls->out_end -= tls->out_begin;
		tls->out_begin = 0;
	}
	while (size < tls->out_end + len)
		size *= 2;
	if (size == tls->out_size)
		return true;
	grown = realloc(tls->out, size);
	if (!grown)
		return false;
	tls->out = grown;
	tls->out_size = size;
	return true;
}

/*
 * Accepts a whole record or nothing. write_locked() checks for space before. Where the kernel makes
 * records, OpenSSL writes only an alert when the session has failed, which is dropped.
 */
static int bio_write(BIO *bio, const char *data, size_t len, size_t *written)
{
	struct pvr_tls *tls = BIO_get_data(bio);

	if (pvr_tls_kernel_is_on(&tls->kernel)) {
		*written = len;
		return 1;
	}
	if (tls->out_end - tls->out_begin + len > OUT_LIMIT)
		return 0;
	if (tls->out_size - tls->out_end < len && !grow(tls, len))
		return 0;
	memcpy(tls->out + tls->out_end, data, len);
	tls->out_end += len;
	*written = len;
	return 1;
}

static int bio_read(BIO *bio, char *data, size_t len, size_t *got)
{
	struct pvr_tls *tls = BIO_get_data(bio);
	ssize_t n = pvr_tls_input_read(&tls->input, tls->fd, (uint8_t *)data, len);

	BIO_clear_retry_flags(bio);
	if (n > 0) {
		*got = (size_t)n;
		return 1;
	}
	if (!n)
		BIO_set_retry_read(bio);
	return 0;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *pvr_tls_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pvrdma");

	if (!method)
		return NULL;
	BIO_meth_set_write_ex(method, bio_write);
	BIO_meth_set_read_ex(method, bio_read);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}

/* RFC 8446, 4.6.3: a type, a length of three bytes, a byte. */
static bool asks_for_key(const uint8_t *message, size_t len)
{
	return len == 5 && message[0] == SSL3_MT_KEY_UPDATE &&
	       message[4] == SSL_KEY_UPDATE_REQUESTED;
}

/*
 * Called for each message of the TLS protocol, with the session's lock held. OpenSSL would
 * process the remaining messages of the record before it returns: the flags stop it.
 */
void pvr_tls_message(int write, int version, int type, const void *data, size_t len, SSL *ssl,
		     void *opaque)
{
	struct pvr_tls *tls = pvr_tls_of(ssl);

	if (write || type != SSL3_RT_HANDSHAKE || !tls->ready)
		return;
	/* OpenSSL answers it with its next record. There is none if the kernel makes them. */
	if (asks_for_key(data, len))
		pvr_tls_kernel_want_key(&tls->kernel);
	if (tls->window != tls->input.records / MESSAGE_WINDOW) {
		tls->window = tls->input.records / MESSAGE_WINDOW;
		tls->messages = 0;
	}
	if (++tls->messages <= MESSAGES_MAX)
		return;
	tls->broken = true;
	pvr_tls_set_error(tls, "TLS: more than %d key updates or session tickets in %u records",
			  MESSAGES_MAX, MESSAGE_WINDOW);
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

void pvr_tls_log_key(const SSL *ssl, const char *line)
{
	pvr_tls_kernel_log(&pvr_tls_of(ssl)->kernel, SSL_is_server(ssl), line);
}

static bool flush_locked(struct pvr_tls *tls)
{
	ssize_t n;

	while (tls->out_begin < tls->out_end && !tls->broken) {
		n = send(tls->fd, tls->out + tls->out_begin, tls->out_end - tls->out_begin,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n < 0)
			tls->broken = true;
		else
			tls->out_begin += (size_t)n;
	}
	if (tls->out_begin == tls->out_end)
		tls->out_begin = tls->out_end = 0;
	return !tls->broken;
}

bool pvr_tls_flush(struct pvr_tls *tls)
{
	bool ok;

	pthread_mutex_lock(&tls->lock);
	ok = flush_locked(tls);
	pthread_mutex_unlock(&tls->lock);
	return ok;
}

bool pvr_tls_is_flushed(struct pvr_tls *tls)
{
	bool flushed;

	pthread_mutex_lock(&tls->lock);
	flushed = tls->out_begin == tls->out_end;
	pthread_mutex_unlock(&tls->lock);
	return flushed;
}

void pvr_tls_rest(struct pvr_tls *tls)
{
	pthread_mutex_lock(&tls->lock);
	if (tls->out_begin == tls->out_end && tls->out_size > OUT_FIRST) {
		free(tls->out);
		tls->out = NULL;
		tls->out_size = 0;
	}
	pthread_mutex_unlock(&tls->lock);
}

/* --------------------------------------------------------------------- handshake */

bool pvr_tls_is_expired(const struct pvr_tls *tls)
{
	return time(NULL) > tls->expires;
}

static void describe(struct pvr_tls *tls)
{
	snprintf(tls->description, sizeof(tls->description), "%s, %s, %s%s",
		 SSL_get_version(tls->ssl), SSL_get_cipher_name(tls->ssl),
		 SSL_get0_peer_certificate(tls->ssl) ? "certificate" : "pre-shared key",
		 pvr_tls_kernel_is_on(&tls->kernel) ? ", sent by the kernel" : "");
}

const char *pvr_tls_describe(const struct pvr_tls *tls)
{
	return tls->description;
}

int pvr_tls_verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	X509 *cert = X509_STORE_CTX_get0_cert(store);
	char subject[120] = "?";

	if (ok)
		return 1;
	if (cert)
		X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof(subject));
	pvr_tls_set_error(pvr_tls_of(ssl), "the certificate of '%s' is refused: %s", subject,
			  X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)));
	return 0;
}

/* Without an error of OpenSSL, the stream has ended. */
static void explain(struct pvr_tls *tls)
{
	const char *host = tls->psk_host;
	char why[200];

	if (tls->error[0] || !ERR_peek_last_error())
		return; /* set by a callback already, or unknown */
	pvr_tls_openssl_error(why, sizeof(why));
	pvr_tls_set_error(tls, "TLS: %s%s%s%s", host[0] ? "host " : "", host, host[0] ? ": " : "",
			  why);
}

static enum pvr_tls_result failed(struct pvr_tls *tls, struct pvr_error *err)
{
	explain(tls);
	flush_locked(tls); /* sends the alert to the peer */
	pvr_fail(err, "%s",
		 tls->error[0] ? tls->error
			       : "it has closed the connection amid the TLS handshake");
	return PVR_TLS_FAILED;
}

static enum pvr_tls_result handshake_locked(struct pvr_tls *tls, struct pvr_error *err)
{
	int ret, want;

	ERR_clear_error();
	pvr_tls_input_begin(&tls->input);
	ret = SSL_do_handshake(tls->ssl);
	want = ret == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, ret);
	if (want != SSL_ERROR_NONE && want != SSL_ERROR_WANT_READ)
		return failed(tls, err);
	tls->ready = ret == 1;
	if (!flush_locked(tls))
		return failed(tls, err);
	if (ret != 1 || tls->out_begin < tls->out_end)
		return PVR_TLS_WAIT;
	pvr_tls_kernel_start(&tls->kernel, tls->fd, tls->ssl);
	describe(tls);
	tls->expires = pvr_tls_chain_expires(SSL_get0_verified_chain(tls->ssl));
	return PVR_TLS_DONE;
}

enum pvr_tls_result pvr_tls_handshake(struct pvr_tls *tls, struct pvr_error *err)
{
	enum pvr_tls_result result;

	pthread_mutex_lock(&tls->lock);
	result = handshake_locked(tls, err);
	pthread_mutex_unlock(&tls->lock);
	return result;
}

/* The peer has used the key shared with psk_host or with the dialled host. */
static bool has_key_of(const struct pvr_tls *tls, const char *host, struct pvr_error *err)
{
	if (!SSL_session_reused(tls->ssl))
		return pvr_fail(err, "it has used no pre-shared key");
	if (!strcmp(tls->dialled[0] ? tls->dialled : tls->psk_host, host))
		return true;
	return pvr_fail(err, "it claims to be host '%s', but has the key of '%s'", host,
			tls->psk_host);
}

bool pvr_tls_is_host(struct pvr_tls *tls, const char *host, struct pvr_error *err)
{
	if (tls->context->psk)
		return has_key_of(tls, host, err);
	if (pvr_tls_names(SSL_get0_peer_certificate(tls->ssl), host))
		return true;
	return pvr_fail(err,
			"it claims to be host '%s', which its certificate does not name (DNS "
			"among the subject's alternative names)",
			host);
}

/* Another thread may send or receive meanwhile. */
void pvr_tls_get_proof(struct pvr_tls *tls, struct pvr_tls_proof *proof)
{
	STACK_OF(X509) * chain;

	pthread_mutex_lock(&tls->lock);
	chain = SSL_get_peer_cert_chain(tls->ssl);
	*proof = (struct pvr_tls_proof){
		.psk = tls->psk,
		.cert = SSL_get1_peer_certificate(tls->ssl),
		.chain = chain ? X509_chain_up_ref(chain) : NULL,
		.purpose = tls->dialled[0] ? "ssl_server" : "ssl_client",
	};
	pthread_mutex_unlock(&tls->lock);
}

void pvr_tls_put_proof(struct pvr_tls_proof *proof)
{
	X509_free(proof->cert);
	sk_X509_pop_free(proof->chain, X509_free);
}

/* -------------------------------------------------------------------------- data */

/* Return: the meaning of an SSL_read_ex() or SSL_write_ex() that moved no data. */
static ssize_t nothing_moved(struct pvr_tls *tls, int ret)
{
	int want = SSL_get_error(tls->ssl, ret);

	if (want == SSL_ERROR_WANT_READ || want == SSL_ERROR_WANT_WRITE)
		return 0;
	explain(tls);
	tls->broken = true;
	return -ECONNRESET;
}

static void change_key(struct pvr_tls *tls)
{
	if (++tls->records < PVR_TLS_RECORDS_PER_KEY)
		return;
	if (SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
		tls->records = 0;
}

/* Writes at most one record. */
static ssize_t write_locked(struct pvr_tls *tls, const uint8_t *data, size_t len)
{
	size_t written = 0;
	int ret;

	if (tls->out_end - tls->out_begin >= OUT_MAX) {
		if (!flush_locked(tls))
			return -ECONNRESET;
		if (tls->out_end - tls->out_begin >= OUT_MAX)
			return 0;
	}
	change_key(tls);
	ERR_clear_error();
	ret = SSL_write_ex(tls->ssl, data, len < RECORD ? len : RECORD, &written);
	return ret == 1 ? (ssize_t)written : nothing_moved(tls, ret);
}

static bool is_broken(struct pvr_tls *tls)
{
	bool broken;

	pthread_mutex_lock(&tls->lock);
	broken = tls->broken;
	pthread_mutex_unlock(&tls->lock);
	return broken;
}

/* Without the lock: the receiver goes on meanwhile. */
static ssize_t send_by_kernel(struct pvr_tls *tls, const struct iovec *iov, int count)
{
	return is_broken(tls) ? -ECONNRESET
			      : pvr_tls_kernel_send(&tls->kernel, tls->fd, iov, count);
}

static ssize_t write_one(struct pvr_tls *tls, const uint8_t *data, size_t len)
{
	ssize_t n;

	pthread_mutex_lock(&tls->lock);
	n = tls->broken ? -ECONNRESET : write_locked(tls, data, len);
	pthread_mutex_unlock(&tls->lock);
	return n;
}

static ssize_t read_one(struct pvr_tls *tls, uint8_t *data, size_t len)
{
	size_t got = 0;
	ssize_t n;
	int ret;

	pthread_mutex_lock(&tls->lock);
	ERR_clear_error();
	ret = tls->broken ? 0 : SSL_read_ex(tls->ssl, data, len, &got);
	n = ret == 1 ? (ssize_t)got : tls->broken ? -ECONNRESET : nothing_moved(tls, ret);
	pthread_mutex_unlock(&tls->lock);
	return n;
}

/* Return: all that was moved before nothing, or nothing more, could be; or an error. */
static ssize_t sum(size_t total, ssize_t last)
{
	return total ? (ssize_t)total : last;
}

/* Return: the next byte to be sent. */
struct iov_cursor {
	const struct iovec *iov;
	int count;
	size_t pos; /* in the first of them */
};

static void skip(struct iov_cursor *at, size_t n)
{
	at->pos += n;
	while (at->count && at->pos >= at->iov->iov_len) {
		at->pos -= at->iov->iov_len;
		at->iov++;
		at->count--;
	}
}

/* The bytes of a record: as they lie, or pieces of them put together in @buf. */
static const uint8_t *gather(struct iov_cursor at, uint8_t buf[RECORD], size_t *len)
{
	size_t n = at.iov->iov_len - at.pos;

	*len = n < RECORD ? n : RECORD;
	if (n >= RECORD || at.count == 1)
		return (const uint8_t *)at.iov->iov_base + at.pos;
	for (*len = 0; at.count && *len < RECORD; *len += n) {
		n = at.iov->iov_len - at.pos;
		n = n < RECORD - *len ? n : RECORD - *len;
		memcpy(buf + *len, (const uint8_t *)at.iov->iov_base + at.pos, n);
		skip(&at, n);
	}
	return buf;
}

/* Headers and the pages of guests are small: a record for each would cost more than a copy. */
ssize_t pvr_tls_send(struct pvr_tls *tls, const struct iovec *iov, int count)
{
	struct iov_cursor at = { .iov = iov, .count = count };
	uint8_t buf[RECORD];
	const uint8_t *data;
	size_t total = 0, len;
	ssize_t n;

	if (pvr_tls_kernel_is_on(&tls->kernel))
		return send_by_kernel(tls, iov, count);
	for (skip(&at, 0); at.count; skip(&at, (size_t)n)) {
		data = gather(at, buf, &len);
		n = write_one(tls, data, len);
		if (n <= 0)
			return sum(total, n);
		total += (size_t)n;
	}
	return pvr_tls_flush(tls) ? (ssize_t)total : -ECONNRESET;
}

ssize_t pvr_tls_recv(struct pvr_tls *tls, const struct iovec *iov, int count)
{
	size_t total = 0, pos;
	ssize_t n = 0;
	int i;

	pvr_tls_input_begin(&tls->input);
	for (i = 0; i < count; i++) {
		for (pos = 0; pos < iov[i].iov_len; pos += (size_t)n) {
			n = read_one(tls, (uint8_t *)iov[i].iov_base + pos, iov[i].iov_len - pos);
			if (n <= 0)
				return sum(total, n);
			total += (size_t)n;
		}
	}
	return (ssize_t)total;
}

bool pvr_tls_has_more(const struct pvr_tls *tls)
{
	return tls->input.has_more;
}

/* -------------------------------------------------------------------- life cycle */

static bool init(struct pvr_tls *tls)
{
	const struct pvr_tls_context *context = tls->context;
	BIO *bio = BIO_new(context->bio);

	tls->ssl = SSL_new(context->ssl);
	if (!bio || !tls->ssl) {
		BIO_free(bio);
		return false;
	}
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_app_data(tls->ssl, tls);
	if (!tls->dialled[0]) {
		SSL_set_accept_state(tls->ssl);
		return true;
	}
	SSL_set_connect_state(tls->ssl);
	/*
	 * A peer with a certificate instead of a pre-shared key is refused: no authority
	 * is trusted.
	 */
	SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, pvr_tls_verify);
	SSL_set_hostflags(tls->ssl,
			  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS);
	return context->psk || SSL_set1_host(tls->ssl, tls->dialled) == 1;
}

struct pvr_tls *pvr_tls_create(struct pvr_tls_context *context, int fd, const char *host)
{
	struct pvr_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	pthread_mutex_init(&tls->lock, NULL);
	tls->fd = fd;
	if (host)
		snprintf(tls->dialled, sizeof(tls->dialled), "%s", host);
	tls->context = pvr_tls_context_get(context);
	if (init(tls))
		return tls;
	pvr_tls_destroy(tls);
	return NULL;
}

void pvr_tls_destroy(struct pvr_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	pvr_tls_context_put(tls->context);
	pthread_mutex_destroy(&tls->lock);
	pvr_tls_input_free(&tls->input);
	pvr_tls_kernel_end(&tls->kernel);
	free(tls->out);
	free(tls);
}
