/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The simulator: hosts, VMs and what happens to them, in one process with one clock and one seed.
 *
 * DOC: the parts
 *
 *	main.c     seeds, processes, reports, shrinking
 *	  run.c      one run: its config, its events in order, then the end, when all must be well
 *	    event.c    the table of events: how often, and what they do
 *	    state.c    what is under way while they happen
 *	      end.c      pairs of queue pairs of each connected type, and their SRQs
 *	      flow.c     what a program sends on them: requests at random
 *	      oracle.c   what InfiniBand promises of them
 *	      ud.c       datagrams, and what InfiniBand promises of them
 *	      poll.c     programs that poll, or sleep until a notification
 *	      move.c     VMs that migrate, step by step
 *	      snapshot.c VMs that are restored
 *	      upgrade.c  hosts whose engine is replaced
 *	      demand.c   regions whose pages come and go
 *	      window.c   memory windows
 *	      verbs.c    CQs and send queues that are changed
 *	      operator.c limits and faults on demand
 *	      break.c    connections that a program ends, and makes anew
 *	    calm.c     what holds when nothing disturbs
 *	      world.c    hosts, and what joins them
 *	      net.c      connections that break, stall and are slow
 *	      directory.c the directories of pvrdmad
 *	        loop.c     their event loops
 *	        web.c      their way to etcd
 *	        etcd.c     etcd
 *	      outage.c   what happens to etcd
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

#include "directory.h"
#include "fake_guest.h"
#include "fg_dirty.h"
#include "fg_migrate.h"
#include "fg_segment.h"
#include "fg_trap.h"
#include "fg_wire.h"
#include "fg_xrc.h"
#include "rng.h"
#include "trace.h"

#define SIM_VMS 20
#define SIM_PAIRS 16
#define SIM_STEPS 4096 /* events of a run, at most */
#define SIM_EVENTS 32 /* kinds of events, at most */
#define SIM_STATES 32 /* kinds of what is under way, at most */
#define SIM_SLOTS 8 /* requests of a direction without a completion, and receive requests */
#define SIM_ECHO_NS (100 * FG_MS) /* after which no frame is on its way */
/* ns: a host waits so long for an answer of etcd, and then before it tries again */
#define SIM_ETCD_PAUSE (11 * FG_SEC)
#define SIM_SRQ_SLOTS 16
#define SIM_UDS 8
#define SIM_DATAGRAMS 8192 /* of a queue pair */

enum sim_type {
	SIM_RC,
	SIM_RC_SRQ, /* the SRQ of the VM, which all its ends of this type share */
	SIM_XRC,
	SIM_UC,
	SIM_TYPES,
};

enum sim_directory_kind {
	SIM_TOLD, /* each host is told at once where a GID is */
	SIM_ETCD,
	SIM_FILE, /* of peers, which hosts query */
};

enum sim_op {
	SIM_SEND,
	SIM_SEND_IMM,
	SIM_WRITE,
	SIM_WRITE_IMM,
	SIM_READ,
	SIM_ADD,
	SIM_SWAP,
	SIM_STORE, /* ATOMIC WRITE */
	SIM_FLUSH,
	SIM_OPS,
};

struct sim_config {
	unsigned int hosts, vms, pairs, uds, steps, workers;
	uint32_t max_len; /* of a message */
	uint32_t chunk, buffer; /* of the connections between hosts */
	uint32_t mtu; /* enum pvr_mtu */
	uint8_t timeout; /* of the queue pairs; 0: they wait for ever */
	uint8_t retries;
	uint8_t rnr_timer; /* min_rnr_timer; 0: the longest one */
	uint32_t op_weight[SIM_OPS];
	uint32_t weight[SIM_EVENTS];
	bool unsignaled;
	uint64_t max_pause; /* ns between two events, at most */
	unsigned int slots; /* connections between two hosts */
	uint32_t ext; /* PVR_EXT_* of all guests */
	bool polls; /* workers poll, so doorbells are suppressed */
	bool loses_directory; /* once it does not respond, it never does again */
	bool eager; /* programs poll often, and nothing is left to do then */
	bool sleeps; /* programs wait for notifications of their CQs */
	bool on_demand; /* regions */
	bool dirty; /* what the device writes during a migration must be in its log of dirty pages */
	bool windows; /* peers have the keys of windows */
	bool scattered; /* buffers, over pages */
	bool segment; /* the hosts are joined by an Ethernet */
	enum sim_directory_kind directory;
	unsigned int lease; /* s: of the keys of a host in etcd */
	bool exposes; /* RDMA NICs read from guest memory */
	bool nics; /* between all hosts from the start, and messages that are large enough for them */
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

struct sim_down {
	bool is; /* a connection that is broken or held */
	uint64_t until;
};

struct sim_vm;

/* Receive requests of several queue pairs. Each has a slot of the buffer, whose number is its wr_id. */
struct sim_srq {
	struct fg_srq fg;
	struct fg_buf buf;
	struct fg_mr mr;
	uint32_t posted; /* a bit for each slot */
};

/* A region on demand. */
struct sim_demand {
	bool is;
	uint32_t list; /* a page of guest memory for commands */
	uint32_t first, npages; /* pages that were taken away last */
	uint64_t hash; /* of them */
};

struct sim_end {
	struct sim_vm *vm;
	struct sim_demand demand; /* of the buffer */
	struct fg_end fg; /* XRC: the initiator */
	struct fg_qp target; /* XRC */
	struct sim_srq xrc; /* that its peer names */
	struct sim_srq *srq; /* where it receives; NULL: the receive queue */
	bool sends_armed, recvs_armed; /* the program sleeps until the CQ's notification */
	bool is_drained; /* SQD */
	uint64_t drained_at; /* the first request that must wait, then */
	bool is_member; /* UD: of the group */
	struct fg_mr window; /* rkey 0: none */
	uint32_t sends_tail, recvs_tail; /* of its CQs when its queue pair was destroyed */
};

/* Of a VM that has run on. */
struct sim_snapshot {
	bool taken;
	bool *used; /* each page of the VM */
	uint8_t *memory; /* of the pages in use */
	struct fg_state state;
	struct fg_guest guest; /* the driver's indices */
	struct sim_srq srq;
	unsigned int host,
		starter; /* where the state is from, and which host has started it last */
	/* etcd has the claim of the state from then on, unless it did not respond before. */
	uint64_t claimed_at;
	bool unclaimed;
	/* The indices of its programs; other VMs' ends: unused. */
	struct sim_end end[2 * SIM_PAIRS], ud[SIM_UDS];
};

struct sim_vm {
	struct fg_guest *guest;
	unsigned int number, host;
	struct pvr_adapter *at[FG_WIRE_HOSTS]; /* its adapter at each host; NULL: none yet */
	uint32_t irqs; /* interrupts of CQ notifications that the driver has handled */
	struct fg_pd pd; /* of @srq, if a queue pair uses it */
	struct sim_srq srq;
	struct fg_xrcd xrcd; /* if a queue pair uses it */
	/* The migration. */
	enum sim_move_phase phase;
	unsigned int from, to;
	unsigned int twin; /* number of a host where the state is loaded, too, from 1; 0: none */
	uint64_t twin_loaded; /* ns */
	uint64_t memory; /* hash of its memory when it stopped; 0: none */
	uint64_t due; /* ns: the next step */
	uint64_t loaded; /* ns: the last load; 0: none */
	bool leaves_early, source_left, cancels;
	bool pauses; /* it stops, and starts again at the same host */
	struct sim_rng rng; /* of its steps */
	struct sim_down link; /* of its adapter at @link_host */
	unsigned int link_host;
	bool lost_link; /* at any time */
	struct fg_state state;
	struct sim_snapshot snapshot;
	bool restores; /* it loads the snapshot */
	bool keeps; /* the migration's state becomes the snapshot */
	bool was_refused; /* by a host to which the source may give it since */
	bool is_alone; /* the source is silent while it starts */
};

/* One request, from post to completion. */
struct sim_req {
	enum sim_op kind;
	uint32_t len, seed, slot; /* of the target */
	bool signaled;
	uint64_t value; /* atomics: what they must return */
};

struct sim_taker {
	enum sim_op kind;
	uint32_t len, seed;
	uint32_t imm;
	uint64_t number; /* of the request */
};

/* A slot of the target's memory. */
struct sim_slot {
	uint32_t seed, len; /* of the last WRITE that has completed, if written */
	uint32_t reading; /* READs under way */
	uint64_t writer; /* the request that has written it last */
	bool written, writing;
};

/* One direction of a pair: requests of @from. */
struct sim_flow {
	struct sim_end *from, *to;
	const struct sim_pair *pair;
	uint32_t number;
	uint64_t posted, done;
	uint64_t takers; /* requests that take a receive request */
	uint64_t taken; /* such requests up to the last one that was received; UC loses some */
	uint64_t takers_done; /* that have completed */
	uint64_t recvs, received; /* receive requests of a receive queue: posted, completed */
	struct sim_req req[SIM_SLOTS];
	struct sim_taker *taker; /* all of them */
	size_t taker_room;
	struct sim_slot slot[SIM_SLOTS];
	uint64_t adds, swapped;
	uint64_t probe; /* UC: messages before the end */
	bool probes, may_miss;
	bool only_writes; /* from now on */
	bool has_failed; /* a request has completed with an error, and so must all others */
	uint64_t next_flush; /* if has_failed: the next request that must */
	bool ends_unsignaled; /* no completion tells of the last request */
};

/* How a program ends a connection. */
enum sim_breach {
	SIM_TO_ERR,
	SIM_DESTROY, /* the queue pair; not of XRC */
	SIM_DEREGISTER, /* the region of the end */
	SIM_CLOSE_WINDOW,
	SIM_BREACHES,
};

struct sim_pair {
	enum sim_type type;
	struct sim_end end[2];
	struct sim_flow flow[2];
	struct fg_conn conn;
	/* From the ERR of an end to the new connection; requests may fail meanwhile. */
	bool is_broken;
	bool is_half; /* connected: an end is, and the other one will be when it is due */
	unsigned int late; /* that one */
	bool is_restored; /* by the restore of a VM: its completions are of another time */
	unsigned int broken; /* that end */
	enum sim_breach breach;
	bool takes_messages; /* its queue pair can still receive */
	uint64_t hash; /* of its buffer, or of what WRITEs and atomics change */
	uint64_t due; /* ns: the new connection, or its other half */
	uint64_t delay; /* ns: from the first half to the other one */
};

/* A UD queue pair. */
struct sim_ud {
	struct sim_end end;
	uint32_t number;
	uint32_t life; /* the restores of its VM */
	uint32_t posted, done, recvs, received;
	uint8_t arrived[SIM_DATAGRAMS]; /* of each of its messages: a bit for each receiver */
	uint32_t probe; /* the first message that must arrive at the end */
	bool probes, has_reached;
};

struct sim_count {
	uint64_t runs;
	uint64_t checks; /* operations whose result was checked */
	uint64_t hash; /* of the traces, in any order */
	uint64_t events[SIM_EVENTS];
	uint64_t pairs[SIM_STATES][SIM_EVENTS]; /* events while something was under way */
};

struct sim {
	uint64_t seed;
	struct sim_config config;
	struct sim_trace trace;
	struct fg_wire *wire; /* or */
	struct fg_segment *segment;
	struct sim_directory *directories; /* NULL: hosts use the one of @wire */
	struct sim_vm vm[SIM_VMS];
	struct sim_pair pair[SIM_PAIRS];
	struct sim_ud ud[SIM_UDS];
	struct sim_down cut[FG_WIRE_HOSTS][FG_WIRE_HOSTS][FG_WIRE_SLOTS];
	struct sim_down held[FG_WIRE_HOSTS][FG_WIRE_HOSTS];
	struct sim_down directory, frames;
	uint64_t outages; /* ns: of etcd, so far */
	uint64_t outage_at; /* ns: begin of the last one */
	uint64_t data_lost_at; /* ns: by etcd, at last */
	uint64_t calm_at; /* ns: all hosts have found again that etcd responds */
	bool slow; /* streams */
	bool had_faults;
	unsigned int step; /* the present one */
	bool is_in[SIM_STATES]; /* before the present event */
	struct sim_count count;
};

/* What a run shall be, from the command line. */
struct sim_order {
	uint64_t seed;
	bool prints;
	const uint8_t *left_out; /* SIM_STEPS flags; NULL: none */
};

struct sim_result {
	uint64_t hash;
	unsigned int steps;
	struct sim_count count;
};

/* run.c. Ends the process with status 1 and a report if a rule is violated. */
struct sim_result sim_run_seed(const struct sim_order *order);
/* Return: the number of events in the run of a seed. */
unsigned int sim_steps(uint64_t seed);
void sim_fail(struct sim *sim, const char *rule, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* Direction @i, below twice the number of pairs. */
struct sim_flow *sim_flow_of(struct sim *sim, unsigned int i);
/* The programs of all VMs that run and do not sleep take their completions. */
void sim_poll_all(struct sim *sim);

/* world.c */
void sim_world_open(struct sim *sim);
void sim_world_close(struct sim *sim);
struct fg_host *sim_host(const struct sim *sim, unsigned int host);
/* A new engine of this host is set up. */
void sim_host_open(struct sim *sim, unsigned int host);
uint64_t sim_now(const struct sim *sim);
/* All hosts, until all are idle. */
void sim_run(struct sim *sim);
/* Run all hosts for @ns of virtual time. */
void sim_pass_time(struct sim *sim, uint64_t ns);
/* Of memory that must not change. */
uint64_t sim_hash(const uint8_t *at, size_t size);
/* What has arrived at this host, once. */
void sim_pump(struct sim *sim, unsigned int host);

/* event.c. Functions of events return whether it was possible. */
unsigned int sim_num_events(void);
const char *sim_event_name(unsigned int kind);
/* Events of this name are frequent. */
void sim_focus(struct sim_config *config, const char *name);
/* How frequent such events are in a run; 0: there are none. */
uint32_t sim_draw_weight(unsigned int kind, struct sim_rng *rng);
/* One event of the seed. */
void sim_event(struct sim *sim, struct sim_rng *rng);

/* end.c. The VMs of both ends run. */
void sim_pair_open(struct sim *sim, struct sim_pair *pair, enum sim_type type, struct sim_vm *a,
		   struct sim_vm *b);
const char *sim_type_name(enum sim_type type);
/* One end; its peer may be late. */
void sim_pair_connect(struct sim *sim, struct sim_pair *pair, unsigned int which);
/* Whether the end is not connected yet. */
bool sim_end_is_late(const struct sim_pair *pair, const struct sim_end *end);
/* To RESET, with empty CQs. */
void sim_pair_reset(struct sim *sim, struct sim_pair *pair);
void sim_pair_close(struct sim_pair *pair);
/* All queue pairs of the end. */
void sim_end_to_err(struct sim *sim, struct sim_end *end);
/* Its queue pair, or its region, until sim_pair_reset(). */
void sim_end_destroy(struct sim *sim, struct sim_end *end);
bool sim_end_is_destroyed(const struct sim_end *end);
void sim_end_deregister(struct sim *sim, struct sim_end *end);
/* Of the VM's SRQ and XRC domain. No pair uses them. */
void sim_srq_close(struct sim_vm *vm);
bool sim_srq_post(struct sim *sim, struct sim_srq *srq, struct sim_rng *rng);
/* Whether regions may be flushed, and written to by ATOMIC WRITE. */
bool sim_may_flush(const struct sim *sim, const struct sim_pair *pair);
/* A completion of the slot. */
void sim_srq_take(struct sim *sim, struct sim_srq *srq, uint64_t slot);
/* All that is posted waits in the ring. */
void sim_srq_check(struct sim *sim, const struct sim_srq *srq);

/* state.c */
void sim_state_note(struct sim *sim);
/* An event has happened within the states that were noted. */
void sim_state_count(struct sim *sim, unsigned int event);
void sim_count_add(struct sim_count *sum, const struct sim_count *count);
void sim_count_report(const struct sim_count *count);

/* flow.c. The VMs of both ends run. */
bool sim_flow_post(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng);
bool sim_flow_post_recv(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng);
/* At the end: UC sends until a message arrives. */
void sim_flow_probe(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng);
bool sim_flow_is_idle(const struct sim_flow *flow);
/* Parts of an end's buffer. */
enum sim_area { SIM_OUT, SIM_IN, SIM_TARGET, SIM_BACK };
size_t sim_flow_at(const struct sim *sim, enum sim_area area, uint32_t slot);
size_t sim_flow_word(const struct sim *sim, enum sim_op kind);
/* Cuts [offset, offset + len) of a region into pieces. Return: their number. */
#define SIM_MAX_SGE 3u
uint32_t sim_cut(const struct fg_mr *mr, size_t offset, uint32_t len, struct sim_rng *rng,
		 struct pvrdma_sge *sge);

/* poll.c. The driver of the VM handles its interrupts. */
void sim_poll_events(struct sim *sim, struct sim_vm *vm);
/*
 * @take: takes all completions of @cq. *@armed: whether the program sleeps; then nothing happens.
 * VMs that do not run have no programs.
 */
void sim_poll_cq(struct sim *sim, const struct sim_vm *vm, struct fg_cq *cq, bool *armed,
		 void (*take)(struct sim *sim, void *of), void *of);
void sim_poll_sent(struct sim *sim, struct sim_flow *flow);
void sim_poll_received(struct sim *sim, struct sim_flow *flow);

/* oracle.c */
void sim_oracle_sent(struct sim *sim, void *flow);
void sim_oracle_received(struct sim *sim, void *flow);
/* Whether the last request of @flow, a WRITE, has changed the memory of its peer. */
bool sim_oracle_is_written(const struct sim *sim, const struct sim_flow *flow);
/* Return: the first request that has not ended, after an error; @flow->posted: none. */
uint64_t sim_oracle_unended(const struct sim_flow *flow);
/*
 * A receive request gets a buffer with bytes of its own, and a message leaves those behind its end as
 * they are.
 */
void sim_oracle_mark(const struct sim *sim, uint8_t *at);
/* @flow has completed all. */
void sim_oracle_end(struct sim *sim, struct sim_flow *flow);

/* ud.c */
void sim_ud_open(struct sim *sim, struct sim_ud *ud, struct sim_vm *vm);
/* Its VM was restored. */
void sim_ud_restore(struct sim *sim, struct sim_ud *ud);
/* @to: NULL: the group. */
bool sim_ud_post(struct sim *sim, struct sim_ud *ud, const struct sim_ud *to, struct sim_rng *rng);
/* A queue pair joins the group, or leaves it. */
bool sim_ud_group(struct sim *sim, struct sim_rng *rng);
bool sim_ud_post_recv(struct sim *sim, struct sim_ud *ud, struct sim_rng *rng);
void sim_ud_poll(struct sim *sim, struct sim_ud *ud);
/* At the end: send until one arrives at the next queue pair. */
void sim_ud_probe(struct sim *sim, struct sim_ud *ud, struct sim_rng *rng);
const struct sim_ud *sim_ud_next(const struct sim *sim, const struct sim_ud *ud);
/* Whether message @number of @ud has arrived at @at. */
bool sim_ud_has_reached(const struct sim_ud *ud, uint32_t number, const struct sim_ud *at);
bool sim_ud_is_idle(const struct sim *sim, const struct sim_ud *ud);

/* calm.c. All requests have completed, and nothing disturbs the network. */
void sim_calm(struct sim *sim, struct sim_rng *rng);

/* move.c */
bool sim_vm_runs(const struct sim_vm *vm);
void sim_vm_start(struct sim *sim, struct sim_vm *vm, unsigned int number, unsigned int host);
bool sim_move_pause(struct sim *sim, struct sim_rng *rng);
bool sim_move_begin(struct sim *sim, struct sim_vm *vm, struct sim_rng *rng);
void sim_move_step(struct sim *sim, struct sim_vm *vm);
void sim_vm_end(struct sim *sim, struct sim_vm *vm);
void sim_vm_leave(struct sim *sim, struct sim_vm *vm, unsigned int host, bool migrated);

/* guest->adapter is the one at @host from then on. */
void sim_vm_go_to(struct sim *sim, struct sim_vm *vm, unsigned int host);
/* The same, and it has a client. */
void sim_vm_attach(struct sim *sim, struct sim_vm *vm, unsigned int host);

/* twin.c */
/* Perhaps loads the state at another host, too. */
void sim_twin_load(struct sim *sim, struct sim_vm *vm);
/* @err: of the start of the VM. Return: 0 if the VM or its twin has started, else an error. */
int sim_twin_start(struct sim *sim, struct sim_vm *vm, int err);
void sim_twin_step(struct sim *sim, struct sim_vm *vm);
void sim_twin_cancel(struct sim *sim, struct sim_vm *vm);

/* snapshot.c */
/* The VM has stopped, and its state is saved. */
void sim_snapshot_of_move(struct sim *sim, struct sim_vm *vm);
/* The state is claimed: the VM has started with it, or runs on. */
void sim_snapshot_claim(struct sim *sim, struct sim_vm *vm);
bool sim_snapshot_is_claimed(const struct sim *sim, const struct sim_vm *vm);
/* Claims that may be on their way are lost, with @all the others too. */
void sim_snapshot_lose_claims(struct sim *sim, bool all);
/* The VM cannot start with its state at this host. Return: whether it may be so; it tries another one. */
bool sim_restore_refused(struct sim *sim, struct sim_vm *vm);
bool sim_snapshot(struct sim *sim, struct sim_rng *rng);
void sim_snapshot_free(struct sim_vm *vm);
bool sim_restore_begin(struct sim *sim, struct sim_rng *rng);
void sim_restore_memory(struct sim *sim, struct sim_vm *vm);
void sim_restore_end(struct sim *sim, struct sim_vm *vm);

/* window.c. The VM runs, and nothing was posted. */
bool sim_has_windows(const struct sim *sim, const struct sim_pair *pair);
void sim_window_bind(struct sim *sim, struct sim_end *end);
void sim_window_close(struct sim *sim, struct sim_end *end);
/* For the peer. */
uint32_t sim_rkey(const struct sim_end *end);

/* break.c */
bool sim_break(struct sim *sim, struct sim_rng *rng);
/* The memory of end @which must not change until the new connection. */
void sim_break_watch(struct sim *sim, struct sim_pair *pair, unsigned int which,
		     struct sim_rng *rng);
/* Disturbances of the network end, and all frames arrive that are on their way. */
void sim_hear_all(struct sim *sim);
/* Connect the pair again when it is due, or @now, if both VMs run. */
void sim_break_mend(struct sim *sim, struct sim_pair *pair, bool now);

/* demand.c */
/* The region of the end's buffer becomes one on demand, without pages. */
void sim_demand_open(struct sim *sim, struct sim_end *end);
/* The driver of a VM that runs handles its page faults. */
void sim_demand_poll(struct sim *sim, struct sim_vm *vm);
bool sim_demand_evict(struct sim *sim, struct sim_rng *rng);

/* verbs.c */
bool sim_verbs_resize(struct sim *sim, struct sim_rng *rng);
/* To SQD, or back to RTS. */
bool sim_verbs_drain(struct sim *sim, struct sim_rng *rng);
void sim_verbs_end_drains(struct sim *sim);

/* operator.c */
bool sim_operator_qos(struct sim *sim, struct sim_rng *rng);
bool sim_operator_fault(struct sim *sim, struct sim_rng *rng);
bool sim_operator_link(struct sim *sim, struct sim_rng *rng);
/* Of a file of peers. */
bool sim_operator_reload(struct sim *sim, struct sim_rng *rng);
/* Links come up when they are due, or @all. */
void sim_operator_mend(struct sim *sim, bool all);
void sim_operator_calm(struct sim *sim);

/* upgrade.c */
bool sim_upgrade(struct sim *sim, struct sim_rng *rng);

/* net.c. When a disturbance that begins now will end. */
uint64_t sim_draw_end(struct sim *sim, struct sim_rng *rng);
/* Return: whether it ends now. */
bool sim_ends(struct sim *sim, struct sim_down *down, bool all);
bool sim_net_cut(struct sim *sim, struct sim_rng *rng);
bool sim_net_nic(struct sim *sim, struct sim_rng *rng);
bool sim_net_hold(struct sim *sim, struct sim_rng *rng);
bool sim_net_limit(struct sim *sim, struct sim_rng *rng);
bool sim_net_frames(struct sim *sim, struct sim_rng *rng);
/* For so long no byte of @from arrives at @to. */
/* Return: whether streams between both hosts have been broken or held since then. */
bool sim_net_was_apart(const struct sim *sim, unsigned int a, unsigned int b, uint64_t since);
void sim_net_silence(struct sim *sim, unsigned int from, unsigned int to, uint64_t ns);
/* The host has no connection that it has made. */
void sim_net_disconnect(struct sim *sim, unsigned int host);
/* No stream is slow any more. */
void sim_net_calm(struct sim *sim);
bool sim_net_directory(struct sim *sim, struct sim_rng *rng);
/* What is due now is mended. */
void sim_net_mend(struct sim *sim, bool all);

/* outage.c. Without etcd, or after too many of them: false. */
bool sim_outage(struct sim *sim, struct sim_rng *rng);
void sim_outage_end(struct sim *sim);
/* With etcd, which responds to all hosts. */
bool sim_outage_is_over(const struct sim *sim);
bool sim_outage_moment(struct sim *sim, struct sim_rng *rng);

/* chance.c */
void sim_chance_init(uint64_t seed, const uint64_t *now);

#endif /* SIM_SIM_H */
