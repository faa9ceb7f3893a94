// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tables and texts that pvrdmactl prints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl_print.h"
#include "daemon/json_get.h"

const char *pvr_print_bytes(uint64_t bytes, char buf[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buf;
}

/* --------------------------------------------------------------------- tables */

/* All cells are built first: a column is as wide as its widest cell. */
#define TABLE_COLUMNS 14

void pvr_print_table(size_t rows, size_t columns,
		     void (*cell)(void *opaque, size_t row, size_t column, char *buf), void *opaque)
{
	size_t width[TABLE_COLUMNS] = { 0 }, row, column;
	char buf[PVR_TABLE_CELL];

	for (row = 0; row < rows; row++) {
		for (column = 0; column < columns; column++) {
			cell(opaque, row, column, buf);
			if (strlen(buf) > width[column])
				width[column] = strlen(buf);
		}
	}
	for (row = 0; row < rows; row++) {
		for (column = 0; column < columns; column++) {
			cell(opaque, row, column, buf);
			printf("%-*s%s", column + 1 < columns ? (int)width[column] : 0, buf,
			       column + 1 < columns ? "  " : "\n");
		}
	}
}

/* The state of the device, unless the adapter is stopped or more. */
static const char *state_of(struct json_object *adapter)
{
	const char *run_state = text_of(adapter, "run_state");

	return !*run_state || !strcmp(run_state, "running") ? text_of(adapter, "state") : run_state;
}

static void adapter_cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const char *const titles[] = { "ADAPTER", "FABRIC", "MAC",   "HW",   "ROCE",
					      "UAR",	 "STATE",  "LINK",  "QEMU", "RAM",
					      "LIMIT",	 "WORKER", "SOCKET" };
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;
	char bytes[32];

	if (!row)
		snprintf(buf, PVR_TABLE_CELL, "%s", titles[column]);
	else if (column == 0)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "name"));
	else if (column == 1)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "fabric"));
	else if (column == 2)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "mac"));
	else if (column == 3)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "hwversion"));
	else if (column == 4)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "roce"));
	else if (column == 5)
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "uar"));
	else if (column == 6)
		snprintf(buf, PVR_TABLE_CELL, "%s", state_of(obj));
	else if (column == 7)
		snprintf(buf, PVR_TABLE_CELL, "%s", truth_of(obj, "link_up") ? "up" : "down");
	else if (column == 8 && !truth_of(obj, "attached"))
		snprintf(buf, PVR_TABLE_CELL, "none");
	else if (column == 8)
		snprintf(buf, PVR_TABLE_CELL, "%" PRIu64, number_of(obj, "qemu_pid"));
	else if (column == 9)
		snprintf(buf, PVR_TABLE_CELL, "%s",
			 pvr_print_bytes(number_of(obj, "ram_bytes"), bytes));
	else if (column == 10)
		snprintf(buf, PVR_TABLE_CELL, "%s",
			 pvr_print_bytes(number_of(obj, "ram_limit_bytes"), bytes));
	else if (column == 11)
		snprintf(buf, PVR_TABLE_CELL, "%" PRIu64, number_of(obj, "worker"));
	else
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, "socket"));
}

void pvr_print_adapters(struct json_object *reply)
{
	size_t len;
	struct json_object *list = list_of(reply, "adapters", &len);

	pvr_print_table(len + 1, 13, adapter_cell, list);
}

static void print_stats_of(struct json_object *adapter)
{
	printf("%s: %s\n", text_of(adapter, "name"), text_of(adapter, "state"));
	json_object_object_foreach(adapter, key, value)
	{
		if (json_object_is_type(value, json_type_int))
			printf("  %-18s %" PRIu64 "\n", key, json_object_get_uint64(value));
	}
}

void pvr_print_stats(struct json_object *reply)
{
	size_t len, i;
	struct json_object *list = list_of(reply, "adapters", &len);

	for (i = 0; i < len; i++)
		print_stats_of(json_object_array_get_idx(list, i));
}

/* ------------------------------------------------------------------ queue pairs */

static void qp_cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const struct {
		const char *title, *key;
	} columns[] = {
		{ "QPN", "qpn" },
		{ "TYPE", "type" },
		{ "STATE", "state" },
		{ "PEER", "dgid" },
		{ "QPN", "dest_qpn" },
		{ "SENT", "tx_messages" },
		{ "RECEIVED", "rx_messages" },
		{ "BYTES", "tx_bytes" },
		{ "BY TCP", "tcp_bytes" },
		{ "TIMEOUTS", "ack_timeouts" },
		{ "WAITS FOR", "wait" },
	};
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;
	const char *text = row ? text_of(obj, columns[column].key) : columns[column].title;
	bool peer = column == 3 || column == 4;

	snprintf(buf, PVR_TABLE_CELL, "%s",
		 !*text || (row && peer && !number_of(obj, "dest_qpn")) ? "-" : text);
}

void pvr_print_qps(struct json_object *reply)
{
	size_t len, num, i;
	struct json_object *adapters = list_of(reply, "adapters", &len), *qps;

	for (i = 0; i < len; i++) {
		printf("%s:\n", text_of(json_object_array_get_idx(adapters, i), "name"));
		qps = list_of(json_object_array_get_idx(adapters, i), "qps", &num);
		pvr_print_table(num + 1, 11, qp_cell, qps);
	}
}

void pvr_print_qp(struct json_object *reply)
{
	struct json_object *qp = NULL;
	const char *text;

	json_object_object_get_ex(reply, "qp", &qp);
	printf("%s: queue pair %s\n", text_of(reply, "name"), text_of(qp, "qpn"));
	json_object_object_foreach(qp, key, value)
	{
		text = json_object_get_string(value);
		printf("  %-26s %s\n", key, *text ? text : "-");
	}
}

/* -------------------------------------------------------------------- workers */

static void worker_cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const struct {
		const char *title, *key;
	} columns[] = {
		{ "WORKER", "worker" },
		{ "CPUS", "cpus" },
		{ "ADAPTERS", "adapters" },
		{ "CPU/MS", "cpu_ms" },
		{ "MESSAGES", "messages" },
		{ "BLOCKED", "lock_contended" },
		{ "POLL", "poll" },
		{ "WINDOW/US", "window_us" },
		{ "WINDOWS", "poll_windows" },
		{ "FOUND", "poll_hits" },
		{ "SLEEPS", "sleeps" },
		{ "BACKOFFS", "backoffs" },
		{ "CROWDED", "cpu_contended" },
	};
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;

	snprintf(buf, PVR_TABLE_CELL, "%s",
		 row ? text_of(obj, columns[column].key) : columns[column].title);
}

void pvr_print_workers(struct json_object *reply)
{
	size_t len;
	struct json_object *list = list_of(reply, "workers", &len);

	pvr_print_table(len + 1, 13, worker_cell, list);
}

/* ---------------------------------------------------------------------- paths */

static bool is_reverse(struct json_object *a, struct json_object *b)
{
	return !strcmp(text_of(a, "from"), text_of(b, "to")) &&
	       !strcmp(text_of(a, "to"), text_of(b, "from")) &&
	       !strcmp(text_of(a, "fabric"), text_of(b, "fabric")) &&
	       !strcmp(text_of(a, "path"), text_of(b, "path"));
}

static void add_to(struct json_object *to, struct json_object *from, const char *key)
{
	json_object_object_add(to, key,
			       json_object_new_uint64(number_of(to, key) + number_of(from, key)));
}

/* Merges both directions of a path into one line and adds their counters. */
static struct json_object *merge(struct json_object *list, size_t len)
{
	struct json_object *merged = json_object_new_array(), *path, *other;
	size_t i, j, num = 0;

	for (i = 0; i < len; i++) {
		path = json_object_array_get_idx(list, i);
		for (j = 0; j < num; j++) {
			other = json_object_array_get_idx(merged, j);
			if (is_reverse(path, other) &&
			    strcmp(text_of(path, "from"), text_of(path, "to")))
				break;
		}
		if (j < num) {
			add_to(other, path, "messages");
			add_to(other, path, "bytes");
		} else {
			json_object_array_add(merged, json_object_get(path));
			num++;
		}
	}
	return merged;
}

static void path_cell(void *opaque, size_t row, size_t column, char *buf)
{
	struct json_object *obj = json_object_array_get_idx(opaque, row);
	char bytes[32];

	if (column == 0)
		snprintf(buf, PVR_TABLE_CELL, "%s <-> %s", text_of(obj, "from"),
			 text_of(obj, "to"));
	else if (column == 1)
		snprintf(buf, PVR_TABLE_CELL, "fabric %s", text_of(obj, "fabric"));
	else if (column == 2)
		snprintf(buf, PVR_TABLE_CELL, "path %s (%s)", text_of(obj, "path"),
			 text_of(obj, "reason"));
	else if (column == 3)
		snprintf(buf, PVR_TABLE_CELL, "%" PRIu64 " messages", number_of(obj, "messages"));
	else
		snprintf(buf, PVR_TABLE_CELL, "%s",
			 pvr_print_bytes(number_of(obj, "bytes"), bytes));
}

/* Prints the bytes moved, and how many of them NICs read directly from guest memory. */
static void print_moved(char *buf, const char *how, struct json_object *obj, const char *key,
			const char *by_nics)
{
	uint64_t some = number_of(obj, by_nics);
	char bytes[32], straight[32];

	pvr_print_bytes(number_of(obj, key), bytes);
	if (some)
		snprintf(buf, PVR_TABLE_CELL, "%s %s (%s without a copy)", how, bytes,
			 pvr_print_bytes(some, straight));
	else
		snprintf(buf, PVR_TABLE_CELL, "%s %s", how, bytes);
}

static void host_cell(void *opaque, size_t row, size_t column, char *buf)
{
	struct json_object *obj = json_object_array_get_idx(opaque, row);

	if (column == 0)
		snprintf(buf, PVR_TABLE_CELL, "host %s", text_of(obj, "host"));
	else if (column == 1)
		snprintf(buf, PVR_TABLE_CELL, "path %s (%s)", text_of(obj, "path"),
			 text_of(obj, "reason"));
	else if (column == 2)
		snprintf(buf, PVR_TABLE_CELL, "rtt %" PRIu64 " us", number_of(obj, "rtt_us"));
	else if (column == 3)
		print_moved(buf, "sent", obj, "tx_bytes", "zerocopy_tx_bytes");
	else
		print_moved(buf, "received", obj, "rx_bytes", "zerocopy_rx_bytes");
}

void pvr_print_paths(struct json_object *reply)
{
	size_t len;
	struct json_object *list = list_of(reply, "paths", &len);
	struct json_object *merged = merge(list, len);

	if (!len)
		printf("no adapter has talked to another yet\n");
	pvr_print_table(json_object_array_length(merged), 5, path_cell, merged);
	json_object_put(merged);
	list = list_of(reply, "hosts", &len);
	pvr_print_table(len, 5, host_cell, list);
}

/* ---------------------------------------------------------------------- peers */

static void peer_cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const struct {
		const char *title, *key;
	} columns[] = {
		{ "HOST", "name" },	{ "ADDRESS", "address" }, { "STATE", "state" },
		{ "OUT", "conns_out" }, { "IN", "conns_in" },	  { "VERBS", "verbs" },
		{ "RTT/US", "rtt_us" }, { "TLS", "tls" },
	};
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;
	const char *text = row ? text_of(obj, columns[column].key) : columns[column].title;

	snprintf(buf, PVR_TABLE_CELL, "%s", *text ? text : "-");
}

/* Prints the last error of each peer that is down, and why NICs are not used fully. */
static void print_errors(struct json_object *list, size_t len)
{
	struct json_object *obj;
	size_t i;

	for (i = 0; i < len; i++) {
		obj = json_object_array_get_idx(list, i);
		if (!strcmp(text_of(obj, "state"), "unreachable"))
			printf("%s: %s\n", text_of(obj, "name"), text_of(obj, "error"));
		if (*text_of(obj, "verbs") && *text_of(obj, "zerocopy_error"))
			printf("%s: payload is copied: %s\n", text_of(obj, "name"),
			       text_of(obj, "zerocopy_error"));
	}
}

void pvr_print_peers(struct json_object *reply)
{
	struct json_object *host, *list;
	size_t len;

	if (!json_object_object_get_ex(reply, "host", &host) || !host) {
		printf("this host is by itself: see --listen and --peer of pvrdmad(8)\n");
		return;
	}
	printf("this host is %s, TLS: %s\n", text_of(host, "name"), text_of(host, "tls"));
	list = list_of(reply, "peers", &len);
	pvr_print_table(len + 1, 8, peer_cell, list);
	print_errors(list, len);
}

/* --------------------------------------------------------------------- faults */

static void fault_cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const struct {
		const char *title, *key;
	} columns[] = {
		{ "ID", "id" },
		{ "MESSAGES", "messages" },
		{ "DROPPED", "dropped" },
		{ "DELAYED", "delayed" },
		{ "FAILED", "failed" },
		{ "RNR", "rnr_naks" },
		{ "SEQ", "seq_naks" },
		{ "REORDERED", "reordered" },
		{ "DOUBLED", "duplicated" },
		{ "CORRUPTED", "corrupted" },
		{ "DOWN", "port_downs" },
		{ "STALLED", "stalled" },
		{ "REFUSED", "refused" },
		{ "FAULT", "fault" },
	};
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;

	snprintf(buf, PVR_TABLE_CELL, "%s",
		 row ? text_of(obj, columns[column].key) : columns[column].title);
}

/* The reply of fault add and load has "ids", that of clear "cleared", that of list "faults". */
void pvr_print_fault(struct json_object *reply)
{
	struct json_object *list;
	size_t len, i;

	list = list_of(reply, "ids", &len);
	for (i = 0; i < len; i++)
		printf("fault %s\n", json_object_get_string(json_object_array_get_idx(list, i)));
	list = list_of(reply, "faults", &len);
	if (len)
		pvr_print_table(len + 1, 14, fault_cell, list);
	else if (json_object_object_get_ex(reply, "faults", NULL))
		printf("there are no faults\n");
	if (json_object_object_get_ex(reply, "cleared", NULL))
		printf("%" PRIu64 " cleared\n", number_of(reply, "cleared"));
}

/* --------------------------------------------------------------------- reload */

void pvr_print_reload(struct json_object *reply)
{
	struct json_object *list, *obj;
	size_t len, i;

	list = list_of(reply, "read", &len);
	for (i = 0; i < len; i++) {
		obj = json_object_array_get_idx(list, i);
		printf("read again: %s: %s\n", text_of(obj, "file"), text_of(obj, "what"));
	}
	if (!len)
		printf("there is no file to read again: pvrdmad has neither keys nor a peers "
		       "file\n");
	list = list_of(reply, "disconnected", &len);
	for (i = 0; i < len; i++) {
		obj = json_object_array_get_idx(list, i);
		printf("host %s is disconnected: %s\n", text_of(obj, "host"),
		       text_of(obj, "reason"));
	}
	list = list_of(reply, "warnings", &len);
	for (i = 0; i < len; i++)
		printf("warning: %s\n", json_object_get_string(json_object_array_get_idx(list, i)));
}

void pvr_print_version(struct json_object *reply)
{
	printf("pvrdmactl %s, pvrdmad %s, device version %" PRIu64 ", features 0x%" PRIx64 "\n",
	       PVR_PACKAGE_VERSION, text_of(reply, "version"), number_of(reply, "device_version"),
	       number_of(reply, "features"));
}
