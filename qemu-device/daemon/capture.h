/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Captures: packets of an adapter as a pcapng stream on a control connection.
 *
 * DOC: life of a capture
 *
 * - pvr_capture_start() sets the capture of the adapter. The reply to the request is sent,
 *   and then pvr_capture_stream() takes the connection: all further bytes are pcapng.
 * - Workers append packets to a ring of fixed size. The first thread sends it. A client that
 *   does not read loses packets; the next one in the stream has their number.
 * - The capture ends when the client closes the connection, or when the adapter is removed.
 */
#ifndef PVR_DAEMON_CAPTURE_H
#define PVR_DAEMON_CAPTURE_H

#include "daemon/daemon.h"

#define PVR_CAPTURE_SNAPLEN_MAX 65535u
#define PVR_CAPTURES_MAX 8u /* of a daemon */

struct pvr_capture_session;

/* Return: NULL with @err filled. */
struct pvr_capture_session *pvr_capture_start(struct pvr_daemon *daemon, struct pvr_attach *attach,
					      uint32_t snaplen, bool payload,
					      struct pvr_error *err);
/* Send the packets to @fd, a non-blocking socket, which the session closes. */
void pvr_capture_stream(struct pvr_capture_session *session, int fd);
/* End the capture and free @session, which may be NULL. */
void pvr_capture_end(struct pvr_capture_session *session);
/* End the captures of @attach; NULL: all. */
void pvr_captures_end(struct pvr_daemon *daemon, const struct pvr_attach *attach);

#endif /* PVR_DAEMON_CAPTURE_H */
