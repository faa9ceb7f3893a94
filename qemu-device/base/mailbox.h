/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work for another thread: a list, and an eventfd that its loop watches. */
#ifndef PVR_MAILBOX_H
#define PVR_MAILBOX_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/loop.h"

/* Part of what is sent; the sender leaves it alone until run() has been called. */
struct pvr_mail {
	/* In the thread that reads. May free the mail, and send it on. */
	void (*run)(struct pvr_mail *mail);
	STAILQ_ENTRY(pvr_mail) link;
};

struct pvr_mailbox {
	struct pvr_source source;
	pthread_mutex_t lock; /* protects the list; nothing is taken inside it */
	STAILQ_HEAD(pvr_mail_list, pvr_mail) list;
};

/* Reads in @loop's thread. 0 or -errno. */
int pvr_mailbox_init(struct pvr_mailbox *box, struct pvr_loop *loop);
/* It is empty, see pvr_mailbox_drain(). */
void pvr_mailbox_exit(struct pvr_mailbox *box);

/* From any thread. Never fails. */
void pvr_mailbox_send(struct pvr_mailbox *box, struct pvr_mail *mail);
/* Run what there is, while the reader's loop does not run or from it. */
void pvr_mailbox_drain(struct pvr_mailbox *box);

#endif /* PVR_MAILBOX_H */
