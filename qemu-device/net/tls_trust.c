// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Checks of reloaded keys: their contents, and whether they accept existing sessions. */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "net/net_settings.h"
#include "net/tls.h"
#include "net/tls_context.h"

/* --------------------------------------------------------------------- names */

static bool is_name(const GENERAL_NAME *name, const char *host)
{
	const ASN1_STRING *text;
	int type;

	text = GENERAL_NAME_get0_value(name, &type);
	return type == GEN_DNS && (size_t)ASN1_STRING_length(text) == strlen(host) &&
	       !memcmp(ASN1_STRING_get0_data(text), host, strlen(host));
}

bool pvr_tls_names(const X509 *cert, const char *host)
{
	GENERAL_NAMES *names = NULL;
	bool found = false;
	int i;

	if (cert)
		names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	for (i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++)
		found = is_name(sk_GENERAL_NAME_value(names, i), host);
	GENERAL_NAMES_free(names);
	return found;
}

/* -------------------------------------------------------------------- expiry */

static int64_t expires(const X509 *cert)
{
	struct tm tm;

	/* A time that cannot be read has passed. */
	return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? timegm(&tm) : 0;
}

int64_t pvr_tls_chain_expires(const STACK_OF(X509) * chain)
{
	int64_t first = INT64_MAX, when;
	int i;

	for (i = 0; i < sk_X509_num(chain); i++) {
		when = expires(sk_X509_value(chain, i));
		first = when < first ? when : first;
	}
	return first;
}

/* ------------------------------------------------------------------- sessions */

static X509_STORE_CTX *make_check(const struct pvr_tls_context *context, X509 *cert,
				  STACK_OF(X509) * chain, const char *purpose)
{
	X509_STORE_CTX *check = X509_STORE_CTX_new();
	X509_STORE *authorities = SSL_CTX_get_cert_store(context->ssl);

	if (!check || X509_STORE_CTX_init(check, authorities, cert, chain) != 1 ||
	    X509_STORE_CTX_set_default(check, purpose) != 1) {
		X509_STORE_CTX_free(check);
		return NULL;
	}
	X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(check),
					 SSL_CTX_get_security_level(context->ssl));
	return check;
}

/* Verifies as OpenSSL does in a handshake. Return: X509_V_OK or the error. */
static int verify(const struct pvr_tls_context *context, X509 *cert, STACK_OF(X509) * chain,
		  const char *purpose)
{
	X509_STORE_CTX *check = make_check(context, cert, chain, purpose);
	int result = check ? X509_V_ERR_UNSPECIFIED : X509_V_ERR_OUT_OF_MEM;

	if (check && X509_verify_cert(check) == 1)
		result = X509_V_OK;
	else if (check && X509_STORE_CTX_get_error(check) != X509_V_OK)
		result = X509_STORE_CTX_get_error(check);
	X509_STORE_CTX_free(check);
	ERR_clear_error();
	return result;
}

static bool trusts_key(const struct pvr_psk_file *file, const struct pvr_psk *psk, const char *host,
		       struct pvr_error *err)
{
	if (psk && pvr_psk_accepts(file, host, psk))
		return true;
	if (!pvr_psk_find(file, host))
		return pvr_fail(err, "there is no key for host '%s' in %.200s any more", host,
				file->path);
	return pvr_fail(err, "the key of host '%s' is not in %.200s any more", host, file->path);
}

static bool trusts_certificate(const struct pvr_tls_context *context,
			       const struct pvr_tls_proof *proof, const char *host,
			       struct pvr_error *err)
{
	int result;

	if (!proof->cert)
		return pvr_fail(err, "host '%s' has shown no certificate", host);
	result = verify(context, proof->cert, proof->chain, proof->purpose);
	return result == X509_V_OK ||
	       pvr_fail(err, "the certificate of host '%s' is not trusted any more: %s", host,
			X509_verify_cert_error_string(result));
}

bool pvr_tls_is_trusted(struct pvr_tls *tls, const struct pvr_tls_context *context,
			const char *host, struct pvr_error *err)
{
	struct pvr_tls_proof proof;
	bool trusted;

	if (pvr_tls_context_of(tls) == context)
		return true; /* the handshake has checked it */
	pvr_tls_get_proof(tls, &proof);
	trusted = context->psk ? trusts_key(context->psk, proof.psk, host, err)
			       : trusts_certificate(context, &proof, host, err);
	pvr_tls_put_proof(&proof);
	return trusted;
}

/* ---------------------------------------------------------------- own files */

static void format_time(const ASN1_TIME *time, char buf[32])
{
	struct tm tm;

	if (ASN1_TIME_to_tm(time, &tm) != 1 || !strftime(buf, 32, "%Y-%m-%d %H:%M:%S UTC", &tm))
		strcpy(buf, "?");
}

int64_t pvr_tls_context_expires(const struct pvr_tls_context *context)
{
	return context->psk ? INT64_MAX : expires(SSL_CTX_get0_certificate(context->ssl));
}

static bool is_list_current(const X509_CRL *list)
{
	const ASN1_TIME *next = X509_CRL_get0_nextUpdate(list);

	return X509_cmp_current_time(X509_CRL_get0_lastUpdate(list)) < 0 &&
	       (!next || X509_cmp_current_time(next) > 0);
}

static bool has_current_list(STACK_OF(X509_OBJECT) * objects, const X509_NAME *issuer)
{
	const X509_CRL *list;
	int i;

	for (i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));
		if (list && !X509_NAME_cmp(X509_CRL_get_issuer(list), issuer) &&
		    is_list_current(list))
			return true;
	}
	return false;
}

static bool refuse_list(const X509_CRL *list, const char *path, struct pvr_error *err)
{
	const ASN1_TIME *next = X509_CRL_get0_nextUpdate(list);
	bool ended = next && X509_cmp_current_time(next) < 0;
	char issuer[128], when[32];

	X509_NAME_oneline(X509_CRL_get_issuer(list), issuer, sizeof(issuer));
	format_time(ended ? next : X509_CRL_get0_lastUpdate(list), when);
	if (ended)
		return pvr_fail(err,
				"the certificate revocation list %.200s of %s has expired at %s: "
				"get a newer one",
				path, issuer, when);
	return pvr_fail(err,
			"the certificate revocation list %.200s of %s is not valid before %s: "
			"check this host's clock",
			path, issuer, when);
}

/*
 * A list that is outdated or missing refuses all hosts of its authority, connected ones
 * included.
 */
static bool check_lists(const struct pvr_tls_context *context, const char *path,
			struct pvr_error *err)
{
	STACK_OF(X509_OBJECT) *objects =
		X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
	STACK_OF(X509) *chain = NULL;
	const X509_CRL *list;
	int i, result;

	for (i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));
		if (list && !has_current_list(objects, X509_CRL_get_issuer(list)))
			return refuse_list(list, path, err);
	}
	SSL_CTX_get0_chain_certs(context->ssl, &chain);
	result = verify(context, SSL_CTX_get0_certificate(context->ssl), chain, "ssl_server");
	return result != X509_V_ERR_UNABLE_TO_GET_CRL ||
	       pvr_fail(err,
			"the certificate revocation list %.200s has no list of an authority of "
			"this host's certificate: %s",
			path, X509_verify_cert_error_string(result));
}

bool pvr_tls_context_is_current(const struct pvr_tls_context *context,
				const struct pvr_net_settings *settings, struct pvr_error *err)
{
	const X509 *cert = context->psk ? NULL : SSL_CTX_get0_certificate(context->ssl);
	char when[32];

	if (cert && X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
		format_time(X509_get0_notAfter(cert), when);
		return pvr_fail(err, "the certificate %.200s has expired at %s: sign a new one",
				settings->tls_cert, when);
	}
	if (cert && X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
		format_time(X509_get0_notBefore(cert), when);
		return pvr_fail(err,
				"the certificate %.200s is not valid before %s: check this "
				"host's clock",
				settings->tls_cert, when);
	}
	return !cert || !settings->tls_crl[0] || check_lists(context, settings->tls_crl, err);
}

bool pvr_tls_context_trusts_itself(const struct pvr_tls_context *context,
				   const struct pvr_net_settings *settings, struct pvr_error *err)
{
	STACK_OF(X509) *chain = NULL;
	int result;

	if (context->psk)
		return true;
	SSL_CTX_get0_chain_certs(context->ssl, &chain);
	result = verify(context, SSL_CTX_get0_certificate(context->ssl), chain, "ssl_server");
	return result == X509_V_OK ||
	       pvr_fail(err,
			"hosts that have the same authorities as %.150s will refuse the "
			"certificate %.150s: %s",
			settings->tls_ca, settings->tls_cert,
			X509_verify_cert_error_string(result));
}

static const char *plural(size_t num)
{
	return num == 1 ? "" : "s";
}

/* Return: the number of authorities or revocation lists. */
static size_t count(const struct pvr_tls_context *context, X509_LOOKUP_TYPE type)
{
	STACK_OF(X509_OBJECT) *objects =
		X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
	size_t num = 0;
	int i;

	for (i = 0; i < sk_X509_OBJECT_num(objects); i++)
		num += X509_OBJECT_get_type(sk_X509_OBJECT_value(objects, i)) == type;
	return num;
}

void pvr_tls_context_describe(const struct pvr_tls_context *context,
			      const struct pvr_net_settings *settings,
			      void (*say)(void *opaque, const char *file, const char *what),
			      void *opaque)
{
	char what[160], when[32];
	size_t num;

	if (context->psk) {
		num = context->psk->num;
		snprintf(what, sizeof(what), "%zu pre-shared key%s", num, plural(num));
		say(opaque, settings->tls_psk_file, what);
		return;
	}
	format_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context->ssl)), when);
	snprintf(what, sizeof(what), "certificate of host %s, valid until %s", context->name, when);
	say(opaque, settings->tls_cert, what);
	say(opaque, settings->tls_key, "its private key");
	num = count(context, X509_LU_X509);
	snprintf(what, sizeof(what), "%zu certificate authorit%s", num, num == 1 ? "y" : "ies");
	say(opaque, settings->tls_ca, what);
	if (!settings->tls_crl[0])
		return;
	num = count(context, X509_LU_CRL);
	snprintf(what, sizeof(what), "%zu certificate revocation list%s", num, plural(num));
	say(opaque, settings->tls_crl, what);
}
