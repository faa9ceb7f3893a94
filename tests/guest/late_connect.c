// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * For LD_PRELOAD: rdma_connect() comes 0.3 s later.
 *
 * With -R both ends of perftest shake hands, and then the server begins to listen, and the
 * client to connect. A client that is first is rejected, and Debian 12's crashes when it tries again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*connect)(struct rdma_cm_id * id, struct rdma_conn_param * param);

	*(void **)&connect = dlsym(RTLD_NEXT, "rdma_connect");
	if (!connect) {
		fprintf(stderr, "late_connect: %s\n", dlerror());
		exit(1);
	}
	usleep(300000);
	return connect(id, param);
}
