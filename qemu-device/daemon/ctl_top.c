// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl top: rates of adapters or queue pairs, between two queries of pvrdmad. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl_client.h"
#include "daemon/ctl_print.h"
#include "daemon/ctl_screen.h"
#include "daemon/ctl_top.h"
#include "daemon/json_get.h"

#define NS_PER_MS 1000000U
#define NS_PER_SEC 1000000000U
#define LINES_OF_SUMMARY 2 /* and its blank line; the table's titles are a row */

/* -------------------------------------------------------------------- columns */

enum column_kind {
	TEXT,
	NUMBER, /* the sum of the keys */
	RATE, /* its growth per second */
	BYTE_RATE,
	PATHS, /* that carried bytes */
};

#define COLUMN_KEYS 5

struct column {
	const char *title;
	const char *key; /* in the JSON output, and of --sort */
	enum column_kind kind;
	const char *keys[COLUMN_KEYS + 1]; /* in pvrdmad's reply */
};

/* clang-format off */
#define TRAFFIC \
	{ "TX/S", "tx_rate", RATE, { "tx_messages" } }, \
	{ "TX B/S", "tx_bytes_rate", BYTE_RATE, { "tx_bytes" } }, \
	{ "RX/S", "rx_rate", RATE, { "rx_messages" } }, \
	{ "RX B/S", "rx_bytes_rate", BYTE_RATE, { "rx_bytes" } }, \
	{ "RETRY/S", "retry_rate", RATE, { "rnr_naks", "ack_timeouts" } }

static const struct column adapter_columns[] = {
	{ "ADAPTER", "name", TEXT, { "name" } },
	{ "STATE", "state", TEXT, { "state" } },
	{ "QPS", "qps", NUMBER, { "qps" } },
	TRAFFIC,
	{ "ERRORS", "errors", NUMBER,
	  { "retries_exceeded", "access_errors", "request_errors", "cq_overflows" } },
	{ "ERR/S", "error_rate", RATE,
	  { "retries_exceeded", "access_errors", "request_errors", "cq_overflows" } },
	{ "PATH", "path", PATHS, { NULL } },
};

static const struct column qp_columns[] = {
	{ "QPN", "qpn", NUMBER, { "qpn" } },
	{ "TYPE", "type", TEXT, { "type" } },
	{ "STATE", "state", TEXT, { "state" } },
	{ "PEER", "dgid", TEXT, { "dgid" } },
	{ "QPN", "dest_qpn", NUMBER, { "dest_qpn" } },
	TRAFFIC,
	{ "ERRORS", "errors", NUMBER, { "retries_exceeded" } },
	{ "PATH", "path", PATHS, { NULL } },
	{ "WAITS FOR", "wait", TEXT, { "wait" } },
};
/* clang-format on */

struct view {
	const struct column *columns;
	size_t num;
	const char *id; /* the key that identifies a row */
};

static const struct view adapter_view = {
	adapter_columns,
	sizeof(adapter_columns) / sizeof(adapter_columns[0]),
	"name",
};
static const struct view qp_view = {
	qp_columns,
	sizeof(qp_columns) / sizeof(qp_columns[0]),
	"qpn",
};

/* Return: the number of the column, or view->num. */
static size_t find_column(const struct view *view, const char *key)
{
	size_t i;

	for (i = 0; i < view->num && strcmp(view->columns[i].key, key); i++)
		;
	return i;
}

/* --------------------------------------------------------------------- samples */

struct sample {
	struct json_object *rows; /* by id */
	uint64_t time; /* ns */
};

struct row {
	struct json_object *now, *old; /* old: NULL if it is new */
	double rank; /* the value of a column of numbers that the rows are sorted by */
};

struct top {
	const struct pvr_top_options *options;
	const struct view *view;
	size_t sort;
	bool reverse;
	struct sample now, old;
	struct row *rows;
	size_t num, shown; /* shown: rows that the screen has space for */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static struct json_object *make_request(const struct top *top, uint64_t cursor)
{
	struct json_object *request = json_object_new_object();
	const char *adapter = top->options->adapter;

	json_object_object_add(request, "command",
			       json_object_new_string(adapter ? "qps" : "stats"));
	if (adapter)
		json_object_object_add(request, "name", json_object_new_string(adapter));
	json_object_object_add(request, "cursor", json_object_new_uint64(cursor));
	return request;
}

static void add_rows(const struct top *top, struct json_object *rows, struct json_object *reply)
{
	struct json_object *list, *row;
	size_t len, i;

	list = list_of(reply, "adapters", &len);
	if (top->options->adapter)
		list = list_of(json_object_array_get_idx(list, 0), "qps", &len);
	for (i = 0; i < len; i++) {
		row = json_object_array_get_idx(list, i);
		json_object_object_add(rows, text_of(row, top->view->id), json_object_get(row));
	}
}

/* Adds one page to @rows. *@cursor becomes that of the next page, 0 after the last one. */
static bool query_page(const struct top *top, int fd, struct json_object *rows, uint64_t *cursor,
		       struct pvr_error *err)
{
	struct json_object *request = make_request(top, *cursor);
	struct json_object *reply = pvr_ctl_ask(fd, top->options->control, request, err);
	bool ok = reply && pvr_ctl_is_ok(reply, err);

	json_object_put(request);
	if (ok) {
		add_rows(top, rows, reply);
		*cursor = number_of(reply, "next");
	}
	json_object_put(reply);
	return ok;
}

static bool query(const struct top *top, struct sample *sample, struct pvr_error *err)
{
	int fd = pvr_ctl_connect(top->options->control, err);
	uint64_t cursor = 0, last;
	bool ok = true;

	if (fd < 0)
		return false;
	sample->rows = json_object_new_object();
	sample->time = clock_ns(CLOCK_MONOTONIC);
	do {
		last = cursor;
		ok = query_page(top, fd, sample->rows, &cursor, err);
	} while (ok && cursor > last);
	close(fd);
	return ok;
}

/* --------------------------------------------------------------------- values */

static uint64_t sum_of(struct json_object *obj, const struct column *column)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; obj && column->keys[i]; i++)
		sum += number_of(obj, column->keys[i]);
	return sum;
}

/* A counter that is lower than before belongs to a new object of the same name or number. */
static uint64_t growth(uint64_t now, uint64_t old)
{
	return now >= old ? now - old : now;
}

/* A row that was not there before has no rate: its counters are of an unknown time. */
static double value_of(const struct top *top, const struct row *row, const struct column *column)
{
	uint64_t now = sum_of(row->now, column), time = top->now.time - top->old.time;

	if (column->kind == NUMBER)
		return (double)now;
	if (!row->old || !time)
		return 0;
	return (double)growth(now, sum_of(row->old, column)) * NS_PER_SEC / (double)time;
}

/* Return: the paths that carried bytes since the last output, such as "local+tcp". */
static const char *paths_of(const struct row *row, char buf[32])
{
	static const char *const paths[][2] = {
		{ "local", "local_bytes" },
		{ "verbs", "verbs_bytes" },
		{ "tcp", "tcp_bytes" },
	};
	size_t i, len = 0;

	buf[0] = '\0';
	for (i = 0; row->old && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (number_of(row->now, paths[i][1]) == number_of(row->old, paths[i][1]))
			continue;
		len += (size_t)snprintf(buf + len, 32 - len, "%s%s", len ? "+" : "", paths[i][0]);
	}
	return buf;
}

static const char *text_value(const struct row *row, const struct column *column, char buf[32])
{
	if (column->kind == PATHS)
		return paths_of(row, buf);
	if (!strcmp(column->key, "dgid") && !number_of(row->now, "dest_qpn"))
		return ""; /* not connected */
	return text_of(row->now, column->keys[0]);
}

static bool is_text(const struct column *column)
{
	return column->kind == TEXT || column->kind == PATHS;
}

/* Texts ascend, numbers descend. */
static int compare_column(const struct top *top, const struct row *a, const struct row *b)
{
	const struct column *column = &top->view->columns[top->sort];
	char buf[2][32];

	if (is_text(column))
		return strcmp(text_value(a, column, buf[0]), text_value(b, column, buf[1]));
	return (a->rank < b->rank) - (a->rank > b->rank);
}

static int compare_rows(const void *a, const void *b, void *opaque)
{
	const struct top *top = opaque;
	int order = compare_column(top, a, b);

	if (order)
		return top->reverse ? -order : order;
	/* Equal rows keep their places from one output to the next. */
	return strcmp(text_of(((const struct row *)a)->now, top->view->id),
		      text_of(((const struct row *)b)->now, top->view->id));
}

static bool make_rows(struct top *top, struct pvr_error *err)
{
	const struct column *sorted = &top->view->columns[top->sort];
	struct row *row;

	free(top->rows);
	top->num = 0;
	top->rows = calloc((size_t)json_object_object_length(top->now.rows) + 1, sizeof(*row));
	if (!top->rows)
		return pvr_fail(err, "out of memory");
	json_object_object_foreach(top->now.rows, key, value)
	{
		row = &top->rows[top->num++];
		row->now = value;
		json_object_object_get_ex(top->old.rows, key, &row->old);
		row->rank = is_text(sorted) ? 0 : value_of(top, row, sorted);
	}
	qsort_r(top->rows, top->num, sizeof(*row), compare_rows, top);
	return true;
}

/* --------------------------------------------------------------------- outputs */

static void top_cell(void *opaque, size_t row, size_t column, char *buf)
{
	const struct top *top = opaque;
	const struct column *col = &top->view->columns[column];
	const struct row *at = row ? &top->rows[row - 1] : NULL;
	char text[32];

	if (!at)
		snprintf(buf, PVR_TABLE_CELL, "%s%s", col->title, column == top->sort ? "*" : "");
	else if (is_text(col))
		snprintf(buf, PVR_TABLE_CELL, "%s",
			 *text_value(at, col, text) ? text_value(at, col, text) : "-");
	else if (col->kind == BYTE_RATE)
		snprintf(buf, PVR_TABLE_CELL, "%s",
			 pvr_print_bytes((uint64_t)value_of(top, at, col), text));
	else
		snprintf(buf, PVR_TABLE_CELL, "%.0f", value_of(top, at, col));
}

static double total(const struct top *top, const char *key)
{
	const struct column *column = &top->view->columns[find_column(top->view, key)];
	double sum = 0;
	size_t i;

	for (i = 0; i < top->num; i++)
		sum += value_of(top, &top->rows[i], column);
	return sum;
}

static void print_summary(const struct top *top)
{
	char sent[32], received[32], hour[16];
	time_t now = time(NULL);
	struct tm tm;

	strftime(hour, sizeof(hour), "%H:%M:%S", localtime_r(&now, &tm));
	if (top->options->adapter)
		printf("%s  %s: %zu queue pairs", hour, top->options->adapter, top->num);
	else
		printf("%s  %zu adapters, %.0f queue pairs", hour, top->num, total(top, "qps"));
	printf(", sent %s/s, received %s/s, %.0f errors\n\n",
	       pvr_print_bytes((uint64_t)total(top, "tx_bytes_rate"), sent),
	       pvr_print_bytes((uint64_t)total(top, "rx_bytes_rate"), received),
	       total(top, "errors"));
}

static void print_table(struct top *top)
{
	print_summary(top);
	pvr_print_table((top->num < top->shown ? top->num : top->shown) + 1, top->view->num,
			top_cell, top);
}

static struct json_object *json_value(const struct top *top, const struct row *row,
				      const struct column *column)
{
	char buf[32];

	if (is_text(column))
		return json_object_new_string(text_value(row, column, buf));
	if (column->kind == NUMBER)
		return json_object_new_uint64(sum_of(row->now, column));
	return json_object_new_double(value_of(top, row, column));
}

static void print_json(const struct top *top)
{
	struct json_object *out = json_object_new_object(), *list = json_object_new_array(), *obj;
	size_t i, column;

	for (i = 0; i < top->num; i++) {
		obj = json_object_new_object();
		for (column = 0; column < top->view->num; column++)
			json_object_object_add(
				obj, top->view->columns[column].key,
				json_value(top, &top->rows[i], &top->view->columns[column]));
		json_object_array_add(list, obj);
	}
	json_object_object_add(out, "time_ms",
			       json_object_new_uint64(clock_ns(CLOCK_REALTIME) / NS_PER_MS));
	json_object_object_add(out, "interval_ns",
			       json_object_new_uint64(top->now.time - top->old.time));
	if (top->options->adapter)
		json_object_object_add(out, "name", json_object_new_string(top->options->adapter));
	json_object_object_add(out, top->options->adapter ? "qps" : "adapters", list);
	printf("%s\n", json_object_to_json_string_ext(out, JSON_C_TO_STRING_PLAIN));
	json_object_put(out);
}

/* ---------------------------------------------------------------------- a run */

/* Makes the last sample the old one, and queries the new one. */
static bool advance(struct top *top, struct pvr_error *err)
{
	json_object_put(top->old.rows);
	top->old = top->now;
	top->now.rows = NULL;
	return query(top, &top->now, err) && make_rows(top, err);
}

static bool flush_output(struct pvr_error *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	return pvr_fail(err, "cannot write the output: %s", strerror(errno));
}

static bool run_batch(struct top *top, struct pvr_error *err)
{
	const struct pvr_top_options *options = top->options;
	const struct timespec delay = {
		.tv_sec = options->delay_ms / 1000,
		.tv_nsec = options->delay_ms % 1000 * NS_PER_MS,
	};
	uint64_t i;

	top->shown = SIZE_MAX;
	if (!advance(top, err))
		return false;
	for (i = 0; !options->count || i < options->count; i++) {
		nanosleep(&delay, NULL);
		if (!advance(top, err))
			return false;
		if (options->json)
			print_json(top);
		else
			print_table(top);
		if (!options->json && i + 1 != options->count)
			putchar('\n');
		if (!flush_output(err))
			return false;
	}
	return true;
}

static bool draw(struct top *top, struct pvr_error *err)
{
	unsigned int lines = pvr_screen_begin();

	top->shown = lines > LINES_OF_SUMMARY + 2 ? lines - LINES_OF_SUMMARY - 2 : 0;
	if (!make_rows(top, err))
		return false;
	print_table(top);
	return flush_output(err);
}

/* Return: whether the run goes on. */
static bool press(struct top *top, int key)
{
	if (key == '>' && top->sort + 1 < top->view->num)
		top->sort++;
	else if (key == '<' && top->sort)
		top->sort--;
	else if (key == 'r')
		top->reverse = !top->reverse;
	return key != 'q' && key != PVR_SCREEN_ENDED;
}

/* Queries once in the delay: after a key or a new size, draws the last samples again. */
static bool run_live(struct top *top, struct pvr_error *err)
{
	const struct pvr_top_options *options = top->options;
	const uint64_t delay = (uint64_t)options->delay_ms * NS_PER_MS;
	uint64_t outputs = 0, age;
	int key;

	do {
		age = clock_ns(CLOCK_MONOTONIC) - top->now.time;
		if (!outputs || age >= delay) {
			if (options->count && outputs == options->count)
				return true;
			if (!advance(top, err))
				return false;
			outputs++;
			age = 0;
		}
		if (!draw(top, err))
			return false;
		key = pvr_screen_wait((uint32_t)((delay - age + NS_PER_MS - 1) / NS_PER_MS));
	} while (press(top, key));
	return true;
}

bool pvr_top_run(const struct pvr_top_options *options, struct pvr_error *err)
{
	struct top top = { .options = options };
	bool ok;

	top.view = options->adapter ? &qp_view : &adapter_view;
	top.sort = find_column(top.view, options->sort ? options->sort : "tx_bytes_rate");
	if (options->batch || options->json || !pvr_screen_is_possible()) {
		ok = run_batch(&top, err);
	} else if (!pvr_screen_open()) {
		ok = pvr_fail(err, "cannot set up the terminal: %s", strerror(errno));
	} else {
		ok = run_live(&top, err);
		pvr_screen_close();
	}
	free(top.rows);
	json_object_put(top.now.rows);
	json_object_put(top.old.rows);
	return ok;
}

/* -------------------------------------------------------------------- options */

bool pvr_top_parse_delay(const char *text, uint32_t *delay_ms, struct pvr_error *err)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	/* Written so that a NaN fails. */
	if (end == text || *end || !(seconds >= 0.1 && seconds <= 3600))
		return pvr_fail(err, "delay '%s' is no number of seconds from 0.1 to 3600", text);
	*delay_ms = (uint32_t)(seconds * 1000 + 0.5);
	return true;
}

bool pvr_top_parse_count(const char *text, uint64_t *count, struct pvr_error *err)
{
	char *end;

	errno = 0;
	*count = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return pvr_fail(err, "count '%s' is no number", text);
	return true;
}

bool pvr_top_check(const struct pvr_top_options *options, struct pvr_error *err)
{
	const struct view *view = options->adapter ? &qp_view : &adapter_view;
	char names[256] = "";
	size_t i, len = 0;

	if (!options->sort || find_column(view, options->sort) < view->num)
		return true;
	for (i = 0; i < view->num; i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					view->columns[i].key);
	return pvr_fail(err, "there is no column '%.64s', there are %s", options->sort, names);
}
