// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command channel: slot, REQUEST, ERR, response slot. */
#include "fg_cmd.h"

#include <string.h>

#include "../../drivers/status.h"

#define STALE_REQ 0xa5 /* the stock driver copies stack garbage after its struct */
#define STALE_RESP 0xee

void fg_cmd_begin(struct fg_guest *guest, const void *req, size_t req_len)
{
	memset(guest->cmd_slot, STALE_REQ, PVR_CMD_REQ_SIZE);
	memcpy(guest->cmd_slot, req, req_len);
	memset(guest->resp_slot, STALE_RESP, PVR_CMD_RESP_SIZE);
	fg_reg_write(guest, PVR_REG_REQUEST, 0);
}

uint32_t fg_cmd_end(struct fg_guest *guest, const void *req, void *resp, size_t resp_len)
{
	uint32_t err = fg_reg_read(guest, PVR_REG_ERR);
	struct pvr_resp_hdr answer;
	struct pvr_cmd_hdr hdr;

	memcpy(&hdr, req, sizeof(hdr));
	/* The driver judges each status by its row. */
	if (err && !pvr_status_is_listed(hdr.cmd, err))
		fg_die("command %u: status %u has no row in drivers/status.c", hdr.cmd, err);
	if (err || !resp)
		return err;
	memcpy(&answer, guest->resp_slot, sizeof(answer));
	if (answer.ack != (PVR_CMD_RESP_ACK | hdr.cmd) || answer.err ||
	    answer.response != hdr.response)
		return FG_ERR_NO_RESPONSE;
	memcpy(resp, guest->resp_slot, resp_len);
	return 0;
}

uint32_t fg_cmd(struct fg_guest *guest, const void *req, size_t req_len, void *resp,
		size_t resp_len)
{
	const struct fg_host *host = guest->host;

	fg_cmd_begin(guest, req, req_len);
	if (host->neighbours)
		host->neighbours->tell(host->neighbours_opaque);
	return fg_cmd_end(guest, req, resp, resp_len);
}

uint32_t fg_cmd_destroy(struct fg_guest *guest, uint32_t cmd, uint32_t handle)
{
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(cmd), .handle = handle };

	return fg_cmd(guest, &req, sizeof(req), NULL, 0);
}

uint32_t fg_query_port(struct fg_guest *guest, uint8_t port, struct pvr_port_attr *attr)
{
	struct pvr_cmd_query_port req = {
		.hdr = FG_CMD_HDR(PVR_CMD_QUERY_PORT),
		.port_num = port,
	};
	struct pvr_resp_query_port resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*attr = resp.attrs;
	return err;
}

uint32_t fg_query_pkey(struct fg_guest *guest, uint8_t port, uint8_t index, uint16_t *pkey)
{
	struct pvr_cmd_query_pkey req = {
		.hdr = FG_CMD_HDR(PVR_CMD_QUERY_PKEY),
		.port_num = port,
		.index = index,
	};
	struct pvr_resp_query_pkey resp;
	uint32_t err = fg_cmd(guest, &req, sizeof(req), &resp, sizeof(resp));

	if (!err)
		*pkey = resp.pkey;
	return err;
}
