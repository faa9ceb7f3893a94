// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Persistent memory: stores that are in the caches of the CPUs. */
#include "core/persist.h"

#include <stdint.h>

#ifdef __x86_64__

#include <cpuid.h>

#define CACHE_LINE 64
#define CPUID_EXTENDED 7u /* EBX has these bits */
#define HAS_CLFLUSHOPT (1u << 23)
#define HAS_CLWB (1u << 24)

/* The last two evict the lines. */
static void write_back(const volatile char *line)
{
	__asm__ volatile("clwb %0" : : "m"(*line) : "memory");
}

static void flush_unordered(const volatile char *line)
{
	__asm__ volatile("clflushopt %0" : : "m"(*line) : "memory");
}

static void flush(const volatile char *line)
{
	__asm__ volatile("clflush %0" : : "m"(*line) : "memory");
}

static void (*select_instruction(void))(const volatile char *line)
{
	unsigned int eax, ebx = 0, ecx, edx;

	__get_cpuid_count(CPUID_EXTENDED, 0, &eax, &ebx, &ecx, &edx);
	if (ebx & HAS_CLWB)
		return write_back;
	return ebx & HAS_CLFLUSHOPT ? flush_unordered : flush;
}

bool pvr_can_persist(void)
{
	return true;
}

void pvr_persist(const void *start, size_t len)
{
	void (*const instruction)(const volatile char *line) = select_instruction();
	const volatile char *line = (const char *)((uintptr_t)start & ~(uintptr_t)(CACHE_LINE - 1));

	for (; line < (const char *)start + len; line += CACHE_LINE)
		instruction(line);
}

void pvr_persist_end(void)
{
	__asm__ volatile("sfence" : : : "memory");
}

#else /* Other CPUs have other instructions. */

bool pvr_can_persist(void)
{
	return false;
}

void pvr_persist(const void *start, size_t len)
{
}

void pvr_persist_end(void)
{
}

#endif
