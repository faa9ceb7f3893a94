// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One QEMU at an adapter's socket: dispatch of its messages.
 *
 * A message stays in the socket until it is complete. Then
 *  - posted writes of registers and doorbells are executed from the peeked window;
 *  - memory regions and interrupts are received and handled here;
 *  - other messages are checked; libvfio-user receives and handles them.
 */
#include <assert.h>
#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/client.h"
#include "attach/message.h"
#include "attach/sigbus.h"
#include "base/closer.h"
#include "base/unix_socket.h"

#define CLIENT_BATCH 64 /* messages per call of ready() */
#define CLIENT_BUDGET (200 * 1000ull) /* ns per call of ready(), plus one message */
#define CLIENT_PATIENCE (5 * PVR_SEC)
#define RETRY PVR_MSEC
#define HOST_NAME 64
#define CLIENT_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* Result of a step below 1. STEP_GONE: the client was destroyed. */
enum { STEP_GONE = -1, STEP_WAIT = 0 };

__attribute__((format(printf, 2, 3))) static int throw_out(struct pvr_client *client,
							   const char *fmt, ...)
{
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	pvr_attach_log(client->attach, PVR_LOG_WARN,
		       "QEMU (process %d) is disconnected: %s; restart that VM", (int)client->pid,
		       why);
	pvr_attach_count(&pvr_attach_stats(client->attach)->refused, 1);
	pvr_client_leave(client);
	return STEP_GONE;
}

/* A guest that ends resets its device first. */
static int leave(struct pvr_client *client)
{
	struct pvr_adapter_stats stats;

	pvr_adapter_get_stats(client->adapter, &stats);
	if (pvr_migrate_lives_elsewhere(&client->migrate))
		pvr_attach_log(
			client->attach, PVR_LOG_INFO,
			"QEMU (process %d) has disconnected after the VM was migrated or saved",
			(int)client->pid);
	else if (stats.state == PVR_ADAPTER_ACTIVE)
		pvr_attach_log(client->attach, PVR_LOG_WARN,
			       "QEMU (process %d) has disconnected while the guest used the "
			       "adapter: it was killed, or it has migrated or saved the VM "
			       "without the device",
			       (int)client->pid);
	else
		pvr_attach_log(client->attach, PVR_LOG_INFO, "QEMU (process %d) has disconnected",
			       (int)client->pid);
	pvr_client_leave(client);
	return STEP_GONE;
}

/*
 * Drops @size bytes of a window, which must have no descriptors. Those in the queue can belong
 * to a later message. The kernel would close descriptors that are received without room for
 * them in this thread, see base/closer.h.
 */
static int skip(struct pvr_client *client, const struct pvr_window *window, size_t size)
{
	struct pvr_closer *closer = pvr_attach_closer(client->attach);
	size_t num = 0;
	int ret;

	if (!window->has_fds)
		ret = pvr_message_skip(client->source.fd, size);
	else if (pvr_closer_is_full(closer))
		return throw_out(client, "its descriptors cannot be closed");
	else
		ret = pvr_message_drop(client->source.fd, size, &num, closer);
	if (num || ret == -EMFILE)
		return throw_out(client, "unexpected descriptors in a message");
	if (ret)
		return throw_out(client, "its socket failed");
	return 1;
}

/* ------------------------------------------------------------- posted writes */

struct posted_write {
	struct vfio_user_header hdr;
	struct vfio_user_region_access access;
};

static bool is_posted(const struct posted_write *write)
{
	return write->hdr.cmd == VFIO_USER_REGION_WRITE &&
	       write->hdr.flags.type == VFIO_USER_F_TYPE_COMMAND && write->hdr.flags.no_reply &&
	       (write->access.region == VFU_PCI_DEV_BAR1_REGION_IDX ||
		write->access.region == VFU_PCI_DEV_BAR2_REGION_IDX) &&
	       write->access.count <= sizeof(uint64_t) &&
	       write->hdr.msg_size == sizeof(*write) + write->access.count;
}

/*
 * Ends the batch if other clients must be served first. A long command continues in the
 * engine, and a second REQUEST would execute the rest of the first at once.
 */
static void check_budget(struct pvr_client *client)
{
	if (pvr_adapter_busy(client->adapter) || pvr_loop_now() - client->since > CLIENT_BUDGET)
		client->is_late = true;
}

/*
 * Return: whether the message, as far as the window has it, resets the adapter. Accesses of
 * another size than a register's have no effect.
 */
static bool resets(const void *data, size_t len)
{
	struct posted_write write;
	uint32_t value = 0;

	if (len < sizeof(write.hdr))
		return false;
	memcpy(&write.hdr, data, sizeof(write.hdr));
	if (write.hdr.cmd == VFIO_USER_DEVICE_RESET)
		return true;
	if (write.hdr.cmd != VFIO_USER_REGION_WRITE ||
	    write.hdr.msg_size != sizeof(write) + sizeof(value) || len < write.hdr.msg_size)
		return false;
	memcpy(&write, data, sizeof(write));
	memcpy(&value, (const char *)data + sizeof(write), sizeof(value));
	return write.access.region == VFU_PCI_DEV_BAR1_REGION_IDX &&
	       write.access.count == sizeof(value) &&
	       (write.access.offset == PVR_REG_DSRHIGH ||
		(write.access.offset == PVR_REG_CTL && value == PVR_CTL_RESET));
}

/* Return: whether the adapter is in the migration state that the message requests. */
static bool is_moved(struct pvr_client *client, const void *data, size_t len)
{
	struct vfio_user_header hdr;

	if (len < sizeof(hdr))
		return true;
	memcpy(&hdr, data, sizeof(hdr));
	if (hdr.cmd != PVR_VFIO_USER_DEVICE_FEATURE || len < hdr.msg_size ||
	    hdr.msg_size < sizeof(hdr))
		return true;
	return pvr_migrate_prepare(&client->migrate, (const char *)data + sizeof(hdr),
				   hdr.msg_size - sizeof(hdr));
}

/* Return: whether the message, as far as the window has it, is a valid removal of RAM. */
static bool unmaps(const void *data, size_t len, struct vfio_user_dma_unmap *unmap)
{
	struct vfio_user_header hdr;

	if (len < sizeof(hdr))
		return false;
	memcpy(&hdr, data, sizeof(hdr));
	if (hdr.cmd != VFIO_USER_DMA_UNMAP || hdr.msg_size < sizeof(hdr) + sizeof(*unmap) ||
	    len < sizeof(hdr) + sizeof(*unmap))
		return false;
	memcpy(unmap, (const char *)data + sizeof(hdr), sizeof(*unmap));
	return !unmap->flags ||
	       (unmap->flags == VFIO_DMA_UNMAP_FLAG_ALL && !unmap->addr && !unmap->size);
}

/*
 * A reset destroys up to 300,000 objects, and the removal of RAM checks the pages of as many.
 * The message that requests it stays in the socket while the engine does that in steps. So
 * its reply means that the work is complete.
 * Return: whether the message may be handled now.
 */
static bool is_prepared(struct pvr_client *client, const void *data, size_t len)
{
	struct vfio_user_dma_unmap unmap;

	if (unmaps(data, len, &unmap))
		return pvr_vm_ram_prepare_unmap(&client->ram, unmap.addr, unmap.size,
						unmap.flags != 0);
	return !resets(data, len) || pvr_adapter_prepare_reset(client->adapter);
}

/* Executes the posted writes at the start of the window. */
static int run_posted(struct pvr_client *client, const struct pvr_window *window, size_t *bytes)
{
	struct posted_write write;
	size_t pos = 0;
	int num = 0;

	while (num < CLIENT_BATCH && !client->is_late && window->len - pos >= sizeof(write)) {
		memcpy(&write, window->data + pos, sizeof(write));
		if (!is_posted(&write) || window->len - pos < write.hdr.msg_size ||
		    !is_prepared(client, window->data + pos, window->len - pos))
			break;
		pvr_device_write(client, write.access.region, write.access.offset,
				 window->data + pos + sizeof(write), write.access.count);
		pos += write.hdr.msg_size;
		num++;
		if (write.access.region == VFU_PCI_DEV_BAR1_REGION_IDX)
			check_budget(client);
	}
	*bytes = pos;
	return num;
}

/* ---------------------------------------------------- messages handled here */

static int dma_map(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	const struct vfio_user_dma_map *map = (const void *)msg->body;
	struct pvr_vm_ram_request req = {
		.gpa = map->addr,
		.size = map->size,
		.offset = map->offset,
		.fd = msg->num_fds ? msg->fds[0] : -1,
		.readable = map->flags & VFIO_USER_F_DMA_REGION_READ,
		.writable = map->flags & VFIO_USER_F_DMA_REGION_WRITE,
	};
	int ret;

	if (msg->num_fds > 1) {
		pvr_fail(err, "DMA_MAP with %zu descriptors, expected at most 1", msg->num_fds);
		return -EINVAL;
	}
	ret = pvr_vm_ram_map(&client->ram, &req, err);
	if (msg->num_fds)
		msg->fds[0] = req.fd;
	return ret;
}

static int dma_unmap(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	const struct vfio_user_dma_unmap *unmap = (const void *)msg->body;

	if (unmap->flags == VFIO_DMA_UNMAP_FLAG_ALL && !unmap->addr && !unmap->size) {
		pvr_vm_ram_unmap_all(&client->ram);
		return 0;
	}
	if (unmap->flags) {
		pvr_fail(err, "DMA_UNMAP with flags 0x%x is not supported", unmap->flags);
		return -EOPNOTSUPP;
	}
	return pvr_vm_ram_unmap(&client->ram, unmap->addr, unmap->size, err);
}

static int set_irqs(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	return pvr_irq_set(&client->irq, client->adapter, (const void *)msg->body, msg->len,
			   msg->fds, msg->num_fds, err);
}

static int device_feature(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	return pvr_migrate_feature(&client->migrate, msg->body, msg->len, &msg->reply, err);
}

static int mig_data_read(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	return pvr_migrate_read(&client->migrate, msg->body, msg->len, &msg->reply, err);
}

static int mig_data_write(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	return pvr_migrate_write(&client->migrate, msg->body, msg->len, &msg->reply, err);
}

static int not_supported(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err)
{
	pvr_fail(err, "vfio-user command %u is not supported", msg->hdr.cmd);
	return -EOPNOTSUPP;
}

/* ----------------------------------------- messages handled by libvfio-user */

static bool check_region(const uint8_t *body, size_t len, struct pvr_error *err)
{
	struct vfio_user_region_access access;

	memcpy(&access, body, sizeof(access));
	if (access.count > PVR_MESSAGE_MAX - sizeof(access))
		return pvr_fail(err, "access of %u bytes to region %u, expected at most %zu",
				access.count, access.region, PVR_MESSAGE_MAX - sizeof(access));
	return true;
}

/* At most one of take() and check(). Neither: libvfio-user checks enough. */
struct command {
	size_t min_len; /* of the body */
	/* Return: 0 or -errno, for the reply. */
	int (*take)(struct pvr_client *client, struct pvr_message *msg, struct pvr_error *err);
	bool (*check)(const uint8_t *body, size_t len, struct pvr_error *err);
	bool is_prepared; /* from the window, which must have all of it: see is_moved(), is_prepared() */
	size_t echo; /* bytes of the body that the reply returns */
	size_t max_len; /* of the body, if that may be larger than PVR_MESSAGE_MAX */
};

static const struct command commands[PVR_VFIO_USER_NUM] = {
	[VFIO_USER_VERSION] = { .take = not_supported },
	[VFIO_USER_DMA_MAP] = { .min_len = sizeof(struct vfio_user_dma_map), .take = dma_map },
	[VFIO_USER_DMA_UNMAP] = { .min_len = sizeof(struct vfio_user_dma_unmap),
				  .take = dma_unmap,
				  .is_prepared = true,
				  .echo = sizeof(struct vfio_user_dma_unmap) },
	[VFIO_USER_DEVICE_GET_INFO] = { .min_len = sizeof(struct vfio_user_device_info) },
	[VFIO_USER_DEVICE_GET_REGION_INFO] = { .min_len = sizeof(struct vfio_region_info) },
	[VFIO_USER_DEVICE_GET_REGION_IO_FDS] = { .take = not_supported },
	[VFIO_USER_DEVICE_GET_IRQ_INFO] = { .min_len = sizeof(struct vfio_irq_info) },
	[VFIO_USER_DEVICE_SET_IRQS] = { .min_len = sizeof(struct vfio_irq_set), .take = set_irqs },
	[VFIO_USER_REGION_READ] = { .min_len = sizeof(struct vfio_user_region_access),
				    .check = check_region },
	[VFIO_USER_REGION_WRITE] = { .min_len = sizeof(struct vfio_user_region_access),
				     .check = check_region },
	[VFIO_USER_DMA_READ] = { .take = not_supported },
	[VFIO_USER_DMA_WRITE] = { .take = not_supported },
	[VFIO_USER_DEVICE_RESET] = { .min_len = 0 },
	[VFIO_USER_DIRTY_PAGES] = { .take = not_supported },
	[PVR_VFIO_USER_REGION_WRITE_MULTI] = { .take = not_supported },
	[PVR_VFIO_USER_DEVICE_FEATURE] = { .min_len = 2 * sizeof(uint32_t),
					   .take = device_feature,
					   .is_prepared = true },
	[PVR_VFIO_USER_MIG_DATA_READ] = { .min_len = 2 * sizeof(uint32_t), .take = mig_data_read },
	[PVR_VFIO_USER_MIG_DATA_WRITE] = { .min_len = 2 * sizeof(uint32_t),
					   .take = mig_data_write,
					   .max_len = 2 * sizeof(uint32_t) + PVR_MIG_DATA_MAX },
};

static const struct command unknown_command = { .take = not_supported };

static const struct command *find_command(uint16_t cmd)
{
	/* 0 is no command and has no entry. */
	return cmd && cmd < PVR_VFIO_USER_NUM ? &commands[cmd] : &unknown_command;
}

static int refuse(struct pvr_client *client, const struct vfio_user_header *hdr, int err,
		  const struct pvr_error *why)
{
	int ret;

	pvr_attach_log(client->attach, PVR_LOG_WARN, "QEMU (process %d) is refused: %s",
		       (int)client->pid, why->text);
	pvr_attach_count(&pvr_attach_stats(client->attach)->refused, 1);
	ret = pvr_message_reply(client->source.fd, hdr, err, NULL, 0);
	if (ret)
		return throw_out(client, "it takes no reply: %s", strerror(-ret));
	return 1;
}

static int take_message(struct pvr_client *client, const struct command *command, size_t size)
{
	struct pvr_message msg;
	struct pvr_error why = { "" };
	struct pvr_closer *closer = pvr_attach_closer(client->attach);
	int ret;

	if (pvr_closer_is_full(closer))
		return throw_out(client, "its descriptors cannot be closed");
	if (size > PVR_MESSAGE_MAX && !pvr_migrate_get_buffer(&client->migrate))
		return throw_out(client, "out of memory");
	ret = pvr_message_take(client->source.fd, size, &msg, client->migrate.buffer, closer);

	if (ret)
		return throw_out(client,
				 "a message with too many descriptors, or this "
				 "daemon has too many open (%s)",
				 strerror(-ret));
	msg.reply = (struct pvr_mig_reply){ msg.body, command->echo };
	ret = command->take(client, &msg, &why);
	pvr_message_close(&msg, closer);
	pvr_attach_notify(client->attach);
	if (ret)
		return refuse(client, &msg.hdr, -ret, &why);
	ret = pvr_message_reply(client->source.fd, &msg.hdr, 0, msg.reply.body, msg.reply.len);
	if (ret)
		return throw_out(client, "it takes no reply: %s", strerror(-ret));
	return 1;
}

static int refuse_in_queue(struct pvr_client *client, const struct pvr_window *window,
			   const struct vfio_user_header *hdr, const struct pvr_error *why)
{
	int ret = skip(client, window, hdr->msg_size);

	return ret < 0 ? ret : refuse(client, hdr, EINVAL, why);
}

/*
 * libvfio-user would receive descriptors with the message, and close them in this thread. So
 * while there are some in the queue, this file receives the message.
 */
static int run_library(struct pvr_client *client, const struct pvr_window *window,
		       const struct vfio_user_header *hdr)
{
	int ret;

	client->complaint[0] = '\0';
	if (window->has_fds) {
		ret = skip(client, window, hdr->msg_size);
		if (ret < 0)
			return ret;
		ret = pvr_device_run(client, window->data, hdr->msg_size);
	} else {
		ret = vfu_run_ctx(client->vfu) < 0 ? -errno : 0;
	}
	if (!ret)
		return 1;
	return ret == -ENOTCONN ? leave(client)
				: throw_out(client, "libvfio-user failed: %s", strerror(-ret));
}

static int pass_message(struct pvr_client *client, const struct pvr_window *window,
			const struct vfio_user_header *hdr)
{
	int ret = run_library(client, window, hdr);

	if (ret < 0)
		return ret;
	if (client->complaint[0]) {
		pvr_attach_count(&pvr_attach_stats(client->attach)->refused, 1);
		pvr_attach_log(client->attach, PVR_LOG_WARN,
			       "QEMU (process %d) is refused: command %u: %s", (int)client->pid,
			       hdr->cmd, client->complaint);
	}
	return 1;
}

/* ----------------------------------------------------------------- dispatch */

/* A reply is small: a writable socket takes it without blocking. */
static bool can_reply(struct pvr_client *client)
{
	struct pollfd pfd = { .fd = client->source.fd, .events = POLLOUT };
	bool ok = poll(&pfd, 1, 0) == 1;

	if (ok == !client->blocked)
		return ok;
	client->blocked = !ok;
	pvr_loop_modify(&client->source, CLIENT_EVENTS | (ok ? 0 : EPOLLOUT));
	return ok;
}

/* Stock QEMU migrates a VM without the device: then there must be no host to migrate it to. */
static int refuse_elsewhere(struct pvr_client *client, const struct pvr_window *window,
			    const struct vfio_user_header *hdr, const char *host)
{
	if (skip(client, window, hdr->msg_size) < 0)
		return STEP_GONE;
	pvr_attach_log(client->attach, PVR_LOG_WARN,
		       "QEMU (process %d) is refused: a VM of host %s uses this adapter, and its "
		       "QEMU cannot migrate it; unplug the device there first",
		       (int)client->pid, host);
	pvr_attach_count(&pvr_attach_stats(client->attach)->refused, 1);
	pvr_message_reply(client->source.fd, hdr, EBUSY, NULL, 0);
	pvr_client_leave(client);
	return STEP_GONE;
}

static int agree(struct pvr_client *client, const struct pvr_window *window,
		 const struct vfio_user_header *hdr)
{
	char host[HOST_NAME];
	struct pvr_error why;
	int ret;

	if (hdr->cmd != VFIO_USER_VERSION || window->len < hdr->msg_size)
		return throw_out(client,
				 "its first message is command %u, expected a "
				 "VERSION: start QEMU with -device vfio-user-pci",
				 hdr->cmd);
	ret = pvr_adapter_check_elsewhere(client->adapter, !client->is_checked, host, sizeof(host));
	client->is_checked = true;
	if (ret == -EINPROGRESS) {
		pvr_loop_timer_arm(pvr_attach_env(client->attach)->loop, &client->retry, RETRY);
		return STEP_WAIT;
	}
	if (ret)
		return refuse_elsewhere(client, window, hdr, host);
	if (skip(client, window, hdr->msg_size) < 0)
		return STEP_GONE;
	if (!pvr_client_set_version(client, window->data, hdr->msg_size))
		return throw_out(client, "out of memory");
	if (!pvr_device_attach(client, &why))
		return throw_out(client, "%s", why.text);
	pvr_loop_timer_disarm(&client->patience);
	pvr_attach_count(&pvr_attach_stats(client->attach)->clients, 1);
	pvr_attach_notify(client->attach);
	pvr_attach_log(client->attach, PVR_LOG_INFO, "QEMU (process %d) has attached",
		       (int)client->pid);
	return 1;
}

/* Return: whether the header is valid, so that the next message can be found. */
static bool check_header(const struct vfio_user_header *hdr, struct pvr_error *err)
{
	size_t max_len, max;

	if (hdr->flags.type != VFIO_USER_F_TYPE_COMMAND)
		return pvr_fail(err, "message type %u, expected a command (%u)", hdr->flags.type,
				VFIO_USER_F_TYPE_COMMAND);
	max_len = find_command(hdr->cmd)->max_len;
	max = max_len ? sizeof(*hdr) + max_len : PVR_MESSAGE_MAX;
	if (hdr->msg_size < sizeof(*hdr) || hdr->msg_size > max)
		return pvr_fail(err, "message size %u (command %u), expected %zu to %zu",
				hdr->msg_size, hdr->cmd, sizeof(*hdr), max);
	return true;
}

static int run_message(struct pvr_client *client, const struct pvr_window *window,
		       const struct vfio_user_header *hdr)
{
	const uint8_t *body = window->data + sizeof(*hdr);
	const struct command *command = find_command(hdr->cmd);
	size_t len = hdr->msg_size - sizeof(*hdr);
	struct pvr_error why;

	if (len < command->min_len) {
		pvr_fail(&why, "command %u with %zu bytes, expected at least %zu", hdr->cmd, len,
			 command->min_len);
		return refuse_in_queue(client, window, hdr, &why);
	}
	if (command->take)
		return take_message(client, command, hdr->msg_size);
	if (window->len >= hdr->msg_size && command->check && !command->check(body, len, &why))
		return refuse_in_queue(client, window, hdr, &why);
	return pass_message(client, window, hdr);
}

/*
 * A client can map and unmap memory faster than the kernel frees it. All that a client may map
 * can wait once, so a VM that restarts does not wait.
 */
static bool must_wait(struct pvr_client *client)
{
	if (!pvr_closer_has_memory(pvr_attach_closer(client->attach), 2 * client->ram.limit))
		return false;
	pvr_loop_timer_arm(pvr_attach_env(client->attach)->loop, &client->retry, RETRY);
	return true;
}

static void retry(struct pvr_loop_timer *timer)
{
	struct pvr_client *client =
		(struct pvr_client *)((char *)timer - offsetof(struct pvr_client, retry));

	pvr_loop_again(&client->source);
}

/*
 * All of the message is queued. A part of it can have arrived after the window was opened. Then a
 * new window has that part. Urgent data (MSG_OOB) ends each window.
 * Return: 1, or STEP_GONE.
 */
static int complete_window(struct pvr_client *client, struct pvr_window *window, size_t size)
{
	if (!pvr_window_is_short(window, size))
		return 1;
	if (pvr_window_open(window, client->source.fd) < 0 || pvr_window_is_short(window, size))
		return throw_out(client, "urgent data in a message");
	return 1;
}

static int one_message(struct pvr_client *client, struct pvr_window *window)
{
	struct vfio_user_header hdr;
	struct pvr_error why;

	if (window->len < sizeof(hdr) && !window->has_fds)
		return STEP_WAIT;
	if (window->len < sizeof(hdr))
		return throw_out(client, "descriptors in the middle of a header");
	memcpy(&hdr, window->data, sizeof(hdr));
	if (!check_header(&hdr, &why))
		return throw_out(client, "%s", why.text);
	if (window->len < hdr.msg_size && pvr_message_queued(client->source.fd) < hdr.msg_size)
		return STEP_WAIT;
	if (complete_window(client, window, hdr.msg_size) < 0)
		return STEP_GONE;
	if (find_command(hdr.cmd)->is_prepared && window->len < hdr.msg_size)
		return throw_out(client, "descriptors in the middle of a message");
	if (!client->vfu)
		return agree(client, window, &hdr);
	if (!hdr.flags.no_reply && !can_reply(client))
		return STEP_WAIT;
	if (!is_moved(client, window->data, window->len) ||
	    !is_prepared(client, window->data, window->len)) {
		pvr_loop_again(&client->source);
		return STEP_WAIT;
	}
	if (find_command(hdr.cmd)->take && must_wait(client))
		return STEP_WAIT;
	return run_message(client, window, &hdr);
}

/* Return: messages handled, or STEP_*. */
static int client_step(struct pvr_client *client)
{
	struct pvr_window window;
	size_t bytes = 0;
	ssize_t n;
	int num;

	client->emptied = false;
	/*
	 * The next message may have to wait for a long command; other clients do not wait.
	 */
	if (pvr_adapter_busy(client->adapter)) {
		pvr_loop_again(&client->source);
		return STEP_WAIT;
	}
	n = pvr_window_open(&window, client->source.fd);
	if (n == -EAGAIN || n == -EINTR)
		return STEP_WAIT;
	if (n <= 0)
		return leave(client);
	num = client->vfu ? run_posted(client, &window, &bytes) : 0;
	if (!num)
		return one_message(client, &window);
	if (skip(client, &window, bytes) < 0)
		return STEP_GONE;
	/* Later data raises another event. */
	client->emptied = bytes == window.len && window.len < sizeof(window.data) &&
			  !window.has_fds;
	return num;
}

static void client_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_client *client = (struct pvr_client *)source;
	uint64_t *messages = &pvr_attach_stats(client->attach)->messages;
	int num = 0, step;

	if (client->is_leaving) {
		pvr_client_leave(client);
		return;
	}
	if (events & (EPOLLHUP | EPOLLERR)) {
		leave(client);
		return;
	}
	client->since = pvr_loop_now();
	client->is_late = false;
	do {
		step = client_step(client);
		if (step > 0) {
			check_budget(client);
			pvr_attach_count(messages, (uint64_t)step);
			num += step;
		}
	} while (step > 0 && num < CLIENT_BATCH && !client->is_late && !client->emptied);
	if (step > 0 && !client->emptied)
		pvr_loop_again(&client->source);
}

static void out_of_patience(struct pvr_loop_timer *timer)
{
	struct pvr_client *client =
		(struct pvr_client *)((char *)timer - offsetof(struct pvr_client, patience));

	throw_out(client, "no VERSION message within %llu s", CLIENT_PATIENCE / PVR_SEC);
}

/* --------------------------------------------------------------- life cycle */

static_assert(offsetof(struct pvr_client, source) == 0, "client_ready() casts");

struct pvr_client *pvr_client_alloc(struct pvr_attach *attach)
{
	struct pvr_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->attach = attach;
	client->adapter = pvr_attach_adapter(attach);
	client->ram.adapter = client->adapter;
	client->ram.loop = pvr_attach_env(attach)->loop;
	client->ram.closer = pvr_attach_closer(attach);
	client->ram.limit = pvr_attach_stats(attach)->ram_limit;
	client->source.fd = -1;
	client->source.ready = client_ready;
	client->patience.expired = out_of_patience;
	client->retry.expired = retry;
	pvr_migrate_init(&client->migrate, client->adapter);
	pvr_irq_init(&client->irq, pvr_attach_has_msi(attach));
	client->uar.fd = -1;
	return client;
}

void pvr_client_free(struct pvr_client *client)
{
	pvr_device_discard(client);
	pvr_migrate_exit(&client->migrate);
	free(client->version);
	free(client);
}

bool pvr_client_connect(struct pvr_client *client, int fd)
{
	struct pvr_attach *attach = client->attach;

	const int on = 1;

	client->pid = pvr_unix_peer_pid(fd);
	client->source.fd = fd;
	/* Urgent data would change a window: the kernel hides it from that, but not for ever. */
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	if (pvr_loop_add(client->ram.loop, &client->source, CLIENT_EVENTS) < 0) {
		pvr_closer_close(pvr_attach_closer(attach), fd);
		pvr_client_free(client);
		return false;
	}
	pvr_loop_timer_arm(client->ram.loop, &client->patience, CLIENT_PATIENCE);
	return true;
}

struct pvr_client *pvr_client_create(struct pvr_attach *attach, int fd)
{
	struct pvr_client *client = pvr_client_alloc(attach);

	if (!client)
		pvr_closer_close(pvr_attach_closer(attach), fd);
	return client && pvr_client_connect(client, fd) ? client : NULL;
}

bool pvr_client_set_version(struct pvr_client *client, const void *version, size_t len)
{
	client->version = malloc(len);
	if (!client->version)
		return false;
	memcpy(client->version, version, len);
	client->version_len = len;
	return true;
}

/*
 * QEMU must read the end of the stream. close() with unread data would send a reset, on
 * which QEMU 11.1 aborts. After shutdown() no more data arrives, so the drain is bounded.
 * It ends before this function returns, because the process can end next. Only a client
 * that fills its closer with descriptors can get a reset then.
 */
static void close_connection(struct pvr_client *client)
{
	struct pvr_closer *closer = pvr_attach_closer(client->attach);
	int fd = client->source.fd;

	shutdown(fd, SHUT_RDWR);
	if (pvr_message_drop_all(fd, closer))
		close(fd);
	else
		pvr_closer_close_stream(closer, fd);
}

/* The peers of an adapter that was migrated wait for it. Otherwise they learn of the end. */
static void end_adapter(struct pvr_client *client)
{
	if (!pvr_migrate_lives_elsewhere(&client->migrate) || pvr_adapter_drop(client->adapter))
		pvr_adapter_reset(client->adapter);
}

bool pvr_client_leave(struct pvr_client *client)
{
	if (!client->is_leaving && client->vfu) {
		client->is_leaving = true;
		pvr_loop_timer_disarm(&client->patience);
		pvr_loop_timer_disarm(&client->retry);
		shutdown(client->source.fd, SHUT_RDWR);
		pvr_adapter_set_bus_master(client->adapter, false);
		end_adapter(client);
	}
	if (pvr_adapter_busy(client->adapter)) {
		pvr_loop_again(&client->source);
		return false;
	}
	pvr_client_destroy(client);
	return true;
}

int pvr_client_move(struct pvr_client *client, struct pvr_loop *to)
{
	int err = pvr_loop_move(&client->source, to);

	if (err)
		return err;
	pvr_loop_timer_move(&client->patience, to);
	pvr_loop_timer_move(&client->retry, to);
	client->ram.loop = to;
	pvr_sigbus_set_wakes(client->ram.guards, to);
	return 0;
}

void pvr_client_destroy(struct pvr_client *client)
{
	pvr_attach_forget(client->attach, client);
	pvr_loop_timer_disarm(&client->patience);
	pvr_loop_timer_disarm(&client->retry);
	pvr_loop_remove(&client->source);
	if (client->vfu) {
		pvr_adapter_set_bus_master(client->adapter, false);
		pvr_adapter_reset(client->adapter);
		pvr_adapter_map_uar(client->adapter, NULL);
		vfu_destroy_ctx(client->vfu);
	}
	pvr_migrate_exit(&client->migrate);
	close_connection(client);
	pvr_uar_map_close(&client->uar);
	pvr_vm_ram_unmap_all(&client->ram);
	pvr_irq_close_all(&client->irq);
	free(client->version);
	free(client);
}

bool pvr_client_is_gone(const struct pvr_client *client)
{
	struct pollfd pfd = { .fd = client->source.fd };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & (POLLHUP | POLLERR);
}

void pvr_client_check(struct pvr_client *client)
{
	struct pvr_attach *attach = client->attach;

	if (client->is_leaving)
		return;
	if (__atomic_load_n(&client->ram.broken, __ATOMIC_ACQUIRE)) {
		pvr_adapter_fail(client->adapter, "guest RAM cannot be accessed");
		throw_out(client, "its RAM was truncated, or %s",
			  client->ram.has_huge ? "there are too few huge pages"
					       : "its file system is full");
	} else if (__atomic_load_n(&client->irq.stalled, __ATOMIC_RELAXED)) {
		throw_out(client, "its interrupt eventfd blocks");
		pvr_attach_stalled(attach); /* the client is freed */
	}
}

void pvr_client_warn_unshared(struct pvr_client *client)
{
	if (client->checked_unshared)
		return;
	client->checked_unshared = true;
	if (!pvr_vm_ram_is_unshared(&client->ram, client->pid))
		return;
	pvr_attach_log(client->attach, PVR_LOG_ERR,
		       "the RAM of QEMU (process %d) is not shared, so its device cannot work: "
		       "start QEMU with -object memory-backend-memfd,id=mem,size=...,share=on "
		       "-machine memory-backend=mem",
		       (int)client->pid);
}
