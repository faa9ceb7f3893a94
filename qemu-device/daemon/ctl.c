// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl: queries and controls a running pvrdmad. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/unix_socket.h"
#include "daemon/adapter_settings.h"
#include "daemon/control_path.h"
#include "daemon/ctl_fault.h"
#include "daemon/ctl_print.h"

#define EXIT_USAGE 2
#define CTL_PATIENCE 10 /* seconds */

static const char help[] =
	"Usage: pvrdmactl [--control PATH] [--json] COMMAND\n"
	"\n"
	"  adapters               adapters: settings, state, attached QEMU\n"
	"  paths                  pairs of adapters and hosts: path, reason, traffic\n"
	"  peers                  other hosts: address, connections, TLS, RDMA NIC\n"
	"  qps [NAME]             queue pairs of one adapter or of all\n"
	"  stats [NAME]           counters of one adapter or of all\n"
	"  workers                workers: CPUs, load, polling and sleep\n"
	"  add-adapter " PVR_ADAPTER_SYNTAX "\n"
	"  remove-adapter NAME    remove an adapter: the device of its VM is unplugged\n"
	"  link NAME up|down      set the port state that its VM sees\n"
	"  fault add [--fabric F] [--from A] [--to B] [--qp N] [--seed S] KIND...\n"
	"                         drop=PERCENT, delay=TIME[+-TIME], error=STATUS[,after=N],\n"
	"                         rnr=every:N|always, rate=RATE, cq-overflow=after:N:\n"
	"                         make messages of adapters fail, see pvrdmactl(8)\n"
	"  fault load FILE        the faults of a file, one a line: all or none\n"
	"  fault list             faults and their counters\n"
	"  fault clear [ID]       remove one fault or all\n"
	"  log-level LEVEL        error, warn, info or debug\n"
	"  reload                 read the key files and the peers file again: all or none\n"
	"  version\n"
	"\n"
	"  --control PATH         pvrdmad's control socket (default: $PVRDMA_CONTROL, else\n"
	"                         /run/pvrdma/control for root, else\n"
	"                         $XDG_RUNTIME_DIR/pvrdma/control)\n"
	"  --json                 print pvrdmad's JSON reply\n"
	"  --help, --version\n";

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

/* Checks before the request that the key is a known setting. */
static bool put_word(void *request, const char *key, const char *value, struct pvr_error *err)
{
	struct pvr_adapter_settings scratch = { .name = "" };

	return pvr_adapter_settings_set(&scratch, key, value, err) && put(request, key, value);
}

static bool put_adapter(struct json_object *request, const char *text, struct pvr_error *err)
{
	return pvr_adapter_words(text, put_word, request, err);
}

struct ctl_command {
	const char *name;
	int min_args, max_args;
	const char *keys[2]; /* keys of the arguments in the request */
	void (*print)(struct json_object *reply); /* NULL: no output on success */
};

static const struct ctl_command commands[] = {
	{ "adapters", 0, 0, { NULL }, pvr_print_adapters },
	{ "paths", 0, 0, { NULL }, pvr_print_paths },
	{ "peers", 0, 0, { NULL }, pvr_print_peers },
	{ "qps", 0, 1, { "name" }, pvr_print_qps },
	{ "stats", 0, 1, { "name" }, pvr_print_stats },
	{ "workers", 0, 0, { NULL }, pvr_print_workers },
	{ "add-adapter", 1, 1, { NULL }, NULL },
	{ "remove-adapter", 1, 1, { "name" }, NULL },
	{ "link", 2, 2, { "name", "state" }, NULL },
	{ "fault", 1, 65, { NULL }, pvr_print_fault },
	{ "log-level", 1, 1, { "level" }, NULL },
	{ "reload", 0, 0, { NULL }, pvr_print_reload },
	{ "version", 0, 0, { NULL }, pvr_print_version },
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

static bool fill_request(struct json_object *request, const struct ctl_command *command,
			 char **args, int num, const char *words, struct pvr_error *err)
{
	int i;

	if (!strcmp(command->name, "fault"))
		return pvr_ctl_fault_request(request, args, num, words, err);
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

static bool no_daemon(const char *path, struct pvr_error *err)
{
	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return pvr_fail(err,
				"no pvrdmad at %s: start it with 'pvrdmad --control %s "
				"...' or 'systemctl start pvrdmad', or give --control PATH",
				path, path);
	if (errno == EACCES)
		return pvr_fail(err,
				"no access to %s: run pvrdmactl as the user that pvrdmad "
				"runs as, or as root",
				path);
	if (errno == ENAMETOOLONG)
		return pvr_fail(err, "socket path %s has %zu characters, the limit is %d", path,
				strlen(path), PVR_SOCKET_PATH_MAX);
	return pvr_fail(err, "cannot reach pvrdmad at %s: %s", path, strerror(errno));
}

static bool send_line(int fd, const char *text)
{
	size_t len = strlen(text);

	return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len &&
	       send(fd, "\n", 1, MSG_NOSIGNAL) == 1;
}

static struct json_object *receive_reply(int fd)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *reply = NULL;
	char buf[4096];
	ssize_t n;

	while (tokener && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		reply = json_tokener_parse_ex(tokener, buf, (int)n);
		if (reply || json_tokener_get_error(tokener) != json_tokener_continue)
			break;
	}
	json_tokener_free(tokener);
	return reply;
}

/* Return: NULL with @err filled. */
static struct json_object *converse(const char *path, struct json_object *request,
				    struct pvr_error *err)
{
	const struct timeval patience = { .tv_sec = CTL_PATIENCE };
	struct json_object *reply = NULL;
	int fd = pvr_unix_connect(path);

	if (fd < 0) {
		no_daemon(path, err);
		return NULL;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (send_line(fd, json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN)))
		reply = receive_reply(fd);
	close(fd);
	if (!reply)
		pvr_fail(err,
			 "no reply from pvrdmad at %s within %d s: does another "
			 "program listen there?",
			 path, CTL_PATIENCE);
	return reply;
}

static int show(const struct ctl_command *command, struct json_object *reply, bool json)
{
	struct json_object *value;

	if (json)
		printf("%s\n", json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PRETTY));
	if (!json_object_object_get_ex(reply, "ok", &value) || !json_object_get_boolean(value)) {
		if (!json_object_object_get_ex(reply, "error", &value))
			return complain("the reply of pvrdmad has neither \"ok\" nor \"error\"",
					EXIT_FAILURE);
		return complain(json_object_get_string(value), EXIT_FAILURE);
	}
	if (!json && command->print)
		command->print(reply);
	return EXIT_SUCCESS;
}

struct ctl_options {
	char control[PVR_PATH_MAX];
	bool json;
	char words[512]; /* KEY=VALUE of the options of 'fault add' */
};

static int run(const struct ctl_options *options, char **args, int num)
{
	struct json_object *request, *reply;
	const struct ctl_command *command;
	struct pvr_error err;
	int status;

	command = find_command(args[0], num - 1, &err);
	request = command ? make_request(command, args + 1, num - 1, options->words, &err) : NULL;
	if (!request)
		return complain(err.text, EXIT_USAGE);
	reply = converse(options->control, request, &err);
	json_object_put(request);
	if (!reply)
		return complain(err.text, EXIT_FAILURE);
	status = show(command, reply, options->json);
	json_object_put(reply);
	return status;
}

/* -------------------------------------------------------------------- options */

static const struct option long_options[] = {
	{ "control", required_argument, NULL, 'c' }, { "json", no_argument, NULL, 'j' },
	{ "fabric", required_argument, NULL, 'f' },  { "from", required_argument, NULL, 'f' },
	{ "to", required_argument, NULL, 'f' },	     { "qp", required_argument, NULL, 'f' },
	{ "seed", required_argument, NULL, 'f' },    { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'v' },	     { NULL, 0, NULL, 0 },
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

/* Return: an exit status, or -1: continue. */
static int parse_options(int argc, char **argv, struct ctl_options *options)
{
	int key, index = 0, status;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, &index)) != -1) {
		switch (key) {
		case 'c':
			snprintf(options->control, sizeof(options->control), "%s", optarg);
			break;
		case 'j':
			options->json = true;
			break;
		case 'f':
			status = add_word(options, long_options[index].name, optarg);
			if (status >= 0)
				return status;
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
	struct ctl_options options = { .json = false };
	int status = parse_options(argc, argv, &options);

	if (status >= 0)
		return status;
	if (optind == argc)
		return complain("no command, see pvrdmactl --help", EXIT_USAGE);
	if (!options.control[0] &&
	    !pvr_control_default_path(options.control, sizeof(options.control)))
		return complain(
			"no default path for the control socket: XDG_RUNTIME_DIR is not set: "
			"give --control PATH",
			EXIT_USAGE);
	return run(&options, argv + optind, argc - optind);
}
