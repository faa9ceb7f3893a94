// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work for another thread: a list, and an eventfd that its loop watches. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mailbox.h"

static void mailbox_ready(struct pvr_source *source, uint32_t events)
{
	uint64_t count;

	/* First, so that what is sent after the list has been taken rings again. */
	if (read(source->fd, &count, sizeof(count)) > 0)
		pvr_mailbox_drain((struct pvr_mailbox *)source);
}

int pvr_mailbox_init(struct pvr_mailbox *box, struct pvr_loop *loop)
{
	pthread_mutex_init(&box->lock, NULL);
	STAILQ_INIT(&box->list);
	box->source = (struct pvr_source){ .ready = mailbox_ready };
	box->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (box->source.fd < 0)
		return -errno;
	return pvr_loop_add(loop, &box->source, EPOLLIN);
}

void pvr_mailbox_exit(struct pvr_mailbox *box)
{
	pvr_loop_remove(&box->source);
	if (box->source.fd >= 0)
		close(box->source.fd);
	pthread_mutex_destroy(&box->lock);
}

void pvr_mailbox_send(struct pvr_mailbox *box, struct pvr_mail *mail)
{
	const uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&box->lock);
	first = STAILQ_EMPTY(&box->list);
	STAILQ_INSERT_TAIL(&box->list, mail, link);
	pthread_mutex_unlock(&box->lock);
	if (first && write(box->source.fd, &one, sizeof(one)) < 0)
		return; /* full, so it rings already */
}

static struct pvr_mail *take(struct pvr_mailbox *box)
{
	struct pvr_mail *mail;

	pthread_mutex_lock(&box->lock);
	mail = STAILQ_FIRST(&box->list);
	if (mail)
		STAILQ_REMOVE_HEAD(&box->list, link);
	pthread_mutex_unlock(&box->lock);
	return mail;
}

void pvr_mailbox_drain(struct pvr_mailbox *box)
{
	struct pvr_mail *mail;

	while ((mail = take(box)))
		mail->run(mail);
}
