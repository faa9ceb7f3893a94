/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Records of an adapter's state, written and read by the same functions.
 *
 * DOC: format
 *
 * - A state is a sequence of records: { u16 type, u16 0, u32 size } and @size bytes of fields,
 *   little-endian, without padding. Structs of the guest ABI are copied as they are, no others.
 * - The fields of a record are written and read by one function, which calls pvr_codec_*() for each.
 *   A later version may add fields at the end of a record: a reader ignores what it does not know.
 * - The last record has the number of records before it and their CRC-32C.
 *
 * DOC: trust
 *
 * A state comes from a file or from another host, and is checked like input of a guest. The first
 * fault is kept, with the name of the field. After it each call reads zeros, so callers check
 * for faults at the end of a record.
 */
#ifndef PVR_STATE_H
#define PVR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pvr_adapter;
struct pvr_pages;
struct pvr_timer;

#define PVR_STATE_MAGIC 0x4554415453525650ull /* "PVRSTATE" */
#define PVR_STATE_FORMAT 1u
#define PVR_STATE_RECORD_MAX (1u << 18) /* bytes of a record without its header */
#define PVR_STATE_HEADER 8u

enum pvr_state_type {
	PVR_STATE_HEAD = 1,
	PVR_STATE_REGS,
	PVR_STATE_RING,
	PVR_STATE_UC,
	PVR_STATE_PD,
	PVR_STATE_XRCD,
	PVR_STATE_CQ,
	PVR_STATE_SRQ,
	PVR_STATE_MR,
	PVR_STATE_MR_PAGES,
	PVR_STATE_QP,
	PVR_STATE_MW_BIND,
	PVR_STATE_RESPONDER,
	PVR_STATE_IN_FLIGHT,
	PVR_STATE_MCAST,
	PVR_STATE_GID,
	PVR_STATE_EQE,
	PVR_STATE_CQ_EVENT,
	PVR_STATE_END,
	PVR_STATE_TYPES,
};

const char *pvr_state_type_name(uint32_t type);

/* Writes or reads the fields of records. */
struct pvr_codec {
	struct pvr_adapter *adapter;
	bool loads;
	uint32_t type; /* of the current record */
	/* Writing: records that are not taken yet. */
	uint8_t *out;
	size_t size, room;
	size_t begin; /* of the current record */
	uint64_t living; /* see pvr_peer_gone_check(); of one read */
	/* Reading: the rest of the current record. */
	const uint8_t *in;
	size_t left;
	/* Of the whole state. */
	uint32_t records;
	uint32_t crc;
	int err; /* 0, -EINVAL, -EFAULT or -ENOMEM */
	char why[200];
};

/* ------------------------------------------------------------------ records */

/* Writing. The record is complete, and part of the CRC, after pvr_codec_end(). */
void pvr_codec_begin(struct pvr_codec *codec, enum pvr_state_type type);
void pvr_codec_end(struct pvr_codec *codec);
/* Free the memory of written records. */
void pvr_codec_exit(struct pvr_codec *codec);

/*
 * Reading: begin the record at @data, of which @size bytes exist. Return: bytes of the record
 * with its header; 0: it is malformed or incomplete.
 */
size_t pvr_codec_open(struct pvr_codec *codec, const void *data, size_t size);
/* Add the record that pvr_codec_open() has opened to the CRC. */
void pvr_codec_close(struct pvr_codec *codec, const void *data, size_t bytes);

/* Keep the fault, unless there was one already. */
void pvr_codec_fault(struct pvr_codec *codec, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ------------------------------------------------------------------- fields */

/* Write *value, or read it. @field: its name in messages. */
void pvr_codec_u8(struct pvr_codec *codec, const char *field, uint8_t *value);
void pvr_codec_u16(struct pvr_codec *codec, const char *field, uint16_t *value);
void pvr_codec_u32(struct pvr_codec *codec, const char *field, uint32_t *value);
void pvr_codec_u64(struct pvr_codec *codec, const char *field, uint64_t *value);
void pvr_codec_bool(struct pvr_codec *codec, const char *field, bool *value);
void pvr_codec_bytes(struct pvr_codec *codec, const char *field, void *bytes, size_t size);
/* A number of 1 to 10 bytes. */
void pvr_codec_varint(struct pvr_codec *codec, const char *field, uint64_t *value);
/* The same, at most @max. */
void pvr_codec_u8_max(struct pvr_codec *codec, const char *field, uint8_t *value, uint8_t max);
void pvr_codec_u32_max(struct pvr_codec *codec, const char *field, uint32_t *value, uint32_t max);
void pvr_codec_u64_max(struct pvr_codec *codec, const char *field, uint64_t *value, uint64_t max);

/* An address in guest RAM. Reading: *page is a page of RAM, writable if @write; or NULL for none. */
void pvr_codec_page(struct pvr_codec *codec, const char *field, void **page, bool write);
/* A time in ns, or 0 for none, relative to the time of the stop. */
void pvr_codec_time(struct pvr_codec *codec, const char *field, uint64_t *time);
/* A timer, which exists: whether it is set, and its deadline. */
void pvr_codec_timer(struct pvr_codec *codec, const char *field, struct pvr_timer *timer);

/*
 * DOC: pages
 *
 * Pages are runs: absent pages before the run, the difference of its guest page to the end of the
 * last run, its number of pages. They are never read again from the guest's page directory, whose
 * pages the guest may have used for other things since.
 */

/*
 * All pages of a ring, in this record. @count: the number that it must have. Broken pages have
 * no runs, and no address that may be used.
 */
void pvr_codec_ring_pages(struct pvr_codec *codec, struct pvr_pages *pages, uint32_t count);

#endif /* PVR_STATE_H */
