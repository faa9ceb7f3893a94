// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A vfio-user client in the place of the engine. */
#include "plug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fg_guest.h"

#define MOVE_TRIES 10 /* likewise: the daemon may be dead */
#define CONNECT_TRIES 200 /* of 50 ms: the daemon may be starting */

/* The vfio-user protocol: commands, flags, regions. */
enum {
	CMD_VERSION = 1,
	CMD_DMA_MAP = 2,
	CMD_REGION_READ = 9,
	CMD_REGION_WRITE = 10,
	CMD_DEVICE_FEATURE = 16,
	CMD_MIG_DATA_READ = 17,
	CMD_MIG_DATA_WRITE = 18,
};

#define SET_STATE (1u << 17 | 2)
#define MIG_DATA_BYTES 32768u
#define REPLY_BYTES (MIG_DATA_BYTES + 64)

enum mig_state {
	MIG_STOP = 1,
	MIG_RUNNING,
	MIG_STOP_COPY,
	MIG_RESUMING,
};

enum {
	FLAG_REPLY = 0x01,
	FLAG_NO_REPLY = 0x10,
	FLAG_ERROR = 0x20,
	FLAG_TYPE = 0x0f,
};

enum {
	REGION_REGS = 1,
	REGION_UAR = 2,
	REGION_CONFIG = 7,
};

#define PCI_CONFIG_SIZE 256
#define PCI_COMMAND 4
#define PCI_COMMAND_MEMORY_MASTER 6

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

struct region_access {
	uint64_t offset;
	uint32_t region, count;
};

struct dma_map {
	uint32_t argsz, flags;
	uint64_t offset, address, size;
};

struct pvr_adapter {
	struct fg_guest *guest;
	int fd;
	int next; /* the connection to the device that the guest moves to; -1: none */
	uint32_t refused; /* error of the last reply of a state; 0: none */
	bool gone; /* the daemon has closed the connection */
	uint16_t id;
	uint32_t ext; /* features that the driver has acknowledged */
};

/* None is needed: the daemon has one. */
struct pvr_engine {
	char unused;
};

static const char *next_socket;

void plug_set_socket(const char *path)
{
	next_socket = path;
}

bool plug_is_gone(struct pvr_adapter *adapter)
{
	char byte;

	/* Without a request only the end of the stream arrives. */
	if (!recv(adapter->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT))
		adapter->gone = true;
	return adapter->gone;
}

/* ------------------------------------------------------------------- messages */

/* Return: false, also later, once the daemon has closed the connection. */
static bool put(struct pvr_adapter *adapter, const struct msghdr *msg, size_t size)
{
	if (adapter->gone)
		return false;
	if (sendmsg(adapter->fd, msg, MSG_NOSIGNAL) != (ssize_t)size)
		adapter->gone = true;
	return !adapter->gone;
}

static bool get(struct pvr_adapter *adapter, void *to, size_t size)
{
	if (adapter->gone)
		return false;
	/* recv() of zero bytes would wait for data. */
	if (size && recv(adapter->fd, to, size, MSG_WAITALL) != (ssize_t)size)
		adapter->gone = true;
	return !adapter->gone;
}

/* @body and @data follow the header; @fd goes with it, if it is not -1. */
static bool tell(struct pvr_adapter *adapter, uint16_t command, uint32_t flags, const void *body,
		 size_t body_size, const void *data, size_t size, int fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {
		.head = { .cmsg_len = CMSG_LEN(sizeof(int)),
			  .cmsg_level = SOL_SOCKET,
			  .cmsg_type = SCM_RIGHTS },
	};
	struct header header = {
		.id = ++adapter->id,
		.command = command,
		.size = (uint32_t)(sizeof(header) + body_size + size),
		.flags = flags,
	};
	struct iovec iov[] = {
		{ &header, sizeof(header) },
		{ (void *)body, body_size },
		{ (void *)data, size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	return put(adapter, &msg, header.size);
}

/* The reply's bytes from @skip on, at most @size of them. */
static bool reply(struct pvr_adapter *adapter, size_t skip, void *to, size_t size)
{
	struct header header;
	static char body[REPLY_BYTES];
	size_t len;

	if (!get(adapter, &header, sizeof(header)))
		return false;
	len = header.size - sizeof(header);
	if ((header.flags & FLAG_TYPE) != FLAG_REPLY || len > sizeof(body))
		fg_die("%s: a reply of %zu bytes, flags 0x%x", adapter->guest->name, len,
		       header.flags);
	if (header.flags & FLAG_ERROR && header.command == CMD_DEVICE_FEATURE) {
		adapter->refused = header.error;
		return get(adapter, body, len);
	}
	if (header.flags & FLAG_ERROR)
		fg_die("%s: command %u is refused: error %u", adapter->guest->name, header.command,
		       header.error);
	if (!get(adapter, body, len))
		return false;
	if (size && len < skip + size)
		fg_die("%s: a reply of %zu bytes only", adapter->guest->name, len);
	if (size)
		memcpy(to, body + skip, size);
	return true;
}

/* The whole reply, at most @size bytes of it. */
static bool reply_up_to(struct pvr_adapter *adapter, void *to, size_t size)
{
	struct header header;

	if (!get(adapter, &header, sizeof(header)))
		return false;
	if ((header.flags & FLAG_TYPE) != FLAG_REPLY || header.flags & FLAG_ERROR ||
	    header.size - sizeof(header) > size)
		fg_die("%s: command %u: a reply of %u bytes, flags 0x%x, error %u",
		       adapter->guest->name, header.command, header.size, header.flags,
		       header.error);
	return get(adapter, to, header.size - sizeof(header));
}

/* As in a VM: no access reaches the device outside of its BARs. */
static bool is_inside(uint32_t region, uint64_t offset, size_t size)
{
	const uint64_t end = region == REGION_REGS  ? PVR_BAR_REGS_SIZE
			     : region == REGION_UAR ? PVR_BAR_UAR_SIZE
						    : PCI_CONFIG_SIZE;

	return offset < end && size <= end - offset;
}

static void region_write(struct pvr_adapter *adapter, uint32_t region, uint64_t offset,
			 const void *data, size_t size, bool posted)
{
	struct region_access access = { offset, region, (uint32_t)size };

	if (!is_inside(region, offset, size))
		return;
	if (tell(adapter, CMD_REGION_WRITE, posted ? FLAG_NO_REPLY : 0, &access, sizeof(access),
		 data, size, -1) &&
	    !posted)
		reply(adapter, 0, NULL, 0);
}

static void region_read(struct pvr_adapter *adapter, uint32_t region, uint64_t offset, void *data,
			size_t size)
{
	struct region_access access = { offset, region, (uint32_t)size };

	/* The value of a register of a device that is gone. */
	memset(data, 0xff, size);
	if (!is_inside(region, offset, size))
		return;
	if (tell(adapter, CMD_REGION_READ, 0, &access, sizeof(access), NULL, 0, -1))
		reply(adapter, sizeof(access), data, size);
}

/* -------------------------------------------------------------------- adapters */

static int connect_to(const char *path, int max_tries)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		fg_die("socket %s: the path is too long", path);
	strcpy(address.sun_path, path);
	for (int tries = 0; tries < max_tries; tries++) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		if (fd >= 0)
			close(fd);
		usleep(50000);
	}
	return -1;
}

static void negotiate(struct pvr_adapter *adapter)
{
	static const char text[] =
		"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576}}";
	const uint16_t version[2] = { 0, 1 };

	if (tell(adapter, CMD_VERSION, 0, version, sizeof(version), text, sizeof(text), -1))
		reply(adapter, 0, NULL, 0);
}

struct pvr_adapter *pvr_adapter_create(struct pvr_engine *engine,
				       const struct pvr_adapter_config *config,
				       const struct pvr_adapter_ops *ops, void *host, char *err,
				       size_t err_size)
{
	struct pvr_adapter *adapter = calloc(1, sizeof(*adapter));

	if (!adapter)
		return NULL;
	adapter->guest = host;
	adapter->next = -1;
	adapter->fd = connect_to(next_socket, CONNECT_TRIES);
	if (adapter->fd < 0)
		fg_die("adapter %s: cannot connect to %s: %s", config->name, next_socket,
		       strerror(errno));
	negotiate(adapter);
	return adapter;
}

void pvr_adapter_destroy(struct pvr_adapter *adapter)
{
	close(adapter->fd);
	free(adapter);
}

int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable)
{
	const struct fg_ram *ram = &adapter->guest->ram;
	struct dma_map map = { .argsz = sizeof(map), .flags = 3, .address = gpa, .size = size };

	for (unsigned int i = 0; i < FG_RAM_REGIONS; i++)
		if (ram->region[i].va == va)
			map.offset = (uint64_t)ram->region[i].page0 * PVR_PAGE_SIZE;
	if (tell(adapter, CMD_DMA_MAP, 0, &map, sizeof(map), NULL, 0, ram->fd))
		reply(adapter, 0, NULL, 0);
	return 0;
}

void pvr_adapter_set_bus_master(struct pvr_adapter *adapter, bool on)
{
	const uint16_t command = on ? PCI_COMMAND_MEMORY_MASTER : 0;

	region_write(adapter, REGION_CONFIG, PCI_COMMAND, &command, sizeof(command), false);
}

/* The port state is the operator's. */
void pvr_adapter_set_link(struct pvr_adapter *adapter, bool up)
{
}

void pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf, size_t len)
{
	region_read(adapter, REGION_REGS, offset, buf, len);
}

void pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			    size_t len)
{
	if (offset == PVR_REG_EXT_ACK)
		memcpy(&adapter->ext, buf, sizeof(adapter->ext));
	region_write(adapter, REGION_REGS, offset, buf, len, false);
}

/* Posted, as QEMU does: the guest does not wait. */
void pvr_adapter_uar_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			   size_t len)
{
	region_write(adapter, REGION_UAR, offset, buf, len, true);
}

void pvr_adapter_map_uar(struct pvr_adapter *adapter, void *uar_shm)
{
	fg_die("%s: doorbells in memory are not to be had here", adapter->guest->name);
}

/* Of all counters, only the features that the driver has acknowledged. */
void pvr_adapter_get_stats(struct pvr_adapter *adapter, struct pvr_adapter_stats *stats)
{
	uint32_t offered;

	region_read(adapter, REGION_REGS, PVR_REG_EXT_FEATURES, &offered, sizeof(offered));
	memset(stats, 0, sizeof(*stats));
	stats->features = offered & adapter->ext;
}

/* ------------------------------------------------------------------ migration */

static bool set_state(struct pvr_adapter *adapter, enum mig_state state)
{
	const struct {
		uint32_t argsz, flags, state;
		int32_t fd;
	} body = { sizeof(body), SET_STATE, state, -1 };

	adapter->refused = 0;
	return tell(adapter, CMD_DEVICE_FEATURE, 0, &body, sizeof(body), NULL, 0, -1) &&
	       reply(adapter, 0, NULL, 0) && !adapter->refused;
}

/* Return: bytes of @to that are state; less than all is the end. */
static size_t read_state(struct pvr_adapter *adapter, void *to)
{
	const struct {
		uint32_t argsz, size;
	} body = { 8 + MIG_DATA_BYTES, MIG_DATA_BYTES };
	static char all[8 + MIG_DATA_BYTES];
	uint32_t size = 0;

	memset(all, 0, sizeof(all));
	if (!tell(adapter, CMD_MIG_DATA_READ, 0, &body, sizeof(body), NULL, 0, -1) ||
	    !reply_up_to(adapter, all, sizeof(all)))
		return 0;
	memcpy(&size, all + 4, sizeof(size));
	memcpy(to, all + 8, size <= MIG_DATA_BYTES ? size : 0);
	return size;
}

static bool write_state(struct pvr_adapter *adapter, const void *from, size_t size)
{
	const uint32_t body[2] = { 8, (uint32_t)size };

	return tell(adapter, CMD_MIG_DATA_WRITE, 0, body, sizeof(body), from, size, -1) &&
	       reply(adapter, 0, NULL, 0);
}

bool plug_save(struct pvr_adapter *adapter, struct plug_state *state)
{
	size_t n;

	state->size = 0;
	if (!set_state(adapter, MIG_STOP_COPY))
		return false;
	do {
		if (state->size + MIG_DATA_BYTES > sizeof(state->data))
			fg_die("%s: a state above %zu bytes", adapter->guest->name,
			       sizeof(state->data));
		n = read_state(adapter, state->data + state->size);
		state->size += n;
	} while (n == MIG_DATA_BYTES);
	return set_state(adapter, MIG_STOP);
}

static void map_all(struct pvr_adapter *adapter)
{
	const struct fg_ram *ram = &adapter->guest->ram;

	for (unsigned int i = 0; i < FG_RAM_REGIONS; i++)
		if (ram->region[i].size)
			pvr_adapter_map_ram(adapter, ram->region[i].gpa, ram->region[i].size,
					    ram->region[i].va, true);
}

/* The other connection is that of the adapter. */
static void swap(struct pvr_adapter *adapter)
{
	int fd = adapter->fd;

	adapter->fd = adapter->next;
	adapter->next = fd;
	adapter->gone = false;
}

bool plug_load(struct pvr_adapter *adapter, const char *path, const struct plug_state *state)
{
	size_t at, n;

	adapter->next = connect_to(path, MOVE_TRIES);
	if (adapter->next < 0)
		return false;
	swap(adapter);
	negotiate(adapter);
	map_all(adapter);
	pvr_adapter_set_bus_master(adapter, true);
	if (!set_state(adapter, MIG_RESUMING))
		return false;
	for (at = 0; at < state->size; at += n) {
		n = state->size - at < MIG_DATA_BYTES ? state->size - at : MIG_DATA_BYTES;
		if (!write_state(adapter, state->data + at, n))
			return false;
	}
	return set_state(adapter, MIG_STOP);
}

bool plug_start(struct pvr_adapter *adapter)
{
	return set_state(adapter, MIG_RUNNING);
}

void plug_leave(struct pvr_adapter *adapter)
{
	close(adapter->next);
	adapter->next = -1;
}

bool plug_cancel(struct pvr_adapter *adapter)
{
	if (adapter->next >= 0) {
		swap(adapter);
		plug_leave(adapter);
	}
	return set_state(adapter, MIG_RUNNING);
}

/* ------------------------------------------------- an engine that is elsewhere */

struct pvr_engine *pvr_engine_create(const struct pvr_engine_ops *ops, void *opaque,
				     unsigned int workers)
{
	static struct pvr_engine engine;

	return &engine;
}

void pvr_engine_destroy(struct pvr_engine *engine)
{
}

bool pvr_engine_run(struct pvr_engine *engine, unsigned int worker)
{
	return false;
}

bool pvr_engine_poll(struct pvr_engine *engine, unsigned int worker)
{
	return false;
}

bool pvr_engine_enable_doorbells(struct pvr_engine *engine, unsigned int worker)
{
	return true;
}

bool pvr_engine_is_uar_mapped(const struct pvr_engine *engine, unsigned int worker)
{
	return false;
}

uint64_t pvr_engine_deadline(struct pvr_engine *engine, unsigned int worker)
{
	return UINT64_MAX;
}
