// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Records of an adapter's state: fields, errors, the CRC. */
#include "core/state.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"

#define FIRST_ROOM 4096u

const char *pvr_state_type_name(uint32_t type)
{
	static const char *const names[PVR_STATE_TYPES] = {
		[PVR_STATE_HEAD] = "HEAD",
		[PVR_STATE_REGS] = "REGS",
		[PVR_STATE_RING] = "RING",
		[PVR_STATE_UC] = "UC",
		[PVR_STATE_PD] = "PD",
		[PVR_STATE_XRCD] = "XRCD",
		[PVR_STATE_CQ] = "CQ",
		[PVR_STATE_SRQ] = "SRQ",
		[PVR_STATE_MR] = "MR",
		[PVR_STATE_MR_PAGES] = "MR_PAGES",
		[PVR_STATE_QP] = "QP",
		[PVR_STATE_MW_BIND] = "MW_BIND",
		[PVR_STATE_RESPONDER] = "RESPONDER",
		[PVR_STATE_IN_FLIGHT] = "IN_FLIGHT",
		[PVR_STATE_MCAST] = "MCAST",
		[PVR_STATE_GID] = "GID",
		[PVR_STATE_EQE] = "EQE",
		[PVR_STATE_CQ_EVENT] = "CQ_EVENT",
		[PVR_STATE_END] = "END",
	};

	return type < PVR_STATE_TYPES && names[type] ? names[type] : "unknown";
}

void pvr_codec_fault(struct pvr_codec *codec, int err, const char *fmt, ...)
{
	int used;
	va_list ap;

	if (codec->err)
		return;
	codec->err = err;
	codec->left = 0;
	used = snprintf(codec->why, sizeof(codec->why), "record %" PRIu32 " (%s): ", codec->records,
			pvr_state_type_name(codec->type));
	va_start(ap, fmt);
	vsnprintf(codec->why + used, sizeof(codec->why) - used, fmt, ap);
	va_end(ap);
}

/* ------------------------------------------------------------------- records */

static bool make_room(struct pvr_codec *codec, size_t bytes)
{
	size_t room = codec->room ? codec->room : FIRST_ROOM;
	uint8_t *out;

	if (codec->err)
		return false;
	if (codec->size + bytes <= codec->room)
		return true;
	while (room < codec->size + bytes)
		room *= 2;
	out = realloc(codec->out, room);
	if (!out) {
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
		return false;
	}
	codec->out = out;
	codec->room = room;
	return true;
}

static void put(struct pvr_codec *codec, const void *bytes, size_t size)
{
	if (!make_room(codec, size))
		return;
	memcpy(codec->out + codec->size, bytes, size);
	codec->size += size;
}

void pvr_codec_begin(struct pvr_codec *codec, enum pvr_state_type type)
{
	static const uint8_t header[PVR_STATE_HEADER];

	codec->type = type;
	codec->begin = codec->size;
	put(codec, header, sizeof(header));
}

void pvr_codec_end(struct pvr_codec *codec)
{
	uint8_t *header = codec->out + codec->begin;
	uint32_t bytes = codec->size - codec->begin;
	uint16_t type = htole16(codec->type);
	uint32_t size = htole32(bytes - PVR_STATE_HEADER);

	if (codec->err)
		return;
	memcpy(header, &type, sizeof(type));
	memcpy(header + 4, &size, sizeof(size));
	pvr_codec_close(codec, header, bytes);
}

void pvr_codec_exit(struct pvr_codec *codec)
{
	free(codec->out);
	codec->out = NULL;
	codec->size = 0;
	codec->room = 0;
}

size_t pvr_codec_open(struct pvr_codec *codec, const void *data, size_t size)
{
	const uint8_t *header = data;
	uint16_t type, flags;
	uint32_t bytes;

	if (size < PVR_STATE_HEADER) {
		pvr_codec_fault(codec, -EINVAL, "the state is truncated: %zu bytes of a header",
				size);
		return 0;
	}
	memcpy(&type, header, sizeof(type));
	memcpy(&flags, header + 2, sizeof(flags));
	memcpy(&bytes, header + 4, sizeof(bytes));
	codec->type = le16toh(type);
	bytes = le32toh(bytes);
	if (flags)
		pvr_codec_fault(codec, -EINVAL, "flags 0x%x, expected 0", le16toh(flags));
	else if (bytes > PVR_STATE_RECORD_MAX)
		pvr_codec_fault(codec, -EINVAL, "size %" PRIu32 ", expected at most %u", bytes,
				PVR_STATE_RECORD_MAX);
	else if (bytes > size - PVR_STATE_HEADER)
		pvr_codec_fault(codec, -EINVAL,
				"the state is truncated: %zu of %" PRIu32 " bytes of a record",
				size - PVR_STATE_HEADER, bytes);
	if (codec->err)
		return 0;
	codec->in = header + PVR_STATE_HEADER;
	codec->left = bytes;
	return PVR_STATE_HEADER + (size_t)bytes;
}

/* CRC-32C: it finds damage, not forgery. */
void pvr_codec_close(struct pvr_codec *codec, const void *data, size_t bytes)
{
	/* The library's function takes no const pointer, and does not write. */
	codec->crc = crc32_iscsi((unsigned char *)(uintptr_t)data, (int)bytes, codec->crc);
	codec->records++;
}

/* -------------------------------------------------------------------- fields */

static bool get(struct pvr_codec *codec, const char *field, void *bytes, size_t size)
{
	if (codec->err || size > codec->left) {
		memset(bytes, 0, size);
		pvr_codec_fault(codec, -EINVAL, "%s is missing: the record is too short", field);
		return false;
	}
	memcpy(bytes, codec->in, size);
	codec->in += size;
	codec->left -= size;
	return true;
}

void pvr_codec_bytes(struct pvr_codec *codec, const char *field, void *bytes, size_t size)
{
	if (codec->loads)
		get(codec, field, bytes, size);
	else
		put(codec, bytes, size);
}

/* The host is little-endian, see meson.build. */
void pvr_codec_u8(struct pvr_codec *codec, const char *field, uint8_t *value)
{
	pvr_codec_bytes(codec, field, value, sizeof(*value));
}

void pvr_codec_u16(struct pvr_codec *codec, const char *field, uint16_t *value)
{
	pvr_codec_bytes(codec, field, value, sizeof(*value));
}

void pvr_codec_u32(struct pvr_codec *codec, const char *field, uint32_t *value)
{
	pvr_codec_bytes(codec, field, value, sizeof(*value));
}

void pvr_codec_u64(struct pvr_codec *codec, const char *field, uint64_t *value)
{
	pvr_codec_bytes(codec, field, value, sizeof(*value));
}

static void check_max(struct pvr_codec *codec, const char *field, uint64_t value, uint64_t max)
{
	if (value > max)
		pvr_codec_fault(codec, -EINVAL, "%s is %" PRIu64 ", expected at most %" PRIu64,
				field, value, max);
}

void pvr_codec_u8_max(struct pvr_codec *codec, const char *field, uint8_t *value, uint8_t max)
{
	pvr_codec_u8(codec, field, value);
	check_max(codec, field, *value, max);
	if (codec->err && codec->loads)
		*value = 0;
}

void pvr_codec_u32_max(struct pvr_codec *codec, const char *field, uint32_t *value, uint32_t max)
{
	pvr_codec_u32(codec, field, value);
	check_max(codec, field, *value, max);
	if (codec->err && codec->loads)
		*value = 0;
}

void pvr_codec_u64_max(struct pvr_codec *codec, const char *field, uint64_t *value, uint64_t max)
{
	pvr_codec_u64(codec, field, value);
	check_max(codec, field, *value, max);
	if (codec->err && codec->loads)
		*value = 0;
}

void pvr_codec_bool(struct pvr_codec *codec, const char *field, bool *value)
{
	uint8_t byte = codec->loads ? 0 : *value;

	pvr_codec_u8_max(codec, field, &byte, 1);
	*value = byte;
}

static uint64_t get_varint(struct pvr_codec *codec, const char *field)
{
	uint64_t value = 0;
	unsigned int shift;
	uint8_t byte;

	for (shift = 0; shift < 64; shift += 7) {
		if (!get(codec, field, &byte, 1))
			return 0;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	pvr_codec_fault(codec, -EINVAL, "%s has more than 10 bytes", field);
	return 0;
}

void pvr_codec_varint(struct pvr_codec *codec, const char *field, uint64_t *value)
{
	uint64_t left = *value;
	uint8_t byte;

	if (codec->loads) {
		*value = get_varint(codec, field);
		return;
	}
	do {
		byte = (left & 0x7f) | (left > 0x7f ? 0x80 : 0);
		put(codec, &byte, 1);
		left >>= 7;
	} while (left);
}

/* ----------------------------------------------------------- addresses and times */

#define NO_PAGE UINT64_MAX

void pvr_codec_page(struct pvr_codec *codec, const char *field, void **page, bool write)
{
	struct pvr_ram *ram = &codec->adapter->ram;
	uint64_t gpa = NO_PAGE, contig;

	if (!codec->loads && *page && !pvr_ram_gpa(ram, *page, &gpa, &contig))
		pvr_codec_fault(codec, -EFAULT, "%s lies in no RAM", field);
	pvr_codec_u64(codec, field, &gpa);
	if (!codec->loads)
		return;
	*page = codec->err || gpa == NO_PAGE ? NULL : pvr_ram_page(ram, gpa, write);
	if (gpa != NO_PAGE && !*page)
		pvr_codec_fault(codec, -EFAULT, "%s 0x%" PRIx64 " is no page of %sRAM", field, gpa,
				write ? "writable " : "");
}

/* One year: a sum of times does not wrap. */
#define TIME_MAX (1ll << 55)

/* The difference, plus a bias; 0: no time. */
void pvr_codec_time(struct pvr_codec *codec, const char *field, uint64_t *time)
{
	const uint64_t zero = codec->adapter->stopped_at;
	int64_t difference = (int64_t)(*time - zero);
	uint64_t value = 0;

	if (!codec->loads && *time) {
		if (difference > TIME_MAX)
			difference = TIME_MAX;
		if (difference < -TIME_MAX)
			difference = -TIME_MAX;
		value = (uint64_t)(difference + TIME_MAX) + 1;
	}
	pvr_codec_u64_max(codec, field, &value, 2 * (uint64_t)TIME_MAX + 1);
	if (codec->loads)
		*time = value ? zero + (value - 1 - TIME_MAX) : 0;
}

void pvr_codec_timer(struct pvr_codec *codec, const char *field, struct pvr_timer *timer)
{
	struct pvr_timers *timers = &codec->adapter->timers;
	uint64_t deadline = pvr_timer_is_set(timer) ? pvr_timer_deadline(timers, timer) : 0;

	pvr_codec_time(codec, field, &deadline);
	if (codec->loads && deadline)
		pvr_timer_set(timers, timer, deadline);
}
