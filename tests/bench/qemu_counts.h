/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a VM's CPUs have executed since QEMU started: the file that the plugin qemu_counts.c writes. */
#ifndef PVR_QEMU_COUNTS_H
#define PVR_QEMU_COUNTS_H

#include <stdint.h>

/* One vCPU. The plugin adds to these numbers while others read them; none ever falls. */
struct qemu_counts {
	uint64_t instructions;
	uint64_t user_instructions; /* those of them that are not the kernel's */
	uint64_t accesses; /* of device memory, other than the local APIC's; each leaves the guest under KVM */
	uint64_t interrupts;
	uint64_t halts; /* no work: the vCPU waits for an interrupt */
};

/* The file: an array of so many, one per vCPU, in the byte order of the host. */
#define QEMU_COUNTS_CPUS 128

#endif
