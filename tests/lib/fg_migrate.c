// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guests whose adapter is saved, emptied and loaded again. */
#include "fg_migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "fg_dirty.h"
#include "fg_ram.h"
#include "fg_trap.h"

/* Not a power of two: records and reads end at different places. */
#define READ_BYTES 999
#define PUSH_BYTES 1001

void fg_migrate_init(void)
{
	const char *every = getenv("FG_MIGRATE");

	fg_migrate_every = every ? (uint32_t)strtoul(every, NULL, 10) : 0;
	fg_migrate_hook = fg_migrate_all;
	fg_traps_on = fg_migrate_every;
	fg_plug_hook = fg_traps_on ? fg_dirty_start : NULL;
	fg_trap_install();
}

static void finish(struct fg_guest *guest)
{
	while (pvr_adapter_busy(guest->adapter))
		pvr_engine_run(guest->host->engine, pvr_adapter_worker(guest->adapter));
}

void fg_stop(struct fg_guest *guest)
{
	int err;

	while ((err = pvr_adapter_stop(guest->adapter)) == -EINPROGRESS)
		finish(guest);
	if (err)
		fg_die("%s: stop: %s", guest->name, strerror(-err));
}

/* Return: 0 or a negative errno, also if @err is one. */
static int read_all(int err, struct pvr_save *save, struct fg_state *state)
{
	size_t room = 0;
	ssize_t n = 0;

	*state = (struct fg_state){ 0 };
	if (err)
		return err;
	do {
		state->size += (size_t)n;
		if (room < state->size + READ_BYTES) {
			room = 2 * (state->size + READ_BYTES);
			state->data = realloc(state->data, room);
		}
		if (!state->data)
			fg_die("out of memory");
		n = pvr_save_read(save, state->data + state->size, READ_BYTES);
	} while (n > 0);
	pvr_save_end(save);
	if (n < 0)
		fg_state_free(state);
	return (int)n;
}

int fg_state_save(struct fg_guest *guest, struct fg_state *state)
{
	struct pvr_save *save = NULL;
	int err = pvr_adapter_save_begin(guest->adapter, &save);

	return read_all(err, save, state);
}

int fg_state_save_again(struct fg_guest *guest, struct fg_state *state)
{
	struct pvr_save *save = NULL;
	int err = pvr_adapter_save_again(guest->adapter, &save);

	return read_all(err, save, state);
}

void fg_state_free(struct fg_state *state)
{
	free(state->data);
	*state = (struct fg_state){ 0 };
}

void fg_drop(struct fg_guest *guest)
{
	int err = pvr_adapter_drop(guest->adapter);

	if (err)
		fg_die("%s: drop: %s", guest->name, strerror(-err));
	finish(guest);
}

int fg_state_load(struct fg_guest *guest, const struct fg_state *state)
{
	size_t at, n;
	int err = 0;

	for (at = 0; at < state->size && !err; at += n) {
		n = state->size - at < PUSH_BYTES ? state->size - at : PUSH_BYTES;
		err = pvr_adapter_load_push(guest->adapter, state->data + at, n);
	}
	if (err)
		return err;
	while ((err = pvr_adapter_load_finish(guest->adapter)) == -EINPROGRESS)
		finish(guest);
	return err;
}

int fg_start(struct fg_guest *guest)
{
	int err;

	while ((err = pvr_adapter_start(guest->adapter)) == -EINPROGRESS)
		finish(guest);
	return err;
}

static void die(struct fg_guest *guest, const char *what, int err)
{
	char why[200];

	pvr_adapter_load_error(guest->adapter, why, sizeof(why));
	fg_die("%s: %s: %s: %s", guest->name, what, strerror(-err), why);
}

/* Two states of one adapter differ in token, host and time, and so in the checksum at their end. */
#define IDENTITY_BYTES (PVR_TOKEN_BYTES + PVR_MOVE_NAME_MAX + sizeof(uint64_t))
#define CHECKSUM_BYTES 4

static void copy_identity(const struct fg_guest *guest, struct fg_state *to,
			  const struct fg_state *from)
{
	uint8_t *at = memmem(to->data, to->size, guest->adapter->move.token, PVR_TOKEN_BYTES);
	size_t offset = at ? (size_t)(at - to->data) : to->size;

	if (offset + IDENTITY_BYTES + CHECKSUM_BYTES > to->size || to->size > from->size)
		fg_die("%s: its state of %zu bytes has no token, or too many bytes", guest->name,
		       to->size);
	memcpy(at, from->data + offset, IDENTITY_BYTES);
	memcpy(to->data + to->size - CHECKSUM_BYTES, from->data + to->size - CHECKSUM_BYTES,
	       CHECKSUM_BYTES);
}

void fg_state_compare(const struct fg_guest *guest, const struct fg_state *before,
		      struct fg_state *after)
{
	size_t i;

	copy_identity(guest, after, before);
	for (i = 0; i < before->size && i < after->size; i++)
		if (before->data[i] != after->data[i])
			fg_die("%s: byte %zu of %zu of its state was %u, is %u", guest->name, i,
			       before->size, before->data[i], after->data[i]);
	if (before->size != after->size)
		fg_die("%s: its state had %zu bytes, has %zu", guest->name, before->size,
		       after->size);
}

void fg_migrate(struct fg_guest *guest)
{
	uint32_t irq[PVR_VEC_MAX];
	struct fg_state before, after;
	int err;

	fg_stop(guest);
	fg_dirty_check(guest);
	err = fg_state_save(guest, &before);
	if (err)
		die(guest, "save", err);
	fg_drop(guest);
	err = fg_state_load(guest, &before);
	if (err)
		die(guest, "load", err);
	err = fg_state_save(guest, &after);
	if (err)
		die(guest, "save after load", err);
	fg_state_compare(guest, &before, &after);
	fg_state_free(&before);
	fg_state_free(&after);
	/* The start raises vectors of unread entries again, which tests do not count. */
	memcpy(irq, guest->irq, sizeof(irq));
	err = fg_start(guest);
	memcpy(guest->irq, irq, sizeof(irq));
	if (err)
		die(guest, "start", err);
}

void fg_move(struct fg_guest *guest, struct fg_host *host)
{
	struct fg_state state;
	int err;

	fg_stop(guest);
	fg_dirty_check(guest);
	err = fg_state_save(guest, &state);
	if (err)
		die(guest, "save", err);
	fg_drop(guest);
	fg_guest_unplug(guest);
	LIST_REMOVE(guest, of_host);
	guest->host = host;
	LIST_INSERT_HEAD(&host->guests, guest, of_host);
	if (!fg_guest_plug(guest))
		fg_die("%s: cannot plug it in", guest->name);
	err = fg_state_load(guest, &state);
	fg_state_free(&state);
	/* The hosts have no names to ask each other. */
	pvr_adapter_load_is_last(guest->adapter);
	if (!err)
		err = fg_start(guest);
	if (err)
		die(guest, "load", err);
}

/* Queue pairs on a segment cannot move, but what their adapter writes is in its log. */
void fg_migrate_all(struct fg_host *host)
{
	struct fg_guest *guest;

	LIST_FOREACH(guest, &host->guests, of_host)
		if (guest->adapter && host->port)
			fg_dirty_check(guest);
		else if (guest->adapter)
			fg_migrate(guest);
}
