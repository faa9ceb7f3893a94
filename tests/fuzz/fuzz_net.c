// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: another host at the socket of a connection, from the first byte of
 * TLS or HELLO on, against net/ and an engine with a guest. The connection is a TCP
 * connection over loopback. The clock is a variable.
 *
 * The first byte of an input holds NET_* flags. Steps follow: a byte of enum step, a
 * length of two bytes in little-endian, and as many bytes.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fake_guest.h"
#include "net/hello.h"
#include "net/state.h"
#include "net/tls.h"

#define NET_DIALS 0x01 /* this host dials the fuzzer; else the fuzzer dials */
#define NET_TLS 0x02
#define NET_NO_HANDSHAKE 0x04 /* with TLS: the fuzzer sends only STEP_RAW */
#define NET_GUEST 0x08 /* with a connected queue pair */
#define PEER_QPN 0x123u
#define STEPS_MAX 200
#define KEY "00112233445566778899aabbccddeeff"

enum step {
	STEP_DATA, /* sends the bytes, in records if there is TLS */
	STEP_RAW, /* sends them without TLS */
	STEP_KEY_UPDATE,
	STEP_TICKET,
	STEP_TIME, /* the first byte in units of 100 ms */
	STEP_SHUTDOWN, /* of one direction */
	STEP_POST, /* the guest posts a request */
	STEP_ALERT, /* sends an alert */
	STEP_NUM,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
SSL *__wrap_SSL_new(SSL_CTX *ctx);
SSL *__real_SSL_new(SSL_CTX *ctx);

static uint64_t now_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(now_ns / PVR_SEC);
	ts->tv_nsec = (long)(now_ns % PVR_SEC);
	return 0;
}

static struct {
	int listener;
	struct sockaddr_in address;
	char listener_text[PVR_ADDRESS_TEXT];
	int key_files[2]; /* of this host, of the fuzzer */
	struct pvr_tls_context *context; /* of the fuzzer */
	struct pvr_loop *loop;
	struct fg_host *host;
	struct fg_guest *guest;
	struct fg_end end;
	struct pvr_net *net;
	uint8_t peer_gid[16];
	/* The fuzzer's side. */
	int fd; /* -1: none yet */
	struct pvr_tls *tls;
	SSL *ssl, *newest_ssl;
	bool secure; /* the handshake is done */
} w;

/* The fuzzer's session is that of struct pvr_tls, which does not show it. */
SSL *__wrap_SSL_new(SSL_CTX *ctx)
{
	w.newest_ssl = __real_SSL_new(ctx);
	return w.newest_ssl;
}

/* ------------------------------------------------------------------------- this host */

static void located(void *opaque, struct pvr_host *host, const char *fabric, const uint8_t gid[16],
		    uint8_t gid_type)
{
	(void)opaque;
	(void)host;
	(void)fabric;
	(void)gid;
	(void)gid_type;
}

static void want(void *opaque, struct pvr_host *host, uint8_t dscp)
{
	(void)opaque;
	if (w.net)
		pvr_net_request_dial(w.net, host, dscp);
}

static const struct pvr_gid_ops gid_ops = { 0 };
static const struct pvr_host_ops host_ops = { .located = located, .want = want };

static void log_line(enum pvr_log_level level, const char *host, const char *line)
{
	(void)level;
	for (const char *c = line; *c; c++)
		if (*c == '\n')
			fg_die("a log line of two lines");
	if (getenv("FUZZ_LOG"))
		fprintf(stderr, "%s\n", line);
}

static void add_guest(void)
{
	struct fg_conn conn = fg_conn_default;

	w.guest = fg_guest_start(w.host, 1);
	fg_end_open_spec(&w.end, &w.guest->kernel, &(struct fg_qp_spec){ .type = PVR_QPT_RC }, 4);
	if (pvr_engine_set_gid(w.host->engine, "default", w.peer_gid, PVR_GID_TYPE_ROCE_V2,
			       PVR_GID_AT_HOST, pvr_host_get(w.host->engine, "peer")))
		fg_die("cannot set a GID");
	conn.mtu = PVR_MTU_4096;
	if (fg_qp_to_reset(&w.end.qp) || fg_qp_connect(&w.end.qp, &conn, w.peer_gid, PEER_QPN))
		fg_die("cannot connect a queue pair");
	for (uint32_t i = 0; i < 4; i++) {
		const struct pvrdma_sge sge = fg_sge(&w.end.mr, 0, 8192);

		fg_post_recv(&w.end.qp, i, &sge, 1);
	}
}

static void make_net(uint8_t flags)
{
	struct pvr_net_settings settings = {
		.name = "self",
		.insecure = !(flags & NET_TLS),
		.connections = 1,
		.directory = true,
		.rdma_device = "none",
	};
	const struct pvr_net_env env = {
		.engine = w.host->engine,
		.loop = w.loop,
		.worker_loops = &w.loop,
		.workers = 1,
		.log = log_line,
	};
	struct pvr_error err;

	if (flags & NET_TLS)
		snprintf(settings.tls_psk_file, sizeof(settings.tls_psk_file), "/proc/self/fd/%d",
			 w.key_files[0]);
	if (!pvr_net_settings_check(&settings, &err))
		fg_die("%s", err.text);
	w.net = pvr_net_create(&env, &settings, &err);
	if (!w.net)
		fg_die("%s", err.text);
}

static void run(void)
{
	for (int i = 0; i < 8; i++) {
		now_ns += PVR_MSEC / 10;
		pvr_loop_wait(w.loop, 0);
		pvr_loop_dispatch(w.loop);
		fg_run_bounded(w.host, 1000);
	}
}

/* -------------------------------------------------------------------- the fuzzer's side */

/* Each piece arrives at once, and close() leaves no connection in TIME_WAIT. */
static void tune(int fd)
{
	const struct linger linger = { .l_onoff = 1 };
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void dial(void)
{
	struct pvr_address from = { .len = sizeof(w.address) };
	int fd;

	w.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	tune(w.fd);
	if (connect(w.fd, (struct sockaddr *)&w.address, sizeof(w.address)))
		fg_die("cannot connect over loopback");
	memcpy(&from.any, &w.address, sizeof(w.address));
	fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		fg_die("cannot accept a connection");
	pvr_incoming_accept(w.net, fd, &from);
}

static void answer_dial(void)
{
	struct pvr_error err;

	if (!pvr_peers_set(pvr_net_peers(w.net), "peer", w.listener_text, &err))
		fg_die("%s", err.text);
	pvr_peers_dial(pvr_net_peers(w.net), "peer");
	w.fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC);
	if (w.fd < 0)
		fg_die("this host does not dial");
	tune(w.fd);
}

/* Later attempts of this host to dial. */
static void refuse_dials(void)
{
	int fd;

	while ((fd = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		tune(fd);
		close(fd);
	}
}

static void secure(bool dialled)
{
	struct pvr_error err;

	w.tls = pvr_tls_create(w.context, w.fd, dialled ? NULL : "self");
	w.ssl = w.newest_ssl;
	if (!w.tls)
		fg_die("no memory");
	for (int i = 0; i < 8 && !w.secure; i++) {
		enum pvr_tls_result result = pvr_tls_handshake(w.tls, &err);

		if (result == PVR_TLS_FAILED)
			break;
		w.secure = result == PVR_TLS_DONE;
		run();
	}
	if (!w.secure)
		fg_die("the TLS handshake of two regular ends fails: %s", err.text);
	run();
}

static void send_raw(const uint8_t *data, size_t size)
{
	if (send(w.fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void send_data(const uint8_t *data, size_t size)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };

	if (!w.tls)
		send_raw(data, size);
	else if (w.secure && size)
		pvr_tls_send(w.tls, &iov, 1);
}

static void change_keys(bool ask)
{
	if (!w.secure)
		return;
	SSL_key_update(w.ssl, ask ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	SSL_do_handshake(w.ssl);
	pvr_tls_flush(w.tls);
}

static void send_ticket(void)
{
	if (!w.secure || !SSL_is_server(w.ssl))
		return;
	SSL_new_session_ticket(w.ssl);
	SSL_do_handshake(w.ssl);
	pvr_tls_flush(w.tls);
}

static void send_alert(void)
{
	if (!w.secure)
		return;
	SSL_shutdown(w.ssl);
	pvr_tls_flush(w.tls);
}

static void receive(void)
{
	static uint8_t buf[65536];
	const struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };

	if (w.secure)
		pvr_tls_recv(w.tls, &iov, 1);
	else
		while (recv(w.fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
}

static void post(void)
{
	const struct pvrdma_sge sge = w.guest ? fg_sge(&w.end.mr, 0, 5000)
					      : (struct pvrdma_sge){ 0 };
	const struct fg_wr wr = {
		.opcode = PVRDMA_WR_SEND,
		.flags = PVR_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
	};

	if (!w.guest)
		return;
	fg_cq_drain(&w.end.scq);
	fg_post_send(&w.end.qp, &wr);
}

static void step(enum step step, const uint8_t *data, size_t size)
{
	switch (step) {
	case STEP_DATA:
		send_data(data, size);
		break;
	case STEP_RAW:
		send_raw(data, size);
		break;
	case STEP_KEY_UPDATE:
		change_keys(size);
		break;
	case STEP_TICKET:
		send_ticket();
		break;
	case STEP_TIME:
		now_ns += size ? data[0] * 100 * PVR_MSEC : PVR_MSEC;
		w.host->now = now_ns;
		break;
	case STEP_SHUTDOWN:
		shutdown(w.fd, SHUT_WR);
		break;
	case STEP_POST:
		post();
		break;
	default:
		send_alert();
		break;
	}
	run();
	receive();
	refuse_dials();
}

static void steps(const uint8_t *data, size_t size)
{
	for (int i = 0; i < STEPS_MAX && size >= 3; i++) {
		size_t len = data[1] | (size_t)data[2] << 8;

		len = len < size - 3 ? len : size - 3;
		step(data[0] % STEP_NUM, data + 3, len);
		data += 3 + len;
		size -= 3 + len;
	}
}

/* ---------------------------------------------------------------------------- a run */

static void begin(uint8_t flags)
{
	now_ns = 1000 * PVR_SEC;
	w.loop = pvr_loop_create();
	w.host = fg_host_create();
	w.host->now = now_ns;
	if (!w.loop)
		fg_die("no memory");
	pvr_engine_set_pipe(w.host->engine, &gid_ops, &host_ops, NULL);
	make_net(flags);
	if (flags & NET_GUEST)
		add_guest();
	if (flags & NET_DIALS)
		answer_dial();
	else
		dial();
	run();
	if ((flags & (NET_TLS | NET_NO_HANDSHAKE)) == NET_TLS)
		secure(flags & NET_DIALS);
}

static void finish(void)
{
	struct pvr_net *net = w.net;

	w.net = NULL;
	pvr_tls_destroy(w.tls);
	close(w.fd);
	pvr_net_destroy(net);
	refuse_dials();
	if (w.guest) {
		fg_end_close(&w.end);
		fg_guest_destroy(w.guest);
	}
	fg_host_destroy(w.host);
	pvr_loop_destroy(w.loop);
	w.guest = NULL;
	w.tls = NULL;
	w.secure = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	begin(data[0]);
	steps(data + 1, size - 1);
	finish();
	return 0;
}

/* ---------------------------------------------------------------------------- seeds */

static struct {
	uint8_t data[4096];
	size_t size;
} seed;

static void add(enum step step, const void *data, size_t size)
{
	seed.data[seed.size++] = (uint8_t)step;
	seed.data[seed.size++] = (uint8_t)size;
	seed.data[seed.size++] = (uint8_t)(size >> 8);
	memcpy(seed.data + seed.size, data, size);
	seed.size += size;
}

static void save(const char *name, uint8_t flags)
{
	char path[512];
	FILE *file;

	seed.data[0] = flags;
	snprintf(path, sizeof(path), "%s/%s", getenv("FUZZ_SEEDS"), name);
	file = fopen(path, "wb");
	if (!file || fwrite(seed.data, seed.size, 1, file) != 1 || fclose(file))
		fg_die("cannot write %s", path);
}

static void seed_begin(uint32_t features)
{
	const struct pvr_hello hello = {
		.version_min = PVR_FRAME_VERSION,
		.version_max = PVR_FRAME_VERSION,
		.instance = 7,
		.features = PVR_HELLO_F_PIGGYBACK_ACK | PVR_HELLO_F_QP_GONE | features,
		.chunk = 65536,
		.count = 1,
		.keepalive_ms = 5000,
		.name = "peer",
	};
	union pvr_any_frame frame;

	memset(&seed, 0, sizeof(seed));
	seed.size = 1;
	pvr_hello_write(&frame, &hello);
	add(STEP_DATA, &frame, sizeof(frame.hello));
}

static void add_verbs_qp(void)
{
	const struct pvr_frame_verbs_qp qp = {
		.frame = { .size = htole32(sizeof(qp)), .type = PVR_FRAME_VERBS_QP },
		.gid = { 0xfe, 0x80, [15] = 1 },
		.qpn = htole32(17),
		.mtu = 3,
		.buffers = htole32(16),
		.buffer_size = htole32(65536),
	};

	add(STEP_DATA, &qp, sizeof(qp));
}

/* Frames of both directions; the wrong ones end the connection. */
static void add_traffic(uint8_t flags)
{
	const struct pvr_frame_ping ping = {
		.frame = { .size = htole32(sizeof(ping)),
			   .type = flags & NET_DIALS ? PVR_FRAME_PONG : PVR_FRAME_PING },
	};
	const struct pvr_frame_fabric fabric = {
		.frame = { .size = htole32(sizeof(fabric)),
			   .type = PVR_FRAME_FABRIC,
			   .fabric = htole16(1) },
		.name = "default",
	};
	const struct pvr_frame_gid_query query = {
		.frame = { .size = htole32(sizeof(query)),
			   .type = flags & NET_DIALS ? PVR_FRAME_GID_REPLY : PVR_FRAME_GID_QUERY,
			   .fabric = htole16(1) },
		.gid = { 0xfe, 0x80, [15] = 1 },
	};
	const struct pvr_frame_close end = {
		.frame = { .size = htole32(sizeof(end)), .type = PVR_FRAME_CLOSE },
		.text = "over",
	};

	if (!(flags & NET_DIALS))
		add(STEP_DATA, &fabric, sizeof(fabric));
	add(STEP_DATA, &ping, sizeof(ping));
	add(STEP_POST, "", 0);
	add(STEP_KEY_UPDATE, "x", 1);
	add(STEP_TICKET, "", 0);
	add(STEP_TIME, "\x05", 1);
	add(STEP_DATA, &query, sizeof(query));
	add(STEP_KEY_UPDATE, "", 0);
	add(STEP_DATA, &end, sizeof(end));
}

static void write_seeds(void)
{
	static const uint8_t client_hello[] = { 0x16, 0x03, 0x01, 0, 5, 1, 0, 0, 1, 3, 0x16, 3, 3 };

	for (uint8_t flags = 0; flags < 16; flags++) {
		char name[32];

		if (flags & NET_NO_HANDSHAKE)
			continue;
		seed_begin(0);
		add_traffic(flags);
		snprintf(name, sizeof(name), "traffic-%x", flags);
		save(name, flags);
		seed_begin(PVR_HELLO_F_RDMA | PVR_HELLO_F_VERBS);
		add_verbs_qp();
		snprintf(name, sizeof(name), "queue-pair-%x", flags);
		if (!(flags & NET_GUEST))
			save(name, flags);
	}
	memset(&seed, 0, sizeof(seed));
	seed.size = 1;
	add(STEP_RAW, client_hello, sizeof(client_hello));
	save("tls-at-plain", 0);
	save("tls-bytes", NET_TLS | NET_NO_HANDSHAKE);
	save("tls-answer", NET_TLS | NET_NO_HANDSHAKE | NET_DIALS);
	seed_begin(0);
	add(STEP_ALERT, "", 0);
	add(STEP_RAW, client_hello, sizeof(client_hello));
	save("tls-alert", NET_TLS);
	memset(&seed, 0, sizeof(seed));
	seed.size = 1;
	add(STEP_TIME, "\x40", 1);
	save("slow", 0);
	add(STEP_SHUTDOWN, "", 0);
	save("gone", NET_DIALS);
}

static int make_key_file(const char *text)
{
	int fd = memfd_create("keys", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fg_die("cannot write a memory file");
	return fd;
}

static void make_context(void)
{
	struct pvr_net_settings settings = { .name = "peer" };
	struct pvr_error err;

	w.key_files[0] = make_key_file("peer:" KEY "\n");
	w.key_files[1] = make_key_file("self:" KEY "\n");
	snprintf(settings.tls_psk_file, sizeof(settings.tls_psk_file), "/proc/self/fd/%d",
		 w.key_files[1]);
	w.context = pvr_tls_context_create(&settings, &err);
	if (!w.context)
		fg_die("%s", err.text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	socklen_t len = sizeof(w.address);
	struct fg_guest_config config;

	(void)argc;
	(void)argv;
	make_context();
	w.address = (struct sockaddr_in){ .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(w.listener, (struct sockaddr *)&w.address, sizeof(w.address)) ||
	    listen(w.listener, 64) || getsockname(w.listener, (struct sockaddr *)&w.address, &len))
		fg_die("cannot listen at loopback");
	snprintf(w.listener_text, sizeof(w.listener_text), "127.0.0.1:%u",
		 ntohs(w.address.sin_port));
	fg_guest_config_init(&config, 9);
	fg_gid_from_mac(w.peer_gid, config.mac);
	if (!getenv("FUZZ_SEEDS"))
		return 0;
	write_seeds();
	exit(0);
}
