// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings of the directory: options and configuration file. */
#include <string.h>

#include "base/address.h"
#include "base/settings_text.h"
#include "directory/directory_options.h"

bool pvr_directory_options_has(const char *key)
{
	static const char keys[] = " " PVR_DIRECTORY_KEYS ",";
	char word[32];

	snprintf(word, sizeof(word), " %s,", key);
	return strlen(key) < sizeof(word) - 3 && strstr(keys, word);
}

static bool set_advertise(struct pvr_directory_options *options, const char *value,
			  struct pvr_error *err)
{
	struct pvr_address address;

	if (!pvr_address_parse(&address, value, err))
		return false;
	if (!options->advertise[0])
		pvr_address_format(&address, options->advertise);
	return true;
}

bool pvr_directory_options_set(struct pvr_directory_options *options, const char *key,
			       const char *value, struct pvr_error *err)
{
	if (!strcmp(key, "peers"))
		return pvr_keep_text(options->peers_file, sizeof(options->peers_file), key, value,
				     err);
	if (!strcmp(key, "policy"))
		return pvr_keep_text(options->policy_file, sizeof(options->policy_file), key, value,
				     err);
	if (!strcmp(key, "advertise"))
		return set_advertise(options, value, err);
	return pvr_etcd_settings_set(&options->etcd, key, value, err);
}

bool pvr_directory_options_any(const struct pvr_directory_options *options)
{
	return options->peers_file[0] || options->etcd.num_urls;
}

bool pvr_directory_options_check(const struct pvr_directory_options *options, bool insecure,
				 struct pvr_error *err)
{
	if (options->peers_file[0] && options->etcd.num_urls)
		return pvr_fail(err,
				"peers and etcd: hosts are found by a file, or in etcd, not both");
	return pvr_etcd_settings_check(&options->etcd, insecure, err);
}
