// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings of the network: options and configuration file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net_settings.h"
#include "net/stream.h"

#define KEEPALIVE_DEFAULT 10
#define IDLE_DEFAULT 600
#define SECONDS_MAX 86400

bool pvr_host_name_check(const char *name, struct pvr_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (!*name)
		return pvr_fail(err, "a host's name is empty");
	if (name[strspn(name, allowed)])
		return pvr_fail(err,
				"host name '%.100s' has characters other than letters, digits, "
				"'.', '_' and '-'",
				name);
	if (strlen(name) >= PVR_HOST_NAME_MAX)
		return pvr_fail(err, "host name '%.100s' has %zu characters, the limit is %d", name,
				strlen(name), PVR_HOST_NAME_MAX - 1);
	return true;
}

static bool set_name(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	if (!pvr_host_name_check(value, err))
		return false;
	if (!settings->name[0])
		strcpy(settings->name, value);
	return true;
}

static bool set_listen(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	struct pvr_address address;
	size_t i;

	if (!pvr_address_parse(&address, value, err))
		return false;
	for (i = 0; i < settings->num_listen; i++) {
		if (pvr_address_equal(&settings->listen[i], &address))
			return true;
	}
	if (settings->num_listen == PVR_LISTEN_MAX)
		return pvr_fail(err, "more than %d addresses to listen at", PVR_LISTEN_MAX);
	settings->listen[settings->num_listen++] = address;
	return true;
}

static bool add_peer(struct pvr_net_settings *settings, const struct pvr_peer_setting *peer,
		     struct pvr_error *err)
{
	struct pvr_peer_setting *grown;
	size_t i;

	for (i = 0; i < settings->num_peers; i++) {
		if (!strcmp(settings->peers[i].name, peer->name))
			return pvr_fail(err, "two peers are named '%s'", peer->name);
	}
	grown = realloc(settings->peers, (settings->num_peers + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	grown[settings->num_peers++] = *peer;
	settings->peers = grown;
	return true;
}

static bool set_peer(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	const char *equals = strchr(value, '=');
	struct pvr_peer_setting peer;
	struct pvr_address address;
	char name[PVR_ADDRESS_TEXT];

	if (!equals || (size_t)(equals - value) >= sizeof(name) ||
	    strlen(equals + 1) >= sizeof(peer.address))
		return pvr_fail(err, "peer '%.200s' is not NAME=ADDRESS[:PORT]", value);
	memset(name, 0, sizeof(name));
	memcpy(name, value, (size_t)(equals - value));
	if (!pvr_host_name_check(name, err) || !pvr_address_parse(&address, equals + 1, err))
		return false;
	memcpy(peer.name, name, sizeof(peer.name));
	strcpy(peer.address, equals + 1);
	return add_peer(settings, &peer, err);
}

static bool set_number(unsigned int *to, const char *key, const char *value, unsigned int max,
		       struct pvr_error *err)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || !number || number > max)
		return pvr_fail(err, "%s '%.64s' is not a number from 1 to %u", key, value, max);
	if (!*to)
		*to = (unsigned int)number;
	return true;
}

static bool set_connections(struct pvr_net_settings *settings, const char *value,
			    struct pvr_error *err)
{
	return set_number(&settings->connections, "connections", value, PVR_REQ_CONN_MAX, err);
}

static bool set_keepalive(struct pvr_net_settings *settings, const char *value,
			  struct pvr_error *err)
{
	return set_number(&settings->keepalive, "keepalive", value, SECONDS_MAX, err);
}

static bool set_idle_timeout(struct pvr_net_settings *settings, const char *value,
			     struct pvr_error *err)
{
	return set_number(&settings->idle_timeout, "idle-timeout", value, SECONDS_MAX, err);
}

static bool set_file(char to[PVR_FILE_MAX], const char *key, const char *value,
		     struct pvr_error *err)
{
	if (!*value || strlen(value) >= PVR_FILE_MAX)
		return pvr_fail(err, "%s is empty, or longer than %d characters", key,
				PVR_FILE_MAX - 1);
	if (!*to)
		strcpy(to, value);
	return true;
}

static bool set_tls_cert(struct pvr_net_settings *settings, const char *value,
			 struct pvr_error *err)
{
	return set_file(settings->tls_cert, "tls-cert", value, err);
}

static bool set_tls_key(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	return set_file(settings->tls_key, "tls-key", value, err);
}

static bool set_tls_ca(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	return set_file(settings->tls_ca, "tls-ca", value, err);
}

static bool set_tls_crl(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	return set_file(settings->tls_crl, "tls-crl", value, err);
}

static bool set_tls_psk_file(struct pvr_net_settings *settings, const char *value,
			     struct pvr_error *err)
{
	return set_file(settings->tls_psk_file, "tls-psk-file", value, err);
}

/* The first value is kept: the command line is read before the file. */
static bool set_switch(bool *on, bool *is_set, const char *key, const char *value,
		       struct pvr_error *err)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return pvr_fail(err, "%s '%.64s' is neither on nor off", key, value);
	if (!*is_set)
		*on = !strcmp(value, "on");
	*is_set = true;
	return true;
}

static bool set_insecure(struct pvr_net_settings *settings, const char *value,
			 struct pvr_error *err)
{
	return set_switch(&settings->insecure, &settings->insecure_set, "insecure", value, err);
}

static bool set_rdma_unencrypted(struct pvr_net_settings *settings, const char *value,
				 struct pvr_error *err)
{
	return set_switch(&settings->rdma_unencrypted, &settings->rdma_unencrypted_set,
			  "rdma-unencrypted", value, err);
}

static bool set_rdma_zerocopy(struct pvr_net_settings *settings, const char *value,
			      struct pvr_error *err)
{
	return set_switch(&settings->rdma_zerocopy, &settings->rdma_zerocopy_set, "rdma-zerocopy",
			  value, err);
}

static bool set_congestion(struct pvr_net_settings *settings, const char *value,
			   struct pvr_error *err)
{
	if (!*value || strlen(value) >= PVR_CONGESTION_MAX)
		return pvr_fail(err, "congestion '%.64s' is empty, or longer than %d characters",
				value, PVR_CONGESTION_MAX - 1);
	if (!settings->congestion[0])
		strcpy(settings->congestion, value);
	return true;
}

static bool set_dscp(struct pvr_net_settings *settings, const char *value, struct pvr_error *err)
{
	bool fixed = strcmp(value, "guest");
	char *end;
	unsigned long dscp = strtoul(value, &end, 10);

	if (fixed && (*value < '0' || *value > '9' || *end || dscp > PVR_DSCP_MAX))
		return pvr_fail(err, "dscp '%.64s' is neither guest nor a number from 0 to %d",
				value, PVR_DSCP_MAX);
	if (!settings->dscp_set) {
		settings->dscp_fixed = fixed;
		settings->dscp = fixed ? (uint8_t)dscp : 0;
	}
	settings->dscp_set = true;
	return true;
}

static bool set_rdma_device(struct pvr_net_settings *settings, const char *value,
			    struct pvr_error *err)
{
	if (!*value || strlen(value) >= PVR_RDMA_DEVICE_MAX || strchr(value, '/'))
		return pvr_fail(err,
				"rdma-device '%.64s' is neither auto, none nor a device's name",
				value);
	if (!settings->rdma_device[0])
		strcpy(settings->rdma_device, value);
	return true;
}

static const struct {
	const char *key;
	bool (*set)(struct pvr_net_settings *settings, const char *value, struct pvr_error *err);
} keys[] = {
	{ "name", set_name },
	{ "listen", set_listen },
	{ "peer", set_peer },
	{ "connections", set_connections },
	{ "keepalive", set_keepalive },
	{ "idle-timeout", set_idle_timeout },
	{ "tls-cert", set_tls_cert },
	{ "tls-key", set_tls_key },
	{ "tls-ca", set_tls_ca },
	{ "tls-crl", set_tls_crl },
	{ "tls-psk-file", set_tls_psk_file },
	{ "insecure", set_insecure },
	{ "congestion", set_congestion },
	{ "dscp", set_dscp },
	{ "rdma-device", set_rdma_device },
	{ "rdma-zerocopy", set_rdma_zerocopy },
	{ "rdma-unencrypted", set_rdma_unencrypted },
};

static size_t find_key(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(key, keys[i].key))
			break;
	}
	return i;
}

bool pvr_net_settings_has(const char *key)
{
	return find_key(key) < sizeof(keys) / sizeof(keys[0]);
}

bool pvr_net_settings_set(struct pvr_net_settings *settings, const char *key, const char *value,
			  struct pvr_error *err)
{
	return keys[find_key(key)].set(settings, value, err);
}

/* ------------------------------------------------------------------- checks */

bool pvr_net_settings_any(const struct pvr_net_settings *settings)
{
	return settings->num_listen || settings->num_peers || settings->directory;
}

bool pvr_net_settings_has_keys(const struct pvr_net_settings *settings)
{
	return settings->tls_psk_file[0] || settings->tls_cert[0];
}

static bool check_keys(const struct pvr_net_settings *settings, struct pvr_error *err)
{
	bool cert = settings->tls_cert[0];

	if (cert != !!settings->tls_key[0] || cert != !!settings->tls_ca[0])
		return pvr_fail(err,
				"tls-cert, tls-key and tls-ca belong together: give all three");
	if (settings->tls_crl[0] && !cert)
		return pvr_fail(err, "tls-crl lists revoked certificates: it needs tls-cert, "
				     "tls-key and tls-ca");
	if (cert && settings->tls_psk_file[0])
		return pvr_fail(err, "tls-cert and tls-psk-file: give certificates, or "
				     "pre-shared keys, not both");
	if (settings->insecure && pvr_net_settings_has_keys(settings))
		return pvr_fail(
			err,
			"insecure turns TLS off, but tls-... files are given: remove one of both");
	return true;
}

static bool needs_keys(const char *what, const struct pvr_address *address, struct pvr_error *err)
{
	char text[PVR_ADDRESS_TEXT];

	return pvr_fail(err,
			"%s %s without TLS: give tls-psk-file, or tls-cert, tls-key and tls-ca "
			"(see docs/multi-host.md), or insecure where all that can reach it are "
			"trusted",
			what, pvr_address_format(address, text));
}

/* Without keys, only loopback addresses are allowed. */
static bool check_exposed(const struct pvr_net_settings *settings, struct pvr_error *err)
{
	struct pvr_address address;
	size_t i;

	if (settings->insecure || pvr_net_settings_has_keys(settings))
		return true;
	for (i = 0; i < settings->num_listen; i++) {
		if (!pvr_address_is_loopback(&settings->listen[i]))
			return needs_keys("listen", &settings->listen[i], err);
	}
	for (i = 0; i < settings->num_peers; i++) {
		if (!pvr_address_parse(&address, settings->peers[i].address, err))
			return false;
		if (!pvr_address_is_loopback(&address))
			return needs_keys("peer", &address, err);
	}
	return true;
}

static bool fill_name(struct pvr_net_settings *settings, struct pvr_error *err)
{
	char host[256] = "";
	struct pvr_error why;

	if (settings->name[0])
		return true;
	if (gethostname(host, sizeof(host) - 1) < 0)
		return pvr_fail(err, "cannot get this host's name: %s: give --name",
				strerror(errno));
	if (!pvr_host_name_check(host, &why))
		return pvr_fail(err, "%.300s: give --name", why.text);
	strcpy(settings->name, host);
	return true;
}

static bool check_peers(const struct pvr_net_settings *settings, struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < settings->num_peers; i++) {
		if (!strcmp(settings->peers[i].name, settings->name))
			return pvr_fail(err,
					"peer '%s' has the name of this host: it is not "
					"needed, or give --name",
					settings->name);
	}
	return true;
}

bool pvr_net_settings_check(struct pvr_net_settings *settings, struct pvr_error *err)
{
	if (!settings->keepalive)
		settings->keepalive = KEEPALIVE_DEFAULT;
	if (!settings->idle_timeout)
		settings->idle_timeout = IDLE_DEFAULT;
	if (!settings->rdma_device[0])
		strcpy(settings->rdma_device, "auto");
	if (!settings->rdma_zerocopy_set)
		settings->rdma_zerocopy = true;
	if (!check_keys(settings, err) || !check_exposed(settings, err) ||
	    !pvr_socket_check_congestion(settings->congestion, err))
		return false;
	return !pvr_net_settings_any(settings) ||
	       (fill_name(settings, err) && check_peers(settings, err));
}

void pvr_net_settings_free(struct pvr_net_settings *settings)
{
	free(settings->peers);
	settings->peers = NULL;
	settings->num_peers = 0;
}
