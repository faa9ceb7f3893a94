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
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>

#include "rdma.h"

#define MAX_ALLOCATIONS 20000
#define ROUNDS 60
#define BYTES (4 << 20)

/*
 * Objects that the verbs under test use, created once, and the object of the present
 * verb.
 */
struct env {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	char *buf;
	/* of the present verb */
	struct ibv_context *new_ctx;
	struct ibv_pd *new_pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *new_cq;
	struct ibv_srq *new_srq;
	struct ibv_qp *new_qp;
	struct ibv_mr *new_mr;
	struct ibv_mw *new_mw;
	int cqe, max_wr;
};

/* make() returns 0 or an errno; undo() runs when it returned 0 and must return 0. */
struct verb {
	const char *name;
	int (*make)(struct env *env);
	int (*undo)(struct env *env);
};

static int made(const void *object)
{
	return object ? 0 : errno;
}

static int make_context(struct env *env)
{
	env->new_ctx = ibv_open_device(env->ctx->device);
	return made(env->new_ctx);
}

static int undo_context(struct env *env)
{
	return ibv_close_device(env->new_ctx);
}

static int make_pd(struct env *env)
{
	env->new_pd = ibv_alloc_pd(env->ctx);
	return made(env->new_pd);
}

static int undo_pd(struct env *env)
{
	return ibv_dealloc_pd(env->new_pd);
}

static int make_channel(struct env *env)
{
	env->channel = ibv_create_comp_channel(env->ctx);
	return made(env->channel);
}

static int undo_channel(struct env *env)
{
	return ibv_destroy_comp_channel(env->channel);
}

static int make_cq(struct env *env)
{
	env->new_cq = ibv_create_cq(env->ctx, 1000, NULL, NULL, 0);
	return made(env->new_cq);
}

static int undo_cq(struct env *env)
{
	return ibv_destroy_cq(env->new_cq);
}

static int resize_cq(struct env *env)
{
	int err = ibv_resize_cq(env->cq, env->cqe == 100 ? 1000 : 100);

	if (!err)
		env->cqe = env->cqe == 100 ? 1000 : 100;
	return err == EOPNOTSUPP || err == ENOSYS ? 0 : err;
}

static int make_srq(struct env *env)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 500, .max_sge = 4 } };

	env->new_srq = ibv_create_srq(env->pd, &attr);
	return made(env->new_srq);
}

static int undo_srq(struct env *env)
{
	return ibv_destroy_srq(env->new_srq);
}

static int resize_srq(struct env *env)
{
	struct ibv_srq_attr attr = { .max_wr = env->max_wr == 64 ? 512 : 64 };
	int err = ibv_modify_srq(env->srq, &attr, IBV_SRQ_MAX_WR);

	if (!err)
		env->max_wr = attr.max_wr;
	return err == EOPNOTSUPP || err == ENOSYS ? 0 : err;
}

static int make_qp(struct env *env)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = env->cq,
		.recv_cq = env->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 200,
			 .max_recv_wr = 200,
			 .max_send_sge = 4,
			 .max_recv_sge = 4 },
	};

	env->new_qp = ibv_create_qp(env->pd, &attr);
	return made(env->new_qp);
}

static int undo_qp(struct env *env)
{
	return ibv_destroy_qp(env->new_qp);
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

static int make_mr(struct env *env)
{
	env->new_mr = ibv_reg_mr(env->pd, env->buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	return made(env->new_mr);
}

static int undo_mr(struct env *env)
{
	return ibv_dereg_mr(env->new_mr);
}

/* With another address range, and with other access rights. */
static int rereg_mr(struct env *env)
{
	static unsigned int turn;
	int access = turn++ % 2 ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
	int err = ibv_rereg_mr(env->mr,
			       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			       env->pd, env->buf + turn % 3 * 4096, BYTES / 2, access);

	return err == IBV_REREG_MR_ERR_CMD ? (errno == EOPNOTSUPP ? 0 : errno) : err ? EIO : 0;
}

static int make_mw(struct env *env)
{
	errno = 0;
	env->new_mw = ibv_alloc_mw(env->pd, IBV_MW_TYPE_2);
	return env->new_mw || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
}

static int undo_mw(struct env *env)
{
	return env->new_mw ? ibv_dealloc_mw(env->new_mw) : 0;
}

static const struct verb verbs[] = {
	{ "open_device", make_context, undo_context },
	{ "alloc_pd", make_pd, undo_pd },
	{ "create_comp_channel", make_channel, undo_channel },
	{ "create_cq", make_cq, undo_cq },
	{ "resize_cq", resize_cq, NULL },
	{ "create_srq", make_srq, undo_srq },
	{ "modify_srq", resize_srq, NULL },
	{ "create_qp", make_qp, undo_qp },
	{ "modify_qp", modify_qp, NULL },
	{ "query_qp", query_qp, NULL },
	{ "reg_mr", make_mr, undo_mr },
	{ "rereg_mr", rereg_mr, NULL },
	{ "alloc_mw", make_mw, undo_mw },
};
#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

static void need(const void *object, const char *what)
{
	if (object)
		return;
	fprintf(stderr, "pvr_faults: no %s: %s\n", what, strerror(errno));
	exit(2);
}

static void env_open(struct env *env, struct node *node)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 1 } };

	node_open(node, NULL, -1);
	env->ctx = node->ctx;
	env->pd = node->pd;
	env->buf = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	need(env->buf == MAP_FAILED ? NULL : env->buf, "memory");
	env->cqe = 100;
	env->max_wr = 64;
	env->cq = ibv_create_cq(env->ctx, 100, NULL, NULL, 0);
	need(env->cq, "CQ");
	env->srq = ibv_create_srq(env->pd, &srq);
	need(env->srq, "SRQ");
	env->mr = ibv_reg_mr(env->pd, env->buf, BYTES / 2, IBV_ACCESS_LOCAL_WRITE);
	need(env->mr, "MR");
	need(make_qp(env) ? NULL : env->new_qp, "QP");
	env->qp = env->new_qp;
}

static int env_close(struct env *env, struct node *node)
{
	int err = ibv_destroy_qp(env->qp);

	err = err ? err : ibv_dereg_mr(env->mr);
	err = err ? err : ibv_destroy_srq(env->srq);
	err = err ? err : ibv_destroy_cq(env->cq);
	if (err)
		fprintf(stderr, "pvr_faults: cannot clean up: %s\n", strerror(err));
	else
		node_close(node);
	return err;
}

static int undo(struct env *env, const struct verb *verb)
{
	int err = verb->undo ? verb->undo(env) : 0;

	if (err)
		fprintf(stderr, "pvr_faults: %s cannot be undone: %s\n", verb->name, strerror(err));
	return err;
}

/* --- allocations fail ------------------------------------------------------------------------- */

static void set_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fd, text, len, 0) != len) {
		perror("pvr_faults: cannot write fail-nth");
		exit(2);
	}
}

/* Allocations before the next failure; 0: it has failed. */
static int left(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0) {
		perror("pvr_faults: cannot read fail-nth");
		exit(2);
	}
	return atoi(text);
}

/* Fails each allocation of a verb in turn; those of a large table in steps. */
static int fail_each(struct env *env, const struct verb *verb, int fd)
{
	int nth, err, remaining, refused = 0, failed = 0;

	for (nth = 1; nth < MAX_ALLOCATIONS; nth += 1 + nth / 32) {
		set_nth(fd, nth);
		err = verb->make(env);
		remaining = left(fd);
		set_nth(fd, 0);
		if (!err && undo(env, verb))
			return 1;
		if (remaining && err) {
			printf("%s: %s though no allocation failed\n", verb->name, strerror(err));
			return 1;
		}
		if (remaining)
			break;
		failed++;
		refused += !!err;
	}
	printf("%s: %d allocations failed, and %d times the verb\n", verb->name, failed, refused);
	return nth >= MAX_ALLOCATIONS;
}

static int run_fail_nth(struct env *env)
{
	int fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	int bad = 0;
	size_t i;

	if (fd < 0) {
		perror("pvr_faults: cannot open fail-nth");
		return 2;
	}
	for (i = 0; i < NVERBS; i++)
		bad |= fail_each(env, &verbs[i], fd);
	close(fd);
	return bad;
}

/* --- signals come ----------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* A verb must not fail because of a handled signal. */
static int one_round(struct env *env)
{
	size_t i;
	int err;

	for (i = 0; i < NVERBS; i++) {
		err = verbs[i].make(env);
		if (err) {
			printf("%s: %s, after %d signals\n", verbs[i].name, strerror(err),
			       (int)signals);
			return 1;
		}
		if (undo(env, &verbs[i]))
			return 1;
	}
	return 0;
}

static int run_signals(struct env *env)
{
	struct sigaction action = { .sa_handler = on_signal }; /* no SA_RESTART */
	struct itimerval timer = { .it_interval = { .tv_usec = 700 },
				   .it_value = { .tv_usec = 700 } };
	struct itimerval never = { .it_value = { 0 } };
	int i, bad = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (i = 0; i < ROUNDS && !bad; i++)
		bad = one_round(env);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d signals in %d rounds\n", (int)signals, i);
	return bad || signals < ROUNDS;
}

static int run_forever(struct env *env)
{
	while (!one_round(env))
		;
	return 1;
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
		pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		need(pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_NONE) ? NULL : pages,
		     "memory");
	}
	return (uintptr_t)pages + 4096 - bytes;
}

/* Return: the errno. */
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

	snprintf(path, sizeof(path), "/dev/infiniband/%s", env->ctx->device->dev_name);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The context fails and must not keep its doorbell page, of which there are few. */
static int bad_contexts(struct env *env)
{
	size_t bytes = sizeof(struct ib_uverbs_get_context_resp);
	int i, fd, err = EFAULT;

	for (i = 0; i < BAD_ROUNDS && err == EFAULT; i++) {
		fd = raw_open(env);
		if (fd < 0)
			return 1;
		err = raw_command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, response_at_edge(bytes),
				  bytes);
		close(fd);
	}
	printf("GET_CONTEXT: %s after %d times\n", strerror(err), i);
	return err != EFAULT;
}

static int bad_pds(struct env *env)
{
	size_t bytes = sizeof(struct ib_uverbs_alloc_pd_resp);
	struct ib_uverbs_get_context_resp good[4];
	int i, err, fd = raw_open(env);

	if (fd < 0)
		return 1;
	err = raw_command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, (uintptr_t)good, sizeof(good[0]));
	for (i = 0, err = err ? err : EFAULT; i < BAD_ROUNDS && err == EFAULT; i++)
		err = raw_command(fd, IB_USER_VERBS_CMD_ALLOC_PD, response_at_edge(bytes), bytes);
	close(fd);
	printf("ALLOC_PD: %s after %d times\n", strerror(err), i);
	return err != EFAULT;
}

static int run_bad_response(struct env *env)
{
	return bad_contexts(env) || bad_pds(env) || one_round(env);
}

static const struct {
	const char *name;
	int (*run)(struct env *env);
} modes[] = {
	{ "fail-nth", run_fail_nth },
	{ "signals", run_signals },
	{ "forever", run_forever },
	{ "bad-response", run_bad_response },
};
#define NMODES (sizeof(modes) / sizeof(modes[0]))

int main(int argc, char **argv)
{
	struct env env = { 0 };
	struct node node;
	size_t mode = 0;
	int bad;

	while (argc == 2 && mode < NMODES && strcmp(argv[1], modes[mode].name))
		mode++;
	if (argc != 2 || mode == NMODES) {
		fprintf(stderr, "usage: pvr_faults fail-nth | signals | forever | bad-response\n");
		return 2;
	}
	env_open(&env, &node);
	bad = modes[mode].run(&env);
	return env_close(&env, &node) ? 1 : bad;
}
