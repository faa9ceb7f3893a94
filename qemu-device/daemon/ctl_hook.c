// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvrdmactl libvirt-hook: adapters that come and go with their libvirt domains.
 *
 * libvirt calls the hook for all domains. One without a device of ours needs no pvrdmad, and the
 * hook does nothing. An adapter of the domain's metadata is the hook's, other ones are checked.
 */
#include "daemon/ctl_hook.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ctl_client.h"
#include "daemon/ctl_domain.h"
#include "daemon/ctl_instance.h"
#include "daemon/ctl_redirect.h"
#include "daemon/domain_read.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"

/* QEMU has ended before libvirt calls "release", but pvrdmad may not have read the end yet. */
#define LEAVE_TRIES 50
#define LEAVE_USEC 100000

struct hook {
	const char *given; /* the path of the control socket, or NULL: each adapter's instance */
	char control[PVR_PATH_MAX]; /* of @fd */
	char domain[PVR_DOMAIN_TEXT];
	xmlDoc *doc;
	int fd; /* to pvrdmad, or -1 */
};

/* ---------------------------------------------------------------------------- pvrdmad */

static void disconnect(struct hook *hook)
{
	if (hook->fd >= 0)
		close(hook->fd);
	hook->fd = -1;
}

/* The next requests go to the control socket @control. */
static void select_control(struct hook *hook, const char *control)
{
	if (!strcmp(hook->control, control))
		return;
	disconnect(hook);
	snprintf(hook->control, sizeof(hook->control), "%s", control);
}

static bool select_fabric(struct hook *hook, const char *fabric, struct pvr_error *err)
{
	struct pvr_instance instance;

	if (hook->given)
		return true;
	if (!pvr_instance_of_fabric(fabric, &instance, err))
		return false;
	select_control(hook, instance.control);
	return true;
}

/* Connects at the first request. Return: the reply, or NULL with @err filled. */
static struct json_object *ask(struct hook *hook, struct json_object *request,
			       struct pvr_error *err)
{
	struct json_object *reply = NULL;

	if (hook->fd < 0)
		hook->fd = pvr_ctl_connect(hook->control, err);
	if (hook->fd >= 0)
		reply = pvr_ctl_ask_line(hook->fd, hook->control, request, err);
	json_object_put(request);
	if (reply && pvr_ctl_is_ok(reply, err))
		return reply;
	json_object_put(reply);
	return NULL;
}

static struct json_object *command(const char *name)
{
	struct json_object *request = json_object_new_object();

	put_text(request, "command", name);
	return request;
}

static bool is_same(struct json_object *obj, const struct pvr_adapter_settings *settings)
{
	struct pvr_adapter_settings found = { .has_mac = false };
	struct pvr_error err;

	return pvr_adapter_settings_set(&found, "mac", text_of(obj, "mac"), &err) &&
	       !memcmp(found.mac, settings->mac, sizeof(found.mac)) &&
	       !strcmp(text_of(obj, "socket"), settings->socket);
}

/* ---------------------------------------------------------------------------- prepare */

/* An adapter of that name exists: a VM that ended while its hook could not run has left it. */
static bool check_existing(struct json_object *obj, const struct pvr_adapter_settings *settings,
			   struct pvr_error *err)
{
	if (!is_same(obj, settings))
		return pvr_fail(err,
				"pvrdmad has an adapter '%s' with MAC %s and socket %s, other than "
				"the domain's: rename one of them",
				settings->name, text_of(obj, "mac"), text_of(obj, "socket"));
	return !truth_of(obj, "attached") ||
	       pvr_fail(err, "adapter '%s' is in use by the QEMU of process %s: stop that VM",
			settings->name, text_of(obj, "qemu_pid"));
}

static bool make_adapter(void *opaque, const char *text, struct pvr_error *err)
{
	struct json_object *reply, *request, *existing;
	struct pvr_adapter_settings settings;
	struct hook *hook = opaque;
	bool ok;

	if (!pvr_adapter_settings_parse(&settings, text, err) ||
	    !select_fabric(hook, settings.fabric, err))
		return false;
	reply = ask(hook, command("adapters"), err);
	if (!reply)
		return false;
	existing = pvr_ctl_find_adapter(reply, settings.name);
	ok = !existing || check_existing(existing, &settings, err);
	json_object_put(reply);
	if (!ok || existing)
		return ok;
	request = command("add-adapter");
	if (!pvr_adapter_words(text, pvr_ctl_put_setting, request, err)) {
		json_object_put(request);
		return false;
	}
	reply = ask(hook, request, err);
	json_object_put(reply);
	return reply != NULL;
}

/* The adapters of the selected instance have no @device: why. */
static bool refuse_device(const struct pvr_domain_device *device, struct json_object *found,
			  struct pvr_error *err)
{
	if (!found)
		return pvr_fail(
			err,
			"pvrdmad has no adapter '%.64s': add it, or let 'pvrdmactl domain-xml "
			"name=%.64s,...' write its settings into the domain",
			device->name, device->name);
	return pvr_fail(err,
			"adapter '%.64s' has the socket %s, expected %.256s: run "
			"'pvrdmactl domain-xml' again",
			device->name, text_of(found, "socket"), device->socket);
}

static bool check_device_here(struct hook *hook, const struct pvr_domain_device *device,
			      struct pvr_error *err)
{
	struct json_object *reply = ask(hook, command("adapters"), err), *obj;
	bool ok;

	if (!reply)
		return false;
	obj = pvr_ctl_find_adapter(reply, device->name);
	ok = (obj && !strcmp(text_of(obj, "socket"), device->socket)) ||
	     refuse_device(device, obj, err);
	json_object_put(reply);
	return ok;
}

/* A device without settings in the domain's metadata has no fabric: any instance can have it. */
static bool check_device(void *opaque, const struct pvr_domain_device *device,
			 struct pvr_error *err)
{
	struct hook *hook = opaque;
	struct pvr_instance *all;
	bool ok = false;
	size_t num, i;

	if (hook->given)
		return check_device_here(hook, device, err);
	all = pvr_instances(&num, err);
	for (i = 0; all && i < num && !ok; i++) {
		select_control(hook, all[i].control);
		ok = check_device_here(hook, device, err);
	}
	free(all);
	return ok;
}

static bool prepare(struct hook *hook, struct pvr_error *err)
{
	return pvr_domain_each_settings(hook->doc, make_adapter, hook, err) &&
	       pvr_domain_each_device(hook->doc, check_device, hook, err);
}

/* ---------------------------------------------------------------------------- started */

/* QEMU has its tap devices now. */
static bool redirect(void *opaque, const char *text, struct pvr_error *err)
{
	const struct hook *hook = opaque;
	struct pvr_adapter_settings settings;

	return pvr_adapter_settings_parse(&settings, text, err) &&
	       pvr_ctl_redirect(hook->doc, &settings, err);
}

/* ---------------------------------------------------------------------------- release */

/* Waits until the adapter has no QEMU. Return: whether it is the domain's and has none. */
static bool has_left(struct hook *hook, const struct pvr_adapter_settings *settings,
		     struct pvr_error *err)
{
	struct json_object *reply, *obj;
	bool same, attached;
	int tries;

	for (tries = 0; tries < LEAVE_TRIES; tries++) {
		reply = ask(hook, command("adapters"), err);
		if (!reply)
			return false;
		obj = pvr_ctl_find_adapter(reply, settings->name);
		same = obj && is_same(obj, settings);
		attached = obj && truth_of(obj, "attached");
		json_object_put(reply);
		if (!same)
			return pvr_fail(err, "pvrdmad has no such adapter '%s' any more",
					settings->name);
		if (!attached)
			return true;
		usleep(LEAVE_USEC);
	}
	return pvr_fail(err, "adapter '%s' is kept: a QEMU uses it", settings->name);
}

/* A failure concerns one adapter: the other ones are removed all the same. */
static bool remove_adapter(void *opaque, const char *text, struct pvr_error *err)
{
	struct pvr_adapter_settings settings;
	struct json_object *request, *reply;
	struct hook *hook = opaque;
	struct pvr_error failure;
	bool ok = false;

	if (pvr_adapter_settings_parse(&settings, text, &failure) &&
	    select_fabric(hook, settings.fabric, &failure) && has_left(hook, &settings, &failure)) {
		request = command("remove-adapter");
		put_text(request, "name", settings.name);
		reply = ask(hook, request, &failure);
		ok = reply != NULL;
		json_object_put(reply);
	}
	if (!ok)
		fprintf(stderr, "pvrdmactl: domain '%s': %s\n", hook->domain, failure.text);
	return true;
}

/* --------------------------------------------------------------------- migrate, restore */

static bool must_be_migratable(void *opaque, const struct pvr_domain_device *device,
			       struct pvr_error *err)
{
	return device->migratable ||
	       pvr_fail(err,
			"QEMU cannot migrate, save or restore the RDMA device of adapter '%.64s': "
			"shut the VM down and start it on the other host, see LIBVIRT in "
			"pvrdmactl(8)",
			device->name);
}

/* ------------------------------------------------------------------------------- all */

static bool run(struct hook *hook, const char *operation, const char *step, struct pvr_error *err)
{
	if (!strcmp(operation, "prepare") && !strcmp(step, "begin"))
		return prepare(hook, err);
	if (!strcmp(operation, "started") && !strcmp(step, "begin"))
		return pvr_domain_each_settings(hook->doc, redirect, hook, err);
	if (!strcmp(operation, "release") && !strcmp(step, "end"))
		return pvr_domain_each_settings(hook->doc, remove_adapter, hook, err);
	if (!strcmp(operation, "migrate") || !strcmp(operation, "restore"))
		return pvr_domain_each_device(hook->doc, must_be_migratable, NULL, err);
	return true;
}

bool pvr_ctl_hook(const char *control, const char *operation, const char *step,
		  struct pvr_error *err)
{
	struct hook hook = { .given = control, .fd = -1 };
	struct pvr_error failure;
	size_t len = 0;
	char *text = pvr_domain_read_all(stdin, "libvirt's XML", &len, err);
	bool ok;

	if (!text)
		return false;
	/* libvirt has no XML in some calls that need none here. */
	hook.doc = len ? pvr_domain_parse(text, len, "libvirt's XML", err) : NULL;
	free(text);
	if (!hook.doc)
		return !len;
	pvr_domain_name(hook.doc, hook.domain);
	if (control)
		select_control(&hook, control);
	ok = run(&hook, operation, step, &failure);
	if (!ok)
		pvr_fail(err, "domain '%.64s': %.800s", hook.domain, failure.text);
	disconnect(&hook);
	xmlFreeDoc(hook.doc);
	return ok;
}
