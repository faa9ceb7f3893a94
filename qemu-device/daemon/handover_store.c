// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The service manager's copy of a hand-over. */
#include "daemon/handover_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/loop.h"
#include "daemon/log.h"
#include "daemon/process.h"

#define NAME "handover"
#define FIRST_FD 3 /* of those that a service manager passes, see sd_listen_fds(3) */
#define TEXT_MAX (64u << 20)
#define NOTIFY_NS (100 * PVR_MSEC)
/* The kernel doubles it. Linux 6.18 takes 555 datagrams of descriptors then; 256 VMs have 512. */
#define QUEUE_BYTES 212992

static const uint64_t MAGIC = 0x31766f64646e6168; /* of a complete file */

struct record {
	uint32_t len, num_fds; /* the text follows */
};

/* ------------------------------------------------------------------------- both */

static void forget(struct pvr_handover_store *store)
{
	if (store->file >= 0)
		close(store->file);
	if (store->queue >= 0)
		close(store->queue);
	free(store->text);
	*store = PVR_HANDOVER_STORE_NONE;
}

void pvr_handover_store_discard(int file)
{
	if (file >= 0 && ftruncate(file, 0) < 0)
		pvrd_log(PVR_LOG_ERR, NULL, "upgrade: the copy of the VMs' state stays: %s",
			 strerror(errno));
}

static void remove_copy(void)
{
	pvr_notify("FDSTOREREMOVE=1\nFDNAME=" NAME, NOTIFY_NS);
}

void pvr_handover_store_end(struct pvr_handover_store *store)
{
	if (store->file >= 0)
		remove_copy();
	forget(store);
}

/* -------------------------------------------------------------- the running process */

static void fail(struct pvr_handover_store *store, const char *why)
{
	pvrd_log(PVR_LOG_WARN, NULL,
		 "upgrade: the service manager has no copy of the VMs' state: %s; if this process "
		 "is killed before the new one serves them, they are lost",
		 why);
	pvr_handover_store_discard(store->file);
	pvr_handover_store_end(store);
}

void pvr_handover_store_begin(struct pvr_handover_store *store)
{
	const int bytes = QUEUE_BYTES;
	int ends[2], kept[2];

	if (!pvr_is_managed())
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		fail(store, strerror(errno));
		return;
	}
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	store->file = memfd_create("pvrdma-handover", MFD_CLOEXEC);
	store->queue = ends[0];
	store->at = sizeof(MAGIC);
	store->recording = store->file >= 0;
	kept[0] = store->file;
	kept[1] = ends[1];
	remove_copy(); /* of an upgrade whose end the service manager did not hear of */
	/* FDPOLL=0: it stays when this process, which has the other end of the queue, ends. */
	if (!store->recording ||
	    !pvr_notify_fds("FDSTORE=1\nFDPOLL=0\nFDNAME=" NAME, kept, 2, NOTIFY_NS))
		fail(store, strerror(errno));
	close(ends[1]);
}

void pvr_handover_store_add(struct pvr_handover_store *store, const char *text, size_t len,
			    const int *fds, size_t num_fds)
{
	struct record record = { (uint32_t)len, (uint32_t)num_fds };
	const struct iovec parts[] = { { &record, sizeof(record) },
				       { (void *)(uintptr_t)text, len } };
	ssize_t size = (ssize_t)(sizeof(record) + len);
	int ret = 0;

	if (!store->recording)
		return;
	if (pwritev(store->file, parts, 2, (off_t)store->at) != size)
		ret = -ENOSPC;
	if (!ret && num_fds)
		ret = pvr_fd_message_send(store->queue, "", 1, fds, num_fds, pvr_loop_now());
	if (ret)
		fail(store, strerror(-ret));
	else
		store->at += (size_t)size;
}

void pvr_handover_store_complete(struct pvr_handover_store *store)
{
	if (store->recording &&
	    pwrite(store->file, &MAGIC, sizeof(MAGIC), 0) != (ssize_t)sizeof(MAGIC))
		fail(store, "its header cannot be written");
	store->recording = false;
}

/* ------------------------------------------------------------------ the new process */

/* Keeps @fd if it is the file or the queue of a copy. */
static void sort(struct pvr_handover_store *store, int fd, bool is_named)
{
	struct stat st;
	int *slot = NULL;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (is_named && fstat(fd, &st) == 0)
		slot = S_ISSOCK(st.st_mode)  ? &store->queue
		       : S_ISREG(st.st_mode) ? &store->file
					     : NULL;
	if (slot && *slot < 0)
		*slot = fd;
	else
		close(fd);
}

/* @names: separated by colons, in the order of the descriptors. */
static void take_fds(struct pvr_handover_store *store, size_t num, const char *names)
{
	size_t len, i;

	for (i = 0; i < num; i++) {
		len = strcspn(names, ":");
		sort(store, FIRST_FD + (int)i, len == strlen(NAME) && !memcmp(names, NAME, len));
		names += len + (names[len] == ':');
	}
}

/* The copy in memory, if it is complete. */
static bool read_all(struct pvr_handover_store *store)
{
	struct stat st;
	uint64_t magic = 0;

	if (store->file < 0 || store->queue < 0 || fstat(store->file, &st) < 0 ||
	    st.st_size < (off_t)sizeof(magic) || st.st_size > TEXT_MAX)
		return false;
	store->len = (size_t)st.st_size;
	store->at = sizeof(magic);
	store->text = malloc(store->len);
	if (!store->text || pread(store->file, store->text, store->len, 0) != (ssize_t)store->len)
		return false;
	memcpy(&magic, store->text, sizeof(magic));
	return magic == MAGIC;
}

/* Listening sockets in the queue would be in use as long as another process has its end. */
static void drain(int queue)
{
	static struct pvr_fd_message raw;

	while (queue >= 0 && pvr_fd_message_receive(queue, &raw, pvr_loop_now()) == 1) {
		while (raw.num_fds)
			close(raw.fds[--raw.num_fds]);
	}
}

bool pvr_handover_store_find(struct pvr_handover_store *store)
{
	const char *names = getenv("LISTEN_FDNAMES");
	size_t num = pvr_environment_number("LISTEN_FDS");
	bool is_mine = pvr_environment_number("LISTEN_PID") == (uint64_t)getpid(), found;

	*store = PVR_HANDOVER_STORE_NONE;
	if (is_mine)
		take_fds(store, num, names ? names : "");
	/* They are not for the processes that this one starts. */
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (store->file < 0 && store->queue < 0)
		return false;
	found = read_all(store);
	/* Once only: a copy at which this process fails would let each next one fail, too. */
	pvr_handover_store_discard(store->file);
	if (found)
		return true;
	drain(store->queue);
	remove_copy();
	forget(store);
	return false;
}

int pvr_handover_store_next(struct pvr_handover_store *store, struct pvr_fd_message *raw)
{
	struct record record;
	int ret = 1;

	raw->num_fds = 0;
	if (store->at == store->len)
		return 0;
	if (store->len - store->at < sizeof(record))
		return -EPROTO;
	memcpy(&record, store->text + store->at, sizeof(record));
	store->at += sizeof(record);
	if (record.len > store->len - store->at || record.len > PVR_FD_MESSAGE_BYTES)
		return -EPROTO;
	if (record.num_fds)
		ret = pvr_fd_message_receive(store->queue, raw, pvr_loop_now());
	if (ret != 1 || raw->num_fds != record.num_fds)
		return -EPROTO;
	memcpy(raw->data, store->text + store->at, record.len);
	raw->data[record.len] = '\0';
	raw->len = record.len;
	store->at += record.len;
	return 1;
}
