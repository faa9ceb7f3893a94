// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * External DMA: what ends it, and which locks that takes.
 *
 * A test holds locks itself. pvr_lock_wait() is wrapped (--wrap, see meson.build): it counts, and
 * returns as if the lock were free.
 */
#include "ends.h"
#include "core/ext_dma.h"

static unsigned int waits;

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns);

bool __wrap_pvr_lock_wait(struct pvr_lock *lock, uint64_t ns)
{
	(void)lock;
	(void)ns;
	waits++;
	return true;
}

/* A transfer of a NIC from an end's region. */
struct dma {
	struct pvr_ext_dma use; /* first */
	struct pvr_adapter *adapter;
	unsigned int stopped;
	uint32_t counted; /* num_ext_dmas during stop() */
};

static void stop(struct pvr_ext_dma *use)
{
	struct dma *dma = (struct dma *)use;

	dma->stopped++;
	dma->counted = dma->adapter->num_ext_dmas;
}

static void begin(struct dma *dma, struct fg_end *end)
{
	const struct pvrdma_sge sge = fg_sge(&end->mr, 0, 64);
	struct pvr_qp *qp = t_device_qp(end);
	struct pvr_sg sg;

	*dma = (struct dma){ .adapter = qp->adapter, .use.qp = qp, .use.stop = stop };
	assert_int_equal(pvr_sg_build(&sg, qp, qp->pd, &sge, 1, 0), 0);
	assert_true(pvr_ext_dma_begin(&dma->use, &sg, 0, 64));
}

static void hold(struct pvr_lock *lock)
{
	pvr_lock(lock);
	waits = 0;
}

static void expect_no_waits(struct pvr_lock *lock)
{
	pvr_unlock(lock);
	assert_int_equal(waits, 0);
}

TEST(rc, test_region_in_use_takes_no_lock_of_another_adapter)
{
	static struct dma dma;

	begin(&dma, &env->a);
	hold(&env->g[1]->adapter->nic_lock);
	expect_ok(fg_mr_destroy(&env->a.mr));
	expect_no_waits(&env->g[1]->adapter->nic_lock);
	assert_int_equal(dma.stopped, 1);
}

TEST(rc, test_region_without_dma_takes_no_lock)
{
	struct fg_buf buf;
	struct fg_mr mr;
	static struct dma dma;

	fg_buf_init(&buf, &env->g[0]->ram, 1, FG_SCATTERED);
	expect_ok(fg_mr_create(&env->a.pd, &buf, FG_ACCESS_ALL, &mr));
	begin(&dma, &env->a);
	hold(&env->g[0]->adapter->nic_lock);
	expect_ok(fg_mr_destroy(&mr));
	expect_no_waits(&env->g[0]->adapter->nic_lock);
	assert_int_equal(dma.stopped, 0);
	pvr_ext_dma_end(&dma.use);
	assert_int_equal(dma.stopped, 1);
}

/* Meanwhile a revocation must wait for the lock, or the guest has its memory back too early. */
TEST(rc, test_dma_counts_until_it_is_stopped)
{
	static struct dma dma;

	begin(&dma, &env->a);
	pvr_ext_dma_end(&dma.use);
	assert_int_equal(dma.counted, 1);
	assert_int_equal(env->g[0]->adapter->num_ext_dmas, 0);
	pvr_ext_dma_end(&dma.use);
	assert_int_equal(dma.stopped, 1);
}

/* The end of a connection comes after that of the memory. */
TEST(rc, test_dma_ends_once)
{
	static struct dma dma[2];

	begin(&dma[0], &env->a);
	begin(&dma[1], &env->a);
	expect_ok(fg_mr_destroy(&env->a.mr));
	for (int i = 0; i < 2; i++) {
		pvr_ext_dma_end(&dma[i].use);
		assert_int_equal(dma[i].stopped, 1);
	}
	assert_int_equal(env->g[0]->adapter->num_ext_dmas, 0);
}
