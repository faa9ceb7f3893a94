// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The local path for a request whose payload is damaged, with or without a capture. */
#include "path/local/step.h"

enum pvr_quantum pvr_local_run_damaged(struct pvr_qp *qp, unsigned int max)
{
	return local_run(qp, max, true, true);
}
