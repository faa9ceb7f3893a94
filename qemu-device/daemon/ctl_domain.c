// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl domain-xml: what a libvirt domain needs for an adapter. */
#include "daemon/ctl_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libxml/parser.h>
#include <libxml/xmlsave.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ctl_client.h"
#include "daemon/domain_edit.h"
#include "daemon/domain_read.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"

/* A domain with a NIC, for those that have none yet; the rest is inserted as into any domain. */
#define EXAMPLE                                                                          \
	"<domain type='kvm'>"                                                            \
	"<!-- Add these elements to a domain of machine type q35. The NIC can have any " \
	"source and model. -->"                                                          \
	"<os><type arch='x86_64' machine='q35'>hvm</type></os>"                          \
	"<devices><interface type='network'><mac address='%s'/>"                         \
	"<source network='default'/><model type='virtio'/></interface></devices>"        \
	"</domain>"

/* An image whose format QEMU does not migrate: beside the program in a build, else installed. */
#define GUARD_NAME "no-migration.vdi"

#define WARNING                                                                        \
	"pvrdmactl: note: " PVR_DATADIR "/" GUARD_NAME                                 \
	" is not installed: QEMU 11.1 will migrate and save this VM without its RDMA " \
	"device and without an error, see LIBVIRT in pvrdmactl(8)\n"

#define LIBVIRT_FOLDER "/etc/libvirt"
#define HOOK LIBVIRT_FOLDER "/hooks/qemu.d/pvrdma"

#define HOOK_WARNING                                                                       \
	"pvrdmactl: note: " HOOK                                                           \
	" is not installed: libvirt will not add the adapter, and the domain will not "    \
	"start: install the package pvrdmad, or copy packaging/libvirt/pvrdma there, and " \
	"restart libvirtd\n"

/* ----------------------------------------------------------------------- the adapter */

static bool find_in(struct json_object *reply, const char *name,
		    struct pvr_adapter_settings *settings, struct pvr_error *err)
{
	struct json_object *obj = pvr_ctl_find_adapter(reply, name);

	if (obj)
		return pvr_adapter_settings_set(settings, "name", name, err) &&
		       pvr_adapter_settings_set(settings, "socket", text_of(obj, "socket"), err) &&
		       pvr_adapter_settings_set(settings, "mac", text_of(obj, "mac"), err);
	return pvr_fail(err,
			"there is no adapter '%.64s': see 'pvrdmactl adapters', or give "
			"name=NAME,socket=PATH,mac=MAC of an adapter that libvirt's hook makes",
			name);
}

static bool ask_adapter(const char *control, const char *name,
			struct pvr_adapter_settings *settings, struct pvr_error *err)
{
	struct json_object *request, *reply;
	int fd = pvr_ctl_connect(control, err);
	bool ok;

	if (fd < 0)
		return false;
	request = json_object_new_object();
	put_text(request, "command", "adapters");
	reply = pvr_ctl_ask(fd, control, request, err);
	json_object_put(request);
	close(fd);
	ok = reply && pvr_ctl_is_ok(reply, err) && find_in(reply, name, settings, err);
	json_object_put(reply);
	return ok;
}

static bool get_adapter(const struct pvr_domain_options *options,
			struct pvr_domain_adapter *adapter, struct pvr_error *err)
{
	adapter->posted_writes = options->posted_writes;
	adapter->migratable = options->migratable;
	adapter->unplugged = options->unplugged;
	if (!strchr(options->adapter, '='))
		return ask_adapter(options->control, options->adapter, &adapter->settings, err);
	adapter->hook_text = options->adapter;
	return pvr_adapter_settings_parse(&adapter->settings, options->adapter, err);
}

static bool find_guard(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - sizeof(GUARD_NAME) - 1);
	char *slash;

	if (len > 0) {
		path[len] = '\0';
		slash = strrchr(path, '/');
		strcpy(slash ? slash + 1 : path, GUARD_NAME);
		if (!access(path, R_OK))
			return true;
	}
	snprintf(path, PATH_MAX, "%s/%s", PVR_DATADIR, GUARD_NAME);
	return !access(path, R_OK);
}

static bool check_socket(const struct pvr_domain_adapter *adapter, struct pvr_error *err)
{
	return adapter->settings.socket[0] == '/' ||
	       pvr_fail(
		       err,
		       "the socket %s of adapter '%s' is not an absolute path, which libvirt needs",
		       adapter->settings.socket, adapter->settings.name);
}

/* ------------------------------------------------------------------------ the domain */

char *pvr_domain_read_all(FILE *file, const char *source, size_t *len, struct pvr_error *err)
{
	char *text = malloc(PVR_DOMAIN_BYTES + 1);

	if (!text) {
		pvr_fail(err, "no memory for %.256s", source);
		return NULL;
	}
	*len = fread(text, 1, PVR_DOMAIN_BYTES + 1, file);
	if (!ferror(file))
		return text;
	pvr_fail(err, "cannot read %.256s: %s", source, strerror(errno));
	free(text);
	return NULL;
}

static xmlDoc *read_domain(const char *path, struct pvr_error *err)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	const char *source = is_stdin ? "standard input" : path;
	xmlDoc *doc = NULL;
	size_t len = 0;
	char *text;

	if (!file) {
		pvr_fail(err, "cannot read %.256s: %s", path, strerror(errno));
		return NULL;
	}
	text = pvr_domain_read_all(file, source, &len, err);
	if (text)
		doc = pvr_domain_parse(text, len, source, err);
	free(text);
	if (!is_stdin)
		fclose(file);
	return doc;
}

static xmlDoc *example(const struct pvr_domain_adapter *adapter, struct pvr_error *err)
{
	char text[sizeof(EXAMPLE) + PVR_MAC_TEXT], mac[PVR_MAC_TEXT];

	snprintf(text, sizeof(text), EXAMPLE, pvr_mac_text(adapter->settings.mac, mac));
	return pvr_domain_parse(text, strlen(text), "the example", err);
}

/* -------------------------------------------------------------------------- the output */

/* Return: the domain as text, xmlBufferFree(); as virsh prints one, without an XML declaration. */
static xmlBuffer *print_domain(xmlDoc *doc)
{
	xmlBuffer *buffer = xmlBufferCreate();
	xmlSaveCtxt *save = xmlSaveToBuffer(buffer, "UTF-8", XML_SAVE_FORMAT | XML_SAVE_NO_DECL);

	xmlSaveDoc(save, doc);
	xmlSaveClose(save);
	return buffer;
}

/* Replaces the file in one step, with the same mode: a reader has the old or the new one. */
static bool replace(const char *path, const char *text, size_t len, struct pvr_error *err)
{
	char temporary[PATH_MAX + 8];
	struct stat st;
	bool ok;
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return pvr_fail(err, "cannot write beside %.256s: %s", path, strerror(errno));
	ok = !stat(path, &st) && !fchmod(fd, st.st_mode & 07777) &&
	     write(fd, text, len) == (ssize_t)len && !fsync(fd);
	if (!ok)
		pvr_fail(err, "cannot write %.256s: %s", temporary, strerror(errno));
	close(fd);
	if (ok && rename(temporary, path) < 0)
		ok = pvr_fail(err, "cannot replace %.256s: %s", path, strerror(errno));
	if (!ok)
		unlink(temporary);
	return ok;
}

/* Return: whether all of it was written. */
static bool write_json(const char *text, size_t len)
{
	struct json_object *reply = json_object_new_object();
	bool ok;

	put_bool(reply, "ok", true);
	put(reply, "xml", json_object_new_string_len(text, (int)len));
	ok = printf("%s\n", json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PRETTY)) > 0;
	json_object_put(reply);
	return ok;
}

static bool write_domain(xmlDoc *doc, const char *path, bool json, struct pvr_error *err)
{
	xmlBuffer *buffer = print_domain(doc);
	const char *text = (const char *)xmlBufferContent(buffer);
	size_t len = (size_t)xmlBufferLength(buffer);
	char *real = NULL;
	bool ok;

	if (!path || !strcmp(path, "-")) {
		ok = json ? write_json(text, len) : fwrite(text, 1, len, stdout) == len;
		ok = ok && !fflush(stdout);
		if (!ok)
			pvr_fail(err, "cannot write to standard output: %s", strerror(errno));
	} else {
		real = realpath(path, NULL);
		ok = real ? replace(real, text, len, err)
			  : pvr_fail(err, "cannot write %.256s: %s", path, strerror(errno));
	}
	free(real);
	xmlBufferFree(buffer);
	return ok;
}

/* The XML can be for another host: one without libvirt needs no hook. */
static bool lacks_hook(const struct pvr_domain_adapter *adapter)
{
	return adapter->hook_text && !access(LIBVIRT_FOLDER, F_OK) && access(HOOK, X_OK);
}

bool pvr_ctl_domain_xml(const struct pvr_domain_options *options, struct pvr_error *err)
{
	struct pvr_domain_adapter adapter = { .hook_text = NULL };
	char guard[PATH_MAX];
	xmlDoc *doc;
	bool ok;

	if (!get_adapter(options, &adapter, err) || !check_socket(&adapter, err))
		return false;
	if (find_guard(guard))
		adapter.guard = guard;
	doc = options->file ? read_domain(options->file, err) : example(&adapter, err);
	if (!doc)
		return false;
	ok = pvr_domain_check(doc, adapter.settings.mac, err) &&
	     pvr_domain_insert(doc, &adapter, err) &&
	     write_domain(doc, options->file, options->json, err);
	xmlFreeDoc(doc);
	if (ok && !adapter.guard && !adapter.migratable)
		fputs(WARNING, stderr);
	if (ok && lacks_hook(&adapter))
		fputs(HOOK_WARNING, stderr);
	return ok;
}
