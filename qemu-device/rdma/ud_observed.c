// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Sending of datagrams while there are captures or faults. */
#include "rdma/ud_step.h"

enum pvr_quantum pvr_ud_run_treated(struct pvr_qp *qp, unsigned int max,
				    struct pvr_ud_treatment *treatment)
{
	return run(qp, max, true, treatment);
}

/* --------------------------------------------------------------- datagrams that are held */

bool pvr_ud_send_held(struct pvr_qp *qp, struct pvr_ud_held *held)
{
	struct datagram dgram = { .from = qp, .wqe = &held->wqe };
	struct pvr_sg sg;

	pvr_sg_build_flat(&sg, qp->adapter, held->data, held->size);
	dgram.as_received.payload = &sg;
	if (!send(&dgram, NULL))
		return false;
	qp->mcast_next = 0;
	qp->mcast_taken = false;
	end_wait(qp);
	return true;
}

void pvr_ud_free_held(struct pvr_adapter *adapter, struct pvr_ud_held *held)
{
	if (held)
		pvr_charge_free(adapter, held, sizeof(*held) + held->size);
}
