// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The configuration file: settings of the daemon, and sections [adapter NAME] and [fabric NAME]. */
#include <string.h>

#include "base/settings_file.h"
#include "daemon/settings.h"

enum section_kind { ADAPTER, FABRIC };

struct config {
	struct pvr_settings *settings;
	/* The current section. */
	enum section_kind kind;
	struct pvr_adapter_settings adapter;
	struct pvr_fabric_settings fabric;
};

static bool set(void *opaque, const char *key, char *value, struct pvr_error *err)
{
	struct config *config = opaque;

	return pvr_settings_set(config->settings, key, value, err);
}

static bool begin(void *opaque, unsigned int kind, const char *name, size_t line,
		  struct pvr_error *err)
{
	struct config *config = opaque;

	config->kind = kind;
	memset(&config->adapter, 0, sizeof(config->adapter));
	memset(&config->fabric, 0, sizeof(config->fabric));
	return kind == ADAPTER ? pvr_adapter_settings_set(&config->adapter, "name", name, err)
			       : pvr_set_fabric_name(config->fabric.name, name, err);
}

static bool set_in_section(void *opaque, char *key, char *value, struct pvr_error *err)
{
	struct config *config = opaque;

	return config->kind == ADAPTER ? pvr_adapter_settings_set(&config->adapter, key, value, err)
				       : pvr_fabric_qos_set(&config->fabric.qos, key, value, err);
}

static bool end(void *opaque, struct pvr_error *err)
{
	struct config *config = opaque;

	if (config->kind == FABRIC)
		return pvr_qos_check(&config->fabric.qos, err) &&
		       pvr_settings_add_fabric(config->settings, &config->fabric, err);
	return pvr_adapter_settings_check(&config->adapter, err) &&
	       pvr_settings_add_adapter(config->settings, &config->adapter, err);
}

bool pvr_settings_read_file(struct pvr_settings *settings, const char *path, struct pvr_error *err)
{
	static const char *const kinds[] = { [ADAPTER] = "adapter", [FABRIC] = "fabric", NULL };
	static const struct pvr_settings_file_ops ops = {
		.what = "configuration file",
		.kinds = kinds,
		.set = set,
		.begin = begin,
		.set_in_section = set_in_section,
		.end = end,
	};
	struct config config = { .settings = settings };

	return pvr_settings_file_read(path, &ops, &config, err);
}
