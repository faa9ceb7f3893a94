// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* State shared by all TLS sessions of this host: versions, ciphers, keys. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_settings.h"
#include "net/tls.h"
#include "net/tls_context.h"

/* A pvrdmad presents one identity, twice if the handshake is repeated with another group. */
#define IDENTITIES_MAX 8
/* Pre-shared keys are bound to SHA-256, so only ciphers with SHA-256 work. */
#define PSK_CIPHERS "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define CERT_CIPHERS PSK_CIPHERS ":TLS_AES_256_GCM_SHA384"
/* In bytes: several records per system call. */
#define READ_AHEAD (64 << 10)

/* Explanations of errors that OpenSSL describes in terms of the protocol. */
static const struct {
	int reason;
	const char *text;
} reasons[] = {
	{ SSL_R_WRONG_VERSION_NUMBER, "it does not speak TLS; is it --insecure there?" },
	{ SSL_R_HTTP_REQUEST, "it does not speak TLS" },
	{ SSL_R_UNSUPPORTED_PROTOCOL, "it does not speak TLS 1.3" },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, "it has shown no pre-shared key" },
	{ SSL_R_NO_SHARED_CIPHER, "it has shown no pre-shared key, or no cipher that we have" },
	{ SSL_R_BINDER_DOES_NOT_VERIFY, "its pre-shared key is not the one that is here" },
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "it has shown no certificate" },
};

/* An alert of the peer, about this side. */
static bool is_alert(int reason)
{
	return reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
}

void pvr_tls_openssl_error(char *buf, size_t size)
{
	unsigned long error = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(error);
	int reason = ERR_GET_REASON(error);
	bool ssl = ERR_GET_LIB(error) == ERR_LIB_SSL;
	size_t i;

	for (i = 0; ssl && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].reason == reason)
			text = reasons[i].text;
	}
	if (ssl && is_alert(reason))
		snprintf(buf, size, "the peer refuses the connection: %s",
			 SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
	else
		snprintf(buf, size, "%s", text ? text : "unknown TLS error");
	ERR_clear_error();
}

/* ------------------------------------------------------------- pre-shared keys */

static SSL_SESSION *make_session(SSL *ssl, const struct pvr_psk *psk)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set1_master_key(session, psk->key, psk->len) &&
	    SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Dialling: uses the key shared with that host, and this host's name. */
static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		       SSL_SESSION **session)
{
	struct pvr_tls *tls = pvr_tls_of(ssl);
	const struct pvr_tls_context *context = pvr_tls_context_of(tls);
	const char *host = pvr_tls_dialled_host(tls);
	const struct pvr_psk *psk = pvr_psk_find(context->psk, host);
	char *identity = pvr_tls_identity(tls);

	*session = NULL;
	if (!psk)
		return 1;
	pvr_tls_set_psk(tls, psk, "");
	pvr_psk_identity(context->psk, psk, host, context->name, identity);
	*session = make_session(ssl, psk);
	*id = (const unsigned char *)identity;
	*id_len = strlen(identity);
	return *session != NULL;
}

static void explain_no_key(struct pvr_tls *tls, const struct pvr_psk_file *file, const char *host)
{
	if (strcmp(host, "?") && pvr_psk_find(file, host))
		pvr_tls_set_error(tls, "host '%s' has shown a key that is not in %.200s", host,
				  file->path);
	else
		pvr_tls_set_error(tls, "there is no key for host '%s' in %.200s", host, file->path);
}

/* Incoming: uses the key shared with the host @id. */
static int find_session(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	struct pvr_tls *tls = pvr_tls_of(ssl);
	const struct pvr_tls_context *context = pvr_tls_context_of(tls);
	char host[PVR_HOST_NAME_MAX];
	const struct pvr_psk *psk;

	*session = NULL;
	/* A ClientHello of 128 KiB holds thousands, each with work for this thread. */
	if (pvr_tls_count_identity(tls) > IDENTITIES_MAX) {
		pvr_tls_set_error(tls, "it has shown more than %d pre-shared keys", IDENTITIES_MAX);
		return 0;
	}
	psk = pvr_psk_identify(context->psk, id, id_len, host);
	if (!psk) {
		explain_no_key(tls, context->psk, host);
		return 1;
	}
	pvr_tls_set_psk(tls, psk, host);
	*session = make_session(ssl, psk);
	return *session != NULL;
}

static bool use_psk(struct pvr_tls_context *context, const struct pvr_net_settings *settings,
		    struct pvr_error *err)
{
	context->psk = pvr_psk_file_read(settings->tls_psk_file, err);
	if (!context->psk)
		return false;
	SSL_CTX_set_psk_use_session_callback(context->ssl, use_session);
	SSL_CTX_set_psk_find_session_callback(context->ssl, find_session);
	return SSL_CTX_set_ciphersuites(context->ssl, PSK_CIPHERS) ||
	       pvr_fail(err, "OpenSSL lacks the ciphers %s", PSK_CIPHERS);
}

/* ---------------------------------------------------------------- certificates */

struct question {
	bool asked;
};

/* There is no terminal for a passphrase prompt. */
static int no_passphrase(char *buf, int size, int writing, void *opaque)
{
	((struct question *)opaque)->asked = true;
	return -1;
}

static bool bad_file(const char *what, const char *path, struct pvr_error *err)
{
	FILE *file = fopen(path, "re");
	char why[200];

	pvr_tls_openssl_error(why, sizeof(why));
	if (!file) {
		pvr_key_file_error(what, path, errno, err);
		return false;
	}
	fclose(file);
	return pvr_fail(err, "cannot use the %s %.300s: %s", what, path, why);
}

static bool use_private_key(SSL_CTX *ssl, const struct pvr_net_settings *settings,
			    struct pvr_error *err)
{
	const char *path = settings->tls_key;
	struct question question = { .asked = false };
	int reason, ret;

	SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
	SSL_CTX_set_default_passwd_cb_userdata(ssl, &question);
	ret = SSL_CTX_use_PrivateKey_file(ssl, path, SSL_FILETYPE_PEM);
	reason = ERR_GET_REASON(ERR_peek_last_error());
	SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
	if (question.asked)
		return pvr_fail(err,
				"cannot use the private key %.200s: it has a passphrase, and "
				"pvrdmad has no prompt; 'openssl pkey -in FILE -out NEW' writes "
				"one without",
				path);
	/* A key of another type, EC or RSA, is reported only by this check. */
	if ((ret != 1 && reason == X509_R_KEY_VALUES_MISMATCH) ||
	    (ret == 1 && SSL_CTX_check_private_key(ssl) != 1)) {
		ERR_clear_error();
		return pvr_fail(err,
				"the private key %.200s does not belong to the certificate %.200s",
				path, settings->tls_cert);
	}
	return ret == 1 || bad_file("private key", path, err);
}

/* Warns if other hosts will refuse the name of this host. */
static bool check_own_name(const struct pvr_tls_context *context, const char *path,
			   struct pvr_error *err)
{
	if (pvr_tls_names(SSL_CTX_get0_certificate(context->ssl), context->name))
		return true;
	return pvr_fail(err,
			"the certificate %.200s is not this host's: it lacks the subject "
			"alternative name DNS:%s (see --name)",
			path, context->name);
}

/*
 * With lists, each certificate of a peer's chain must have one of its issuer that is valid
 * today: a missing or outdated list refuses all peers rather than none.
 */
static bool use_revocation_lists(SSL_CTX *ssl, const char *path, struct pvr_error *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) < 1)
		return bad_file("certificate revocation list", path, err);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return true;
}

static bool use_certificates(struct pvr_tls_context *context,
			     const struct pvr_net_settings *settings, struct pvr_error *err)
{
	SSL_CTX *ssl = context->ssl;

	if (SSL_CTX_use_certificate_chain_file(ssl, settings->tls_cert) != 1)
		return bad_file("certificate", settings->tls_cert, err);
	if (!use_private_key(ssl, settings, err))
		return false;
	if (SSL_CTX_load_verify_locations(ssl, settings->tls_ca, NULL) != 1)
		return bad_file("certificate authority", settings->tls_ca, err);
	if (settings->tls_crl[0] && !use_revocation_lists(ssl, settings->tls_crl, err))
		return false;
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, pvr_tls_verify);
	if (!SSL_CTX_set_ciphersuites(ssl, CERT_CIPHERS))
		return pvr_fail(err, "OpenSSL lacks the ciphers %s", CERT_CIPHERS);
	return check_own_name(context, settings->tls_cert, err);
}

/* ------------------------------------------------------------------ life cycle */

static bool init(struct pvr_tls_context *context, const struct pvr_net_settings *settings,
		 struct pvr_error *err)
{
	SSL_CTX *ssl = context->ssl = SSL_CTX_new(TLS_method());

	context->bio = pvr_tls_bio_method();
	if (!ssl || !context->bio)
		return pvr_fail(err, "out of memory");
	SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
	/* Sessions are never resumed. */
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ssl, 0);
	SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
	SSL_CTX_set_read_ahead(ssl, 1);
	SSL_CTX_set_default_read_buffer_len(ssl, READ_AHEAD);
	SSL_CTX_set_msg_callback(ssl, pvr_tls_message);
	SSL_CTX_set_keylog_callback(ssl, pvr_tls_log_key);
	snprintf(context->name, sizeof(context->name), "%s", settings->name);
	return settings->tls_psk_file[0] ? use_psk(context, settings, err)
					 : use_certificates(context, settings, err);
}

struct pvr_tls_context *pvr_tls_context_create(const struct pvr_net_settings *settings,
					       struct pvr_error *err)
{
	struct pvr_tls_context *context = calloc(1, sizeof(*context));

	if (!context) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	context->refs = 1;
	if (init(context, settings, err))
		return context;
	pvr_tls_context_put(context);
	return NULL;
}

struct pvr_tls_context *pvr_tls_context_get(struct pvr_tls_context *context)
{
	__atomic_fetch_add(&context->refs, 1, __ATOMIC_RELAXED);
	return context;
}

void pvr_tls_context_put(struct pvr_tls_context *context)
{
	if (!context || __atomic_fetch_sub(&context->refs, 1, __ATOMIC_ACQ_REL) > 1)
		return;
	SSL_CTX_free(context->ssl);
	BIO_meth_free(context->bio);
	pvr_psk_file_free(context->psk);
	free(context);
}

bool pvr_tls_context_knows(const struct pvr_tls_context *context, const char *host,
			   struct pvr_error *err)
{
	if (!context->psk || pvr_psk_find(context->psk, host))
		return true;
	return pvr_fail(err, "there is no key for host '%s' in %.200s", host, context->psk->path);
}
