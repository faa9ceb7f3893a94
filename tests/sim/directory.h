/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Each host has the directory of pvrdmad, with etcd or a file of peers. This file does what
 * daemon/network.c does between the directory, the engine and the connections.
 */
#ifndef SIM_DIRECTORY_H
#define SIM_DIRECTORY_H

#include "fg_wire.h"
#include "web.h"

struct sim;
struct sim_directory;

/* Before the hosts. */
struct sim_directory *sim_directory_create(struct sim *sim);
/* The hosts exist until all are stopped. */
void sim_directory_destroy(struct sim_directory *directory);
const struct fg_wire_directory *sim_directory_ops(const struct sim_directory *directory);
/* A process of this host starts, which has an engine without adapters. */
void sim_directory_start(struct sim_directory *directory, unsigned int host);
/* The process ends, and tells none. */
void sim_directory_stop(struct sim_directory *directory, unsigned int host);
/* It reads its file of peers again, which is the same. Return: false without a file. */
bool sim_directory_reload(struct sim_directory *directory, unsigned int host);
/* Whether @from has the address of @to. */
bool sim_directory_knows(const struct sim_directory *directory, unsigned int from, unsigned int to);
/* Whether it makes connections to it. */
bool sim_directory_dials(const struct sim_directory *directory, unsigned int from, unsigned int to);
/* NULL without etcd. */
struct sim_web *sim_directory_web(struct sim_directory *directory);

#endif /* SIM_DIRECTORY_H */
