// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmad's command line. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control_path.h"
#include "daemon/options.h"
#include "path/pipe/frame.h"
#include "pvrdma_abi.h"

static const char help[] =
	"Usage: pvrdmad [OPTION]...\n"
	"Provides PVRDMA devices for the virtual machines of this host.\n"
	"\n"
	"  --adapter " PVR_ADAPTER_SYNTAX "\n"
	"                     add a device: QEMU connects to PATH; MAC is that of the VM's\n"
	"                     NIC; adapters of different fabrics cannot communicate\n"
	"  --config FILE      read adapters and settings from FILE, see pvrdmad.conf(5)\n"
	"  --control PATH     socket for pvrdmactl (default: %s)\n"
	"  --log-level LEVEL  error, warn, info (default) or debug\n"
	"  --log-format text|json\n"
	"                     lines of text (default), or a JSON object per line\n"
	"  --poll auto|off|USEC\n"
	"                     poll for work before sleeping: as long as this finds work (auto,\n"
	"                     default), never (off), or always for USEC microseconds\n"
	"  --log-timestamps   start log lines with the time of day\n"
	"  --workers N|auto   threads that serve the adapters (default: 1); auto: one per CPU,\n"
	"                     and adapters move from full ones\n"
	"  --worker-cpus LIST pin each worker to one CPU of the list, such as 0-3,8\n"
	"  --numa-node N      run the workers on this NUMA node, prefer its memory\n"
	"  --seccomp on|log|off\n"
	"                     system calls that pvrdmad does not need end it (on, default),\n"
	"                     are in the kernel's audit log (log), or are executed (off)\n"
	"  --faults allowed|refused\n"
	"                     'pvrdmactl fault' may make messages fail, to test programs\n"
	"                     (default: refused)\n"
	"  --fabrics LIST     refuse adapters of other fabrics than these (default: take all)\n"
	"  --hold SECONDS     peers wait for an adapter whose VM is paused (default: 60)\n"
	"  --silent-source start|refuse\n"
	"                     whether a VM that comes from a host that does not respond\n"
	"                     gets its adapter (default: start)\n"
	"  --metrics ADDRESS:PORT|unix:PATH\n"
	"                     serve metrics for Prometheus by HTTP, without TLS (default: do not)\n"
	"  --user NAME        drop root privileges and run as the user NAME\n"
	"\n"
	"  --listen ADDRESS[:PORT]\n"
	"                     listen for daemons of other hosts (default: do not; port: 7471)\n"
	"  --peer NAME=ADDRESS[:PORT]\n"
	"                     another host; --peer and --listen can be given many times\n"
	"  --name NAME        name of this host for other hosts (default: the host name)\n"
	"  --tls-psk-file FILE\n"
	"                     pre-shared keys: a line HOST:HEX for each other host\n"
	"  --tls-cert FILE, --tls-key FILE, --tls-ca FILE\n"
	"                     or PEM files: certificate of this host, its key, authorities\n"
	"  --tls-crl FILE     lists of revoked certificates, PEM (default: no check)\n"
	"  --insecure         no TLS: only for networks where every host is trusted\n"
	"  --connections N    number to each peer (default: one per worker, at least two)\n"
	"  --congestion NAME  TCP's congestion control (default: the kernel's)\n"
	"  --keepalive SECONDS\n"
	"                     close a connection without input for so long (default: 10)\n"
	"  --idle-timeout SECONDS\n"
	"                     close unused connections after this time (default: 600)\n"
	"  --rdma-device NAME|auto|none\n"
	"                     RDMA NIC for traffic to other hosts (default: auto)\n"
	"  --rdma-zerocopy on|off\n"
	"                     RDMA NICs read large payloads from guest memory; off: they are\n"
	"                     copied (default: on)\n"
	"  --rdma-unencrypted use RDMA NICs although TLS is on: they do not encrypt\n"
	"  --dscp guest|NUMBER\n"
	"                     DSCP of packets to other hosts: that of the guest's traffic\n"
	"                     (guest, default), or NUMBER\n"
	"\n"
	"  --peers FILE       other hosts, their addresses and GIDs: see pvrdmad.conf(5)\n"
	"  --etcd URL[,URL]...\n"
	"                     or find hosts in etcd; --etcd-ca, --etcd-cert, --etcd-key,\n"
	"                     --etcd-user, --etcd-password-file, --etcd-prefix, --etcd-lease:\n"
	"                     see pvrdmad(8)\n"
	"  --policy FILE      the GIDs that each host may have: see pvrdmad.conf(5)\n"
	"  --advertise ADDRESS[:PORT]\n"
	"                     address of this host in etcd (default: the first --listen)\n"
	"\n"
	"  --help, --version\n"
	"\n"
	"pvrdmad stays in the foreground and logs to stderr. To attach a VM, start QEMU with\n"
	"  -object memory-backend-memfd,id=mem,size=SIZE,share=on -machine memory-backend=mem\n"
	"  -device "
	"'{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"PATH\"}}'\n"
	"pvrdmactl(8) shows the state. pvrdmad(8) has the details.\n";

enum option_key {
	OPT_ADAPTER = 1,
	OPT_CONFIG,
	OPT_CONTROL,
	OPT_TIMESTAMPS,
	OPT_SWITCH,
	OPT_SETTING, /* same name as in the configuration file */
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "adapter", required_argument, NULL, OPT_ADAPTER },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "log-level", required_argument, NULL, OPT_SETTING },
	{ "log-format", required_argument, NULL, OPT_SETTING },
	{ "poll", required_argument, NULL, OPT_SETTING },
	{ "log-timestamps", no_argument, NULL, OPT_TIMESTAMPS },
	{ "seccomp", required_argument, NULL, OPT_SETTING },
	{ "faults", required_argument, NULL, OPT_SETTING },
	{ "fabrics", required_argument, NULL, OPT_SETTING },
	{ "hold", required_argument, NULL, OPT_SETTING },
	{ "silent-source", required_argument, NULL, OPT_SETTING },
	{ "metrics", required_argument, NULL, OPT_SETTING },
	{ "user", required_argument, NULL, OPT_SETTING },
	{ "workers", required_argument, NULL, OPT_SETTING },
	{ "worker-cpus", required_argument, NULL, OPT_SETTING },
	{ "numa-node", required_argument, NULL, OPT_SETTING },
	{ "name", required_argument, NULL, OPT_SETTING },
	{ "listen", required_argument, NULL, OPT_SETTING },
	{ "peer", required_argument, NULL, OPT_SETTING },
	{ "connections", required_argument, NULL, OPT_SETTING },
	{ "congestion", required_argument, NULL, OPT_SETTING },
	{ "keepalive", required_argument, NULL, OPT_SETTING },
	{ "idle-timeout", required_argument, NULL, OPT_SETTING },
	{ "dscp", required_argument, NULL, OPT_SETTING },
	{ "rdma-device", required_argument, NULL, OPT_SETTING },
	{ "rdma-zerocopy", required_argument, NULL, OPT_SETTING },
	{ "rdma-unencrypted", no_argument, NULL, OPT_SWITCH },
	{ "tls-cert", required_argument, NULL, OPT_SETTING },
	{ "tls-key", required_argument, NULL, OPT_SETTING },
	{ "tls-ca", required_argument, NULL, OPT_SETTING },
	{ "tls-crl", required_argument, NULL, OPT_SETTING },
	{ "tls-psk-file", required_argument, NULL, OPT_SETTING },
	{ "peers", required_argument, NULL, OPT_SETTING },
	{ "advertise", required_argument, NULL, OPT_SETTING },
	{ "policy", required_argument, NULL, OPT_SETTING },
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

/* An option that names one place: of two, neither is the one that counts. */
static bool once(bool given, const char *option, struct pvr_error *err)
{
	return !given || pvr_fail(err, "%s is given twice", option);
}

/* @index: into long_options[] */
static bool take_option(int key, int index, struct pvr_settings *settings, const char **config,
			struct pvr_error *err)
{
	switch (key) {
	case OPT_ADAPTER:
		return add_adapter(settings, optarg, err);
	case OPT_CONFIG:
		if (!once(*config, "--config", err))
			return false;
		*config = optarg;
		return true;
	case OPT_CONTROL: /* the file, which also has it, is read after the options */
		return once(settings->control[0], "--control", err) &&
		       pvr_settings_set(settings, "control", optarg, err);
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
			printf("pvrdmad %s\ndevice version %d, pipe version %d\n",
			       PVR_PACKAGE_VERSION, PVR_VERSION, PVR_FRAME_VERSION);
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
	if (!pvr_directory_options_check(&settings->directory, settings->net.insecure, err) ||
	    !pvr_net_settings_check(&settings->net, err))
		return PVR_OPTIONS_BAD;
	return PVR_OPTIONS_RUN;
}
