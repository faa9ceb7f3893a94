// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_faults fail-nth | signals | forever | bad-response
 *
 * Creates and destroys objects of each kind repeatedly: while kernel allocations fail in
 * turn, while signals interrupt, until killed, or with contexts and PDs whose response
 * the driver cannot write. A failure must not leave objects behind. The caller compares
 * "rdma resource show" before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>

#include "rdma.h"

#define MAX_ALLOCATIONS 20000
#define ROUNDS 60
#define COUNTS 8
#define BYTES (4 << 20)
#define ON_DEMAND_BYTES (64 * 4096)

/* Objects that the verbs under test use, created once, and the object of the present verb. */
struct env {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd; /* NULL: the driver has none */
	int dmabuf; /* -1: the kernel has no /dev/udmabuf */
	bool on_demand; /* the driver has regions on demand */
	char *buf, *pages; /* pages: not registered */
	int cqe, max_wr; /* present sizes of cq and srq */
	void *made;
};

enum verb_kind {
	OPEN_DEVICE,
	ALLOC_PD,
	CREATE_COMP_CHANNEL,
	CREATE_CQ,
	CREATE_CQ_TIMES,
	CREATE_SRQ,
	CREATE_QP,
	REG_MR,
	REG_DMABUF_MR,
	REG_ON_DEMAND,
	ALLOC_MW,
	OPEN_XRCD,
	CREATE_XRC_SRQ,
	CREATE_XRC_TARGET,
	NO_OBJECT,
};

/* A verb creates an object, or change() returns 0 or an errno. */
struct verb {
	const char *name;
	enum verb_kind kind;
	int (*change)(struct env *env);
	bool is_optional; /* the driver may not have it */
	int spared; /* its last allocations, which fail-nth does not fail */
};

static struct ibv_cq *create_cq_times(struct ibv_context *ctx)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1000,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *ctx)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static void *not_here(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static struct ibv_srq *create_xrc_srq(const struct env *env)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 500, .max_sge = 4 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = env->node.pd,
		.xrcd = env->xrcd,
		.cq = env->cq,
	};

	return env->xrcd ? ibv_create_srq_ex(env->node.ctx, &attr) : not_here();
}

static struct ibv_qp *create_xrc_target(const struct env *env)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = env->xrcd,
	};

	return env->xrcd ? ibv_create_qp_ex(env->node.ctx, &attr) : not_here();
}

static struct ibv_mr *reg_dmabuf(const struct env *env)
{
	if (env->dmabuf < 0)
		return not_here();
	return ibv_reg_dmabuf_mr(env->node.pd, 0, BYTES, 0, env->dmabuf, IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *reg_on_demand(const struct env *env, void *start, size_t length)
{
	if (!env->on_demand)
		return not_here();
	return ibv_reg_mr(env->node.pd, start, length,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

/* Return: a new object, or NULL with errno. */
static void *create(struct env *env, enum verb_kind kind)
{
	struct ibv_context *ctx = env->node.ctx;
	struct ibv_pd *pd = env->node.pd;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 500, .max_sge = 4 } };
	struct ibv_qp_init_attr qp = {
		.send_cq = env->cq,
		.recv_cq = env->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 200,
			 .max_recv_wr = 200,
			 .max_send_sge = 4,
			 .max_recv_sge = 4 },
	};

	switch (kind) {
	case OPEN_DEVICE:
		return ibv_open_device(ctx->device);
	case ALLOC_PD:
		return ibv_alloc_pd(ctx);
	case CREATE_COMP_CHANNEL:
		return ibv_create_comp_channel(ctx);
	case CREATE_CQ:
		return ibv_create_cq(ctx, 1000, NULL, NULL, 0);
	case CREATE_CQ_TIMES:
		return create_cq_times(ctx);
	case CREATE_SRQ:
		return ibv_create_srq(pd, &srq);
	case CREATE_QP:
		return ibv_create_qp(pd, &qp);
	case REG_MR:
		return ibv_reg_mr(pd, env->buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	case REG_DMABUF_MR:
		return reg_dmabuf(env);
	case REG_ON_DEMAND:
		return reg_on_demand(env, env->pages, ON_DEMAND_BYTES);
	case ALLOC_MW:
		return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	case OPEN_XRCD:
		return open_xrcd(ctx);
	case CREATE_XRC_SRQ:
		return create_xrc_srq(env);
	case CREATE_XRC_TARGET:
		return create_xrc_target(env);
	case NO_OBJECT:
		break;
	}
	return NULL;
}

/* Return: 0 or an errno. */
static int destroy(void *object, enum verb_kind kind)
{
	switch (kind) {
	case OPEN_DEVICE:
		return ibv_close_device(object);
	case ALLOC_PD:
		return ibv_dealloc_pd(object);
	case CREATE_COMP_CHANNEL:
		return ibv_destroy_comp_channel(object);
	case CREATE_CQ:
	case CREATE_CQ_TIMES:
		return ibv_destroy_cq(object);
	case CREATE_SRQ:
	case CREATE_XRC_SRQ:
		return ibv_destroy_srq(object);
	case CREATE_QP:
	case CREATE_XRC_TARGET:
		return ibv_destroy_qp(object);
	case OPEN_XRCD:
		return ibv_close_xrcd(object);
	case REG_MR:
	case REG_DMABUF_MR:
	case REG_ON_DEMAND:
		return ibv_dereg_mr(object);
	case ALLOC_MW:
		return ibv_dealloc_mw(object);
	case NO_OBJECT:
		break;
	}
	return 0;
}

static int resize_cq(struct env *env)
{
	int cqe = env->cqe == 100 ? 1000 : 100;
	int err = ibv_resize_cq(env->cq, cqe);

	if (!err)
		env->cqe = cqe;
	return err;
}

static int modify_cq(struct env *env)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 5, .cq_period = 50 },
	};

	return ibv_modify_cq(env->cq, &attr);
}

static int query_rt_values(struct env *env)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return ibv_query_rt_values_ex(env->node.ctx, &values);
}

static int resize_srq(struct env *env)
{
	struct ibv_srq_attr attr = { .max_wr = env->max_wr == 64 ? 512 : 64 };
	int err = ibv_modify_srq(env->srq, &attr, IBV_SRQ_MAX_WR);

	if (!err)
		env->max_wr = attr.max_wr;
	return err;
}

static int modify_qp(struct env *env)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int err = ibv_modify_qp(env->qp, &reset, IBV_QP_STATE);

	return err ? err
		   : ibv_modify_qp(env->qp, &init,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS);
}

static int query_qp(struct env *env)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(env->qp, &attr, IBV_QP_STATE, &init);
}

/* With another address range, and with other access rights. */
static int rereg_mr(struct env *env)
{
	static unsigned int turn;
	int access = turn++ % 2 ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
	int err = ibv_rereg_mr(env->mr,
			       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			       env->node.pd, env->buf + turn % 3 * 4096, BYTES / 2, access);

	return err == IBV_REREG_MR_ERR_CMD ? errno : err ? EIO : 0;
}

/* Pages come by advice and go by madvise(). */
static int use_on_demand(struct env *env, void *start, size_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)env->pages, .length = ON_DEMAND_BYTES };
	struct ibv_mr *mr = reg_on_demand(env, start, length);
	int err;

	if (!mr)
		return errno;
	sge.lkey = mr->lkey;
	err = ibv_advise_mr(env->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	MUST(madvise(env->pages, ON_DEMAND_BYTES, MADV_DONTNEED));
	MUST(ibv_dereg_mr(mr));
	return err;
}

static int advise_mr(struct env *env)
{
	return use_on_demand(env, env->pages, ON_DEMAND_BYTES);
}

static int advise_all(struct env *env)
{
	return use_on_demand(env, NULL, SIZE_MAX);
}

static const struct verb verbs[] = {
	{ "open_device", OPEN_DEVICE },
	{ "alloc_pd", ALLOC_PD },
	{ "create_comp_channel", CREATE_COMP_CHANNEL },
	{ "create_cq", CREATE_CQ },
	{ "create_cq_ex with times", CREATE_CQ_TIMES, .is_optional = true },
	{ "query_rt_values", NO_OBJECT, query_rt_values, true },
	{ "modify_cq", NO_OBJECT, modify_cq, true },
	{ "resize_cq", NO_OBJECT, resize_cq, true },
	{ "create_srq", CREATE_SRQ },
	{ "modify_srq", NO_OBJECT, resize_srq, true },
	{ "create_qp", CREATE_QP },
	{ "modify_qp", NO_OBJECT, modify_qp },
	{ "query_qp", NO_OBJECT, query_qp },
	{ "reg_mr", REG_MR },
	{ "rereg_mr", NO_OBJECT, rereg_mr, true },
	{ "reg_dmabuf_mr", REG_DMABUF_MR, .is_optional = true },
	{ "reg_mr on demand", REG_ON_DEMAND, .is_optional = true },
	{ "advise_mr", NO_OBJECT, advise_mr, true },
	{ "advise_mr of all addresses", NO_OBJECT, advise_all, true },
	{ "alloc_mw", ALLOC_MW, .is_optional = true },
	{ "open_xrcd", OPEN_XRCD, .is_optional = true },
	{ "create_srq_ex of XRC", CREATE_XRC_SRQ, .is_optional = true },
	/*
	 * ib_core 6.1 allocates after the driver. If that fails, create_xrc_qp_user() leaves its
	 * count of the domain's users raised, and the domain cannot be closed.
	 */
	{ "create_qp_ex of an XRC target", CREATE_XRC_TARGET, .is_optional = true, .spared = 1 },
};
#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

/* Return: 0 or an errno. */
static int make(struct env *env, const struct verb *verb)
{
	int err;

	errno = 0;
	env->made = create(env, verb->kind);
	err = verb->change ? verb->change(env) : env->made ? 0 : errno;
	return verb->is_optional && (err == EOPNOTSUPP || err == ENOSYS) ? 0 : err;
}

static void undo(struct env *env, const struct verb *verb)
{
	if (env->made)
		must(destroy(env->made, verb->kind), verb->name);
}

/* Return: a dma-buf of BYTES, or -1 without /dev/udmabuf. */
static int make_dmabuf(void)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	struct udmabuf_create create = { .size = BYTES };
	int memory, fd;

	if (device < 0)
		return -1;
	memory = memfd_create("dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, BYTES) || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd_create:");
	create.memfd = (unsigned)memory;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		die("/dev/udmabuf:");
	close(memory);
	close(device);
	return fd;
}

static bool has_on_demand(const struct env *env)
{
	struct ibv_device_attr_ex attr = { .comp_mask = 0 };

	MUST(ibv_query_device_ex(env->node.ctx, NULL, &attr));
	return attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

static void env_open(struct env *env)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 1 } };

	node_open(&env->node);
	env->buf = map_memory(BYTES, MAP_POPULATE);
	env->pages = map_memory(ON_DEMAND_BYTES, 0);
	env->on_demand = has_on_demand(env);
	env->cqe = 100;
	env->max_wr = 64;
	env->cq = MUST_HAVE(ibv_create_cq(env->node.ctx, 100, NULL, NULL, 0));
	env->srq = MUST_HAVE(ibv_create_srq(env->node.pd, &srq));
	env->mr = MUST_HAVE(ibv_reg_mr(env->node.pd, env->buf, BYTES / 2, IBV_ACCESS_LOCAL_WRITE));
	env->qp = MUST_HAVE(create(env, CREATE_QP));
	env->xrcd = open_xrcd(env->node.ctx);
	env->dmabuf = make_dmabuf();
}

static void env_close(struct env *env)
{
	close(env->dmabuf);
	if (env->xrcd)
		MUST(ibv_close_xrcd(env->xrcd));
	MUST(ibv_destroy_qp(env->qp));
	MUST(ibv_dereg_mr(env->mr));
	MUST(ibv_destroy_srq(env->srq));
	MUST(ibv_destroy_cq(env->cq));
	node_close(&env->node);
}

/* --- allocations fail ------------------------------------------------------------------------- */

static void set_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fd, text, len, 0) != len)
		die("writing fail-nth:");
}

/* Allocations before the next failure; 0: it has failed. */
static int left(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		die("reading fail-nth:");
	return atoi(text);
}

/* Return: the allocations of a verb when none fails. */
static int count_allocations(struct env *env, const struct verb *verb, int fd)
{
	int err, remaining;

	set_nth(fd, MAX_ALLOCATIONS);
	err = make(env, verb);
	remaining = left(fd);
	set_nth(fd, 0);
	must(err, verb->name);
	undo(env, verb);
	return MAX_ALLOCATIONS - remaining;
}

/* Some calls allocate more, such as a new page of a cache: that must not move the last allocations. */
static int least_allocations(struct env *env, const struct verb *verb, int fd)
{
	int least = MAX_ALLOCATIONS, count;

	for (int i = 0; i < COUNTS; i++) {
		count = count_allocations(env, verb, fd);
		least = count < least ? count : least;
	}
	return least;
}

/* Fails each allocation of a verb in turn; those of a large table in steps. */
static void fail_each(struct env *env, const struct verb *verb, int fd)
{
	int nth, err, remaining, refused = 0, failed = 0;
	int end = verb->spared ? least_allocations(env, verb, fd) - verb->spared + 1
			       : MAX_ALLOCATIONS;

	for (nth = 1; nth < end; nth += 1 + nth / 32) {
		set_nth(fd, nth);
		err = make(env, verb);
		remaining = left(fd);
		set_nth(fd, 0);
		undo(env, verb);
		if (remaining && err)
			die("%s: %s though no allocation failed", verb->name, strerror(err));
		if (remaining)
			break;
		failed++;
		refused += !!err;
	}
	printf("%s: %d allocations failed, and %d times the verb\n", verb->name, failed, refused);
	if (nth >= MAX_ALLOCATIONS)
		die("%s: never without a failed allocation", verb->name);
}

static void run_fail_nth(struct env *env)
{
	int fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("opening fail-nth:");
	for (size_t i = 0; i < NVERBS; i++)
		fail_each(env, &verbs[i], fd);
	close(fd);
}

/* --- signals come ----------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* A verb must not fail because of a handled signal. */
static void one_round(struct env *env)
{
	int err;

	for (size_t i = 0; i < NVERBS; i++) {
		err = make(env, &verbs[i]);
		if (err)
			die("%s: %s, after %d signals", verbs[i].name, strerror(err), (int)signals);
		undo(env, &verbs[i]);
	}
}

static void run_signals(struct env *env)
{
	struct sigaction action = { .sa_handler = on_signal }; /* no SA_RESTART */
	struct itimerval timer = { .it_interval = { .tv_usec = 700 },
				   .it_value = { .tv_usec = 700 } };
	struct itimerval never = { .it_value = { 0 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < ROUNDS; i++)
		one_round(env);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d signals in %d rounds\n", (int)signals, ROUNDS);
	if (signals < ROUNDS)
		die("too few signals");
}

static void run_forever(struct env *env)
{
	for (;;)
		one_round(env);
}

/* ------------------------------------------------- responses that cannot be written */

#define BAD_ROUNDS 2000 /* more than the number of doorbell pages */
#define DRIVER_BYTES 8 /* bytes of the driver's part of a response */

/*
 * Return: an address such that the core's part of @bytes is at the end of a page, and the
 * driver's part in the next page, which is not writable.
 */
static uint64_t response_at_edge(size_t bytes)
{
	static char *pages;

	if (!pages) {
		pages = map_memory(8192, 0);
		MUST(mprotect(pages + 4096, 4096, PROT_NONE));
	}
	return (uintptr_t)pages + 4096 - bytes;
}

/* Return: 0 or an errno. */
static int raw_command(int fd, uint32_t command, uint64_t response, size_t bytes)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint64_t response;
	} request = {
		.hdr = { .command = command,
			 .in_words = sizeof(request) / 4,
			 .out_words = (bytes + DRIVER_BYTES) / 4 },
		.response = response,
	};

	return write(fd, &request, sizeof(request)) == sizeof(request) ? 0 : errno;
}

static int raw_open(const struct env *env)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", env->node.ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("%s:", path);
	return fd;
}

static void expect_fault(int fd, uint32_t command, size_t bytes)
{
	int err = raw_command(fd, command, response_at_edge(bytes), bytes);

	if (err != EFAULT)
		die("command %u: %s, expected EFAULT", command, strerror(err));
}

static void run_bad_response(struct env *env)
{
	struct ib_uverbs_get_context_resp good[4];
	int fd;

	for (int i = 0; i < BAD_ROUNDS; i++) {
		/* The context fails and must not keep its doorbell page, of which there are few. */
		fd = raw_open(env);
		expect_fault(fd, IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(good[0]));
		close(fd);
	}
	fd = raw_open(env);
	MUST(raw_command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, (uintptr_t)good, sizeof(good[0])));
	for (int i = 0; i < BAD_ROUNDS; i++)
		expect_fault(fd, IB_USER_VERBS_CMD_ALLOC_PD,
			     sizeof(struct ib_uverbs_alloc_pd_resp));
	close(fd);
	one_round(env);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct env *env);
	} modes[] = {
		{ "fail-nth", run_fail_nth },
		{ "signals", run_signals },
		{ "forever", run_forever },
		{ "bad-response", run_bad_response },
	};
	const size_t num = sizeof(modes) / sizeof(modes[0]);
	struct env env = {};
	size_t mode = 0;

	while (argc == 2 && mode < num && strcmp(argv[1], modes[mode].name))
		mode++;
	if (argc != 2 || mode == num)
		die("usage: pvr_faults fail-nth | signals | forever | bad-response");
	env_open(&env);
	modes[mode].run(&env);
	env_close(&env);
	return 0;
}
