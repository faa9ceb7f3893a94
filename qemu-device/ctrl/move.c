// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Adapters that move to another host, see core/move.h. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/adapter.h"
#include "core/objects.h"
#include "core/state.h"
#include "ctrl/ctrl.h"
#include "gid/fabric.h"
#include "gid/referral.h"
#include "gid/resolve.h"
#include "rdma/peer_gone.h"
#include "rdma/qp_sweep.h"
#include "rdma/worker.h"

/* A source that does not respond within this time is dead. */
#define TAKE_NS 1000000000ull
#define ASK_AGAIN_NS 20000000ull
#define SILENCE_NS 200000000ull /* then other destinations are asked, too */

static bool is_token(const uint8_t token[PVR_TOKEN_BYTES])
{
	static const uint8_t none[PVR_TOKEN_BYTES];

	return memcmp(token, none, sizeof(none)) != 0;
}

/* The time does not depend on the tokens: a host cannot find one byte by byte. */
static bool is_same_token(const uint8_t a[PVR_TOKEN_BYTES], const uint8_t b[PVR_TOKEN_BYTES])
{
	volatile uint8_t differs = 0;
	unsigned int i;

	for (i = 0; i < PVR_TOKEN_BYTES; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* ----------------------------------------------------------------------- the state */

/* LOADED: the state is the last one that was read here, and the adapter has not run since. */
static bool has_last_state(const struct pvr_adapter *adapter)
{
	const struct pvr_move *move = &adapter->move;

	return adapter->run_state == PVR_RUN_LOADED && is_token(move->loaded) &&
	       is_same_token(move->loaded, move->token) && !move->ran;
}

static void forget_taker(struct pvr_move *move)
{
	move->to = NULL;
	move->to_load = 0;
	move->done = false;
}

/* Without random bytes there is no token, and the state can be used only once its source is gone. */
void pvr_move_new_token(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;
	bool is_last = has_last_state(adapter);

	/* It was given to another host, and stays given. */
	if (is_last && move->to)
		return;
	move->ran = false;
	move->ran_elsewhere = false;
	move->has_come_back = false;
	move->was_read = true;
	forget_taker(move);
	if (getrandom(move->token, sizeof(move->token), GRND_NONBLOCK) != sizeof(move->token))
		memset(move->token, 0, sizeof(move->token));
	if (is_last)
		memcpy(move->loaded, move->token, sizeof(move->loaded));
}

void pvr_move_keep_token(struct pvr_adapter *adapter)
{
	const struct pvr_move *move = &adapter->move;

	if (adapter->run_state != PVR_RUN_STOPPED || move->ran || move->to ||
	    !is_token(move->token))
		pvr_move_new_token(adapter);
}

void pvr_move_new_load(struct pvr_adapter *adapter)
{
	uint64_t *load = &adapter->move.load;

	if (getrandom(load, sizeof(*load), GRND_NONBLOCK) != sizeof(*load))
		*load = 0;
}

/* ':' is in no name of a host. Without random bytes all such hosts are the same one. */
void pvr_move_init(struct pvr_engine *engine)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = 0;
	snprintf(engine->origin, sizeof(engine->origin), ":%016" PRIx64, number);
}

/* Return: PVR_MOVE_NAME_MAX bytes. */
static char *own_origin(struct pvr_engine *engine)
{
	return engine->name[0] ? engine->name : engine->origin;
}

/* ns since 1970: hosts have no other clock in common. */
static uint64_t wall_clock(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

void pvr_move_state(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_move *move = &adapter->move;
	uint64_t now;

	if (!codec->loads && is_token(move->token)) {
		now = wall_clock();
		pvr_codec_bytes(codec, "token", move->token, sizeof(move->token));
		pvr_codec_bytes(codec, "host", own_origin(adapter->engine), sizeof(move->source));
		pvr_codec_u64(codec, "time", &now);
	}
	if (!codec->loads)
		return;
	memset(move->loaded, 0, sizeof(move->loaded));
	move->source[0] = '\0';
	move->saved_at = 0;
	/* Older daemons without other hosts write nothing of this. */
	if (!codec->left)
		return;
	pvr_codec_bytes(codec, "token", move->loaded, sizeof(move->loaded));
	pvr_codec_bytes(codec, "host", move->source, sizeof(move->source));
	if (!codec->err && !memchr(move->source, '\0', sizeof(move->source)))
		pvr_codec_fault(codec, -EINVAL, "the name of the host has no end");
	/* Older daemons write none. */
	if (codec->left)
		pvr_codec_u64(codec, "time", &move->saved_at);
}

void pvr_adapter_load_is_last(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;

	pvr_adapter_lock(adapter);
	pvr_move_need_source(adapter, false);
	memcpy(move->token, move->loaded, sizeof(move->token));
	move->ran = false;
	move->has_come_back = false;
	move->was_read = false;
	if (move->source[0] == ':')
		strcpy(adapter->engine->origin, move->source);
	/* Its name can be another one than that of the process before. */
	memcpy(move->source, own_origin(adapter->engine), sizeof(move->source));
	pvr_adapter_unlock(adapter);
}

/* -------------------------------------------------------------------- the destination */

static bool is_from_here(const struct pvr_adapter *adapter)
{
	return !strcmp(adapter->move.source, own_origin(adapter->engine));
}

/* Its peers have not waited for it. A clock that differs by more than their time is as bad. */
static bool is_older_than_hold(const struct pvr_adapter *adapter)
{
	uint64_t saved = adapter->move.saved_at, now = wall_clock();

	return saved && (now > saved ? now - saved : saved - now) > adapter->engine->hold_ns;
}

/* After twice the time of connections the state has none, even if the clocks of hosts differ. */
static uint32_t claim_life(const struct pvr_engine *engine)
{
	return (uint32_t)(2 * engine->hold_ns / 1000000000u) + 60;
}

static enum pvr_claim claim_token(const struct pvr_adapter *adapter,
				  const uint8_t token[PVR_TOKEN_BYTES],
				  struct pvr_state_claim *what)
{
	const struct pvr_fabrics *fabrics = adapter->engine->fabrics;

	what->life = claim_life(adapter->engine);
	snprintf(what->fabric, sizeof(what->fabric), "%s", adapter->fabric->name);
	memcpy(what->mac, adapter->mac, sizeof(what->mac));
	memcpy(what->token, token, sizeof(what->token));
	if (!fabrics->gid_ops || !fabrics->gid_ops->claim_state)
		return PVR_CLAIM_NONE;
	return fabrics->gid_ops->claim_state(fabrics->gid_opaque, what);
}

/* If a destination has won before, it has found this host silent: see pvr_engine_state_claimed(). */
void pvr_move_void_token(struct pvr_adapter *adapter)
{
	struct pvr_state_claim what = { .runs_on = true };
	struct pvr_move *move = &adapter->move;

	if (!is_token(move->token) || !move->was_read || move->ran || move->to)
		return;
	claim_token(adapter, move->token, &what);
}

static void claim(struct pvr_adapter *adapter, bool waits)
{
	struct pvr_move *move = &adapter->move;
	struct pvr_state_claim what = { .waits = waits, .load = move->load };
	enum pvr_claim result = claim_token(adapter, move->loaded, &what);

	move->claim = result == PVR_CLAIM_NONE ? PVR_CLAIM_WON : result;
	snprintf(move->claim_detail, sizeof(move->claim_detail), "out of memory");
}

/* The source may be alive: it was not asked, and no directory has it as gone. */
static bool is_unasked(const struct pvr_adapter *adapter)
{
	return adapter->move.unknown && !adapter->engine->fabrics->gid_ops->claim_state;
}

/* The source does not respond. */
static int start_alone(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;

	/* It has given the adapter, but may still have the GIDs. */
	if (move->answer == PVR_TAKE_YES) {
		move->is_lone = true;
		pvr_log_limited(adapter, PVR_LOG_WARN, "host %s does not respond any more",
				move->source);
		return 0;
	}
	if (adapter->engine->needs_source || is_unasked(adapter))
		return -EPERM;
	if (move->claim == PVR_CLAIM_NONE)
		claim(adapter, true);
	if (move->claim != PVR_CLAIM_WON && move->claim != PVR_CLAIM_STALE)
		return move->claim == PVR_CLAIM_ASKED ? -EINPROGRESS : -EPERM;
	move->is_lone = true;
	if (is_older_than_hold(adapter))
		move->answer = PVR_TAKE_STALE;
	pvr_log_limited(adapter, PVR_LOG_WARN,
			"host %s does not respond: the adapter starts without it%s", move->source,
			move->answer == PVR_TAKE_STALE
				? ", and connections end, because the state is old"
				: "");
	return 0;
}

static int ask(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_move *move = &adapter->move;

	if (now - move->asked_at >= TAKE_NS)
		return start_alone(adapter);
	if (now >= move->ask_next) {
		move->ask_next = now + ASK_AGAIN_NS;
		move->unbound_asks += !move->bound;
		move->unknown = !adapter->engine->move_ops->ask(adapter, move->source, move->loaded,
								move->bound);
	}
	if (now - move->asked_at >= SILENCE_NS && move->answer == PVR_TAKE_NONE)
		pvr_rivals_ask(adapter, now);
	return -EINPROGRESS;
}

/* The source has given it. From now on it is found here. */
static int bind(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_move *move = &adapter->move;
	int err = pvr_load_bind(adapter);

	if (err)
		return err;
	if (move->claim == PVR_CLAIM_NONE)
		claim(adapter, false);
	move->asked_at = now;
	move->ask_next = now;
	return ask(adapter, now);
}

/*
 * Another host has started the adapter with this state, and goes on with its connections. If the
 * source says that the state is stale, the adapter has none, and may run beside that one.
 */
static bool has_lost(const struct pvr_move *move)
{
	return move->claim == PVR_CLAIM_LOST && move->answer != PVR_TAKE_STALE;
}

static int decide(struct pvr_adapter *adapter, uint64_t now)
{
	const struct pvr_move *move = &adapter->move;

	if (has_lost(move))
		return -EPERM;
	switch (move->answer) {
	case PVR_TAKE_YES:
		return move->bound ? ask(adapter, now) : bind(adapter, now);
	case PVR_TAKE_STALE:
	case PVR_TAKE_DONE:
		return 0;
	case PVR_TAKE_NO:
		return -EPERM;
	default:
		return ask(adapter, now);
	}
}

/*
 * A state that was read here. This host is the one that gives it away. After another state was read,
 * or after a restart of the daemon, it is unknown whether the adapter has run since.
 */
static int take_own(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;

	if (!is_same_token(move->loaded, move->token)) {
		move->answer = PVR_TAKE_STALE;
		return 0;
	}
	if (move->to) {
		move->claim = PVR_CLAIM_LOST;
		strcpy(move->claim_detail, move->to_name);
		return -EPERM;
	}
	if (move->ran)
		move->answer = PVR_TAKE_STALE;
	return 0;
}

/* One of both has no name: it is unknown whether the adapter has run since. */
static bool can_ask(const struct pvr_adapter *adapter)
{
	return adapter->engine->fabrics->gid_ops && adapter->move.source[0] != ':';
}

void pvr_move_need_source(struct pvr_adapter *adapter, bool needs)
{
	const struct pvr_fabrics *fabrics = adapter->engine->fabrics;
	struct pvr_move *move = &adapter->move;

	if (needs == move->needs_source ||
	    (needs && (!is_token(move->loaded) || is_from_here(adapter) || !can_ask(adapter))))
		return;
	move->needs_source = needs;
	if (fabrics->gid_ops && fabrics->gid_ops->need_host)
		fabrics->gid_ops->need_host(fabrics->gid_opaque, move->source, needs);
}

int pvr_move_take(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;
	uint64_t now = pvr_now(adapter->engine);

	if (!is_token(move->loaded))
		return 0;
	if (is_from_here(adapter))
		return take_own(adapter);
	if (!can_ask(adapter)) {
		move->answer = PVR_TAKE_STALE;
		return 0;
	}
	if (!move->asked_at)
		move->asked_at = now;
	return decide(adapter, now);
}

static bool asks_with(const struct pvr_adapter *adapter, const uint8_t token[PVR_TOKEN_BYTES])
{
	return adapter->run_state == PVR_RUN_LOADED && adapter->move.asked_at &&
	       is_same_token(adapter->move.loaded, token);
}

/* The source responds to a request that is still of interest. */
static bool is_from_source(const struct pvr_adapter *adapter, const uint8_t token[PVR_TOKEN_BYTES],
			   const char *name)
{
	const struct pvr_move *move = &adapter->move;
	bool is_lone = move->is_lone && is_same_token(move->loaded, token);

	return (is_lone || asks_with(adapter, token)) && !strcmp(move->source, name);
}

/* It knows where the peers of the adapter are. */
static void source_answered(struct pvr_adapter *adapter, struct pvr_host *source,
			    enum pvr_take answer)
{
	pvr_referral_set_source(adapter, source, adapter->stopped_at);
	if (adapter->move.is_lone)
		pvr_lone_start_answered(adapter, answer);
	else
		adapter->move.answer = answer;
}

void pvr_move_taken(struct pvr_engine *engine, const char *fabric, const uint8_t mac[6],
		    const uint8_t token[PVR_TOKEN_BYTES], struct pvr_host *from,
		    enum pvr_take answer)
{
	struct pvr_adapter *adapter = pvr_move_find(engine, fabric, mac);
	const char *name = engine->move_ops->host_name(from);

	if (!adapter)
		return;
	pvr_adapter_lock(adapter);
	if (!is_token(token))
		pvr_elsewhere_answered(adapter, name, answer);
	else if (is_from_source(adapter, token, name))
		source_answered(adapter, from, answer);
	else if (asks_with(adapter, token))
		pvr_rivals_answered(adapter, name, answer);
	pvr_adapter_unlock(adapter);
}

static void claimed(struct pvr_adapter *adapter, enum pvr_claim result, const char *detail)
{
	struct pvr_move *move = &adapter->move;

	move->claim = result;
	snprintf(move->claim_detail, sizeof(move->claim_detail), "%s", detail);
	if (adapter->run_state != PVR_RUN_RUNNING && adapter->run_state != PVR_RUN_STOPPED)
		return;
	if (has_lost(move))
		pvr_move_refused(adapter);
	else if (result == PVR_CLAIM_STALE)
		pvr_qp_end_connections(adapter);
}

/*
 * The VM runs here again, after another host has started its state: peers may have executed requests
 * of that host. A VM that has come back from there goes on with them.
 */
static void end_after_other_start(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;

	if (adapter->run_state != PVR_RUN_RUNNING || !move->ran || move->ran_elsewhere ||
	    move->has_come_back)
		return;
	move->ran_elsewhere = true;
	pvr_qp_end_connections(adapter);
}

void pvr_engine_state_claimed(struct pvr_engine *engine, const struct pvr_state_claim *claim,
			      enum pvr_claim result, const char *detail)
{
	struct pvr_adapter *adapter = pvr_move_find(engine, claim->fabric, claim->mac);

	if (!adapter)
		return;
	pvr_adapter_lock(adapter);
	if (claim->runs_on) {
		if (result == PVR_CLAIM_LOST && is_same_token(adapter->move.token, claim->token))
			end_after_other_start(adapter);
	} else if (adapter->move.claim == PVR_CLAIM_ASKED && adapter->move.load == claim->load &&
		   is_same_token(adapter->move.loaded, claim->token)) {
		claimed(adapter, result, detail);
	}
	pvr_adapter_unlock(adapter);
}

static bool was_started(const struct pvr_move *move)
{
	uint32_t i;

	for (i = 0; i < PVR_MOVE_STARTED && i < move->num_started; i++)
		if (is_same_token(move->started[i], move->loaded))
			return true;
	return false;
}

bool pvr_move_note_start(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;
	bool again;

	move->has_come_back = !is_same_token(move->loaded, move->token);
	if (!is_token(move->loaded))
		return false;
	again = was_started(move);
	if (!again)
		memcpy(move->started[move->num_started++ % PVR_MOVE_STARTED], move->loaded,
		       sizeof(move->loaded));
	return again || move->answer == PVR_TAKE_STALE || move->claim == PVR_CLAIM_STALE;
}

/* ------------------------------------------------------------------------- the source */

struct pvr_adapter *pvr_move_find(struct pvr_engine *engine, const char *name, const uint8_t mac[6])
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);
	struct pvr_adapter *adapter;

	if (!fabric)
		return NULL;
	LIST_FOREACH(adapter, &fabric->adapters, fabric_link)
		if (!memcmp(adapter->mac, mac, sizeof(adapter->mac)))
			return adapter;
	return NULL;
}

static bool may_have(const struct pvr_adapter *adapter, struct pvr_host *host,
		     const uint8_t gid[16])
{
	return pvr_gid_may_have(adapter->engine, host, adapter->fabric->name, gid);
}

bool pvr_move_may_have(const struct pvr_adapter *adapter, struct pvr_host *to)
{
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound && !may_have(adapter, to, adapter->gids[i].gid))
			return false;
	return true;
}

static_assert(PVR_MOVE_GIDS == PVR_GID_TABLE_LEN, "all GIDs are kept");

void pvr_move_keep_gids(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;
	uint32_t i;

	move->num_left = 0;
	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound)
			memcpy(move->left[move->num_left++], adapter->gids[i].gid,
			       sizeof(move->left[0]));
}

/*
 * Peers find them at the host that has taken the adapter, also if the directory does not respond.
 * Another adapter here may have some of them since.
 */
static void refer_peers(struct pvr_adapter *adapter)
{
	const struct pvr_move *move = &adapter->move;
	const char *fabric = adapter->fabric->name;
	struct pvr_adapter *owner;
	uint32_t i;

	for (i = 0; i < move->num_left; i++) {
		owner = pvr_fabric_look_up(adapter->engine, fabric, move->left[i], 0);
		if ((!owner || owner == adapter) && may_have(adapter, move->to, move->left[i]))
			pvr_referral_set(adapter->engine, fabric, move->left[i], adapter->gid_type,
					 move->to);
	}
}

/* The entries stay, for pvr_adapter_reclaim(). */
static void leave_fabric(struct pvr_adapter *adapter)
{
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound)
			pvr_fabric_unbind(adapter, adapter->gids[i].gid);
}

/* The function adapter->job.step that tells other hosts that its GIDs have moved. */
static void tell_step(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;
	uint32_t work;

	while (pvr_job_may_go_on(adapter)) {
		move->told = adapter->engine->move_ops->tell(adapter, move->told, &work);
		if (!move->told) {
			pvr_job_set(adapter, NULL);
			return;
		}
		pvr_job_spend(adapter, work);
	}
}

/* The hosts that are told late, or not at all, ask when they send to a GID. */
static void release(struct pvr_adapter *adapter)
{
	if (adapter->move.released)
		return;
	adapter->move.released = true;
	refer_peers(adapter);
	/* Without a VM it has no GIDs. */
	if (adapter->run_state != PVR_RUN_MOVED)
		return;
	leave_fabric(adapter);
	if (adapter->job.step)
		return;
	adapter->move.told = NULL;
	adapter->job.cancel = NULL;
	pvr_job_set(adapter, tell_step);
	pvr_job_step(adapter);
	if (adapter->job.step)
		pvr_worker_queue(adapter);
}

static void note_taker(struct pvr_move *move, const struct pvr_taker *taker)
{
	move->to = taker->host;
	move->to_load = taker->load;
	move->done = taker->bound;
	move->released = false;
	snprintf(move->to_name, sizeof(move->to_name), "%s", taker->name);
}

/* All GIDs of pvr_move_keep_gids(). */
static bool may_take(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	const struct pvr_move *move = &adapter->move;
	uint32_t i = 0;

	while (i < move->num_left && may_have(adapter, taker->host, move->left[i]))
		i++;
	if (i == move->num_left)
		return true;
	pvr_log_limited(adapter, PVR_LOG_WARN,
			"host %s takes it, but may not have its GIDs: refused", taker->name);
	return false;
}

static enum pvr_take give_away(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	pvr_move_keep_gids(adapter);
	if (!may_take(adapter, taker))
		return PVR_TAKE_NO;
	note_taker(&adapter->move, taker);
	adapter->stops++;
	pvr_adapter_set_run_state(adapter, PVR_RUN_MOVED);
	pvr_info(adapter, "moved to host %s", taker->name);
	return PVR_TAKE_YES;
}

/*
 * Return: whether the load that the state was given to asks again. An old pvrdmad has no numbers of
 * loads: when it has bound the GIDs, it asks for nothing but the response to that.
 */
static bool is_same_load(const struct pvr_move *move, const struct pvr_taker *taker)
{
	if (move->to != taker->host || move->to_load != taker->load)
		return false;
	return taker->load || taker->bound || !move->done;
}

/*
 * It was given to another load, which has not told that it has the GIDs. This load has them: it has
 * started while this host was silent, and the other one will be refused.
 */
static bool has_started_before(const struct pvr_move *move, const struct pvr_taker *taker)
{
	return move->to && move->to != taker->host && taker->bound && !move->done;
}

static enum pvr_take give_instead(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	if (!may_take(adapter, taker))
		return PVR_TAKE_NO;
	note_taker(&adapter->move, taker);
	release(adapter);
	return PVR_TAKE_DONE;
}

/* It was given to this host before. A load that is not that one has a state which was started. */
static enum pvr_take give_again(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	struct pvr_move *move = &adapter->move;

	if (!is_same_load(move, taker)) {
		/* It starts with the GIDs, too, but without connections. */
		release(adapter);
		return PVR_TAKE_STALE;
	}
	if (!taker->bound)
		return PVR_TAKE_YES;
	move->done = true;
	release(adapter);
	return PVR_TAKE_DONE;
}

/* Its client has left after it had read the state. */
static enum pvr_take give_dropped(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	struct pvr_move *move = &adapter->move;

	if (has_started_before(move, taker))
		return give_instead(adapter, taker);
	if (move->to)
		return move->to == taker->host ? give_again(adapter, taker) : PVR_TAKE_NO;
	/* The VM has run since, or another one. */
	if (move->ran)
		return PVR_TAKE_STALE;
	if (!may_take(adapter, taker))
		return PVR_TAKE_NO;
	note_taker(move, taker);
	if (!taker->bound)
		return PVR_TAKE_YES;
	release(adapter);
	return PVR_TAKE_DONE;
}

static enum pvr_take give(struct pvr_adapter *adapter, const struct pvr_taker *taker)
{
	struct pvr_move *move = &adapter->move;

	/* It is not known yet which state this is. The other host asks again. */
	if (adapter->run_state == PVR_RUN_LOADING)
		return PVR_TAKE_NONE;
	if (!is_same_token(taker->token, move->token))
		return is_same_token(taker->token, move->loaded)
			       ? pvr_rivals_answer(adapter, taker->name)
			       : PVR_TAKE_STALE;
	/*
	 * The VM has left, and comes back with a newer state, or an older one is restored here. A
	 * destination that has started goes on, and no other one starts.
	 */
	if (adapter->run_state == PVR_RUN_LOADED && !is_same_token(move->loaded, move->token))
		return taker->bound ? PVR_TAKE_STALE : PVR_TAKE_NO;
	/* LOADED: this state is here, too, and does not start. */
	if ((adapter->run_state == PVR_RUN_MOVED || adapter->run_state == PVR_RUN_LOADED) &&
	    move->to == taker->host)
		return give_again(adapter, taker);
	if (adapter->run_state == PVR_RUN_MOVED && has_started_before(move, taker))
		return give_instead(adapter, taker);
	if (adapter->run_state == PVR_RUN_RUNNING && adapter->state == PVR_ADAPTER_IDLE)
		return give_dropped(adapter, taker);
	if (adapter->run_state == PVR_RUN_STOPPED && !move->ran)
		return give_away(adapter, taker);
	/* It has bound the GIDs without a YES: it has started while this host was silent. */
	if (taker->bound && !move->to)
		end_after_other_start(adapter);
	return PVR_TAKE_NO;
}

enum pvr_take pvr_move_give(struct pvr_engine *engine, const struct pvr_taker *taker)
{
	struct pvr_adapter *adapter = pvr_move_find(engine, taker->fabric, taker->mac);
	enum pvr_take answer;

	if (!adapter)
		return PVR_TAKE_STALE;
	pvr_adapter_lock(adapter);
	answer = is_token(taker->token) ? give(adapter, taker) : pvr_elsewhere_answer(adapter);
	pvr_adapter_unlock(adapter);
	if (answer == PVR_TAKE_DONE)
		pvr_peer_gone_moved(adapter);
	return answer;
}

int pvr_move_reclaim(struct pvr_adapter *adapter)
{
	int err;

	if (!adapter->move.to)
		return -EINVAL;
	if (adapter->run_state != PVR_RUN_MOVED) {
		/* Its client has left, but may load the state again. */
		forget_taker(&adapter->move);
		return 0;
	}
	if (adapter->job.step == tell_step)
		pvr_cmd_cancel(adapter);
	adapter->move.bound = !adapter->move.released;
	err = pvr_load_bind(adapter);
	if (err) {
		leave_fabric(adapter);
		return err;
	}
	forget_taker(&adapter->move);
	memset(adapter->move.token, 0, sizeof(adapter->move.token));
	adapter->stops++;
	pvr_adapter_set_run_state(adapter, PVR_RUN_STOPPED);
	pvr_info(adapter, "reclaimed");
	return 0;
}

static void say_why(struct pvr_adapter *adapter)
{
	const struct pvr_move *move = &adapter->move;
	char *why = adapter->load_why;
	size_t size = sizeof(adapter->load_why);

	if (move->claim == PVR_CLAIM_LOST)
		snprintf(why, size, "host %s has started the adapter with this state",
			 move->claim_detail);
	else if (move->answer == PVR_TAKE_NO)
		snprintf(why, size, "its VM runs at the host that its state is from");
	else if (move->claim == PVR_CLAIM_FAILED)
		snprintf(why, size,
			 "the host that its state is from does not respond, and it is unknown "
			 "whether another host has started with this state (%s)",
			 move->claim_detail);
	else if (is_unasked(adapter))
		snprintf(why, size,
			 "its state is from host %s, which cannot be asked: it is no peer of this "
			 "host",
			 move->source);
	else
		snprintf(why, size,
			 "the host that its state is from does not respond (silent-source = "
			 "refuse)");
}

void pvr_move_refused(struct pvr_adapter *adapter)
{
	leave_fabric(adapter);
	adapter->move.refused = true;
	say_why(adapter);
	pvr_adapter_do_fail(adapter, adapter->load_why);
}
