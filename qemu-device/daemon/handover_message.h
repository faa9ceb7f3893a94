/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The messages between a pvrdmad and the one that replaces it.
 *
 * DOC: upgrade
 *
 * Each message is a JSON object with "type" and descriptors. A process ignores keys that it
 * does not have, so both may be of different versions.
 *
 *    the running pvrdmad                    the new pvrdmad
 *                          <-- hello        its settings are good
 *    listen, adapters, vm (of each QEMU), create -->
 *                                           listens, creates adapters, prepares for the VMs
 *                          <-- ready        has all that it needs but the VMs
 *    stops the adapters
 *    client, ram (of each QEMU), load -->   maps RAM, loads the states
 *                          <-- loaded
 *    go -->                                 starts the adapters
 *    ends
 *
 * The running pvrdmad goes on if the new one ends, or is late, before "loaded". It sends "abort"
 * then. If the channel ends after "loaded" without one, the running pvrdmad has died, and the new
 * one starts the adapters.
 *
 * With a service manager, which ends the new process if the running one dies, the messages up to
 * "load" are also in its store (handover_store.h). "hello" says that the new process knows it,
 * and "store" passes the file that it discards before it starts the adapters. Then the running
 * pvrdmad names the new one to the service manager before "go". Without "go" the new one ends, and
 * the service manager starts a third one with the store's messages.
 */
#ifndef PVR_DAEMON_HANDOVER_MESSAGE_H
#define PVR_DAEMON_HANDOVER_MESSAGE_H

#include <json-c/json.h>

#include "attach/handover.h"
#include "base/fd_message.h"
#include "daemon/adapter_settings.h"
#include "daemon/handover_store.h"

#define PVR_HANDOVER_VERSION 1

struct pvr_handover_channel {
	int fd; /* to the other process; -1: it has died, and the messages come from @store */
	struct pvr_handover_store store;
};

/*
 * @deadline: when the function gives up with -ETIMEDOUT, see pvr_loop_now(), or PVR_NEVER.
 */

/* Sends and puts @message. It goes to the store, too. Return: 0 or -errno. */
int pvr_handover_send(struct pvr_handover_channel *channel, struct json_object *message,
		      const int *fds, size_t num_fds, uint64_t deadline);
struct json_object *pvr_handover_message(const char *type);

/*
 * Receives a message, whose descriptors are in @raw. Return: NULL with @err filled. @ended: whether
 * the other process has closed the channel.
 */
struct json_object *pvr_handover_receive(struct pvr_handover_channel *channel,
					 struct pvr_fd_message *raw, uint64_t deadline, bool *ended,
					 struct pvr_error *err);
bool pvr_handover_is(struct json_object *message, const char *type);

/* All settings of an adapter that has no wire. */
struct json_object *pvr_handover_put_adapter(const struct pvr_adapter_settings *settings);
bool pvr_handover_get_adapter(struct json_object *from, struct pvr_adapter_settings *settings,
			      struct pvr_error *err);

struct json_object *pvr_handover_put_qos(const struct pvr_qos *qos);
void pvr_handover_get_qos(struct json_object *from, struct pvr_qos *qos);

/* The message "vm": an adapter, and the VERSION message of its client. */
struct json_object *pvr_handover_put_vm(const char *adapter, const uint8_t *version, size_t len);
/* Return: bytes of the VERSION message, at most @max; 0: it is malformed. */
size_t pvr_handover_get_vm(struct json_object *message, uint8_t *version, size_t max);

/* A client is two messages, so that the descriptors of its RAM fit. @state is a file. */
int pvr_handover_send_client(struct pvr_handover_channel *channel, const char *adapter,
			     const struct pvr_handover *client, int state, uint64_t deadline);
/*
 * Reads a message "client", with its descriptors. Return: false with @err filled. @state: -1 for a
 * client without a device yet.
 */
bool pvr_handover_get_client(struct json_object *message, struct pvr_fd_message *raw,
			     struct pvr_handover *client, int *state, struct pvr_error *err);
/* Reads the message "ram" that follows. */
bool pvr_handover_get_ram(struct json_object *message, struct pvr_fd_message *raw,
			  struct pvr_handover *client, struct pvr_error *err);

#endif /* PVR_DAEMON_HANDOVER_MESSAGE_H */
