/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CRC-32 of IEEE 802.3, as zlib's crc32(): of memory, of memory that is copied, of packets. */
#ifndef PVR_ROCE_CRC_H
#define PVR_ROCE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @crc: of the bytes before; 0: there are none. Return: the CRC up to the last byte. */
uint32_t pvr_roce_crc(uint32_t crc, const uint8_t *from, size_t bytes);

/*
 * The same of the copy that is made at @to. Each byte is read once, so the CRC is that of the
 * copy even if a guest writes to @from meanwhile. The two do not overlap. @next: memory that is
 * copied next, or NULL: it is fetched to the caches meanwhile
 */
uint32_t pvr_roce_crc_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes,
			   const uint8_t *next);

#define PVR_ROCE_CRC_WORD 16u
#define PVR_ROCE_CRC_HEAD_MAX (4 * PVR_ROCE_CRC_WORD)
/*
 * Headers of packets that differ by IPv4 ID, A and PSN only, see pvr_roce_icrc_head(). The first four
 * bytes of the ICRC are left out: they are ones, and so are those that a CRC begins with.
 */
struct pvr_roce_crc_head {
	uint8_t bytes[PVR_ROCE_CRC_HEAD_MAX]; /* zeros, and the headers up to the end of the BTH */
	unsigned int count; /* of words of 16 bytes, 2 at least */
	bool has_id;
};

/*
 * The CRC of such headers and of the payload behind them. @psn: the last four bytes of the BTH; @next:
 * memory that as many bytes are written to then, or NULL: it is fetched to the caches meanwhile
 */
uint32_t pvr_roce_crc_packet(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
			     const uint8_t *from, size_t bytes, const uint8_t *next);
/* The same for a payload that is copied, see pvr_roce_crc_copy(). */
uint32_t pvr_roce_crc_packet_copy(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
				  uint8_t *to, const uint8_t *from, size_t bytes,
				  const uint8_t *next);

#endif /* PVR_ROCE_CRC_H */
