// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * LD_PRELOAD library that delays rdma_connect() by 0.3 s.
 *
 * With -R both ends of perftest exchange data first; then the server listens and the
 * client connects. The connection of a client that is earlier is rejected. Debian 12's
 * perftest crashes when it then retries.
 */
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
