/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a lying device says, and when. */
#ifndef PVR_LIES_H
#define PVR_LIES_H

#include "core/objects.h"

enum lie_when {
	LIE_REGISTER, /* the driver reads register offset */
	LIE_CAPS, /* the caps are in the shared region */
	LIE_RESPONSE, /* the response to cmd is in its slot */
	LIE_COMPLETION, /* a completion comes to a CQ of the driver's own */
	LIE_EVENT, /* cmd was executed: events that nobody caused */
};

/* What is about to be told, and lies about it change. Those that do not apply are NULL. */
struct lie_moment {
	struct pvr_adapter *adapter;
	const union pvr_cmd_req *req; /* as the driver wrote it; the driver sleeps */
	void *told; /* register, caps, response */
	struct pvr_qp *qp;
	struct pvr_cq *cq;
	struct pvrdma_cqe *cqe;
	bool solicited;
};

struct lie {
	const char *name;
	enum lie_when when;
	uint32_t cmd; /* not of LIE_CAPS, LIE_COMPLETION; of LIE_REGISTER: the last command */
	/* Either so many bytes of what is told become value, or tell() does it. */
	uint32_t offset, size;
	uint64_t value;
	void (*tell)(const struct lie_moment *moment);
};

/* Of LIE_REGISTER: whatever the last command was, if there was one. */
#define LIE_ANY_CMD 0xffffffffu

/* NULL if there is none of that name. */
const struct lie *lie_find(const char *name);

/* The device as it is, without the lies. */
void __real_pvr_cq_push(struct pvr_qp *qp, struct pvr_cq *cq, struct pvrdma_cqe *cqe,
			bool solicited);

#endif /* PVR_LIES_H */
