// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A plugin of QEMU's TCG that counts what each vCPU executes.
 *
 *	qemu-system-x86_64 -plugin qemu_counts.so,counts=FILE
 *
 * FILE is made anew, see qemu_counts.h. The counts are those of instructions that were begun:
 * of a block that an exception ends, the rest counts, too.
 *
 * The interface below is that of version 7, of QEMU 11.1 (docs/devel/tcg-plugins.rst there).
 * Its header is in no package of Debian.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qemu_counts.h"

#define EXPORT __attribute__((visibility("default")))
#define APIC_PAGE 0xfee00000ull
#define PAGE_MASK (~0xfffull)

enum { CB_NO_REGS = 0 };
enum { MEM_RW = 3 };
enum { DISCON_INTERRUPT = 1 };

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef uint64_t plugin_id;
typedef void (*vcpu_cb)(unsigned int vcpu, void *opaque);
typedef void (*trans_cb)(struct qemu_plugin_tb *block, void *opaque);
typedef void (*mem_cb)(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *opaque);
typedef void (*discon_cb)(unsigned int vcpu, int type, uint64_t from, uint64_t to, void *opaque);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, trans_cb cb, void *opaque);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, vcpu_cb cb, void *opaque);
void qemu_plugin_register_vcpu_discon_cb(plugin_id id, int type, discon_cb cb, void *opaque);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, vcpu_cb cb, int flags,
					  void *opaque);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_cb cb, int flags, int rw,
				      void *opaque);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

EXPORT int qemu_plugin_version = 7;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

/* QEMU runs each vCPU on a thread of its own, which alone changes its counts. */
static struct qemu_counts *counts;

static void add(uint64_t *count, uint64_t n)
{
	__atomic_store_n(count, *count + n, __ATOMIC_RELAXED);
}

static struct qemu_counts *of(unsigned int vcpu)
{
	return &counts[vcpu % QEMU_COUNTS_CPUS];
}

static void block_begins(unsigned int vcpu, void *instructions)
{
	add(&of(vcpu)->instructions, (uintptr_t)instructions);
}

static void user_block_begins(unsigned int vcpu, void *instructions)
{
	block_begins(vcpu, instructions);
	add(&of(vcpu)->user_instructions, (uintptr_t)instructions);
}

static void memory_is_accessed(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *opaque)
{
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

	(void)opaque;
	if (address && qemu_plugin_hwaddr_is_io(address) &&
	    (qemu_plugin_hwaddr_phys_addr(address) & PAGE_MASK) != APIC_PAGE)
		add(&of(vcpu)->accesses, 1);
}

static void interrupt_begins(unsigned int vcpu, int type, uint64_t from, uint64_t to, void *opaque)
{
	(void)type, (void)from, (void)to, (void)opaque;
	add(&of(vcpu)->interrupts, 1);
}

static void vcpu_halts(unsigned int vcpu, void *opaque)
{
	(void)opaque;
	add(&of(vcpu)->halts, 1);
}

static void block_is_translated(struct qemu_plugin_tb *block, void *opaque)
{
	/* The kernel has the upper half of all addresses. */
	bool is_user = !(qemu_plugin_tb_vaddr(block) >> 63);
	size_t n = qemu_plugin_tb_n_insns(block);

	(void)opaque;
	/* NOLINTBEGIN(performance-no-int-to-ptr): the number is the callback's argument */
	qemu_plugin_register_vcpu_tb_exec_cb(block, is_user ? user_block_begins : block_begins,
					     CB_NO_REGS, (void *)n);
	/* NOLINTEND(performance-no-int-to-ptr) */
	for (size_t i = 0; i < n; i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i),
						 memory_is_accessed, CB_NO_REGS, MEM_RW, NULL);
}

/* Return: the mapped file, or NULL after a message. */
static void *map_file(const char *path)
{
	size_t bytes = QEMU_COUNTS_CPUS * sizeof(*counts);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	void *mapped = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		perror(path);
	if (fd >= 0)
		close(fd);
	return mapped == MAP_FAILED ? NULL : mapped;
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "counts=", sizeof("counts=") - 1) != 0) {
		fprintf(stderr, "qemu_counts: expected one argument, counts=FILE\n");
		return -1;
	}
	counts = map_file(argv[0] + sizeof("counts=") - 1);
	if (!counts)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_is_translated, NULL);
	qemu_plugin_register_vcpu_discon_cb(id, DISCON_INTERRUPT, interrupt_begins, NULL);
	qemu_plugin_register_vcpu_idle_cb(id, vcpu_halts, NULL);
	return 0;
}
