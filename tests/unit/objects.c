// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What tests of commands share: objects to name, requests with a wrong member, SRQ pairs. */
#include "objects.h"

const struct t_bad_gpa t_bad_gpa[T_BAD_GPAS] = {
	{ "address 0", 0 },
	{ "address 1", 1 },
	{ "hole of RAM", FG_MMIO_HOLE },
	{ "own BAR", FG_BAR2_GPA },
	{ "above RAM", FG_NOWHERE },
	{ "end of the address space", UINT64_MAX },
};

void objects_init(struct objects *o, struct t_env *env)
{
	*o = (struct objects){ .env = env, .g = env->g[0] };
	expect_ok(fg_pd_create(&o->g->kernel, &o->pd));
	expect_ok(fg_cq_create(&o->g->kernel, 64, &o->cq));
	fg_buf_init(&o->buf, &o->g->ram, 32, FG_SCATTERED);
	o->qp = (struct fg_qp_spec){
		.type = PVR_QPT_RC, .pd = &o->pd, .scq = &o->cq, .rcq = &o->cq
	};
}

void t_store(void *object, const struct t_member *member)
{
	/* The device is little-endian, as are the hosts that it runs on. */
	memcpy((uint8_t *)object + member->offset, &member->value, member->size);
}

bool t_next_bad_page(struct t_bad_page *bad)
{
	const uint32_t place = bad->n % (1 + bad->npages), row = bad->n / (1 + bad->npages);

	if (bad->n++)
		memcpy(bad->place, &bad->good, sizeof(bad->good));
	if (row == T_BAD_GPAS)
		return false;
	bad->place = place ? (void *)&fg_buf_table(bad->buf, 0)[place - 1] : bad->pdir_dma;
	memcpy(&bad->good, bad->place, sizeof(bad->good));
	memcpy(bad->place, &t_bad_gpa[row].gpa, sizeof(bad->good));
	return true;
}

bool t_use_up(struct t_use_up *use, uint32_t err, const uint32_t *handle)
{
	if (!use->handle)
		use->handle = test_calloc(use->max, sizeof(*use->handle));
	if (err) {
		assert_false(use->again);
		assert_in_range(use->n, 1, use->max);
		expect_ok(fg_cmd_destroy(use->guest, use->destroy, use->handle[use->n / 2]));
		use->handle[use->n / 2] = use->handle[use->n - 1];
		use->n--;
		use->again = true;
		return true;
	}
	assert_in_range(use->n, 0, use->max - 1);
	use->handle[use->n++] = *handle;
	if (!use->again)
		return true;
	while (use->n--)
		expect_ok(fg_cmd_destroy(use->guest, use->destroy, use->handle[use->n]));
	test_free(use->handle);
	return false;
}

void srq_pair_init(struct srq_pair *s, struct t_env *env)
{
	*s = (struct srq_pair){ .env = env, .a = &env->a, .b = &env->b };
	fg_end_open(s->a, env->g[0], PVR_QPT_RC);
	fg_end_open(s->b, env->g[1], PVR_QPT_RC);
	fg_buf_init(&s->buf, &env->g[1]->ram, 4, FG_SCATTERED);
	srq_pair_use(s, &s->b->pd);
}

void srq_pair_use(struct srq_pair *s, struct fg_pd *pd)
{
	expect_ok(fg_srq_create(pd, SRQ_WR, 4, &s->srq));
	t_qp_replace(s->b, (struct fg_qp_spec){ .srq = &s->srq });
	t_reconnect(s->env);
}

void t_dsr_refused(struct fg_guest *g, uint64_t gpa)
{
	fg_dsr_write(g, gpa);
	assert_false(fg_dsr_accepted(g));
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	assert_int_not_equal(fg_ctl(g, PVR_CTL_ACTIVATE), 0);
	expect_ok(fg_guest_boot(g));
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	fg_dsr_fill(g);
}

void t_commands_work(struct fg_guest *g)
{
	struct pvr_port_attr attr;

	expect_ok(fg_query_port(g, 1, &attr));
}

void t_commands_refused(struct fg_guest *g)
{
	struct pvr_port_attr attr;

	expect_refused(fg_query_port(g, 1, &attr));
}

void t_set_link(struct fg_guest *g, bool up)
{
	pvr_adapter_set_link(g->adapter, up);
	fg_run(g->host);
}
