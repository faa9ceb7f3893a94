// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl: queries and controls a running pvrdmad. */
#include <getopt.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/unix_socket.h"
#include "daemon/adapter_settings.h"
#include "daemon/control_path.h"
#include "daemon/ctl_capture.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_domain.h"
#include "daemon/ctl_fault.h"
#include "daemon/ctl_hook.h"
#include "daemon/ctl_instance.h"
#include "daemon/ctl_print.h"
#include "daemon/ctl_qos.h"
#include "daemon/ctl_top.h"
#include "daemon/ctl_upgrade.h"

#define EXIT_USAGE 2

static const char help[] =
	"Usage: pvrdmactl [--control PATH|--instance NAME|--all] [--json] COMMAND\n"
	"\n"
	"  adapters               adapters: settings, state, attached QEMU\n"
	"  paths                  pairs of adapters and hosts: path, reason, traffic\n"
	"  peers                  other hosts: address, connections, TLS, RDMA NIC\n"
	"  qp NAME QPN            all about one queue pair of an adapter\n"
	"  qps [NAME]             queue pairs of one adapter or of all\n"
	"  stats [NAME]           counters of one adapter or of all\n"
	"  top [NAME]             rates of all adapters, or of the queue pairs of one, live\n"
	"  qos                    limits and weights of adapters and fabrics, and their waits\n"
	"  qos set NAME|--fabric F [rate=RATE|none] [messages=N|none] [burst=SIZE|none] [weight=N]\n"
	"                         change those of an adapter, or of all adapters of a fabric\n"
	"  capture [--snaplen N] [--payload] NAME FILE\n"
	"                         packets of an adapter, as pcapng for Wireshark; '-': to\n"
	"                         standard output; payload is zero without --payload\n"
	"  workers                workers: CPUs, load, polling and sleep\n"
	"  add-adapter " PVR_ADAPTER_SYNTAX "\n"
	"  remove-adapter NAME    remove an adapter: the device of its VM is unplugged\n"
	"  adapter stop|start|reclaim NAME\n"
	"                         stop an adapter, for which its peers wait; start it; take back\n"
	"                         one that a dead host has\n"
	"  move-adapter NAME WORKER\n"
	"                         let another worker execute the requests of an adapter\n"
	"  link NAME up|down      set the port state that its VM sees\n"
	"  fault add [--fabric F] [--from A] [--to B] [--qp N] [--seed S] KIND...\n"
	"                         drop=PERCENT, delay=TIME[+-TIME], reorder=PERCENT,\n"
	"                         duplicate=PERCENT, corrupt=PROBABILITY, rate=RATE,\n"
	"                         rnr=every:N|always,\n"
	"                         nak=sequence[,every=N], nak=KIND[,after=N],\n"
	"                         error=STATUS[,after=N], recv-error=STATUS[,after=N],\n"
	"                         port-down=TIME[,after=N],\n"
	"                         cq-overflow=after:N, stall=peer[,after=N]:\n"
	"                         make messages of adapters fail, see pvrdmactl(8)\n"
	"  fault load FILE        the faults of a file, one a line: all or none\n"
	"  fault list             faults and their counters\n"
	"  fault clear [ID]       remove one fault or all\n"
	"  domain-xml [--vm FILE] [--migratable] [--posted-writes] [--unplugged] NAME|ADAPTER\n"
	"                         what a libvirt domain needs for an adapter, or insert it into\n"
	"                         the domain in FILE, '-': standard input to output\n"
	"  libvirt-hook DOMAIN OPERATION STEP [EXTRA]\n"
	"                         what libvirt's hook does, with the domain on standard input\n"
	"  log-level LEVEL        error, warn, info or debug\n"
	"  reload                 read the key files and the peers file again: all or none\n"
	"  upgrade [--if-changed] let the installed pvrdmad replace the running one; VMs stay attached\n"
	"  metrics-targets        the metrics of all instances, for Prometheus' file_sd_configs\n"
	"  version\n"
	"\n"
	"  --control PATH         pvrdmad's control socket (default: $PVRDMA_CONTROL, else\n"
	"                         /run/pvrdma/control for root, else\n"
	"                         $XDG_RUNTIME_DIR/pvrdma/control)\n"
	"  --instance NAME        the instance pvrdmad@NAME of this host\n"
	"  --all                  each instance, for commands that name no adapter\n"
	"  --json                 print pvrdmad's JSON reply\n"
	"  --help, --version\n"
	"\n"
	"For top:\n"
	"  -b, --batch            print without a terminal's keys and escape sequences\n"
	"  -n, --count N          end after N outputs; 0: without end (default)\n"
	"  -d, --delay SECONDS    time between two outputs, 0.1 to 3600 (default 2)\n"
	"  -s, --sort COLUMN      sort by this column, such as tx_bytes_rate\n";

static bool put(struct json_object *obj, const char *key, const char *value)
{
	return json_object_object_add(obj, key, json_object_new_string(value)) == 0;
}

static int complain(const char *text, int status)
{
	fprintf(stderr, "pvrdmactl: %s\n", text);
	return status;
}

/* ----------------------------------------------------------------- requests */

static bool put_adapter(struct json_object *request, const char *text, struct pvr_error *err)
{
	return pvr_adapter_words(text, pvr_ctl_put_setting, request, err);
}

struct ctl_options {
	char control[PVR_PATH_MAX];
	bool control_given; /* by option or environment */
	const char *instance; /* of --instance, or NULL */
	bool all; /* instances */
	bool json;
	struct pvr_top_options top;
	struct pvr_capture_options capture;
	bool has_capture_option;
	struct pvr_domain_options domain;
	bool if_changed;
	const char *top_option; /* the last one that is only for top, or NULL */
	char words[512]; /* KEY=VALUE of the options of 'fault add' and 'qos set' */
};

struct ctl_command {
	const char *name;
	int min_args, max_args;
	const char *keys[2]; /* keys of the arguments in the request */
	void (*print)(struct json_object *reply); /* NULL: no output on success */
	int (*run)(const struct ctl_options *options, char **args, int num); /* or NULL */
	bool paged; /* without arguments, pvrdmad answers in pages */
	bool for_all; /* takes --all */
};

static int run_top(const struct ctl_options *options, char **args, int num)
{
	struct pvr_top_options top = options->top;
	struct pvr_error err;

	top.control = options->control;
	top.json = options->json;
	top.adapter = num ? args[0] : NULL;
	if (!pvr_top_check(&top, &err))
		return complain(err.text, EXIT_USAGE);
	return pvr_top_run(&top, &err) ? EXIT_SUCCESS : complain(err.text, EXIT_FAILURE);
}

static int run_capture(const struct ctl_options *options, char **args, int num)
{
	struct pvr_capture_options capture = options->capture;
	struct pvr_error err;

	(void)num;
	capture.control = options->control;
	capture.adapter = args[0];
	capture.file = args[1];
	return pvr_ctl_capture(&capture, &err) ? EXIT_SUCCESS : complain(err.text, EXIT_FAILURE);
}

static int run_domain_xml(const struct ctl_options *options, char **args, int num)
{
	struct pvr_domain_options domain = options->domain;
	struct pvr_error err;

	(void)num;
	domain.control = options->control;
	domain.json = options->json;
	domain.adapter = args[0];
	return pvr_ctl_domain_xml(&domain, &err) ? EXIT_SUCCESS : complain(err.text, EXIT_FAILURE);
}

/* The domain's name is in its XML, too, and EXTRA is not used. */
static int run_libvirt_hook(const struct ctl_options *options, char **args, int num)
{
	struct pvr_error err;

	(void)num;
	return pvr_ctl_hook(options->control_given ? options->control : NULL, args[1], args[2],
			    &err)
		       ? EXIT_SUCCESS
		       : complain(err.text, EXIT_FAILURE);
}

static int run_metrics_targets(const struct ctl_options *options, char **args, int num)
{
	struct pvr_error err;

	(void)options;
	(void)args;
	(void)num;
	return pvr_instances_print_targets(&err) ? EXIT_SUCCESS : complain(err.text, EXIT_FAILURE);
}

static const struct ctl_command commands[] = {
	{ "adapters", 0, 0, { NULL }, pvr_print_adapters, NULL, true, true },
	{ "paths", 0, 0, { NULL }, pvr_print_paths, NULL, true, true },
	{ "peers", 0, 0, { NULL }, pvr_print_peers, NULL, true, true },
	{ "qp", 2, 2, { "name", "qpn" }, pvr_print_qp, NULL, false, false },
	{ "qps", 0, 1, { "name" }, pvr_print_qps, NULL, false, true },
	{ "stats", 0, 1, { "name" }, pvr_print_stats, NULL, true, true },
	{ "qos", 0, 6, { NULL }, pvr_print_qos, NULL, true, true },
	{ "top", 0, 1, { "name" }, NULL, run_top, false, false },
	{ "capture", 2, 2, { NULL }, NULL, run_capture, false, false },
	{ "workers", 0, 0, { NULL }, pvr_print_workers, NULL, true, true },
	{ "add-adapter", 1, 1, { NULL }, NULL, NULL, false, false },
	{ "remove-adapter", 1, 1, { "name" }, NULL, NULL, false, false },
	{ "adapter", 2, 2, { "action", "name" }, NULL, NULL, false, false },
	{ "move-adapter", 2, 2, { "name", "worker" }, NULL, NULL, false, false },
	{ "link", 2, 2, { "name", "state" }, NULL, NULL, false, false },
	{ "fault", 1, 65, { NULL }, pvr_print_fault, NULL, false, false },
	{ "domain-xml", 1, 1, { NULL }, NULL, run_domain_xml, false, false },
	{ "libvirt-hook", 3, 4, { NULL }, NULL, run_libvirt_hook, false, false },
	{ "log-level", 1, 1, { "level" }, NULL, NULL, false, true },
	{ "reload", 0, 0, { NULL }, pvr_print_reload, NULL, false, true },
	{ "upgrade", 0, 0, { NULL }, pvr_print_upgrade, NULL, false, true },
	{ "metrics-targets", 0, 0, { NULL }, NULL, run_metrics_targets, false, false },
	{ "version", 0, 0, { NULL }, pvr_print_version, NULL, false, true },
};

static const struct ctl_command *find_command(const char *name, int args, struct pvr_error *err)
{
	const struct ctl_command *command;
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		command = &commands[i];
		if (strcmp(name, command->name))
			continue;
		if (args >= command->min_args && args <= command->max_args)
			return command;
		pvr_fail(err, "'%s' with %d arguments, see pvrdmactl --help", name, args);
		return NULL;
	}
	pvr_fail(err, "unknown command '%s', see pvrdmactl --help", name);
	return NULL;
}

static bool check_options(const struct ctl_options *options, const struct ctl_command *command,
			  struct pvr_error *err)
{
	if (options->has_capture_option && command->run != run_capture)
		return pvr_fail(err, "options --snaplen and --payload are for the command capture, "
				     "see pvrdmactl --help");
	if ((options->domain.file || options->domain.posted_writes || options->domain.migratable ||
	     options->domain.unplugged) &&
	    command->run != run_domain_xml)
		return pvr_fail(err,
				"options --vm, --migratable, --posted-writes and --unplugged are "
				"for the command domain-xml, see pvrdmactl --help");
	if (options->all && !command->for_all)
		return pvr_fail(err,
				"'%s' is for one instance: give --instance NAME instead of --all",
				command->name);
	if (options->if_changed && command->print != pvr_print_upgrade)
		return pvr_fail(err, "option --if-changed is for the command upgrade, see "
				     "pvrdmactl --help");
	if (!options->top_option || command->run == run_top)
		return true;
	return pvr_fail(err, "option %s is for the command top, see pvrdmactl --help",
			options->top_option);
}

static bool fill_request(struct json_object *request, const struct ctl_command *command,
			 char **args, int num, const char *words, struct pvr_error *err)
{
	int i;

	if (!strcmp(command->name, "fault"))
		return pvr_ctl_fault_request(request, args, num, words, err);
	if (!strcmp(command->name, "qos") && (num || *words))
		return pvr_ctl_qos_request(request, args, num, words, err);
	if (*words)
		return pvr_fail(err, "'%s' has no options --fabric, --from, --to, --qp, --seed",
				command->name);
	put(request, "command", command->name);
	for (i = 0; i < num; i++) {
		if (command->keys[i])
			put(request, command->keys[i], args[i]);
		else if (!put_adapter(request, args[i], err))
			return false;
	}
	return true;
}

/* Return: NULL with @err filled. */
static struct json_object *make_request(const struct ctl_command *command, char **args, int num,
					const char *words, struct pvr_error *err)
{
	struct json_object *request = json_object_new_object();

	if (fill_request(request, command, args, num, words, err))
		return request;
	json_object_put(request);
	return NULL;
}

/* ------------------------------------------------------------- conversation */

/* Return: NULL with @err filled. */
static struct json_object *ask(const char *path, struct json_object *request, bool paged,
			       struct pvr_error *err)
{
	struct json_object *reply;
	int fd = pvr_ctl_connect(path, err);

	if (fd < 0)
		return NULL;
	reply = paged ? pvr_ctl_ask_pages(fd, path, request, err)
		      : pvr_ctl_ask(fd, path, request, err);
	close(fd);
	return reply;
}

/*
 * @service: of --all, else NULL. Its JSON is added to @all instead of printed.
 */
static int show(const struct ctl_options *options, const struct ctl_command *command,
		struct json_object *reply, const char *service, struct json_object *all)
{
	struct pvr_error err;

	if (all)
		json_object_object_add(all, service, json_object_get(reply));
	else if (options->json)
		printf("%s\n", json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PRETTY));
	if (!pvr_ctl_is_ok(reply, &err))
		return complain(err.text, EXIT_FAILURE);
	if (options->json)
		return EXIT_SUCCESS;
	if (service && command->print)
		printf("%s:\n", service);
	if (command->print)
		command->print(reply);
	return EXIT_SUCCESS;
}

static struct json_object *converse(const struct ctl_options *options,
				    const struct ctl_command *command, struct json_object *request,
				    bool paged, struct pvr_error *err)
{
	if (command->print == pvr_print_upgrade)
		return pvr_ctl_upgrade(options->control, options->if_changed, err);
	return ask(options->control, request, paged, err);
}

static int run_at(const struct ctl_options *options, const struct ctl_command *command, char **args,
		  int num, const char *service, struct json_object *all)
{
	struct json_object *request, *reply;
	struct pvr_error err;
	int status;

	if (command->run)
		return command->run(options, args, num);
	request = make_request(command, args, num, options->words, &err);
	if (!request)
		return complain(err.text, EXIT_USAGE);
	reply = converse(options, command, request, command->paged && !num, &err);
	json_object_put(request);
	if (!reply)
		return complain(err.text, EXIT_FAILURE);
	status = show(options, command, reply, service, all);
	json_object_put(reply);
	return status;
}

/* An instance that does not answer has an error on stderr; the other ones are asked all the same. */
static int run_at_all(struct ctl_options *options, const struct ctl_command *command, char **args,
		      int num)
{
	struct json_object *all = options->json ? json_object_new_object() : NULL;
	int status = EXIT_SUCCESS, one;
	struct pvr_instance *instances;
	struct pvr_error err;
	size_t count, i;

	instances = pvr_instances(&count, &err);
	if (!instances) {
		json_object_put(all);
		return complain(err.text, EXIT_FAILURE);
	}
	for (i = 0; i < count; i++) {
		strcpy(options->control, instances[i].control);
		one = run_at(options, command, args, num, instances[i].service, all);
		status = one ? one : status;
	}
	if (all)
		printf("%s\n", json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	json_object_put(all);
	free(instances);
	return status;
}

/* The place of the control socket: --control, --instance, or the default. */
static bool find_control(struct ctl_options *options, struct pvr_error *err)
{
	const char *environment = getenv("PVRDMA_CONTROL");
	struct pvr_instance instance;

	if ((options->control[0] != '\0') + (options->instance != NULL) + options->all > 1)
		return pvr_fail(err, "give one of --control, --instance and --all");
	if (options->instance) {
		if (!pvr_instance_find(options->instance, &instance, err))
			return false;
		strcpy(options->control, instance.control);
		options->control_given = true;
	}
	options->control_given |= options->control[0] || (environment && *environment);
	return options->control[0] || options->all ||
	       pvr_control_default_path(options->control, sizeof(options->control)) ||
	       pvr_fail(err, "no default path for the control socket: XDG_RUNTIME_DIR is not set: "
			     "give --control PATH");
}

static int run(struct ctl_options *options, char **args, int num)
{
	const struct ctl_command *command;
	struct pvr_error err;

	command = find_command(args[0], num - 1, &err);
	if (!command || !check_options(options, command, &err) || !find_control(options, &err))
		return complain(err.text, EXIT_USAGE);
	return options->all ? run_at_all(options, command, args + 1, num - 1)
			    : run_at(options, command, args + 1, num - 1, NULL, NULL);
}

/* -------------------------------------------------------------------- options */

static const struct option long_options[] = {
	{ "control", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "batch", no_argument, NULL, 'b' },
	{ "delay", required_argument, NULL, 'd' },
	{ "count", required_argument, NULL, 'n' },
	{ "sort", required_argument, NULL, 's' },
	{ "fabric", required_argument, NULL, 'f' },
	{ "from", required_argument, NULL, 'f' },
	{ "to", required_argument, NULL, 'f' },
	{ "qp", required_argument, NULL, 'f' },
	{ "seed", required_argument, NULL, 'f' },
	{ "snaplen", required_argument, NULL, 'S' },
	{ "payload", no_argument, NULL, 'P' },
	{ "vm", required_argument, NULL, 'V' },
	{ "posted-writes", no_argument, NULL, 'W' },
	{ "help", no_argument, NULL, 'h' },
	{ "unplugged", no_argument, NULL, 'U' },
	{ "if-changed", no_argument, NULL, 'I' },
	{ "version", no_argument, NULL, 'v' },
	{ "migratable", no_argument, NULL, 'M' },
	{ "instance", required_argument, NULL, 'i' },
	{ "all", no_argument, NULL, 'a' },
	{ NULL, 0, NULL, 0 },
};

static int bad_option(int key, const char *word)
{
	struct pvr_error err;

	pvr_fail(&err,
		 key == ':' ? "option '%s' needs a value, see pvrdmactl --help"
			    : "unknown option '%s', see pvrdmactl --help",
		 word);
	return complain(err.text, EXIT_USAGE);
}

/* A name with a space would become two words. Return: an exit status, or -1: continue. */
static int add_word(struct ctl_options *options, const char *key, const char *value)
{
	size_t len = strlen(options->words), size = sizeof(options->words) - len;
	struct pvr_error err;

	if (strpbrk(value, " \t")) {
		pvr_fail(&err, "--%s '%.64s' has a space", key, value);
		return complain(err.text, EXIT_USAGE);
	}
	if (snprintf(options->words + len, size, "%s%s=%s", len ? " " : "", key, value) < (int)size)
		return -1;
	pvr_fail(&err, "--%s is too long", key);
	return complain(err.text, EXIT_USAGE);
}

static int parse_top_option(int key, struct ctl_options *options)
{
	struct pvr_error err;
	bool good = true;

	if (key == 'b') {
		options->top.batch = true;
		options->top_option = "--batch";
	} else if (key == 'd') {
		good = pvr_top_parse_delay(optarg, &options->top.delay_ms, &err);
		options->top_option = "--delay";
	} else if (key == 'n') {
		good = pvr_top_parse_count(optarg, &options->top.count, &err);
		options->top_option = "--count";
	} else {
		options->top.sort = optarg;
		options->top_option = "--sort";
	}
	return good ? -1 : complain(err.text, EXIT_USAGE);
}

static int parse_capture_option(int key, struct ctl_options *options)
{
	struct pvr_error err;

	options->has_capture_option = true;
	if (key == 'P')
		options->capture.payload = true;
	else if (!pvr_capture_parse_snaplen(optarg, &options->capture.snaplen, &err))
		return complain(err.text, EXIT_USAGE);
	return -1;
}

/* Return: an exit status, or -1: continue. */
static int parse_options(int argc, char **argv, struct ctl_options *options)
{
	int key, index = 0, status;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":bd:n:s:", long_options, &index)) != -1) {
		switch (key) {
		case 'c':
			snprintf(options->control, sizeof(options->control), "%s", optarg);
			break;
		case 'i':
			options->instance = optarg;
			break;
		case 'a':
			options->all = true;
			break;
		case 'j':
			options->json = true;
			break;
		case 'f':
			status = add_word(options, long_options[index].name, optarg);
			if (status >= 0)
				return status;
			break;
		case 'b':
		case 'd':
		case 'n':
		case 's':
			status = parse_top_option(key, options);
			if (status >= 0)
				return status;
			break;
		case 'S':
		case 'P':
			status = parse_capture_option(key, options);
			if (status >= 0)
				return status;
			break;
		case 'V':
			options->domain.file = optarg;
			break;
		case 'W':
			options->domain.posted_writes = true;
			break;
		case 'M':
			options->domain.migratable = true;
			break;
		case 'U':
			options->domain.unplugged = true;
			break;
		case 'I':
			options->if_changed = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_SUCCESS;
		case 'v':
			printf("pvrdmactl %s\n", PVR_PACKAGE_VERSION);
			return EXIT_SUCCESS;
		default:
			return bad_option(key, argv[optind - 1]);
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct ctl_options options = { .top.delay_ms = PVR_TOP_DELAY_MS };
	int status = parse_options(argc, argv, &options);

	if (status >= 0)
		return status;
	if (optind == argc)
		return complain("no command, see pvrdmactl --help", EXIT_USAGE);
	return run(&options, argv + optind, argc - optind);
}
