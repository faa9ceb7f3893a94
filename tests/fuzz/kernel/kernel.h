/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tested files of drivers/ use of the kernel, in user space, for one thread. The
 * build includes it before each of these files. A lock that is taken twice and a wait that
 * nothing ends abort. Functions without a body are those of the program.
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <linux/version.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef __u64 u64; /* as in the kernel: unsigned long long */
typedef int32_t s32;
typedef unsigned int uint;
typedef u64 dma_addr_t;
typedef u64 resource_size_t;

#define __force
#define cpu_to_le16(x) ((__le16)htole16(x))
#define cpu_to_le32(x) ((__le32)htole32(x))
#define cpu_to_le64(x) ((__le64)htole64(x))
#define le16_to_cpu(x) ((u16)le16toh(x))
#define le32_to_cpu(x) ((u32)le32toh(x))
#define le64_to_cpu(x) ((u64)le64toh(x))
#define __iomem
#define U8_MAX UINT8_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define S32_MAX INT32_MAX
#ifndef PAGE_SHIFT
#define PAGE_SHIFT 12
#endif
#define PAGE_SIZE (1 << PAGE_SHIFT)
#define NSEC_PER_USEC 1000L
#define NSEC_PER_SEC 1000000000L
#define HZ 100
#define GFP_KERNEL 0
#define likely(x) (x)
#define unlikely(x) (x)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define clamp_t(type, x, lo, hi) min_t(type, max_t(type, x, lo), hi)
#define swap(a, b)                     \
	do {                           \
		__typeof__(a) tmp = a; \
		(a) = b;               \
		(b) = tmp;             \
	} while (0)
#define GENMASK(high, low) ((~0ul >> (63 - (high))) & (~0ul << (low)))
#define ilog2(n) (63 - __builtin_clzll(n))
#define is_power_of_2(n) ((n) && !((n) & ((n)-1)))
#define offset_in_page(at) ((u64)(at) & (PAGE_SIZE - 1))
#define ARRAY_SIZE(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))
#define lower_32_bits(n) ((u32)(n))
#define upper_32_bits(n) ((u32)((u64)(n) >> 32))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline u32 roundup_pow_of_two(u32 n)
{
	u32 power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

#define READ_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
#define mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define dma_rmb() mb()
#define dma_wmb() mb()
#define smp_mb() mb()
#define virt_rmb() mb()
#define cpu_relax() mb()
#define cond_resched() mb()
#define WARN_ON(condition) ((condition) ? abort() : (void)0)
#define WARN_ON_ONCE(condition) ((condition) ? abort(), true : false)

static inline void *ERR_PTR(long err)
{
	return (void *)err;
}

static inline long PTR_ERR(const void *ptr)
{
	return (long)ptr;
}

#define ERR_CAST(ptr) ((void *)(ptr))

static inline bool IS_ERR(const void *ptr)
{
	return (unsigned long)ptr >= (unsigned long)-4095;
}

/* ------------------------------------------------------------------ time and locks */

extern unsigned long jiffies;
u64 ktime_get_ns(void);
u64 ktime_get_real_ns(void);
void usleep_range(unsigned long least, unsigned long most);
void msleep(unsigned int ms);
#define div_u64(n, d) ((u64)(n) / (u32)(d))
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define time_after(a, b) time_before(b, a)

struct lock {
	bool held;
};

typedef struct lock spinlock_t;
struct mutex {
	struct lock lock;
};

static inline void lock_init(struct lock *lock)
{
	lock->held = false;
}

static inline void lock_take(struct lock *lock)
{
	if (lock->held)
		abort();
	lock->held = true;
}

static inline void lock_give(struct lock *lock)
{
	if (!lock->held)
		abort();
	lock->held = false;
}

#define spin_lock_init(l) lock_init(l)
#define spin_lock(l) lock_take(l)
#define spin_unlock(l) lock_give(l)
#define spin_lock_irqsave(l, flags) ((flags) = 0, lock_take(l))
#define spin_unlock_irqrestore(l, flags) ((void)(flags), lock_give(l))
#define mutex_init(m) lock_init(&(m)->lock)
#define mutex_destroy(m) ((void)(m))
#define mutex_lock(m) lock_take(&(m)->lock)
#define mutex_unlock(m) lock_give(&(m)->lock)
#define mutex_trylock(m) (!(m)->lock.held && (lock_take(&(m)->lock), true))
#define lockdep_assert_held(l)                         \
	do {                                           \
		if (!((const struct lock *)(l))->held) \
			abort();                       \
	} while (0)

struct rw_semaphore {
	int readers;
	bool writer;
};

static inline void init_rwsem(struct rw_semaphore *sem)
{
	memset(sem, 0, sizeof(*sem));
}

static inline void down_read(struct rw_semaphore *sem)
{
	if (sem->writer || sem->readers)
		abort();
	sem->readers = 1;
}

static inline void up_read(struct rw_semaphore *sem)
{
	if (!sem->readers)
		abort();
	sem->readers = 0;
}

struct completion {
	bool done;
};

#define init_completion(c) ((c)->done = false)
#define reinit_completion(c) ((c)->done = false)
#define complete(c) ((c)->done = true)
/* Time passes, in which the device may act. Return: 0 after a timeout. */
unsigned long wait_for_completion_timeout(struct completion *completion, unsigned long time);

static inline void wait_for_completion(const struct completion *completion)
{
	if (!completion->done)
		abort();
}

typedef struct {
	int n;
} refcount_t;

#define refcount_set(r, value) ((r)->n = (value))
#define refcount_inc(r) ((r)->n++)
#define refcount_dec_and_test(r) (!--(r)->n)
typedef refcount_t atomic_t;
typedef struct {
	int unused;
} wait_queue_head_t;
typedef struct {
	u32 val;
} kuid_t;
/* No other thread makes a condition true. */
#define init_waitqueue_head(q) ((void)(q))
#define wake_up_all(q) ((void)(q))
#define wait_event(q, condition)  \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)
#define wait_event_killable_timeout(q, condition, time) ((condition) ? (long)(time) : 0)

struct user_namespace {
	struct user_namespace *parent;
	kuid_t owner, root;
};

extern struct user_namespace init_user_ns;
struct user_namespace *current_user_ns(void);
kuid_t current_uid(void);
#define GLOBAL_ROOT_UID ((kuid_t){ 0 })
#define uid_eq(a, b) ((a).val == (b).val)
#define uid_valid(uid) ((uid).val != U32_MAX)
#define make_kuid(ns, uid) ((ns)->root)
#define atomic_inc_return(a) (++(a)->n)
#define atomic_inc(a) ((void)++(a)->n)
#define atomic_dec(a) ((void)--(a)->n)
#define atomic_read(a) ((a)->n)

struct pci_device_id;
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	entry->next = head->next;
	entry->prev = head;
	head->next->prev = entry;
	head->next = entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->next = head;
	entry->prev = head->prev;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add(entry, head);
}

static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from))
		list_move(from->next, to);
}

#define LIST_HEAD(head) struct list_head head = { &(head), &(head) }

#define list_for_each_entry(pos, head, member)                               \
	for ((pos) = container_of((head)->next, __typeof__(*(pos)), member); \
	     &(pos)->member != (head);                                       \
	     (pos) = container_of((pos)->member.next, __typeof__(*(pos)), member))
#define list_for_each_entry_safe(pos, after, head, member)                          \
	for ((pos) = container_of((head)->next, __typeof__(*(pos)), member),        \
	    (after) = container_of((pos)->member.next, __typeof__(*(pos)), member); \
	     &(pos)->member != (head); (pos) = (after),                             \
	    (after) = container_of((after)->member.next, __typeof__(*(after)), member))
typedef struct {
	u64 n;
} atomic64_t;

#define rcu_read_lock() mb()
#define rcu_read_unlock() mb()
#define test_bit(n, word) (*(word) >> (n)&1)

static inline bool test_and_set_bit(int n, unsigned long *word)
{
	bool was = test_bit(n, word);

	*word |= 1ul << n;
	return was;
}

static inline bool test_and_clear_bit(int n, unsigned long *word)
{
	bool was = test_bit(n, word);

	*word &= ~(1ul << n);
	return was;
}

/* ----------------------------------------------------------------------- containers */

#define XA_SLOTS 16
#define XA_FLAGS_LOCK_IRQ 0
#define XA_FLAGS_ALLOC1 0
#define xa_limit_31b 0

struct xarray {
	struct lock lock;
	struct {
		unsigned long index;
		void *entry;
	} slots[XA_SLOTS];
};

static inline void xa_init_flags(struct xarray *xa, int flags)
{
	(void)flags;
	memset(xa, 0, sizeof(*xa));
}

static inline int xa_slot(const struct xarray *xa, unsigned long index)
{
	int i = 0;

	while (i < XA_SLOTS && !(xa->slots[i].entry && xa->slots[i].index == index))
		i++;
	return i;
}

static inline void *xa_load(struct xarray *xa, unsigned long index)
{
	int i = xa_slot(xa, index);

	return i < XA_SLOTS ? xa->slots[i].entry : NULL;
}

static inline int xa_insert_irq(struct xarray *xa, unsigned long index, void *entry, int gfp)
{
	(void)gfp;
	if (xa_load(xa, index))
		return -EBUSY;
	for (int i = 0; i < XA_SLOTS; i++) {
		if (xa->slots[i].entry)
			continue;
		xa->slots[i].index = index;
		xa->slots[i].entry = entry;
		return 0;
	}
	return -ENOMEM;
}

#define xa_init(xa) xa_init_flags(xa, 0)
#define xa_err(err) (err)
/* Return: an error, as xa_err() of the kernel's. Nothing is replaced. */
#define xa_store(xa, index, entry, gfp) xa_insert_irq(xa, index, entry, gfp)

static inline void xa_erase_irq(struct xarray *xa, unsigned long index)
{
	int i = xa_slot(xa, index);

	if (i < XA_SLOTS)
		xa->slots[i].entry = NULL;
}

static inline int xa_alloc(struct xarray *xa, u32 *index, void *entry, int limit, int gfp)
{
	(void)limit;
	for (*index = 1; xa_load(xa, *index); (*index)++)
		;
	return xa_insert_irq(xa, *index, entry, gfp);
}

static inline void *xa_erase(struct xarray *xa, unsigned long index)
{
	void *entry = xa_load(xa, index);

	xa_erase_irq(xa, index);
	return entry;
}

static inline bool xa_empty(const struct xarray *xa)
{
	for (int i = 0; i < XA_SLOTS; i++)
		if (xa->slots[i].entry)
			return false;
	return true;
}

#define xa_destroy(xa) ((void)(xa))

#define xa_lock_irqsave(xa, flags) spin_lock_irqsave(&(xa)->lock, flags)
#define xa_unlock_irqrestore(xa, flags) spin_unlock_irqrestore(&(xa)->lock, flags)
#define xa_for_each(xa, number, object)                                                         \
	for (int xa_i = 0; xa_i < XA_SLOTS; xa_i++)                                             \
		if (((number) = (xa)->slots[xa_i].index, (object) = (xa)->slots[xa_i].entry) != \
		    NULL)

struct ida {
	int unused;
};

/* --------------------------------------------------------------------------- memory */

static inline void strscpy(char *to, const char *from, size_t size)
{
	size_t length = strnlen(from, size - 1);

	memcpy(to, from, length);
	to[length] = 0;
}

#define kzalloc(size, gfp) calloc(1, size)
#define kfree(ptr) free(ptr)
#define kvcalloc(n, size, gfp) calloc(n, size)
#define kvfree(ptr) free(ptr)

struct device {
	void *driver_data;
	int users;
};

#define get_device(dev) ((dev)->users++)
#define put_device(dev) ((dev)->users--)

static inline void *dev_get_drvdata(const struct device *dev)
{
	return dev->driver_data;
}

static inline void *dma_alloc_coherent(struct device *dev, size_t size, dma_addr_t *dma, int gfp)
{
	void *va;

	(void)dev;
	(void)gfp;
	if (posix_memalign(&va, PAGE_SIZE, size))
		va = NULL;
	if (va)
		memset(va, 0, size);
	*dma = (dma_addr_t)va;
	return va;
}

static inline void dma_free_coherent(struct device *dev, size_t size, void *va, dma_addr_t dma)
{
	(void)dev;
	(void)size;
	(void)dma;
	free(va);
}

/* -------------------------------------------------------------- the device and its bus */

u32 readl(const void *reg);
void writel(u32 value, void *reg);
u32 get_random_u32(void);

struct pci_dev {
	struct device dev;
};

void pci_clear_master(struct pci_dev *pdev);
void pci_set_master(struct pci_dev *pdev);
#define pci_get_drvdata(pdev) dev_get_drvdata(&(pdev)->dev)
#define pci_set_drvdata(pdev, data) ((pdev)->dev.driver_data = (data))

struct pci_error_handlers {
	void (*reset_prepare)(struct pci_dev *pdev);
	void (*reset_done)(struct pci_dev *pdev);
};

struct dev_pm_ops {
	int (*suspend)(struct device *device);
	int (*resume)(struct device *device);
};
#define DEFINE_SIMPLE_DEV_PM_OPS(name, suspend_fn, resume_fn) \
	const struct dev_pm_ops name = { suspend_fn, resume_fn }

u64 pci_resource_start(const struct pci_dev *pdev, int bar);
u64 pci_resource_len(const struct pci_dev *pdev, int bar);
#define pci_resource_end(pdev, bar) \
	(pci_resource_start(pdev, bar) + pci_resource_len(pdev, bar) - 1)
#define pci_name(pdev) "pci"
#define PCI_IRQ_MSIX 4
#define PCI_IRQ_MSI 2

typedef enum { IRQ_HANDLED, IRQ_WAKE_THREAD } irqreturn_t;
typedef irqreturn_t irq_handler_t(int irq, void *data);
int pci_alloc_irq_vectors(struct pci_dev *pdev, int least, int most, int flags);
int pci_request_irq(struct pci_dev *pdev, uint nr, irq_handler_t *handler, irq_handler_t *thread,
		    void *data, const char *format, ...);
void pci_free_irq(struct pci_dev *pdev, uint nr, void *data);
#define pci_free_irq_vectors(pdev) ((void)(pdev))
#define pci_irq_vector(pdev, nr) ((void)(pdev), (int)(nr))

struct cpumask {
	unsigned long bits;
};

typedef struct cpumask cpumask_var_t[1];
#define zalloc_cpumask_var(mask, gfp) ((*(mask))->bits = 0, true)
#define free_cpumask_var(mask) ((void)(mask))
#define cpumask_set_cpu(cpu, mask) ((mask)->bits |= 1ul << (cpu))
#define num_online_cpus() 4u
#define for_each_online_cpu(cpu) for ((cpu) = 0; (cpu) < 4; (cpu)++)
#define irq_set_affinity_and_hint(irq, mask) ((void)(irq), (void)(mask))
#define irq_update_affinity_hint(irq, mask) ((void)(irq))

#define log_nothing(dev) ((void)(dev))
#define dev_err(dev, ...) log_nothing(dev)
#define dev_err_ratelimited(dev, ...) log_nothing(dev)
#define dev_warn(dev, ...) log_nothing(dev)
#define dev_info(dev, ...) log_nothing(dev)
#define dev_dbg(dev, ...) log_nothing(dev)
#define pci_err(pdev, ...) log_nothing(pdev)
#define pci_info(pdev, ...) log_nothing(pdev)
#define pci_warn(pdev, ...) log_nothing(pdev)
#define ibdev_err(dev, ...) log_nothing(dev)
#define ibdev_info(dev, ...) log_nothing(dev)
#define ibdev_warn(dev, ...) log_nothing(dev)
#define ibdev_dbg(dev, ...) log_nothing(dev)
#define module_param(name, type, mode) _Static_assert(1, "")
#define MODULE_PARM_DESC(name, text) _Static_assert(1, "")

struct net_device;
struct notifier_block {
	int unused;
};

struct work_struct {
	bool queued;
	void (*run)(struct work_struct *work);
};

#define INIT_WORK(w, function) (*(w) = (struct work_struct){ .run = (function) })

struct delayed_work {
	struct work_struct work;
	void (*run)(struct work_struct *work);
	unsigned long due; /* in jiffies */
};

#define system_long_wq NULL
#define queue_work(wq, w) ((void)(wq), (w)->queued = true)
#define schedule_work(w) queue_work(system_long_wq, w)
#define flush_work(w) ((void)(w))
#define WQ_UNBOUND 2
struct workqueue_struct *alloc_workqueue(const char *name, unsigned int flags, int max_active);
void destroy_workqueue(struct workqueue_struct *wq);
#define INIT_DELAYED_WORK(w, function) (*(w) = (struct delayed_work){ .run = (function) })
#define cancel_delayed_work_sync(w) ((w)->work.queued = false)

/* As in the kernel, work that is queued keeps its time. */
static inline void queue_delayed_work(const void *wq, struct delayed_work *work,
				      unsigned long delay)
{
	(void)wq;
	if (!work->work.queued)
		work->due = jiffies + delay;
	work->work.queued = true;
}

static inline bool is_valid_ether_addr(const u8 *mac)
{
	static const u8 zero[ETH_ALEN];

	return !(mac[0] & 1) && memcmp(mac, zero, ETH_ALEN);
}

/* ------------------------------------------------------------------- ib_core's objects */

/* A network namespace is its count of references; 0: it ends. */
struct net {
	int refs;
};
typedef struct {
	struct net *net;
} possible_net_t;
#define read_pnet_rcu(pnet) ((pnet)->net)
#define write_pnet(pnet, value) ((pnet)->net = (value))
#define maybe_get_net(n) ((n)->refs ? (n)->refs++, (n) : NULL)
#define put_net(n) ((void)(n)->refs--)

#define IB_DEVICE_NAME_MAX 64
struct ib_core_device {
	possible_net_t rdma_net;
};

struct ib_device {
	struct ib_core_device coredev;
	struct device dev;
	char name[IB_DEVICE_NAME_MAX];
};
int ib_register_device(struct ib_device *ibdev, const char *name, struct device *dma_dev);

enum ib_event_type {
	IB_EVENT_PORT_ACTIVE = 9,
	IB_EVENT_PORT_ERR = 10,
	IB_EVENT_QP_LAST_WQE_REACHED = 16,
};

struct ib_cq;
struct ib_qp;
struct ib_srq;

struct ib_event {
	struct ib_device *device;
	union {
		struct ib_cq *cq;
		struct ib_qp *qp;
		struct ib_srq *srq;
		u32 port_num;
	} element;
	enum ib_event_type event;
};

struct ib_cq {
	struct ib_device *device;
	int cqe;
	void (*comp_handler)(struct ib_cq *cq, void *context);
	void (*event_handler)(struct ib_event *event, void *context);
	void *cq_context;
};

struct ib_srq {
	struct ib_device *device;
	void (*event_handler)(struct ib_event *event, void *context);
	void *srq_context;
};

struct rdma_stat_desc {
	const char *name;
};

struct rdma_hw_stats {
	u64 value[32];
};

struct rdma_counter {
	struct ib_device *device;
	struct rdma_hw_stats *stats;
	u32 id;
};

#define RDMA_HW_STATS_DEFAULT_LIFESPAN 10
#define rdma_alloc_hw_stats_struct(descs, n, lifespan) \
	((void)(descs), (struct rdma_hw_stats *)calloc(1, sizeof(struct rdma_hw_stats)))

enum ib_qp_type {
	IB_QPT_GSI = 1,
	IB_QPT_RC,
	IB_QPT_UC,
	IB_QPT_UD,
	IB_QPT_XRC_TGT = 10,
};

struct ib_qp {
	struct ib_device *device;
	struct rdma_counter *counter;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	enum ib_qp_type qp_type;
	void (*event_handler)(struct ib_event *event, void *context);
	void *qp_context;
};

enum ib_wc_status { IB_WC_SUCCESS, IB_WC_WR_FLUSH_ERR = 5, IB_WC_GENERAL_ERR = 21 };
enum ib_wc_opcode {
	IB_WC_SEND,
	IB_WC_RDMA_WRITE,
	IB_WC_RDMA_READ,
	IB_WC_COMP_SWAP,
	IB_WC_FETCH_ADD,
	IB_WC_LOCAL_INV,
	IB_WC_REG_MR,
	IB_WC_MASKED_COMP_SWAP,
	IB_WC_MASKED_FETCH_ADD,
	IB_WC_RECV = 1 << 7,
	IB_WC_RECV_RDMA_WITH_IMM,
};
enum ib_wc_flags { IB_WC_WITH_INVALIDATE = 1 << 2, IB_WC_WITH_VLAN = 1 << 6 };
enum { RDMA_NETWORK_ROCE_V1 = 1, RDMA_NETWORK_IPV4, RDMA_NETWORK_IPV6 };

struct ib_wc {
	u64 wr_id;
	int status, opcode, wc_flags;
	u32 vendor_err, byte_len, src_qp, slid, port_num;
	struct ib_qp *qp;
	union {
		u32 invalidate_rkey;
		__be32 imm_data;
	} ex;
	u16 pkey_index, vlan_id;
	u8 sl, dlid_path_bits, network_hdr_type;
};

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED = 1,
	IB_CQ_NEXT_COMP = 2,
	IB_CQ_SOLICITED_MASK = 3,
	IB_CQ_REPORT_MISSED_EVENTS = 4,
};

enum { IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION = 1 };

struct ib_cq_init_attr {
	unsigned int cqe;
	u32 comp_vector, flags;
};

struct ib_sge {
	u64 addr;
	u32 length, lkey;
};

struct ib_recv_wr {
	struct ib_recv_wr *next;
	u64 wr_id;
	struct ib_sge *sg_list;
	int num_sge;
};

enum ib_port_state { IB_PORT_DOWN = 1, IB_PORT_ACTIVE = 4 };
enum { IB_PORT_PHYS_STATE_DISABLED = 3, IB_PORT_PHYS_STATE_LINK_UP = 5 };
enum ib_uverbs_advise_mr_advice { IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH };
enum ib_mtu { IB_MTU_256 = 1, IB_MTU_4096 = 5 };
enum rdma_link_layer { IB_LINK_LAYER_ETHERNET };
enum { IB_PORT_CM_SUP = 1 << 16 };
enum { RDMA_CORE_PORT_IBA_ROCE, RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP, IB_MGMT_MAD_SIZE = 256 };

struct ib_port_attr {
	int state, phys_state;
	enum ib_mtu max_mtu, active_mtu;
	int gid_tbl_len;
	bool ip_gids;
	u32 port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr, lid, sm_lid;
	u16 pkey_tbl_len, active_speed;
	u8 lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width;
};

struct ib_port_immutable {
	int pkey_tbl_len, gid_tbl_len;
	u32 core_cap_flags, max_mad_size;
};

void ib_dispatch_event(const struct ib_event *event);
int ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
#define rdma_roce_rescan_device(ibdev) ((void)(ibdev))

/* Of the other operations of ib_core, only the prototypes are compiled. */
struct ib_ucontext {
	int unused;
};
struct ib_pd {
	struct ib_device *device;
};
struct ib_xrcd {
	int unused;
};
struct ib_mr {
	struct ib_device *device;
	struct ib_pd *pd;
	u64 iova, length;
	u32 lkey, rkey, page_size;
};
enum ib_mw_type { IB_MW_TYPE_1 = 1, IB_MW_TYPE_2 };
struct ib_mw {
	struct ib_device *device;
	struct ib_pd *pd;
	u32 rkey;
	enum ib_mw_type type;
};
struct ib_dm {
	int unused;
};
struct ib_ah {
	int unused;
};

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR,
};

enum ib_qp_attr_mask {
	IB_QP_STATE = 1 << 0,
	IB_QP_CUR_STATE = 1 << 1,
	IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	IB_QP_ACCESS_FLAGS = 1 << 3,
	IB_QP_PKEY_INDEX = 1 << 4,
	IB_QP_PORT = 1 << 5,
	IB_QP_QKEY = 1 << 6,
	IB_QP_AV = 1 << 7,
	IB_QP_PATH_MTU = 1 << 8,
	IB_QP_TIMEOUT = 1 << 9,
	IB_QP_RETRY_CNT = 1 << 10,
	IB_QP_RNR_RETRY = 1 << 11,
	IB_QP_RQ_PSN = 1 << 12,
	IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IB_QP_ALT_PATH = 1 << 14,
	IB_QP_MIN_RNR_TIMER = 1 << 15,
	IB_QP_SQ_PSN = 1 << 16,
	IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IB_QP_PATH_MIG_STATE = 1 << 18,
	IB_QP_CAP = 1 << 19,
	IB_QP_DEST_QPN = 1 << 20,
	IB_QP_ATTR_STANDARD_BITS = (1 << 21) - 1,
};

enum ib_mig_state { IB_MIG_MIGRATED };

struct ib_qp_cap {
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct rdma_ah_attr {
	int unused;
};

struct ib_qp_attr {
	enum ib_qp_state qp_state, cur_qp_state;
	enum ib_mig_state path_mig_state;
	u32 path_mtu, qkey, rq_psn, sq_psn, dest_qp_num;
	int qp_access_flags;
	struct ib_qp_cap cap;
	struct rdma_ah_attr ah_attr;
	u16 pkey_index;
	u8 en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
	u8 timeout, retry_cnt, rnr_retry;
	u32 port_num;
};

struct ib_qp_init_attr {
	void (*event_handler)(struct ib_event *event, void *context);
	void *qp_context;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_qp_cap cap;
	enum ib_qp_type qp_type;
};

bool ib_modify_qp_is_ok(enum ib_qp_state cur, enum ib_qp_state next, enum ib_qp_type type,
			int mask);
enum ib_wr_opcode {
	IB_WR_RDMA_WRITE,
	IB_WR_RDMA_WRITE_WITH_IMM,
	IB_WR_SEND,
	IB_WR_SEND_WITH_IMM,
	IB_WR_RDMA_READ,
	IB_WR_ATOMIC_CMP_AND_SWP,
	IB_WR_ATOMIC_FETCH_AND_ADD,
	IB_WR_SEND_WITH_INV = 9,
	IB_WR_LOCAL_INV,
	IB_WR_REG_MR = 32,
};
enum ib_send_flags {
	IB_SEND_FENCE = 1 << 0,
	IB_SEND_SIGNALED = 1 << 1,
	IB_SEND_SOLICITED = 1 << 2,
	IB_SEND_INLINE = 1 << 3,
	IB_SEND_IP_CSUM = 1 << 4,
};

struct ib_send_wr {
	struct ib_send_wr *next;
	u64 wr_id;
	struct ib_sge *sg_list;
	int num_sge, send_flags;
	enum ib_wr_opcode opcode;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
};

struct ib_rdma_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u32 rkey;
};
#define rdma_wr(wr_) container_of(wr_, const struct ib_rdma_wr, wr)

struct ib_atomic_wr {
	struct ib_send_wr wr;
	u64 remote_addr, compare_add, swap;
	u32 rkey;
};
#define atomic_wr(wr_) container_of(wr_, const struct ib_atomic_wr, wr)

struct ib_ud_wr {
	struct ib_send_wr wr;
	struct ib_ah *ah;
	u32 remote_qpn, remote_qkey;
};
#define ud_wr(wr_) container_of(wr_, const struct ib_ud_wr, wr)

struct ib_reg_wr {
	struct ib_send_wr wr;
	struct ib_mr *mr;
	u32 key;
	int access;
};
#define reg_wr(wr_) container_of(wr_, const struct ib_reg_wr, wr)
struct rdma_user_mmap_entry {
	int unused;
};
enum ib_mr_type { IB_MR_TYPE_MEM_REG };
enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ZERO_BASED = 1 << 5,
	IB_ACCESS_ON_DEMAND = 1 << 6,
	IB_ACCESS_HUGETLB = 1 << 7,
	IB_ACCESS_OPTIONAL = 0x3ff00000,
};
enum {
	IB_MR_REREG_TRANS = 1 << 0,
	IB_MR_REREG_PD = 1 << 1,
	IB_MR_REREG_ACCESS = 1 << 2,
	IB_MR_REREG_SUPPORTED = 7,
};
#define ib_access_writable(access) ((access) & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
enum ib_srq_attr_mask { IB_SRQ_LIMIT };
union ib_gid {
	u8 raw[16];
};
struct ib_dm_alloc_attr;
struct ib_dm_mr_attr;
struct ib_gid_attr;
struct ib_grh {
	u8 bytes[40];
};
struct ib_mad;
struct ib_srq_attr;
struct ib_srq_init_attr;
struct page;
struct rdma_ah_init_attr;
struct scatterlist;
struct sk_buff;
struct uverbs_attr_bundle;
struct vm_area_struct;

struct ib_device_ops {
	struct rdma_hw_stats *(*alloc_hw_port_stats)(struct ib_device *ibdev, u32 port);
	struct rdma_hw_stats *(*counter_alloc_stats)(struct rdma_counter *counter);
	int (*counter_bind_qp)(struct rdma_counter *counter, struct ib_qp *qp);
	int (*counter_dealloc)(struct rdma_counter *counter);
	int (*counter_unbind_qp)(struct ib_qp *qp);
	int (*counter_update_stats)(struct rdma_counter *counter);
	int (*get_hw_stats)(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			    int index);
	int (*process_mad)(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
			   const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
			   size_t *out_size, u16 *out_pkey_index);
};

struct uapi_definition {
	int unused;
};

struct ib_udata {
	int unused;
};

struct ib_block_iter {
	int unused;
};

/* --------------------------------------------------------------------- user memory */

struct mm_struct {
	int users, count;
};

#define mmgrab(mm) ((mm)->count++)
#define mmdrop(mm) ((mm)->count--)
#define mmget_not_zero(mm) ((mm)->users && (mm)->users++)
#define mmput(mm) ((mm)->users--)

struct mmu_interval_notifier {
	unsigned long seq;
};

struct mmu_notifier_range {
	unsigned long start, end;
	bool blockable;
};

struct mmu_interval_notifier_ops {
	bool (*invalidate)(struct mmu_interval_notifier *notifier,
			   const struct mmu_notifier_range *range, unsigned long seq);
};

#define mmu_notifier_range_blockable(range) ((range)->blockable)

/* Pinned memory of user space has no pages: the tested code passes it on only. */
struct ib_umem {
	struct mm_struct *owning_mm;
	u64 address, length;
	bool writable, is_dmabuf;
};

/* Since 6.16; the tests have it if they define PVR_HAVE_HMM_DMA_MAP. */
#define HMM_PFN_VALID (1ull << 63)
#define HMM_PFN_WRITE (1ull << 62)
#define HMM_PFN_DMA_MAPPED (1ull << 60)
struct hmm_dma_map {
	u64 *pfn_list;
	dma_addr_t *dma_list;
};
struct pci_p2pdma_map_state {
	int unused;
};
dma_addr_t hmm_dma_map_pfn(struct device *dev, struct hmm_dma_map *map, u64 page,
			   struct pci_p2pdma_map_state *p2p);

struct ib_umem_odp {
	struct ib_umem umem;
	struct hmm_dma_map map;
	struct mmu_interval_notifier notifier;
	struct mutex umem_mutex;
	void *private;
	int npages;
	bool is_implicit_odp;
	dma_addr_t *dma_list;
};

#define to_ib_umem_odp(memory) container_of(memory, struct ib_umem_odp, umem)
#define ib_umem_start(odp) ((odp)->umem.address)
#define ib_umem_end(odp) ((odp)->umem.address + (odp)->umem.length)
#define dma_mapping_error(dev, dma) ((void)(dev), (dma) == DMA_MAPPING_ERROR)

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#define mmu_interval_set_seq(notifier, value) ((notifier)->seq = (value))
struct ib_umem_odp *ib_umem_odp_alloc_child(struct ib_umem_odp *root, unsigned long addr,
					    size_t size,
					    const struct mmu_interval_notifier_ops *ops);
void ib_umem_odp_release(struct ib_umem_odp *odp);
int ib_umem_odp_map_dma_and_lock(struct ib_umem_odp *odp, u64 start, u64 size, u64 access,
				 bool fault);
void ib_umem_odp_unmap_dma_pages(struct ib_umem_odp *odp, u64 start, u64 end);
#endif

#define ODP_READ_ALLOWED_BIT (1ull << 0)
#define ODP_WRITE_ALLOWED_BIT (1ull << 1)
#define ODP_DMA_ADDR_MASK (~3ull)
#define DMA_MAPPING_ERROR (~(dma_addr_t)0)

#define ib_umem_release(umem) ((void)(umem))
#define ib_umem_num_dma_blocks(umem, size) ((void)(umem), (size_t)1)
#define ib_umem_find_best_pgoff(umem, sizes, mask) ((void)(umem), (unsigned long)PAGE_SIZE)
#define ib_umem_dma_offset(umem, size) ((void)(umem), 0)
#define ib_sg_to_pages(mr, sg, n, offset, set) \
	((void)(mr), (void)(sg), (void)(n), (void)(offset), (void)(set), 0)
#define rdma_umem_for_each_dma_block(umem, iter, size) \
	for ((void)(umem), (void)(iter), (void)(size); false;)
#define rdma_block_iter_dma_address(iter) ((void)(iter), (dma_addr_t)0)

#endif /* FUZZ_KERNEL_H */
