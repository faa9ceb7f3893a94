// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The directory's parts, and queries to the hosts of a peers file. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_net.h"
#include "directory/queue.h"
#include "directory/own_gids.h"
#include "test.h"

#define RED "red"
#define G1 "fd00::1"
#define G2 "fd00::2"
#define GROUP "ff1e::1"
#define GROUP_V4 "::ffff:239.77.0.1"

static const struct pvr_directory_timing hurry = {
	.round = 10 * PVR_MSEC,
	.absent = 50 * PVR_MSEC,
	.group = 30 * PVR_MSEC,
	.found = 40 * PVR_MSEC,
	.verify = 30 * PVR_MSEC,
};

/* Long enough that no entry expires on a slow machine. */
static const struct pvr_directory_timing patient = {
	.round = 10 * PVR_MSEC,
	.absent = PVR_SEC,
};

static const char three_hosts[] = "[host a]\naddress = 192.0.2.1\n"
				  "[host b]\naddress = 192.0.2.2:7000\n"
				  "[host c]\naddress = 192.0.2.3\n"
				  "[host self]\naddress = 192.0.2.99\n";

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void start_with(struct fake_net *net, char path[32], const char *text,
		       const struct pvr_directory_timing *timing)
{
	struct pvr_directory_settings settings = { .peers_file = path, .timing = *timing };

	strcpy(path, "/tmp/test_directory.XXXXXX");
	close(mkstemp(path));
	write_file(path, text);
	fake_net_start(net, &settings);
}

static void start(struct fake_net *net, char path[32], const char *text)
{
	start_with(net, path, text, &hurry);
}

static void stop(struct fake_net *net, const char *path)
{
	unlink(path);
	fake_net_exit(net);
}

/* ------------------------------------------------------------------------- parts */

static void ready(struct pvr_source *source, uint32_t events)
{
}

static void numbered_key(struct pvr_key *key, const char *fabric, unsigned int number)
{
	uint8_t gid[16] = { 0xfd, [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number };

	assert_true(pvr_key_init(key, fabric, gid));
}

TEST_PLAIN(test_queue_keeps_a_question_once)
{
	struct pvr_loop *loop = pvr_loop_create();
	struct pvr_dir_queue queue;
	struct pvr_key key, got;
	int i;

	assert_int_equal(pvr_dir_queue_init(&queue, loop, ready), 0);
	numbered_key(&key, RED, 7);
	for (i = 0; i < 100; i++)
		pvr_dir_queue_lookup(&queue, &key);
	assert_true(pvr_dir_queue_question(&queue, &got));
	assert_true(pvr_key_equal(&got, &key));
	assert_false(pvr_dir_queue_question(&queue, &got));
	pvr_dir_queue_lookup(&queue, &key);
	assert_true(pvr_dir_queue_question(&queue, &got));
	pvr_dir_queue_exit(&queue);
	pvr_loop_destroy(loop);
}

/* Queries of one tenant are bounded, and others get their share. */
TEST_PLAIN(test_queue_lanes_take_turns)
{
	struct pvr_loop *loop = pvr_loop_create();
	struct pvr_dir_queue queue;
	struct pvr_key key;
	unsigned int i, red = 0, before_blue = 0;

	assert_int_equal(pvr_dir_queue_init(&queue, loop, ready), 0);
	for (i = 0; i < 5000; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_lookup(&queue, &key);
	}
	numbered_key(&key, "blue", 1);
	pvr_dir_queue_lookup(&queue, &key);
	while (pvr_dir_queue_question(&queue, &key)) {
		if (!strcmp(key.fabric, "blue"))
			before_blue = red;
		else
			red++;
	}
	assert_int_equal(red, PVR_DIR_QUEUE_LANE_MAX);
	assert_int_equal(queue.dropped, 5000 - PVR_DIR_QUEUE_LANE_MAX);
	assert_in_range(before_blue, 0, 1);
	pvr_dir_queue_exit(&queue);
	pvr_loop_destroy(loop);
}

TEST_PLAIN(test_queue_news_are_bounded)
{
	struct pvr_loop *loop = pvr_loop_create();
	struct pvr_dir_queue queue;
	struct pvr_news news;
	struct pvr_key key;
	unsigned int i, num = 0;

	assert_int_equal(pvr_dir_queue_init(&queue, loop, ready), 0);
	for (i = 0; i < PVR_DIR_QUEUE_NEWS_MAX + 100; i++) {
		numbered_key(&key, RED, i);
		pvr_dir_queue_add_news(&queue, PVR_NEWS_LOCATED, "a", &key, 1);
		pvr_dir_queue_add_news(&queue, PVR_NEWS_WANTED, "a", NULL, 0);
	}
	/* The bound is each kind's. */
	pvr_dir_queue_add_news(&queue, PVR_NEWS_MOVED, "b", &key, 0);
	while (pvr_dir_queue_news(&queue, &news))
		num += news.kind == PVR_NEWS_LOCATED;
	assert_int_equal(num, PVR_DIR_QUEUE_NEWS_MAX);
	assert_int_equal(news.kind, PVR_NEWS_MOVED);
	assert_string_equal(news.host, "b");
	pvr_dir_queue_exit(&queue);
	pvr_loop_destroy(loop);
}

static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 1 }, mac_b[6] = { 2, 0, 0, 0, 0, 2 };

TEST_PLAIN(test_own_gid_comes_and_goes)
{
	struct pvr_own_gids own;
	struct pvr_key key, got;
	uint8_t type;

	assert_true(pvr_own_gids_init(&own));
	numbered_key(&key, RED, 1);
	pvr_own_gids_set(&own, &key, 2, mac_a, true);
	pvr_own_gids_set(&own, &key, 2, mac_a, true);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	assert_true(pvr_key_equal(&got, &key));
	assert_int_equal(type, 2);
	assert_false(pvr_own_gids_next(&own, &got, &type));
	pvr_own_gids_set(&own, &key, 2, mac_a, false);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	assert_int_equal(type, 0);
	assert_false(pvr_own_gids_next(&own, &got, &type));
	assert_int_equal(pvr_own_gids_num(&own), 0);
	pvr_own_gids_exit(&own);
}

/* A GID that is added and removed between two reads leaves no entry and no memory. */
TEST_PLAIN(test_own_gid_between_two_looks)
{
	struct pvr_own_gids own;
	struct pvr_key key, got;
	unsigned int i;
	uint8_t type;

	assert_true(pvr_own_gids_init(&own));
	for (i = 0; i < 1000; i++) {
		numbered_key(&key, RED, i);
		pvr_own_gids_set(&own, &key, 2, mac_a, true);
		pvr_own_gids_set(&own, &key, 2, mac_a, false);
	}
	assert_int_equal(pvr_own_gids_num(&own), 0);
	assert_false(pvr_own_gids_next(&own, &got, &type));
	pvr_own_gids_set(&own, &key, 2, mac_a, true);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	pvr_own_gids_set(&own, &key, 2, mac_a, false);
	pvr_own_gids_set(&own, &key, 2, mac_b, true);
	assert_false(pvr_own_gids_next(&own, &got, &type)); /* it was here all the time */
	pvr_own_gids_set(&own, &key, 1, mac_b, true);
	pvr_own_gids_set(&own, &key, 1, mac_b, true);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	assert_int_equal(type, 1);
	pvr_own_gids_exit(&own);
}

/* A group goes with its last member. */
TEST_PLAIN(test_own_group_has_several_members)
{
	struct pvr_own_gids own;
	struct pvr_key key, got;
	uint8_t type;

	assert_true(pvr_own_gids_init(&own));
	fake_key(&key, RED, GROUP);
	pvr_own_gids_set(&own, &key, 2, mac_a, true);
	pvr_own_gids_set(&own, &key, 2, mac_b, true);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	pvr_own_gids_set(&own, &key, 2, mac_a, false);
	assert_false(pvr_own_gids_next(&own, &got, &type));
	pvr_own_gids_set(&own, &key, 2, mac_b, false);
	assert_true(pvr_own_gids_next(&own, &got, &type));
	assert_int_equal(type, 0);
	pvr_own_gids_exit(&own);
}

/* ---------------------------------------------------------------------- look-ups */

/* Guests have resolved G1, which is at host a. */
static void find_at_a(struct fake_net *net)
{
	fake_host_up(net, "a", true);
	fake_host_add(net, "a", RED, G1);
	fake_resolve(net, RED, G1);
	fake_until(net, fake_is_at(net, RED, G1, "a"));
}

TEST_PLAIN(test_query_finds_the_host_of_a_gid)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	assert_string_equal(fake_host(&net, "b")->address, "192.0.2.2:7000");
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_up(&net, "c", true);
	fake_host_add(&net, "b", RED, G1);
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_at(&net, RED, G1, "b"));
	assert_int_equal(fake_gid(&net, RED, G1)->type, PVR_GID_TYPE_ROCE_V2);
	/* Another fabric's is another GID. */
	fake_resolve(&net, "blue", G1);
	fake_until(&net, fake_is_nowhere(&net, "blue", G1));
	assert_int_equal(fake_host(&net, "self")->asked, 0);
	stop(&net, path);
}

TEST_PLAIN(test_waits_for_a_connection)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_add(&net, "c", RED, G1);
	fake_resolve(&net, RED, G1);
	fake_run(&net, 5);
	assert_true(fake_host(&net, "a")->wanted && fake_host(&net, "c")->wanted);
	assert_null(fake_gid(&net, RED, G1));
	fake_host_up(&net, "c", true);
	fake_until(&net, fake_is_at(&net, RED, G1, "c"));
	stop(&net, path);
}

TEST_PLAIN(test_absent_is_believed_for_a_while)
{
	struct fake_net net;
	char path[32];
	unsigned int asked;

	start_with(&net, path, three_hosts, &patient);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_up(&net, "c", true);
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_nowhere(&net, RED, G1));
	asked = fake_host(&net, "a")->asked;
	fake_resolve(&net, RED, G1);
	fake_run(&net, 10);
	assert_int_equal(fake_host(&net, "a")->asked, asked);
	fake_until(&net, fake_is_unknown(&net, RED, G1));
	fake_host_add(&net, "a", RED, G1);
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_at(&net, RED, G1, "a"));
	stop(&net, path);
}

/* A host that is down or silent gets a bounded number of queries. */
TEST_PLAIN(test_rounds_are_bounded)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_up(&net, "a", true);
	fake_host(&net, "a")->silent = true;
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_nowhere(&net, RED, G1));
	assert_in_range(fake_host(&net, "a")->asked, 3, 20);
	stop(&net, path);
}

TEST_PLAIN(test_moved_is_asked_again)
{
	struct fake_net net;
	struct pvr_key key;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_up(&net, "b", true);
	find_at_a(&net);
	fake_host_remove(&net, "a", RED, G1);
	fake_host_add(&net, "b", RED, G1);
	fake_key(&key, RED, G1);
	pvr_directory_moved(net.directory, "b", RED, key.gid); /* b never had the GID */
	fake_run(&net, 5);
	assert_true(fake_is_at(&net, RED, G1, "a"));
	pvr_directory_moved(net.directory, "a", RED, key.gid);
	fake_until(&net, fake_is_unknown(&net, RED, G1));
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_at(&net, RED, G1, "b"));
	stop(&net, path);
}

/* Without a report: by periodic queries to the owner. */
TEST_PLAIN(test_found_is_confirmed)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	find_at_a(&net);
	fake_run(&net, 150);
	assert_true(fake_is_at(&net, RED, G1, "a"));
	assert_int_equal(fake_gid(&net, RED, G1)->told, 1);
	fake_host_remove(&net, "a", RED, G1);
	fake_until(&net, fake_is_unknown(&net, RED, G1));
	stop(&net, path);
}

/* Entries of a disconnected host stay until they are needed. */
TEST_PLAIN(test_dead_owner_is_replaced_when_wanted)
{
	struct fake_net net;
	char path[32];
	uint64_t begin;

	start(&net, path, three_hosts);
	find_at_a(&net);
	fake_host_up(&net, "a", false);
	fake_host_up(&net, "b", true);
	fake_host_add(&net, "b", RED, G1);
	fake_run(&net, 200);
	assert_true(fake_is_at(&net, RED, G1, "a"));
	begin = pvr_loop_now();
	while (!fake_is_at(&net, RED, G1, "b")) {
		pvr_directory_wanted(net.directory, "a");
		fake_run(&net, 20);
		assert_true(pvr_loop_now() - begin < 5 * PVR_SEC);
	}
	assert_true(pvr_loop_now() - begin >= PVR_SEC);
	stop(&net, path);
}

/* ------------------------------------------------------------------------ claims */

TEST_PLAIN(test_claim_of_a_live_hosts_gid)
{
	struct fake_net net;
	struct pvr_key key;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_up(&net, "b", true);
	find_at_a(&net);
	fake_key(&key, RED, G1);
	pvr_directory_located(net.directory, "b", RED, key.gid, PVR_GID_TYPE_ROCE_V2);
	fake_run(&net, 10);
	assert_true(fake_is_at(&net, RED, G1, "a"));
	assert_non_null(strstr(net.log, "host b claims fd00::1 in fabric red: refused, "
					"it belongs to host a, which is connected"));
	stop(&net, path);
}

TEST_PLAIN(test_claim_outside_the_pins)
{
	struct fake_net net;
	char path[32];

	start_with(&net, path,
		   "[host a]\naddress=192.0.2.1\ngids red = fd00::2/128 10.1.0.0/16\n"
		   "[host b]\naddress=192.0.2.2\ngids = fd00::/64\n",
		   &patient);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_add(&net, "a", RED, G1);
	fake_host_add(&net, "a", RED, G2);
	fake_host_add(&net, "a", RED, "::ffff:10.1.2.3");
	fake_host_add(&net, "a", RED, "::ffff:10.2.2.3");
	fake_host_add(&net, "a", "blue", G2);
	fake_resolve(&net, RED, G1);
	fake_resolve(&net, RED, G2);
	fake_resolve(&net, "blue", G2);
	fake_resolve(&net, RED, "::ffff:10.1.2.3");
	fake_resolve(&net, RED, "::ffff:10.2.2.3");
	fake_until(&net, fake_is_at(&net, RED, G2, "a"));
	fake_until(&net, fake_is_at(&net, RED, "::ffff:10.1.2.3", "a"));
	fake_until(&net, fake_is_nowhere(&net, RED, G1));
	fake_until(&net, fake_is_nowhere(&net, "blue", G2));
	fake_until(&net, fake_is_nowhere(&net, RED, "::ffff:10.2.2.3"));
	/* Hosts that may not have the GID get no query, and an unrequested reply is ignored. */
	assert_int_equal(fake_host(&net, "a")->asked, 2);
	pvr_directory_located(net.directory, "a", RED, fake_gid(&net, RED, G1)->key.gid, 2);
	fake_run(&net, 10);
	assert_true(fake_is_nowhere(&net, RED, G1));
	assert_non_null(strstr(net.log, "host a claims fd00::1 in fabric red: refused, "
					"the peers file does not allow it"));
	stop(&net, path);
}

/* Replies without a query, from unknown hosts. */
TEST_PLAIN(test_answers_out_of_nowhere)
{
	struct fake_net net;
	struct pvr_key key;
	char path[32];

	start(&net, path, three_hosts);
	fake_key(&key, RED, G1);
	pvr_directory_located(net.directory, "a", RED, key.gid, 2);
	pvr_directory_located(net.directory, "mallory", RED, key.gid, 2);
	pvr_directory_moved(net.directory, "mallory", RED, key.gid);
	pvr_directory_wanted(net.directory, "mallory");
	pvr_directory_changed(net.directory, "mallory", true);
	fake_run(&net, 10);
	assert_int_equal(net.told, 0);
	fake_resolve(&net, RED, G1);
	fake_run(&net, 5);
	pvr_directory_located(net.directory, "mallory", RED, key.gid, 2);
	fake_run(&net, 5);
	assert_int_equal(net.told, 0);
	stop(&net, path);
}

/* ------------------------------------------------------------------------ groups */

static void group_members(const char *group)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_up(&net, "c", true);
	fake_host_add(&net, "a", RED, group);
	fake_host_add(&net, "b", RED, group);
	fake_resolve(&net, RED, group);
	fake_until(&net, fake_is_at(&net, RED, group, "a") && fake_is_at(&net, RED, group, "b"));
	assert_false(fake_is_at(&net, RED, group, "c"));
	fake_host_add(&net, "c", RED, group);
	fake_host_remove(&net, "a", RED, group);
	fake_until(&net, fake_is_at(&net, RED, group, "c") && !fake_is_at(&net, RED, group, "a"));
	assert_true(fake_is_at(&net, RED, group, "b"));
	/* A member that is dead. */
	fake_host_up(&net, "b", false);
	fake_until(&net, !fake_is_at(&net, RED, group, "b"));
	fake_host_remove(&net, "c", RED, group);
	fake_until(&net, fake_is_nowhere(&net, RED, group));
	stop(&net, path);
}

TEST_PLAIN(test_group_members)
{
	group_members(GROUP);
}

TEST_PLAIN(test_members_of_a_group_of_ipv4)
{
	group_members(GROUP_V4);
}

/* Members are reported together: a waiting sender sends to the reported members only. */
TEST_PLAIN(test_members_are_told_together)
{
	const struct pvr_directory_timing timing = { .round = 60 * PVR_SEC };
	struct fake_net net;
	char path[32];

	start_with(&net, path, three_hosts, &timing);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_add(&net, "a", RED, GROUP);
	fake_host_add(&net, "b", RED, GROUP);
	fake_host_add(&net, "c", RED, GROUP);
	fake_resolve(&net, RED, GROUP);
	fake_run(&net, 10);
	assert_int_equal(fake_host(&net, "a")->asked, 1);
	assert_int_equal(net.told, 0);
	fake_host_up(&net, "c", true);
	fake_until(&net, net.told);
	assert_true(fake_is_at(&net, RED, GROUP, "a") && fake_is_at(&net, RED, GROUP, "b") &&
		    fake_is_at(&net, RED, GROUP, "c"));
	assert_int_equal(net.told, 4); /* and that RoCE v1 has no members */
	assert_int_equal(net.halves, 2);
	assert_false(fake_gid(&net, RED, GROUP)->more);
	stop(&net, path);
}

TEST_PLAIN(test_dead_host_holds_up_no_group)
{
	struct fake_net net;
	char path[32];

	start(&net, path, three_hosts);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host(&net, "b")->silent = true;
	fake_host_add(&net, "a", RED, GROUP);
	fake_resolve(&net, RED, GROUP);
	fake_until(&net, fake_is_at(&net, RED, GROUP, "a"));
	/* After a round, not after all of them. */
	assert_in_range(fake_host(&net, "b")->asked, 2, 4);
	/* A late reply adds its host alone. */
	fake_host(&net, "b")->silent = false;
	fake_host_add(&net, "b", RED, GROUP);
	fake_until(&net, fake_is_at(&net, RED, GROUP, "b"));
	assert_true(fake_is_at(&net, RED, GROUP, "a"));
	assert_int_equal(net.halves, 0);
	stop(&net, path);
}

/* ------------------------------------------------------------------------ bounds */

TEST_PLAIN(test_cache_is_bounded)
{
	struct pvr_directory_settings settings = { .cache = 100, .timing = hurry };
	struct pvr_directory_stats stats;
	struct fake_net net;
	struct pvr_key key;
	struct pvr_error err;
	unsigned int i;

	settings.timing.absent = 60 * PVR_SEC;
	fake_net_start(&net, &settings);
	assert_true(pvr_directory_add_host(net.directory, "a", &err));
	find_at_a(&net);
	for (i = 0; i < 1000; i++) {
		numbered_key(&key, "blue", i);
		pvr_directory_resolve(net.directory, "blue", key.gid);
		if (i % 50 == 49) {
			fake_resolve(&net, RED, G1); /* it is in use */
			fake_run(&net, 2);
		}
	}
	fake_run(&net, 50);
	pvr_directory_get_stats(net.directory, &stats);
	assert_int_equal(stats.entries, 100);
	assert_true(fake_is_at(&net, RED, G1, "a"));
	assert_true(net.unknown >= 800); /* the engine was told to forget them */
	fake_net_exit(&net);
}

/* The rate of queries to hosts is bounded, at any rate of the guests' queries. */
TEST_PLAIN(test_lookups_have_a_rate)
{
	struct pvr_directory_settings settings = { .timing = hurry };
	struct pvr_directory_stats stats;
	struct fake_net net;
	struct pvr_key key;
	struct pvr_error err;
	uint64_t begin = pvr_loop_now();
	unsigned int i;

	fake_net_start(&net, &settings);
	assert_true(pvr_directory_add_host(net.directory, "a", &err));
	fake_host_up(&net, "a", true);
	for (i = 0; i < 65000; i++) {
		numbered_key(&key, RED, i);
		pvr_directory_resolve(net.directory, RED, key.gid);
		if (i % 100 == 0)
			fake_run(&net, 1);
	}
	pvr_directory_get_stats(net.directory, &stats);
	assert_in_range(stats.lookups, 1000, 1100 + (pvr_loop_now() - begin) * 4200 / PVR_SEC);
	assert_true(stats.lookups < 60000);
	fake_net_exit(&net);
}

TEST_PLAIN(test_log_has_a_rate)
{
	struct fake_net net;
	struct pvr_key key;
	const char *line;
	char path[32];
	int i, lines = 0;

	start(&net, path, three_hosts);
	fake_host_up(&net, "b", true);
	find_at_a(&net);
	fake_key(&key, RED, G1);
	for (i = 0; i < 200; i++) {
		pvr_directory_located(net.directory, "b", RED, key.gid, 2);
		fake_run(&net, 1);
	}
	for (line = net.log; (line = strchr(line, '\n')); line++)
		lines++;
	assert_in_range(lines, 10, 25);
	stop(&net, path);
}

/* ------------------------------------------------------------------------ reload */

TEST_PLAIN(test_reload)
{
	struct fake_net net;
	struct pvr_error err;
	const char *file;
	char path[32];
	size_t hosts;

	start(&net, path, three_hosts);
	fake_host_up(&net, "a", true);
	fake_host_up(&net, "b", true);
	fake_host_add(&net, "a", RED, G1);
	fake_host_add(&net, "b", RED, G2);
	fake_resolve(&net, RED, G1);
	fake_resolve(&net, RED, G2);
	fake_until(&net, fake_is_at(&net, RED, G1, "a") && fake_is_at(&net, RED, G2, "b"));

	write_file(path, "[host a]\naddress = nonsense\n");
	assert_false(pvr_directory_reload(net.directory, &file, &hosts, &err));
	assert_non_null(strstr(err.text, ":2: 'nonsense' is not an IP address"));
	assert_true(fake_is_at(&net, RED, G1, "a"));

	/* A mistake behind hosts that could be: they are not taken, either. */
	write_file(path, "[host d]\naddress=192.0.2.4\n[host keyless]\naddress=192.0.2.5\n");
	assert_false(pvr_directory_reload(net.directory, &file, &hosts, &err));
	assert_non_null(strstr(err.text, ":3: there is no key for it"));
	assert_true(fake_is_at(&net, RED, G1, "a"));
	assert_string_equal(fake_host(&net, "d")->address, "");
	assert_false(fake_host(&net, "a")->forgotten);

	write_file(path, "[host d]\naddress=192.0.2.4\n[host b]\naddress=192.0.2.22\n");
	assert_true(pvr_directory_reload(net.directory, &file, &hosts, &err));
	assert_string_equal(file, path);
	assert_int_equal(hosts, 2);
	assert_true(fake_is_unknown(&net, RED, G1));
	assert_true(fake_is_at(&net, RED, G2, "b"));
	assert_true(fake_host(&net, "a")->forgotten);
	assert_string_equal(fake_host(&net, "b")->address, "192.0.2.22:7471");
	fake_host_add(&net, "d", RED, G1);
	fake_host_up(&net, "d", true);
	fake_resolve(&net, RED, G1);
	fake_until(&net, fake_is_at(&net, RED, G1, "d"));
	stop(&net, path);
}

TEST_PLAIN(test_mistakes_name_the_line)
{
	static const struct {
		const char *text, *says;
	} mistakes[] = {
		{ "address = 192.0.2.1\n", ":1: 'address = 192.0.2.1' is before the first" },
		{ "[host a]\naddress = 192.0.2.1\nadress = x\n", ":3: unknown setting 'adress'" },
		{ "\n[host a]\n[host b]\n", ":2: host 'a' lacks address" },
		{ "[host a]\naddress=192.0.2.1\n[host a]\n", ":3: two hosts are named 'a'" },
		{ "[host a/b]\n", ":1: host 'a/b': a name has" },
		{ "[peer a]\n", ":1: section '[peer a]': expected [host NAME]" },
		{ "[host a]\naddress=host.example\n", ":2: 'host.example' is not an IP address" },
		{ "[host a]\naddress=192.0.2.1:0\n", ":2: address '192.0.2.1:0': port '0'" },
		{ "[host a]\naddress=[::1]x\n", ":2: address '[::1]x': expected" },
		{ "[host a]\naddress=192.0.2.1\ngids = 10.0.0.0/33\n", ":3: gids '10.0.0.0/33'" },
		{ "[host a]\naddress=192.0.2.1\ngids red =\n", ":3: gids is empty" },
		{ "[host a]\naddress=192.0.2.1\naddress=192.0.2.1\n", ":3: host 'a' has two addr" },
		{ "[host keyless]\naddress=192.0.2.1\n", ":1: there is no key for it" },
		{ "what\n", ":1: 'what' is neither KEY = VALUE nor [host NAME]" },
	};
	struct pvr_directory_settings settings = { .peers_file = "/tmp/test_directory.bad" };
	struct pvr_error err;
	struct fake_net net;
	size_t i;

	for (i = 0; i < COUNT(mistakes); i++) {
		write_file(settings.peers_file, mistakes[i].text);
		fake_net_init(&net);
		assert_null(fake_net_try(&net, &settings, &err));
		if (!strstr(err.text, mistakes[i].says))
			fail_msg("'%s' lacks '%s'", err.text, mistakes[i].says);
		assert_int_equal(strncmp(err.text, settings.peers_file, 23), 0);
		fake_net_exit(&net);
	}
	unlink(settings.peers_file);
}
