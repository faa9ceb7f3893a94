// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is the same for all TLS sessions of this host: versions, ciphers, keys. */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "net_settings.h"
#include "tls.h"
#include "tls_context.h"

/* Pre-shared keys are bound to SHA-256, so only its ciphers can go with them. */
#define PSK_CIPHERS "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define CERT_CIPHERS PSK_CIPHERS ":TLS_AES_256_GCM_SHA384"
/* Several records with one system call. */
#define READ_AHEAD (64 << 10)

/* What OpenSSL's own words do not say to who does not know the protocol. */
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

/* An alert of the other side's: its words, about us. */
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
		snprintf(buf, size, "it refuses us: %s", SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
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

/* We dial: with the key that we share with that host, and our name. */
static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		       SSL_SESSION **session)
{
	const struct pvr_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const struct pvr_psk *psk =
		pvr_psk_find(context->psk, pvr_tls_dialled_host(pvr_tls_of(ssl)));

	*session = NULL;
	if (!psk)
		return 1;
	*session = make_session(ssl, psk);
	*id = (const unsigned char *)context->name;
	*id_len = strlen(context->name);
	return *session != NULL;
}

/* We are dialled by who says to be @id: with the key that we share with that one. */
static int find_session(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	const struct pvr_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	char host[PVR_REMOTE_NAME_MAX] = "";
	const struct pvr_psk *psk = NULL;
	struct pvr_error why;

	*session = NULL;
	if (id_len < sizeof(host)) {
		memcpy(host, id, id_len);
		if (pvr_host_name_check(host, &why))
			psk = pvr_psk_find(context->psk, host);
	}
	if (!psk) {
		pvr_tls_set_error(pvr_tls_of(ssl), "there is no key for host '%s' in %.200s",
				  pvr_host_name_check(host, &why) ? host : "?", context->psk->path);
		return 1;
	}
	pvr_tls_set_psk_host(pvr_tls_of(ssl), host);
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

static bool bad_file(const char *what, const char *path, struct pvr_error *err)
{
	char why[200];

	pvr_tls_openssl_error(why, sizeof(why));
	return pvr_fail(err, "cannot use the %s %.200s: %s", what, path, why);
}

/* Others will not believe us otherwise: say so before they do. */
static bool check_own_name(const struct pvr_tls_context *context, const char *path,
			   struct pvr_error *err)
{
	X509 *cert = SSL_CTX_get0_certificate(context->ssl);

	if (cert && X509_check_host(cert, context->name, 0,
				    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
					    X509_CHECK_FLAG_NO_WILDCARDS,
				    NULL) == 1)
		return true;
	return pvr_fail(err,
			"the certificate %.200s is not this host's: it lacks the subject "
			"alternative name DNS:%s (see --name)",
			path, context->name);
}

static bool use_certificates(struct pvr_tls_context *context,
			     const struct pvr_net_settings *settings, struct pvr_error *err)
{
	SSL_CTX *ssl = context->ssl;

	if (SSL_CTX_use_certificate_chain_file(ssl, settings->tls_cert) != 1)
		return bad_file("certificate", settings->tls_cert, err);
	if (SSL_CTX_use_PrivateKey_file(ssl, settings->tls_key, SSL_FILETYPE_PEM) != 1)
		return bad_file("private key", settings->tls_key, err);
	if (SSL_CTX_load_verify_locations(ssl, settings->tls_ca, NULL) != 1)
		return bad_file("certificate authority", settings->tls_ca, err);
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
	SSL_CTX_set_app_data(ssl, context);
	SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
	/* Sessions are for ever: nobody resumes one. */
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ssl, 0);
	SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
	SSL_CTX_set_read_ahead(ssl, 1);
	SSL_CTX_set_default_read_buffer_len(ssl, READ_AHEAD);
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
	if (init(context, settings, err))
		return context;
	pvr_tls_context_destroy(context);
	return NULL;
}

void pvr_tls_context_destroy(struct pvr_tls_context *context)
{
	if (!context)
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
