// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a hostile device and the parts of the driver that parse what it
 * writes: version, capabilities, command responses, completions, events, indices. They are
 * compiled for user space with kernel/kernel.h, and the consumer is a kernel consumer. A
 * device that fails is restarted, and the PCI function is suspended and reset.
 *
 * The first bytes of an input are the registers and an offset and a value for the
 * capabilities. Then follow operations: a byte of enum op, then its arguments. The device
 * answers a command as the input says at that place.
 */
#include "cq_buf.h"
#include "driver_world.h"
#include "wq.h"

#define WQ_SLOTS 8
#define SRQ_STRIDE 64
#define BYTES 8 /* of each request */
#define OPS_MAX 400
/* As restart.c has them. */
#define RESTARTS_MAX 5
#define RESTART_WINDOW (600 * HZ)

enum op {
	OP_POLL,
	OP_ARM,
	OP_POST,
	OP_POST_SRQ,
	OP_PURGE,
	OP_RESET_QP,
	OP_MOVE_SRQ,
	OP_PORT,
	OP_PKEY,
	OP_WORK,
	OP_CTL,
	OP_VECTORS,
	/* Of the device. */
	OP_COMPLETE,
	OP_SET_INDEX,
	OP_EVENT,
	OP_NOTIFY,
	OP_INTERRUPT,
	OP_WRITE,
	OP_VANISH,
	OP_NUM,
};

/* Of the PCI function; they also occur while the device is stopped. */
enum pci_op {
	PCI_WAIT,
	PCI_CLOSE,
	PCI_SUSPEND,
	PCI_RESUME,
	PCI_RESET,
	PCI_NUM,
};
#define PCI_OPS 0xf8 /* bytes from here on are not of enum op */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ------------------------------------------------------------------------- the consumer */

static void handle_completion(struct ib_cq *ibcq, void *context)
{
	(void)context;
	if (ibcq != &w.cqs[0].ibcq && ibcq != &w.cqs[1].ibcq)
		die("a notification of a CQ that is none");
}

static void handle_event(struct ib_event *event, void *context)
{
	(void)context;
	if (event->device != &w.dev.ibdev || !event->element.cq)
		die("an event without an object");
}

static bool create_cq(int i)
{
	const struct ib_cq_init_attr attr = { .cqe = 6 };
	struct pvr_cq *cq = &w.cqs[i];

	cq->ibcq.device = &w.dev.ibdev;
	cq->ibcq.comp_handler = handle_completion;
	cq->ibcq.event_handler = handle_event;
	w.has_cq[i] = !pvr_create_cq(&cq->ibcq, &attr, NULL);
	return w.has_cq[i];
}

static void init_srq(void)
{
	struct pvr_ring_state *state;

	if (pvr_pdir_init(&w.srq.mem.pdir, &w.dev.dir_pages, 2, true))
		die("no memory");
	state = pvr_pdir_at(&w.srq.mem.pdir, 0);
	w.srq.ibsrq.device = &w.dev.ibdev;
	w.srq.ibsrq.event_handler = handle_event;
	pvr_ref_init(&w.srq.ref);
	if (pvr_srq_wq_init(&w.srq.wq, &state->rx, WQ_SLOTS, 1, SRQ_STRIDE))
		die("no memory");
}

/* The first has an SRQ, the second has both queues on one CQ. */
static void init_qp(int i)
{
	struct pvr_qp *qp = &w.qps[i];
	struct pvr_ring_state *state;

	if (pvr_pdir_init(&qp->pdir, &w.dev.dir_pages, 1, true))
		die("no memory");
	state = pvr_pdir_at(&qp->pdir, 0);
	qp->ibqp.device = &w.dev.ibdev;
	qp->ibqp.send_cq = &w.cqs[0].ibcq;
	qp->ibqp.recv_cq = &w.cqs[i ? 0 : 1].ibcq;
	qp->ibqp.srq = i ? NULL : &w.srq.ibsrq;
	qp->ibqp.event_handler = handle_event;
	qp->handle = 1 + (u32)i;
	pvr_ref_init(&qp->ref);
	if (pvr_wq_init(&qp->sq, &state->tx, WQ_SLOTS, 1, 64, 0) ||
	    (i && pvr_wq_init(&qp->rq, &state->rx, WQ_SLOTS, 1, 64, 0)))
		die("no memory");
	if (pvr_handle_insert(&w.dev, &w.dev.qps, qp->handle, qp) || pvr_cq_attach(&w.cqs[0], qp) ||
	    (!i && pvr_cq_attach(&w.cqs[1], qp)))
		die("a handle that is taken");
}

static void exit_qp(int i)
{
	struct pvr_qp *qp = &w.qps[i];

	xa_erase_irq(&w.dev.qps, qp->handle);
	pvr_cq_detach(&w.cqs[0], qp);
	if (!i)
		pvr_cq_detach(&w.cqs[1], qp);
	pvr_ref_drain(&qp->ref);
	pvr_wq_exit(&qp->sq);
	pvr_wq_exit(&qp->rq);
	pvr_pdir_exit(&qp->pdir);
}

static struct pvr_wq *take_wq(void)
{
	u8 which = take_byte();

	return which & 1 && w.qps[1].rq.wr_ids ? &w.qps[1].rq : &w.qps[which >> 1 & 1].sq;
}

static void post(void)
{
	struct pvr_wq *wq = take_wq();

	if (w.posted == REQUESTS)
		return;
	spin_lock(&wq->lock);
	if (!pvr_wq_room(wq)) {
		w.waits[w.posted] = true;
		pvr_wq_push(wq, w.posted++, BYTES);
	}
	spin_unlock(&wq->lock);
}

static void post_srq(void)
{
	struct ib_sge sge = { .length = BYTES };
	struct ib_recv_wr wr = { .wr_id = w.posted, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	if (w.posted == REQUESTS)
		return;
	w.waits[w.posted] = true;
	if (!pvr_post_srq_recv(&w.srq.ibsrq, &wr, &bad))
		w.posted++;
	else
		w.waits[w.posted] = false;
}

/* Receive and send queues have opcodes of their own, and no message is longer than its buffers. */
static void check_message(const struct ib_wc *wc)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->opcode > IB_WC_RECV_RDMA_WITH_IMM || wc->opcode < IB_WC_SEND)
		die("a completion of no opcode");
	if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM && wc->byte_len > BYTES)
		die("a completion of more bytes than the request has");
}

static void poll_cq(void)
{
	struct pvr_cq *cq = &w.cqs[take_byte() & 1];
	int num = take_byte() % 9, n;
	struct ib_wc wc[8];

	n = pvr_poll_cq(&cq->ibcq, num, wc);
	if (n < 0 || n > num)
		die("more completions than requested");
	for (int i = 0; i < n; i++) {
		if (wc[i].qp != &w.qps[0].ibqp && wc[i].qp != &w.qps[1].ibqp)
			die("a completion of no QP");
		if (wc[i].wr_id >= w.posted || !w.waits[wc[i].wr_id])
			die("a completion of a request that is not outstanding");
		if (wc[i].status < 0 || wc[i].status > IB_WC_GENERAL_ERR)
			die("a completion of no status");
		check_message(&wc[i]);
		w.waits[wc[i].wr_id] = false;
	}
}

static void purge(bool reset)
{
	struct pvr_qp *qp = &w.qps[1];

	pvr_cq_purge(&w.cqs[0], reset ? qp : &w.qps[take_byte() & 1]);
	if (!reset)
		return;
	pvr_wq_reset(&qp->sq, &w.cqs[0]);
	pvr_wq_reset(&qp->rq, &w.cqs[0]);
}

/* As a resize does: the device reports any number of moved requests. */
static void move_srq(void)
{
	struct pvr_srq_move move = { .n = 4u << (take_byte() & 3) };
	struct pvr_pdir pdir = { .cache = NULL };
	struct pvr_ring_state *state;
	u8 how = take_byte();

	if (pvr_pdir_init(&pdir, &w.dev.dir_pages, 2, true))
		die("no memory");
	state = pvr_pdir_at(&pdir, 0);
	move.ring_shm = &state->rx;
	if (pvr_srq_move_begin(&w.srq.wq, &move)) {
		pvr_pdir_exit(&pdir);
		return;
	}
	if (how & 1) {
		pvr_srq_move_undo(&w.srq.wq, &move);
		pvr_pdir_exit(&pdir);
		return;
	}
	if (pvr_srq_move_end(&w.srq.wq, &move, take_index()))
		pvr_dev_fail(&w.dev, "impossible move");
	pvr_pdir_exit(&w.srq.mem.pdir);
	w.srq.mem.pdir = pdir;
}

static void query_port(void)
{
	struct ib_port_immutable imm;

	if (pvr_port_immutable(&w.dev.ibdev, 1, &imm))
		return;
	if (imm.gid_tbl_len < 0 || imm.gid_tbl_len > (int)w.dev.caps.gid_tbl_len ||
	    imm.pkey_tbl_len < 1 || imm.pkey_tbl_len > w.dev.caps.max_pkeys)
		die("tables of a port above those of the device");
}

static void run_work(void)
{
	if (w.dev.flush_work.queued)
		pvr_flush_work(&w.dev.flush_work);
	if (w.dev.port_work.queued)
		pvr_port_work(&w.dev.port_work);
	w.dev.flush_work.queued = w.dev.port_work.queued = false;
}

/* ------------------------------------------------------------------------ the device */

static void write_cqe(void)
{
	struct pvr_cq *cq = &w.cqs[take_byte() & 1];
	u8 how = take_byte();
	struct pvrdma_cqe cqe = { .qp = take_byte() & 3, .wr_id = take_index() };
	struct pvr_ring *ring = cq->buf.ring_shm;

	if (how & 1)
		cqe.wr_id |= PVR_WQ_RECV;
	if (how & 2)
		cqe.opcode = take_byte();
	if (how & 4)
		cqe.status = take_word();
	if (how & 8)
		cqe.wc_flags = take_word();
	if (how & 16)
		cqe.byte_len = take_word();
	memcpy(pvr_pdir_at(&cq->buf.pdir,
			   PVR_PAGE_SIZE + pvr_ring_slot(ring->prod_tail, cq->buf.n) * sizeof(cqe)),
	       &cqe, sizeof(cqe));
	ring->prod_tail = pvr_ring_next(ring->prod_tail, cq->buf.n);
}

static struct pvr_ring *take_ring(void)
{
	switch (take_byte() % 6) {
	case 0:
		return w.cqs[0].buf.ring_shm;
	case 1:
		return w.cqs[1].buf.ring_shm;
	case 2:
		return take_wq()->ring_shm;
	case 3:
		return w.srq.wq.ring_shm;
	case 4:
		return w.dev.events.ring_shm;
	default:
		return w.dev.vectors[0].ring.ring_shm;
	}
}

static void set_index(void)
{
	struct pvr_ring *ring = take_ring();

	if (take_byte() & 1)
		ring->prod_tail = take_index();
	else
		ring->cons_head = take_index();
}

/* An element of an event ring at its index, which advances. */
static void add_element(struct pvr_evring *ring, const void *element)
{
	u32 tail = ring->ring_shm->prod_tail;

	memcpy(pvr_pdir_at(&ring->pdir,
			   PVR_PAGE_SIZE + pvr_ring_slot(tail, ring->n) * ring->elem_size),
	       element, ring->elem_size);
	ring->ring_shm->prod_tail = pvr_ring_next(tail, ring->n);
}

static void write_event(void)
{
	const struct pvr_eqe eqe = { .type = take_byte(), .info = take_index() };

	add_element(&w.dev.events, &eqe);
}

static void write_notification(void)
{
	struct pvr_evring *ring = &w.dev.vectors[take_byte() % w.dev.num_vectors].ring;
	const struct pvr_cqne cqne = { .cq_handle = take_index() };

	add_element(ring, &cqne);
}

static void interrupt(void)
{
	u32 nr = take_byte() % (u32)ARRAY_SIZE(w.irqs);

	if (w.irqs[nr].handler && w.irqs[nr].handler((int)nr, w.irqs[nr].data) == IRQ_WAKE_THREAD)
		w.irqs[nr].thread((int)nr, w.irqs[nr].data);
}

static void write_page(void)
{
	struct pvr_cq *cq = &w.cqs[take_byte() & 1];
	u32 at = take_word() % (PVR_PAGE_SIZE - 64);

	take((u8 *)pvr_pdir_at(&cq->buf.pdir, (take_byte() & 1) * PVR_PAGE_SIZE) + at, 64);
}

static void run_op(enum op op)
{
	u16 pkey;

	switch (op) {
	case OP_POLL:
		poll_cq();
		break;
	case OP_ARM:
		pvr_req_notify_cq(&w.cqs[take_byte() & 1].ibcq, take_byte() & 7);
		break;
	case OP_POST:
		post();
		break;
	case OP_POST_SRQ:
		post_srq();
		break;
	case OP_PURGE:
	case OP_RESET_QP:
		purge(op == OP_RESET_QP);
		break;
	case OP_MOVE_SRQ:
		move_srq();
		break;
	case OP_PORT:
		query_port();
		break;
	case OP_PKEY:
		pvr_query_pkey(&w.dev.ibdev, 1, take_byte(), &pkey);
		break;
	case OP_WORK:
		run_work();
		break;
	case OP_CTL:
		pvr_cmd_ctl(&w.dev, PVR_CTL_UNQUIESCE);
		break;
	case OP_VECTORS:
		pvr_vectors_notify(&w.dev);
		break;
	case OP_COMPLETE:
		write_cqe();
		break;
	case OP_SET_INDEX:
		set_index();
		break;
	case OP_EVENT:
		write_event();
		break;
	case OP_NOTIFY:
		write_notification();
		break;
	case OP_INTERRUPT:
		interrupt();
		break;
	case OP_WRITE:
		write_page();
		break;
	default:
		w.gone = take_byte() % 4 == 3;
	}
}

/* ------------------------------------------------------------------- the PCI function */

static void create_objects(void)
{
	if (!create_cq(0) || !create_cq(1))
		return;
	init_srq();
	for (int i = 0; i < QPS; i++)
		init_qp(i);
	w.has_objects = true;
	w.dev.kernel_qps.n = take_byte() & 1;
}

static void destroy_objects(void)
{
	for (int i = 0; w.has_objects && i < QPS; i++)
		exit_qp(i);
	if (w.has_objects) {
		pvr_srq_wq_exit(&w.srq.wq);
		pvr_pdir_exit(&w.srq.mem.pdir);
	}
	for (int i = 0; i < CQS; i++)
		if (w.has_cq[i])
			pvr_destroy_cq(&w.cqs[i].ibcq, NULL);
	w.has_objects = false;
	/* What was outstanding never completes. */
	memset(w.waits, 0, sizeof(w.waits));
	memset(w.has_cq, 0, sizeof(w.has_cq));
	memset(w.cqs, 0, sizeof(w.cqs));
	memset(w.qps, 0, sizeof(w.qps));
	memset(&w.srq, 0, sizeof(w.srq));
}

/* Work of the device that is stopped is canceled. */
static void dev_init(struct pvr_pci *pci)
{
	memset(&w.dev, 0, sizeof(w.dev));
	w.dev.pci = pci;
	w.dev.pdev = &w.pdev;
	w.dev.regs = w.regs;
	w.dev.uar = w.uar;
	w.dev.flags = 1ul << PVR_DEV_LIVE;
	INIT_LIST_HEAD(&w.dev.kept);
	spin_lock_init(&w.dev.kept_lock);
}

struct pvr_dev *pvr_dev_start(struct pvr_pci *pci)
{
	int err;

	if (w.runs || w.off)
		die("a start of a device that runs, or that is off");
	w.starts++;
	dev_init(pci);
	err = pvr_shared_init(&w.dev);
	if (err)
		return ERR_PTR(err);
	err = pvr_irq_init(&w.dev);
	if (err) {
		pvr_shared_exit(&w.dev);
		return ERR_PTR(err);
	}
	w.runs = true;
	create_objects();
	return &w.dev;
}

/* The world has no regions on demand: each handle is that of none. */
bool pvr_umem_is_same(struct ib_umem *old, struct ib_umem *new)
{
	(void)old;
	(void)new;
	return false;
}

void pvr_odp_event(struct pvr_dev *dev, u32 handle)
{
	(void)dev;
	(void)handle;
}

void pvr_odp_queues_init(struct pvr_odp_queues *queues)
{
	(void)queues;
}

void pvr_odp_queues_exit(struct pvr_odp_queues *queues)
{
	(void)queues;
}

void pvr_dev_stop(struct pvr_dev *dev)
{
	if (!w.runs || dev != &w.dev)
		die("a stop of a device that does not run");
	destroy_objects();
	pvr_irq_exit(dev);
	pvr_shared_exit(dev);
	w.runs = false;
}

/* A restart begins with a device that is dead. */
static void run_restart_work(struct pvr_pci *pci)
{
	struct delayed_work *work = &pci->restart_work;
	u32 before = w.starts;

	if (!work->work.queued || time_before(jiffies, work->due))
		return;
	work->work.queued = false;
	work->run(&work->work);
	if (w.starts == before)
		return;
	w.restarts++;
	if (w.restarts > RESTARTS_MAX * ((jiffies - w.probed) / RESTART_WINDOW + 1))
		die("too many restarts");
}

static void pci_off_op(bool off, bool is_reset)
{
	if (w.off == off)
		return;
	w.off = off;
	if (is_reset)
		(off ? pvr_pci_errors.reset_prepare : pvr_pci_errors.reset_done)(&w.pdev);
	else
		(off ? pvr_pm_ops.suspend : pvr_pm_ops.resume)(&w.pdev.dev);
	if (off && w.runs)
		die("a device that runs while it is off");
}

static void run_pci_op(enum pci_op op)
{
	switch (op) {
	case PCI_WAIT:
		jiffies += (take_byte() & 63ul) * HZ;
		run_restart_work(pci_get_drvdata(&w.pdev));
		break;
	case PCI_CLOSE:
		w.dev.kernel_qps.n = 0;
		break;
	case PCI_SUSPEND:
		pci_off_op(true, false);
		break;
	case PCI_RESUME:
		pci_off_op(false, false);
		break;
	case PCI_RESET:
		pci_off_op(!w.off, true);
		break;
	default:
		break;
	}
}

/* ---------------------------------------------------------------------------- a run */

static void use_device(void)
{
	for (int i = 0; i < OPS_MAX && w.left; i++) {
		u8 op = take_byte();

		if (op >= PCI_OPS)
			run_pci_op((op - PCI_OPS) % PCI_NUM);
		else if (w.has_objects)
			run_op(op % OP_NUM);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 how;

	memset(&w, 0, sizeof(w));
	w.data = data;
	w.left = size;
	how = take_byte();
	w.version = how & 1 ? take_word() : PVR_VERSION;
	w.magic = how & 2 ? take_word() : PVR_EXT_MAGIC;
	w.features = take_word();
	w.probed = jiffies;
	if (pvr_pci_probe(&w.pdev, NULL))
		return 0;
	use_device();
	w.off = true;
	pvr_pci_remove(&w.pdev);
	return 0;
}
