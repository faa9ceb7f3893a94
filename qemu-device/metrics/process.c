// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The metrics of the daemon itself: workers, faults, log, process. */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "metrics/format.h"

/* -------------------------------------------------------------------- workers */

enum worker_unit { PLAIN, NANOSECONDS };

static const struct worker_column {
	const char *name, *type, *help;
	size_t offset; /* of an uint64_t */
	enum worker_unit unit;
} worker_columns[] = {
#define FIELD(field) offsetof(struct pvr_metrics_worker, field)
	{ "pvrdma_worker_cpu_seconds_total", "counter", "CPU time of the thread.", FIELD(cpu_ns),
	  NANOSECONDS },
	{ "pvrdma_worker_busy_seconds_total", "counter",
	  "Time in turns: runs of the engine and handling of sockets that found work.",
	  FIELD(busy_ns), NANOSECONDS },
	{ "pvrdma_worker_longest_turn_seconds", "gauge",
	  "The longest turn of the last one to two minutes: other adapters waited so long.",
	  FIELD(longest_turn_ns), NANOSECONDS },
	{ "pvrdma_worker_rounds_total", "counter", "Iterations of the loop.", FIELD(rounds),
	  PLAIN },
	{ "pvrdma_worker_messages_total", "counter", "Messages sent.", FIELD(stats.messages),
	  PLAIN },
	{ "pvrdma_worker_bytes_total", "counter", "Bytes of the messages sent.", FIELD(stats.bytes),
	  PLAIN },
	{ "pvrdma_worker_quanta_total", "counter", "Quanta of queue pairs.", FIELD(stats.quanta),
	  PLAIN },
	{ "pvrdma_worker_lock_contended_total", "counter",
	  "Quanta that were repeated because the peer's adapter was locked.",
	  FIELD(stats.lock_contended), PLAIN },
	{ "pvrdma_worker_poll_windows_total", "counter", "Windows of polling that ended.",
	  FIELD(poll_windows), PLAIN },
	{ "pvrdma_worker_poll_hits_total", "counter", "Windows of polling that found work.",
	  FIELD(poll_hits), PLAIN },
	{ "pvrdma_worker_sleeps_total", "counter", "Times that the worker slept.", FIELD(sleeps),
	  PLAIN },
	{ "pvrdma_worker_backoffs_total", "counter", "Times that the worker stopped to poll.",
	  FIELD(backoffs), PLAIN },
	{ "pvrdma_worker_cpu_contended_total", "counter",
	  "Times that the worker stopped to poll because other threads needed its CPU.",
	  FIELD(cpu_contended), PLAIN },
#undef FIELD
};

static const char *number_text(char buf[24], size_t number)
{
	snprintf(buf, 24, "%zu", number);
	return buf;
}

static void format_worker_column(struct pvr_metrics_text *text,
				 const struct pvr_metrics_snapshot *snapshot,
				 const struct worker_column *column)
{
	char labels[PVR_METRICS_LABELS], number[24];
	uint64_t value;
	size_t i;

	pvr_metrics_head(text, column->name, column->type, column->help);
	for (i = 0; i < snapshot->num_workers; i++) {
		memcpy(&value, (const char *)&snapshot->workers[i] + column->offset, sizeof(value));
		pvr_metrics_label(labels, "worker", number_text(number, i));
		if (column->unit == NANOSECONDS)
			pvr_metrics_sample_ns(text, column->name, labels, NULL, value);
		else
			pvr_metrics_sample(text, column->name, labels, NULL, value);
	}
}

static void format_workers(struct pvr_metrics_text *text,
			   const struct pvr_metrics_snapshot *snapshot)
{
	static const char adapters[] = "pvrdma_worker_adapters";
	char labels[PVR_METRICS_LABELS], number[24];
	size_t i;

	pvr_metrics_head(text, adapters, "gauge", "Adapters that the worker serves.");
	for (i = 0; i < snapshot->num_workers; i++) {
		pvr_metrics_label(labels, "worker", number_text(number, i));
		pvr_metrics_sample(text, adapters, labels, NULL, snapshot->workers[i].adapters);
	}
	for (i = 0; i < sizeof(worker_columns) / sizeof(worker_columns[0]); i++)
		format_worker_column(text, snapshot, &worker_columns[i]);
}

/* --------------------------------------------------------------------- faults */

static const struct fault_column {
	const char *name, *help;
	size_t offset; /* of an uint64_t */
} fault_columns[] = {
#define FIELD(field) offsetof(struct pvr_metrics_fault, field)
	{ "pvrdma_fault_messages_total", "Messages that the fault's rule matched.",
	  FIELD(messages) },
	{ "pvrdma_fault_dropped_total", "Messages that the fault dropped.", FIELD(dropped) },
	{ "pvrdma_fault_delayed_total", "Messages that the fault delayed.", FIELD(delayed) },
	{ "pvrdma_fault_failed_total", "Messages that the fault made fail.", FIELD(failed) },
	{ "pvrdma_fault_rnr_naks_total", "RNR NAKs that the fault caused.", FIELD(rnr) },
	{ "pvrdma_fault_sequence_naks_total", "Sequence errors that the fault caused.",
	  FIELD(seq_naks) },
	{ "pvrdma_fault_reordered_total", "Datagrams that the next one overtook.",
	  FIELD(reordered) },
	{ "pvrdma_fault_duplicated_total", "Datagrams that were sent twice.", FIELD(duplicated) },
	{ "pvrdma_fault_corrupted_total", "Messages that arrived with inverted bits.",
	  FIELD(corrupted) },
	{ "pvrdma_fault_port_downs_total", "Times that the fault set a port down.",
	  FIELD(port_downs) },
	{ "pvrdma_fault_stalled_total", "Messages that a stalled peer did not answer.",
	  FIELD(stalled) },
	{ "pvrdma_fault_refused_total", "Messages that the peer's host did not let fail.",
	  FIELD(refused) },
#undef FIELD
};

static void format_faults(struct pvr_metrics_text *text,
			  const struct pvr_metrics_snapshot *snapshot)
{
	char labels[PVR_METRICS_LABELS];
	const struct pvr_metrics_fault *fault;
	uint64_t value;
	size_t i, j;

	pvr_metrics_gauge(text, "pvrdma_fault_rules", "Faults on demand that are in effect.",
			  snapshot->num_faults);
	for (i = 0; i < sizeof(fault_columns) / sizeof(fault_columns[0]); i++) {
		pvr_metrics_head(text, fault_columns[i].name, "counter", fault_columns[i].help);
		for (j = 0; j < snapshot->num_faults; j++) {
			fault = &snapshot->faults[j];
			memcpy(&value, (const char *)fault + fault_columns[i].offset,
			       sizeof(value));
			pvr_metrics_labels(labels, "fault", fault->id, "rule", fault->rule);
			pvr_metrics_sample(text, fault_columns[i].name, labels, NULL, value);
		}
	}
}

/* ------------------------------------------------------------------------ log */

static void format_log(struct pvr_metrics_text *text, const struct pvr_metrics_snapshot *snapshot)
{
	char labels[PVR_METRICS_LABELS];
	size_t level;

	pvr_metrics_head(text, "pvrdma_log_lines_total", "counter", "Lines of the log, by level.");
	for (level = 0; level < PVR_METRICS_LOG_LEVELS; level++) {
		pvr_metrics_label(labels, "level", snapshot->log_levels[level]);
		pvr_metrics_sample(text, "pvrdma_log_lines_total", labels, NULL,
				   snapshot->log_lines[level]);
	}
	pvr_metrics_counter(text, "pvrdma_log_lines_dropped_total",
			    "Lines of the log that were lost, because standard error took none.",
			    snapshot->log_dropped);
}

/* -------------------------------------------------------------------- process */

/* The second number of statm, see proc(5). Return: 0 if it cannot be read. */
static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char line[128], *number = NULL;

	if (file && fgets(line, sizeof(line), file))
		number = strchr(line, ' ');
	if (file)
		fclose(file);
	return number ? strtoull(number, NULL, 10) * (uint64_t)sysconf(_SC_PAGE_SIZE) : 0;
}

static uint64_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t num = 0;

	if (!folder)
		return 0;
	/* cppcheck-suppress readdirCalled ; this thread alone has the stream, as readdir() requires */
	while (readdir(folder))
		num++;
	closedir(folder);
	/* ".", ".." and the descriptor of the folder. */
	return num > 3 ? num - 3 : 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * PVR_SEC + (uint64_t)time.tv_nsec;
}

/* The names of Prometheus' own client libraries. */
static void format_process(struct pvr_metrics_text *text)
{
	struct rlimit limit;

	pvr_metrics_head(text, "process_cpu_seconds_total", "counter", "CPU time of all threads.");
	pvr_metrics_sample_ns(text, "process_cpu_seconds_total", NULL, NULL, cpu_ns());
	pvr_metrics_gauge(text, "process_resident_memory_bytes",
			  "Resident memory, with the RAM of guests that was used.",
			  resident_bytes());
	pvr_metrics_gauge(text, "process_open_fds", "Open file descriptors.", count_descriptors());
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		pvr_metrics_gauge(text, "process_max_fds", "Limit of the file descriptors.",
				  limit.rlim_cur);
}

static void format_self(struct pvr_metrics_text *text, const struct pvr_metrics_snapshot *snapshot)
{
	char labels[PVR_METRICS_LABELS];

	pvr_metrics_head(text, "pvrdma_build_info", "gauge", "1; the label is the version.");
	pvr_metrics_label(labels, "version", PVR_PACKAGE_VERSION);
	pvr_metrics_sample(text, "pvrdma_build_info", labels, NULL, 1);
	pvr_metrics_head(text, "pvrdma_start_time_seconds", "gauge", "Time of the start.");
	pvr_metrics_sample_ns(text, "pvrdma_start_time_seconds", NULL, NULL, snapshot->started_ns);
	pvr_metrics_counter(text, "pvrdma_scrape_collections_total",
			    "Collections of values; one serves all scrapes that wait.",
			    snapshot->collections);
	pvr_metrics_gauge(text, "pvrdma_scrape_pages",
			  "Pages in which the values of this scrape were collected.",
			  snapshot->pages);
	pvr_metrics_head(text, "pvrdma_scrape_collect_seconds", "gauge",
			 "Time of the daemon's first thread for this scrape.");
	pvr_metrics_sample_ns(text, "pvrdma_scrape_collect_seconds", NULL, NULL,
			      snapshot->collect_ns);
	pvr_metrics_head(text, "pvrdma_scrape_longest_page_seconds", "gauge",
			 "Of these, the longest page: other requests waited so long.");
	pvr_metrics_sample_ns(text, "pvrdma_scrape_longest_page_seconds", NULL, NULL,
			      snapshot->longest_page_ns);
}

void pvr_metrics_format_daemon(struct pvr_metrics_text *text,
			       const struct pvr_metrics_snapshot *snapshot)
{
	format_self(text, snapshot);
	format_workers(text, snapshot);
	format_faults(text, snapshot);
	format_log(text, snapshot);
	format_process(text);
}
