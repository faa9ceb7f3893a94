// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A simulated etcd. */
#include "etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define OPERATIONS_MAX 128 /* of a transaction, as by default */
#define NOT_FOUND 5
#define INVALID 3

struct key {
	TAILQ_ENTRY(key) link;
	char *name, *value;
	uint64_t created, changed, version, lease;
};

/* In the order of their names. */
TAILQ_HEAD(key_list, key);

struct lease {
	TAILQ_ENTRY(lease) link;
	uint64_t id, seconds;
	uint64_t deadline; /* ns */
};

TAILQ_HEAD(lease_list, lease);

/* A change in the history; of a deleted key only name and revision. */
struct change {
	TAILQ_ENTRY(change) link;
	struct key key; /* key.changed is the revision */
	bool deleted;
};

TAILQ_HEAD(change_list, change);

struct data {
	struct key_list keys;
	struct lease_list leases;
	struct change_list history; /* from @compacted on, the oldest first */
	uint64_t revision, compacted;
};

struct watch {
	TAILQ_ENTRY(watch) link;
	uint64_t id, next; /* the revision that it has not seen */
	char key[PVR_ETCD_KEY_MAX], end[PVR_ETCD_KEY_MAX];
};

struct sim_etcd_stream {
	TAILQ_ENTRY(sim_etcd_stream) link;
	struct sim_etcd *etcd;
	TAILQ_HEAD(, watch) watches;
	void (*line)(void *opaque, const char *text, size_t len);
	void *opaque;
};

struct sim_etcd {
	struct sim *sim;
	struct pvr_loop *loop;
	struct pvr_loop_timer timer; /* for the next lease that ends */
	struct data data, backup;
	bool has_backup, stopped, has_lost;
	uint64_t cluster, term;
	uint64_t writes; /* revision of the present transaction; 0: it has changed nothing */
	TAILQ_HEAD(, sim_etcd_stream) streams;
	struct sim_rng rng; /* numbers of leases and clusters */
};

/* --------------------------------------------------------------------------- data */

static void *new_object(size_t size)
{
	void *object = calloc(1, size);

	if (!object)
		fg_die("no memory for etcd");
	return object;
}

static char *copy_of(const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		fg_die("no memory for etcd");
	return copy;
}

static struct key copy_of_key(const struct key *key)
{
	struct key copy = *key;

	copy.name = copy_of(key->name);
	copy.value = copy_of(key->value);
	return copy;
}

static void free_key(struct key *key)
{
	free(key->name);
	free(key->value);
}

static void data_init(struct data *data)
{
	TAILQ_INIT(&data->keys);
	TAILQ_INIT(&data->leases);
	TAILQ_INIT(&data->history);
	data->revision = 1;
	data->compacted = 0;
}

/* Before @revision. */
static void forget_history(struct data *data, uint64_t revision)
{
	struct change *change;

	while ((change = TAILQ_FIRST(&data->history)) && change->key.changed < revision) {
		TAILQ_REMOVE(&data->history, change, link);
		free_key(&change->key);
		free(change);
	}
}

static void data_exit(struct data *data)
{
	struct lease *lease;
	struct key *key;

	forget_history(data, UINT64_MAX);
	while ((key = TAILQ_FIRST(&data->keys))) {
		TAILQ_REMOVE(&data->keys, key, link);
		free_key(key);
		free(key);
	}
	while ((lease = TAILQ_FIRST(&data->leases))) {
		TAILQ_REMOVE(&data->leases, lease, link);
		free(lease);
	}
}

static void data_copy(struct data *to, const struct data *from)
{
	struct change *change, *other_change;
	struct lease *lease, *other_lease;
	struct key *key, *other_key;

	data_init(to);
	to->revision = from->revision;
	to->compacted = from->compacted;
	TAILQ_FOREACH(key, &from->keys, link) {
		other_key = new_object(sizeof(*other_key));
		*other_key = copy_of_key(key);
		TAILQ_INSERT_TAIL(&to->keys, other_key, link);
	}
	TAILQ_FOREACH(lease, &from->leases, link) {
		other_lease = new_object(sizeof(*other_lease));
		*other_lease = *lease;
		TAILQ_INSERT_TAIL(&to->leases, other_lease, link);
	}
	TAILQ_FOREACH(change, &from->history, link) {
		other_change = new_object(sizeof(*other_change));
		other_change->deleted = change->deleted;
		other_change->key = copy_of_key(&change->key);
		TAILQ_INSERT_TAIL(&to->history, other_change, link);
	}
}

static struct lease *find_lease(struct sim_etcd *etcd, uint64_t id)
{
	struct lease *lease;

	TAILQ_FOREACH(lease, &etcd->data.leases, link)
		if (lease->id == id)
			break;
	return lease;
}

/* Return: the first key that is not before @name. */
static struct key *first_key(const struct sim_etcd *etcd, const char *name)
{
	struct key *key;

	TAILQ_FOREACH(key, &etcd->data.keys, link)
		if (strcmp(key->name, name) >= 0)
			break;
	return key;
}

static struct key *find_key(const struct sim_etcd *etcd, const char *name)
{
	struct key *key = first_key(etcd, name);

	return key && !strcmp(key->name, name) ? key : NULL;
}

/* -------------------------------------------------------------------------- changes */

/* All changes of a transaction have one revision. */
static uint64_t begin_write(struct sim_etcd *etcd)
{
	if (!etcd->writes)
		etcd->writes = ++etcd->data.revision;
	return etcd->writes;
}

static void note_change(struct sim_etcd *etcd, const struct key *key, bool deleted)
{
	struct change *change = new_object(sizeof(*change));

	change->deleted = deleted;
	change->key = copy_of_key(key);
	change->key.changed = etcd->writes;
	TAILQ_INSERT_TAIL(&etcd->data.history, change, link);
}

static void put_key(struct sim_etcd *etcd, const char *name, const char *value, uint64_t lease)
{
	struct key *at = first_key(etcd, name), *key = at;
	uint64_t revision = begin_write(etcd);

	if (!key || strcmp(key->name, name)) {
		key = new_object(sizeof(*key));
		key->name = copy_of(name);
		key->created = revision;
		if (at)
			TAILQ_INSERT_BEFORE(at, key, link);
		else
			TAILQ_INSERT_TAIL(&etcd->data.keys, key, link);
	}
	free(key->value);
	key->value = copy_of(value);
	key->changed = revision;
	key->version++;
	key->lease = lease;
	note_change(etcd, key, false);
}

static void delete_key(struct sim_etcd *etcd, struct key *key)
{
	begin_write(etcd);
	note_change(etcd, key, true);
	TAILQ_REMOVE(&etcd->data.keys, key, link);
	free_key(key);
	free(key);
}

static void end_write(struct sim_etcd *etcd);

static void end_lease(struct sim_etcd *etcd, struct lease *lease)
{
	struct key *key, *next;

	etcd->has_lost = true;
	sim_trace(&etcd->sim->trace, "etcd: lease %" PRIu64 " ends", lease->id);
	for (key = TAILQ_FIRST(&etcd->data.keys); key; key = next) {
		next = TAILQ_NEXT(key, link);
		if (key->lease == lease->id)
			delete_key(etcd, key);
	}
	TAILQ_REMOVE(&etcd->data.leases, lease, link);
	free(lease);
	end_write(etcd);
}

static void arm(struct sim_etcd *etcd)
{
	uint64_t now = pvr_loop_now(), first = PVR_NEVER;
	struct lease *lease;

	TAILQ_FOREACH(lease, &etcd->data.leases, link)
		if (lease->deadline < first)
			first = lease->deadline;
	if (first == PVR_NEVER || etcd->stopped)
		pvr_loop_timer_disarm(&etcd->timer);
	else
		pvr_loop_timer_arm(etcd->loop, &etcd->timer, first > now ? first - now : 0);
}

static void leases_expired(struct pvr_loop_timer *timer)
{
	struct sim_etcd *etcd =
		(struct sim_etcd *)((char *)timer - offsetof(struct sim_etcd, timer));
	struct lease *lease, *next;

	for (lease = TAILQ_FIRST(&etcd->data.leases); lease; lease = next) {
		next = TAILQ_NEXT(lease, link);
		if (lease->deadline <= pvr_loop_now())
			end_lease(etcd, lease);
	}
	arm(etcd);
}

/* ----------------------------------------------------------------------- its JSON */

static void add_header(const struct sim_etcd *etcd, struct pvr_text *text)
{
	pvr_text_add(text,
		     "\"header\":{\"cluster_id\":\"%" PRIu64 "\",\"member_id\":\"%" PRIu64
		     "\",\"revision\":\"%" PRIu64 "\",\"raft_term\":\"%" PRIu64 "\"}",
		     etcd->cluster, etcd->cluster + 1, etcd->data.revision, etcd->term);
}

static void add_key(struct pvr_text *text, const struct key *key)
{
	pvr_text_add(text, "{\"key\":\"");
	pvr_text_add_base64(text, key->name);
	pvr_text_add(text,
		     "\",\"create_revision\":\"%" PRIu64 "\",\"mod_revision\":\"%" PRIu64
		     "\",\"version\":\"%" PRIu64 "\",\"value\":\"",
		     key->created, key->changed, key->version);
	pvr_text_add_base64(text, key->value);
	pvr_text_add(text, "\"");
	if (key->lease)
		pvr_text_add(text, ",\"lease\":\"%" PRIu64 "\"", key->lease);
	pvr_text_add(text, "}");
}

static void add_change(struct pvr_text *text, const struct change *change)
{
	pvr_text_add(text, "{");
	if (!change->deleted) {
		pvr_text_add(text, "\"kv\":");
		add_key(text, &change->key);
	} else {
		pvr_text_add(text, "\"type\":\"DELETE\",\"kv\":{\"key\":\"");
		pvr_text_add_base64(text, change->key.name);
		pvr_text_add(text, "\",\"mod_revision\":\"%" PRIu64 "\"}", change->key.changed);
	}
	pvr_text_add(text, "}");
}

/* An error of the calls that are right. */
static long refuse(struct pvr_text *answer, long status, int code, const char *why)
{
	pvr_text_add(answer, "{\"error\":\"%s\",\"code\":%d,\"message\":\"%s\"}", why, code, why);
	return status;
}

/* pvrdmad never calls so. */
static void misuse(const struct sim_etcd *etcd, const char *what, struct json_object *request)
{
	sim_fail(etcd->sim, "etcd", "%s: %s", what,
		 request ? json_object_to_json_string(request) : "no JSON");
}

static void expect_members(const struct sim_etcd *etcd, struct json_object *request,
			   const char *const *names)
{
	json_object_object_foreach(request, name, value)
	{
		const char *const *known = names;

		(void)value;
		while (*known && strcmp(*known, name))
			known++;
		if (!*known)
			misuse(etcd, "unknown member", request);
	}
}

#define EXPECT_MEMBERS(etcd, request, ...) \
	expect_members(etcd, request, (const char *const[]){ __VA_ARGS__, NULL })

static void read_text(const struct sim_etcd *etcd, struct json_object *request, const char *member,
		      char *text, size_t size)
{
	text[0] = '\0';
	if (pvr_json_text(request, member) && pvr_json_base64(request, member, text, size) < 0)
		misuse(etcd, "invalid base64", request);
}

static void read_range(const struct sim_etcd *etcd, struct json_object *request,
		       char key[PVR_ETCD_KEY_MAX], char end[PVR_ETCD_KEY_MAX])
{
	read_text(etcd, request, "key", key, PVR_ETCD_KEY_MAX);
	read_text(etcd, request, "range_end", end, PVR_ETCD_KEY_MAX);
	if (!key[0])
		misuse(etcd, "no key", request);
}

/* [key, end), or @key alone. */
static bool is_within(const char *name, const char *key, const char *end)
{
	return end[0] ? strcmp(name, key) >= 0 && strcmp(name, end) < 0 : !strcmp(name, key);
}

/* ---------------------------------------------------------------------- transactions */

static bool holds(struct sim_etcd *etcd, struct json_object *compare)
{
	const char *target = pvr_json_text(compare, "target");
	const char *result = pvr_json_text(compare, "result");
	char name[PVR_ETCD_KEY_MAX], end[PVR_ETCD_KEY_MAX];
	const struct key *key;

	EXPECT_MEMBERS(etcd, compare, "key", "target", "result", "create_revision", "mod_revision");
	read_range(etcd, compare, name, end);
	key = find_key(etcd, name);
	if (!target || !result || strcmp(result, "EQUAL"))
		misuse(etcd, "unknown comparison", compare);
	if (!strcmp(target, "CREATE"))
		return (key ? key->created : 0) == pvr_json_number(compare, "create_revision");
	if (!strcmp(target, "MOD"))
		return (key ? key->changed : 0) == pvr_json_number(compare, "mod_revision");
	misuse(etcd, "unknown comparison", compare);
	return false;
}

static bool all_hold(struct sim_etcd *etcd, struct json_object *compares)
{
	size_t num = compares ? json_object_array_length(compares) : 0;

	for (size_t i = 0; i < num; i++)
		if (!holds(etcd, json_object_array_get_idx(compares, i)))
			return false;
	return true;
}

static int by_creation(const void *a, const void *b)
{
	const struct key *const *one = a, *const *other = b;

	if ((*one)->created != (*other)->created)
		return (*one)->created < (*other)->created ? -1 : 1;
	return strcmp((*one)->name, (*other)->name);
}

static void range(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	const char *order = pvr_json_text(request, "sort_order");
	const char *target = pvr_json_text(request, "sort_target");
	uint64_t limit = pvr_json_number(request, "limit");
	char name[PVR_ETCD_KEY_MAX], end[PVR_ETCD_KEY_MAX];
	const struct key *found[1024];
	struct key *key;
	size_t num = 0;

	EXPECT_MEMBERS(etcd, request, "key", "range_end", "limit", "sort_order", "sort_target",
		       "count_only");
	read_range(etcd, request, name, end);
	if (order && (strcmp(order, "ASCEND") || !target || strcmp(target, "CREATE")))
		misuse(etcd, "unknown order", request);
	TAILQ_FOREACH(key, &etcd->data.keys, link)
		if (is_within(key->name, name, end) && num < sizeof(found) / sizeof(found[0]))
			found[num++] = key;
	if (order)
		qsort(found, num, sizeof(found[0]), by_creation);
	pvr_text_add(answer, "{\"response_range\":{");
	add_header(etcd, answer);
	for (size_t i = 0;
	     i < num && (!limit || i < limit) && !pvr_json_true(request, "count_only"); i++) {
		pvr_text_add(answer, i ? "," : ",\"kvs\":[");
		add_key(answer, found[i]);
	}
	if (num && !pvr_json_true(request, "count_only"))
		pvr_text_add(answer, "]%s", limit && num > limit ? ",\"more\":true" : "");
	if (num)
		pvr_text_add(answer, ",\"count\":\"%zu\"", num);
	pvr_text_add(answer, "}}");
}

static void put(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	char name[PVR_ETCD_KEY_MAX], end[PVR_ETCD_KEY_MAX], value[PVR_ETCD_VALUE_MAX];

	EXPECT_MEMBERS(etcd, request, "key", "value", "lease");
	read_range(etcd, request, name, end);
	read_text(etcd, request, "value", value, sizeof(value));
	put_key(etcd, name, value, pvr_json_number(request, "lease"));
	sim_trace(&etcd->sim->trace, "etcd: %" PRIu64 " %s = %s", etcd->writes, name, value);
	pvr_text_add(answer, "{\"response_put\":{");
	add_header(etcd, answer);
	pvr_text_add(answer, "}}");
}

static void delete_range(struct sim_etcd *etcd, struct json_object *request,
			 struct pvr_text *answer)
{
	char name[PVR_ETCD_KEY_MAX], end[PVR_ETCD_KEY_MAX];
	struct key *key;

	EXPECT_MEMBERS(etcd, request, "key");
	read_range(etcd, request, name, end);
	key = find_key(etcd, name);
	if (key) {
		delete_key(etcd, key);
		sim_trace(&etcd->sim->trace, "etcd: %" PRIu64 " %s is deleted", etcd->writes, name);
	}
	pvr_text_add(answer, "{\"response_delete_range\":{");
	add_header(etcd, answer);
	pvr_text_add(answer, "%s}}", key ? ",\"deleted\":\"1\"" : "");
}

static void execute(struct sim_etcd *etcd, struct json_object *operation, struct pvr_text *answer)
{
	static const struct {
		const char *name;
		void (*run)(struct sim_etcd *etcd, struct json_object *request,
			    struct pvr_text *answer);
	} kinds[] = {
		{ "request_range", range },
		{ "request_put", put },
		{ "request_delete_range", delete_range },
	};
	struct json_object *request;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		request = pvr_json_object(operation, kinds[i].name);
		if (request) {
			kinds[i].run(etcd, request, answer);
			return;
		}
	}
	misuse(etcd, "unknown operation", operation);
}

static bool lacks_lease(struct sim_etcd *etcd, struct json_object *operations)
{
	struct json_object *request;
	uint64_t lease;

	for (size_t i = 0; i < json_object_array_length(operations); i++) {
		request = pvr_json_object(json_object_array_get_idx(operations, i), "request_put");
		lease = pvr_json_number(request, "lease");
		if (lease && !find_lease(etcd, lease))
			return true;
	}
	return false;
}

static long transact(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	bool succeeded = all_hold(etcd, pvr_json_array(request, "compare"));
	struct json_object *operations = pvr_json_array(request, succeeded ? "success" : "failure");
	size_t num = operations ? json_object_array_length(operations) : 0, i;

	EXPECT_MEMBERS(etcd, request, "compare", "success", "failure");
	if (num > OPERATIONS_MAX)
		return refuse(answer, 400, INVALID,
			      "etcdserver: too many operations in txn request");
	if (num && lacks_lease(etcd, operations))
		return refuse(answer, 404, NOT_FOUND, "etcdserver: requested lease not found");
	pvr_text_add(answer, "{\"responses\":[");
	for (i = 0; i < num; i++) {
		pvr_text_add(answer, i ? "," : "");
		execute(etcd, json_object_array_get_idx(operations, i), answer);
	}
	pvr_text_add(answer, "],%s", succeeded ? "\"succeeded\":true," : "");
	add_header(etcd, answer);
	pvr_text_add(answer, "}");
	end_write(etcd);
	return 200;
}

/* ---------------------------------------------------------------------------- leases */

static long grant(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	struct lease *lease = new_object(sizeof(*lease));

	EXPECT_MEMBERS(etcd, request, "TTL");
	lease->id = 1 + (sim_draw(&etcd->rng) >> 2);
	lease->seconds = pvr_json_number(request, "TTL");
	if (!lease->seconds)
		misuse(etcd, "a lease without time", request);
	lease->deadline = pvr_loop_now() + lease->seconds * PVR_SEC;
	TAILQ_INSERT_TAIL(&etcd->data.leases, lease, link);
	arm(etcd);
	pvr_text_add(answer, "{");
	add_header(etcd, answer);
	pvr_text_add(answer, ",\"ID\":\"%" PRIu64 "\",\"TTL\":\"%" PRIu64 "\"}", lease->id,
		     lease->seconds);
	return 200;
}

static long keep_alive(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	uint64_t id = pvr_json_number(request, "ID");
	struct lease *lease = find_lease(etcd, id);

	EXPECT_MEMBERS(etcd, request, "ID");
	pvr_text_add(answer, "{\"result\":{");
	add_header(etcd, answer);
	pvr_text_add(answer, ",\"ID\":\"%" PRIu64 "\"", id);
	if (lease) {
		lease->deadline = pvr_loop_now() + lease->seconds * PVR_SEC;
		arm(etcd);
		pvr_text_add(answer, ",\"TTL\":\"%" PRIu64 "\"", lease->seconds);
	}
	pvr_text_add(answer, "}}");
	return 200;
}

static long revoke(struct sim_etcd *etcd, struct json_object *request, struct pvr_text *answer)
{
	struct lease *lease = find_lease(etcd, pvr_json_number(request, "ID"));

	EXPECT_MEMBERS(etcd, request, "ID");
	if (!lease)
		return refuse(answer, 404, NOT_FOUND, "etcdserver: requested lease not found");
	end_lease(etcd, lease);
	arm(etcd);
	pvr_text_add(answer, "{");
	add_header(etcd, answer);
	pvr_text_add(answer, "}");
	return 200;
}

long sim_etcd_post(struct sim_etcd *etcd, const char *path, const char *body, size_t len,
		   struct pvr_text *answer)
{
	static const struct {
		const char *path;
		long (*run)(struct sim_etcd *etcd, struct json_object *request,
			    struct pvr_text *answer);
	} calls[] = {
		{ "/v3/kv/txn", transact },
		{ "/v3/lease/grant", grant },
		{ "/v3/lease/keepalive", keep_alive },
		{ "/v3/lease/revoke", revoke },
	};
	struct json_object *request = pvr_json_parse(body, len);
	long status = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && request; i++)
		if (!strcmp(calls[i].path, path))
			status = calls[i].run(etcd, request, answer);
	if (!status)
		misuse(etcd, path, request);
	json_object_put(request);
	return status;
}

/* --------------------------------------------------------------------------- watches */

static void send(struct sim_etcd_stream *stream, struct pvr_text *text)
{
	pvr_text_add(text, "}}\n");
	stream->line(stream->opaque, text->data, text->len);
	free(text->data);
}

static struct pvr_text begin_line(const struct sim_etcd *etcd, const struct watch *watch)
{
	struct pvr_text text = { .len = 0 };

	pvr_text_add(&text, "{\"result\":{");
	add_header(etcd, &text);
	pvr_text_add(&text, ",\"watch_id\":\"%" PRIu64 "\"", watch->id);
	return text;
}

/* All changes that the watch has not seen. */
static void tell(struct sim_etcd_stream *stream, struct watch *watch)
{
	struct sim_etcd *etcd = stream->etcd;
	struct pvr_text text = { .len = 0 };
	struct change *change;
	bool any = false;

	TAILQ_FOREACH(change, &etcd->data.history, link) {
		if (change->key.changed < watch->next ||
		    !is_within(change->key.name, watch->key, watch->end))
			continue;
		if (!any)
			text = begin_line(etcd, watch);
		pvr_text_add(&text, any ? "," : ",\"events\":[");
		add_change(&text, change);
		any = true;
	}
	/* One that begins in the future goes on waiting for it. */
	if (watch->next <= etcd->data.revision)
		watch->next = etcd->data.revision + 1;
	if (!any)
		return;
	pvr_text_add(&text, "]");
	send(stream, &text);
}

static void end_write(struct sim_etcd *etcd)
{
	struct sim_etcd_stream *stream;
	struct watch *watch;

	if (!etcd->writes)
		return;
	etcd->writes = 0;
	TAILQ_FOREACH(stream, &etcd->streams, link)
		TAILQ_FOREACH(watch, &stream->watches, link)
			tell(stream, watch);
}

static struct watch *find_watch(struct sim_etcd_stream *stream, uint64_t id)
{
	struct watch *watch;

	TAILQ_FOREACH(watch, &stream->watches, link)
		if (watch->id == id)
			break;
	return watch;
}

static void end_watch(struct sim_etcd_stream *stream, struct watch *watch)
{
	TAILQ_REMOVE(&stream->watches, watch, link);
	free(watch);
}

static void create_watch(struct sim_etcd_stream *stream, struct json_object *request)
{
	struct sim_etcd *etcd = stream->etcd;
	struct watch *watch = new_object(sizeof(*watch));
	struct pvr_text text;

	EXPECT_MEMBERS(etcd, request, "key", "range_end", "start_revision", "watch_id");
	watch->id = pvr_json_number(request, "watch_id");
	watch->next = pvr_json_number(request, "start_revision");
	read_range(etcd, request, watch->key, watch->end);
	if (!watch->id || find_watch(stream, watch->id) || !watch->next)
		misuse(etcd, "a watch without a number of its own", request);
	TAILQ_INSERT_TAIL(&stream->watches, watch, link);
	text = begin_line(etcd, watch);
	pvr_text_add(&text, ",\"created\":true");
	send(stream, &text);
	if (watch->next >= etcd->data.compacted) {
		tell(stream, watch);
		return;
	}
	text = begin_line(etcd, watch);
	pvr_text_add(&text, ",\"canceled\":true,\"compact_revision\":\"%" PRIu64 "\"",
		     etcd->data.compacted);
	send(stream, &text);
	sim_trace(&etcd->sim->trace, "etcd: a watch of %s from %" PRIu64 " is compacted",
		  watch->key, watch->next);
	end_watch(stream, watch);
}

static void cancel_watch(struct sim_etcd_stream *stream, struct json_object *request)
{
	struct watch *watch = find_watch(stream, pvr_json_number(request, "watch_id"));
	struct pvr_text text;

	EXPECT_MEMBERS(stream->etcd, request, "watch_id");
	if (!watch)
		return;
	text = begin_line(stream->etcd, watch);
	pvr_text_add(&text, ",\"canceled\":true");
	send(stream, &text);
	end_watch(stream, watch);
}

struct sim_etcd_stream *
sim_etcd_stream_open(struct sim_etcd *etcd,
		     void (*line)(void *opaque, const char *text, size_t len), void *opaque)
{
	struct sim_etcd_stream *stream = new_object(sizeof(*stream));

	stream->etcd = etcd;
	stream->line = line;
	stream->opaque = opaque;
	TAILQ_INIT(&stream->watches);
	TAILQ_INSERT_TAIL(&etcd->streams, stream, link);
	return stream;
}

void sim_etcd_stream_take(struct sim_etcd_stream *stream, const char *line, size_t len)
{
	struct json_object *request = pvr_json_parse(line, len);
	struct json_object *create = pvr_json_object(request, "create_request");
	struct json_object *cancel = pvr_json_object(request, "cancel_request");

	if (create)
		create_watch(stream, create);
	else if (cancel)
		cancel_watch(stream, cancel);
	else
		misuse(stream->etcd, "unknown request of a watch stream", request);
	json_object_put(request);
}

void sim_etcd_stream_close(struct sim_etcd_stream *stream)
{
	while (!TAILQ_EMPTY(&stream->watches))
		end_watch(stream, TAILQ_FIRST(&stream->watches));
	TAILQ_REMOVE(&stream->etcd->streams, stream, link);
	free(stream);
}

/* ---------------------------------------------------------------------- its operator */

void sim_etcd_stop(struct sim_etcd *etcd)
{
	etcd->stopped = true;
	arm(etcd);
}

void sim_etcd_start(struct sim_etcd *etcd)
{
	struct lease *lease;

	etcd->stopped = false;
	etcd->term++;
	TAILQ_FOREACH(lease, &etcd->data.leases, link)
		lease->deadline = pvr_loop_now() + lease->seconds * PVR_SEC;
	arm(etcd);
}

/* Its log begins anew; sim_etcd_start() elects its first leader. */
static void begin_anew(struct sim_etcd *etcd, bool same_cluster)
{
	etcd->term = 1;
	if (!same_cluster)
		etcd->cluster = sim_draw(&etcd->rng) >> 1;
}

bool sim_etcd_has_lost(const struct sim_etcd *etcd)
{
	return etcd->has_lost;
}

void sim_etcd_empty(struct sim_etcd *etcd, bool same_cluster)
{
	data_exit(&etcd->data);
	data_init(&etcd->data);
	etcd->has_lost = true;
	begin_anew(etcd, same_cluster);
}

void sim_etcd_back_up(struct sim_etcd *etcd)
{
	if (etcd->has_backup)
		data_exit(&etcd->backup);
	data_copy(&etcd->backup, &etcd->data);
	etcd->has_backup = true;
}

bool sim_etcd_restore(struct sim_etcd *etcd, bool same_cluster)
{
	if (!etcd->has_backup)
		return false;
	data_exit(&etcd->data);
	data_copy(&etcd->data, &etcd->backup);
	etcd->has_lost = true;
	begin_anew(etcd, same_cluster);
	return true;
}

void sim_etcd_compact(struct sim_etcd *etcd)
{
	etcd->data.compacted = etcd->data.revision;
	forget_history(&etcd->data, etcd->data.compacted);
}

struct sim_etcd *sim_etcd_create(struct sim *sim, struct pvr_loop *loop)
{
	struct sim_etcd *etcd = new_object(sizeof(*etcd));

	etcd->sim = sim;
	etcd->loop = loop;
	etcd->timer.expired = leases_expired;
	etcd->rng = sim_rng_of(sim->seed, UINT64_MAX - 1);
	TAILQ_INIT(&etcd->streams);
	data_init(&etcd->data);
	begin_anew(etcd, false);
	sim_etcd_start(etcd);
	return etcd;
}

void sim_etcd_destroy(struct sim_etcd *etcd)
{
	while (!TAILQ_EMPTY(&etcd->streams))
		sim_etcd_stream_close(TAILQ_FIRST(&etcd->streams));
	pvr_loop_timer_disarm(&etcd->timer);
	data_exit(&etcd->data);
	if (etcd->has_backup)
		data_exit(&etcd->backup);
	free(etcd);
}
