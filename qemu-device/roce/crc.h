/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CRC-32 of IEEE 802.3, as zlib's crc32(): of memory, and of memory that is copied. */
#ifndef PVR_ROCE_CRC_H
#define PVR_ROCE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* @crc: of the bytes before; 0: there are none. Return: the CRC up to the last byte. */
uint32_t pvr_roce_crc(uint32_t crc, const uint8_t *from, size_t bytes);

/*
 * The same of the copy that is made at @to. Each byte is read once, so the CRC is that of the
 * copy even if a guest writes to @from meanwhile. The two do not overlap.
 */
uint32_t pvr_roce_crc_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes);

#endif /* PVR_ROCE_CRC_H */
