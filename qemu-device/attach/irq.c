// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The interrupts of one client.
 *
 * libvfio-user does not handle them: it keeps one table for all interrupt types, so an
 * eventfd for errors would replace that of vector 0. It also accepts a start + count that
 * wraps, and writes to eventfds that may block.
 *
 * DOC: masking
 *
 * QEMU emulates the MSI-X table and the pending bits. While a vector is masked, by its
 * entry or by the function mask, QEMU reads the eventfd, sets the pending bit, and
 * delivers the interrupt on unmask. A vector that the guest has never unmasked has no
 * eventfd: it is pending here and raised when the eventfd arrives. SET_IRQS never masks
 * MSI-X. INTx serves drivers that get no MSI-X, and signals commands only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/irq.h"

void pvr_irq_init(struct pvr_irq *irq, bool msi)
{
	unsigned int i;

	irq->msi = msi;
	for (i = 0; i < PVR_VEC_MAX; i++)
		irq->fds[i] = -1;
	irq->stalled = false;
	irq->enabled = false;
	memset(irq->pending, 0, sizeof(irq->pending));
}

static void set_fd(struct pvr_irq *irq, uint32_t vector, int fd)
{
	if (irq->fds[vector] >= 0)
		close(irq->fds[vector]);
	irq->fds[vector] = fd;
}

void pvr_irq_close_all(struct pvr_irq *irq)
{
	uint32_t i;

	for (i = 0; i < PVR_VEC_MAX; i++)
		set_fd(irq, i, -1);
}

void pvr_irq_raise(struct pvr_irq *irq, uint32_t vector)
{
	const uint64_t one = 1;

	if (irq->msi)
		vector = 0;
	if (irq->fds[vector] < 0) {
		irq->pending[vector] |= irq->enabled;
		return;
	}
	/*
	 * EAGAIN: the counter is at its limit, so the interrupt is pending. EINTR: the
	 * client has made the eventfd blocking, and the signal of the stall guard has
	 * interrupted write().
	 */
	if (write(irq->fds[vector], &one, sizeof(one)) < 0 && errno == EINTR)
		__atomic_store_n(&irq->stalled, true, __ATOMIC_RELAXED);
}

static bool is_eventfd(int fd)
{
	static const char eventfd_name[] = "anon_inode:[eventfd]";
	char link[32], name[sizeof(eventfd_name) + 1];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, sizeof(name));
	return len == sizeof(eventfd_name) - 1 &&
	       !memcmp(name, eventfd_name, sizeof(eventfd_name) - 1);
}

static int check_fd(int fd, struct pvr_error *err)
{
	int flags;

	if (!is_eventfd(fd)) {
		pvr_fail(err, "a descriptor for an interrupt is not an eventfd");
		return -EINVAL;
	}
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		pvr_fail(err, "an eventfd cannot be made non-blocking: %s", strerror(errno));
		return -EINVAL;
	}
	return 0;
}

/* Number of interrupts of the device, as libvfio-user announces them. */
static uint32_t num_irqs(const struct pvr_irq *irq, uint32_t index)
{
	switch (index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
	case VFIO_PCI_ERR_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return irq->msi ? 0 : PVR_VEC_MAX;
	case VFIO_PCI_MSI_IRQ_INDEX:
		return irq->msi ? 1 : 0;
	default:
		return 0;
	}
}

static int check_set(const struct pvr_irq *irq, const struct vfio_irq_set *set, size_t len,
		     size_t num_fds, struct pvr_error *err)
{
	uint32_t action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
	uint32_t type = set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;

	if (len < sizeof(*set) || set->argsz < sizeof(*set)) {
		pvr_fail(err, "SET_IRQS of %zu bytes, expected at least %zu", len, sizeof(*set));
		return -EINVAL;
	}
	if ((uint64_t)set->start + set->count > num_irqs(irq, set->index)) {
		pvr_fail(err, "SET_IRQS for vectors %u+%u of type %u, which has %u", set->start,
			 set->count, set->index, num_irqs(irq, set->index));
		return -EINVAL;
	}
	/* No count means all vectors, see apply(). */
	if (!set->count && set->start) {
		pvr_fail(err, "SET_IRQS for all vectors of type %u, but from vector %u on",
			 set->index, set->start);
		return -EINVAL;
	}
	if (action == VFIO_IRQ_SET_ACTION_TRIGGER && type == VFIO_IRQ_SET_DATA_EVENTFD &&
	    (!num_fds || num_fds == set->count))
		return 0;
	if (!num_fds && action == VFIO_IRQ_SET_ACTION_TRIGGER && type == VFIO_IRQ_SET_DATA_NONE &&
	    !set->count)
		return 0;
	if (!num_fds &&
	    (action == VFIO_IRQ_SET_ACTION_MASK || action == VFIO_IRQ_SET_ACTION_UNMASK))
		return 0;
	pvr_fail(err,
		 "SET_IRQS with flags 0x%x, count %u and %zu descriptors is not "
		 "supported",
		 set->flags, set->count, num_fds);
	return -EINVAL;
}

/* Raises pending vectors that have an eventfd now. Disabling MSI-X clears the others. */
static void raise_pending(struct pvr_irq *irq)
{
	uint32_t i;

	for (i = 0; i < PVR_VEC_MAX; i++) {
		if (!irq->pending[i])
			continue;
		irq->pending[i] = false;
		pvr_irq_raise(irq, i);
	}
}

static bool is_message(uint32_t index)
{
	return index == VFIO_PCI_MSIX_IRQ_INDEX || index == VFIO_PCI_MSI_IRQ_INDEX;
}

/* INTx, MSI and MSI-X share the table: a guest enables only one of them. */
static void apply(struct pvr_irq *irq, const struct vfio_irq_set *set, int *fds, size_t num_fds)
{
	uint32_t count = set->count ? set->count : num_irqs(irq, set->index);
	uint32_t i;

	if (set->index != VFIO_PCI_INTX_IRQ_INDEX && !is_message(set->index))
		return;
	for (i = 0; i < count; i++) {
		set_fd(irq, set->start + i, num_fds ? fds[i] : -1);
		if (num_fds)
			fds[i] = -1;
	}
	/* Removing the eventfd of one vector leaves MSI-X enabled. */
	if (num_fds || !set->count)
		irq->enabled = is_message(set->index) && num_fds;
	raise_pending(irq);
}

int pvr_irq_set(struct pvr_irq *irq, struct pvr_adapter *adapter, const struct vfio_irq_set *set,
		size_t len, int *fds, size_t num_fds, struct pvr_error *err)
{
	int ret = check_set(irq, set, len, num_fds, err);
	size_t i;

	for (i = 0; !ret && i < num_fds; i++)
		ret = check_fd(fds[i], err);
	if (ret)
		return ret;
	if ((set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER)
		return 0;
	pvr_adapter_pause(adapter);
	apply(irq, set, fds, num_fds);
	pvr_adapter_resume(adapter);
	return 0;
}
