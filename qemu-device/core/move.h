/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Adapters that move to another host.
 *
 * DOC: the host with an adapter
 *
 *	source					destination
 *	STOPPED, its state is read
 *						LOADED
 *				<-------	TAKE with the token of the state
 *	MOVED, peers wait
 *				------->	TAKEN (YES)
 *						its GIDs are bound
 *				<-------	TAKE (BOUND)
 *	its GIDs are not bound
 *				------->	TAKEN (DONE)
 *						RUNNING
 *
 * - The source decides: it gives an adapter to one host only, and does not start it again.
 * - Its peers wait for the adapter at the source until the destination has its GIDs, so they find
 *   it at once. The frame MOVED tells hosts to look for it.
 * - A source that does not respond is dead: the destination starts after a time, or does not start
 *   at all if the operator wants it so. If the state is older than the peers wait, they have gone
 *   on: its connections end.
 * - After such a start it still asks: a source that was only slow has the GIDs until it is told.
 * - Two destinations of one state can find its source silent, or one of them while the source has
 *   given the adapter to the other. So a destination claims the state with struct pvr_state_claim.
 *   Without the source it waits for the result. With the source it does not wait, because that
 *   would prolong the pause; if it turns out to have lost, the adapter fails.
 * - Where the directory has no claims, destinations without their source ask each other. One that
 *   runs refuses the others; of two that wait, the host whose name is first starts.
 *
 * DOC: a state that is loaded twice
 *
 * - A state in a file can be loaded again at the host that has started it. Its peers have gone on
 *   since, so connections end then.
 * - Each load has a number, which TAKE and claims carry. The source gives a state to one load only,
 *   and a claim is won by one load only. Others of the same host get STALE.
 * - An adapter has the tokens of the last states that it has started, for sources that are silent,
 *   or too old for these numbers.
 * - A source whose VM runs on claims its own state, where the directory has claims: a destination
 *   of this state loses, also if the source has died meanwhile.
 */
#ifndef PVR_MOVE_H
#define PVR_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/timer.h"
#include "engine.h"

#define PVR_MOVE_NAME_MAX 64 /* of a host, with its NUL */
#define PVR_MOVE_GIDS 128u /* PVR_GID_TABLE_LEN */
#define PVR_MOVE_STARTED 4u /* states whose tokens an adapter keeps */

struct pvr_adapter;
struct pvr_engine;
struct pvr_host;

enum pvr_take {
	PVR_TAKE_NO, /* its VM runs at the source, or at another host */
	PVR_TAKE_YES,
	PVR_TAKE_STALE, /* the source has no such state any more */
	PVR_TAKE_DONE, /* the destination alone has its GIDs */
	PVR_TAKE_NONE, /* no response yet; not in frames */
};

/* Protected by the adapter's lock. */
struct pvr_move {
	uint8_t token[PVR_TOKEN_BYTES]; /* of the last state that was read here; zero: none */
	bool ran; /* the adapter was started after that, or its life has ended */
	bool ran_elsewhere; /* another host has started it without this one; connections ended */
	bool has_come_back; /* it runs here with a state that was loaded after @token was read */
	uint8_t loaded[PVR_TOKEN_BYTES]; /* of the state that was loaded; zero: none */
	uint64_t load; /* the number of this load, random; 0: no random bytes */
	uint8_t started[PVR_MOVE_STARTED][PVR_TOKEN_BYTES]; /* of loaded states: a ring */
	uint32_t num_started;
	bool was_read; /* the state of @token was read since pvrdmad was started */
	char source[PVR_MOVE_NAME_MAX]; /* host of that state; "": unknown */
	uint64_t saved_at; /* when it was read there: ns since 1970 by that host; 0: unknown */
	bool bound; /* LOADED: its GIDs are bound */
	bool refused; /* it was loaded, but lives at the source */
	enum pvr_take answer; /* of the source */
	bool unknown; /* the source is no host that can be asked */
	enum pvr_claim claim; /* of the loaded state; a reset makes it NONE */
	char claim_detail[PVR_MOVE_NAME_MAX]; /* LOST: the winner; FAILED: the reason */
	uint64_t asked_at, ask_next; /* ns */
	uint32_t unbound_asks; /* requests to the source that may be answered, without BOUND */
	uint64_t rivals_next; /* ns: when other destinations are asked again */
	bool needs_source; /* the directory was told so */
	bool is_lone; /* it has started without its source, which does not know */
	uint64_t lone_gap; /* ns, until the source is asked again by the timer */
	struct pvr_timer lone;
	struct pvr_host *to; /* the host that the state was given to; NULL: none */
	char to_name[PVR_MOVE_NAME_MAX];
	uint64_t to_load; /* the load that it was given to; 0: unknown */
	bool done; /* that host has bound its GIDs */
	bool released; /* its GIDs are bound there, and not here */
	/* The GIDs that it had at the last pvr_move_keep_gids(). */
	uint8_t left[PVR_MOVE_GIDS][16];
	uint32_t num_left;
	struct pvr_host *told; /* the last host that was told so; NULL: none */
};

/*
 * A host asks another one, which the directory has for the GID of the adapter's MAC, whether its
 * adapter is in use by a VM that cannot be migrated: a TAKE without token. Protected by the
 * adapter's lock.
 */
struct pvr_elsewhere {
	uint64_t begun, ask_next; /* ns; 0: nothing is asked */
	char host[PVR_MOVE_NAME_MAX]; /* "": not found yet */
	enum pvr_take answer; /* NO: it is in use there */
};

/* A destination that asks for an adapter. */
struct pvr_taker {
	const char *fabric;
	const uint8_t *mac, *token;
	struct pvr_host *host;
	const char *name; /* of the host */
	bool bound; /* it has bound the GIDs */
	uint64_t load; /* number of its load; 0: its pvrdmad is too old */
};

/* What path/pipe and ctrl/move.c call of each other. engine.c has the table. */
struct pvr_move_ops {
	/*
	 * Send TAKE to @host. Return: false if the host is unknown. The adapter's lock is held.
	 */
	bool (*ask)(struct pvr_adapter *adapter, const char *host,
		    const uint8_t token[PVR_TOKEN_BYTES], bool bound);
	/* The same to all other hosts for which @may returns true. */
	void (*ask_others)(struct pvr_adapter *adapter, const char *host,
			   const uint8_t token[PVR_TOKEN_BYTES],
			   bool (*may)(const struct pvr_adapter *adapter, struct pvr_host *host));
	const char *(*host_name)(const struct pvr_host *host);
	/*
	 * Tell the host after @told, or the first one if NULL, that the adapter's GIDs have moved. A
	 * host without a connection is not told. *@work: what this cost, as of a job. Return: this host;
	 * NULL: there are no more. The adapter's lock is held.
	 */
	struct pvr_host *(*tell)(struct pvr_adapter *adapter, struct pvr_host *told,
				 uint32_t *work);
	/*
	 * Send GID_QUERY to @host, if it may refer to another host. Calls pvr_referral_answered() later.
	 * Any lock but those of GIDs can be held.
	 */
	void (*query)(struct pvr_host *host, const char *fabric, const uint8_t gid[16]);
	/* TAKE has arrived. No lock is held. Return: the response. */
	enum pvr_take (*give)(struct pvr_engine *engine, const struct pvr_taker *taker);
	/* TAKEN of @from has arrived. No lock is held. */
	void (*taken)(struct pvr_engine *engine, const char *fabric, const uint8_t mac[6],
		      const uint8_t token[PVR_TOKEN_BYTES], struct pvr_host *from,
		      enum pvr_take answer);
};

#endif /* PVR_MOVE_H */
