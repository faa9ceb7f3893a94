// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A daemon for a directory to be tested in. */
#include <arpa/inet.h>

#include "fake_net.h"
#include "text_file.h"

/* ------------------------------------------------------------------ the engine's part */

static struct fake_gid *find_gid(struct fake_net *net, const struct pvr_key *key)
{
	size_t i;

	for (i = 0; i < net->num_gids; i++) {
		if (pvr_key_equal(&net->gids[i].key, key))
			return &net->gids[i];
	}
	return NULL;
}

static void lose_host(struct fake_gid *gid, const char *host)
{
	size_t i;

	for (i = 0; i < gid->num_hosts; i++) {
		if (strcmp(gid->hosts[i], host))
			continue;
		gid->num_hosts--;
		memmove(gid->hosts[i], gid->hosts[gid->num_hosts], sizeof(gid->hosts[i]));
		return;
	}
}

static void note_where(struct fake_gid *gid, enum pvr_gid_state state, const char *host)
{
	if (state == PVR_GID_AT_HOST_MORE)
		gid->state = PVR_GID_AT_HOST;
	else if (state != PVR_GID_LEFT_HOST)
		gid->state = state;
	if (host)
		lose_host(gid, host);
	if (state != PVR_GID_LEFT_HOST && (!host || !pvr_key_is_group(&gid->key)))
		gid->num_hosts = 0;
	if (state == PVR_GID_AT_HOST || state == PVR_GID_AT_HOST_MORE)
		strcpy(gid->hosts[gid->num_hosts++], host);
}

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *host)
{
	struct fake_net *net = opaque;
	struct fake_gid *gid = find_gid(net, key);

	net->told++;
	net->unknown += state == PVR_GID_UNKNOWN;
	if (!gid && net->num_gids == FAKE_GIDS)
		return 0;
	if (!gid) {
		gid = &net->gids[net->num_gids++];
		gid->key = *key;
	}
	gid->told++;
	gid->more = state == PVR_GID_AT_HOST_MORE;
	net->halves += gid->more;
	gid->type = type;
	note_where(gid, state, host);
	return 0;
}

/* ------------------------------------------------------------------- the peers' part */

struct fake_host *fake_host(struct fake_net *net, const char *name)
{
	struct fake_host *host;
	size_t i;

	for (i = 0; i < net->num_hosts; i++) {
		if (!strcmp(net->hosts[i].name, name))
			return &net->hosts[i];
	}
	assert_true(net->num_hosts < FAKE_HOSTS);
	host = &net->hosts[net->num_hosts++];
	snprintf(host->name, sizeof(host->name), "%s", name);
	return host;
}

static bool check_peer(void *opaque, const char *name, const char *address, struct pvr_error *err)
{
	return strcmp(name, "keyless") || pvr_fail(err, "there is no key for it");
}

static bool set_peer(void *opaque, const char *name, const char *address, struct pvr_error *err)
{
	struct fake_host *host = fake_host(opaque, name);

	snprintf(host->address, sizeof(host->address), "%s", address);
	host->forgotten = false;
	return check_peer(opaque, name, address, err);
}

static void forget_peer(void *opaque, const char *name)
{
	fake_host(opaque, name)->forgotten = true;
}

static bool want(void *opaque, const char *name)
{
	fake_host(opaque, name)->wanted = true;
	return true;
}

static size_t index_of(const struct fake_host *host, const struct pvr_key *key)
{
	size_t i;

	for (i = 0; i < host->num_has && !pvr_key_equal(&host->has[i], key); i++)
		;
	return i;
}

static bool state(void *opaque, const char *name, const struct pvr_key *key)
{
	struct fake_net *net = opaque;
	struct fake_host *host = fake_host(net, name);

	host->wanted = true;
	if (!host->up)
		return false;
	host->asked++;
	if (!host->silent)
		pvr_directory_located(net->directory, name, key->fabric, key->gid,
				      index_of(host, key) < host->num_has ? PVR_GID_TYPE_ROCE_V2
									  : 0);
	return true;
}

static bool is_up(void *opaque, const char *name)
{
	return fake_host(opaque, name)->up;
}

static void rules_changed(void *opaque)
{
	((struct fake_net *)opaque)->rules_changed++;
}

static void log_line(void *opaque, enum pvr_log_level level, const char *text)
{
	struct fake_net *net = opaque;
	size_t len = strlen(net->log);

	snprintf(net->log + len, sizeof(net->log) - len, "%s\n", text);
}

/* -------------------------------------------------------------------- for the tests */

void fake_net_init(struct fake_net *net)
{
	memset(net, 0, sizeof(*net));
	net->loop = pvr_loop_create();
	assert_non_null(net->loop);
}

struct pvr_directory *fake_net_try(struct fake_net *net,
				   const struct pvr_directory_settings *settings,
				   struct pvr_error *err)
{
	const struct pvr_directory_env env = {
		.loop = net->loop,
		.name = "self",
		.address = "192.0.2.99:7471",
		.set_gid = set_gid,
		.check_peer = check_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = want,
		.state = state,
		.is_up = is_up,
		.rules_changed = rules_changed,
		.log = log_line,
		.opaque = net,
	};

	net->directory = pvr_directory_create(&env, settings, err);
	return net->directory;
}

void fake_net_start(struct fake_net *net, const char *peers, struct pvr_directory_settings settings)
{
	struct pvr_error err = { "" };

	fake_net_init(net);
	if (peers) {
		text_file_create(net->path, peers);
		settings.peers_file = net->path;
	}
	if (!fake_net_try(net, &settings, &err))
		fail_msg("%s", err.text);
}

void fake_net_exit(struct fake_net *net)
{
	if (net->path[0])
		unlink(net->path);
	pvr_directory_destroy(net->directory);
	pvr_loop_destroy(net->loop);
}

void fake_host_up(struct fake_net *net, const char *name, bool up)
{
	fake_host(net, name)->up = up;
	pvr_directory_changed(net->directory, name, up);
}

void fake_key(struct pvr_key *key, const char *fabric, const char *gid)
{
	uint8_t binary[16];

	assert_int_equal(inet_pton(AF_INET6, gid, binary), 1);
	assert_true(pvr_key_init(key, fabric, binary));
}

void fake_host_add(struct fake_net *net, const char *name, const char *fabric, const char *gid)
{
	struct fake_host *host = fake_host(net, name);

	assert_true(host->num_has < FAKE_GIDS);
	fake_key(&host->has[host->num_has++], fabric, gid);
}

void fake_host_remove(struct fake_net *net, const char *name, const char *fabric, const char *gid)
{
	struct fake_host *host = fake_host(net, name);
	struct pvr_key key;
	size_t i;

	fake_key(&key, fabric, gid);
	i = index_of(host, &key);
	assert_true(i < host->num_has);
	host->has[i] = host->has[--host->num_has];
}

void fake_resolve(struct fake_net *net, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	pvr_directory_resolve(net->directory, fabric, key.gid);
}

void fake_located(struct fake_net *net, const char *host, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	pvr_directory_located(net->directory, host, fabric, key.gid, PVR_GID_TYPE_ROCE_V2);
}

void fake_doubt(struct fake_net *net, const char *host, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	pvr_directory_doubt(net->directory, host, fabric, key.gid);
}

void fake_moved(struct fake_net *net, const char *host, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	pvr_directory_moved(net->directory, host, fabric, key.gid);
}

void fake_handed_over(struct fake_net *net, const char *host, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	pvr_directory_handed_over(net->directory, host, fabric, key.gid);
}

struct fake_gid *fake_gid(struct fake_net *net, const char *fabric, const char *gid)
{
	struct pvr_key key;

	fake_key(&key, fabric, gid);
	return find_gid(net, &key);
}

bool fake_is_at(struct fake_net *net, const char *fabric, const char *gid, const char *host)
{
	struct fake_gid *known = fake_gid(net, fabric, gid);
	size_t i;

	for (i = 0; known && known->state == PVR_GID_AT_HOST && i < known->num_hosts; i++) {
		if (!strcmp(known->hosts[i], host))
			return true;
	}
	return false;
}

bool fake_is_nowhere(struct fake_net *net, const char *fabric, const char *gid)
{
	struct fake_gid *known = fake_gid(net, fabric, gid);

	return known && known->state == PVR_GID_ABSENT;
}

bool fake_is_unknown(struct fake_net *net, const char *fabric, const char *gid)
{
	struct fake_gid *known = fake_gid(net, fabric, gid);

	return known && known->state == PVR_GID_UNKNOWN;
}

void fake_run(struct fake_net *net, unsigned int ms)
{
	uint64_t end = pvr_loop_now() + ms * PVR_MSEC;

	while (pvr_loop_now() < end) {
		pvr_loop_wait(net->loop, end);
		pvr_loop_dispatch(net->loop);
	}
}
