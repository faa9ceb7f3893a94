// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Choice of the path of a queue pair. */
#include "rdma/path.h"

#include "gid/resolve.h"
#include "core/objects.h"

/*
 * Reads gid_gen before the GIDs: path_gen must never be newer than the GIDs that were
 * used.
 */
void pvr_path_find(struct pvr_qp *qp)
{
	const struct pvr_engine *engine = qp->adapter->engine;
	const struct pvr_path_ops *const *paths = engine->paths;
	enum pvr_resolve resolved = PVR_RESOLVE_NO;
	uint8_t id;

	qp->path_gen = pvr_fabric_gid_gen(qp->adapter->fabric);
	qp->path_found = PVR_PATH_DEFAULT;
	qp->path_target = PVR_PATH_DEFAULT;
	qp->peer = NULL;
	qp->peer_qp_gen = 0;
	qp->flow = NULL;
	qp->peer_adapter = NULL;
	qp->path_host = NULL;
	if (!pvr_gid_get(qp->adapter, qp->attr.ah_attr.sgid_index))
		return;
	for (id = 0; paths[id] && resolved == PVR_RESOLVE_NO; id++) {
		resolved = paths[id]->resolve(qp);
		if (resolved == PVR_RESOLVE_YES)
			qp->path_found = id;
	}
	qp->path_target = qp->path_found;
	if (engine->faults && resolved == PVR_RESOLVE_YES &&
	    paths[PVR_PATH_FAULT]->resolve(qp) == PVR_RESOLVE_YES)
		qp->path_found = PVR_PATH_FAULT;
	/* A query can get lost: an old path_gen makes each quantum send it again. */
	if (resolved == PVR_RESOLVE_PENDING)
		qp->path_gen--;
}

void pvr_path_change(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path = pvr_path_current(qp);
	/* Behind the path of faults, the current path goes on with its state of the queue pair. */
	bool stays = qp->path_found == PVR_PATH_FAULT && qp->path_target == qp->path_id;

	if (!stays && path->detach && !path->detach(qp))
		return;
	qp->path_id = qp->path_found;
	qp->path_behind = qp->path_target;
}

void pvr_path_stop(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path = pvr_path_current(qp);

	qp->sq_inflight = 0;
	if (path->stop)
		path->stop(qp);
}

void pvr_path_close(struct pvr_qp *qp)
{
	const struct pvr_path_ops *path = pvr_path_current(qp);
	const struct pvr_path_ops **each;

	pvr_path_stop(qp);
	if (path->close)
		path->close(qp);
	for (each = qp->adapter->engine->paths; *each; each++)
		if ((*each)->forget)
			(*each)->forget(qp);
	qp->path_id = PVR_PATH_DEFAULT;
	qp->path_found = PVR_PATH_DEFAULT;
	qp->path_target = PVR_PATH_DEFAULT;
}

void pvr_path_adapter_init(struct pvr_adapter *adapter)
{
	const struct pvr_path_ops **path;

	for (path = adapter->engine->paths; *path; path++)
		if ((*path)->adapter_init)
			(*path)->adapter_init(adapter);
}

void pvr_path_adapter_exit(struct pvr_adapter *adapter)
{
	const struct pvr_path_ops **path;

	for (path = adapter->engine->paths; *path; path++)
		if ((*path)->adapter_exit)
			(*path)->adapter_exit(adapter);
}

/* The path of the peer's requests may be another one than that of its own requests. */
bool pvr_path_gone(struct pvr_qp *qp)
{
	const struct pvr_path_ops **path;
	bool sent = false;

	for (path = qp->adapter->engine->paths; *path; path++)
		if ((*path)->gone)
			sent |= (*path)->gone(qp);
	return sent;
}

/* ------------------------------------------------------------------------ datagrams */

enum pvr_ud_result pvr_path_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram)
{
	enum pvr_ud_result result = PVR_UD_RESULT_ABSENT;
	const struct pvr_path_ops **path;

	for (path = from->engine->paths; *path && result == PVR_UD_RESULT_ABSENT; path++)
		if ((*path)->ud_send)
			result = (*path)->ud_send(from, dst_qpn, dgram);
	/* Lost, as on a network. */
	return result == PVR_UD_RESULT_ABSENT ? PVR_UD_RESULT_SENT : result;
}

bool pvr_path_mcast_targets(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *to)
{
	const struct pvr_path_ops **path;

	to->count = 0;
	for (path = from->engine->paths; *path; path++)
		if ((*path)->mcast_targets)
			return (*path)->mcast_targets(from, dgram, to);
	return true;
}

void pvr_path_mcast_send(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			 const struct pvr_host_group *to)
{
	const struct pvr_path_ops **path;

	for (path = from->engine->paths; *path; path++)
		if ((*path)->mcast_send)
			(*path)->mcast_send(from, dgram, to);
}
