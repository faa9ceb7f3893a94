// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The directory: queries, messages of hosts, deadlines, log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directory/backend.h"

/* Rate limit of look-ups that guests cause: burst, and sustained rate. */
#define CREDIT_MAX 1024
#define CREDIT_PER_SEC 4096
#define ASKING_MAX 8192
/* Log lines per PVR_RATELIMIT_NS: in general, of refused claims, and of those of a host. */
#define LOG_LINES 20
#define LOG_LINES_REFUSED 20
#define LOG_LINES_HOST 5
#define BATCH 256 /* queue items and due entries per call; then other sources run */

/* --------------------------------------------------------------------------- log */

/* Other hosts and etcd choose parts of a line: a line end or ESC in them has no effect. */
static void escape(char *to, size_t size, const char *from)
{
	size_t len = 0;

	for (; *from && len + sizeof("\\x00") <= size; from++)
		len += (size_t)snprintf(to + len, size - len,
					*from >= ' ' && *from < 0x7f ? "%c" : "\\x%02x",
					(unsigned char)*from);
}

static void write_line(struct pvr_directory *directory, enum pvr_log_level level, const char *fmt,
		       va_list ap)
{
	const struct pvr_directory_env *env = &directory->env;
	static const char before[] = "directory: ";
	char text[600], line[700];

	strcpy(text, before);
	vsnprintf(text + strlen(before), sizeof(text) - strlen(before), fmt, ap);
	escape(line, sizeof(line), text);
	env->log(env->opaque, level, line);
}

__attribute__((format(printf, 3, 4))) static void
write_always(struct pvr_directory *directory, enum pvr_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(directory, level, fmt, ap);
	va_end(ap);
}

void pvr_directory_log(struct pvr_directory *directory, enum pvr_log_level level, const char *fmt,
		       ...)
{
	uint32_t suppressed;
	va_list ap;

	if (!pvr_ratelimit_pass(&directory->ratelimit, LOG_LINES, pvr_loop_now(), &suppressed))
		return;
	if (suppressed)
		write_always(directory, PVR_LOG_WARN, "%u more lines were suppressed", suppressed);
	va_start(ap, fmt);
	write_line(directory, level, fmt, ap);
	va_end(ap);
}

/* One host must not use up the lines of others: first its own limit, then that of all. */
static bool may_log_refusal(struct pvr_directory *directory, const char *name)
{
	struct pvr_dir_host *host = pvr_dir_host_find(directory, name);
	uint64_t now = pvr_loop_now();
	uint32_t suppressed;

	if (host && !pvr_ratelimit_pass(&host->refusals, LOG_LINES_HOST, now, &suppressed))
		return false;
	if (host && suppressed)
		write_always(directory, PVR_LOG_WARN,
			     "%u more refused claims of host %s were not logged", suppressed, name);
	if (!pvr_ratelimit_pass(&directory->refusals, LOG_LINES_REFUSED, now, &suppressed))
		return false;
	if (suppressed)
		write_always(directory, PVR_LOG_WARN, "%u more refused claims were not logged",
			     suppressed);
	return true;
}

void pvr_directory_refuse(struct pvr_directory *directory, const struct pvr_key *key,
			  const char *host, const char *why)
{
	char text[PVR_KEY_TEXT];

	directory->refused++;
	if (may_log_refusal(directory, host))
		write_always(directory, PVR_LOG_WARN, "host %s claims %s: refused, %s", host,
			     pvr_key_text(key, text), why);
}

/* ------------------------------------------------------------------ queries */

static void refill(struct pvr_directory *directory)
{
	uint64_t now = pvr_loop_now();
	uint64_t more = (now - directory->credit_at) / (PVR_SEC / CREDIT_PER_SEC);

	if (!more)
		return;
	directory->credit_at = now;
	directory->credit += more;
	if (directory->credit > CREDIT_MAX)
		directory->credit = CREDIT_MAX;
}

static void request_lookup(struct pvr_directory *directory, const struct pvr_key *key)
{
	struct pvr_entry *entry = pvr_entry_create(directory, key);

	if (!entry)
		return; /* the query will be repeated */
	directory->credit--;
	directory->lookups++;
	directory->ops->lookup(directory, entry);
}

static void question(struct pvr_directory *directory, const struct pvr_key *key)
{
	struct pvr_entry *entry = pvr_entry_find(directory, key);

	if (!entry) {
		request_lookup(directory, key);
		return;
	}
	pvr_entry_touch(directory, entry);
	pvr_entry_notify(directory, entry);
}

static bool may_request_lookup(const struct pvr_directory *directory)
{
	return directory->credit && directory->entries.num[PVR_ENTRY_ASKING] < ASKING_MAX;
}

/* Return: whether more queries may be queued. */
static bool answer_questions(struct pvr_directory *directory)
{
	struct pvr_key key;
	int i;

	refill(directory);
	for (i = 0; i < BATCH && may_request_lookup(directory); i++) {
		if (!pvr_dir_queue_question(&directory->queue, &key))
			return false;
		question(directory, &key);
	}
	if (may_request_lookup(directory))
		return true;
	pvr_directory_rearm(directory); /* run again when there is credit */
	return false;
}

/* -------------------------------------------------------- messages of hosts */

static void located(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_entry *entry = pvr_entry_find(directory, &news->key);
	struct pvr_dir_host *host = pvr_dir_host_find(directory, news->host);

	/* No query for it is open, or this host was not queried. */
	if (entry && host)
		directory->ops->located(directory, entry, host, news->type);
}

static void moved(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_entry *entry = pvr_entry_find(directory, &news->key);
	struct pvr_dir_host *host = pvr_dir_host_find(directory, news->host);

	if (!entry || !host || (entry->owner != host && !pvr_entry_has_member(entry, host)))
		return; /* the cache does not hold this */
	directory->ops->moved(directory, entry, host);
}

static void release_need(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	if (!host || !host->needs)
		return;
	host->needs--;
	pvr_dir_host_put(directory, host);
}

/*
 * The engine knows the host by another one, or as the one that has taken an adapter. It is needed
 * until PVR_STRANGERS others are wanted.
 */
static void need_stranger(struct pvr_directory *directory, const char *name)
{
	char *place = directory->strangers[directory->next_stranger % PVR_STRANGERS];
	struct pvr_dir_host *host;

	if (!directory->ops->host_needed || !may_request_lookup(directory) ||
	    !strcmp(name, directory->env.name))
		return;
	directory->credit--;
	directory->next_stranger++;
	release_need(directory, pvr_dir_host_find(directory, place));
	place[0] = '\0';
	host = pvr_dir_host_get(directory, name);
	if (!host)
		return; /* too many */
	strcpy(place, name);
	host->needs++;
	directory->ops->host_needed(directory, host);
}

/*
 * An absence is older. What is being looked up may have been read before. Peers are referred to the
 * host, and it may be unreachable by the directory when they ask for its address.
 */
static void handed_over(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_entry *entry = pvr_entry_find(directory, &news->key);

	if (entry && !entry->owner && !entry->num_members)
		pvr_entry_forget(directory, entry);
	if (!pvr_dir_host_find(directory, news->host))
		need_stranger(directory, news->host);
}

static void wanted(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_dir_host *host = pvr_dir_host_find(directory, news->host);

	if (!host)
		need_stranger(directory, news->host);
	else if (!host->up && directory->ops->host_wanted)
		directory->ops->host_wanted(directory, host);
}

static void doubted(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_entry *entry = pvr_entry_find(directory, &news->key);
	struct pvr_dir_host *host = pvr_dir_host_find(directory, news->host);

	if (entry && host && entry->owner && entry->owner != host && directory->ops->doubted)
		directory->ops->doubted(directory, entry, host);
}

static void needed(struct pvr_directory *directory, const struct pvr_news *news)
{
	struct pvr_dir_host *host;

	if (!strcmp(news->host, directory->env.name))
		return;
	host = pvr_dir_host_get(directory, news->host);
	if (!host)
		return; /* too many */
	host->needs++;
	directory->ops->host_needed(directory, host);
}

static void unneeded(struct pvr_directory *directory, const struct pvr_news *news)
{
	release_need(directory, pvr_dir_host_find(directory, news->host));
}

static void referred(struct pvr_directory *directory, const struct pvr_news *news)
{
	if (strcmp(news->host, directory->env.name))
		directory->ops->referred(directory, news->host, news->address);
}

static void (*const news_handlers[PVR_NEWS_KINDS])(struct pvr_directory *directory,
						   const struct pvr_news *news) = {
	[PVR_NEWS_LOCATED] = located,	      [PVR_NEWS_MOVED] = moved,
	[PVR_NEWS_HANDED_OVER] = handed_over, [PVR_NEWS_WANTED] = wanted,
	[PVR_NEWS_DOUBT] = doubted,	      [PVR_NEWS_REFERRED] = referred,
	[PVR_NEWS_NEEDED] = needed,	      [PVR_NEWS_UNNEEDED] = unneeded,
};

/* Return: whether more messages may be queued. */
static bool read_news(struct pvr_directory *directory)
{
	struct pvr_news news;
	int i;

	for (i = 0; i < BATCH; i++) {
		if (!pvr_dir_queue_news(&directory->queue, &news))
			return false;
		news_handlers[news.kind](directory, &news);
	}
	return true;
}

static void queue_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_directory *directory =
		pvr_container_of(source, struct pvr_directory, queue.source);
	bool more;

	pvr_dir_queue_begin(&directory->queue);
	more = read_news(directory);
	more |= answer_questions(directory);
	if (directory->ops->own_changed)
		directory->ops->own_changed(directory);
	if (directory->ops->claims_changed)
		directory->ops->claims_changed(directory);
	if (more)
		pvr_loop_again(source);
}

/* ---------------------------------------------------------------- deadlines */

static void entry_is_due(struct pvr_directory *directory, struct pvr_entry *entry)
{
	enum pvr_due due = entry->due;

	pvr_entry_set_due(directory, entry, PVR_DUE_NEVER);
	if (due == PVR_DUE_ABSENT)
		pvr_entry_forget(directory, entry);
	else
		directory->ops->due(directory, entry, due);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_directory *directory = pvr_container_of(timer, struct pvr_directory, timer);
	uint64_t now = pvr_loop_now(), next;
	struct pvr_entry *entry;
	int i;

	for (i = 0; i < BATCH && (entry = pvr_entry_next_due(directory, now, &next)); i++)
		entry_is_due(directory, entry);
	if (answer_questions(directory))
		pvr_loop_again(&directory->queue.source);
	pvr_directory_rearm(directory);
}

void pvr_directory_rearm(struct pvr_directory *directory)
{
	uint64_t now = pvr_loop_now(), next = PVR_NEVER;

	if (pvr_entry_next_due(directory, now, &next))
		next = now;
	if (!may_request_lookup(directory) && next > now + 10 * PVR_MSEC)
		next = now + 10 * PVR_MSEC;
	if (next == PVR_NEVER)
		pvr_loop_timer_disarm(&directory->timer);
	else
		pvr_loop_timer_arm(directory->env.loop, &directory->timer, next - now);
}

/* --------------------------------------------------- calls of other threads */

void pvr_directory_resolve(struct pvr_directory *directory, const char *fabric,
			   const uint8_t gid[16])
{
	struct pvr_key key;

	if (pvr_key_init(&key, fabric, gid))
		pvr_dir_queue_lookup(&directory->queue, NULL, &key);
}

void pvr_directory_resolve_for(struct pvr_directory *directory, const char *host,
			       const char *fabric, const uint8_t gid[16])
{
	struct pvr_key key;

	if (pvr_key_init(&key, fabric, gid))
		pvr_dir_queue_lookup(&directory->queue, host, &key);
}

void pvr_directory_announce(struct pvr_directory *directory, const char *fabric,
			    const uint8_t gid[16], uint8_t type, const uint8_t mac[6], bool present)
{
	struct pvr_key key;

	if (!directory->ops->own_changed || !pvr_key_init(&key, fabric, gid))
		return;
	pvr_own_gids_set(&directory->own, &key, type, mac, present);
	pvr_dir_queue_wake(&directory->queue);
}

static void queue_news(struct pvr_directory *directory, enum pvr_news_kind kind, const char *host,
		       const char *fabric, const uint8_t gid[16], uint8_t type)
{
	struct pvr_key key;

	if (pvr_key_init(&key, fabric, gid))
		pvr_dir_queue_add_news(&directory->queue, kind, host, &key, type);
}

void pvr_directory_located(struct pvr_directory *directory, const char *host, const char *fabric,
			   const uint8_t gid[16], uint8_t type)
{
	queue_news(directory, PVR_NEWS_LOCATED, host, fabric, gid, type);
}

void pvr_directory_moved(struct pvr_directory *directory, const char *host, const char *fabric,
			 const uint8_t gid[16])
{
	queue_news(directory, PVR_NEWS_MOVED, host, fabric, gid, 0);
}

void pvr_directory_handed_over(struct pvr_directory *directory, const char *host,
			       const char *fabric, const uint8_t gid[16])
{
	queue_news(directory, PVR_NEWS_HANDED_OVER, host, fabric, gid, 0);
}

void pvr_directory_doubt(struct pvr_directory *directory, const char *host, const char *fabric,
			 const uint8_t gid[16])
{
	if (directory->ops->doubted)
		queue_news(directory, PVR_NEWS_DOUBT, host, fabric, gid, 0);
}

void pvr_directory_need(struct pvr_directory *directory, const char *host, bool needs)
{
	if (directory->ops->host_needed)
		pvr_dir_queue_add_news(&directory->queue,
				       needs ? PVR_NEWS_NEEDED : PVR_NEWS_UNNEEDED, host, NULL, 0);
}

void pvr_directory_refer(struct pvr_directory *directory, const char *host, const char *address)
{
	if (directory->ops->referred)
		pvr_dir_queue_refer(&directory->queue, host, address);
}

void pvr_directory_wanted(struct pvr_directory *directory, const char *host)
{
	pvr_dir_queue_add_news(&directory->queue, PVR_NEWS_WANTED, host, NULL, 0);
}

enum pvr_claim pvr_directory_claim(struct pvr_directory *directory,
				   const struct pvr_state_claim *claim)
{
	if (!directory->ops->claims_changed)
		return PVR_CLAIM_NONE;
	return pvr_dir_queue_add_claim(&directory->queue, claim) ? PVR_CLAIM_ASKED
								 : PVR_CLAIM_FAILED;
}

/* ------------------------------------------------------ calls of the daemon */

void pvr_directory_changed(struct pvr_directory *directory, const char *name, bool up)
{
	struct pvr_dir_host *host = pvr_dir_host_find(directory, name);

	if (!host)
		return;
	host->up = up;
	if (directory->ops->host_changed)
		directory->ops->host_changed(directory, host);
}

static bool is_allowed(struct pvr_directory *directory, const struct pvr_entry *entry)
{
	const struct pvr_key *key = &entry->node.key;
	size_t i;

	for (i = 0; i < entry->num_members; i++) {
		if (!pvr_directory_allows(directory, entry->members[i].host->name, key))
			return false;
	}
	return !entry->owner || pvr_directory_allows(directory, entry->owner->name, key);
}

static void use_policy(struct pvr_directory *directory, struct pvr_peers_file *policy)
{
	struct pvr_peers_file before = directory->policy;
	struct pvr_entry *entry, *next;

	pthread_mutex_lock(&directory->rules_lock);
	directory->policy = *policy;
	pthread_mutex_unlock(&directory->rules_lock);
	pvr_peers_file_free(&before);
	for (entry = TAILQ_FIRST(&directory->entries.used); entry; entry = next) {
		next = TAILQ_NEXT(entry, used);
		if (!is_allowed(directory, entry))
			pvr_entry_forget(directory, entry);
	}
	if (directory->env.rules_changed)
		directory->env.rules_changed(directory->env.opaque);
}

bool pvr_directory_may_have(struct pvr_directory *directory, const char *host, const char *fabric,
			    const uint8_t gid[16])
{
	struct pvr_key key;
	bool may;

	if (!pvr_key_init(&key, fabric, gid))
		return false;
	pthread_mutex_lock(&directory->rules_lock);
	may = pvr_directory_allows(directory, host, &key) &&
	      (!directory->ops->may_have || directory->ops->may_have(directory, host, &key));
	pthread_mutex_unlock(&directory->rules_lock);
	return may;
}

bool pvr_directory_reload(struct pvr_directory *directory, struct pvr_directory_files *files,
			  struct pvr_error *err)
{
	struct pvr_peers_file policy = { .num = 0 };

	*files = (struct pvr_directory_files){ .policy = directory->policy_path };
	if (files->policy && !pvr_policy_file_read(&policy, files->policy, err))
		return false;
	if (directory->ops->reload && !directory->ops->reload(directory, files, err)) {
		pvr_peers_file_free(&policy);
		return false;
	}
	files->num_policy = policy.num;
	use_policy(directory, &policy);
	return true;
}

void pvr_directory_leave(struct pvr_directory *directory)
{
	if (directory && directory->ops->leave)
		directory->ops->leave(directory);
}

void pvr_directory_get_stats(struct pvr_directory *directory, struct pvr_directory_stats *stats)
{
	*stats = (struct pvr_directory_stats){
		.backend = directory->ops->name,
		.entries = directory->entries.table.count,
		.hosts = directory->hosts.count,
		.own = pvr_own_gids_num(&directory->own),
		.lookups = directory->lookups,
		.refused = directory->refused,
		.dropped = __atomic_load_n(&directory->queue.dropped, __ATOMIC_RELAXED),
	};
	if (directory->ops->stats)
		directory->ops->stats(directory, stats);
}

static void set_delays(uint64_t delay[PVR_DUES], const struct pvr_directory_timing *timing)
{
	delay[PVR_DUE_ROUND] = timing->round ? timing->round : 150 * PVR_MSEC;
	delay[PVR_DUE_ABSENT] = timing->absent ? timing->absent : PVR_SEC;
	delay[PVR_DUE_GROUP] = timing->group ? timing->group : 2 * PVR_SEC;
	delay[PVR_DUE_FOUND] = timing->found ? timing->found : 30 * PVR_SEC;
	delay[PVR_DUE_VERIFY] = timing->verify ? timing->verify : 2 * PVR_SEC;
}

static bool init(struct pvr_directory *directory, const struct pvr_directory_settings *settings,
		 struct pvr_error *err)
{
	int ret = pvr_dir_queue_init(&directory->queue, directory->env.loop, queue_ready);

	if (ret)
		return pvr_fail(err, "cannot make the directory: %s", strerror(-ret));
	if (!pvr_own_gids_init(&directory->own) ||
	    !pvr_entries_init(&directory->entries,
			      settings->cache ? settings->cache : PVR_DIRECTORY_CACHE))
		return pvr_fail(err, "out of memory");
	if (settings->policy_file) {
		directory->policy_path = strdup(settings->policy_file);
		if (!directory->policy_path)
			return pvr_fail(err, "out of memory");
		if (!pvr_policy_file_read(&directory->policy, directory->policy_path, err))
			return false;
	}
	set_delays(directory->entries.delay, &settings->timing);
	directory->credit = CREDIT_MAX;
	directory->credit_at = pvr_loop_now();
	directory->timer.expired = timer_expired;
	return directory->ops->create(directory, settings, err);
}

struct pvr_directory *pvr_directory_create(const struct pvr_directory_env *env,
					   const struct pvr_directory_settings *settings,
					   struct pvr_error *err)
{
	struct pvr_directory *directory = calloc(1, sizeof(*directory));

	if (!directory) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&directory->rules_lock, NULL);
	directory->env = *env;
	snprintf(directory->name, sizeof(directory->name), "%s", env->name);
	snprintf(directory->address, sizeof(directory->address), "%s", env->address);
	directory->env.name = directory->name;
	directory->env.address = directory->address;
	directory->ops = settings->etcd ? &pvr_directory_etcd : &pvr_directory_static;
	if (init(directory, settings, err))
		return directory;
	pvr_directory_destroy(directory);
	return NULL;
}

void pvr_directory_destroy(struct pvr_directory *directory)
{
	if (!directory)
		return;
	directory->ending = true;
	pvr_entries_exit(directory);
	pvr_dir_hosts_exit(directory);
	if (directory->backend)
		directory->ops->destroy(directory);
	pvr_loop_timer_disarm(&directory->timer);
	pvr_own_gids_exit(&directory->own);
	pvr_dir_queue_exit(&directory->queue);
	pvr_peers_file_free(&directory->policy);
	free(directory->policy_path);
	pthread_mutex_destroy(&directory->rules_lock);
	free(directory);
}
