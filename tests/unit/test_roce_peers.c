// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Traffic to each peer of a segment, as pvrdmactl paths shows it. */
#include <arpa/inet.h>
#include <stdio.h>

#include "path/wire/internal.h"
#include "segment.h"

#define LEN 100u

struct seen {
	unsigned int rows;
	uint64_t messages, bytes, of_others;
	char first[64];
};

static void note(void *opaque, const struct pvr_flow_stats *stats)
{
	struct seen *seen = opaque;

	assert_string_equal(stats->path, "wire");
	assert_string_equal(stats->why, "no adapter here and no other pvrdmad has this address");
	if (!seen->rows++)
		snprintf(seen->first, sizeof(seen->first), "%s", stats->to);
	seen->messages += stats->messages;
	seen->bytes += stats->bytes;
	if (!strcmp(stats->to, "others"))
		seen->of_others = stats->messages;
}

static struct seen paths(struct t_env *env, unsigned int max)
{
	struct seen seen = { 0 };
	unsigned int before;
	uint32_t cursor = 0;
	bool more;

	do {
		before = seen.rows;
		more = pvr_adapter_page_flows(env->g[0]->adapter, &cursor, max, note, &seen);
		assert_true(seen.rows - before <= max);
	} while (more);
	return seen;
}

TEST(rc_connected, test_peer_of_a_connection_is_shown_by_its_address)
{
	char address[INET6_ADDRSTRLEN];
	struct seen seen;

	for (uint32_t i = 0; i < 3; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, LEN);
		await_written(&env->a, i);
	}
	seen = paths(env, 7);
	assert_int_equal(seen.rows, 1);
	assert_int_equal(seen.messages, 3);
	assert_int_equal(seen.bytes, 3 * LEN);
	assert_string_equal(seen.first, inet_ntop(AF_INET6, env->b.gid, address, sizeof(address)));
}

static void send_to(struct t_env *env, uint32_t number)
{
	uint8_t gid[16];
	struct pvrdma_av av;

	fg_gid_from_ipv4(gid, 10, (uint8_t)(number >> 8), (uint8_t)number, 9);
	av = fg_av(&env->a.pd, gid, 0);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&env->a.mr, 0, LEN),
	       T_UD(&av, &env->b));
	t_run_ud(env->host);
	expect_sent(&env->a, 1);
}

/* A guest may name any address: the table does not grow with them. */
TEST(ud_ready, test_many_peers_are_counted_together)
{
	const uint32_t num = 1000;
	struct seen seen;

	for (uint32_t i = 0; i < num; i++)
		send_to(env, i);
	send_to(env, 0);
	seen = paths(env, UINT32_MAX);
	assert_int_equal(seen.rows, PVR_ETH_PEERS);
	assert_int_equal(seen.messages, num + 1);
	assert_int_equal(seen.of_others, num - (PVR_ETH_PEERS - 1));
	assert_string_equal(seen.first, "10.0.0.9");
}

static const struct t_case pages[] = { T_CASE(1), T_CASE(7), T_CASE(PVR_ETH_PEERS) };

TEST_CASES(ud_ready, test_peers_are_shown_in_pages, pages)
{
	struct seen seen;

	for (uint32_t i = 0; i < 100; i++)
		send_to(env, i);
	seen = paths(env, (unsigned int)row->value);
	assert_int_equal(seen.rows, PVR_ETH_PEERS);
	assert_int_equal(seen.messages, 100);
}
