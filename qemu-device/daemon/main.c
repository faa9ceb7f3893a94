// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmad: the PVRDMA devices of one host's virtual machines. */
#include <stdlib.h>
#include <unistd.h>

#include "base/loop.h"
#include "daemon/confine.h"
#include "daemon/daemon.h"
#include "daemon/launcher.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "daemon/takeover.h"

#define EXIT_USAGE 2
#define READY_NS (10 * PVR_SEC) /* without this message, the service manager ends the daemon */
#define STOPPING_NS (100 * PVR_MSEC)

static bool prepare(const struct pvr_settings *settings, char **argv, struct pvr_error *err)
{
	pvrd_log_timestamps(settings->timestamps);
	pvrd_log_set_json(settings->json_log);
	if (settings->log_level_set)
		pvrd_log_set_level(settings->log_level);
	pvr_raise_file_limit();
	if (settings->user[0] && !pvr_drop_privileges(settings->user, err))
		return false;
	if (!pvr_confine_process(err))
		return false;
	pvr_launcher_fork(argv);
	return true;
}

/* The daemon that this one was to replace goes on, with the same sockets: they stay as they are. */
static _Noreturn void give_up(const struct pvr_error *err)
{
	pvrd_log(PVR_LOG_ERR, NULL, "upgrade: %s", err->text);
	pvrd_log_flush();
	_exit(EXIT_FAILURE);
}

static int serve(const struct pvr_settings *settings, struct pvr_takeover *takeover)
{
	static struct pvr_daemon daemon;
	struct pvr_error err;
	bool ok = pvr_daemon_init(&daemon, settings, takeover, &err);

	if (!ok && takeover)
		give_up(&err);
	if (ok) {
		pvrd_log(PVR_LOG_INFO, NULL, "ready, %zu adapters", daemon.num_adapters);
		pvr_notify("READY=1", READY_NS);
		pvr_daemon_run(&daemon);
		pvr_notify("STOPPING=1", STOPPING_NS);
	} else {
		pvrd_log(PVR_LOG_ERR, NULL, "%s", err.text);
	}
	pvr_daemon_exit(&daemon);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct pvr_takeover *takeover = pvr_takeover_find();
	struct pvr_settings settings = { .adapters = NULL };
	struct pvr_error err;
	int status = EXIT_SUCCESS;

	switch (pvr_options_parse(argc, argv, &settings, &err)) {
	case PVR_OPTIONS_BAD:
		pvrd_log(PVR_LOG_ERR, NULL, "%s", err.text);
		status = EXIT_USAGE;
		break;
	case PVR_OPTIONS_DONE:
		break;
	case PVR_OPTIONS_RUN:
		if (prepare(&settings, argv, &err) && pvrd_log_start(&err)) {
			if (takeover && !pvr_takeover_prepare(takeover, &settings, &err))
				give_up(&err);
			status = serve(&settings, takeover);
			pvrd_log_stop();
		} else {
			pvrd_log(PVR_LOG_ERR, NULL, "%s", err.text);
			status = EXIT_FAILURE;
		}
	}
	pvr_settings_free(&settings);
	return status;
}
