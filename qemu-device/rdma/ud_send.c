// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Sending of datagrams without captures and faults. */
#include "rdma/ud_step.h"

enum pvr_quantum pvr_ud_run(struct pvr_qp *qp)
{
	const struct pvr_engine *engine = qp->adapter->engine;
	unsigned int max = qp->adapter->quantum_requests;

	if (!engine->observed)
		return run(qp, max, false, NULL);
	if (engine->num_faults)
		return engine->paths[PVR_PATH_FAULT]->run_ud(qp);
	return pvr_ud_run_treated(qp, max, NULL);
}
