// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The local path while an adapter of the engine has a capture. */
#include "path/local/step.h"

enum pvr_quantum pvr_local_run_captured(struct pvr_qp *qp, unsigned int max)
{
	return local_run(qp, max, true, false);
}
