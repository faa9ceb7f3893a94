// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmad's command line. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control_path.h"
#include "daemon/options.h"

static const char help[] =
	"Usage: pvrdmad [OPTION]...\n"
	"The PVRDMA devices of this host's virtual machines.\n"
	"\n"
	"  --adapter " PVR_ADAPTER_SYNTAX "\n"
	"                     a device: its VM's QEMU connects to PATH, MAC is that of the\n"
	"                     VM's NIC; adapters of different fabrics never meet\n"
	"  --config FILE      read adapters and settings from FILE, see pvrdmad.conf(5)\n"
	"  --control PATH     socket for pvrdmactl (default: %s)\n"
	"  --log-level LEVEL  error, warn, info (default) or debug\n"
	"  --poll auto|off|USEC\n"
	"                     look for work for a while before sleeping: auto (default) as\n"
	"                     long as that helps, or always so many microseconds\n"
	"  --log-timestamps   begin log lines with the time\n"
	"  --workers N        threads that serve the adapters (default: 1)\n"
	"  --worker-cpus LIST pin them, one to each CPU, such as 0-3,8\n"
	"  --numa-node N      run them on that node, with its memory\n"
	"  --user NAME        drop root's privileges and run as NAME\n"
	"\n"
	"  --listen ADDRESS[:PORT]\n"
	"                     where daemons of other hosts connect (default: nowhere; port 7471)\n"
	"  --peer NAME=ADDRESS[:PORT]\n"
	"                     another host; this option and --listen can be given many times\n"
	"  --name NAME        what other hosts call this one (default: its host name)\n"
	"  --tls-psk-file FILE\n"
	"                     lines HOST:HEX, a pre-shared key for each other host\n"
	"  --tls-cert FILE, --tls-key FILE, --tls-ca FILE\n"
	"                     or certificates (PEM): this host's, its key, who signs them\n"
	"  --insecure         no TLS: for networks where everybody is trusted\n"
	"  --connections N    to each peer (default: one for each worker, two at least)\n"
	"  --keepalive SECONDS\n"
	"                     a peer that is silent for so long is given up (default: 10)\n"
	"  --idle-timeout SECONDS\n"
	"                     unused connections are closed (default: 600)\n"
	"  --rdma-device NAME|auto|none\n"
	"                     of this host, by which others are reached (default: auto)\n"
	"  --rdma-zerocopy on|off they read large payloads from guests' memory by themselves, or\n"
	"                     it is copied (default: on)\n"
	"  --rdma-unencrypted RDMA NICs are used in spite of TLS: they do not encrypt\n"
	"  --dscp guest|NUMBER\n"
	"                     of packets to other hosts: as guests ask for (default), or this\n"
	"\n"
	"  --peers FILE       hosts, their addresses and GIDs, see pvrdmad.conf(5)\n"
	"  --etcd URL[,URL]...\n"
	"                     or find them in etcd; --etcd-ca, --etcd-cert, --etcd-key,\n"
	"                     --etcd-user, --etcd-password-file, --etcd-prefix, --etcd-lease:\n"
	"                     see pvrdmad(8)\n"
	"  --advertise ADDRESS[:PORT]\n"
	"                     where other hosts find this one (default: the first --listen)\n"
	"\n"
	"  --help, --version\n"
	"\n"
	"It stays in the foreground and logs to stderr. To attach a VM, start QEMU with\n"
	"  -object memory-backend-memfd,id=mem,size=SIZE,share=on -machine memory-backend=mem\n"
	"  -device "
	"'{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"PATH\"}}'\n"
	"pvrdmactl(8) shows what happens. pvrdmad(8) has the details.\n";

enum option_key {
	OPT_ADAPTER = 1,
	OPT_CONFIG,
	OPT_TIMESTAMPS,
	OPT_SWITCH,
	OPT_SETTING, /* same name as in the configuration file */
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "adapter", required_argument, NULL, OPT_ADAPTER },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "control", required_argument, NULL, OPT_SETTING },
	{ "log-level", required_argument, NULL, OPT_SETTING },
	{ "poll", required_argument, NULL, OPT_SETTING },
	{ "log-timestamps", no_argument, NULL, OPT_TIMESTAMPS },
	{ "user", required_argument, NULL, OPT_SETTING },
	{ "workers", required_argument, NULL, OPT_SETTING },
	{ "worker-cpus", required_argument, NULL, OPT_SETTING },
	{ "numa-node", required_argument, NULL, OPT_SETTING },
	{ "name", required_argument, NULL, OPT_SETTING },
	{ "listen", required_argument, NULL, OPT_SETTING },
	{ "peer", required_argument, NULL, OPT_SETTING },
	{ "connections", required_argument, NULL, OPT_SETTING },
	{ "keepalive", required_argument, NULL, OPT_SETTING },
	{ "idle-timeout", required_argument, NULL, OPT_SETTING },
	{ "dscp", required_argument, NULL, OPT_SETTING },
	{ "rdma-device", required_argument, NULL, OPT_SETTING },
	{ "rdma-zerocopy", required_argument, NULL, OPT_SETTING },
	{ "rdma-unencrypted", no_argument, NULL, OPT_SWITCH },
	{ "tls-cert", required_argument, NULL, OPT_SETTING },
	{ "tls-key", required_argument, NULL, OPT_SETTING },
	{ "tls-ca", required_argument, NULL, OPT_SETTING },
	{ "tls-psk-file", required_argument, NULL, OPT_SETTING },
	{ "peers", required_argument, NULL, OPT_SETTING },
	{ "advertise", required_argument, NULL, OPT_SETTING },
	{ "etcd", required_argument, NULL, OPT_SETTING },
	{ "etcd-prefix", required_argument, NULL, OPT_SETTING },
	{ "etcd-ca", required_argument, NULL, OPT_SETTING },
	{ "etcd-cert", required_argument, NULL, OPT_SETTING },
	{ "etcd-key", required_argument, NULL, OPT_SETTING },
	{ "etcd-user", required_argument, NULL, OPT_SETTING },
	{ "etcd-password-file", required_argument, NULL, OPT_SETTING },
	{ "etcd-lease", required_argument, NULL, OPT_SETTING },
	{ "insecure", no_argument, NULL, OPT_SWITCH },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static bool add_adapter(struct pvr_settings *settings, const char *text, struct pvr_error *err)
{
	struct pvr_adapter_settings adapter;
	struct pvr_error why;

	if (pvr_adapter_settings_parse(&adapter, text, &why) &&
	    pvr_settings_add_adapter(settings, &adapter, &why))
		return true;
	return pvr_fail(err, "--adapter: %.480s", why.text);
}

static enum pvr_options_result print_help(void)
{
	char path[PVR_PATH_MAX];

	if (!pvr_control_default_path(path, sizeof(path)))
		strcpy(path, "none, XDG_RUNTIME_DIR is not set");
	printf(help, path);
	return PVR_OPTIONS_DONE;
}

/* @index: into long_options[] */
static bool take_option(int key, int index, struct pvr_settings *settings, const char **config,
			struct pvr_error *err)
{
	switch (key) {
	case OPT_ADAPTER:
		return add_adapter(settings, optarg, err);
	case OPT_CONFIG:
		*config = optarg;
		return true;
	case OPT_SETTING:
		return pvr_settings_set(settings, long_options[index].name, optarg, err);
	case OPT_SWITCH:
		return pvr_settings_set(settings, long_options[index].name, "on", err);
	case OPT_TIMESTAMPS:
		settings->timestamps = true;
		return true;
	default:
		return false;
	}
}

/* The message of getopt without the program's name. */
static bool bad_option(int key, char **argv, struct pvr_error *err)
{
	const char *word = argv[optind - 1];

	if (key == ':')
		return pvr_fail(err, "option '%s' needs a value, see pvrdmad --help", word);
	return pvr_fail(err, "unknown option '%s', see pvrdmad --help", word);
}

enum pvr_options_result pvr_options_parse(int argc, char **argv, struct pvr_settings *settings,
					  struct pvr_error *err)
{
	const char *config = NULL;
	int key, index = 0;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, &index)) != -1) {
		if (key == OPT_HELP)
			return print_help();
		if (key == OPT_VERSION) {
			printf("pvrdmad %s\n", PVR_PACKAGE_VERSION);
			return PVR_OPTIONS_DONE;
		}
		if (key == '?' || key == ':') {
			bad_option(key, argv, err);
			return PVR_OPTIONS_BAD;
		}
		if (!take_option(key, index, settings, &config, err))
			return PVR_OPTIONS_BAD;
	}
	if (optind < argc) {
		pvr_fail(err, "unexpected argument '%s', see pvrdmad --help", argv[optind]);
		return PVR_OPTIONS_BAD;
	}
	if (config && !pvr_settings_read_file(settings, config, err))
		return PVR_OPTIONS_BAD;
	settings->net.directory = pvr_directory_options_any(&settings->directory);
	if (!pvr_directory_options_check(&settings->directory, err) ||
	    !pvr_net_settings_check(&settings->net, err))
		return PVR_OPTIONS_BAD;
	return PVR_OPTIONS_RUN;
}
