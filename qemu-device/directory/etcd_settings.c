// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings of etcd. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/settings_text.h"
#include "directory/etcd_settings.h"

#define LEASE_MIN 2
#define LEASE_MAX 3600

/* '@' would hide the real host behind a user name, and the others end the host's part. */
static bool is_url(const char *url)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]/%";

	return (!strncmp(url, "http://", 7) || !strncmp(url, "https://", 8)) &&
	       !url[strspn(url, allowed)];
}

/* Return: whether the requests to @url leave this machine unencrypted. */
static bool is_exposed(const char *url)
{
	struct pvr_address address;
	struct pvr_error err;
	char host[256];

	if (strncmp(url, "http://", 7))
		return false;
	snprintf(host, sizeof(host), "%s", url + 7);
	host[strcspn(host, "/")] = '\0';
	if (!strcmp(host, "localhost") || !strncmp(host, "localhost:", 10))
		return false;
	return !pvr_address_parse(&address, host, &err) || !pvr_address_is_loopback(&address);
}

static bool add_url(struct pvr_etcd_settings *settings, char *url, struct pvr_error *err)
{
	size_t len = strlen(url);

	while (len && url[len - 1] == '/')
		url[--len] = '\0';
	if (!is_url(url))
		return pvr_fail(err, "etcd '%s' is not a URL such as https://192.0.2.10:2379", url);
	if (settings->num_urls == PVR_ETCD_URLS_MAX)
		return pvr_fail(err, "etcd: more than %d URLs", PVR_ETCD_URLS_MAX);
	return pvr_set_text(settings->urls[settings->num_urls++], sizeof(settings->urls[0]), "etcd",
			    url, err);
}

static bool set_urls(struct pvr_etcd_settings *settings, const char *value, struct pvr_error *err)
{
	char words[PVR_ETCD_URLS_MAX * 260], *rest = words, *url;

	if (settings->num_urls)
		return true;
	if (strlen(value) >= sizeof(words))
		return pvr_fail(err, "etcd: %zu characters are too many", strlen(value));
	strcpy(words, value);
	while ((url = strsep(&rest, ","))) {
		if (!add_url(settings, url, err))
			return false;
	}
	return true;
}

/* The prefix becomes part of readable keys. */
static bool set_prefix(struct pvr_etcd_settings *settings, const char *value, struct pvr_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

	if (value[strspn(value, allowed)] || !*value || value[strlen(value) - 1] != '/')
		return pvr_fail(
			err,
			"etcd-prefix '%s': expected letters, digits, '.', '_', '-' and '/', "
			"and a '/' at the end",
			value);
	return pvr_keep_text(settings->prefix, sizeof(settings->prefix), "etcd-prefix", value, err);
}

static bool set_lease(struct pvr_etcd_settings *settings, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long seconds = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || seconds < LEASE_MIN || seconds > LEASE_MAX)
		return pvr_fail(err, "etcd-lease '%s' is not a number of seconds from %d to %d",
				value, LEASE_MIN, LEASE_MAX);
	if (!settings->lease)
		settings->lease = (unsigned int)seconds;
	return true;
}

#define FIELD(name) \
	offsetof(struct pvr_etcd_settings, name), sizeof(((struct pvr_etcd_settings *)0)->name)

bool pvr_etcd_settings_set(struct pvr_etcd_settings *settings, const char *key, const char *value,
			   struct pvr_error *err)
{
	static const struct {
		const char *key;
		size_t offset, size;
	} texts[] = {
		{ "etcd-ca", FIELD(ca) },
		{ "etcd-cert", FIELD(cert) },
		{ "etcd-key", FIELD(key) },
		{ "etcd-user", FIELD(user) },
		{ "etcd-password-file", FIELD(password_file) },
	};
	size_t i;

	if (!strcmp(key, "etcd"))
		return set_urls(settings, value, err);
	if (!strcmp(key, "etcd-prefix"))
		return set_prefix(settings, value, err);
	if (!strcmp(key, "etcd-lease"))
		return set_lease(settings, value, err);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!strcmp(key, texts[i].key))
			return pvr_keep_text((char *)settings + texts[i].offset, texts[i].size, key,
					     value, err);
	}
	return pvr_fail(err, "unknown setting '%s'", key);
}

static bool check_exposed(const struct pvr_etcd_settings *settings, bool insecure,
			  struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < settings->num_urls && !insecure; i++) {
		if (is_exposed(settings->urls[i]))
			return pvr_fail(err,
					"etcd %s without TLS: give an https URL (see "
					"docs/multi-host.md), or insecure where all that can "
					"reach it are trusted",
					settings->urls[i]);
	}
	return true;
}

bool pvr_etcd_settings_check(const struct pvr_etcd_settings *settings, bool insecure,
			     struct pvr_error *err)
{
	bool any = settings->prefix[0] || settings->ca[0] || settings->cert[0] ||
		   settings->user[0] || settings->password_file[0] || settings->lease;

	if (any && !settings->num_urls)
		return pvr_fail(err, "there are settings of etcd, but not etcd = URL itself");
	if (!settings->cert[0] != !settings->key[0])
		return pvr_fail(err, "etcd-cert and etcd-key go together");
	if (!settings->user[0] != !settings->password_file[0])
		return pvr_fail(err, "etcd-user and etcd-password-file go together");
	return check_exposed(settings, insecure, err);
}
