// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Choice of the path of a queue pair. */
#include "rdma/path.h"

#include <errno.h>
#include <string.h>

#include "gid/resolve.h"
#include "core/objects.h"
#include "core/state.h"

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

	qp->path_searched = true;
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
	qp->sq_local_done = 0;
	if (path->stop)
		path->stop(qp);
}

void pvr_path_end_answers(struct pvr_qp *qp)
{
	const struct pvr_path_ops **each;

	for (each = qp->adapter->engine->paths; *each; each++)
		if ((*each)->end_answers)
			(*each)->end_answers(qp);
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

void pvr_path_resume(struct pvr_qp *qp)
{
	const struct pvr_path_ops **path;

	for (path = qp->adapter->engine->paths; *path; path++)
		if ((*path)->resume)
			(*path)->resume(qp);
}

/* --------------------------------------------------------------------------- state */

#define NAME_BYTES 8

static void flight_fields(struct pvr_codec *codec, uint32_t *handle, char name[NAME_BYTES])
{
	pvr_codec_u32(codec, "qp", handle);
	pvr_codec_bytes(codec, "path", name, NAME_BYTES);
}

void pvr_path_save_in_flight(struct pvr_codec *codec, struct pvr_qp *qp)
{
	uint8_t id = qp->path_id == PVR_PATH_FAULT ? qp->path_behind : qp->path_id;
	const struct pvr_path_ops *path = qp->adapter->engine->paths[id];
	char name[NAME_BYTES] = "";

	if (!qp->sq_inflight)
		return;
	strncpy(name, path->name, NAME_BYTES - 1);
	pvr_codec_begin(codec, PVR_STATE_IN_FLIGHT);
	flight_fields(codec, &qp->handle, name);
	if (path->save)
		path->save(codec, qp);
	else
		pvr_codec_fault(codec, -EOPNOTSUPP, "requests of path %s cannot be saved",
				path->name);
	pvr_codec_end(codec);
}

static const struct pvr_path_ops *find_name(const struct pvr_engine *engine,
					    const char name[NAME_BYTES], uint8_t *id)
{
	const struct pvr_path_ops *const *paths = engine->paths;

	for (*id = 0; paths[*id]; ++*id)
		if (paths[*id]->load && !strncmp(paths[*id]->name, name, NAME_BYTES))
			return paths[*id];
	return NULL;
}

void pvr_path_load_in_flight(struct pvr_codec *codec)
{
	const struct pvr_path_ops *path;
	char name[NAME_BYTES] = "";
	struct pvr_qp *qp;
	uint32_t handle = 0;
	uint8_t id;

	flight_fields(codec, &handle, name);
	if (codec->err)
		return;
	qp = pvr_qp_get(codec->adapter, handle);
	path = find_name(codec->adapter->engine, name, &id);
	if (!qp || qp->type != PVR_QPT_RC || qp->sq_inflight ||
	    (qp->state != PVR_QPS_RTS && !qp->sq_draining)) {
		pvr_codec_fault(codec, -EINVAL, "queue pair %u can have no requests in flight",
				handle);
		return;
	}
	if (!path) {
		pvr_codec_fault(codec, -EINVAL, "path '%.8s' is unknown", name);
		return;
	}
	qp->path_id = id;
	path->load(codec, qp);
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

static enum pvr_ud_result fail_by(const struct pvr_path_ops *path, struct pvr_adapter *from,
				  uint32_t dst_qpn, const struct pvr_datagram *dgram,
				  const struct pvr_host_group *to)
{
	if (path->ud_fail)
		return path->ud_fail(from, dst_qpn, dgram, to);
	if (to && path->mcast_send)
		path->mcast_send(from, dgram, to);
	else if (!to && path->ud_send)
		return path->ud_send(from, dst_qpn, dgram);
	return PVR_UD_RESULT_ABSENT;
}

enum pvr_ud_result pvr_path_ud_fail(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram,
				    const struct pvr_host_group *to)
{
	enum pvr_ud_result result = PVR_UD_RESULT_ABSENT;
	const struct pvr_path_ops **path;

	for (path = from->engine->paths; *path && result == PVR_UD_RESULT_ABSENT; path++)
		result = fail_by(*path, from, dst_qpn, dgram, to);
	return result == PVR_UD_RESULT_ABSENT ? PVR_UD_RESULT_SENT : result;
}
