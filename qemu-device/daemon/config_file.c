// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The configuration file: settings of the daemon, and [adapter NAME] sections. */
#include <string.h>

#include "base/settings_file.h"
#include "daemon/settings.h"

struct config {
	struct pvr_settings *settings;
	struct pvr_adapter_settings adapter; /* of the current section */
};

static bool set(void *opaque, const char *key, char *value, struct pvr_error *err)
{
	struct config *config = opaque;

	return pvr_settings_set(config->settings, key, value, err);
}

static bool begin_adapter(void *opaque, const char *name, size_t line, struct pvr_error *err)
{
	struct config *config = opaque;

	memset(&config->adapter, 0, sizeof(config->adapter));
	return pvr_adapter_settings_set(&config->adapter, "name", name, err);
}

static bool set_adapter(void *opaque, char *key, char *value, struct pvr_error *err)
{
	struct config *config = opaque;

	return pvr_adapter_settings_set(&config->adapter, key, value, err);
}

static bool end_adapter(void *opaque, struct pvr_error *err)
{
	struct config *config = opaque;

	return pvr_adapter_settings_check(&config->adapter, err) &&
	       pvr_settings_add_adapter(config->settings, &config->adapter, err);
}

bool pvr_settings_read_file(struct pvr_settings *settings, const char *path, struct pvr_error *err)
{
	static const struct pvr_settings_file_ops ops = {
		.what = "configuration file",
		.kind = "adapter",
		.set = set,
		.begin = begin_adapter,
		.set_in_section = set_adapter,
		.end = end_adapter,
	};
	struct config config = { .settings = settings };

	return pvr_settings_file_read(path, &ops, &config, err);
}
