// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an idle queue pair costs the host. malloc() and its kin are wrapped (--wrap, see
 * meson.build) and add up the sizes of the requests, without what the heap adds.
 */
#include <malloc.h>
#include <stdlib.h>

#include "objects.h"

#define QPS 1000
#define LIMIT 1024 /* bytes */

TEST_EXT(PVR_ENGINE_EXT)

static size_t asked_for;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	asked_for += size;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	asked_for += n * size;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	size_t had = old ? malloc_usable_size(old) : 0;

	asked_for += size > had ? size - had : 0;
	return __real_realloc(old, size);
}

/* Bytes for each of QPS queue pairs that lie in the same pages, as a guest may do it. */
static size_t bytes_each(struct t_env *env, const struct fg_qp_spec *spec)
{
	struct pvr_cmd_create_qp req = fg_qp_request(spec);
	struct fg_guest *g = env->g[0];
	struct pvr_resp_create_qp resp;
	struct fg_buf buf;
	size_t before;

	fg_buf_init(&buf, &g->ram, req.total_chunks, FG_SCATTERED);
	req.pdir_dma = buf.pdir;
	before = asked_for;
	for (uint32_t i = 0; i < QPS; i++)
		expect_ok(fg_create_qp(g, &req, &resp));
	return (asked_for - before) / QPS;
}

TEST(rc, test_idle_queue_pair_takes_1_kib_at_most)
{
	struct fg_qp_spec spec = end_spec(&env->a);
	size_t bytes = bytes_each(env, &spec);

	print_message("an RC queue pair: %zu bytes\n", bytes);
	assert_in_range(bytes, 1, LIMIT);
	spec.type = PVR_QPT_UD;
	assert_in_range(bytes_each(env, &spec), 1, LIMIT);
}

/* The request in hand is as large as the SRQ's requests are, and no larger. */
TEST(rc, test_idle_queue_pair_with_an_srq_takes_1_kib_at_most)
{
	struct fg_qp_spec spec = end_spec(&env->a);
	struct fg_srq srq;

	expect_ok(fg_srq_create(&env->a.pd, 64, 1, &srq));
	spec.srq = &srq;
	assert_in_range(bytes_each(env, &spec), 1, LIMIT);
}
