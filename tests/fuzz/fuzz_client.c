// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a hostile QEMU at the socket of an adapter. The input is a program, see
 * records.h. Its head chooses the adapter. The first byte of a record chooses an operation:
 * a message of each command with plausible fields, raw bytes, a driver's probe, files that
 * shrink, replies that are read, connections that are closed and opened.
 *
 * The second byte of a record with a message is its form: FORM_*. Descriptors of any kind go
 * with any message.
 *
 * After each input no descriptor is open that was not open before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/client.h"
#include "base/unix_socket.h"
#include "fg_ram.h"
#include "records.h"

#define RECORDS_MAX 96
#define PEERS 2
#define RAM_SIZE (2u << 20)
#define RAM_GPA 0x100000ull
#define MESSAGE_MAX (PVR_MESSAGE_MAX + 64)

/* Forms of a message. */
#define FORM_NO_REPLY 0x01
#define FORM_SPLIT 0x02 /* in two parts, between which the daemon runs */
#define FORM_JOIN 0x04 /* the daemon does not run before the next operation */
#define FORM_FDS 0x08 /* with descriptors that the command does not need */
#define FORM_FDS_LATE 0x10 /* they go with the last part */
#define FORM_SIZE 0x20 /* msg_size is wrong */
#define FORM_TYPE 0x40 /* a reply, or a type that does not exist */
#define FORM_CUT 0x80 /* fewer bytes than msg_size */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
	struct pvr_loop *loop;
	struct pvr_engine *engine;
	struct pvr_attach_env env;
	struct pvr_attach *attach;
	char folder[64], path[96];
	uint64_t now;
	int peer[PEERS]; /* the client's ends; -1: none */
	unsigned int current;
	int ram; /* memfd with a shared region for the driver */
	int ram_small, ram_readonly, zero, folder_fd;
	uint16_t id;
} w;

struct out {
	size_t len;
	uint8_t bytes[MESSAGE_MAX];
	int fds[PVR_MESSAGE_FDS + 4];
	size_t num_fds;
};

/* -------------------------------------------------------------------------- daemon */

static uint64_t now(void *opaque)
{
	return w.now;
}

static void log_line(void *opaque, enum pvr_log_level level, const char *adapter,
		     const char *message)
{
	if (getenv("FG_LOG"))
		fprintf(stderr, "log %d: %s\n", level, message);
}

static const struct pvr_engine_ops engine_ops = { .now = now, .log = log_line };

static void run(void)
{
	for (int i = 0; i < 64; i++) {
		if (!pvr_loop_wait(w.loop, 0) || !pvr_loop_dispatch(w.loop))
			break;
		pvr_engine_run(w.engine, 0);
		pvr_attach_check(w.attach);
	}
	for (int i = 0; i < 1000 && pvr_engine_run(w.engine, 0); i++)
		;
	pvr_attach_check(w.attach);
}

/* --------------------------------------------------------------------- descriptors */

/* A descriptor that the caller closes. */
static int make_fd(uint8_t kind)
{
	int pair[2];

	switch (kind % 10) {
	case 0:
		return dup(w.ram);
	case 1:
	case 2:
		return eventfd(0, EFD_CLOEXEC);
	case 3:
		if (pipe2(pair, O_CLOEXEC))
			return -1;
		close(pair[0]);
		return pair[1];
	case 4:
		return dup(w.zero);
	case 5:
		return dup(w.ram_small);
	case 6:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return -1;
		close(pair[0]);
		return pair[1];
	case 7:
		return memfd_create("empty", MFD_CLOEXEC);
	case 8:
		return dup(w.folder_fd);
	default:
		return dup(w.ram_readonly);
	}
}

static void add_fd(struct out *out, uint8_t kind)
{
	const int fd = out->num_fds < sizeof(out->fds) / sizeof(out->fds[0]) ? make_fd(kind) : -1;

	if (fd >= 0)
		out->fds[out->num_fds++] = fd;
}

/* ------------------------------------------------------------------------- sending */

static void send_part(const uint8_t *bytes, size_t len, const int *fds, size_t num_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(((struct out *)0)->fds))];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (!len || w.peer[w.current] < 0)
		return;
	if (num_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, num_fds * sizeof(int));
	}
	sendmsg(w.peer[w.current], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_out(struct out *out, uint8_t form, uint8_t split)
{
	size_t first = form & FORM_SPLIT ? split % (out->len + 1) : out->len;
	const bool late = form & FORM_FDS_LATE && first < out->len;

	send_part(out->bytes, first, out->fds, late ? 0 : out->num_fds);
	if (first < out->len) {
		run();
		send_part(out->bytes + first, out->len - first, out->fds, late ? out->num_fds : 0);
	}
	for (size_t i = 0; i < out->num_fds; i++)
		close(out->fds[i]);
	if (!(form & FORM_JOIN))
		run();
}

/* ------------------------------------------------------------------------ messages */

static void put(struct out *out, const void *bytes, size_t len)
{
	len = len < sizeof(out->bytes) - out->len ? len : sizeof(out->bytes) - out->len;
	memcpy(out->bytes + out->len, bytes, len);
	out->len += len;
}

static void put_rest(struct out *out, struct record *record, size_t len)
{
	uint8_t byte;

	while (len--) {
		byte = record_byte(record);
		put(out, &byte, 1);
	}
}

/* Flags that are seldom set: most fields of a message must be valid for the others to count. */
static uint8_t flags(struct record *record)
{
	const uint8_t byte = record_byte(record);

	return byte & record_byte(record);
}

static void put_version(struct out *out, struct record *record)
{
	static const char *const texts[] = {
		"{\"capabilities\":{\"max_msg_fds\":8,\"migration\":{\"pgsize\":4096}}}",
		"{\"capabilities\":{\"max_msg_fds\":1,\"twin_socket\":{\"supported\":true}}}",
		"{}",
		"{\"capabilities\":{\"max_data_xfer_size\":18446744073709551615}}",
		"{\"capabilities\":[[[[[[",
		"",
	};
	const uint8_t which = record_byte(record), form = flags(record);
	const char *text = texts[which % (sizeof(texts) / sizeof(texts[0]))];
	const uint16_t version[] = { form & 1 ? record_byte(record) : 0,
				     form & 2 ? record_byte(record) : 1 };

	put(out, version, sizeof(version));
	put(out, text, strlen(text) + (form & 4 ? 0 : 1));
	if (form & 8)
		put_rest(out, record, 16);
}

static void put_dma_map(struct out *out, struct record *record)
{
	const uint8_t form = flags(record);
	struct vfio_user_dma_map map = {
		.argsz = sizeof(map),
		.flags = form & 1 ? record_byte(record) : 3,
		.offset = form & 2 ? (uint64_t)record_draw(record) << record_below(record, 48) : 0,
		.addr = RAM_GPA + (uint64_t)record_below(record, 4) * RAM_SIZE,
		.size = RAM_SIZE,
	};

	if (form & 4)
		map.addr = (uint64_t)record_draw(record) << record_below(record, 49);
	if (form & 8)
		map.size = (uint64_t)record_draw(record) << record_below(record, 49);
	put(out, &map, sizeof(map));
	if (!(form & 16))
		add_fd(out, form & 32 ? record_byte(record) : 0);
}

static void put_dma_unmap(struct out *out, struct record *record)
{
	const uint8_t form = flags(record);
	struct vfio_user_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.flags = form & 1 ? record_byte(record) : 0,
		.addr = RAM_GPA + (uint64_t)record_below(record, 4) * RAM_SIZE,
		.size = RAM_SIZE,
	};

	if (form & 2)
		unmap.addr = unmap.size = 0;
	if (form & 4)
		unmap.size = (uint64_t)record_draw(record) << record_below(record, 49);
	put(out, &unmap, sizeof(unmap));
}

static void put_set_irqs(struct out *out, struct record *record)
{
	static const uint32_t types[] = {
		VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
		VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_MASK,
		VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK,
	};
	const uint8_t form = flags(record);
	struct vfio_irq_set set = {
		.argsz = sizeof(set),
		.flags = types[record_below(record, 5)],
		.index = form & 1 ? record_below(record, 6) : VFIO_PCI_MSIX_IRQ_INDEX,
		.start = record_below(record, 12),
		.count = record_below(record, 12),
	};
	bool wants;

	if (form & 2)
		set.flags = record_byte(record);
	if (form & 4)
		set.start = record_word(record);
	if (form & 8)
		set.count = record_word(record);
	put(out, &set, sizeof(set));
	wants = set.flags & VFIO_IRQ_SET_DATA_EVENTFD;
	for (uint32_t i = 0; wants && !(form & 16) && i < set.count && i < 12; i++)
		add_fd(out, form & 32 ? record_byte(record) : 1);
}

static void put_access(struct out *out, struct record *record, bool write)
{
	static const uint32_t regions[] = { VFU_PCI_DEV_BAR1_REGION_IDX,
					    VFU_PCI_DEV_BAR1_REGION_IDX,
					    VFU_PCI_DEV_BAR2_REGION_IDX, VFU_PCI_DEV_CFG_REGION_IDX,
					    VFU_PCI_DEV_BAR0_REGION_IDX };
	const uint8_t form = flags(record);
	struct vfio_user_region_access access = {
		.offset = (uint64_t)record_below(record, 64) * 4,
		.region = regions[record_below(record, 5)],
		.count = 4,
	};

	if (form & 1)
		access.offset = (uint64_t)record_draw(record) << record_below(record, 49);
	if (form & 2)
		access.region = record_byte(record);
	if (form & 4)
		access.count = record_draw(record) % 4200;
	if (form & 8)
		access.count = record_word(record);
	put(out, &access, sizeof(access));
	if (write)
		put_rest(out, record, access.count < 4200 ? access.count : 16);
}

static void put_info(struct out *out, struct record *record)
{
	const uint32_t info[] = { record_byte(record) & 3 ? 32 : record_word(record),
				  record_byte(record),
				  record_below(record, 12),
				  0,
				  0,
				  0,
				  0,
				  0 };

	put(out, info, sizeof(info));
}

/* Transitions, most of them; sometimes any feature with any data. */
static void put_feature(struct out *out, struct record *record)
{
	const uint8_t form = flags(record);
	uint32_t feature[4] = { 16, (1 << 17) | VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE,
				record_below(record, PVR_MIGRATE_NUM + 2), 0 };

	if (form & 1)
		feature[0] = record_word(record);
	if (form & 2)
		feature[1] = (uint32_t)record_below(record, 8) << 16 | record_below(record, 12);
	if (form & 4)
		feature[2] = record_word(record);
	put(out, feature, form & 8 ? record_below(record, sizeof(feature)) : sizeof(feature));
	if (form & 16)
		put_rest(out, record, record_draw(record) % 4000);
}

static void put_state(struct out *out, struct record *record, bool write)
{
	const uint8_t form = flags(record);
	const uint32_t size = record_draw(record) % 4000;
	const uint32_t data[] = { form & 1 ? record_word(record) : size + 8,
				  form & 2 ? record_word(record) : size };

	put(out, data, sizeof(data));
	if (write)
		put_rest(out, record, size);
}

static void put_body(struct out *out, struct record *record, uint16_t cmd)
{
	switch (cmd) {
	case PVR_VFIO_USER_DEVICE_FEATURE:
		put_feature(out, record);
		break;
	case PVR_VFIO_USER_MIG_DATA_READ:
	case PVR_VFIO_USER_MIG_DATA_WRITE:
		put_state(out, record, cmd == PVR_VFIO_USER_MIG_DATA_WRITE);
		break;
	case VFIO_USER_VERSION:
		put_version(out, record);
		break;
	case VFIO_USER_DMA_MAP:
		put_dma_map(out, record);
		break;
	case VFIO_USER_DMA_UNMAP:
		put_dma_unmap(out, record);
		break;
	case VFIO_USER_DEVICE_SET_IRQS:
		put_set_irqs(out, record);
		break;
	case VFIO_USER_REGION_READ:
	case VFIO_USER_REGION_WRITE:
		put_access(out, record, cmd == VFIO_USER_REGION_WRITE);
		break;
	case VFIO_USER_DEVICE_RESET:
		break;
	default:
		put_info(out, record);
	}
}

static void send_message(struct record *record, uint16_t cmd)
{
	const uint8_t form = flags(record), split = record_byte(record);
	struct vfio_user_header hdr = { .msg_id = w.id++, .cmd = cmd };
	struct out out = { .len = sizeof(hdr) };

	hdr.flags.no_reply = form & FORM_NO_REPLY ? 1 : 0;
	put_body(&out, record, cmd);
	if (form & FORM_FDS)
		for (uint32_t i = record_below(record, 20); i; i--)
			add_fd(&out, record_byte(record));
	if (form & FORM_TYPE)
		hdr.flags.type = record_byte(record) & 15;
	hdr.msg_size = (uint32_t)out.len;
	if (form & FORM_SIZE)
		hdr.msg_size = record_byte(record) & 1 ? record_word(record)
						       : record_draw(record) % 4200;
	if (form & FORM_CUT)
		out.len = 1 + record_draw(record) % out.len;
	memcpy(out.bytes, &hdr, sizeof(hdr));
	send_out(&out, form, split);
}

/* ---------------------------------------------------------------------- operations */

static void attach_peer(unsigned int i)
{
	if (w.peer[i] >= 0)
		close(w.peer[i]);
	w.peer[i] = pvr_unix_connect(w.path);
	run();
}

/* What QEMU sends before its guest runs. */
static void do_plug(void)
{
	static const uint16_t cmds[] = { VFIO_USER_VERSION, VFIO_USER_DEVICE_GET_INFO,
					 VFIO_USER_DMA_MAP };
	static const uint8_t zeroes[RECORD_SIZE];
	struct record plain;

	attach_peer(w.current);
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		record_open(&plain, zeroes);
		send_message(&plain, cmds[i]);
	}
}

static void posted_write(uint32_t region, uint64_t offset, uint32_t value)
{
	struct vfio_user_header hdr = { .cmd = VFIO_USER_REGION_WRITE };
	struct vfio_user_region_access access = { .offset = offset, .region = region, .count = 4 };
	struct out out = { .len = 0 };

	hdr.flags.no_reply = region != VFU_PCI_DEV_CFG_REGION_IDX;
	hdr.msg_size = sizeof(hdr) + sizeof(access) + sizeof(value);
	put(&out, &hdr, sizeof(hdr));
	put(&out, &access, sizeof(access));
	put(&out, &value, sizeof(value));
	send_out(&out, 0, 0);
}

/* What a driver writes at its probe; some of it may be missing. */
static void do_probe(struct record *record)
{
	const uint8_t without = record_byte(record), cmd = record_byte(record);

	if (!(without & 1))
		posted_write(VFU_PCI_DEV_CFG_REGION_IDX, PCI_COMMAND, 6);
	posted_write(VFU_PCI_DEV_BAR1_REGION_IDX, PVR_REG_DSRLOW, (uint32_t)RAM_GPA);
	if (!(without & 2))
		posted_write(VFU_PCI_DEV_BAR1_REGION_IDX, PVR_REG_DSRHIGH, 0);
	posted_write(VFU_PCI_DEV_BAR1_REGION_IDX, PVR_REG_IMR, 0);
	if (!(without & 4))
		posted_write(VFU_PCI_DEV_BAR1_REGION_IDX, PVR_REG_CTL, PVR_CTL_ACTIVATE);
	if (pwrite(w.ram, &cmd, 1, PVR_PAGE_SIZE + offsetof(struct pvr_cmd_hdr, cmd)) != 1)
		return;
	posted_write(VFU_PCI_DEV_BAR1_REGION_IDX, PVR_REG_REQUEST, 0);
}

static void do_raw(struct record *record)
{
	struct out out = { .len = 0 };
	const uint8_t form = record_byte(record), split = record_byte(record);

	put_rest(&out, record, 1 + record_below(record, 27));
	if (form & FORM_FDS)
		add_fd(&out, record_byte(record));
	send_out(&out, form, split);
}

static void do_truncate(struct record *record)
{
	if (ftruncate(w.ram, (off_t)record_below(record, 9) * PVR_PAGE_SIZE))
		return;
	if (record_byte(record) & 1 && ftruncate(w.ram, RAM_SIZE))
		return;
	run();
}

static void do_connection(struct record *record)
{
	char replies[4096];
	int fd = w.peer[w.current];

	switch (record_below(record, 6)) {
	case 0:
		attach_peer(w.current);
		break;
	case 1:
		w.current = record_below(record, PEERS);
		break;
	case 2:
		if (fd >= 0)
			shutdown(fd, record_byte(record) % 3);
		run();
		break;
	case 3:
		if (fd >= 0)
			close(fd);
		w.peer[w.current] = -1;
		run();
		break;
	case 4: /* the replies that were not read are in the way of the next */
		for (int i = 0; i < 20; i++)
			send_message(record, VFIO_USER_REGION_READ);
		break;
	default:
		while (fd >= 0 && recv(fd, replies, sizeof(replies), MSG_DONTWAIT) > 0)
			;
		run();
	}
}

static void do_adapter(struct record *record)
{
	w.now += (uint64_t)record_draw(record) << record_below(record, 20);
	pvr_adapter_set_link(pvr_attach_adapter(w.attach), record_byte(record) & 1);
	run();
}

static void execute(const uint8_t *bytes)
{
	static const uint16_t frequent[] = { VFIO_USER_DMA_MAP, VFIO_USER_DMA_UNMAP,
					     VFIO_USER_DEVICE_SET_IRQS, VFIO_USER_REGION_READ,
					     VFIO_USER_REGION_WRITE };
	static const uint16_t migration[] = { PVR_VFIO_USER_DEVICE_FEATURE,
					      PVR_VFIO_USER_MIG_DATA_READ,
					      PVR_VFIO_USER_MIG_DATA_WRITE };
	struct record record;
	uint8_t op;

	record_open(&record, bytes);
	op = record_byte(&record);
	if (op < 120)
		send_message(&record, frequent[op % 5]);
	else if (op < 170)
		send_message(&record, op % (VFIO_USER_MAX + 2));
	else if (op < 190)
		do_raw(&record);
	else if (op < 205)
		do_probe(&record);
	else if (op < 220)
		do_plug();
	else if (op < 230)
		do_truncate(&record);
	else if (op < 250)
		do_connection(&record);
	else if (op < 253)
		do_adapter(&record);
	else
		send_message(&record, migration[op % 3]);
}

/* --------------------------------------------------------------------------- a run */

/* The driver's shared region, in the first pages of RAM. */
static void fill_ram(void)
{
	struct pvr_dsr dsr = {
		.driver_version = PVR_VERSION,
		.gos_info = PVR_GOS_INFO(PVR_GOS_BITS_64, PVR_GOS_TYPE_LINUX, 1),
		.cmd_slot_dma = RAM_GPA + PVR_PAGE_SIZE,
		.resp_slot_dma = RAM_GPA + 2 * PVR_PAGE_SIZE,
		.async_ring = { .num_pages = 2, .pdir_dma = RAM_GPA + 3 * PVR_PAGE_SIZE },
		.cq_ring = { .num_pages = 2, .pdir_dma = RAM_GPA + 3 * PVR_PAGE_SIZE },
		.uar_pfn = 0xfe000,
	};
	const uint64_t table = RAM_GPA + 4 * PVR_PAGE_SIZE;
	const uint64_t pages[] = { RAM_GPA + 5 * PVR_PAGE_SIZE, RAM_GPA + 6 * PVR_PAGE_SIZE };

	if (ftruncate(w.ram, 0) || ftruncate(w.ram, RAM_SIZE) ||
	    pwrite(w.ram, &dsr, sizeof(dsr), 0) != sizeof(dsr) ||
	    pwrite(w.ram, &table, sizeof(table), 3 * PVR_PAGE_SIZE) != sizeof(table) ||
	    pwrite(w.ram, pages, sizeof(pages), 4 * PVR_PAGE_SIZE) != sizeof(pages))
		fg_die("cannot fill RAM");
}

static int lowest_fd(void)
{
	const int fd = dup(w.zero);

	close(fd);
	/* cppcheck-suppress deallocret ; only the number of the descriptor is used. */
	return fd;
}

/* The closer's thread closes descriptors, also after the end of the attach. */
static bool all_closed(int before)
{
	int i;

	for (i = 0; i < 10000 && lowest_fd() != before; i++)
		usleep(1000);
	return i < 10000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pvr_adapter_config config = { .name = "vm", .mac = { 0x52, 0x54, 0, 0, 0, 1 } };
	const uint8_t *at = data + RECORDS_HEAD;
	const int before = lowest_fd();
	struct pvr_attach_settings settings = { .path = w.path };
	struct pvr_attach_stats stats;
	struct pvr_error err;

	if (size < RECORDS_HEAD)
		return 0;
	fill_ram();
	config.uar_mapped = data[0] & 1;
	settings.msi = data[0] >> 6 & 1;
	w.attach = pvr_attach_create(&w.env, &config, &settings, &err);
	if (!w.attach)
		fg_die("cannot attach: %s", err.text);
	w.current = 0;
	if (!(data[0] & 2))
		do_plug();
	for (int i = 0; i < RECORDS_MAX && at + RECORD_SIZE <= data + size; i++, at += RECORD_SIZE)
		execute(at);
	for (int i = 0; i < PEERS; i++) {
		if (w.peer[i] >= 0)
			close(w.peer[i]);
		w.peer[i] = -1;
	}
	run();
	pvr_attach_get_stats(w.attach, &stats);
	if (stats.client || stats.attached || stats.ram_bytes)
		fg_die("a client is left");
	pvr_attach_destroy(w.attach);
	if (!all_closed(before))
		fg_die("descriptor %d is left open", before);
	return 0;
}

static void clean_up(void)
{
	rmdir(w.folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *base = getenv("TMPDIR");
	char self[64];

	snprintf(w.folder, sizeof(w.folder), "%.40s/fuzz_client.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(w.folder))
		fg_die("cannot make a folder");
	atexit(clean_up);
	snprintf(w.path, sizeof(w.path), "%s/socket", w.folder);
	for (int i = 0; i < PEERS; i++)
		w.peer[i] = -1;
	w.loop = pvr_loop_create();
	w.now = 1000 * PVR_SEC;
	w.engine = pvr_engine_create(&engine_ops, NULL, 1);
	w.env = (struct pvr_attach_env){ .loop = w.loop,
					 .engine = w.engine,
					 .ops = &engine_ops,
					 .tmp = w.folder,
					 .host_ram = 1ull << 34 };
	w.ram = memfd_create("ram", MFD_CLOEXEC);
	w.ram_small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	w.zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	w.folder_fd = open("/", O_PATH | O_CLOEXEC);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", w.ram);
	w.ram_readonly = open(self, O_RDONLY | O_CLOEXEC);
	if (!w.loop || !w.engine || w.ram < 0 || w.zero < 0 ||
	    ftruncate(w.ram_small, PVR_PAGE_SIZE) || pvr_sigbus_init())
		fg_die("cannot set up");
	return 0;
}
