/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Capture: the RoCE packets of an adapter, as a network would carry them.
 *
 * DOC: what is exact
 *
 * - Paths between VMs carry messages. The packets are made from a message when it has been
 *   executed, and cut by the path MTU.
 * - Addresses, VLANs, QPNs, keys, lengths, immediate data, PSNs and NAKs are those of the
 *   message. Payload is read from guest memory after the execution.
 * - Zeros replace payload that is not captured, and then the ICRC, so that dissectors get
 *   whole frames. Datagrams between GSIs are captured with payload.
 * - Frames of an Ethernet segment are captured as they are, except those of UD.
 * - Elsewhere ACK packets, MSN, credits and the time between the packets of a fragment do not exist
 *   in a message. Packets with such fields have a comment.
 * - Without a capture in the engine, a quantum of a send queue loads one flag.
 */
#ifndef PVR_RDMA_CAPTURE_H
#define PVR_RDMA_CAPTURE_H

#include "rdma/wr.h"

struct pvr_datagram;
struct pvr_roce_frame;

/* Return: whether an adapter of the engine has a capture. */
static inline bool pvr_captures(const struct pvr_adapter *adapter)
{
	return adapter->engine->captures;
}

/*
 * Capture the packets of a request's fragment.
 * @qp: of the adapter with the capture; it sends the request if @is_requester
 */
void pvr_capture_request(const struct pvr_qp *qp, bool is_requester,
			 const struct pvr_request *request);
/*
 * Both, at the responder, for a request from another process.
 * @payload: of the fragment; NULL: not known
 */
void pvr_capture_inbound(const struct pvr_qp *to, const struct pvr_request *request,
			 const struct pvr_sg *payload, struct pvr_syndrome syndrome);
/* Capture the packets of the response to a fragment. @qp: as above */
void pvr_capture_response(const struct pvr_qp *qp, bool is_requester,
			  const struct pvr_request *request, struct pvr_syndrome syndrome);
/* Both, for the adapters of both ends. @to: NULL if there is no responder */
void pvr_capture_exchange(const struct pvr_qp *from, const struct pvr_qp *to,
			  const struct pvr_request *request, struct pvr_syndrome syndrome);

/*
 * Capture a whole frame of a segment, of RC or UC.
 * @data, @bytes: from its Ethernet header to its ICRC; @frame: the same, read; @payload: where
 * its payload begins
 */
void pvr_capture_frame(const struct pvr_adapter *adapter, bool outgoing, const uint8_t *data,
		       size_t bytes, const struct pvr_roce_frame *frame, size_t payload);

/* Capture a datagram that @from sends. */
void pvr_capture_sent_datagram(const struct pvr_qp *from, uint32_t dst_qpn,
			       const struct pvr_datagram *dgram);
/* Capture a datagram to @to. @qp: NULL if the adapter has no such queue pair */
void pvr_capture_received_datagram(const struct pvr_adapter *to, const struct pvr_qp *qp,
				   const struct pvr_datagram *dgram);

#endif /* PVR_RDMA_CAPTURE_H */
