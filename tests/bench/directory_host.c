// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One host's directory without a daemon, for tests and measurements.
 *
 * Takes the settings of etcd and of the peers file as arguments (KEY=VALUE) and commands from stdin. Prints the
 * calls of the directory to the engine and to the peers, one per line:
 *
 * 	resolve FABRIC GID			set FABRIC GID GID_QUERY TYPE [HOST]
 * 	announce FABRIC GID TYPE 0|1		peer HOST ADDRESS, forget HOST, want HOST
 * 	moved HOST FABRIC GID			where HOST FABRIC GID
 * 	located HOST FABRIC GID TYPE		log LEVEL TEXT
 * 	up HOST, down HOST, wanted HOST, reload, leave
 * 	need HOST 0|1, refer HOST ADDRESS
 * 	stats					stats JSON
 * 	claim FABRIC MAC TOKEN LIFE 0|1 LOAD	claimed MAC won|stale|lost|failed DETAIL
 * 	many FABRIC FIRST COUNT			many JSON, when all have been found
 * 	spread FABRIC FIRST COUNT		the same, one after the other
 *
 * GIDs of `many` are fd00::NUMBER. MAC and TOKEN are hexadecimal digits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "directory/directory.h"
#include "directory/etcd_settings.h"

#define WINDOW 100 /* concurrent queries of `many`: less than a lane of the queue */

struct many {
	char fabric[PVR_NAME_MAX];
	uint32_t first, count, sent, found, missing, window;
	uint64_t begin, *queried_at, *took;
};

static struct {
	struct pvr_source in;
	struct pvr_loop *loop;
	struct pvr_directory *directory;
	struct pvr_loop_timer retry;
	struct many many;
	char up[64][PVR_HOST_NAME_MAX];
	size_t num_up;
	char known[64][PVR_HOST_NAME_MAX]; /* with an address */
	size_t num_known;
	char text[65536];
	size_t len;
	bool silent, end;
} host;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static const char *gid_text(const uint8_t gid[16])
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET6, gid, text, sizeof(text));
}

/* --------------------------------------------------------------------- many at a time */

/* Queries the GID of an index of host.many. */
static void resolve(uint32_t i)
{
	const uint32_t number = htonl(host.many.first + i);
	uint8_t gid[16] = { 0xfd };

	memcpy(gid + 12, &number, sizeof(number));
	pvr_directory_resolve(host.directory, host.many.fabric, gid);
}

static void resolve_more(void)
{
	struct many *many = &host.many;

	while (many->sent < many->count && many->sent - many->found < many->window) {
		many->queried_at[many->sent] = pvr_loop_now();
		resolve(many->sent++);
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void end_many(void)
{
	struct many *many = &host.many;

	qsort(many->took, many->count, sizeof(*many->took), by_size);
	say("many {\"count\":%u,\"missing\":%u,\"seconds\":%.6f,\"median\":%.9f,\"p99\":%.9f,"
	    "\"min\":%.9f,\"max\":%.9f}",
	    many->count, many->missing, (double)(pvr_loop_now() - many->begin) / 1e9,
	    (double)many->took[many->count / 2] / 1e9,
	    (double)many->took[many->count - 1 - many->count / 100] / 1e9,
	    (double)many->took[0] / 1e9, (double)many->took[many->count - 1] / 1e9);
	free(many->queried_at);
	free(many->took);
	memset(many, 0, sizeof(*many));
	host.silent = false;
}

/* Queries may have been dropped: repeats those without a response. */
static void retry_expired(struct pvr_loop_timer *timer)
{
	uint32_t i;

	for (i = 0; i < host.many.sent; i++)
		if (!host.many.took[i])
			resolve(i);
	if (host.many.count)
		pvr_loop_timer_arm(host.loop, timer, PVR_SEC);
}

static void note_many(const struct pvr_key *key, enum pvr_gid_state state)
{
	struct many *many = &host.many;
	uint32_t big, i;

	memcpy(&big, key->gid + 12, sizeof(big));
	i = ntohl(big) - many->first;
	if (!many->count || i >= many->sent || many->took[i] || state == PVR_GID_UNKNOWN)
		return;
	many->took[i] = pvr_loop_now() - many->queried_at[i];
	many->missing += state != PVR_GID_AT_HOST;
	if (++many->found == many->count)
		end_many();
	else
		resolve_more();
}

static void run_many(const char *fabric, uint32_t first, uint32_t count, uint32_t window)
{
	struct many *many = &host.many;

	*many = (struct many){ .first = first, .count = count, .window = window };
	snprintf(many->fabric, sizeof(many->fabric), "%s", fabric);
	many->queried_at = calloc(count, sizeof(*many->queried_at));
	many->took = calloc(count, sizeof(*many->took));
	if (!many->queried_at || !many->took)
		abort();
	host.silent = true;
	many->begin = pvr_loop_now();
	pvr_loop_timer_arm(host.loop, &host.retry, PVR_SEC);
	resolve_more();
}

/* -------------------------------------------------------------- the directory's world */

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *name)
{
	static const char *const names[] = {
		[PVR_GID_UNKNOWN] = "unknown",	    [PVR_GID_ABSENT] = "nowhere",
		[PVR_GID_AT_HOST] = "remote",	    [PVR_GID_AT_HOST_MORE] = "remote",
		[PVR_GID_LEFT_HOST] = "not-remote",
	};

	if (!host.silent)
		say("set %s %s %s %u %s", key->fabric, gid_text(key->gid), names[state], type,
		    name ? name : "");
	note_many(key, state);
	return 0;
}

static bool check_peer(void *opaque, const char *name, const char *address, struct pvr_error *err)
{
	return true;
}

static size_t find_known(const char *name)
{
	size_t i;

	for (i = 0; i < host.num_known && strcmp(host.known[i], name); i++)
		;
	return i;
}

static bool set_peer(void *opaque, const char *name, const char *address, struct pvr_error *err)
{
	size_t i = find_known(name);

	if (!host.silent)
		say("peer %s %s", name, address);
	if (!strcmp(address, "nonsense"))
		return pvr_fail(err, "address 'nonsense' is none");
	if (i == host.num_known && i < sizeof(host.known) / sizeof(host.known[0]))
		snprintf(host.known[host.num_known++], sizeof(host.known[0]), "%s", name);
	return true;
}

static void forget_peer(void *opaque, const char *name)
{
	size_t i = find_known(name);

	if (!host.silent)
		say("forget %s", name);
	if (i < host.num_known)
		memmove(host.known[i], host.known[--host.num_known], sizeof(host.known[0]));
}

static bool want(void *opaque, const char *name)
{
	if (!host.silent)
		say("want %s", name);
	return find_known(name) < host.num_known;
}

static size_t find_up(const char *name)
{
	size_t i;

	for (i = 0; i < host.num_up && strcmp(host.up[i], name); i++)
		;
	return i;
}

static bool is_up(void *opaque, const char *name)
{
	return find_up(name) < host.num_up;
}

static bool state(void *opaque, const char *name, const struct pvr_key *key)
{
	say("where %s %s %s", name, key->fabric, gid_text(key->gid));
	return is_up(opaque, name);
}

static void claimed(void *opaque, const struct pvr_state_claim *claim, enum pvr_claim result,
		    const char *detail)
{
	static const char *const names[] = {
		[PVR_CLAIM_WON] = "won",
		[PVR_CLAIM_STALE] = "stale",
		[PVR_CLAIM_LOST] = "lost",
		[PVR_CLAIM_FAILED] = "failed",
	};
	const uint8_t *mac = claim->mac;

	say("claimed %02x%02x%02x%02x%02x%02x %s %s", mac[0], mac[1], mac[2], mac[3], mac[4],
	    mac[5], names[result], detail);
}

static void log_line(void *opaque, enum pvr_log_level level, const char *text)
{
	say("log %u %s", level, text);
}

/* ---------------------------------------------------------------------------- commands */

static void set_up(const char *name, bool up)
{
	size_t i = find_up(name);

	if (up && i == host.num_up && i < sizeof(host.up) / sizeof(host.up[0]))
		snprintf(host.up[host.num_up++], sizeof(host.up[0]), "%s", name);
	else if (!up && i < host.num_up)
		memmove(host.up[i], host.up[--host.num_up], sizeof(host.up[0]));
	pvr_directory_changed(host.directory, name, up);
}

static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size = 0, pages = 0;

	if (file && fscanf(file, "%ld %ld", &size, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void say_stats(void)
{
	struct pvr_directory_stats s;

	pvr_directory_get_stats(host.directory, &s);
	say("stats {\"backend\":\"%s\",\"entries\":%zu,\"hosts\":%zu,\"own\":%zu,\"lookups\":%lu,"
	    "\"refused\":%lu,\"dropped\":%lu,\"url\":\"%s\",\"connected\":%d,\"registered\":%d,"
	    "\"watches\":%zu,\"requests\":%lu,\"failures\":%lu,\"events\":%lu,\"tx_bytes\":%lu,"
	    "\"rx_bytes\":%lu,\"rss\":%ld,\"cpu\":%.3f}",
	    s.backend, s.entries, s.hosts, s.own, s.lookups, s.refused, s.dropped,
	    s.url ? s.url : "", s.connected, s.registered, s.watches, s.requests, s.failures,
	    s.events, s.tx_bytes, s.rx_bytes, resident(), (double)clock() / CLOCKS_PER_SEC);
}

static void run_gid_command(const char *command, char **args, int num)
{
	/* Index of the GID in the arguments, behind its fabric. */
	int at = !strcmp(command, "moved") || !strcmp(command, "located") ? 2 : 1;
	uint8_t gid[16], type, mac[6] = { 2, 0, 0, 0, 0, 1 };

	if (num <= at || inet_pton(AF_INET6, args[at], gid) != 1) {
		say("bad %s", command);
		return;
	}
	type = num > at + 1 ? (uint8_t)atoi(args[at + 1]) : 0;
	if (!strcmp(command, "resolve"))
		pvr_directory_resolve(host.directory, args[0], gid);
	else if (!strcmp(command, "announce"))
		pvr_directory_announce(host.directory, args[0], gid, type, mac,
				       num > 3 && atoi(args[3]));
	else if (!strcmp(command, "moved"))
		pvr_directory_moved(host.directory, args[0], args[1], gid);
	else
		pvr_directory_located(host.directory, args[0], args[1], gid, type);
}

static void from_hex(uint8_t *to, size_t size, const char *text)
{
	size_t i;

	for (i = 0; i < size && sscanf(text + 2 * i, "%2hhx", &to[i]) == 1; i++)
		;
}

static void run_claim(char **args)
{
	struct pvr_state_claim claim = { .life = (uint32_t)atol(args[3]),
					 .waits = atoi(args[4]),
					 .load = strtoull(args[5], NULL, 0) };

	snprintf(claim.fabric, sizeof(claim.fabric), "%s", args[0]);
	from_hex(claim.mac, sizeof(claim.mac), args[1]);
	from_hex(claim.token, sizeof(claim.token), args[2]);
	if (pvr_directory_claim(host.directory, &claim) == PVR_CLAIM_NONE)
		say("claimed %s by itself", args[1]);
}

static void reload(void)
{
	struct pvr_error err;
	struct pvr_directory_files files;

	if (!pvr_directory_reload(host.directory, &files, &err))
		say("log %u %s", PVR_LOG_ERR, err.text);
}

static void run_command(char *line)
{
	char *args[8], *command = strsep(&line, " ");
	int num = 0;

	while (num < 8 && (args[num] = strsep(&line, " ")))
		num++;
	if (!strcmp(command, "stats"))
		say_stats();
	else if (!strcmp(command, "reload"))
		reload();
	else if (!strcmp(command, "leave"))
		host.end = true;
	else if (num == 1 && !strcmp(command, "wanted"))
		pvr_directory_wanted(host.directory, args[0]);
	else if (num == 1)
		set_up(args[0], !strcmp(command, "up"));
	else if (num == 2 && !strcmp(command, "need"))
		pvr_directory_need(host.directory, args[0], atoi(args[1]));
	else if (num == 2 && !strcmp(command, "refer"))
		pvr_directory_refer(host.directory, args[0], args[1]);
	else if (num == 6 && !strcmp(command, "claim"))
		run_claim(args);
	else if (num == 3 && (!strcmp(command, "many") || !strcmp(command, "spread")))
		run_many(args[0], (uint32_t)atol(args[1]), (uint32_t)atol(args[2]),
			 *command == 'm' ? WINDOW : 1);
	else
		run_gid_command(command, args, num);
}

static void in_ready(struct pvr_source *source, uint32_t events)
{
	ssize_t n = read(source->fd, host.text + host.len, sizeof(host.text) - host.len);
	char *line = host.text, *end;

	if (n <= 0) {
		host.end = n == 0 || errno != EAGAIN;
		return;
	}
	host.len += (size_t)n;
	while ((end = memchr(line, '\n', host.len))) {
		*end++ = '\0';
		host.len -= (size_t)(end - line);
		run_command(line);
		line = end;
	}
	memmove(host.text, line, host.len);
}

/* Replaces the daemon's options. */
static bool parse(int argc, char **argv, struct pvr_directory_env *env,
		  struct pvr_directory_settings *settings, struct pvr_etcd_settings *etcd,
		  struct pvr_error *err)
{
	bool insecure = false;
	char *value;
	int i;

	for (i = 1; i < argc; i++) {
		value = strchr(argv[i], '=');
		if (!value)
			return pvr_fail(err, "'%s' is not KEY=VALUE", argv[i]);
		*value++ = '\0';
		if (!strcmp(argv[i], "name"))
			env->name = value;
		else if (!strcmp(argv[i], "address"))
			env->address = value;
		else if (!strcmp(argv[i], "peers"))
			settings->peers_file = value;
		else if (!strcmp(argv[i], "policy"))
			settings->policy_file = value;
		else if (!strcmp(argv[i], "insecure"))
			insecure = !strcmp(value, "on");
		else if (!strcmp(argv[i], "cache"))
			settings->cache = strtoul(value, NULL, 10);
		else if (!pvr_etcd_settings_set(etcd, argv[i], value, err))
			return false;
	}
	settings->etcd = etcd->num_urls ? etcd : NULL;
	return pvr_etcd_settings_check(etcd, insecure, err);
}

static void serve(void)
{
	host.in.fd = STDIN_FILENO;
	host.in.ready = in_ready;
	host.retry.expired = retry_expired;
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	pvr_loop_add(host.loop, &host.in, EPOLLIN);
	say("ready");
	while (!host.end) {
		pvr_loop_wait(host.loop, PVR_NEVER);
		pvr_loop_dispatch(host.loop);
	}
	pvr_directory_leave(host.directory);
}

int main(int argc, char **argv)
{
	struct pvr_directory_env env = {
		.name = "self",
		.address = "",
		.set_gid = set_gid,
		.check_peer = check_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = want,
		.state = state,
		.is_up = is_up,
		.claimed = claimed,
		.log = log_line,
	};
	static struct pvr_etcd_settings etcd;
	struct pvr_directory_settings settings = { .peers_file = NULL };
	struct pvr_error err;

	host.loop = env.loop = pvr_loop_create();
	if (parse(argc, argv, &env, &settings, &etcd, &err))
		host.directory = pvr_directory_create(&env, &settings, &err);
	if (host.directory)
		serve();
	else
		say("error %s", err.text);
	pvr_directory_destroy(host.directory);
	pvr_loop_destroy(host.loop);
	return host.directory ? 0 : 1;
}
