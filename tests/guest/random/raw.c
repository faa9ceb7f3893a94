// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Commands that no library sends. Before a command of libibverbs goes to the kernel, a copy with
 * some other bits goes there; both forms of commands, write(2) and ioctl(2), pass through here.
 * Commands of random numbers and attributes, too.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>

#include "random.h"

#define COMMAND_MAX 512
#define ATTRS_MAX 24
#define DATA_MAX 256
#define EXTENDED IB_USER_VERBS_CMD_FLAG_EXTENDED
/* Objects that a process has without knowing it are freed with its context. */
#define SUCCESSES_MAX 300

int raw_fd = -1;

static uint32_t successes;

/* Where the kernel writes the answers. */
static _Thread_local uint8_t answers[ATTRS_MAX][4096];
static _Thread_local uint8_t data[ATTRS_MAX][DATA_MAX];

static bool is_enabled(int fd)
{
	return me && fd == raw_fd && __atomic_load_n(&successes, __ATOMIC_RELAXED) < SUCCESSES_MAX;
}

static void note(enum verb verb, long result)
{
	if (count(verb, result < 0))
		__atomic_add_fetch(&successes, 1, __ATOMIC_RELAXED);
}

static void flip(struct chance *chance, void *bytes, size_t size)
{
	uint32_t word;

	if (size < 4 || one_in(chance, 3)) {
		if (size)
			((uint8_t *)bytes)[below(chance, size)] ^= 1 << below(chance, 8);
		return;
	}
	word = odd_number(chance);
	memcpy((uint8_t *)bytes + below(chance, size / 4) * 4, &word, 4);
}

/* ------------------------------------------------------------------------------ write(2) */

/* Give the command an answer of its own, mostly. Its address follows the header in both forms. */
static void set_answer(struct chance *chance, uint8_t *command, size_t size)
{
	uint64_t answer = (uintptr_t)answers[0];
	const size_t at = sizeof(struct ib_uverbs_cmd_hdr);

	if (one_in(chance, 20))
		answer = some_address(chance);
	if (size >= at + 8)
		memcpy(command + at, &answer, 8);
}

static void mutate_write(const void *bytes, size_t size)
{
	struct chance *chance = &me->chance;
	uint8_t command[COMMAND_MAX];

	if (size > sizeof(command))
		return;
	memcpy(command, bytes, size);
	for (uint32_t i = 1 + below(chance, 3); i; i--)
		flip(chance, command + (one_in(chance, 6) ? 0 : 8), size - 8);
	set_answer(chance, command, size);
	note(VERB_raw_write, syscall(SYS_write, raw_fd, command, size));
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (is_enabled(fd) && size >= 8 && one_in(&me->chance, 6))
		mutate_write(bytes, size);
	return syscall(SYS_write, fd, bytes, size);
}

/* Handles are small numbers. */
static void random_write(struct chance *chance)
{
	uint32_t words[COMMAND_MAX / 4];
	uint32_t num = 4 + below(chance, 40);
	struct ib_uverbs_cmd_hdr header = {
		.command = below(chance, 60) | (one_in(chance, 3) ? EXTENDED : 0),
		.in_words = num,
		.out_words = one_in(chance, 6) ? odd_number(chance) : 32,
	};
	uint64_t address;

	for (uint32_t i = 0; i < num; i++)
		words[i] = one_in(chance, 6)   ? odd_number(chance)
			   : one_in(chance, 2) ? 0
					       : below(chance, 24);
	if (one_in(chance, 2)) {
		address = some_address(chance);
		memcpy(&words[2 * below(chance, num / 2)], &address, 8);
	}
	if (header.command & EXTENDED)
		header.in_words = (num - 6) / 2;
	memcpy(words, &header, sizeof(header));
	set_answer(chance, (uint8_t *)words, num * 4);
	note(VERB_raw_write, syscall(SYS_write, raw_fd, words, num * 4));
}

/* ------------------------------------------------------------------------------ ioctl(2) */

struct command {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attrs[ATTRS_MAX];
};

/*
 * Not a second context of the file: Linux 6.1 frees it without rdma_restrack_put(), so the kernel never
 * frees the task. That is a fault of ib_core with any device, and shows as a leak.
 */
static void send_ioctl(const struct command *command)
{
	if (command->header.object_id == UVERBS_OBJECT_DEVICE &&
	    command->header.method_id == UVERBS_METHOD_GET_CONTEXT)
		return;
	note(VERB_raw_ioctl, syscall(SYS_ioctl, raw_fd, RDMA_VERBS_IOCTL, command));
}

/* Data that the kernel may write go to a copy. */
static void copy_data(struct ib_uverbs_attr *attr, int i)
{
	const void *from = (const void *)(uintptr_t)attr->data;

	if (attr->len <= 8 || !from)
		return;
	if (attr->len > DATA_MAX) {
		attr->data = (uintptr_t)answers[i];
		return;
	}
	memcpy(data[i], from, attr->len);
	attr->data = (uintptr_t)data[i];
}

static void mutate_attr(struct chance *chance, struct ib_uverbs_attr *attr)
{
	switch (below(chance, 6)) {
	case 0:
		attr->attr_id ^= 1 << below(chance, 14);
		break;
	case 1:
		attr->len = odd_number(chance);
		break;
	case 2:
		attr->flags ^= 1;
		break;
	case 3:
		attr->attr_data.enum_data.elem_id = draw(chance);
		break;
	default:
		if (attr->len > 8)
			flip(chance, (void *)(uintptr_t)attr->data, attr->len);
		else
			attr->data = one_in(chance, 2) ? odd_number(chance) : below(chance, 24);
	}
}

static void mutate_ioctl(const struct ib_uverbs_ioctl_hdr *header)
{
	struct chance *chance = &me->chance;
	struct command command;
	int num = header->num_attrs;

	if (num > ATTRS_MAX)
		return;
	memcpy(&command, header, sizeof(*header) + num * sizeof(command.attrs[0]));
	for (int i = 0; i < num; i++)
		copy_data(&command.attrs[i], i);
	if (one_in(chance, 6))
		flip(chance, &command.header, sizeof(command.header));
	else if (num)
		mutate_attr(chance, &command.attrs[below(chance, num)]);
	/* With a wrong length the kernel may read behind the data, but not write there. */
	for (int i = 0; i < num; i++)
		if (command.attrs[i].len > DATA_MAX)
			command.attrs[i].data = (uintptr_t)answers[i];
	send_ioctl(&command);
}

int ioctl(int fd, unsigned long request, ...)
{
	__builtin_va_list args;
	void *argument;

	__builtin_va_start(args, request);
	argument = __builtin_va_arg(args, void *);
	__builtin_va_end(args);
	if (is_enabled(fd) && request == RDMA_VERBS_IOCTL && one_in(&me->chance, 6))
		mutate_ioctl(argument);
	return syscall(SYS_ioctl, fd, request, argument);
}

static void random_ioctl(struct chance *chance)
{
	struct command command = {
		.header = { .object_id = below(chance, 20) | (one_in(chance, 8) ? 0x1000 : 0),
			    .method_id = below(chance, 10) | (one_in(chance, 8) ? 0x1000 : 0),
			    .num_attrs = below(chance, 8),
			    .driver_id = one_in(chance, 8) ? draw(chance)
							   : RDMA_DRIVER_VMW_PVRDMA },
	};

	command.header.length =
		sizeof(command.header) + command.header.num_attrs * sizeof(command.attrs[0]);
	for (int i = 0; i < command.header.num_attrs; i++) {
		struct ib_uverbs_attr *attr = &command.attrs[i];

		attr->attr_id = below(chance, 16) | (one_in(chance, 4) ? 0x1000 : 0);
		attr->len = one_in(chance, 3) ? 0 : 4 * below(chance, 20);
		attr->flags = below(chance, 2);
		attr->data = attr->len > 8 ? (uintptr_t)answers[i] : below(chance, 24);
		if (one_in(chance, 10))
			attr->data = some_address(chance);
	}
	send_ioctl(&command);
}

void deed_raw(struct worker *worker)
{
	if (!is_enabled(raw_fd))
		return;
	if (one_in(&worker->chance, 2))
		random_write(&worker->chance);
	else
		random_ioctl(&worker->chance);
}
