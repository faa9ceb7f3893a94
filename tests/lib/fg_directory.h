/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The directory of a wire's hosts, in place of etcd: see fg_wire.h. Any thread may call. */
#ifndef FG_DIRECTORY_H
#define FG_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "pipe.h"

struct fg_directory;

struct fg_directory *fg_directory_create(void);
void fg_directory_destroy(struct fg_directory *dir);

void fg_directory_announce(struct fg_directory *dir, unsigned int host, const char *fabric,
			   const uint8_t gid[16], uint8_t gid_type, bool present);
void fg_directory_ask(struct fg_directory *dir, unsigned int host, const char *fabric,
		      const uint8_t gid[16]);
/* The GID was not at the reported host: @host gets the present location again. */
void fg_directory_moved(struct fg_directory *dir, unsigned int host, const char *fabric,
			const uint8_t gid[16]);
/* While @keeps, GIDs that @host withdraws stay: its process ends, and another one takes its place. */
void fg_directory_keep(struct fg_directory *dir, unsigned int host, bool keeps);
/*
 * As etcd and a file of peers: a host keeps the location of a GID until another host has it, or its owner
 * denies it. Else each host is told when a GID is withdrawn.
 */
void fg_directory_set_slow_to_forget(struct fg_directory *dir, bool slow);
/* @host has a new engine, which knows nothing. */
void fg_directory_renew(struct fg_directory *dir, unsigned int host);
/* Delivers the pending announcements and replies to @host. Return: whether one was pending. */
bool fg_directory_tell(struct fg_directory *dir, unsigned int host, struct pvr_engine *engine,
		       struct pvr_host *const *peer);

void fg_directory_set_on(struct fg_directory *dir, bool on);
unsigned int fg_directory_asked(struct fg_directory *dir, unsigned int host);
unsigned int fg_directory_moves(struct fg_directory *dir, unsigned int host);

#endif /* FG_DIRECTORY_H */
