// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The peers file: hosts, their addresses, and the GIDs that each may have. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings_file.h"
#include "base/settings_text.h"
#include "directory/host.h"
#include "directory/peers_file.h"

struct peers_reader {
	struct pvr_peers_file *file;
	struct pvr_peers_host *host; /* of the current section */
	bool policy;
};

/* ----------------------------------------------------------------------- values */

/* An IPv4 prefix stands for the GIDs that are made from its addresses. */
static bool parse_prefix(struct pvr_pin *pin, char *text)
{
	char *slash = strchr(text, '/'), *end;
	unsigned int width = 128;
	unsigned long len;

	if (slash)
		*slash++ = '\0';
	memset(pin->prefix, 0, sizeof(pin->prefix));
	if (inet_pton(AF_INET, text, pin->prefix + 12) == 1) {
		pin->prefix[10] = pin->prefix[11] = 0xff;
		width = 32;
	} else if (inet_pton(AF_INET6, text, pin->prefix) != 1) {
		return false;
	}
	len = slash ? strtoul(slash, &end, 10) : width;
	if (slash && (*slash < '0' || *slash > '9' || *end || len > width))
		return false;
	pin->len = (unsigned int)len + 128 - width;
	return true;
}

static bool set_address(struct pvr_peers_host *host, const char *value, struct pvr_error *err)
{
	struct pvr_address parsed;

	if (host->address[0])
		return pvr_fail(err, "host '%s' has two addresses", host->name);
	if (!pvr_address_parse(&parsed, value, err))
		return false;
	pvr_address_format(&parsed, host->address);
	return true;
}

static bool add_pin(struct pvr_peers_host *host, const char *fabric, char *word,
		    struct pvr_error *err)
{
	struct pvr_pin pin = { .len = 0 }, *grown;
	char shown[64];

	strcpy(pin.fabric, fabric);
	snprintf(shown, sizeof(shown), "%s", word);
	if (!parse_prefix(&pin, word))
		return pvr_fail(err,
				"gids '%s' is not PREFIX/LENGTH, such as 10.1.0.0/16 or fe80::/64",
				shown);
	if (host->num_pins == PVR_PEERS_FILE_PINS)
		return pvr_fail(err, "host '%s' has more than %d prefixes", host->name,
				PVR_PEERS_FILE_PINS);
	grown = realloc(host->pins, (host->num_pins + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	host->pins = grown;
	host->pins[host->num_pins++] = pin;
	return true;
}

static bool add_pins(struct pvr_peers_host *host, const char *fabric, char *value,
		     struct pvr_error *err)
{
	char *word, *rest = value;

	if (strlen(fabric) >= PVR_NAME_MAX)
		return pvr_fail(err, "fabric '%s' has %zu characters, the limit is %d", fabric,
				strlen(fabric), PVR_NAME_MAX - 1);
	if (!*value)
		return pvr_fail(err, "gids is empty");
	while ((word = strsep(&rest, " \t"))) {
		if (*word && !add_pin(host, fabric, word, err))
			return false;
	}
	return true;
}

static bool set_value(void *opaque, char *key, char *value, struct pvr_error *err)
{
	struct peers_reader *reader = opaque;

	if (!strcmp(key, "address") && !reader->policy)
		return set_address(reader->host, value, err);
	if (!strncmp(key, "gids", 4) && (!key[4] || isspace((unsigned char)key[4])))
		return add_pins(reader->host, pvr_trim(key + 4), value, err);
	return pvr_fail(err, "unknown setting '%s': a host has %sgids and gids FABRIC", key,
			reader->policy ? "" : "address, ");
}

/* ----------------------------------------------------------------------- sections */

static const char *const section_kinds[] = { "host", NULL };

static bool begin_host(void *opaque, unsigned int kind, const char *name, size_t line,
		       struct pvr_error *err)
{
	struct peers_reader *reader = opaque;
	struct pvr_peers_file *file = reader->file;
	struct pvr_peers_host *grown;
	size_t i;

	if (!pvr_dir_host_name_ok(name) && !(reader->policy && !strcmp(name, "*")))
		return pvr_fail(err,
				"host '%s': a name has up to %d letters, digits, '.', '_' and '-'",
				name, PVR_HOST_NAME_MAX - 1);
	for (i = 0; i < file->num && !reader->policy; i++) {
		if (!strcmp(file->hosts[i].name, name))
			return pvr_fail(err, "two hosts are named '%s', the first in line %zu",
					name, file->hosts[i].line);
	}
	if (!reader->policy && file->num == PVR_PEERS_FILE_HOSTS)
		return pvr_fail(err, "more than %d hosts: use etcd for that many",
				PVR_PEERS_FILE_HOSTS);
	if (file->num == PVR_POLICY_HOSTS)
		return pvr_fail(err, "more than %d hosts", PVR_POLICY_HOSTS);
	grown = realloc(file->hosts, (file->num + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	file->hosts = grown;
	reader->host = &grown[file->num++];
	*reader->host = (struct pvr_peers_host){ .line = line };
	strcpy(reader->host->name, name);
	return true;
}

static bool end_host(void *opaque, struct pvr_error *err)
{
	const struct peers_reader *reader = opaque;

	if (reader->host->address[0])
		return true;
	return pvr_fail(err, "host '%s' lacks address = ADDRESS", reader->host->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pvr_peers_host *)a)->name,
		      ((const struct pvr_peers_host *)b)->name);
}

static bool sort(struct pvr_peers_file *file, const char *path, struct pvr_error *err)
{
	size_t i;

	if (file->num)
		qsort(file->hosts, file->num, sizeof(*file->hosts), by_name);
	for (i = 1; i < file->num; i++) {
		if (!by_name(&file->hosts[i - 1], &file->hosts[i]))
			return pvr_fail(err,
					"%s:%zu: two hosts are named '%s', the other in line %zu",
					path, file->hosts[i].line, file->hosts[i].name,
					file->hosts[i - 1].line);
	}
	return true;
}

/* Sorted, because the rules of a host are found by bisection. */
static bool read_hosts(struct pvr_peers_file *file, const char *path,
		       const struct pvr_settings_file_ops *ops, bool policy, struct pvr_error *err)
{
	struct peers_reader reader = { .file = file, .policy = policy };

	*file = (struct pvr_peers_file){ .num = 0 };
	if (pvr_settings_file_read(path, ops, &reader, err) && sort(file, path, err))
		return true;
	pvr_peers_file_free(file);
	return false;
}

bool pvr_peers_file_read(struct pvr_peers_file *file, const char *path, struct pvr_error *err)
{
	static const struct pvr_settings_file_ops ops = {
		.what = "peers file",
		.kinds = section_kinds,
		.begin = begin_host,
		.set_in_section = set_value,
		.end = end_host,
	};

	return read_hosts(file, path, &ops, false, err);
}

/* A host without gids may have any GID, as in the peers file. */
static bool end_policy(void *opaque, struct pvr_error *err)
{
	return true;
}

bool pvr_policy_file_read(struct pvr_peers_file *file, const char *path, struct pvr_error *err)
{
	static const struct pvr_settings_file_ops ops = {
		.what = "policy file",
		.kinds = section_kinds,
		.begin = begin_host,
		.set_in_section = set_value,
		.end = end_policy,
	};

	return read_hosts(file, path, &ops, true, err);
}

void pvr_peers_file_free(struct pvr_peers_file *file)
{
	while (file->num)
		free(file->hosts[--file->num].pins);
	free(file->hosts);
	file->hosts = NULL;
}

/* ------------------------------------------------------------------------- pins */

static bool has_prefix(const uint8_t gid[16], const struct pvr_pin *pin)
{
	unsigned int bytes = pin->len / 8, bits = pin->len % 8;
	uint8_t mask = (uint8_t)(0xff00 >> bits);

	return !memcmp(gid, pin->prefix, bytes) &&
	       (!bits || !((gid[bytes] ^ pin->prefix[bytes]) & mask));
}

bool pvr_peers_host_may_have(const struct pvr_peers_host *host, const struct pvr_key *key)
{
	size_t i;

	for (i = 0; i < host->num_pins; i++) {
		const struct pvr_pin *pin = &host->pins[i];

		if (pin->fabric[0] && strcmp(pin->fabric, key->fabric))
			continue;
		/* Any host with a GID in the fabric may join its groups. */
		if (pvr_key_is_group(key) || has_prefix(key->gid, pin))
			return true;
	}
	return !host->num_pins;
}

static const struct pvr_peers_host *find_host(const struct pvr_peers_file *file, const char *name)
{
	struct pvr_peers_host key = { .line = 0 };

	snprintf(key.name, sizeof(key.name), "%s", name);
	return file->num ? bsearch(&key, file->hosts, file->num, sizeof(key), by_name) : NULL;
}

bool pvr_peers_file_allows(const struct pvr_peers_file *file, const char *host,
			   const struct pvr_key *key)
{
	const struct pvr_peers_host *rules = find_host(file, host);

	return !rules || pvr_peers_host_may_have(rules, key);
}

bool pvr_policy_allows(const struct pvr_peers_file *file, const char *host,
		       const struct pvr_key *key)
{
	const struct pvr_peers_host *rules = find_host(file, host);

	if (!rules)
		rules = find_host(file, "*");
	return rules && pvr_peers_host_may_have(rules, key);
}
