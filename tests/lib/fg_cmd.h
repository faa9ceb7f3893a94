/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The command channel as the stock driver uses it, and one helper per command that
 * is not the constructor of an object (those are with their objects).
 */
#ifndef FG_CMD_H
#define FG_CMD_H

#include "fg_guest.h"

/* Returned when ERR is 0 but the response slot does not fit the command. */
#define FG_ERR_NO_RESPONSE 0xfffffff0u

#define FG_CMD_COOKIE 0x1122334455667788ull
#define FG_CMD_HDR(op)                                 \
	{                                              \
		.response = FG_CMD_COOKIE, .cmd = (op) \
	}

/**
 * fg_cmd() - run a command
 * @req: starts with struct pvr_cmd_hdr; what follows it in the slot is garbage, as
 *	 with the stock driver
 * @resp: where the response goes on success, or NULL
 *
 * Return: the ERR register, 0 for success.
 */
uint32_t fg_cmd(struct fg_guest *guest, const void *req, size_t req_len, void *resp,
		size_t resp_len);

/* Its two halves: the slot and REQUEST; ERR and the response. */
void fg_cmd_begin(struct fg_guest *guest, const void *req, size_t req_len);
uint32_t fg_cmd_end(struct fg_guest *guest, const void *req, void *resp, size_t resp_len);

/* DESTROY_* of any object. */
uint32_t fg_cmd_destroy(struct fg_guest *guest, uint32_t cmd, uint32_t handle);

uint32_t fg_query_port(struct fg_guest *guest, uint8_t port, struct pvr_port_attr *attr);
uint32_t fg_query_pkey(struct fg_guest *guest, uint8_t port, uint8_t index, uint16_t *pkey);

#endif /* FG_CMD_H */
