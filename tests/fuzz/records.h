/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The input of a fuzzer as a program: a head, then records of the same size, one per
 * operation. records.c has mutators that move, copy and change whole records.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define RECORDS_HEAD 8
#define RECORD_SIZE 32

/* The bytes of a record, as a source of choices. Behind its end it is a hash of them. */
struct record {
	const uint8_t *bytes;
	size_t at;
	uint64_t hash;
};

void record_open(struct record *record, const uint8_t bytes[RECORD_SIZE]);
/* Two bytes; 0 to 65535. */
uint32_t record_draw(void *record);
uint8_t record_byte(struct record *record);
uint32_t record_word(struct record *record);
/* Below @n. */
uint32_t record_below(struct record *record, uint32_t n);

#endif /* RECORDS_H */
