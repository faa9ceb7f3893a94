// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI device of a client, on top of libvfio-user.
 *
 * DOC: adoption
 *
 * libvfio-user accepts a connection itself and then blocks until the version arrives. So
 * client.c accepts and waits for the complete VERSION message. pvr_device_attach() sends
 * that message to libvfio-user over a connection of its own, to a socket in a private
 * folder that no other process can open. After the negotiation dup2() replaces that
 * connection by the client's, and libvfio-user serves the client.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "attach/client.h"
#include "base/unix_socket.h"

/* Behind the standard header. libvfio-user has no capability MSI, so it is written here. */
#define MSI_OFFSET 0x40

/* Bits of the configuration space that a guest can write. */
struct config_field {
	uint8_t offset, size;
	uint32_t mask;
};

static const struct config_field writable[] = {
	{ PCI_COMMAND, 2,
	  PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
		  PCI_COMMAND_INTX_DISABLE },
	{ PCI_CACHE_LINE_SIZE, 1, 0xff },
	{ PCI_BASE_ADDRESS_0, 4, ~(PVR_BAR_MSIX_SIZE - 1u) },
	{ PCI_BASE_ADDRESS_1, 4, ~(PVR_BAR_REGS_SIZE - 1u) },
	{ PCI_BASE_ADDRESS_2, 4, ~(PVR_BAR_UAR_SIZE - 1u) },
	{ PCI_INTERRUPT_LINE, 1, 0xff },
};

/* One message with an address of 64 bits, without masks. */
static const struct config_field msi_writable[] = {
	{ MSI_OFFSET + PCI_MSI_FLAGS, 1, PCI_MSI_FLAGS_ENABLE },
	{ MSI_OFFSET + PCI_MSI_ADDRESS_LO, 4, ~3u },
	{ MSI_OFFSET + PCI_MSI_ADDRESS_HI, 4, ~0u },
	{ MSI_OFFSET + PCI_MSI_DATA_64, 2, 0xffff },
};

static uint8_t *config_space(vfu_ctx_t *vfu)
{
	return vfu_pci_get_config_space(vfu)->raw;
}

static uint8_t bits_of(const struct config_field *fields, size_t num, size_t offset)
{
	size_t i;

	for (i = 0; i < num; i++) {
		if (offset >= fields[i].offset &&
		    offset < (size_t)fields[i].offset + fields[i].size)
			return (uint8_t)(fields[i].mask >> 8 * (offset - fields[i].offset));
	}
	return 0;
}

static bool has_msi(vfu_ctx_t *vfu)
{
	const struct pvr_client *client = vfu_get_private(vfu);

	return pvr_attach_has_msi(client->attach);
}

/* The writable bits of one byte. libvfio-user has chosen the offset of MSI-X. */
static uint8_t writable_bits(vfu_ctx_t *vfu, size_t offset)
{
	uint8_t bits = bits_of(writable, sizeof(writable) / sizeof(writable[0]), offset);
	size_t msix;

	if (bits)
		return bits;
	if (has_msi(vfu))
		return bits_of(msi_writable, sizeof(msi_writable) / sizeof(msi_writable[0]),
			       offset);
	msix = vfu_pci_find_capability(vfu, false, PCI_CAP_ID_MSIX);
	return msix && offset == msix + PCI_MSIX_FLAGS + 1
		       ? (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8
		       : 0;
}

static void update_bus_master(struct pvr_client *client)
{
	const uint8_t *config = config_space(client->vfu);

	pvr_adapter_set_bus_master(client->adapter, config[PCI_COMMAND] & PCI_COMMAND_MASTER);
}

static void config_write(vfu_ctx_t *vfu, size_t offset, const char *buf, size_t count)
{
	uint8_t *config = config_space(vfu);
	uint8_t mask;
	size_t i;

	for (i = 0; i < count; i++) {
		mask = writable_bits(vfu, offset + i);
		config[offset + i] =
			(uint8_t)((config[offset + i] & ~mask) | ((uint8_t)buf[i] & mask));
	}
}

static ssize_t config_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t offset, bool is_write)
{
	struct pvr_client *client = vfu_get_private(vfu);
	size_t start = (size_t)offset;

	if (start > PVR_CONFIG_SIZE || count > PVR_CONFIG_SIZE - start) {
		errno = EINVAL;
		return -1;
	}
	if (!is_write) {
		memcpy(buf, config_space(vfu) + start, count);
	} else {
		config_write(vfu, start, buf, count);
		update_bus_master(client);
	}
	return (ssize_t)count;
}

/* QEMU emulates the MSI-X table and the pending bits. */
static ssize_t msix_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t offset, bool is_write)
{
	if (!is_write)
		memset(buf, 0, count);
	return (ssize_t)count;
}

void pvr_device_write(struct pvr_client *client, uint32_t region, uint64_t offset, const void *buf,
		      size_t len)
{
	switch (region) {
	case VFU_PCI_DEV_BAR1_REGION_IDX:
		if (offset == PVR_REG_DSRHIGH)
			pvr_client_warn_unshared(client);
		pvr_adapter_regs_write(client->adapter, offset, buf, len);
		break;
	case VFU_PCI_DEV_BAR2_REGION_IDX:
		pvr_adapter_uar_write(client->adapter, offset, buf, len);
		break;
	}
}

static ssize_t regs_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t offset, bool is_write)
{
	struct pvr_client *client = vfu_get_private(vfu);

	if (is_write)
		pvr_device_write(client, VFU_PCI_DEV_BAR1_REGION_IDX, (uint64_t)offset, buf, count);
	else
		pvr_adapter_regs_read(client->adapter, (uint64_t)offset, buf, count);
	return (ssize_t)count;
}

static ssize_t uar_access(vfu_ctx_t *vfu, char *buf, size_t count, loff_t offset, bool is_write)
{
	if (is_write)
		pvr_device_write(vfu_get_private(vfu), VFU_PCI_DEV_BAR2_REGION_IDX,
				 (uint64_t)offset, buf, count);
	else
		memset(buf, 0xff, count);
	return (ssize_t)count;
}

static void clear_writable(vfu_ctx_t *vfu)
{
	uint8_t *config = config_space(vfu);
	size_t i;

	for (i = 0; i < PVR_CONFIG_SIZE; i++)
		config[i] &= (uint8_t)~writable_bits(vfu, i);
}

static int device_reset(vfu_ctx_t *vfu, vfu_reset_type_t type)
{
	struct pvr_client *client = vfu_get_private(vfu);

	if (type == VFU_RESET_LOST_CONN)
		return 0; /* pvr_client_destroy() resets the adapter */
	clear_writable(vfu);
	update_bus_master(client);
	pvr_adapter_reset(client->adapter);
	pvr_migrate_reset(&client->migrate);
	/* QEMU has sent its RAM by now. */
	pvr_client_warn_unshared(client);
	return 0;
}

static void library_log(vfu_ctx_t *vfu, int level, const char *msg)
{
	struct pvr_client *client = vfu_get_private(vfu);

	if (level <= LOG_ERR)
		snprintf(client->complaint, sizeof(client->complaint), "%s", msg);
	pvr_attach_log(client->attach, PVR_LOG_DEBUG, "libvfio-user: %s", msg);
}

struct region {
	int index;
	size_t size;
	vfu_region_access_cb_t *access;
	int flags;
};

static const struct region regions[] = {
	{ VFU_PCI_DEV_BAR0_REGION_IDX, PVR_BAR_MSIX_SIZE, msix_access,
	  VFU_REGION_FLAG_RW | VFU_REGION_FLAG_MEM },
	{ VFU_PCI_DEV_BAR1_REGION_IDX, PVR_BAR_REGS_SIZE, regs_access,
	  VFU_REGION_FLAG_RW | VFU_REGION_FLAG_MEM },
	{ VFU_PCI_DEV_BAR2_REGION_IDX, PVR_BAR_UAR_SIZE, uar_access,
	  VFU_REGION_FLAG_RW | VFU_REGION_FLAG_MEM },
	{ VFU_PCI_DEV_CFG_REGION_IDX, PVR_CONFIG_SIZE, config_access,
	  VFU_REGION_FLAG_RW | VFU_REGION_FLAG_ALWAYS_CB },
};

/*
 * Return: a memfd of the region for the client to map; -1: the client must send each
 * access.
 */
static int mappable_fd(vfu_ctx_t *vfu, int region)
{
	struct pvr_client *client = vfu_get_private(vfu);

	return region == VFU_PCI_DEV_BAR2_REGION_IDX ? client->uar.fd : -1;
}

static int set_up_regions(vfu_ctx_t *vfu)
{
	size_t i;
	int ret;

	for (i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		ret = vfu_setup_region(vfu, regions[i].index, regions[i].size, regions[i].access,
				       regions[i].flags, NULL, 0,
				       mappable_fd(vfu, regions[i].index), 0);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int set_up_msi(vfu_ctx_t *vfu)
{
	uint8_t *config = config_space(vfu);

	config[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
	config[PCI_CAPABILITY_LIST] = MSI_OFFSET;
	config[MSI_OFFSET + PCI_CAP_LIST_ID] = PCI_CAP_ID_MSI;
	config[MSI_OFFSET + PCI_MSI_FLAGS] = PCI_MSI_FLAGS_64BIT;
	return vfu_setup_device_nr_irqs(vfu, VFU_DEV_MSI_IRQ, 1);
}

static int set_up_msix(vfu_ctx_t *vfu)
{
	struct msixcap msix = {
		.hdr.id = PCI_CAP_ID_MSIX,
		.mxc.ts = PVR_VEC_MAX - 1,
		.mtab = { .tbir = PVR_BAR_MSIX, .to = PVR_MSIX_TABLE_OFFSET >> 3 },
		.mpba = { .pbir = PVR_BAR_MSIX, .pbao = PVR_MSIX_PBA_OFFSET >> 3 },
	};

	if (vfu_pci_add_capability(vfu, 0, 0, &msix) < 0)
		return -1;
	return vfu_setup_device_nr_irqs(vfu, VFU_DEV_MSIX_IRQ, PVR_VEC_MAX);
}

static int set_up_device(vfu_ctx_t *vfu)
{
	uint8_t *config;

	if (vfu_pci_init(vfu, VFU_PCI_TYPE_CONVENTIONAL, PCI_HEADER_TYPE_NORMAL, 0) < 0)
		return -1;
	vfu_pci_set_id(vfu, PVR_PCI_VENDOR_ID, PVR_PCI_DEVICE_ID, PVR_PCI_VENDOR_ID,
		       PVR_PCI_DEVICE_ID);
	vfu_pci_set_class(vfu, PVR_PCI_CLASS >> 8, PVR_PCI_CLASS & 0xff, 0);
	if (set_up_regions(vfu) < 0 || (has_msi(vfu) ? set_up_msi(vfu) : set_up_msix(vfu)) < 0 ||
	    vfu_setup_device_nr_irqs(vfu, VFU_DEV_INTX_IRQ, 1) < 0 ||
	    vfu_setup_device_reset_cb(vfu, device_reset) < 0 || vfu_realize_ctx(vfu) < 0)
		return -1;
	/* libvfio-user marks missing BARs as I/O ports. */
	config = config_space(vfu);
	memset(config + PCI_BASE_ADDRESS_3, 0, 3 * sizeof(uint32_t));
	return 0;
}

bool pvr_attach_make_folder(const char *tmp, char folder[PVR_ATTACH_FOLDER_MAX])
{
	if (snprintf(folder, PVR_ATTACH_FOLDER_MAX, "%s/pvrdmad.XXXXXX", tmp) >=
	    PVR_ATTACH_FOLDER_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	return mkdtemp(folder);
}

/* libvfio-user changes the umask of the process while it creates a context: one at a time. */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

/* Creates a context whose listening socket, in @folder, is already unlinked. */
static vfu_ctx_t *create_context_in(struct pvr_client *client,
				    const char folder[PVR_ATTACH_FOLDER_MAX], int *peer)
{
	char path[PVR_SOCKET_PATH_MAX + 1];
	vfu_ctx_t *vfu;

	snprintf(path, sizeof(path), "%s/vfio-user", folder);
	vfu = vfu_create_ctx(VFU_TRANS_SOCK, path, LIBVFIO_USER_FLAG_ATTACH_NB, client,
			     VFU_DEV_TYPE_PCI);
	if (!vfu)
		return NULL;
	vfu_setup_log(vfu, library_log,
		      pvr_attach_env(client->attach)->verbose ? LOG_DEBUG : LOG_ERR);
	*peer = pvr_unix_connect(path);
	unlink(path);
	if (*peer >= 0 && set_up_device(vfu) == 0)
		return vfu;
	if (*peer >= 0)
		close(*peer);
	vfu_destroy_ctx(vfu);
	return NULL;
}

static vfu_ctx_t *create_context(struct pvr_client *client, int *peer)
{
	char folder[PVR_ATTACH_FOLDER_MAX];
	vfu_ctx_t *vfu = NULL;
	int err;

	pthread_mutex_lock(&context_lock);
	/* The folder exists for a moment only: a daemon that is killed leaves none. */
	if (pvr_attach_make_folder(pvr_attach_env(client->attach)->tmp, folder)) {
		vfu = create_context_in(client, folder, peer);
		err = errno;
		rmdir(folder);
		errno = err;
	}
	pthread_mutex_unlock(&context_lock);
	return vfu;
}

static void close_fds(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fd;

	if (!cmsg)
		return;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	close(fd);
}

/*
 * Passes the reply of libvfio-user on to the client, with the descriptor of a region that can
 * be mapped. A message without a reply has none. @fd -1: the client has got the reply already.
 */
static bool forward_reply(int peer, int fd)
{
	char reply[sizeof(struct vfio_user_header) + PVR_MESSAGE_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} fds;
	struct iovec iov = { .iov_base = reply, .iov_len = sizeof(reply) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &fds,
		.msg_controllen = sizeof(fds),
	};
	ssize_t len = recvmsg(peer, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	bool ok;

	if (len <= 0)
		return false;
	iov.iov_len = (size_t)len;
	ok = !(msg.msg_flags & MSG_CTRUNC) &&
	     (fd < 0 || sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == len);
	close_fds(&msg);
	return ok;
}

/*
 * Replaces the internal connection by the client's. libvfio-user closes its descriptor when
 * the client leaves, and another thread can then get the same number. So source.fd stays
 * the client's own descriptor.
 */
static bool adopt(struct pvr_client *client, struct pvr_error *err)
{
	int fd = vfu_get_poll_fd(client->vfu);

	if (dup3(client->source.fd, fd, O_CLOEXEC) < 0) {
		pvr_fail(err, "no descriptor for its device: %s", strerror(errno));
		pvr_device_discard(client);
		return false;
	}
	pvr_adapter_map_uar(client->adapter, client->uar.va);
	update_bus_master(client);
	return true;
}

/* The client gets a context. @reply: where the reply goes, see forward_reply() */
static bool negotiate(struct pvr_client *client, int reply, struct pvr_error *err)
{
	vfu_ctx_t *vfu;
	bool agreed;
	int peer;

	vfu = create_context(client, &peer);
	if (!vfu)
		return pvr_fail(err, "cannot make a device for it: %s", strerror(errno));
	client->complaint[0] = '\0';
	agreed = send(peer, client->version, client->version_len, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			 (ssize_t)client->version_len &&
		 vfu_attach_ctx(vfu) == 0;
	if (!forward_reply(peer, reply))
		agreed = false;
	close(peer);
	if (agreed) {
		client->vfu = vfu;
		return true;
	}
	vfu_destroy_ctx(vfu);
	return pvr_fail(err, "no agreement on the vfio-user version (%s)",
			client->complaint[0] ? client->complaint : strerror(errno));
}

bool pvr_device_attach(struct pvr_client *client, struct pvr_error *err)
{
	if (pvr_adapter_is_uar_mapped(client->adapter) && !pvr_uar_map_open(&client->uar, err))
		return false;
	return negotiate(client, client->source.fd, err) && adopt(client, err);
}

bool pvr_device_prepare(struct pvr_client *client, struct pvr_error *err)
{
	return negotiate(client, -1, err);
}

void pvr_device_discard(struct pvr_client *client)
{
	if (client->vfu)
		vfu_destroy_ctx(client->vfu);
	client->vfu = NULL;
}

void pvr_device_get_config(struct pvr_client *client, uint8_t config[PVR_CONFIG_SIZE])
{
	memcpy(config, config_space(client->vfu), PVR_CONFIG_SIZE);
}

bool pvr_device_adopt(struct pvr_client *client, const uint8_t config[PVR_CONFIG_SIZE],
		      struct pvr_error *err)
{
	if (!adopt(client, err))
		return false;
	config_write(client->vfu, 0, (const char *)config, PVR_CONFIG_SIZE);
	update_bus_master(client);
	return true;
}

/* libvfio-user's descriptor is the connection @own during the call. */
static int run_over(struct pvr_client *client, int own)
{
	int fd = vfu_get_poll_fd(client->vfu);

	if (dup3(own, fd, O_CLOEXEC) < 0)
		return -errno;
	/* After an error libvfio-user may have closed it. */
	if (vfu_run_ctx(client->vfu) < 0)
		return -errno;
	return dup3(client->source.fd, fd, O_CLOEXEC) < 0 ? -errno : 0;
}

int pvr_device_run(struct pvr_client *client, const void *message, size_t len)
{
	struct vfio_user_header hdr;
	int pair[2], ret;

	memcpy(&hdr, message, sizeof(hdr));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ret = send(pair[0], message, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len
		      ? run_over(client, pair[1])
		      : -EIO;
	if (!ret && !hdr.flags.no_reply && !forward_reply(pair[0], client->source.fd))
		ret = -EIO;
	close(pair[0]);
	close(pair[1]);
	return ret;
}
