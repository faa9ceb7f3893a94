// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The directory's parts, and queries to the hosts of a peers file. */
#include "base/ratelimit.h"
#include "fake_net.h"
#include "directory/backend.h"
#include "directory/queue.h"
#include "directory/own_gids.h"
#include "text_file.h"

#define RED "red"
#define G1 "fd00::1"
#define G2 "fd00::2"
#define GROUP "ff1e::1"
#define GROUP_V4 "::ffff:239.77.0.1"

static const char three_hosts[] = "[host a]\naddress = 192.0.2.1\n"
				  "[host b]\naddress = 192.0.2.2:7000\n"
				  "[host c]\naddress = 192.0.2.3\n"
				  "[host self]\naddress = 192.0.2.99\n";

/* ABSENT does not expire: a slow machine would miss it. */
static const struct pvr_directory_timing hurry = {
	.round = 10 * PVR_MSEC,
	.absent = 600 * PVR_SEC,
	.group = 30 * PVR_MSEC,
	.found = 40 * PVR_MSEC,
	.verify = 30 * PVR_MSEC,
};

static const struct pvr_directory_timing absent_expires = {
	.round = 10 * PVR_MSEC,
	.absent = 2 * PVR_SEC,
};

static const struct pvr_directory_timing one_round = {
	.round = 600 * PVR_SEC,
	.absent = 600 * PVR_SEC,
};

static int start(void **state, const char *peers, struct pvr_directory_settings settings)
{
	struct fake_net *net = test_malloc(sizeof(*net));

	fake_net_start(net, peers, settings);
	*state = net;
	return 0;
}

static int stop(void **state)
{
	fake_net_exit(*state);
	test_free(*state);
	return 0;
}

static int setup_none(void **state)
{
	*state = test_malloc(sizeof(struct fake_net));
	fake_net_init(*state);
	return 0;
}

/* TEST_NET(setup, name) { ... }: the body has net, which setup_<setup>() has started. */
#define TEST_NET(setup, name) TEST_WITH(struct fake_net *net, setup_##setup, stop, name)
#define NET_SETUP(name, peers, ...)                                                         \
	static int setup_##name(void **state)                                               \
	{                                                                                   \
		return start(state, peers, (struct pvr_directory_settings){ __VA_ARGS__ }); \
	}

NET_SETUP(hurry, three_hosts, .timing = hurry)
NET_SETUP(absent_expires, three_hosts, .timing = absent_expires)
NET_SETUP(one_round, three_hosts, .timing = one_round)
NET_SETUP(no_peers, NULL, .timing = hurry)
NET_SETUP(small_cache, NULL, .timing = hurry, .cache = 100)

/* ------------------------------------------------------------------------- parts */

static void ready(struct pvr_source *source, uint32_t events)
{
}

/* pthread_mutex_lock() is wrapped (--wrap, see meson.build). */
static unsigned int locks;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	return __real_pthread_mutex_lock(mutex);
}

struct queue_env {
	struct pvr_loop *loop;
	struct pvr_dir_queue queue;
};

static int open_queue(void **state)
{
	struct queue_env *env = test_malloc(sizeof(*env));

	env->loop = pvr_loop_create();
	assert_int_equal(pvr_dir_queue_init(&env->queue, env->loop, ready), 0);
	*state = env;
	return 0;
}

static int close_queue(void **state)
{
	struct queue_env *env = *state;

	pvr_dir_queue_exit(&env->queue);
	pvr_loop_destroy(env->loop);
	test_free(env);
	return 0;
}

#define TEST_QUEUE(name) TEST_WITH(struct queue_env *env, open_queue, close_queue, name)

static void numbered_key(struct pvr_key *key, const char *fabric, unsigned int number)
{
	uint8_t gid[16] = { 0xfd, [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number };

	assert_true(pvr_key_init(key, fabric, gid));
}

TEST_QUEUE(test_queue_keeps_a_question_once)
{
	struct pvr_key key, got;

	numbered_key(&key, RED, 7);
	for (int i = 0; i < 100; i++)
		pvr_dir_queue_lookup(&env->queue, NULL, &key);
	assert_true(pvr_dir_queue_question(&env->queue, &got));
	assert_true(pvr_key_equal(&got, &key));
	assert_false(pvr_dir_queue_question(&env->queue, &got));
	pvr_dir_queue_lookup(&env->queue, NULL, &key);
	assert_true(pvr_dir_queue_question(&env->queue, &got));
}

/* Queries of one tenant are bounded, and others get their share. */
TEST_QUEUE(test_queue_lanes_take_turns)
{
	struct pvr_key key;
	unsigned int red = 0, before_blue = 0;

	for (unsigned int i = 0; i < 5000; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&env->queue, NULL, &key);
	}
	numbered_key(&key, "blue", 1);
	pvr_dir_queue_lookup(&env->queue, NULL, &key);
	while (pvr_dir_queue_question(&env->queue, &key)) {
		if (!strcmp(key.fabric, "blue"))
			before_blue = red;
		else
			red++;
	}
	assert_int_equal(red, PVR_DIR_QUEUE_LANE_MAX);
	assert_int_equal(env->queue.dropped, 5000 - PVR_DIR_QUEUE_LANE_MAX);
	assert_in_range(before_blue, 0, 1);
}

/* Queries that the queue does not take keep no other thread from the queue. */
TEST_QUEUE(test_queue_full_lane_takes_no_lock)
{
	struct pvr_key key;
	unsigned int before, asked = 0;

	for (unsigned int i = 0; i < PVR_DIR_QUEUE_LANE_MAX; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&env->queue, NULL, &key);
	}
	before = locks;
	for (unsigned int i = PVR_DIR_QUEUE_LANE_MAX; i < 5000; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&env->queue, NULL, &key);
	}
	assert_int_equal(locks - before, 0);
	assert_int_equal(env->queue.dropped, 5000 - PVR_DIR_QUEUE_LANE_MAX);
	/* There is room again. */
	assert_true(pvr_dir_queue_question(&env->queue, &key));
	numbered_key(&key, RED, 5000);
	pvr_dir_queue_lookup(&env->queue, NULL, &key);
	while (pvr_dir_queue_question(&env->queue, &key))
		asked++;
	assert_int_equal(asked, PVR_DIR_QUEUE_LANE_MAX);
}

/* Reports of one host leave room for those of others. */
TEST_QUEUE(test_queue_news_are_bounded)
{
	struct pvr_news news;
	struct pvr_key key;
	unsigned int num = 0;

	for (unsigned int i = 0; i < 3 * PVR_DIR_QUEUE_NEWS_MAX; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_add_news(&env->queue, PVR_NEWS_LOCATED, "a", &key, 1);
		pvr_dir_queue_add_news(&env->queue, PVR_NEWS_WANTED, "a", NULL, 0);
	}
	pvr_dir_queue_add_news(&env->queue, PVR_NEWS_LOCATED, "b", &key, 1);
	while (pvr_dir_queue_news(&env->queue, &news))
		num += news.kind == PVR_NEWS_LOCATED;
	assert_int_equal(num, PVR_DIR_QUEUE_NEWS_MAX + 1);
	assert_string_equal(news.host, "b");
	/* What was read makes room. */
	pvr_dir_queue_add_news(&env->queue, PVR_NEWS_LOCATED, "a", &key, 1);
	assert_true(pvr_dir_queue_news(&env->queue, &news));
}

static struct pvr_state_claim claim_of(const char *fabric, uint8_t mac, uint8_t token)
{
	struct pvr_state_claim claim = { .mac = { 2, [5] = mac }, .token = { token } };

	snprintf(claim.fabric, sizeof(claim.fabric), "%s", fabric);
	return claim;
}

static void expect_claim(struct queue_env *env, const char *fabric, uint8_t mac, uint8_t token)
{
	struct pvr_state_claim claim;

	assert_true(pvr_dir_queue_claim(&env->queue, &claim));
	assert_string_equal(claim.fabric, fabric);
	assert_int_equal(claim.mac[5], mac);
	assert_int_equal(claim.token[0], token);
}

/* An adapter has one state. */
TEST_QUEUE(test_queue_keeps_the_last_claim_of_an_adapter)
{
	const struct pvr_state_claim claims[] = {
		claim_of(RED, 1, 1), claim_of(RED, 2, 2), claim_of("blue", 1, 3),
		claim_of(RED, 1, 4), claim_of(RED, 1, 5),
	};
	struct pvr_state_claim claim;

	for (unsigned int i = 0; i < COUNT(claims); i++)
		assert_true(pvr_dir_queue_add_claim(&env->queue, &claims[i]));
	expect_claim(env, RED, 1, 5);
	expect_claim(env, RED, 2, 2);
	expect_claim(env, "blue", 1, 3);
	assert_false(pvr_dir_queue_claim(&env->queue, &claim));
	/* The end of the test frees the queue with this claim. */
	assert_true(pvr_dir_queue_add_claim(&env->queue, &claims[0]));
}

/* Look-ups that frames of a host cause have a rate of their own, and wait for no guest's. */
TEST_QUEUE(test_queue_lookups_of_a_host_have_a_quota)
{
	unsigned int red = 0, before_guest = 0;
	uint64_t begin = pvr_loop_now();
	struct pvr_key key;

	for (unsigned int i = 0; i < 60000; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&env->queue, "mallory", &key);
		if (i % 100 == 0)
			while (pvr_dir_queue_question(&env->queue, &key))
				red++;
	}
	assert_in_range(red, PVR_DIR_QUEUE_HOST_BURST / 2,
			PVR_DIR_QUEUE_HOST_BURST +
				(pvr_loop_now() - begin) * PVR_DIR_QUEUE_HOST_RATE / PVR_SEC + 1);
	for (unsigned int i = 0; i < 10; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&env->queue, i % 2 ? "a" : NULL, &key);
	}
	for (red = 0; pvr_dir_queue_question(&env->queue, &key); red++)
		before_guest += key.gid[15] % 2 && red < 2;
	assert_in_range(red, 10, 11);
	assert_in_range(before_guest, 0, 1);
}

static int own_setup(void **state)
{
	struct pvr_own_gids *own = test_malloc(sizeof(*own));

	assert_true(pvr_own_gids_init(own));
	*state = own;
	return 0;
}

static int own_teardown(void **state)
{
	pvr_own_gids_exit(*state);
	test_free(*state);
	return 0;
}

#define TEST_OWN(name) TEST_WITH(struct pvr_own_gids *own, own_setup, own_teardown, name)

/* The next change is of @key, whose new type is @type; 0: it was removed. */
static void expect_change(struct pvr_own_gids *own, const struct pvr_key *key, uint8_t type)
{
	struct pvr_key got;
	uint8_t got_type;

	assert_true(pvr_own_gids_next(own, &got, &got_type));
	assert_true(pvr_key_equal(&got, key));
	assert_int_equal(got_type, type);
}

static void expect_no_change(struct pvr_own_gids *own)
{
	struct pvr_key got;
	uint8_t type;

	assert_false(pvr_own_gids_next(own, &got, &type));
}

static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 1 }, mac_b[6] = { 2, 0, 0, 0, 0, 2 };

TEST_OWN(test_own_gid_comes_and_goes)
{
	struct pvr_key key;

	numbered_key(&key, RED, 1);
	pvr_own_gids_set(own, &key, 2, mac_a, true);
	pvr_own_gids_set(own, &key, 2, mac_a, true);
	expect_change(own, &key, 2);
	expect_no_change(own);
	pvr_own_gids_set(own, &key, 2, mac_a, false);
	expect_change(own, &key, 0);
	expect_no_change(own);
	assert_int_equal(pvr_own_gids_num(own), 0);
}

/* A GID that is added and removed between two reads leaves no entry and no memory. */
TEST_OWN(test_own_gid_between_two_reads)
{
	struct pvr_key key;

	for (unsigned int i = 0; i < 1000; i++) {
		numbered_key(&key, RED, i);
		pvr_own_gids_set(own, &key, 2, mac_a, true);
		pvr_own_gids_set(own, &key, 2, mac_a, false);
	}
	assert_int_equal(pvr_own_gids_num(own), 0);
	expect_no_change(own);
	pvr_own_gids_set(own, &key, 2, mac_a, true);
	expect_change(own, &key, 2);
	pvr_own_gids_set(own, &key, 2, mac_a, false);
	pvr_own_gids_set(own, &key, 2, mac_b, true);
	expect_no_change(own); /* it was here all the time */
	pvr_own_gids_set(own, &key, 1, mac_b, true);
	pvr_own_gids_set(own, &key, 1, mac_b, true);
	expect_change(own, &key, 1);
}

/* A group goes with its last member. */
TEST_OWN(test_own_group_has_several_members)
{
	struct pvr_key key;

	fake_key(&key, RED, GROUP);
	pvr_own_gids_set(own, &key, 2, mac_a, true);
	pvr_own_gids_set(own, &key, 2, mac_b, true);
	expect_change(own, &key, 2);
	pvr_own_gids_set(own, &key, 2, mac_a, false);
	expect_no_change(own);
	pvr_own_gids_set(own, &key, 2, mac_b, false);
	expect_change(own, &key, 0);
}

/* ---------------------------------------------------------------------- look-ups */

/* A connected host that has the GID. */
static void host_with(struct fake_net *net, const char *host, const char *gid)
{
	fake_host_up(net, host, true);
	fake_host_add(net, host, RED, gid);
}

/* Guests resolve the GID and find it. */
static void find(struct fake_net *net, const char *gid, const char *host)
{
	fake_resolve(net, RED, gid);
	fake_until(net, fake_is_at(net, RED, gid, host));
}

static void find_at_a(struct fake_net *net)
{
	host_with(net, "a", G1);
	find(net, G1, "a");
}

static void all_up(struct fake_net *net)
{
	fake_host_up(net, "a", true);
	fake_host_up(net, "b", true);
	fake_host_up(net, "c", true);
}

TEST_NET(hurry, test_query_finds_the_host_of_a_gid)
{
	assert_string_equal(fake_host(net, "b")->address, "192.0.2.2:7000");
	all_up(net);
	fake_host_add(net, "b", RED, G1);
	find(net, G1, "b");
	assert_int_equal(fake_gid(net, RED, G1)->type, PVR_GID_TYPE_ROCE_V2);
	/* Another fabric's is another GID. */
	fake_resolve(net, "blue", G1);
	fake_until(net, fake_is_nowhere(net, "blue", G1));
	assert_int_equal(fake_host(net, "self")->asked, 0);
}

TEST_NET(hurry, test_waits_for_a_connection)
{
	fake_host_add(net, "c", RED, G1);
	fake_resolve(net, RED, G1);
	fake_run(net, 5);
	assert_true(fake_host(net, "a")->wanted && fake_host(net, "c")->wanted);
	assert_null(fake_gid(net, RED, G1));
	fake_host_up(net, "c", true);
	fake_until(net, fake_is_at(net, RED, G1, "c"));
}

TEST_NET(absent_expires, test_absent_is_believed_for_a_while)
{
	unsigned int asked;

	all_up(net);
	fake_resolve(net, RED, G1);
	fake_until(net, fake_is_nowhere(net, RED, G1));
	asked = fake_host(net, "a")->asked;
	fake_resolve(net, RED, G1);
	fake_run(net, 10);
	assert_int_equal(fake_host(net, "a")->asked, asked);
	fake_until(net, fake_is_unknown(net, RED, G1));
	fake_host_add(net, "a", RED, G1);
	find(net, G1, "a");
}

TEST_NET(absent_expires, test_absence_from_before_a_hand_over_is_not_repeated)
{
	all_up(net);
	fake_resolve(net, RED, G1);
	fake_until(net, fake_is_nowhere(net, RED, G1));
	fake_host_add(net, "b", RED, G1);
	fake_handed_over(net, "b", RED, G1);
	find(net, G1, "b");
	/* What is known to be at a host stays. */
	fake_handed_over(net, "c", RED, G1);
	fake_run(net, 10);
	assert_true(fake_is_at(net, RED, G1, "b"));
}

/* A host that is down or silent gets a bounded number of queries. */
TEST_NET(hurry, test_rounds_are_bounded)
{
	fake_host_up(net, "a", true);
	fake_host(net, "a")->silent = true;
	fake_resolve(net, RED, G1);
	fake_until(net, fake_is_nowhere(net, RED, G1));
	assert_in_range(fake_host(net, "a")->asked, 3, 20);
}

TEST_NET(hurry, test_moved_is_asked_again)
{
	fake_host_up(net, "b", true);
	find_at_a(net);
	fake_host_remove(net, "a", RED, G1);
	fake_host_add(net, "b", RED, G1);
	fake_moved(net, "b", RED, G1); /* b never had the GID */
	fake_run(net, 5);
	assert_true(fake_is_at(net, RED, G1, "a"));
	fake_moved(net, "a", RED, G1);
	fake_until(net, fake_is_unknown(net, RED, G1));
	find(net, G1, "b");
}

/* Without a report: by periodic queries to the owner. */
TEST_NET(hurry, test_found_is_confirmed)
{
	find_at_a(net);
	fake_run(net, 150);
	assert_true(fake_is_at(net, RED, G1, "a"));
	assert_int_equal(fake_gid(net, RED, G1)->told, 1);
	fake_host_remove(net, "a", RED, G1);
	fake_until(net, fake_is_unknown(net, RED, G1));
}

/* Entries of a disconnected host stay until they are needed. */
TEST_NET(hurry, test_dead_owner_is_replaced_when_wanted)
{
	uint64_t begin;

	find_at_a(net);
	fake_host_up(net, "a", false);
	host_with(net, "b", G1);
	fake_run(net, 200);
	assert_true(fake_is_at(net, RED, G1, "a"));
	begin = pvr_loop_now();
	fake_until(net, (pvr_directory_wanted(net->directory, "a"), fake_is_at(net, RED, G1, "b")));
	assert_true(pvr_loop_now() - begin >= PVR_SEC);
}

/* The next periodic query of the owner is much later. */
TEST_NET(absent_expires, test_owner_is_asked_when_another_host_sends_as_its_gid)
{
	unsigned int asked;

	fake_host_up(net, "b", true);
	find_at_a(net);
	asked = fake_host(net, "a")->asked;
	fake_doubt(net, "b", RED, G1);
	fake_until(net, fake_host(net, "a")->asked > asked);
	assert_true(fake_is_at(net, RED, G1, "a"));
	fake_host_remove(net, "a", RED, G1);
	fake_host_add(net, "b", RED, G1);
	fake_doubt(net, "b", RED, G1);
	fake_until(net, fake_is_unknown(net, RED, G1));
	find(net, G1, "b");
}

TEST_NET(absent_expires, test_dead_owner_is_replaced_when_another_host_sends_as_its_gid)
{
	find_at_a(net);
	fake_host_up(net, "a", false);
	host_with(net, "b", G1);
	fake_doubt(net, "b", RED, G1);
	fake_until(net, fake_is_at(net, RED, G1, "b"));
}

/* ------------------------------------------------------------------------ claims */

TEST_NET(hurry, test_claim_of_a_live_hosts_gid)
{
	fake_host_up(net, "b", true);
	find_at_a(net);
	fake_located(net, "b", RED, G1);
	fake_run(net, 10);
	assert_true(fake_is_at(net, RED, G1, "a"));
	assert_non_null(strstr(net->log, "host b claims fd00::1 in fabric red: refused, "
					 "it belongs to host a, which is connected"));
}

/* Neither is believed while both claim it: the first answer would be as good as another. */
TEST_NET(absent_expires, test_claims_of_two_hosts)
{
	fake_host_up(net, "a", true);
	fake_host_up(net, "c", true);
	fake_host_add(net, "a", RED, G1);
	fake_host_add(net, "c", RED, G1);
	fake_resolve(net, RED, G1);
	fake_until(net, fake_is_nowhere(net, RED, G1));
	assert_non_null(strstr(net->log, "host c claims fd00::1 in fabric red: refused, "
					 "host a claims it, too"));
	assert_non_null(strstr(net->log, "host a claims fd00::1 in fabric red: refused, "
					 "host c claims it, too"));
	/* An answer after the end of the look-up is none. */
	fake_located(net, "a", RED, G1);
	fake_run(net, 5);
	assert_true(fake_is_nowhere(net, RED, G1));
	fake_host_remove(net, "c", RED, G1);
	fake_until(net, fake_is_unknown(net, RED, G1));
	find(net, G1, "a");
	assert_int_equal(fake_gid(net, RED, G1)->num_hosts, 1);
}

/* A claim waits for the answers of connected hosts, for a round. */
TEST_NET(hurry, test_silent_host_holds_up_no_claim)
{
	fake_host_up(net, "b", true);
	fake_host(net, "b")->silent = true;
	find_at_a(net);
	assert_int_equal(fake_host(net, "b")->asked, 1);
}

NET_SETUP(pins,
	  "[host a]\naddress=192.0.2.1\ngids red = fd00::2/128 10.1.0.0/16\n"
	  "[host b]\naddress=192.0.2.2\ngids = fd00::/64\n",
	  .timing = one_round)

TEST_NET(pins, test_claim_outside_the_pins)
{
	static const struct {
		const char *fabric, *gid;
		bool allowed;
	} claims[] = {
		{ RED, G1, false },
		{ RED, G2, true },
		{ "blue", G2, false },
		{ RED, "::ffff:10.1.2.3", true },
		{ RED, "::ffff:10.2.2.3", false },
	};

	fake_host_up(net, "a", true);
	fake_host_up(net, "b", true);
	for (size_t i = 0; i < COUNT(claims); i++) {
		fake_host_add(net, "a", claims[i].fabric, claims[i].gid);
		fake_resolve(net, claims[i].fabric, claims[i].gid);
	}
	for (size_t i = 0; i < COUNT(claims); i++) {
		if (claims[i].allowed)
			fake_until(net, fake_is_at(net, claims[i].fabric, claims[i].gid, "a"));
		else
			fake_until(net, fake_is_nowhere(net, claims[i].fabric, claims[i].gid));
	}
	/* Hosts that may not have the GID get no query, and an unrequested reply is ignored. */
	assert_int_equal(fake_host(net, "a")->asked, 2);
	fake_located(net, "a", RED, G1);
	fake_run(net, 10);
	assert_true(fake_is_nowhere(net, RED, G1));
	assert_non_null(strstr(net->log, "host a claims fd00::1 in fabric red: refused, "
					 "the peers file does not allow it"));
}

#define MANY 12

static void write_many(char *text, size_t size, unsigned int net)
{
	size_t len = 0;

	for (int i = 1; i <= MANY; i++)
		len += (size_t)snprintf(text + len, size - len,
					"[host host%d]\naddress=192.0.2.%d\ngids=10.%u.%d.0/24\n",
					i, i, net, i);
}

/* Of each host, by 10.@net.HOST.0/24. */
static void assert_limits(struct fake_net *net, unsigned int number)
{
	char name[16], in[32], out[32];
	struct pvr_key key;

	for (int i = 1; i <= MANY; i++) {
		snprintf(name, sizeof(name), "host%d", i);
		snprintf(in, sizeof(in), "::ffff:10.%u.%d.7", number, i);
		snprintf(out, sizeof(out), "::ffff:10.%u.%d.7", number, i % MANY + 1);
		fake_key(&key, RED, in);
		assert_true(pvr_directory_may_have(net->directory, name, RED, key.gid));
		fake_key(&key, RED, out);
		if (pvr_directory_may_have(net->directory, name, RED, key.gid))
			fail_msg("%s may have %s, which is not in its gids", name, out);
	}
}

/* Sections in the order of an operator: host10 is behind host9, and not behind host1. */
TEST_WITH(struct fake_net *net, setup_none, stop, test_peers_in_any_order_have_their_pins)
{
	struct pvr_directory_settings settings = { .peers_file = net->path, .timing = one_round };
	struct pvr_directory_files files;
	struct pvr_error err;
	char text[2048];

	write_many(text, sizeof(text), 1);
	text_file_create(net->path, text);
	net->directory = fake_net_try(net, &settings, &err);
	assert_non_null(net->directory);
	assert_limits(net, 1);
	write_many(text, sizeof(text), 2);
	text_file_write(net->path, text);
	assert_true(pvr_directory_reload(net->directory, &files, &err));
	assert_limits(net, 2);
}

/* The policy applies to hosts of any source; a host without a section has that of "*". */
TEST_NET(pins, test_host_without_the_right_to_a_gid_causes_no_query)
{
	unsigned int asked;

	fake_host_up(net, "a", true);
	host_with(net, "b", G1);
	find(net, G1, "b");
	asked = fake_host(net, "b")->asked;
	fake_doubt(net, "a", RED, G1);
	fake_run(net, 10);
	assert_int_equal(fake_host(net, "b")->asked, asked);
}

TEST_WITH(struct fake_net *net, setup_none, stop, test_policy_of_static_hosts)
{
	struct pvr_directory_settings settings = { .timing = one_round };
	struct pvr_directory_files files;
	struct pvr_error err;

	settings.policy_file = net->path;
	text_file_create(net->path, "[host b]\ngids red = fd00::1\n[host *]\ngids = fd00::2\n");
	net->directory = fake_net_try(net, &settings, &err);
	assert_non_null(net->directory);
	assert_true(pvr_directory_add_host(net->directory, "a", &err));
	assert_true(pvr_directory_add_host(net->directory, "b", &err));
	host_with(net, "a", G1);
	host_with(net, "b", G1);
	host_with(net, "a", G2);
	find(net, G1, "b");
	find(net, G2, "a");
	text_file_write(net->path, "[host b]\naddress = 192.0.2.1\n");
	assert_false(pvr_directory_reload(net->directory, &files, &err));
	assert_non_null(strstr(err.text, ":2: unknown setting 'address': a host has gids"));
	text_file_write(net->path, "[host b]\n[host c]\n[host b]\n");
	assert_false(pvr_directory_reload(net->directory, &files, &err));
	assert_non_null(strstr(err.text, ": two hosts are named 'b'"));
	assert_true(fake_is_at(net, RED, G1, "b"));
	text_file_write(net->path, "[host a]\n");
	assert_true(pvr_directory_reload(net->directory, &files, &err));
	assert_string_equal(files.policy, net->path);
	assert_true(fake_is_unknown(net, RED, G1) && fake_is_at(net, RED, G2, "a"));
	find(net, G1, "a");
}

/* Replies without a query, from unknown hosts. */
/* Nothing stores a claim that all hosts see. */
TEST_NET(hurry, test_static_hosts_cannot_agree_on_a_state)
{
	const struct pvr_state_claim claim = claim_of(RED, 1, 1);

	assert_int_equal(pvr_directory_claim(net->directory, &claim), PVR_CLAIM_NONE);
}

TEST_NET(hurry, test_answers_out_of_nowhere)
{
	fake_located(net, "a", RED, G1);
	fake_located(net, "mallory", RED, G1);
	fake_moved(net, "mallory", RED, G1);
	pvr_directory_wanted(net->directory, "mallory");
	pvr_directory_changed(net->directory, "mallory", true);
	fake_run(net, 10);
	assert_int_equal(net->told, 0);
	fake_resolve(net, RED, G1);
	fake_run(net, 5);
	fake_located(net, "mallory", RED, G1);
	fake_run(net, 5);
	assert_int_equal(net->told, 0);
}

/* ------------------------------------------------------------------------ groups */

static const struct {
	const char *label, *gid;
} groups[] = { { "IPv6", GROUP }, { "IPv4", GROUP_V4 } };

TEST_CASES_WITH(struct fake_net *net, setup_hurry, stop, test_group_members, groups)
{
	const char *group = row->gid;

	all_up(net);
	fake_host_add(net, "a", RED, group);
	fake_host_add(net, "b", RED, group);
	fake_resolve(net, RED, group);
	fake_until(net, fake_is_at(net, RED, group, "a") && fake_is_at(net, RED, group, "b"));
	assert_false(fake_is_at(net, RED, group, "c"));
	fake_host_add(net, "c", RED, group);
	fake_host_remove(net, "a", RED, group);
	fake_until(net, fake_is_at(net, RED, group, "c") && !fake_is_at(net, RED, group, "a"));
	assert_true(fake_is_at(net, RED, group, "b"));
	/* A member that is dead. */
	fake_host_up(net, "b", false);
	fake_until(net, !fake_is_at(net, RED, group, "b"));
	fake_host_remove(net, "c", RED, group);
	fake_until(net, fake_is_nowhere(net, RED, group));
}

/* Members are reported together: a waiting sender sends to the reported members only. */
TEST_NET(one_round, test_members_are_reported_together)
{
	host_with(net, "a", GROUP);
	host_with(net, "b", GROUP);
	fake_host_add(net, "c", RED, GROUP);
	fake_resolve(net, RED, GROUP);
	fake_run(net, 10);
	assert_int_equal(fake_host(net, "a")->asked, 1);
	assert_int_equal(net->told, 0);
	fake_host_up(net, "c", true);
	fake_until(net, net->told);
	assert_true(fake_is_at(net, RED, GROUP, "a") && fake_is_at(net, RED, GROUP, "b") &&
		    fake_is_at(net, RED, GROUP, "c"));
	assert_int_equal(net->told, 4); /* and that RoCE v1 has no members */
	assert_int_equal(net->halves, 2);
	assert_false(fake_gid(net, RED, GROUP)->more);
}

TEST_NET(hurry, test_dead_host_holds_up_no_group)
{
	fake_host_up(net, "a", true);
	fake_host_up(net, "b", true);
	fake_host(net, "b")->silent = true;
	fake_host_add(net, "a", RED, GROUP);
	find(net, GROUP, "a");
	/* After a round, not after all of them. */
	assert_in_range(fake_host(net, "b")->asked, 2, 4);
	/* A late reply adds its host alone. */
	fake_host(net, "b")->silent = false;
	fake_host_add(net, "b", RED, GROUP);
	fake_until(net, fake_is_at(net, RED, GROUP, "b"));
	assert_true(fake_is_at(net, RED, GROUP, "a"));
	assert_int_equal(net->halves, 0);
}

/* ------------------------------------------------------------------------ bounds */

TEST_NET(small_cache, test_cache_is_bounded)
{
	struct pvr_directory_stats stats;
	struct pvr_key key;
	struct pvr_error err;

	assert_true(pvr_directory_add_host(net->directory, "a", &err));
	find_at_a(net);
	for (unsigned int i = 0; i < 1000; i++) {
		numbered_key(&key, "blue", i);
		pvr_directory_resolve(net->directory, "blue", key.gid);
		if (i % 50 == 49) {
			fake_resolve(net, RED, G1); /* it is in use */
			fake_run(net, 2);
		}
	}
	fake_run(net, 50);
	pvr_directory_get_stats(net->directory, &stats);
	assert_int_equal(stats.entries, 100);
	assert_true(fake_is_at(net, RED, G1, "a"));
	assert_true(net->unknown >= 800); /* the engine was told to forget them */
}

/* The rate of queries to hosts is bounded, at any rate of the guests' queries. */
TEST_NET(no_peers, test_lookups_have_a_rate)
{
	struct pvr_directory_stats stats;
	struct pvr_key key;
	struct pvr_error err;
	uint64_t begin = pvr_loop_now();

	assert_true(pvr_directory_add_host(net->directory, "a", &err));
	fake_host_up(net, "a", true);
	for (unsigned int i = 0; i < 65000; i++) {
		numbered_key(&key, RED, i);
		pvr_directory_resolve(net->directory, RED, key.gid);
		if (i % 100 == 0)
			fake_run(net, 1);
	}
	pvr_directory_get_stats(net->directory, &stats);
	/* Usually below 10,000; a machine that takes 15 s for this loop permits all of them. */
	assert_in_range(stats.lookups, 1000, 1100 + (pvr_loop_now() - begin) * 4200 / PVR_SEC);
}

TEST_NET(hurry, test_log_has_a_rate)
{
	uint64_t begin = pvr_loop_now();
	int lines = 0;

	fake_host_up(net, "b", true);
	find_at_a(net);
	for (int i = 0; i < 200; i++) {
		fake_located(net, "b", RED, G1);
		fake_run(net, 1);
	}
	for (const char *line = net->log; (line = strchr(line, '\n')); line++)
		lines++;
	assert_in_range(lines, 4, 10 + 10 * ((pvr_loop_now() - begin) / PVR_RATELIMIT_NS));
}

/* More refused claims than the log has lines for all hosts. */
static void claim_often(struct fake_net *net, const char *host)
{
	for (int i = 0; i < 40; i++) {
		fake_located(net, host, RED, G1);
		fake_run(net, 1);
	}
}

TEST_NET(hurry, test_log_has_space_for_each_host)
{
	fake_host_up(net, "b", true);
	fake_host_up(net, "c", true);
	find_at_a(net);
	claim_often(net, "b");
	assert_non_null(strstr(net->log, "host b claims"));
	claim_often(net, "c");
	assert_non_null(strstr(net->log, "host c claims"));
}

TEST_NET(hurry, test_refused_claims_leave_space_in_the_log)
{
	fake_host_up(net, "b", true);
	find_at_a(net);
	claim_often(net, "b");
	pvr_directory_log(net->directory, PVR_LOG_WARN, "etcd does not respond");
	assert_non_null(strstr(net->log, "etcd does not respond"));
}

/* ------------------------------------------------------------------------ reload */

TEST_NET(hurry, test_reload)
{
	struct pvr_directory_files files;
	struct pvr_error err;

	host_with(net, "a", G1);
	host_with(net, "b", G2);
	fake_resolve(net, RED, G1);
	fake_resolve(net, RED, G2);
	fake_until(net, fake_is_at(net, RED, G1, "a") && fake_is_at(net, RED, G2, "b"));

	text_file_write(net->path, "[host a]\naddress = nonsense\n");
	assert_false(pvr_directory_reload(net->directory, &files, &err));
	assert_non_null(strstr(err.text, ":2: 'nonsense' is not an IP address"));
	assert_true(fake_is_at(net, RED, G1, "a"));

	/* A mistake behind hosts that could be: they are not taken, either. */
	text_file_write(net->path,
			"[host d]\naddress=192.0.2.4\n[host keyless]\naddress=192.0.2.5\n");
	assert_false(pvr_directory_reload(net->directory, &files, &err));
	assert_non_null(strstr(err.text, ":3: there is no key for it"));
	assert_true(fake_is_at(net, RED, G1, "a"));
	assert_string_equal(fake_host(net, "d")->address, "");
	assert_false(fake_host(net, "a")->forgotten);
	assert_int_equal(net->rules_changed, 0);

	text_file_write(net->path, "[host d]\naddress=192.0.2.4\n[host b]\naddress=192.0.2.22\n");
	assert_true(pvr_directory_reload(net->directory, &files, &err));
	assert_string_equal(files.peers, net->path);
	assert_int_equal(files.num_peers, 2);
	assert_int_equal(net->rules_changed, 1);
	assert_true(fake_is_unknown(net, RED, G1));
	assert_true(fake_is_at(net, RED, G2, "b"));
	assert_true(fake_host(net, "a")->forgotten);
	assert_string_equal(fake_host(net, "b")->address, "192.0.2.22:7471");
	host_with(net, "d", G1);
	find(net, G1, "d");
}

static const struct {
	const char *label, *text, *says;
} mistakes[] = {
	{ "no section", "address = 192.0.2.1\n", ":1: 'address = 192.0.2.1' is before the first" },
	{ "unknown setting", "[host a]\naddress = 192.0.2.1\nadress = x\n",
	  ":3: unknown setting 'adress'" },
	{ "no address", "\n[host a]\n[host b]\n", ":2: host 'a' lacks address" },
	{ "same host", "[host a]\naddress=192.0.2.1\n[host a]\n", ":3: two hosts are named 'a'" },
	{ "bad name", "[host a/b]\n", ":1: host 'a/b': a name has" },
	{ "bad section", "[peer a]\n", ":1: section '[peer a]': expected [host NAME]" },
	{ "host name", "[host a]\naddress=host.example\n",
	  ":2: 'host.example' is not an IP address" },
	{ "port 0", "[host a]\naddress=192.0.2.1:0\n", ":2: address '192.0.2.1:0': port '0'" },
	{ "no port", "[host a]\naddress=[::1]x\n", ":2: address '[::1]x': expected" },
	{ "long prefix", "[host a]\naddress=192.0.2.1\ngids = 10.0.0.0/33\n",
	  ":3: gids '10.0.0.0/33'" },
	{ "no gids", "[host a]\naddress=192.0.2.1\ngids red =\n", ":3: gids is empty" },
	{ "same address", "[host a]\naddress=192.0.2.1\naddress=192.0.2.1\n",
	  ":3: host 'a' has two addr" },
	{ "no key", "[host keyless]\naddress=192.0.2.1\n", ":1: there is no key for it" },
	{ "one word", "what\n", ":1: 'what' is neither KEY = VALUE nor [host NAME]" },
};

TEST_CASES_WITH(struct fake_net *net, setup_none, stop, test_mistakes_name_the_line, mistakes)
{
	struct pvr_directory_settings settings = { .peers_file = net->path };
	struct pvr_error err;

	text_file_create(net->path, row->text);
	assert_null(fake_net_try(net, &settings, &err));
	if (!strstr(err.text, row->says))
		fail_msg("'%s' lacks '%s'", err.text, row->says);
	assert_int_equal(strncmp(err.text, net->path, strlen(net->path)), 0);
}
