// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Data integrity between two hosts while their network fails. Each stream is an RC
 * connection that writes, sends, reads and adds, and checks every byte.
 *
 * A step of a stream writes a pattern into the step's slot at the other end, then sends
 * the step's number with a pattern. The other end accepts only the next number, and checks
 * both patterns. Every fourth step reads back the slot just written, and adds 1 to a
 * counter at the other end, whose old value must be the number of additions before.
 *
 * If the guests are in two processes, each has one end of each stream, and they exchange
 * their progress. The run ends early when every stream has failed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guests.h"
#include "plug.h"
#include "travel.h"

#define SLOTS 8u /* steps in flight */
#define MAX_STREAMS 64
#define DEPTH 64 /* of queues: at most 4 requests a step */
#define MAX_SEND 8192u
#define STALL_S 100 /* no progress for so long is an error */

/* Offsets in the buffer of either end. */
struct layout {
	size_t write, send, back, word;
	size_t end;
};

enum {
	WR_WRITE,
	WR_SEND,
	WR_READ,
	WR_ADD,
};

/* Progress of a stream, in steps, for the other process. */
enum {
	NEWS_TAKEN = 1,
	NEWS_POSTED, /* there will be no more */
};

struct stream {
	unsigned int number;
	struct fg_end from, to; /* guest is NULL: it is elsewhere */
	uint64_t posted, sent, taken; /* steps: begun, completed, seen at the other end */
	bool complete; /* the end that sends is elsewhere: it begins no more, posted is known */
	bool failed;
	enum pvrdma_wc_status status; /* of the first completion in error */
	double moved; /* when it got further last */
};

struct run {
	struct guests guests;
	struct layout at;
	struct stream stream[MAX_STREAMS];
	unsigned int streams;
	unsigned int max_write;
	struct fg_conn conn;
	uint64_t wrong, bytes, steps;
	const char *until; /* a file; NULL: time only */
	struct travel travel;
};

static struct layout layout_of(size_t max_write)
{
	struct layout at;

	at.write = 0;
	at.send = at.write + SLOTS * max_write;
	at.back = at.send + SLOTS * MAX_SEND;
	at.word = at.back + SLOTS * max_write;
	at.end = at.word + SLOTS * sizeof(uint64_t);
	return at;
}

static uint32_t seed_of(const struct stream *stream, uint64_t step)
{
	return (uint32_t)(step * 2654435761u) ^ stream->number << 24;
}

static size_t write_size(const struct run *run, const struct stream *stream, uint64_t step)
{
	return seed_of(stream, step) % run->max_write + 1;
}

static uint32_t send_size(const struct stream *stream, uint64_t step)
{
	return sizeof(step) + seed_of(stream, step + 1) % (MAX_SEND - sizeof(step));
}

static bool has_more(uint64_t step)
{
	return step % 4 == 3;
}

static void wrong(struct run *run, const struct stream *stream, uint64_t step, const char *what)
{
	if (run->wrong++ < 10)
		fprintf(stderr, "stream %u, step %" PRIu64 ": %s\n", stream->number, step, what);
}

/* ------------------------------------------------------------------- the sender */

static uint64_t id_of(uint64_t step, unsigned int what)
{
	return step << 2 | what;
}

static void post_more(struct run *run, struct stream *stream, uint64_t step)
{
	struct fg_end *from = &stream->from;
	const struct fg_mr *to = &stream->to.mr;
	unsigned int slot = step % SLOTS;
	size_t size = write_size(run, stream, step), back_at = run->at.back + slot * run->max_write;

	memset(from->mr.va + back_at, 0, size);
	guests_post(from, .wr_id = id_of(step, WR_READ), .opcode = PVRDMA_WR_RDMA_READ,
		    ONE_SGE(&from->mr, back_at, (uint32_t)size),
		    REMOTE(to, run->at.write + slot * run->max_write));
	guests_post(from, .wr_id = id_of(step, WR_ADD), .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		    ONE_SGE(&from->mr, run->at.word + slot * sizeof(uint64_t), sizeof(uint64_t)),
		    REMOTE(to, run->at.word), .compare_add = 1, .flags = PVR_SEND_SIGNALED);
}

static void begin_step(struct run *run, struct stream *stream)
{
	struct fg_end *from = &stream->from;
	uint64_t step = stream->posted++;
	unsigned int slot = step % SLOTS;
	size_t write_at = run->at.write + slot * run->max_write,
	       send_at = run->at.send + slot * MAX_SEND;
	uint8_t *message = from->mr.va + send_at;
	size_t size = write_size(run, stream, step);
	uint32_t send = send_size(stream, step);

	fg_fill(from->mr.va + write_at, size, seed_of(stream, step));
	memcpy(message, &step, sizeof(step));
	fg_fill(message + sizeof(step), send - sizeof(step), seed_of(stream, step));
	guests_post(from, .wr_id = id_of(step, WR_WRITE), .opcode = PVRDMA_WR_RDMA_WRITE,
		    ONE_SGE(&from->mr, write_at, (uint32_t)size), REMOTE(&stream->to.mr, write_at));
	guests_post(from, .wr_id = id_of(step, WR_SEND), .opcode = PVRDMA_WR_SEND,
		    ONE_SGE(&from->mr, send_at, send),
		    .flags = has_more(step) ? 0 : PVR_SEND_SIGNALED);
	if (has_more(step))
		post_more(run, stream, step);
}

static void check_more(struct run *run, const struct stream *stream, uint64_t step)
{
	unsigned int slot = step % SLOTS;
	size_t size = write_size(run, stream, step);
	uint64_t old;

	memcpy(&old, stream->from.mr.va + run->at.word + slot * sizeof(old), sizeof(old));
	if (old != step / 4)
		wrong(run, stream, step, "the counter was added to more or less than once");
	if (fg_mismatch(stream->from.mr.va + run->at.back + slot * run->max_write, size,
			seed_of(stream, step)) != size)
		wrong(run, stream, step, "READ brought other data than there are");
	run->bytes += size;
}

static void fail(struct stream *stream, const struct pvrdma_cqe *cqe)
{
	if (!stream->failed)
		stream->status = cqe->status;
	stream->failed = true;
}

/* The next successful completion. Return: false if there is none; @any: whether there was one. */
static bool poll_good(struct stream *stream, struct fg_cq *cq, struct pvrdma_cqe *cqe, bool *any)
{
	while (fg_cq_poll(cq, cqe)) {
		*any = true;
		if (cqe->status == PVRDMA_WC_SUCCESS)
			return true;
		fail(stream, cqe);
	}
	return false;
}

static bool reap_sent(struct run *run, struct stream *stream)
{
	struct pvrdma_cqe cqe;
	bool any = false;

	while (poll_good(stream, &stream->from.scq, &cqe, &any)) {
		if (cqe.wr_id != id_of(stream->sent, has_more(stream->sent) ? WR_ADD : WR_SEND)) {
			wrong(run, stream, stream->sent, "completions are out of order");
			fail(stream, &cqe);
			continue;
		}
		if (has_more(stream->sent))
			check_more(run, stream, stream->sent);
		stream->sent++;
	}
	return any;
}

/* ------------------------------------------------------------------ the receiver */

static void post_recv(struct run *run, struct stream *stream, unsigned int slot)
{
	guests_post_recv(&stream->to, slot, run->at.send + slot * MAX_SEND, MAX_SEND);
}

static void check_step(struct run *run, const struct stream *stream, const struct pvrdma_cqe *cqe)
{
	const uint8_t *message = stream->to.mr.va + run->at.send + cqe->wr_id * MAX_SEND;
	uint64_t step = stream->taken, got;
	size_t size = write_size(run, stream, step);
	uint32_t send = send_size(stream, step);

	memcpy(&got, message, sizeof(got));
	if (got != step)
		wrong(run, stream, step,
		      got < step ? "a message came twice" : "a message got lost");
	else if (cqe->byte_len != send || fg_mismatch(message + sizeof(step), send - sizeof(step),
						      seed_of(stream, step)) != send - sizeof(step))
		wrong(run, stream, step, "a message is not what was sent");
	else if (fg_mismatch(stream->to.mr.va + run->at.write + step % SLOTS * run->max_write, size,
			     seed_of(stream, step)) != size)
		wrong(run, stream, step, "memory is not what was written before the message");
	run->bytes += size + send;
	run->steps++;
}

static bool reap_received(struct run *run, struct stream *stream)
{
	struct pvrdma_cqe cqe;
	bool any = false;

	while (poll_good(stream, &stream->to.rcq, &cqe, &any)) {
		check_step(run, stream, &cqe);
		stream->taken++;
		post_recv(run, stream, (unsigned int)cqe.wr_id);
	}
	return any;
}

/* ------------------------------------------------------------------------ streams */

static void open_stream(struct run *run, unsigned int number)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_wr = DEPTH, .rq_wr = 2 * SLOTS };
	struct stream *stream = &run->stream[number];

	stream->number = number;
	/* The directions alternate. */
	guests_open_end(&run->guests, number % 2, &stream->from, &spec, run->at.end);
	guests_open_end(&run->guests, 1 - number % 2, &stream->to, &spec, run->at.end);
	for (unsigned int slot = 0; stream->to.guest && slot < SLOTS; slot++)
		post_recv(run, stream, slot);
	guests_connect(&run->guests, &stream->from, &stream->to, &run->conn);
	stream->moved = now();
}

static bool is_done(const struct stream *stream)
{
	return stream->from.guest
		       ? stream->sent == stream->posted && stream->taken == stream->posted
		       : stream->complete && stream->taken == stream->posted;
}

/* ------------------------------------------------------------ two processes */

static void tell(struct run *run, const struct stream *stream, uint32_t what, uint64_t value)
{
	if (run->guests.far.fd >= 0)
		far_tell(&run->guests.far, &(struct far_news){ what, stream->number, value });
}

static void hear(struct run *run)
{
	struct far_news news;

	while (run->guests.far.fd >= 0 && far_hear(&run->guests.far, &news)) {
		struct stream *stream = &run->stream[news.stream % MAX_STREAMS];

		if (news.what == NEWS_TAKEN)
			stream->taken = news.value;
		else
			stream->posted = news.value;
		stream->complete |= news.what == NEWS_POSTED;
		stream->moved = now();
	}
}

static void tell_posted(struct run *run)
{
	for (unsigned int i = 0; i < run->streams; i++) {
		if (run->stream[i].from.guest)
			tell(run, &run->stream[i], NEWS_POSTED, run->stream[i].posted);
	}
}

static bool reap(struct run *run, struct stream *stream)
{
	uint64_t taken = stream->taken;
	bool any = false;

	if (stream->to.guest)
		any |= reap_received(run, stream);
	if (stream->from.guest)
		any |= reap_sent(run, stream);
	else if (stream->taken != taken)
		tell(run, stream, NEWS_TAKEN, stream->taken);
	return any;
}

static bool work(struct run *run, struct stream *stream, bool more)
{
	const struct fg_end *here = stream->from.guest ? &stream->from : &stream->to;
	bool any = false;

	/* A slot is used anew once both ends are through with it. */
	while (more && here == &stream->from && !stream->failed &&
	       stream->posted < stream->sent + SLOTS && stream->posted < stream->taken + SLOTS) {
		begin_step(run, stream);
		any = true;
	}
	any |= reap(run, stream);
	if (plug_is_gone(here->guest->adapter))
		stream->failed = true; /* no completion will come */
	if (any)
		stream->moved = now();
	else if (!stream->failed && !is_done(stream) && now() - stream->moved > STALL_S)
		fg_die("stream %u: nothing moved for %d s at step %" PRIu64 " (sent %" PRIu64
		       ", taken %" PRIu64 ")",
		       stream->number, STALL_S, stream->posted, stream->sent, stream->taken);
	return any;
}

/* Return: whether a stream still has something under way. */
static bool go_round(struct run *run, bool more)
{
	bool any = false, under_way = false;

	hear(run);
	for (unsigned int i = 0; i < run->streams; i++) {
		struct stream *stream = &run->stream[i];

		any |= work(run, stream, more);
		under_way |= !stream->failed && !is_done(stream);
	}
	if (!any)
		usleep(20);
	return under_way;
}

/* Any status by its number instead of ibv_wc_status_str(). */
static void report(const struct run *run, double seconds)
{
	const char *comma = "";

	printf("{\"steps\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"seconds\": %.3f, \"wrong\": %" PRIu64 ", \"streams\": %u, \"moves\": %u, "
	       "\"cancelled\": %u, \"both\": %u, \"failed\": [",
	       run->steps, run->bytes, seconds, run->wrong, run->streams, run->travel.done,
	       run->travel.cancelled, run->travel.both);
	for (unsigned int i = 0; i < run->streams; i++) {
		if (!run->stream[i].failed)
			continue;
		printf("%s{\"stream\": %u, \"status\": %d}", comma, i, run->stream[i].status);
		comma = ", ";
	}
	printf("]}\n");
}

static bool all_failed(const struct run *run)
{
	unsigned int i = 0;

	while (i < run->streams && run->stream[i].failed)
		i++;
	return i == run->streams;
}

static bool is_over(const struct run *run, double deadline)
{
	bool moved = run->travel.moves && run->travel.done >= run->travel.moves;

	return moved || now() >= deadline || (run->until && !access(run->until, F_OK)) ||
	       all_failed(run);
}

static void verify(struct run *run, double seconds)
{
	double start = now(), deadline = start + seconds;
	bool told = false;

	while (!is_over(run, deadline)) {
		go_round(run, true);
		if (run->travel.moves && run->steps)
			travel_go(&run->travel, &run->guests);
		if (!told && run->steps) {
			fprintf(stderr, "begun\n");
			told = true;
		}
	}
	tell_posted(run);
	while (go_round(run, false))
		;
	/* The other process may still wait for an acknowledgement. */
	guests_meet(&run->guests);
	report(run, now() - start);
}

/* -------------------------------------------------------------------- command line */

static const char help[] =
	"Usage: hosts_verify [OPTION]... NUMBER=SOCKET [NUMBER=SOCKET]\n"
	"Plugs two fake guests into adapters of running daemons and checks every byte that\n"
	"they send each other. A guest's MAC is 52:54:00:12:34:NUMBER, in hexadecimal.\n\n"
	"  --seconds S    how long to begin new steps (default 5)\n"
	"  --until FILE   or until there is such a file\n"
	"  --streams N    connections, half of them each way (default 4, at most 64)\n"
	"  --max-write B  largest RDMA WRITE (default 262144)\n"
	"  --timeout T    the queue pairs' local ACK timeout (default 20: 4 s)\n"
	"  --retries R    their retry count (default 7)\n"
	"  --ipv4         GIDs of IPv4 addresses instead of the default ones\n"
	"  --moves N      with NUMBER=SOCKET,SOCKET...: move guests among these sockets, until\n"
	"                 there were N moves; some moves are cancelled\n"
	"  --moves-from FILE   not before there is such a file\n"
	"  --seed S       which moves\n"
	"  --may-fail     a stream that fails is reported, and no error\n" GUESTS_HELP "\n"
	"One line of JSON is the result. Exit status 0: nothing was wrong.\n";

int main(int argc, char **argv)
{
	static struct run run = { .streams = 4, .max_write = 256 << 10 };
	bool may_fail = false, ipv4 = false, failed = false;
	unsigned int timeout = 20, retries = 7;
	double seconds = 5;
	const struct guests_option options[] = {
		{ "seconds", GUESTS_SECONDS, &seconds },
		{ "streams", GUESTS_NUMBER, &run.streams },
		{ "max-write", GUESTS_NUMBER, &run.max_write },
		{ "timeout", GUESTS_NUMBER, &timeout },
		{ "retries", GUESTS_NUMBER, &retries },
		{ "ipv4", GUESTS_FLAG, &ipv4 },
		{ "may-fail", GUESTS_FLAG, &may_fail },
		{ "until", GUESTS_TEXT, &run.until },
		{ "moves", GUESTS_NUMBER, &run.travel.moves },
		{ "moves-from", GUESTS_TEXT, &run.travel.from },
		{ "seed", GUESTS_NUMBER, &run.travel.seed },
		{ 0 },
	};

	guests_parse(&run.guests, options, help, argc, argv);
	if (argc - optind != guests_here(&run.guests) || !run.streams ||
	    run.streams > MAX_STREAMS || !run.max_write)
		guests_usage(help);
	run.conn = fg_conn_default;
	run.conn.timeout = (uint8_t)timeout;
	run.conn.retry_cnt = (uint8_t)retries;
	run.conn.sgid_index = ipv4;
	run.at = layout_of(run.max_write);
	for (int i = optind; run.travel.moves && i < argc; i++)
		argv[i] = travel_parse(&run.travel.places[i - optind], argv[i]);
	run.travel.gap = 0.05;
	run.travel.may_fail = may_fail;
	guests_open(&run.guests, (const char *const *)argv + optind,
		    (uint32_t)(run.streams * (run.at.end >> 20) * 5 / 4 + 64));
	for (unsigned int i = 0; i < run.streams; i++)
		open_stream(&run, i);
	guests_meet(&run.guests);
	verify(&run, seconds);
	for (unsigned int i = 0; i < run.streams; i++)
		failed |= run.stream[i].failed;
	return run.wrong || (failed && !may_fail);
}
