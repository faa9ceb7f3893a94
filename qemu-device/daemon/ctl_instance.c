// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The instances of pvrdmad on this host, from their configuration files. */
#include "daemon/ctl_instance.h"

#include <glob.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings_file.h"
#include "base/settings_text.h"
#include "daemon/json_put.h"

#define MAIN "pvrdmad"
#define UNIX_PREFIX "unix:"

static const char *get_sysroot(void)
{
	const char *root = getenv("PVRDMA_SYSROOT");

	return root ? root : "";
}

/* ------------------------------------------------------------------ configuration file */

/* pvrdmad checks its other settings. */
static bool take_setting(void *opaque, const char *key, char *value, struct pvr_error *err)
{
	struct pvr_instance *instance = opaque;

	if (!strcmp(key, "control"))
		return pvr_set_socket(instance->control, key, value, err);
	if (!strcmp(key, "metrics"))
		return pvr_set_text(instance->metrics, sizeof(instance->metrics), key, value, err);
	if (!strcmp(key, "fabrics"))
		return pvr_set_fabric_list(instance->fabrics, value, err);
	return true;
}

static bool ignore_section(void *opaque, unsigned int kind, const char *name, size_t line,
			   struct pvr_error *err)
{
	(void)opaque;
	(void)kind;
	(void)name;
	(void)line;
	(void)err;
	return true;
}

static bool ignore_setting(void *opaque, char *key, char *value, struct pvr_error *err)
{
	(void)opaque;
	(void)key;
	(void)value;
	(void)err;
	return true;
}

static bool ignore_end(void *opaque, struct pvr_error *err)
{
	(void)opaque;
	(void)err;
	return true;
}

static bool read_config(const char *path, struct pvr_instance *instance, struct pvr_error *err)
{
	static const char *const kinds[] = { "adapter", "fabric", NULL };
	static const struct pvr_settings_file_ops ops = {
		.what = "configuration file",
		.kinds = kinds,
		.set = take_setting,
		.begin = ignore_section,
		.set_in_section = ignore_setting,
		.end = ignore_end,
	};

	return pvr_settings_file_read(path, &ops, instance, err);
}

/* ------------------------------------------------------------------------- one instance */

static void config_path(char path[PVR_PATH_MAX], const char *service)
{
	snprintf(path, PVR_PATH_MAX, "%s/etc/pvrdma/%s.conf", get_sysroot(), service);
}

/* @name: a checked name, or "" */
static bool fill_instance(const char *name, struct pvr_instance *instance, struct pvr_error *err)
{
	const char *at = *name ? "@" : "", *dash = *name ? "-" : "";
	char path[PVR_PATH_MAX];

	memset(instance, 0, sizeof(*instance));
	snprintf(instance->service, sizeof(instance->service), MAIN "%s%s", at, name);
	snprintf(instance->control, sizeof(instance->control), "%s/run/pvrdma%s%s/control",
		 get_sysroot(), dash, name);
	config_path(path, instance->service);
	/* A daemon that was started by hand needs no file. */
	if (!*name && access(path, F_OK))
		return true;
	return read_config(path, instance, err);
}

bool pvr_instance_find(const char *name, struct pvr_instance *instance, struct pvr_error *err)
{
	char checked[PVR_NAME_MAX];

	return pvr_set_name(checked, "instance", name, err) &&
	       fill_instance(checked, instance, err);
}

/* ------------------------------------------------------------------------ all instances */

/* Return: the NAME of a path .../pvrdmad@NAME.conf, in @name; false if it is no valid one. */
static bool name_of_config(const char *path, char name[PVR_NAME_MAX], struct pvr_error *err)
{
	const char *begin = strrchr(path, '/') + strlen("/" MAIN "@");
	char text[PVR_PATH_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)(strlen(begin) - strlen(".conf")), begin);
	return pvr_set_name(name, "instance", text, err);
}

/* A file with an error concerns its instance only: it is left out, with a note. */
static bool fill_instance_or_note(const char *path, const char *name, struct pvr_instance *instance)
{
	struct pvr_error why;

	if (fill_instance(name, instance, &why))
		return true;
	fprintf(stderr, "pvrdmactl: note: %s is left out: %s\n", path, why.text);
	return false;
}

/* Return: the number of instances. @left_out: set if there is a file with an error. */
static size_t fill_all(struct pvr_instance *instances, const glob_t *found, bool *left_out)
{
	char path[PVR_PATH_MAX], name[PVR_NAME_MAX];
	size_t num = 0, files, i;
	struct pvr_error why;

	config_path(path, MAIN);
	/* Without any file there is the one that was started by hand. */
	files = found->gl_pathc + (!access(path, F_OK) || !found->gl_pathc);
	if (files > found->gl_pathc)
		num += fill_instance_or_note(path, "", &instances[num]);
	for (i = 0; i < found->gl_pathc; i++) {
		if (name_of_config(found->gl_pathv[i], name, &why))
			num += fill_instance_or_note(found->gl_pathv[i], name, &instances[num]);
		else
			fprintf(stderr, "pvrdmactl: note: %s is left out: %s\n", found->gl_pathv[i],
				why.text);
	}
	*left_out = num < files;
	return num;
}

/* As pvr_instances(). @left_out: whether a file with an error is left out */
static struct pvr_instance *list_instances(size_t *num, bool *left_out, struct pvr_error *err)
{
	struct pvr_instance *instances;
	char pattern[PVR_PATH_MAX];
	glob_t found = { 0 };

	config_path(pattern, MAIN "@*");
	if (glob(pattern, 0, NULL, &found) == GLOB_NOSPACE) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	instances = calloc(found.gl_pathc + 1, sizeof(*instances));
	if (instances) {
		*num = fill_all(instances, &found, left_out);
	} else {
		pvr_fail(err, "out of memory");
	}
	globfree(&found);
	return instances;
}

struct pvr_instance *pvr_instances(size_t *num, struct pvr_error *err)
{
	bool left_out;

	return list_instances(num, &left_out, err);
}

/* @left_out: the instance of a file with an error may list the fabric. */
static bool choose_instance(const struct pvr_instance *all, size_t num, bool left_out,
			    const char *fabric, struct pvr_instance *instance,
			    struct pvr_error *err)
{
	const struct pvr_instance *found = NULL;
	size_t i;

	for (i = 0; i < num; i++) {
		if (!all[i].fabrics[0] || !pvr_fabric_list_has(all[i].fabrics, fabric))
			continue;
		if (found)
			return pvr_fail(
				err,
				"%s and %s both list the fabric '%s' in \"fabrics\" of their "
				"configuration files: remove it from one of them",
				found->service, all[i].service, fabric);
		found = &all[i];
	}
	if (!found && left_out)
		return pvr_fail(
			err,
			"no instance lists the fabric '%s', but a configuration file has an "
			"error: correct it",
			fabric);
	if (!found)
		return fill_instance("", instance, err);
	*instance = *found;
	return true;
}

bool pvr_instance_of_fabric(const char *fabric, struct pvr_instance *instance,
			    struct pvr_error *err)
{
	bool left_out = false;
	size_t num;
	struct pvr_instance *all = list_instances(&num, &left_out, err);
	bool ok = all &&
		  choose_instance(all, num, left_out, pvr_fabric_or_default(fabric), instance, err);

	free(all);
	return ok;
}

/* ------------------------------------------------------------------------------ metrics */

static struct json_object *describe_target(const struct pvr_instance *instance)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *targets = json_object_new_array();
	struct json_object *labels = json_object_new_object();

	json_object_array_add(targets, json_object_new_string(instance->metrics));
	put(obj, "targets", targets);
	put_text(labels, "service", instance->service);
	put(obj, "labels", labels);
	return obj;
}

bool pvr_instances_print_targets(struct pvr_error *err)
{
	struct json_object *list;
	struct pvr_instance *all;
	size_t num, i;

	all = pvr_instances(&num, err);
	if (!all)
		return false;
	list = json_object_new_array();
	for (i = 0; i < num; i++) {
		/* Prometheus itself cannot scrape a Unix socket. */
		if (all[i].metrics[0] &&
		    strncmp(all[i].metrics, UNIX_PREFIX, strlen(UNIX_PREFIX)) != 0)
			json_object_array_add(list, describe_target(&all[i]));
		else
			fprintf(stderr, "pvrdmactl: note: %s has no \"metrics\" = ADDRESS:PORT\n",
				all[i].service);
	}
	printf("%s\n", json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY));
	json_object_put(list);
	free(all);
	return true;
}
