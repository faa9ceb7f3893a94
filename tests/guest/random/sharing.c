// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Contexts of several processes: by fork(), and by descriptors that travel over a socket. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"

#define CHILDREN_MAX 2

/* Objects of the context whose descriptor comes with it. */
struct letter {
	uint32_t pd, mr; /* handles */
};

static uint32_t handle_of(struct worker *worker, enum kind kind)
{
	struct slot *slot = slot_use(worker, kind);
	uint32_t handle = below(&worker->chance, 8);

	if (slot)
		handle = kind == KIND_PD ? ((struct ibv_pd *)slot->object)->handle
					 : ((struct ibv_mr *)slot->object)->handle;
	slot_put(slot);
	return handle;
}

static void send_context(struct worker *worker)
{
	struct letter letter = { handle_of(worker, KIND_PD), handle_of(worker, KIND_MR) };
	struct iovec data = { &letter, sizeof(letter) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &worker->actor->ctx->cmd_fd, sizeof(int));
	count(VERB_share, sendmsg(worker->actor->mail, &message, MSG_DONTWAIT) < 0);
}

/* Leaves objects of the other process in its slots. */
static void import_objects(struct worker *worker, struct ibv_context *ctx,
			   const struct letter *letter)
{
	struct actor *actor = worker->actor;
	struct ibv_pd *pd = count_made(VERB_import_pd, ibv_import_pd(ctx, letter->pd));

	actor->slots[KIND_PD][0].object = pd;
	if (pd)
		actor->slots[KIND_MR][0].object =
			count_made(VERB_import_mr, ibv_import_mr(pd, letter->mr));
}

struct ibv_context *context_receive(struct worker *worker)
{
	struct letter letter;
	struct iovec data = { &letter, sizeof(letter) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.bytes) };
	struct ibv_context *ctx;
	int fd;

	if (recvmsg(worker->actor->mail, &message, MSG_DONTWAIT) != sizeof(letter) ||
	    !CMSG_FIRSTHDR(&message))
		return NULL;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	ctx = count_made(VERB_import_device, ibv_import_device(fd));
	if (ctx)
		import_objects(worker, ctx, &letter);
	return ctx;
}

/* The child goes on with all objects for a moment. A lock that another thread held stays locked. */
static void run_child(struct worker *worker)
{
	worker->actor->is_child = true;
	alarm(1 + below(&worker->chance, 3));
}

static void split(struct worker *worker)
{
	struct actor *actor = worker->actor;
	pid_t pid;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		__atomic_sub_fetch(&actor->children, 1, __ATOMIC_RELAXED);
	if (actor->is_child || __atomic_load_n(&actor->children, __ATOMIC_RELAXED) >= CHILDREN_MAX)
		return;
	pid = fork();
	if (!pid)
		run_child(worker);
	else if (count(VERB_fork, pid < 0))
		__atomic_add_fetch(&actor->children, 1, __ATOMIC_RELAXED);
}

void deed_share(struct worker *worker)
{
	if (!worker->actor->is_hostile)
		return;
	if (one_in(&worker->chance, 4))
		split(worker);
	else if (!worker->actor->is_child)
		send_context(worker);
}
