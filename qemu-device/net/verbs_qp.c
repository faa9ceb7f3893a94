// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A queue pair of an RDMA NIC, and its stream. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/verbs_qp.h"

#define HOP_LIMIT 64
/* 4.096 us << 14 is 67 ms; with 7 retries a failure is detected within 2 s */
#define TIMEOUT 14
#define RETRIES 6
#define RNR_FOR_EVER 7
#define RNR_TIMER 12 /* 0.64 ms; credits prevent RNR NAKs */
#define CQ_EVENTS_PER_TURN 16
#define MAX_SENDS (PVR_VERBS_SENDS + PVR_VERBS_READS)

/* --------------------------------------------------------- stream callbacks */

static struct ibv_sge sge_of(const struct pvr_verbs *verbs, size_t offset, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)(verbs->memory + offset),
		.length = len,
		.lkey = verbs->mr->lkey,
	};
}

static int qp_send(void *opaque, uint32_t slot, uint32_t len, uint32_t taken)
{
	const struct pvr_verbs *verbs = opaque;
	struct ibv_sge sge = sge_of(verbs, (size_t)slot * PVR_VERBS_BUFFER, len);
	struct ibv_send_wr *bad, wr = {
		.wr_id = len,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(taken),
	};

	return -ibv_post_send(verbs->qp, &wr, &bad);
}

static int qp_receive(void *opaque, uint32_t slot)
{
	const struct pvr_verbs *verbs = opaque;
	struct ibv_sge sge = sge_of(verbs, PVR_VERBS_TX_SIZE + (size_t)slot * PVR_VERBS_BUFFER,
				    PVR_VERBS_BUFFER);
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	return -ibv_post_recv(verbs->qp, &wr, &bad);
}

static void set_error(struct pvr_verbs *verbs, const char *why)
{
	const char *none = NULL;

	__atomic_compare_exchange_n(&verbs->error, &none, why, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/*
 * Flush errors carry no reason. If this queue has only those, the reason is in the other
 * one.
 */
static enum ibv_wc_status find_reason(struct pvr_verbs *verbs, const struct ibv_wc *wc)
{
	struct ibv_wc other;

	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		return wc->status;
	while (ibv_poll_cq(verbs->sends, 1, &other) > 0) {
		if (other.status != IBV_WC_SUCCESS && other.status != IBV_WC_WR_FLUSH_ERR)
			return other.status;
	}
	return wc->status;
}

static void failed(struct pvr_verbs *verbs, const struct ibv_wc *wc)
{
	set_error(verbs, ibv_wc_status_str(find_reason(verbs, wc)));
	verbs->broken = true;
}

static int poll_cq(struct pvr_verbs *verbs, struct ibv_cq *cq, struct pvr_verbs_done *done, int max)
{
	bool received = cq == verbs->receives;
	struct ibv_wc wc;
	int num = 0, n = 1;

	if (verbs->broken)
		return -ECONNRESET;
	while (num < max && (n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		if (wc.status != IBV_WC_SUCCESS || (received && !(wc.wc_flags & IBV_WC_WITH_IMM))) {
			/*
			 * Earlier completions first; the next call returns the error
			 * again.
			 */
			failed(verbs, &wc);
			return num ? num : -ECONNRESET;
		}
		if (wc.wr_id & PVR_VERBS_ID_READ) {
			pvr_verbs_rdma_read_is_done(verbs);
			continue;
		}
		done[num++] = (struct pvr_verbs_done){
			.received = received,
			.slot = (uint32_t)wc.wr_id,
			.len = received ? wc.byte_len : (uint32_t)wc.wr_id,
			.taken = received ? be32toh(wc.imm_data) : 0,
		};
	}
	return n < 0 ? -EIO : num;
}

static int qp_poll(void *opaque, struct pvr_verbs_done *done, int max)
{
	struct pvr_verbs *verbs = opaque;
	int received = poll_cq(verbs, verbs->receives, done, max), sent;

	if (received < 0 || received == max)
		return received;
	sent = poll_cq(verbs, verbs->sends, done + received, max - received);
	if (sent < 0)
		return received ? received : sent;
	return received + sent;
}

static int qp_arm(void *opaque, bool sends)
{
	const struct pvr_verbs *verbs = opaque;
	int err = ibv_req_notify_cq(verbs->receives, 0);

	if (!err && sends)
		err = ibv_req_notify_cq(verbs->sends, 0);
	return err ? -EIO : 0;
}

static const struct pvr_verbs_qp_ops qp_ops = {
	.send = qp_send,
	.receive = qp_receive,
	.poll = qp_poll,
	.arm = qp_arm,
};

ssize_t pvr_verbs_send(struct pvr_verbs *verbs, const struct iovec *iov, int count)
{
	return pvr_verbs_stream_send(&verbs->stream, iov, count);
}

ssize_t pvr_verbs_recv(struct pvr_verbs *verbs, const struct iovec *iov, int count)
{
	return pvr_verbs_stream_recv(&verbs->stream, iov, count);
}

int pvr_verbs_is_proved(struct pvr_verbs *verbs)
{
	return pvr_verbs_stream_is_proved(&verbs->stream);
}

static void kick(struct pvr_verbs *verbs)
{
	const uint64_t one = 1;

	if (write(verbs->kick.fd, &one, sizeof(one)) < 0)
		return; /* an event is pending */
}

void pvr_verbs_want_output(struct pvr_verbs *verbs)
{
	if (pvr_verbs_stream_has_room(&verbs->stream))
		kick(verbs);
}

void pvr_verbs_break(struct pvr_verbs *verbs, const char *why)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	set_error(verbs, why);
	pvr_verbs_stream_break(&verbs->stream, -ECONNRESET);
	ibv_modify_qp(verbs->qp, &attr, IBV_QP_STATE);
	kick(verbs);
}

/* ------------------------------------------------------------------- life cycle */

static bool no(struct pvr_error *err, const struct pvr_verbs *verbs, const char *what)
{
	return pvr_fail(err, "RDMA NIC %s: cannot make %s: %s", pvr_verbs_device(verbs), what,
			strerror(errno));
}

static bool make_memory(struct pvr_verbs *verbs, struct pvr_error *err)
{
	void *memory = mmap(NULL, PVR_VERBS_MEMORY_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return no(err, verbs, "buffers");
	verbs->memory = memory;
	verbs->pd = ibv_alloc_pd(verbs->place.nic->context);
	if (!verbs->pd)
		return no(err, verbs, "a protection domain");
	verbs->mr = ibv_reg_mr(verbs->pd, memory, PVR_VERBS_MEMORY_SIZE, IBV_ACCESS_LOCAL_WRITE);
	return verbs->mr || no(err, verbs, "a memory region (is ulimit -l too small?)");
}

static bool make_queues(struct pvr_verbs *verbs, struct pvr_error *err)
{
	struct ibv_context *context = verbs->place.nic->context;

	verbs->channel = ibv_create_comp_channel(context);
	if (!verbs->channel || fcntl(verbs->channel->fd, F_SETFL, O_NONBLOCK) < 0)
		return no(err, verbs, "a completion channel");
	verbs->sends = ibv_create_cq(context, MAX_SENDS, NULL, verbs->channel, 0);
	verbs->receives = ibv_create_cq(context, PVR_VERBS_RECEIVES, NULL, verbs->channel, 0);
	verbs->kick.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return (verbs->sends && verbs->receives && verbs->kick.fd >= 0) ||
	       no(err, verbs, "completion queues");
}

static bool make_qp(struct pvr_verbs *verbs, struct pvr_error *err)
{
	struct ibv_qp_init_attr init = {
		.send_cq = verbs->sends,
		.recv_cq = verbs->receives,
		.cap = {
			.max_send_wr = MAX_SENDS,
			.max_recv_wr = PVR_VERBS_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	/* The peer gets no access to memory at first. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = verbs->place.port };
	int ret;

	verbs->qp = ibv_create_qp(verbs->pd, &init);
	if (!verbs->qp)
		return no(err, verbs, "a queue pair");
	ret = ibv_modify_qp(verbs->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (!ret)
		ret = -pvr_verbs_stream_post(&verbs->stream);
	errno = ret;
	return !ret || no(err, verbs, "a queue pair that receives");
}

/*
 * Limits of RDMA READs that both sides need. A NIC needs both roles for either to be
 * useful.
 */
static void find_reads(struct pvr_verbs *verbs)
{
	const struct pvr_verbs_nic *nic = verbs->place.nic;

	if (!nic->answers || !nic->asks)
		return;
	verbs->answers = nic->answers;
	verbs->asks = nic->asks;
}

struct pvr_verbs *pvr_verbs_create(struct pvr_verbs_nics *nics, const struct pvr_address *local,
				   bool expose, struct pvr_error *err)
{
	struct pvr_verbs_place place;
	struct pvr_verbs *verbs;
	bool ok;

	if (!pvr_verbs_find_place(nics, local, &place, err))
		return NULL;
	verbs = calloc(1, sizeof(*verbs));
	if (!verbs) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	verbs->place = place;
	verbs->kick.fd = -1;
	if (expose)
		find_reads(verbs);
	pvr_verbs_nic_hold(place.nic);
	ok = make_memory(verbs, err) && make_queues(verbs, err);
	pvr_verbs_stream_init(&verbs->stream, &qp_ops, verbs, verbs->memory,
			      verbs->memory + PVR_VERBS_TX_SIZE);
	if (getrandom(&verbs->psn, sizeof(verbs->psn), 0) != sizeof(verbs->psn))
		ok = ok && pvr_fail(err, "no random numbers: %s", strerror(errno));
	verbs->psn &= 0xffffff;
	if (ok && make_qp(verbs, err))
		return verbs;
	pvr_verbs_destroy(verbs);
	return NULL;
}

static void free_queues(struct pvr_verbs *verbs)
{
	if (verbs->qp)
		ibv_destroy_qp(verbs->qp);
	if (verbs->sends)
		ibv_destroy_cq(verbs->sends);
	if (verbs->receives)
		ibv_destroy_cq(verbs->receives);
	if (verbs->channel)
		ibv_destroy_comp_channel(verbs->channel);
}

void pvr_verbs_destroy(struct pvr_verbs *verbs)
{
	assert(!verbs->rndvs && !verbs->rdma_read.mrs);
	pvr_verbs_unwatch(verbs);
	free_queues(verbs);
	if (verbs->mr)
		ibv_dereg_mr(verbs->mr);
	if (verbs->pd)
		ibv_dealloc_pd(verbs->pd);
	if (verbs->memory)
		munmap(verbs->memory, PVR_VERBS_MEMORY_SIZE);
	if (verbs->kick.fd >= 0)
		close(verbs->kick.fd);
	pvr_verbs_stream_exit(&verbs->stream);
	pvr_verbs_nic_put(verbs->place.nic);
	free(verbs);
}

/* ------------------------------------------------------------------- connecting */

void pvr_verbs_fill(const struct pvr_verbs *verbs, union pvr_any_frame *any)
{
	struct pvr_frame_verbs_qp *frame = &any->verbs_qp;

	memset(any, 0, sizeof(*any));
	frame->frame.size = htole32(sizeof(*frame));
	frame->frame.type = PVR_FRAME_VERBS_QP;
	memcpy(frame->gid, verbs->place.gid.raw, sizeof(frame->gid));
	frame->qpn = htole32(verbs->qp->qp_num);
	frame->psn = htole32(verbs->psn);
	frame->lid = htole16(verbs->place.lid);
	frame->mtu = (uint8_t)verbs->place.mtu;
	frame->reads = verbs->answers;
	frame->buffers = htole32(PVR_VERBS_BUFFERS);
	frame->buffer_size = htole32(PVR_VERBS_BUFFER);
}

static int set_receiving(struct pvr_verbs *verbs, const struct pvr_frame_verbs_qp *theirs)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = theirs->mtu < verbs->place.mtu ? theirs->mtu : verbs->place.mtu,
		.dest_qp_num = le32toh(theirs->qpn),
		.rq_psn = le32toh(theirs->psn),
		.min_rnr_timer = RNR_TIMER,
		.max_dest_rd_atomic = verbs->answers,
		.qp_access_flags = verbs->answers ? IBV_ACCESS_REMOTE_READ : 0,
		.ah_attr = {
			.is_global = 1,
			.grh = { .sgid_index = verbs->place.gid_index, .hop_limit = HOP_LIMIT },
			.dlid = le16toh(theirs->lid),
			.port_num = verbs->place.port,
		},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	return ibv_modify_qp(verbs->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
}

static int set_sending(struct pvr_verbs *verbs)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = verbs->psn,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_FOR_EVER,
		.max_rd_atomic = verbs->asks,
	};

	return ibv_modify_qp(verbs->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

bool pvr_verbs_has_rndv(const struct pvr_verbs *verbs)
{
	return verbs->answers && verbs->asks;
}

/* At most what the peer can respond to. If it is 0, the peer does not read either. */
static void limit_reads(struct pvr_verbs *verbs, uint8_t theirs)
{
	if (theirs < verbs->asks)
		verbs->asks = theirs;
	if (!verbs->asks)
		verbs->answers = 0;
}

bool pvr_verbs_connect(struct pvr_verbs *verbs, const union pvr_any_frame *theirs,
		       struct pvr_error *err)
{
	int ret;

	limit_reads(verbs, theirs->verbs_qp.reads);
	ret = set_receiving(verbs, &theirs->verbs_qp);

	if (!ret)
		ret = set_sending(verbs);
	if (ret)
		return pvr_fail(err, "RDMA NIC %s: cannot connect a queue pair: %s",
				pvr_verbs_device(verbs), strerror(ret));
	pvr_verbs_stream_set_peer(&verbs->stream, le32toh(theirs->verbs_qp.buffers),
				  le32toh(theirs->verbs_qp.buffer_size));
	return true;
}

/* ------------------------------------------------------------------- events */

bool pvr_verbs_works(const struct pvr_verbs *verbs)
{
	const struct pvr_verbs_nic *nic = verbs->place.nic;

	return !nic->gone && !(nic->down & 1ull << (verbs->place.port & 63));
}

const char *pvr_verbs_device(const struct pvr_verbs *verbs)
{
	return ibv_get_device_name(verbs->place.nic->context->device);
}

const char *pvr_verbs_error(const struct pvr_verbs *verbs)
{
	const char *error = __atomic_load_n(&verbs->error, __ATOMIC_RELAXED);

	return error ? error : "";
}

/* Call it last: the owner may destroy the queue pair. */
static void send_credit(struct pvr_verbs *verbs)
{
	verbs->ready(verbs->opaque);
}

static void news_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_verbs *verbs =
		(struct pvr_verbs *)((char *)source - offsetof(struct pvr_verbs, news));
	unsigned int left = CQ_EVENTS_PER_TURN;
	struct ibv_cq *cq;
	void *context;

	while (left-- && !ibv_get_cq_event(verbs->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	send_credit(verbs);
}

static void kick_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_verbs *verbs =
		(struct pvr_verbs *)((char *)source - offsetof(struct pvr_verbs, kick));
	uint64_t kicks;

	if (read(source->fd, &kicks, sizeof(kicks)) == sizeof(kicks))
		send_credit(verbs);
}

int pvr_verbs_watch(struct pvr_verbs *verbs, struct pvr_loop *loop, void (*ready)(void *opaque),
		    void *opaque)
{
	int err;

	verbs->ready = ready;
	verbs->opaque = opaque;
	verbs->news.fd = verbs->channel->fd;
	verbs->news.ready = news_ready;
	verbs->kick.ready = kick_ready;
	err = pvr_loop_add(loop, &verbs->news, EPOLLIN);
	return err ? err : pvr_loop_add(loop, &verbs->kick, EPOLLIN);
}

void pvr_verbs_unwatch(struct pvr_verbs *verbs)
{
	pvr_loop_remove(&verbs->news);
	pvr_loop_remove(&verbs->kick);
}
