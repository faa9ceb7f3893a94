// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queues of page faults, of the contexts that have regions on demand. See odp.h. */
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "odp.h"

/* Page faults of a queue that are resolved at the same time. */
#define FAULTS_MAX 4
/* Queues of one user with contexts. Further contexts share them. */
#define QUEUES_MAX 32
/* Queues of one user whose contexts have ended, but not their page faults. */
#define ENDED_MAX 16
#define ENDED_WAIT (5 * HZ)

/*
 * A queue is a part of the limit of this user: outside of the initial user namespace the owner of
 * the outermost one, because a user may have thousands of users in it. Containers that root has
 * made are told apart by the user that is root in them.
 */
static kuid_t counted_user(void)
{
	struct user_namespace *ns = current_user_ns();
	kuid_t root;

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	root = make_kuid(ns, 0);
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) && uid_valid(root)
		       ? root
		       : ns->owner;
}

static u32 count_ended(struct pvr_odp_queues *queues, kuid_t user)
{
	struct pvr_odp_queue *queue;
	u32 n = 0;

	spin_lock(&queues->lock);
	list_for_each_entry(queue, &queues->list, entry)
		n += !queue->contexts && uid_eq(queue->user, user);
	spin_unlock(&queues->lock);
	return n;
}

static struct pvr_odp_queue *create(struct pvr_odp_queues *queues, kuid_t user)
{
	struct pvr_odp_queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);

	if (!queue)
		return NULL;
	queue->wq = alloc_workqueue("pvrdma-odp", WQ_UNBOUND, FAULTS_MAX);
	if (!queue->wq) {
		kfree(queue);
		return NULL;
	}
	queue->queues = queues;
	queue->user = user;
	refcount_set(&queue->users, 1);
	queue->contexts = 1;
	return queue;
}

static void destroy(struct pvr_odp_queue *queue)
{
	destroy_workqueue(queue->wq);
	kfree(queue);
}

/* Return: the queue with the fewest contexts if @user has no more of them, else NULL. */
static struct pvr_odp_queue *find_shared(struct pvr_odp_queues *queues,
					 kuid_t user)
{
	struct pvr_odp_queue *queue, *least = NULL;
	u32 n = 0;

	list_for_each_entry(queue, &queues->list, entry) {
		if (!queue->contexts || !uid_eq(queue->user, user))
			continue;
		n++;
		if (!least || queue->contexts < least->contexts)
			least = queue;
	}
	return n < QUEUES_MAX ? NULL : least;
}

struct pvr_odp_queue *pvr_odp_queue_get(struct pvr_dev *dev)
{
	struct pvr_odp_queues *queues = &dev->pci->odp_queues;
	struct pvr_odp_queue *queue, *shared;
	kuid_t user = counted_user();
	long left;

	left = wait_event_killable_timeout(
		queues->fewer, count_ended(queues, user) < ENDED_MAX,
		ENDED_WAIT);
	if (left <= 0)
		return ERR_PTR(left ?: -EAGAIN);
	queue = create(queues, user);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	spin_lock(&queues->lock);
	shared = find_shared(queues, user);
	if (shared) {
		shared->contexts++;
		refcount_inc(&shared->users); /* its contexts have uses */
	} else {
		list_add(&queue->entry, &queues->list);
	}
	spin_unlock(&queues->lock);
	if (!shared)
		return queue;
	destroy(queue);
	return shared;
}

void pvr_odp_queue_end(struct pvr_odp_queue *queue)
{
	spin_lock(&queue->queues->lock);
	queue->contexts--;
	spin_unlock(&queue->queues->lock);
	pvr_odp_queue_put(queue);
}

void pvr_odp_queue_put(struct pvr_odp_queue *queue)
{
	struct pvr_odp_queues *queues = queue->queues;

	if (!refcount_dec_and_test(&queue->users))
		return;
	spin_lock(&queues->lock);
	list_move(&queue->entry, &queues->unused);
	/* Not here: the caller may be a work item of the queue. */
	schedule_work(&queues->free_work);
	spin_unlock(&queues->lock);
}

static void free_work(struct work_struct *work)
{
	struct pvr_odp_queues *queues =
		container_of(work, struct pvr_odp_queues, free_work);
	struct pvr_odp_queue *queue, *next;
	LIST_HEAD(unused);

	spin_lock(&queues->lock);
	list_splice_init(&queues->unused, &unused);
	spin_unlock(&queues->lock);
	list_for_each_entry_safe(queue, next, &unused, entry)
		destroy(queue);
	wake_up_all(&queues->fewer);
}

void pvr_odp_queues_init(struct pvr_odp_queues *queues)
{
	spin_lock_init(&queues->lock);
	INIT_LIST_HEAD(&queues->list);
	INIT_LIST_HEAD(&queues->unused);
	INIT_WORK(&queues->free_work, free_work);
	init_waitqueue_head(&queues->fewer);
}

static bool is_empty(struct pvr_odp_queues *queues)
{
	bool empty;

	spin_lock(&queues->lock);
	empty = list_empty(&queues->list);
	spin_unlock(&queues->lock);
	return empty;
}

void pvr_odp_queues_exit(struct pvr_odp_queues *queues)
{
	wait_event(queues->fewer, is_empty(queues));
	flush_work(&queues->free_work);
}
