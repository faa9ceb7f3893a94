/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Hints for the compiler: functions to inline, memory that a guest can change. */
#ifndef PVR_COMPILER_H
#define PVR_COMPILER_H

#include <string.h>

/* For functions whose call costs much of their body, in instructions of callgrind. */
#define pvr_always_inline inline __attribute__((always_inline))

/* For rare cases of a message: inlined, they would take registers of the common case. */
#define pvr_noinline __attribute__((noinline))

#ifdef PVR_FUZZ
/* Called after each such copy. A fuzzer defines it, and changes the memory there. */
void pvr_fuzz_copied(const void *from_shm, size_t size) __attribute__((weak));
#endif

/*
 * For a large local variable of the data path: the build fills others with zeros
 * (-ftrivial-auto-var-init), which costs more instructions than the rest of a message.
 * Its functions write each member before they read it. Put it after the variable's name.
 */
#if defined(__has_attribute) && __has_attribute(uninitialized)
#define PVR_UNINITIALIZED __attribute__((uninitialized))
#else
#define PVR_UNINITIALIZED
#endif

/*
 * Keep a value in a register: else the compiler computes it again at each use, or mixes it with the
 * next expression, which takes more instructions. For functions of each message.
 */
#define pvr_keep(value) __asm__("" : "+r"(value))

/*
 * Leaves out the stack protector of a function that runs once per message, where it costs 2
 * to 3 % of the message rate. Only for functions whose arrays are written within checked
 * bounds.
 */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define PVR_NO_STACK_PROTECTOR __attribute__((no_stack_protector))
#endif
#endif
#ifndef PVR_NO_STACK_PROTECTOR
#define PVR_NO_STACK_PROTECTOR
#endif

/*
 * Copy from guest memory, once. The barrier keeps the compiler from reading guest memory
 * again at a use of the copy, so the checked values are the used values.
 */
static inline void pvr_copy_once(void *to, const void *from_shm, size_t size)
{
	memcpy(to, from_shm, size);
	__asm__ volatile("" : : : "memory");
#ifdef PVR_FUZZ
	if (pvr_fuzz_copied)
		pvr_fuzz_copied(from_shm, size);
#endif
}

#endif /* PVR_COMPILER_H */
