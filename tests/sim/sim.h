/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The simulator: hosts, VMs and what happens to them, in one process with one clock and one seed.
 *
 * DOC: the parts
 *
 *	main.c     seeds, processes, reports, shrinking
 *	  run.c      one run: its config, its events in order, then the end, when all must be well
 *	    event.c    the table of events: how often, and what they do
 *	      rc.c       the program of the guests: RC requests at random
 *	      oracle.c   what InfiniBand promises of them
 *	      poll.c     programs that poll, or sleep until a notification
 *	      move.c     VMs that migrate, step by step
 *	      snapshot.c VMs that are restored
 *	      upgrade.c  hosts whose engine is replaced
 *	      break.c    queue pairs that go to ERR, and are connected anew
 *	      net.c      connections that break, stall and are slow
 *	  trace.c    what has happened
 *	  chance.c   getrandom() and the wall clock of the engines
 *
 * DOC: repeatable
 *
 * - A run depends on its seed only. Nothing reads a real clock; engines get random bytes of the seed.
 * - Each event draws from its own numbers, so the run without one event has the others as before
 *   (shrinking relies on it).
 * - No address may have an effect.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "fake_guest.h"
#include "fg_migrate.h"
#include "fg_wire.h"
#include "rng.h"
#include "trace.h"

#define SIM_VMS 8
#define SIM_PAIRS 16
#define SIM_STEPS 4096 /* events of a run, at most */
#define SIM_EVENTS 16 /* kinds of events, at most */
#define SIM_RC_SLOTS 8 /* requests of a direction without a completion, and receive requests */
#define SIM_ECHO_NS (100 * FG_MS) /* after which no frame is on its way */
#define SIM_RC_TAKERS 64 /* requests that take receive requests, whose content is kept */

enum sim_rc_kind {
	SIM_SEND,
	SIM_SEND_IMM,
	SIM_WRITE,
	SIM_WRITE_IMM,
	SIM_READ,
	SIM_ADD,
	SIM_SWAP,
	SIM_RC_KINDS,
};

struct sim_config {
	unsigned int hosts, vms, pairs, steps, workers;
	uint32_t max_len; /* of a message */
	uint32_t chunk, buffer; /* of the connections between hosts */
	uint32_t mtu; /* enum pvr_mtu */
	uint8_t timeout; /* of the queue pairs; 0: they wait for ever */
	uint32_t rc_weight[SIM_RC_KINDS];
	uint32_t weight[SIM_EVENTS];
	bool unsignaled;
	uint64_t max_pause; /* ns between two events, at most */
	unsigned int slots; /* connections between two hosts */
	uint32_t ext; /* PVR_EXT_* of all guests */
	bool polls; /* workers poll, so doorbells are suppressed */
	bool loses_directory; /* once it does not respond, it never does again */
	bool sleeps; /* programs wait for notifications of their CQs */
	bool exposes; /* RDMA NICs read from guest memory */
};

enum sim_move_phase {
	SIM_HOME, /* the VM runs, and there is no other host */
	SIM_STOPPING,
	SIM_STOPPED,
	SIM_LOADING,
	SIM_LOADED,
	SIM_STARTING,
	SIM_CANCELLING, /* the source starts again */
	SIM_LEAVING, /* it runs; the source has not been told */
};

struct sim_vm;

struct sim_end {
	struct sim_vm *vm;
	struct fg_end fg;
	bool sends_armed, recvs_armed; /* the program sleeps until the CQ's notification */
};

/* Of a VM that has run on. */
struct sim_snapshot {
	bool taken;
	int memory; /* a memfd */
	struct fg_state state;
	struct fg_guest guest; /* the driver's indices */
	struct sim_end end[2 * SIM_PAIRS]; /* the indices of its programs; other VMs' ends: unused */
};

struct sim_vm {
	struct fg_guest *guest;
	unsigned int number, host;
	struct pvr_adapter *at[FG_WIRE_HOSTS]; /* its adapter at each host; NULL: none yet */
	uint32_t irqs; /* interrupts of CQ notifications that the driver has handled */
	/* The migration. */
	enum sim_move_phase phase;
	unsigned int from, to;
	uint64_t due; /* ns: the next step */
	bool leaves_early, source_left, cancels;
	struct sim_rng rng; /* of its steps */
	struct fg_state state;
	struct sim_snapshot snapshot;
	bool restores; /* it loads the snapshot */
};

/* One request, from post to completion. */
struct sim_req {
	enum sim_rc_kind kind;
	uint32_t len, seed, slot; /* of the target */
	bool signaled;
	uint64_t value; /* atomics: what they must return */
};

struct sim_taker {
	enum sim_rc_kind kind;
	uint32_t len, seed;
	uint32_t imm;
};

/* A slot of the target's memory. */
struct sim_slot {
	uint32_t seed, len; /* of the last WRITE that has completed, if written */
	uint32_t reading; /* READs under way */
	bool written, writing;
};

/* One direction of a pair: requests of @from. */
struct sim_rc {
	struct sim_end *from, *to;
	const struct sim_pair *pair;
	uint32_t number;
	uint64_t posted, done;
	uint64_t takers, taken; /* requests that take a receive request; such that were received */
	uint64_t takers_done; /* that have completed */
	uint64_t recvs; /* receive requests posted */
	struct sim_req req[SIM_RC_SLOTS];
	struct sim_taker taker[SIM_RC_TAKERS];
	struct sim_slot slot[SIM_RC_SLOTS];
	uint64_t adds, swapped;
	bool has_failed; /* a request has completed with an error, and so must all others */
	bool ends_unsignaled; /* no completion tells of the last request */
};

struct sim_pair {
	struct sim_end end[2];
	struct sim_rc rc[2];
	struct fg_conn conn;
	/* From the ERR of an end to the new connection; requests may fail meanwhile. */
	bool is_broken;
	bool is_restored; /* by the restore of a VM: its completions are of another time */
	unsigned int broken; /* that end */
	uint64_t hash; /* of its buffer */
	uint64_t due; /* ns: the new connection */
};

struct sim_down {
	bool is; /* a connection that is broken or held */
	uint64_t until;
};

struct sim {
	uint64_t seed;
	struct sim_config config;
	struct sim_trace trace;
	struct fg_wire *wire;
	struct sim_vm vm[SIM_VMS];
	struct sim_pair pair[SIM_PAIRS];
	struct sim_down cut[FG_WIRE_HOSTS][FG_WIRE_HOSTS][FG_WIRE_SLOTS];
	struct sim_down held[FG_WIRE_HOSTS][FG_WIRE_HOSTS];
	struct sim_down directory;
	uint64_t checks; /* operations whose result was checked */
	unsigned int step; /* the present one */
	uint64_t happened[SIM_EVENTS];
};

/* What a run shall be, from the command line. */
struct sim_order {
	uint64_t seed;
	bool prints;
	const uint8_t *left_out; /* SIM_STEPS flags; NULL: none */
};

struct sim_result {
	uint64_t hash, checks;
	unsigned int steps;
	uint64_t happened[SIM_EVENTS];
};

/* run.c. Ends the process with status 1 and a report if a rule is violated. */
struct sim_result sim_run(const struct sim_order *order);
/* Return: the number of events in the run of a seed. */
unsigned int sim_steps(uint64_t seed);
void sim_fail(struct sim *sim, const char *rule, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* A new engine of this host is set up. */
void sim_host_open(struct sim *sim, unsigned int host);
uint64_t sim_now(const struct sim *sim);
/* Run all hosts for @ns of virtual time. */
void sim_pass_time(struct sim *sim, uint64_t ns);
/* Direction @i, below twice the number of pairs. */
struct sim_rc *sim_rc_of(struct sim *sim, unsigned int i);
/* The programs of all VMs that run and do not sleep take their completions. */
void sim_poll_all(struct sim *sim);

/* event.c */
unsigned int sim_num_events(void);
const char *sim_event_name(unsigned int kind);
/* How frequent such events are in a run; 0: there are none. */
uint32_t sim_draw_weight(unsigned int kind, struct sim_rng *rng);
/* One event of the seed. */
void sim_event(struct sim *sim, struct sim_rng *rng);

/* rc.c. The VMs of both ends run. */
void sim_rc_open(struct sim *sim, struct sim_pair *pair, struct sim_vm *a, struct sim_vm *b);
bool sim_rc_post(struct sim *sim, struct sim_rc *rc, struct sim_rng *rng);
bool sim_rc_post_recv(struct sim *sim, struct sim_rc *rc, struct sim_rng *rng);
bool sim_rc_is_idle(const struct sim_rc *rc);
/* Parts of an end's buffer. */
enum sim_area { SIM_OUT, SIM_IN, SIM_TARGET, SIM_BACK };
size_t sim_rc_at(const struct sim *sim, enum sim_area area, uint32_t slot);
size_t sim_rc_word(const struct sim *sim, enum sim_rc_kind kind);

/* poll.c. The driver of the VM handles its interrupts. */
void sim_poll_events(struct sim *sim, struct sim_vm *vm);
/* Nothing, while the program sleeps. */
void sim_poll_sent(struct sim *sim, struct sim_rc *rc);
void sim_poll_received(struct sim *sim, struct sim_rc *rc);

/* oracle.c */
void sim_oracle_sent(struct sim *sim, struct sim_rc *rc);
void sim_oracle_received(struct sim *sim, struct sim_rc *rc);
/* @rc has completed all. */
void sim_oracle_end(struct sim *sim, struct sim_rc *rc);

/* move.c */
bool sim_vm_runs(const struct sim_vm *vm);
void sim_vm_start(struct sim *sim, struct sim_vm *vm, unsigned int number, unsigned int host);
void sim_move_begin(struct sim *sim, struct sim_vm *vm, struct sim_rng *rng);
void sim_move_step(struct sim *sim, struct sim_vm *vm);
void sim_vm_end(struct sim *sim, struct sim_vm *vm);
void sim_vm_leave(struct sim *sim, struct sim_vm *vm, unsigned int host, bool migrated);

/* snapshot.c */
void sim_snapshot(struct sim *sim, struct sim_rng *rng);
void sim_snapshot_free(struct sim_vm *vm);
void sim_restore_begin(struct sim *sim, struct sim_rng *rng);
void sim_restore_memory(struct sim *sim, struct sim_vm *vm);
void sim_restore_end(struct sim *sim, struct sim_vm *vm);

/* break.c */
void sim_break(struct sim *sim, struct sim_rng *rng);
/* The memory of end @which must not change until the new connection. */
void sim_break_watch(struct sim *sim, struct sim_pair *pair, unsigned int which,
		     struct sim_rng *rng);
/* Connect the pair again when it is due, or @now, if both VMs run. */
void sim_break_mend(struct sim *sim, struct sim_pair *pair, bool now);

/* upgrade.c */
void sim_upgrade(struct sim *sim, struct sim_rng *rng);

/* net.c */
void sim_net_cut(struct sim *sim, struct sim_rng *rng);
void sim_net_nic(struct sim *sim, struct sim_rng *rng);
void sim_net_hold(struct sim *sim, struct sim_rng *rng);
void sim_net_limit(struct sim *sim, struct sim_rng *rng);
void sim_net_directory(struct sim *sim, struct sim_rng *rng);
/* What is due now is mended. */
void sim_net_mend(struct sim *sim, bool all);

/* chance.c */
void sim_chance_init(uint64_t seed, const uint64_t *now);

#endif /* SIM_SIM_H */
