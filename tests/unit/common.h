/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Common parts of most unit tests: fixtures of fake guests, assertions about rings. */
#ifndef UNIT_COMMON_H
#define UNIT_COMMON_H

#include "fake_guest.h"
#include "fg_segment.h"
#include "fg_wire.h"
#include "test.h"

#define T_GUESTS 4

/* The state of every test; a fixture fills as much as its tests need. */
struct t_env {
	struct fg_wire *wire; /* with FG_WIRE in the environment: the guests are on two hosts */
	struct fg_segment *segment; /* with FG_SEGMENT: ditto, and speak RoCE */
	struct fg_host *host; /* the first one; fg_run() of it runs both */
	struct fg_guest *g[T_GUESTS]; /* vm1, vm2, ... */
	struct fg_end a, b; /* on g[0]; on g[1] if there is one, else g[0] too */
};

/* Where the second guest is, and any others that are not to be with the first. */
struct fg_host *t_other_host(struct t_env *env);

/* Fixtures. The ends' QPs are in RESET unless the name says "connected" or "ready". */
int t_setup_host(void **state); /* an engine without adapters */
int t_setup_unprobed(void **state); /* one guest whose driver has not come */
int t_setup_guest(void **state); /* one guest */
int t_setup_guests(void **state); /* two guests of one fabric */
int t_setup_rc(void **state); /* two guests, an RC end on each */
int t_setup_rc_connected(void **state);
int t_setup_uc(void **state); /* as rc, with PVR_EXT_UC */
int t_setup_rc_loopback(void **state); /* one guest, two connected RC ends on it */
int t_setup_ud_ready(void **state); /* two guests, a UD end on each, in RTS */
int t_setup_gsi_ready(void **state);
/* As @setup, with guests whose drivers acknowledge the extensions @ext. */
int t_setup_ext(void **state, uint32_t ext, t_fixture *setup);
/* For a setup of a test's own: hosts that are joined, with a guest each. */
struct t_env *t_env_of_hosts(void **state, const struct fg_wire_config *config);
int t_teardown(void **state);

/* T_SETUP(name, base) { ... } defines t_setup_<name>(): that of @base, then the body, with env. */
#define T_SETUP(name, base)              \
	static t_fixture t_setup_##name; \
	T_SHARED_SETUP(name, base)
/* The same for a fixture that a header declares. */
#define T_SHARED_SETUP(name, base)                    \
	static void t_fill_##name(struct t_env *env); \
	int t_setup_##name(void **state)              \
	{                                             \
		t_setup_##base(state);                \
		t_fill_##name(*state);                \
		return 0;                             \
	}                                             \
	static void t_fill_##name(struct t_env *env)

/* T_SETUP_EXT(name, ext, base): that of @base, with guests whose drivers acknowledge @ext. */
#define T_SETUP_EXT(name, ext, base)                            \
	static int t_setup_##name(void **state)                 \
	{                                                       \
		return t_setup_ext(state, ext, t_setup_##base); \
	}

/* Another RC end that is connected to itself. */
void t_open_self(struct fg_end *end, struct fg_guest *guest);
/* Two more connected RC ends. */
void t_open_pair(struct fg_end *c, struct fg_guest *gc, struct fg_end *d, struct fg_guest *gd);
/* Takes two ends, or a and b, through RESET to RTS again. */
void t_reconnect_ends(struct fg_end *a, struct fg_end *b);
void t_reconnect(struct t_env *env);

/* What the device has of it, see core/objects.h. */
struct pvr_qp *t_device_qp(struct fg_end *end);

/* TEST(fixture, name) { ... }: the body has env, which t_setup_<fixture>() has filled. */
#define TEST(fixture, test) TEST_WITH(struct t_env *env, t_setup_##fixture, t_teardown, test)
/* A test for each row, see TEST_CASES_WITH(). */
#define TEST_CASES(fixture, test, rows) \
	TEST_CASES_WITH(struct t_env *env, t_setup_##fixture, t_teardown, test, rows)
/*
 * TEST_OBJECT(fixture, struct pair, p, pair_init, name) { ... }: the body also has @var, a pointer
 * to an object on the stack that @init(var, env, ...) has filled.
 */
#define TEST_OBJECT(fixture, type, var, init, test, ...)                          \
	__attribute__((noinline)) static void test(struct t_env *env, type *var); \
	static void test##_run(void **state)                                      \
	{                                                                         \
		type var;                                                         \
		init(&var, *state, ##__VA_ARGS__);                                \
		test(*state, &var);                                               \
	}                                                                         \
	T_REGISTER(test, t_setup_##fixture, t_teardown)                           \
	static void test(struct t_env *env, type *var)
/* TEST() whose body also has g, the first guest. */
#define TEST_GUEST(fixture, test)                                                          \
	__attribute__((noinline)) static void test(struct t_env *env, struct fg_guest *g); \
	static void test##_run(void **state)                                               \
	{                                                                                  \
		test(*state, ((struct t_env *)*state)->g[0]);                              \
	}                                                                                  \
	T_REGISTER(test, t_setup_##fixture, t_teardown)                                    \
	static void test(struct t_env *env, struct fg_guest *g)

/* TEST_OBJECT() for each row, see TEST_CASES_WITH(). */
#define TEST_OBJECT_CASES(fixture, type, var, init, test, rows)                                  \
	static void test##_body(struct t_env *env, type *var, const __typeof__((rows)[0]) *row); \
	TEST_CASES(fixture, test, rows)                                                          \
	{                                                                                        \
		type var;                                                                        \
		init(&var, env);                                                                 \
		test##_body(env, &var, row);                                                     \
	}                                                                                        \
	static void test##_body(struct t_env *env, type *var, const __typeof__((rows)[0]) *row)

/* A row of TEST_CASES() with one value; T_CASE(): the value's expression is its name. */
struct t_case {
	const char *label;
	uint64_t value;
};
#define T_CASE(value) ((struct t_case){ #value, value })

/* The guests of this program acknowledge these extensions, unless a test sets others. */
#define TEST_EXT(ext)                   \
	TEST_INIT                       \
	{                               \
		fg_default_ext = (ext); \
	}

/* Closes the environment and sets up another in its place, which it returns. */
struct t_env *t_renew(t_fixture *setup);

/* Ends the test, and says why in a comment of TAP: scripts/check wants that of each. */
#define t_skip(why)                           \
	do {                                  \
		print_message("# %s\n", why); \
		skip();                       \
	} while (0)

/* For tests that are not about two hosts. */
#define t_one_host_only(env, why)                  \
	do {                                       \
		if ((env)->wire || (env)->segment) \
			t_skip(why);               \
	} while (0)
/* For tests of what no state has. */
#define t_not_migrated(env, why)      \
	do {                          \
		if (fg_migrate_every) \
			t_skip(why);  \
	} while (0)
/* For tests of what RoCE packets do not have. */
#define t_not_on_segment(env, why)   \
	do {                         \
		if ((env)->segment)  \
			t_skip(why); \
	} while (0)

/* The next CQE of @cq must be of @wr_id with @status; returns it. */
struct pvrdma_cqe t_cqe_at(struct fg_cq *cq, uint64_t wr_id, uint32_t status, const char *file,
			   int line);
#define expect_cqe(cq, wr_id, status) t_cqe_at(cq, wr_id, status, __FILE__, __LINE__)
/* Succeeded, with @opcode and @len. */
struct pvrdma_cqe t_cqe_ok_at(struct fg_cq *cq, uint64_t wr_id, uint32_t opcode, uint32_t len,
			      const char *file, int line);
#define expect_recv(cq, wr_id, len) t_cqe_ok_at(cq, wr_id, PVRDMA_WC_RECV, len, __FILE__, __LINE__)
#define expect_done(cq, wr_id, opcode) \
	t_cqe_ok_at(cq, wr_id, opcode, UINT32_MAX, __FILE__, __LINE__)
#define expect_sent(end, wr_id) expect_done(&(end)->scq, wr_id, PVRDMA_WC_SEND)
#define expect_written(end, wr_id) expect_done(&(end)->scq, wr_id, PVRDMA_WC_RDMA_WRITE)
#define expect_no_cqe(cq) assert_int_equal(fg_cq_pending(cq), 0)

/* As expect_*(), after the device has run until it has nothing to do. */
#define await_cqe(cq, wr_id, status) expect_cqe(t_run_for(cq), wr_id, status)
#define await_recv(cq, wr_id, len) expect_recv(t_run_for(cq), wr_id, len)
#define await_done(cq, wr_id, opcode) expect_done(t_run_for(cq), wr_id, opcode)
#define await_sent(end, wr_id) await_done(&(end)->scq, wr_id, PVRDMA_WC_SEND)
#define await_written(end, wr_id) await_done(&(end)->scq, wr_id, PVRDMA_WC_RDMA_WRITE)
#define await_no_cqe(cq) expect_no_cqe(t_run_for(cq))
/* fg_run() of the host of @cq. Return: @cq. */
struct fg_cq *t_run_for(struct fg_cq *cq);

/* The async ring holds exactly one event of this kind, and it is drained. */
#define expect_one_event(guest, type, info)                              \
	do {                                                             \
		assert_int_equal(fg_events_pending(guest), 1);           \
		assert_int_equal(fg_events_count(guest, type, info), 1); \
	} while (0)
#define expect_no_event(guest) assert_int_equal(fg_events_pending(guest), 0)
/* The same after the device has run until it has nothing to do. */
#define await_no_event(guest)           \
	do {                            \
		fg_run((guest)->host);  \
		expect_no_event(guest); \
	} while (0)

#define expect_state(end, qp_state) assert_int_equal(fg_qp_state(&(end)->qp), qp_state)
#define expect_ok(err) assert_int_equal(err, 0)
/* Refused, with an errno that we do not insist on. */
#define expect_refused(err)                                            \
	do {                                                           \
		uint32_t refused_err = (err);                          \
		assert_int_not_equal(refused_err, 0);                  \
		assert_int_not_equal(refused_err, FG_ERR_NO_RESPONSE); \
	} while (0)

/*
 * Posting with the default of everything: one entry of the end's own MR, signaled,
 * doorbell rung. Nothing runs.
 */
void t_send(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
void t_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
/*
 * Posts the signaled work request that fields of struct fg_wr describe, and rings the doorbell:
 * t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&env->a.mr, 0, 8));
 */
#define t_post(end, ...)                                                                       \
	do {                                                                                   \
		_Pragma("GCC diagnostic push") _Pragma(                                        \
			"GCC diagnostic ignored \"-Woverride-init\"")                          \
			const struct fg_wr t_wr = { .flags = PVR_SEND_SIGNALED, __VA_ARGS__ }; \
		_Pragma("GCC diagnostic pop") assert_true(fg_post_send(&(end)->qp, &t_wr));    \
	} while (0)
/* Fields of struct fg_wr: one SGE; the remote address of WRITE, READ, atomics; a UD destination. */
#define T_SGE(mr, offset, len) \
	.sge = (const struct pvrdma_sge[]){ fg_sge(mr, offset, len) }, .num_sge = 1
#define T_REMOTE(mr, offset) .remote_addr = (mr)->start + (offset), .rkey = (mr)->rkey
#define T_UD(address_vector, end) \
	.av = (address_vector), .remote_qpn = (end)->qp.qpn, .remote_qkey = FG_QKEY
/* @op: WRITE, WRITE_WITH_IMM or READ between the end's MR and @host. */
void t_rdma(struct fg_end *end, enum pvrdma_wr_opcode op, uint64_t wr_id, uint64_t offset,
	    const struct fg_mr *host, uint64_t remote_offset, uint32_t len);
/* A UD datagram to @to. */
void t_send_ud(struct fg_end *end, const struct fg_end *to, uint64_t wr_id, uint64_t offset,
	       uint32_t len);
/* The same to a multicast group. */
void t_send_group(struct fg_end *end, const uint8_t mgid[16], uint64_t wr_id, uint64_t offset,
		  uint32_t len);
/* A message of @len bytes from a to b, both with @wr_id, arrives. */
void t_exchange_at(struct t_env *env, uint64_t wr_id, uint32_t len, const char *file, int line);
#define t_exchange(env, wr_id, len) t_exchange_at(env, wr_id, len, __FILE__, __LINE__)
/* As fg_run(), also until a datagram to an unknown GID is dropped. */
void t_run_ud(struct fg_host *host);
/* An empty SEND number 7 from a, for which b posts a receive; @flags: PVR_SEND_*. */
void t_message(struct t_env *env, uint32_t flags);
/* A message from a to b and back: the pair works. Leaves both buffers changed. */
void t_ping_pong_at(struct fg_host *host, struct fg_end *a, struct fg_end *b, const char *file,
		    int line);
#define t_ping_pong(host, a, b) t_ping_pong_at(host, a, b, __FILE__, __LINE__)

/*
 * A directory of @npages entries that all lead to one data page, for sizes that no
 * guest has the memory for. Returns its bus address; *page is the data page.
 */
uint64_t t_wide_pdir(struct fg_guest *guest, uint32_t npages, uint32_t *page);
/* An MR of the end's PD with all access and such a directory; it has no va. */
void t_wide_mr(struct fg_end *end, uint32_t npages, struct fg_mr *mr);

/* Maps a page of read-only memory, which the caller may write, at this bus address. */
#define T_ROM_GPA 0xf0000000ull
uint8_t *t_map_rom(struct fg_guest *guest);

/* The device may allocate only @bytes more for the guest, see core/charge.h. */
void t_leave_memory(struct fg_guest *guest, uint64_t bytes);

/* RAM that every guest may plug in, at a bus address behind all else. Its contents stay. */
#define T_SPARE_GPA 0x4000000000ull
extern uint8_t t_spare[4 * PVR_PAGE_SIZE];
void t_plug_spare(struct fg_guest *guest);
void t_unplug_spare(struct fg_guest *guest);

#endif /* UNIT_COMMON_H */
