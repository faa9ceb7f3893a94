/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -device pvrdma,path=SOCKET: an adapter of pvrdmad that can be migrated and
 * saved.
 *
 * This is a vfio-user-pci device with a shorter command line and with a state.
 * pvrdmad has migration version 2 of the vfio-user protocol (docs/interop/vfio-
 * user.rst), which vfio-user-pci does not use. This file sends its messages:
 *
 *   the VM stops, runs              MIG_DEVICE_STATE: STOP, RUNNING
 *   the state is saved              STOP_COPY, then MIG_DATA_READ
 *   it is loaded                    RESUMING, then MIG_DATA_WRITE, then STOP
 *   dirty pages of RAM              DMA_LOGGING_START, _REPORT, _STOP
 *   vCPUs are throttled             THROTTLE, a feature of pvrdmad alone
 *
 * A daemon without these messages, or a VM whose state would be of no use, has
 * a migration blocker with the reason.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/error-report.h"
#include "qemu/queue.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/qapi-types-common.h"
#include "qobject/qdict.h"
#include "qom/qom-qobject.h"
#include "hw/boards.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/vfio/pci.h"
#include "hw/vfio-user/proxy.h"
#include "migration/client-options.h"
#include "migration/misc.h"
#include "migration/qemu-file-types.h"
#include "migration/register.h"
#include "migration/vmstate.h"
#include "system/address-spaces.h"
#include "system/cpu-throttle.h"
#include "system/memory.h"
#include "system/runstate.h"

#include "pvrdma-compat.h"

#define TYPE_PVRDMA "pvrdma"
#define TYPE_PARENT "vfio-user-pci"
#define PVRDMA_CHECKS "pvrdma-checks" /* name of handlers without a section */

/* Commands and values of the protocol. */
enum {
    PVRDMA_DEVICE_FEATURE = 16,
    PVRDMA_MIG_DATA_READ = 17,
    PVRDMA_MIG_DATA_WRITE = 18,
};

enum {
    PVRDMA_GET = 1 << 16,
    PVRDMA_SET = 1 << 17,
    PVRDMA_PROBE = 1 << 18,
    PVRDMA_MIGRATION = 1,
    PVRDMA_STATE = 2,
    PVRDMA_LOG_START = 6,
    PVRDMA_LOG_STOP = 7,
    PVRDMA_LOG_REPORT = 8,
    PVRDMA_THROTTLE = 0x7676,
};

enum {
    PVRDMA_STOP = 1,
    PVRDMA_RUNNING = 2,
    PVRDMA_STOP_COPY = 3,
    PVRDMA_RESUMING = 4,
};

#define PVRDMA_STOP_COPY_FLAG 1ull

/*
 * Bytes of state per message. The socket takes a message of this size whole or
 * not at all: the proxy does not continue after a partial write.
 */
#define PVRDMA_CHUNK (32 * KiB)
#define PVRDMA_PAGE 4096ull
#define PVRDMA_REPORT_SPAN (8 * PVRDMA_CHUNK * PVRDMA_PAGE) /* bytes of RAM */

typedef struct {
    VFIOUserHdr hdr;
    uint32_t argsz, flags;
} PvrdmaFeature;

typedef struct {
    PvrdmaFeature feature;
    uint64_t flags;
} PvrdmaMigration;

typedef struct {
    PvrdmaFeature feature;
    uint32_t state;
    int32_t data_fd;
} PvrdmaStateMsg;

typedef struct {
    PvrdmaFeature feature;
    uint32_t percent;
} PvrdmaThrottle;

typedef struct {
    PvrdmaFeature feature;
    uint64_t page_size;
    uint32_t num_ranges, reserved;
} PvrdmaLogStart;

typedef struct {
    PvrdmaFeature feature;
    uint64_t iova, length, page_size;
    uint64_t bitmap[PVRDMA_CHUNK / sizeof(uint64_t)];
} PvrdmaLogReport;

typedef struct {
    VFIOUserHdr hdr;
    uint32_t argsz, size;
    uint8_t data[PVRDMA_CHUNK];
} PvrdmaData;

/* The parent's struct is private, so the state of this class is beside it. */
typedef struct PvrdmaDevice {
    PCIDevice *pdev;
    char *path;
    OnOffAuto migrate;
    VFIOUserProxy *proxy;
    VMChangeStateEntry *run_state;
    Error *blocker, *cpr_blocker;
    MemoryListener listener;
    bool listens, is_registered;
    bool has_log, is_logging;
    bool may_have_written; /* since the last pass over RAM, without a log */
    int throttle;          /* percent, as pvrdmad has it */
    PvrdmaLogReport report;
    QLIST_ENTRY(PvrdmaDevice) next;
} PvrdmaDevice;

static QLIST_HEAD(, PvrdmaDevice)
    pvrdma_devices = QLIST_HEAD_INITIALIZER(pvrdma_devices);

static void (*parent_realize)(PCIDevice *pdev, Error **errp);
static PCIUnregisterFunc *parent_exit;

static PvrdmaDevice *pvrdma_of(void *obj)
{
    PvrdmaDevice *dev;

    QLIST_FOREACH(dev, &pvrdma_devices, next) {
        if ((void *)dev->pdev == obj) {
            return dev;
        }
    }
    g_assert_not_reached();
}

/* ----------------------------------------------------------------- messages */

static bool pvrdma_is_dead(PvrdmaDevice *dev)
{
    return dev->proxy->state != VFIO_PROXY_CONNECTED;
}

static bool pvrdma_send(PvrdmaDevice *dev, VFIOUserHdr *hdr, uint16_t command,
                        size_t size, size_t reply_size, Error **errp)
{
    vfio_user_request_msg(hdr, command, size, 0);
    if (!vfio_user_send_wait(dev->proxy, hdr, NULL, reply_size, errp)) {
        return false;
    }
    if (hdr->flags & VFIO_USER_ERROR) {
        error_setg_errno(errp, hdr->error_reply, "pvrdmad refuses command %u",
                         command);
        return false;
    }
    return true;
}

static bool pvrdma_feature(PvrdmaDevice *dev, PvrdmaFeature *msg,
                           uint32_t flags, size_t size, size_t reply_size,
                           Error **errp)
{
    msg->flags = flags;
    msg->argsz = MAX(size, reply_size) - sizeof(msg->hdr);
    return pvrdma_send(dev, &msg->hdr, PVRDMA_DEVICE_FEATURE, size,
                       MAX(size, reply_size), errp);
}

static bool pvrdma_set_state(PvrdmaDevice *dev, uint32_t state, Error **errp)
{
    PvrdmaStateMsg msg = { .state = state, .data_fd = -1 };

    return pvrdma_feature(dev, &msg.feature, PVRDMA_SET | PVRDMA_STATE,
                          sizeof(msg), 0, errp);
}

static bool pvrdma_probe(PvrdmaDevice *dev, Error **errp)
{
    PvrdmaMigration msg = { .flags = 0 };
    PvrdmaFeature probe;

    if (!pvrdma_feature(dev, &msg.feature, PVRDMA_GET | PVRDMA_MIGRATION,
                        sizeof(msg.feature), sizeof(msg), errp)) {
        return false;
    }
    if (!(msg.flags & PVRDMA_STOP_COPY_FLAG)) {
        error_setg(errp,
                   "pvrdmad offers migration flags 0x%" PRIx64
                   ", expected STOP_COPY",
                   msg.flags);
        return false;
    }
    dev->has_log = pvrdma_feature(dev, &probe,
                                  PVRDMA_PROBE | PVRDMA_SET | PVRDMA_LOG_START,
                                  sizeof(probe), 0, NULL);
    return true;
}

/* ---------------------------------------------------- the VM stops and runs */

static int pvrdma_run_state_changed(void *opaque, bool running, RunState state)
{
    PvrdmaDevice *dev = opaque;
    Error *err = NULL;

    if (pvrdma_is_dead(dev) ||
        pvrdma_set_state(dev, running ? PVRDMA_RUNNING : PVRDMA_STOP, &err)) {
        return 0;
    }
    error_reportf_err(err, "pvrdma %s: cannot %s the adapter: ", dev->path,
                      running ? "start" : "stop");
    return -EIO;
}

/* -------------------------------------------------------------- dirty pages */

static bool pvrdma_log_start(MemoryListener *listener, Error **errp)
{
    PvrdmaDevice *dev = container_of(listener, PvrdmaDevice, listener);
    PvrdmaLogStart msg = { .page_size = PVRDMA_PAGE };

    dev->may_have_written = runstate_is_running();
    dev->throttle = 0;
    dev->is_logging =
        !dev->has_log || pvrdma_is_dead(dev) ||
        pvrdma_feature(dev, &msg.feature, PVRDMA_SET | PVRDMA_LOG_START,
                       sizeof(msg), 0, errp);
    return dev->is_logging;
}

static void pvrdma_log_stop(MemoryListener *listener)
{
    PvrdmaDevice *dev = container_of(listener, PvrdmaDevice, listener);
    PvrdmaFeature msg;
    Error *err = NULL;

    if (!dev->is_logging) {
        return;
    }
    dev->is_logging = false;
    if (dev->has_log && !pvrdma_is_dead(dev) &&
        !pvrdma_feature(dev, &msg, PVRDMA_SET | PVRDMA_LOG_STOP, sizeof(msg), 0,
                        &err)) {
        warn_report_err(err);
    }
}

/*
 * Marks each run of dirty pages, of a part of a region that begins at @offset.
 */
static void pvrdma_mark(PvrdmaDevice *dev, MemoryRegion *mr, hwaddr offset,
                        unsigned long pages)
{
    unsigned long *bitmap = (unsigned long *)dev->report.bitmap;
    unsigned long begin, end;

    for (begin = find_first_bit(bitmap, pages); begin < pages;
         begin = find_next_bit(bitmap, pages, end)) {
        end = find_next_zero_bit(bitmap, pages, begin);
        memory_region_set_dirty(mr, offset + begin * PVRDMA_PAGE,
                                (end - begin) * PVRDMA_PAGE);
    }
}

static bool pvrdma_report(PvrdmaDevice *dev, MemoryRegion *mr, hwaddr iova,
                          hwaddr offset, uint64_t length, Error **errp)
{
    PvrdmaLogReport *msg = &dev->report;
    size_t pages = length / PVRDMA_PAGE;
    size_t bytes = DIV_ROUND_UP(pages, 64) * sizeof(uint64_t);

    msg->iova = iova;
    msg->length = length;
    msg->page_size = PVRDMA_PAGE;
    if (!pvrdma_feature(dev, &msg->feature, PVRDMA_GET | PVRDMA_LOG_REPORT,
                        offsetof(PvrdmaLogReport, bitmap),
                        offsetof(PvrdmaLogReport, bitmap) + bytes, errp)) {
        return false;
    }
    if (msg->feature.hdr.size != offsetof(PvrdmaLogReport, bitmap) + bytes) {
        error_setg(errp, "pvrdmad reports %u bytes, expected %zu",
                   msg->feature.hdr.size,
                   offsetof(PvrdmaLogReport, bitmap) + bytes);
        return false;
    }
    pvrdma_mark(dev, mr, offset, pages);
    return true;
}

/*
 * A pvrdmad that does not log, or has ended, may have written to each page. All
 * of them are sent once more when the VM has stopped.
 */
static void pvrdma_log_sync(MemoryListener *listener,
                            MemoryRegionSection *section)
{
    PvrdmaDevice *dev = container_of(listener, PvrdmaDevice, listener);
    uint64_t left = int128_get64(section->size) & ~(PVRDMA_PAGE - 1);
    hwaddr iova = section->offset_within_address_space;
    hwaddr offset = section->offset_within_region;
    Error *err = NULL;
    uint64_t length;

    if (!dev->is_logging || !memory_region_is_ram(section->mr) ||
        memory_region_is_rom(section->mr) || iova % PVRDMA_PAGE) {
        return;
    }
    if (!dev->has_log || pvrdma_is_dead(dev)) {
        if (dev->may_have_written && !runstate_is_running()) {
            memory_region_set_dirty(section->mr, offset, left);
        }
        return;
    }
    for (; left; left -= length, iova += length, offset += length) {
        length = MIN(left, PVRDMA_REPORT_SPAN);
        if (!pvrdma_report(dev, section->mr, iova, offset, length, &err)) {
            error_prepend(&err,
                          "pvrdma %s: dirty pages are unknown: ", dev->path);
            migration_file_set_error(-EIO, err);
            return;
        }
    }
}

/*
 * auto-converge: peers write to this VM for as long as its vCPUs run. A pvrdmad
 * without this feature lets them write.
 */
static void pvrdma_pass_throttle_on(PvrdmaDevice *dev)
{
    int percent = cpu_throttle_get_percentage();
    PvrdmaThrottle msg = { .percent = percent };

    if (percent == dev->throttle || !dev->is_logging || !dev->has_log ||
        pvrdma_is_dead(dev)) {
        return;
    }
    dev->throttle = percent;
    pvrdma_feature(dev, &msg.feature, PVRDMA_SET | PVRDMA_THROTTLE, sizeof(msg),
                   0, NULL);
}

/* A stopped adapter does not write: one pass has all. */
static void pvrdma_log_after_sync(MemoryListener *listener)
{
    PvrdmaDevice *dev = container_of(listener, PvrdmaDevice, listener);

    dev->may_have_written = runstate_is_running();
    pvrdma_pass_throttle_on(dev);
}

/* -------------------------------------------------------------------- state */

/* The fields of the stream. The size of a chunk is 0 at the end. */
enum { PVRDMA_STREAM_DEAD, PVRDMA_STREAM_STATE };

static bool pvrdma_put_data(PvrdmaDevice *dev, QEMUFile *f, Error **errp)
{
    g_autofree PvrdmaData *msg = g_new0(PvrdmaData, 1);
    size_t head = offsetof(PvrdmaData, data);

    do {
        msg->argsz = sizeof(*msg) - sizeof(msg->hdr);
        msg->size = PVRDMA_CHUNK;
        if (!pvrdma_send(dev, &msg->hdr, PVRDMA_MIG_DATA_READ, head,
                         sizeof(*msg), errp)) {
            return false;
        }
        if (msg->size > PVRDMA_CHUNK || msg->hdr.size != head + msg->size) {
            error_setg(errp,
                       "pvrdmad sends %u bytes of state in a message of %u",
                       msg->size, msg->hdr.size);
            return false;
        }
        if (msg->size) {
            qemu_put_be32(f, msg->size);
            qemu_put_buffer(f, msg->data, msg->size);
        }
    } while (msg->size == PVRDMA_CHUNK);
    qemu_put_be32(f, 0);
    return true;
}

static int pvrdma_put(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc)
{
    PvrdmaDevice *dev = pvrdma_of(pv);
    Error *err = NULL;

    if (pvrdma_is_dead(dev)) {
        qemu_put_be32(f, PVRDMA_STREAM_DEAD);
        return 0;
    }
    qemu_put_be32(f, PVRDMA_STREAM_STATE);
    if (pvrdma_set_state(dev, PVRDMA_STOP_COPY, &err) &&
        pvrdma_put_data(dev, f, &err) &&
        pvrdma_set_state(dev, PVRDMA_STOP, &err)) {
        return 0;
    }
    error_reportf_err(err,
                      "pvrdma %s: the adapter cannot be saved: ", dev->path);
    return -EIO;
}

static bool pvrdma_get_data(PvrdmaDevice *dev, QEMUFile *f, Error **errp)
{
    g_autofree PvrdmaData *msg = g_new0(PvrdmaData, 1);
    size_t head = offsetof(PvrdmaData, data);
    uint32_t len;

    while ((len = qemu_get_be32(f)) != 0) {
        if (len > PVRDMA_CHUNK || qemu_get_buffer(f, msg->data, len) != len) {
            error_setg(errp, "a chunk of %u bytes, expected at most %llu", len,
                       (unsigned long long)PVRDMA_CHUNK);
            return false;
        }
        msg->argsz = head - sizeof(msg->hdr);
        msg->size = len;
        if (!pvrdma_send(dev, &msg->hdr, PVRDMA_MIG_DATA_WRITE, head + len, 0,
                         errp)) {
            return false;
        }
    }
    return true;
}

static int pvrdma_get(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field)
{
    PvrdmaDevice *dev = pvrdma_of(pv);
    uint32_t kind = qemu_get_be32(f);
    Error *err = NULL;

    if (kind == PVRDMA_STREAM_DEAD) {
        warn_report("pvrdma %s: the saved adapter had lost its pvrdmad; "
                    "its driver restarts",
                    dev->path);
        return 0;
    }
    if (kind != PVRDMA_STREAM_STATE) {
        error_report("pvrdma %s: the state has kind %u, expected %u", dev->path,
                     kind, PVRDMA_STREAM_STATE);
        return -EINVAL;
    }
    if (pvrdma_set_state(dev, PVRDMA_RESUMING, &err) &&
        pvrdma_get_data(dev, f, &err) &&
        pvrdma_set_state(dev, PVRDMA_STOP, &err)) {
        return 0;
    }
    error_reportf_err(
        err,
        "pvrdma %s: the adapter cannot be loaded, see the log of pvrdmad: ",
        dev->path);
    return -EINVAL;
}

static const VMStateInfo pvrdma_state_info = {
    .name = "pvrdma adapter",
    .get = pvrdma_get,
    .put = pvrdma_put,
};

/*
 * Writes a register of a capability again. The parent then sees that interrupts
 * become enabled, and sends its eventfds.
 */
static void pvrdma_enable_again(PCIDevice *pdev, uint32_t offset,
                                uint16_t enable)
{
    uint16_t flags = pci_get_word(pdev->config + offset);

    if (flags & enable) {
        pci_set_word(pdev->config + offset, flags & ~enable);
        PCI_DEVICE_GET_CLASS(pdev)->config_write(pdev, offset, flags, 2);
    }
}

/* The configuration space has its values, but pvrdmad has not heard of them. */
static int pvrdma_post_load(void *opaque, int version)
{
    PCIDevice *pdev = opaque;
    PCIDeviceClass *pdc = PCI_DEVICE_GET_CLASS(pdev);

    pdc->config_write(pdev, PCI_COMMAND,
                      pci_get_word(pdev->config + PCI_COMMAND), 2);
    pdc->config_write(pdev, PCI_INTERRUPT_LINE,
                      pdev->config[PCI_INTERRUPT_LINE], 1);
    if (msix_present(pdev)) {
        pvrdma_enable_again(pdev, pdev->msix_cap + PCI_MSIX_FLAGS,
                            PCI_MSIX_FLAGS_ENABLE);
    }
    if (msi_present(pdev)) {
        pvrdma_enable_again(pdev, pdev->msi_cap + PCI_MSI_FLAGS,
                            PCI_MSI_FLAGS_ENABLE);
    }
    return 0;
}

static bool pvrdma_has_msix(void *opaque, int version)
{
    return msix_present(opaque);
}

/* A PCI device is the first member of all structs of this class. */
typedef struct {
    PCIDevice pci;
} PvrdmaPCI;

static const VMStateDescription pvrdma_vmstate = {
    .name = TYPE_PVRDMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = pvrdma_post_load,
    .fields = (const VMStateField[]){ VMSTATE_PCI_DEVICE(pci, PvrdmaPCI),
                                      VMSTATE_MSIX_TEST(pci, PvrdmaPCI,
                                                        pvrdma_has_msix),
                                      { .name = "adapter",
                                        .info = &pvrdma_state_info,
                                        .flags = VMS_SINGLE },
                                      VMSTATE_END_OF_LIST() },
};

/* -------------------------------------------------------------- what blocks */

/*
 * pvrdmad would read pages that have not come as zeros, or write to pages that
 * are saved later.
 */
static int pvrdma_save_prepare(void *opaque, Error **errp)
{
    if (migrate_postcopy_ram()) {
        error_setg(
            errp,
            "pvrdma cannot be migrated by postcopy: disable postcopy-ram");
        return -EOPNOTSUPP;
    }
    if (migrate_background_snapshot()) {
        error_setg(errp, "pvrdma cannot be in a background snapshot: disable "
                         "background-snapshot");
        return -EOPNOTSUPP;
    }
    return 0;
}

static const SaveVMHandlers pvrdma_handlers = {
    .save_prepare = pvrdma_save_prepare,
};

static bool pvrdma_can_migrate(PvrdmaDevice *dev, Error **errp)
{
    MemoryRegion *ram = current_machine->ram;

    if (dev->migrate == ON_OFF_AUTO_OFF) {
        error_setg(errp, "pvrdma: the device has migrate=off");
        return false;
    }
    if (pci_device_iommu_address_space(dev->pdev) != &address_space_memory) {
        error_setg(errp, "pvrdma cannot be migrated behind a vIOMMU");
        return false;
    }
    if (!ram || !ram->ram_block || !qemu_ram_is_shared(ram->ram_block)) {
        error_setg(errp, "pvrdma needs shared RAM: "
                         "-object memory-backend-memfd,share=on,... "
                         "-machine memory-backend=...");
        return false;
    }
    if (!pvrdma_probe(dev, errp)) {
        error_prepend(errp, "pvrdma cannot be migrated by this pvrdmad: ");
        return false;
    }
    return true;
}

/* Return: whether the device can be used, although it may have a blocker. */
static bool pvrdma_block(PvrdmaDevice *dev, Error **errp)
{
    Error *why = NULL;

    error_setg(&dev->cpr_blocker,
               "pvrdma: interrupts do not survive this mode of migration");
    if (pvrdma_block_cpr(&dev->cpr_blocker, errp)) {
        return false;
    }
    if (pvrdma_can_migrate(dev, &why)) {
        return true;
    }
    if (dev->migrate == ON_OFF_AUTO_ON) {
        error_propagate(errp, why);
        return false;
    }
    dev->blocker = why;
    return !migrate_add_blocker_normal(&dev->blocker, errp);
}

/* --------------------------------------------------------------- life cycle */

static void pvrdma_unhook(PvrdmaDevice *dev)
{
    if (dev->listens) {
        memory_listener_unregister(&dev->listener);
        dev->listens = false;
    }
    if (dev->is_registered) {
        unregister_savevm(VMSTATE_IF(dev->pdev), PVRDMA_CHECKS, dev);
        dev->is_registered = false;
    }
    if (dev->run_state) {
        qemu_del_vm_change_state_handler(dev->run_state);
        dev->run_state = NULL;
    }
    migrate_del_blocker(&dev->blocker);
    migrate_del_blocker(&dev->cpr_blocker);
    dev->proxy = NULL;
}

static void pvrdma_hook(PvrdmaDevice *dev)
{
    g_autofree char *id = vmstate_if_get_id(VMSTATE_IF(dev->pdev));
    g_autofree char *name =
        g_strdup_printf("%s/" PVRDMA_CHECKS, id ?: dev->path);

    dev->run_state = qdev_add_vm_change_state_handler(
        DEVICE(dev->pdev), NULL, pvrdma_run_state_changed, dev);
    register_savevm_live(name, VMSTATE_INSTANCE_ID_ANY, 1, &pvrdma_handlers,
                         dev);
    dev->is_registered = true;
    dev->listener = (MemoryListener){
        .name = TYPE_PVRDMA,
        .log_global_start = pvrdma_log_start,
        .log_global_stop = pvrdma_log_stop,
        .log_sync = pvrdma_log_sync,
        .log_global_after_sync = pvrdma_log_after_sync,
    };
    memory_listener_register(&dev->listener, &address_space_memory);
    dev->listens = true;
}

static void pvrdma_realize(PCIDevice *pdev, Error **errp)
{
    PvrdmaDevice *dev = pvrdma_of(pdev);
    Error *err = NULL;

    if (!dev->path) {
        error_setg(errp, "pvrdma needs path=, the socket of the adapter, e.g. "
                         "-device pvrdma,path=/run/pvrdma/vm1.sock");
        return;
    }
    parent_realize(pdev, &err);
    if (err) {
        error_propagate(errp, err);
        return;
    }
    dev->proxy = VFIO_PCI_DEVICE(pdev)->vbasedev.proxy;
    if (!pvrdma_block(dev, errp)) {
        pvrdma_unhook(dev);
        parent_exit(pdev);
        return;
    }
    if (!dev->blocker) {
        pvrdma_hook(dev);
    }
}

static void pvrdma_exit(PCIDevice *pdev)
{
    pvrdma_unhook(pvrdma_of(pdev));
    parent_exit(pdev);
}

static char *pvrdma_get_path(Object *obj, Error **errp)
{
    return g_strdup(pvrdma_of(obj)->path);
}

static void pvrdma_set_path(Object *obj, const char *path, Error **errp)
{
    PvrdmaDevice *dev = pvrdma_of(obj);
    QDict *socket = qdict_new();

    qdict_put_str(socket, "type", "unix");
    qdict_put_str(socket, "path", path);
    if (object_property_set_qobject(obj, "socket", QOBJECT(socket), errp)) {
        g_free(dev->path);
        dev->path = g_strdup(path);
    }
    qobject_unref(socket);
}

static int pvrdma_get_migrate(Object *obj, Error **errp)
{
    return pvrdma_of(obj)->migrate;
}

static void pvrdma_set_migrate(Object *obj, int migrate, Error **errp)
{
    pvrdma_of(obj)->migrate = migrate;
}

static void pvrdma_init(Object *obj)
{
    PvrdmaDevice *dev = g_new0(PvrdmaDevice, 1);

    dev->pdev = PCI_DEVICE(obj);
    dev->migrate = ON_OFF_AUTO_AUTO;
    QLIST_INSERT_HEAD(&pvrdma_devices, dev, next);
}

static void pvrdma_finalize(Object *obj)
{
    PvrdmaDevice *dev = pvrdma_of(obj);

    QLIST_REMOVE(dev, next);
    g_free(dev->path);
    g_free(dev);
}

static void pvrdma_class_init(ObjectClass *klass, const void *data)
{
    PCIDeviceClass *pdc = PCI_DEVICE_CLASS(klass);
    DeviceClass *dc = DEVICE_CLASS(klass);

    parent_realize = pdc->realize;
    parent_exit = pdc->exit;
    pdc->realize = pvrdma_realize;
    pdc->exit = pvrdma_exit;
    dc->vmsd = &pvrdma_vmstate;
    dc->desc = "RDMA adapter of pvrdmad, with migration";
    object_class_property_add_str(klass, "path", pvrdma_get_path,
                                  pvrdma_set_path);
    object_class_property_set_description(
        klass, "path", "the socket of an adapter of pvrdmad");
    object_class_property_add_enum(klass, "migrate", "OnOffAuto",
                                   &OnOffAuto_lookup, pvrdma_get_migrate,
                                   pvrdma_set_migrate);
    object_class_property_set_description(
        klass, "migrate", "on: fail without migration; auto: block it then");
}

static const TypeInfo pvrdma_info = {
    .name = TYPE_PVRDMA,
    .parent = TYPE_PARENT,
    .class_init = pvrdma_class_init,
    .instance_init = pvrdma_init,
    .instance_finalize = pvrdma_finalize,
};

static void pvrdma_register(void)
{
    type_register_static(&pvrdma_info);
}

type_init(pvrdma_register)
