// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The completer: responses of other hosts to requests of local queue pairs.
 *
 * DOC: accepted responses
 *
 * * A response names a queue pair by number, GID and epoch. It is accepted if the queue
 *   pair has in-flight WRs and its peer is on the host of this connection.
 * * All other responses are late or forged. They are ignored, and so is a response to a
 *   request that was never sent.
 * * ACKs, READ data and atomic values are valid by any connection of that host. A request
 *   to resend is valid only by the connection in use.
 * * All requests before the PSN and offset in a response are complete, in order.
 * * A READ or an atomic is complete only with its data. If the connection with its
 *   response has broken, it is sent again. Requests behind it then need another ACK.
 * * READ data may begin with bytes that have arrived before; these are discarded.
 * * A responder without PVR_HELLO_F_TAIL drops a fragment that it has executed in part. Its
 *   ACK is then inside the fragment, and the rest is sent again.
 */
#include <endian.h>
#include <errno.h>

#include "rdma/flips.h"
#include "rdma/capture.h"
#include "rdma/cq.h"
#include "rdma/completer.h"
#include "rdma/wr.h"
#include "rdma/page_fault.h"
#include "rdma/path.h"
#include "rdma/sched.h"
#include "gid/resolve.h"
#include "core/ext_dma.h"
#include "path/pipe/capture.h"
#include "path/pipe/sq.h"
#include "rdma/qp.h"
#include "rdma/worker.h"
#include "gid/fabric.h"

#define GRACE_RESEND_NS 100000u /* first interval of resends in the grace */

/* ----------------------------------------------------------------- the queue pair */

struct addressee {
	const char *fabric;
	const uint8_t *gid;
	__le32 qpn, epoch;
};

static struct pvr_pipe_sq *find_locked(struct pvr_adapter *adapter, const struct pvr_route *route,
				       const struct addressee *to)
{
	struct pvr_qp *qp = pvr_qp_find(adapter, le32toh(to->qpn));

	if (!qp || qp->epoch != le32toh(to->epoch) || !qp->pipe_sq || !qp->sq_inflight ||
	    !pvr_pipe_is_sending(qp) || qp->pipe_sq->route.host != route->host)
		return NULL;
	if (adapter->link_up && pvr_adapter_may_request(adapter))
		return qp->pipe_sq;
	/* Its guest's memory is not accessible now: resend in a later quantum. No response ends the wait. */
	qp->pipe_sq->gap = true;
	if (qp->wait == PVR_QP_WAIT_ACKS)
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	return NULL;
}

/*
 * Return: NULL, or a send queue with its adapter locked. The caller releases it by put().
 */
static struct pvr_pipe_sq *get(const struct pvr_route *route, const struct addressee *to)
{
	struct pvr_adapter *adapter;
	struct pvr_pipe_sq *sq;

	adapter = pvr_fabric_look_up(pvr_host_engine(route->host), to->fabric, to->gid, 0);
	if (!adapter)
		return NULL;
	pvr_adapter_lock(adapter);
	sq = find_locked(adapter, route, to);
	if (!sq)
		pvr_adapter_unlock(adapter);
	return sq;
}

static void put(struct pvr_pipe_sq *sq)
{
	struct pvr_adapter *adapter = sq->qp->adapter;

	pvr_publish(adapter);
	pvr_adapter_unlock(adapter);
}

/* Return: true if the response arrived by the connection in use. */
static bool is_current(const struct pvr_pipe_sq *sq, const struct pvr_route *route)
{
	return sq->route.kind == route->kind && sq->route.slot == route->slot &&
	       sq->route.generation == route->generation;
}

/* --------------------------------------------------------------------- PSN and offset */

/* Return: true if @done bytes of in-flight WR @i were sent at least once. */
static bool was_sent(struct pvr_pipe_sq *sq, uint32_t i, uint64_t done)
{
	if (i + 1 < sq->qp->sq_inflight)
		return true;
	return done <= sq->highest_sent;
}

/*
 * Finds the in-flight WR that starts at @psn.
 * @index: set to its index, or to sq_inflight if @psn is behind the last in-flight WR
 * Return: false if @psn and @done do not lie within the sent requests.
 */
static bool find_inflight(struct pvr_pipe_sq *sq, uint32_t psn, uint64_t done, uint32_t *index)
{
	uint32_t i, n = sq->qp->sq_inflight;
	struct pvr_inflight *inflight;

	for (i = 0; i < n; i++) {
		inflight = pvr_inflight(sq, i);
		if (inflight->kind == PVR_OP_LOCAL || inflight->psn != psn)
			continue;
		*index = i;
		/*
		 * @done is below the length: the end of a message is the next message's
		 * PSN.
		 */
		return (!done || done < inflight->length) && was_sent(sq, i, done);
	}
	*index = n;
	return psn == sq->qp->sq_psn && !done && sq->complete;
}

static void capture(struct pvr_pipe_sq *sq, const struct pvr_pipe_answer *answer)
{
	if (pvr_captures(sq->qp->adapter))
		pvr_pipe_capture_answer(sq, answer);
}

static void complete_first(struct pvr_pipe_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	capture(sq, &(struct pvr_pipe_answer){ .wqe = &wqe, .syndrome = pvr_pipe_acked() });
	pvr_pipe_complete(sq, &wqe);
}

/* Completes local operations that are now the oldest in-flight WRs. */
static void complete_own(struct pvr_pipe_sq *sq)
{
	while (sq->qp->sq_inflight && pvr_inflight(sq, 0)->kind == PVR_OP_LOCAL)
		complete_first(sq);
}

/*
 * Completes in-flight WRs before index @index, up to the first READ or atomic without
 * data. Return: number of completed WRs.
 */
static uint32_t complete_before(struct pvr_pipe_sq *sq, uint32_t index)
{
	uint32_t n = 0;

	/* A full CQ fails the queue pair, and sq_inflight becomes 0. */
	while (n < index && sq->qp->sq_inflight &&
	       !pvr_inflight_has_response(pvr_inflight(sq, 0))) {
		complete_first(sq);
		n++;
	}
	complete_own(sq);
	return n;
}

/*
 * The wait for a retry has started: further negative responses are to requests sent
 * before it and do not count.
 */
static bool is_waiting(const struct pvr_qp *qp)
{
	return qp->wait == PVR_QP_WAIT_RNR || qp->wait == PVR_QP_WAIT_RETRY;
}

/*
 * A new connection resumes it, earlier than a timer. A queue pair that waits for room in its
 * connection is none: room comes at once, and would send the same request again and again.
 */
static bool is_without_connection(const struct pvr_pipe_sq *sq)
{
	return sq->qp->wait == PVR_QP_WAIT_CONN && !pvr_pipe_is_routed(sq);
}

static void send_again(struct pvr_pipe_sq *sq)
{
	struct pvr_qp *qp = sq->qp;

	if (is_waiting(qp))
		return;
	sq->probing = false;
	pvr_pipe_rewind(sq);
	if (qp->wait == PVR_QP_WAIT_ACKS)
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
	pvr_sched_kick(qp);
}

/*
 * Return: whether the last fragment that was sent has byte @done of the oldest in-flight WR, but
 * does not begin with it. The fragments before it are followed by one that is out of order.
 */
static bool is_in_last_fragment(const struct pvr_pipe_sq *sq, uint32_t psn, uint64_t done)
{
	return sq->last_psn == psn && sq->last_offset < done && (sq->cursor || done < sq->sent);
}

/*
 * The responder has @done bytes of the oldest in-flight WR. Return: whether that is
 * progress.
 */
static bool partly_done(struct pvr_pipe_sq *sq, uint64_t done)
{
	struct pvr_qp *qp = sq->qp;

	if (done <= qp->sq_offset || pvr_inflight_has_response(pvr_inflight(sq, 0)))
		return false;
	qp->sq_offset = done;
	if (!sq->route.has_tail && is_in_last_fragment(sq, pvr_inflight(sq, 0)->psn, done))
		send_again(sq);
	else if (!sq->cursor && sq->sent < done)
		sq->sent = done;
	return true;
}

static void wake(struct pvr_qp *qp)
{
	switch (qp->wait) {
	case PVR_QP_WAIT_ACKS:
		pvr_qp_set_wait(qp, PVR_QP_RUNNING);
		pvr_sched_kick(qp);
		break;
	case PVR_QP_WAIT_RNR:
	case PVR_QP_WAIT_RETRY:
		pvr_requester_resume(qp);
		break;
	default: /* PVR_QP_WAIT_CONN ends with a connection only */
		break;
	}
}

/*
 * With requests in flight the guest needs no doorbell, see rdma/db_suppress.c. So check
 * the queue for new requests.
 */
static void check_queue(struct pvr_qp *qp)
{
	if (qp->db_suppress_shm && qp->wait == PVR_QP_RUNNING &&
	    (!qp->sq_inflight || pvr_requester_has_work(qp)))
		pvr_sched_kick(qp);
}

/*
 * The responder has made progress: restores the retry counters and resumes the queue
 * pair.
 */
static void progressed(struct pvr_pipe_sq *sq)
{
	struct pvr_qp *qp = sq->qp;

	if (!pvr_pipe_is_sending(qp))
		return;
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->unanswered = false;
	qp->rnr_nak = false;
	sq->probing = false;
	if (qp->attr.timeout)
		sq->progress = pvr_now(qp->adapter->engine);
	if (!qp->sq_inflight && qp->wait != PVR_QP_WAIT_CONN)
		pvr_pipe_enlist(sq, NULL);
	if (qp->sq_draining && !qp->sq_inflight)
		pvr_requester_drained(qp);
	else
		wake(qp);
	check_queue(qp);
}

/* Completes all requests before @psn and @done. Return: false if these were not sent. */
static bool reach(struct pvr_pipe_sq *sq, uint32_t psn, uint64_t done)
{
	bool progress;
	uint32_t index, n;

	if (!find_inflight(sq, psn, done, &index))
		return false;
	n = complete_before(sq, index);
	progress = n;
	/*
	 * complete_before() also completes local operations, so check which WR is the
	 * oldest now.
	 */
	if (done && sq->qp->sq_inflight && pvr_inflight(sq, 0)->psn == psn)
		progress |= partly_done(sq, done);
	if (progress)
		progressed(sq);
	return true;
}

/* ------------------------------------------------------------------ errors */

/* Return: true if the oldest in-flight WR starts at @psn: the response is about it. */
static bool is_first(struct pvr_pipe_sq *sq, uint32_t psn)
{
	return sq->qp->sq_inflight && pvr_pipe_is_sending(sq->qp) &&
	       pvr_inflight(sq, 0)->psn == psn;
}

static void refused(struct pvr_pipe_sq *sq, uint8_t nak)
{
	static const enum pvrdma_wc_status status[PVR_FRAME_NAK_NUM] = {
		[PVR_FRAME_NAK_INVALID_REQUEST] = PVRDMA_WC_REM_INV_REQ_ERR,
		[PVR_FRAME_NAK_ACCESS] = PVRDMA_WC_REM_ACCESS_ERR,
		[PVR_FRAME_NAK_OPERATION] = PVRDMA_WC_REM_OP_ERR,
	};
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	capture(sq, &(struct pvr_pipe_answer){
			    .wqe = &wqe,
			    .syndrome = { .kind = PVR_SYN_NAK, .status = status[nak] },
		    });
	pvr_requester_fail(sq->qp, &wqe, status[nak], "the responder refused a request");
}

/*
 * No frame reports that a receive is posted. So without RNR retries the request is sent
 * again within the grace, and each time after twice the time.
 */
static uint64_t rnr_wait_time(const struct pvr_qp *qp, uint64_t ns)
{
	uint64_t next;

	if (qp->attr.rnr_retry)
		return ns;
	next = pvr_running_time(qp->adapter) - qp->rnr_since;
	if (next < GRACE_RESEND_NS)
		next = GRACE_RESEND_NS;
	return next < ns ? next : ns;
}

static void not_ready(struct pvr_pipe_sq *sq, uint64_t ns)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (is_waiting(sq->qp))
		return;
	sq->probing = false;
	pvr_pipe_rewind(sq);
	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	capture(sq, &(struct pvr_pipe_answer){ .wqe = &wqe, .syndrome = { .kind = PVR_SYN_RNR } });
	ns = pvr_requester_rnr_nak(sq->qp, &wqe, ns);
	if (ns)
		pvr_requester_wait_rnr(sq->qp, rnr_wait_time(sq->qp, ns));
}

/* Send again after @ns: a page is absent, here or at the responder. */
static void wait_for_page(struct pvr_pipe_sq *sq, uint64_t ns)
{
	struct pvr_qp *qp = sq->qp;

	if (is_waiting(qp))
		return;
	sq->probing = false;
	qp->unanswered = false;
	pvr_pipe_rewind(sq);
	if (!is_without_connection(sq))
		pvr_requester_wait_page(qp, ns);
}

/*
 * Send a first fragment again after @ns: the responder's adapter is stopped. A change of the
 * GID's location resumes it earlier, see pvr_host_resume_fabric().
 */
static void held(struct pvr_pipe_sq *sq, uint64_t ns)
{
	struct pvr_qp *qp = sq->qp;

	if (is_waiting(qp))
		return;
	sq->probing = true;
	qp->unanswered = false;
	pvr_pipe_rewind(sq);
	if (!is_without_connection(sq))
		pvr_requester_await(qp, ns);
}

static void no_response(struct pvr_pipe_sq *sq)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;

	if (is_waiting(sq->qp))
		return;
	sq->probing = true;
	pvr_pipe_rewind(sq);
	pvr_wq_fetch_send_hdr(&sq->qp->sq, &wqe);
	pvr_requester_no_response(sq->qp, &wqe);
}

/* ------------------------------------------------------------------------- frames */

/*
 * Handles the syndrome, which is about the oldest in-flight WR after those before it have
 * completed.
 */
static void judge(struct pvr_pipe_sq *sq, const struct pvr_frame_ack *frame, bool current)
{
	uint32_t psn = le32toh(frame->psn);

	switch (frame->syndrome) {
	case PVR_FRAME_SYN_NAK:
		if (is_first(sq, psn))
			refused(sq, frame->nak);
		break;
	case PVR_FRAME_SYN_RNR:
		if (is_first(sq, psn) && current)
			not_ready(sq, le64toh(frame->rnr_ns));
		break;
	case PVR_FRAME_SYN_PAGE:
		if (is_first(sq, psn) && current)
			wait_for_page(sq, le64toh(frame->rnr_ns));
		break;
	case PVR_FRAME_SYN_HELD:
		/* Also about a READ before @psn, whose data are not there. */
		if (current && sq->qp->sq_inflight && pvr_pipe_is_sending(sq->qp))
			held(sq, le64toh(frame->rnr_ns));
		break;
	case PVR_FRAME_SYN_PSN_SEQ_ERR:
		if (current && sq->qp->sq_inflight && pvr_pipe_is_sending(sq->qp))
			send_again(sq);
		break;
	default:
		break;
	}
}

/* Bounds the frames between hosts that refer to each other. */
#define FOUND_ELSEWHERE_NS 1000000u

static bool is_absence(const struct pvr_frame_ack *frame)
{
	return frame->syndrome == PVR_FRAME_SYN_NO_QP || frame->syndrome == PVR_FRAME_SYN_NO_GID;
}

/*
 * Handles NO_QP and NO_GID for the oldest in-flight WR. Requests behind it were not
 * executed either.
 */
static void absent(struct pvr_pipe_sq *sq, const struct pvr_frame_ack *frame, bool current)
{
	struct pvr_qp *qp = sq->qp;
	bool again = qp->unanswered;

	if (!current || !is_first(sq, le32toh(frame->psn)))
		return;
	if (frame->syndrome == PVR_FRAME_SYN_NO_GID) {
		pvr_gid_left_host(qp->adapter->engine, sq->route.host, qp->adapter->fabric->name,
				  qp->attr.ah_attr.dgid);
		/* The directory wakes queue pairs for GIDs that were asked for. */
		pvr_path_refresh(qp);
	}
	no_response(sq);
	if (qp->wait != PVR_QP_WAIT_RETRY)
		return;
	if (frame->syndrome == PVR_FRAME_SYN_NO_QP)
		pvr_requester_ask_again(qp);
	else if (again && (!qp->attr.timeout || PVR_ASK_AGAIN_NS < 4096ull << qp->attr.timeout)) {
		pvr_requester_await(qp, PVR_ASK_AGAIN_NS);
		qp->resumes_by_timer = true;
	} else if (qp->peer_adapter || (qp->path_host && qp->path_host != sq->route.host)) {
		/* It is known at another host already, so no event will resume the queue pair. */
		pvr_requester_await(qp, FOUND_ELSEWHERE_NS);
	}
}

void pvr_pipe_ack(const struct pvr_route *route, const char *fabric,
		  const struct pvr_frame_ack *frame)
{
	struct addressee to = { fabric, frame->gid, frame->qpn, frame->epoch };
	struct pvr_pipe_sq *sq = get(route, &to);
	bool current;

	if (!sq)
		return;
	current = is_current(sq, route);
	if (is_absence(frame))
		absent(sq, frame, current);
	else if (reach(sq, le32toh(frame->psn), le64toh(frame->offset)))
		judge(sq, frame, current);
	put(sq);
}

/*
 * Completes all requests before @psn. Return: the in-flight WR at @psn if it is now the
 * oldest and of this kind, else NULL.
 */
static struct pvr_inflight *first_at(struct pvr_pipe_sq *sq, uint32_t psn, uint8_t kind)
{
	struct pvr_inflight *inflight;
	uint32_t index;

	if (!find_inflight(sq, psn, 0, &index) || index == sq->qp->sq_inflight ||
	    pvr_inflight(sq, index)->kind != kind || !reach(sq, psn, 0) || !is_first(sq, psn))
		return NULL;
	inflight = pvr_inflight(sq, 0);
	return inflight->kind == kind ? inflight : NULL;
}

/*
 * Finds the destination of the response in the current WQE. Return: false if the queue
 * pair has failed because the WQE has changed.
 */
static bool find_target(struct pvr_pipe_sq *sq, const struct pvr_inflight *inflight,
			struct pvr_send_wqe *wqe, struct pvr_sg *sg)
{
	struct pvr_qp *qp = sq->qp;
	const struct pvr_opcode *op;
	enum pvrdma_wc_status status = PVRDMA_WC_LOC_QP_OP_ERR;

	pvr_wq_fetch_send(&qp->sq, wqe);
	op = pvr_opcode(wqe->hdr.opcode);
	if (op->kind == inflight->kind)
		status = pvr_prepare(sg, qp, wqe, op, 0);
	if (status == PVRDMA_WC_SUCCESS && sg->total != inflight->length)
		status = PVRDMA_WC_LOC_QP_OP_ERR;
	if (status == PVRDMA_WC_SUCCESS)
		return true;
	pvr_requester_fail(qp, wqe, status, "WQE was changed after it was posted");
	return false;
}

/*
 * A response could not be stored. If its page is absent, because the guest has taken it since
 * the request was sent, the request is sent again.
 */
static void not_stored(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe,
		       const struct pvr_sg *sg, uint64_t offset, uint64_t len)
{
	uint32_t wait_ns = PVR_PAGE_WAIT_MIN_NS;

	if (pvr_page_fault(sg, offset, len, &wait_ns) == PVR_PAGE_ABSENT)
		wait_for_page(sq, wait_ns);
	else
		pvr_requester_fail(sq->qp, wqe, PVRDMA_WC_LOC_PROT_ERR,
				   "memory for a response was unplugged");
}

/* The response of the oldest in-flight WR is complete. */
static void answered(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe)
{
	pvr_pipe_complete(sq, wqe);
	complete_own(sq);
	progressed(sq);
}

static void value_arrived(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe,
			  const struct pvr_sg *target)
{
	capture(sq, &(struct pvr_pipe_answer){
			    .wqe = wqe, .target = target, .syndrome = pvr_pipe_acked() });
	answered(sq, wqe);
}

void pvr_pipe_atomic_ack(const struct pvr_route *route, const char *fabric,
			 const struct pvr_frame_atomic_ack *frame)
{
	struct addressee to = { fabric, frame->gid, frame->qpn, frame->epoch };
	struct pvr_pipe_sq *sq = get(route, &to);
	uint64_t value = le64toh(frame->value);
	const struct pvr_inflight *inflight;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;

	if (!sq)
		return;
	inflight = first_at(sq, le32toh(frame->psn), PVR_OP_ATOMIC);
	if (inflight && find_target(sq, inflight, &wqe, &sg)) {
		if (pvr_sg_write(&sg, &value, sizeof(value)))
			not_stored(sq, &wqe, &sg, 0, sizeof(value));
		else
			value_arrived(sq, &wqe, &sg);
	}
	put(sq);
}

/* The fragment up to byte @end has been read. */
static void fragment_read(struct pvr_pipe_sq *sq, const struct pvr_send_wqe *wqe, uint64_t end,
			  uint64_t length)
{
	struct pvr_qp *qp = sq->qp;

	if (end == length) {
		answered(sq, wqe);
		return;
	}
	qp->sq_offset = end;
	if (!sq->cursor && sq->sent < end)
		sq->sent = end;
	progressed(sq);
}

static enum pvr_handled take_data(struct pvr_pipe_sq *sq, const struct pvr_route *route,
				  const struct pvr_frame_read_data *frame)
{
	uint64_t offset = le64toh(frame->offset), end = offset + le32toh(frame->chunk);
	const struct pvr_inflight *inflight;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	struct pvr_sg sg PVR_UNINITIALIZED;
	uint64_t length, begin;
	int ret = 1;

	inflight = first_at(sq, le32toh(frame->psn), PVR_OP_READ);
	/* Accept only what has the next byte of the READ, and only if it was requested. */
	if (!inflight || offset > sq->qp->sq_offset || end > inflight->length ||
	    (end <= sq->qp->sq_offset && inflight->length) || !was_sent(sq, 0, end))
		return PVR_HANDLED;
	length = inflight->length;
	begin = sq->qp->sq_offset;
	pvr_ext_dma_revoke_dst(sq->qp, pvr_req_conn_ext_dma(route));
	if (!find_target(sq, inflight, &wqe, &sg))
		return PVR_HANDLED;
	if (end > offset)
		ret = pvr_req_conn_recv_payload(route, sq->qp, &sg, offset, end - offset,
						begin - offset);
	if (!ret)
		return PVR_HANDLED_PARTLY;
	if (ret < 0) {
		not_stored(sq, &wqe, &sg, begin, end - begin);
	} else {
		if (sq->qp->adapter->engine->observed && sq->qp->flips)
			pvr_flips_apply(sq->qp->flips, &sg, begin, end - begin);
		capture(sq, &(struct pvr_pipe_answer){ .wqe = &wqe,
						       .target = &sg,
						       .offset = begin,
						       .chunk = end - begin,
						       .syndrome = pvr_pipe_acked() });
		fragment_read(sq, &wqe, end, length);
	}
	return PVR_HANDLED;
}

enum pvr_handled pvr_pipe_read_data(const struct pvr_route *route, const char *fabric,
				    const struct pvr_frame_read_data *frame)
{
	struct addressee to = { fabric, frame->gid, frame->qpn, frame->epoch };
	struct pvr_pipe_sq *sq = get(route, &to);
	enum pvr_handled handled;

	if (!sq)
		return PVR_HANDLED;
	handled = take_data(sq, route, frame);
	put(sq);
	return handled;
}
