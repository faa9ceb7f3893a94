/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The faults of the rogue device: which data it corrupts, and when. */
#ifndef PVR_FAULTS_H
#define PVR_FAULTS_H

#include "core/objects.h"

enum fault_when {
	FAULT_REGISTER, /* the driver reads register offset */
	FAULT_CAPS, /* the caps are in the shared region */
	FAULT_RESPONSE, /* the response to cmd is in its slot */
	FAULT_COMPLETION, /* a completion is about to come to a CQ of the driver's own */
	FAULT_COMPLETED, /* it is in the ring */
	FAULT_EVENT, /* cmd was executed: unsolicited events follow */
};

/* The data that a fault may change. Pointers that do not apply are NULL. */
struct fault_site {
	struct pvr_adapter *adapter;
	const union pvr_cmd_req *req; /* as the driver wrote it; the driver sleeps */
	void *data; /* register, caps, response, completion */
	struct pvr_qp *qp;
	struct pvr_cq *cq;
	struct pvrdma_cqe *cqe;
	bool solicited;
};

struct fault {
	const char *name;
	enum fault_when when;
	/* Only for FAULT_RESPONSE, FAULT_EVENT and FAULT_REGISTER, there the last command. */
	uint32_t cmd;
	/* If apply() is NULL, size bytes of the data at offset become value. */
	uint32_t offset, size;
	uint64_t value;
	void (*apply)(const struct fault_site *site);
};

/* In FAULT_REGISTER: any last command, or none. */
#define FAULT_ANY_CMD 0xffffffffu

/* Return: NULL if no fault has that name. */
const struct fault *fault_find(const char *name);

/* The device without faults. */
void __real_pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
			bool solicited);

#endif /* PVR_FAULTS_H */
