// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Choice and removal of the RDMA NIC. libibverbs, the loop and sysfs are fakes of this test. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test.h"
#include "net/verbs_nic.h"

#define NICS 2
#define GIDS 4

struct fake_nic {
	struct ibv_device device;
	struct ibv_context context;
	struct ibv_gid_entry gid[GIDS];
	unsigned int gids;
	enum ibv_port_state state;
	struct ibv_async_event event;
	int answers, asks; /* below 0: ibv_query_device() fails */
	bool has_event, open;
	struct pvr_source *source;
};

static struct fake_nic fake[NICS];
static unsigned int num_nics;
static bool has_sysfs;
static struct pvr_loop_timer *armed;
static char changed[100];
static struct pvr_verbs_nics *nics;

/* -------------------------------------------------- what the real ones would be */

int access(const char *path, int mode)
{
	assert_string_equal(path, "/sys/class/infiniband");
	return has_sysfs ? 0 : -1;
}

static struct fake_nic *fake_of(const struct ibv_context *context)
{
	return (struct fake_nic *)((char *)context - offsetof(struct fake_nic, context));
}

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(NICS + 1, sizeof(*list));

	for (unsigned int i = 0; i < num_nics; i++)
		list[i] = &fake[i].device;
	*num = (int)num_nics;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_nic *nic =
		(struct fake_nic *)((char *)device - offsetof(struct fake_nic, device));

	assert_false(nic->open);
	nic->open = true;
	nic->context.device = device;
	nic->context.async_fd = eventfd(0, 0);
	return &nic->context;
}

int ibv_close_device(struct ibv_context *context)
{
	assert_true(fake_of(context)->open);
	fake_of(context)->open = false;
	return close(context->async_fd);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct fake_nic *nic = fake_of(context);

	memset(attr, 0, sizeof(*attr));
	attr->max_qp_rd_atom = nic->answers;
	attr->max_qp_init_rd_atom = nic->asks;
	return nic->answers < 0 ? EIO : 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_nic *nic = fake_of(context);

	if (!nic->has_event)
		return -1;
	nic->has_event = false;
	*event = nic->event;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *full = (struct ibv_port_attr *)attr;

	full->state = fake_of(context)->state;
	full->active_mtu = IBV_MTU_1024;
	full->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	const struct fake_nic *nic = fake_of(context);

	assert_int_equal(size, sizeof(*entries));
	assert_true(max >= nic->gids);
	memcpy(entries, nic->gid, nic->gids * sizeof(*entries));
	return nic->gids;
}

int pvr_loop_add(struct pvr_loop *loop, struct pvr_source *source, uint32_t events)
{
	for (unsigned int i = 0; i < NICS; i++) {
		if (fake[i].open && fake[i].context.async_fd == source->fd)
			fake[i].source = source;
	}
	return 0;
}

void pvr_loop_remove(struct pvr_source *source)
{
	for (unsigned int i = 0; i < NICS; i++) {
		if (fake[i].source == source)
			fake[i].source = NULL;
	}
}

void pvr_loop_timer_arm(struct pvr_loop *loop, struct pvr_loop_timer *timer, uint64_t ns)
{
	assert_true(ns > 0);
	armed = timer;
}

void pvr_loop_timer_disarm(struct pvr_loop_timer *timer)
{
	armed = NULL;
}

/* ------------------------------------------------------------------ what tests call */

static void has_changed(void *opaque, const char *what)
{
	snprintf(changed, sizeof(changed), "%s", what);
}

static const struct pvr_verbs_nics_ops ops = { .changed = has_changed };

static void add_gid(unsigned int nic, const char *address, uint32_t type)
{
	struct ibv_gid_entry *entry = &fake[nic].gid[fake[nic].gids];
	struct pvr_address parsed;
	struct pvr_error err;

	*entry = (struct ibv_gid_entry){
		.gid_index = fake[nic].gids++,
		.port_num = 1,
		.gid_type = type,
	};
	assert_true(pvr_address_parse(&parsed, address, &err));
	if (parsed.any.sa_family == AF_INET6) {
		memcpy(entry->gid.raw, &parsed.v6.sin6_addr, 16);
		return;
	}
	entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
	memcpy(entry->gid.raw + 12, &parsed.v4.sin_addr, 4);
}

static void open_nics(const char *name)
{
	struct pvr_error err;

	nics = pvr_verbs_nics_create(name, NULL, &ops, NULL, &err);
	assert_non_null(nics);
}

static struct pvr_verbs_place found(const char *local)
{
	struct pvr_verbs_place place;
	struct pvr_address address;
	struct pvr_error err;

	assert_true(pvr_address_parse(&address, local, &err));
	assert_true(pvr_verbs_find_place(nics, &address, &place, &err));
	return place;
}

static void not_found(const char *local, const char *why)
{
	struct pvr_verbs_place place;
	struct pvr_address address;
	struct pvr_error err;

	assert_true(pvr_address_parse(&address, local, &err));
	assert_false(pvr_verbs_find_place(nics, &address, &place, &err));
	assert_string_equal(err.text, why);
}

static void happens(unsigned int nic, enum ibv_event_type type)
{
	fake[nic].event = (struct ibv_async_event){ .event_type = type, .element.port_num = 1 };
	fake[nic].has_event = true;
	changed[0] = 0;
	assert_non_null(fake[nic].source);
	fake[nic].source->ready(fake[nic].source, 1);
}

static int set_up(void **state)
{
	memset(fake, 0, sizeof(fake));
	strcpy(fake[0].device.name, "nic0");
	strcpy(fake[1].device.name, "nic1");
	fake[0].state = fake[1].state = IBV_PORT_ACTIVE;
	num_nics = NICS;
	has_sysfs = true;
	armed = NULL;
	changed[0] = 0;
	add_gid(0, "fe80::1", IBV_GID_TYPE_ROCE_V2);
	add_gid(0, "192.0.2.1", IBV_GID_TYPE_ROCE_V1);
	add_gid(0, "192.0.2.1", IBV_GID_TYPE_ROCE_V2);
	add_gid(1, "fe80::2", IBV_GID_TYPE_ROCE_V2);
	add_gid(1, "2001:db8::2", IBV_GID_TYPE_ROCE_V2);
	add_gid(1, "198.51.100.2", IBV_GID_TYPE_ROCE_V2);
	return 0;
}

static int tear_down(void **state)
{
	pvr_verbs_nics_destroy(nics);
	nics = NULL;
	assert_false(fake[0].open || fake[1].open);
	return 0;
}

/* ---------------------------------------------------------------------------- tests */

TEST_SETUP(set_up, tear_down, test_auto_goes_by_the_address)
{
	struct pvr_verbs_place place;

	open_nics("auto");
	place = found("192.0.2.1:7471");
	assert_ptr_equal(place.nic->context, &fake[0].context);
	assert_int_equal(place.gid_index, 2);
	assert_int_equal(place.mtu, IBV_MTU_1024);
	assert_int_equal(place.lid, 0);
	place = found("[2001:db8::2]:7471");
	assert_ptr_equal(place.nic->context, &fake[1].context);
	assert_int_equal(place.gid_index, 1);
	not_found("203.0.113.1", "no RDMA NIC of this host has the address of 203.0.113.1:7471");
}

TEST_SETUP(set_up, tear_down, test_auto_takes_v1_if_there_is_nothing_else)
{
	fake[0].gids = 2;
	open_nics("auto");
	assert_int_equal(found("192.0.2.1").gid_index, 1);
}

/* For any TCP address; of the device's own addresses the one of the largest scope. */
TEST_SETUP(set_up, tear_down, test_name_means_that_device)
{
	struct pvr_verbs_place place;

	open_nics("nic1");
	assert_false(fake[0].open);
	place = found("192.0.2.1");
	assert_ptr_equal(place.nic->context, &fake[1].context);
	assert_int_equal(place.gid_index, 2);
	assert_int_equal(found("2001:db8::2").gid_index, 1);
}

TEST_SETUP(set_up, tear_down, test_none_at_first)
{
	has_sysfs = false;
	open_nics("auto");
	assert_false(pvr_verbs_nics_any(nics));
	not_found("192.0.2.1", "this host has no RDMA NIC");
	assert_non_null(armed);
	armed->expired(armed);
	assert_string_equal(changed, "");
	has_sysfs = true;
	armed->expired(armed);
	assert_string_equal(changed, "there is an RDMA NIC");
	found("192.0.2.1");
}

TEST_SETUP(set_up, tear_down, test_name_of_none)
{
	open_nics("nic7");
	not_found("192.0.2.1", "this host has no RDMA NIC nic7");
	assert_non_null(armed);
}

TEST_SETUP(set_up, tear_down, test_port_goes_down_and_comes_up)
{
	open_nics("auto");
	happens(0, IBV_EVENT_PORT_ERR);
	assert_string_equal(changed, "a port of the RDMA NIC is down");
	not_found("192.0.2.1", "the port of this host's RDMA NIC is down");
	found("198.51.100.2");
	happens(0, IBV_EVENT_PORT_ACTIVE);
	assert_string_equal(changed, "a port of the RDMA NIC is up");
	found("192.0.2.1");
}

TEST_SETUP(set_up, tear_down, test_port_that_was_never_up)
{
	fake[0].state = IBV_PORT_DOWN;
	open_nics("auto");
	not_found("192.0.2.1", "the port of this host's RDMA NIC is down");
}

/* As many RDMA READs as the NIC can, up to 16. */
TEST_SETUP(set_up, tear_down, test_reads_at_once)
{
	struct pvr_verbs_place place;

	fake[0].answers = 128;
	fake[0].asks = 3;
	fake[1].answers = -1;
	fake[1].asks = 5;
	open_nics("auto");
	place = found("192.0.2.1");
	assert_int_equal(place.nic->answers, 16);
	assert_int_equal(place.nic->asks, 3);
	place = found("198.51.100.2");
	assert_int_equal(place.nic->answers, 0);
	assert_int_equal(place.nic->asks, 0);
}

TEST_SETUP(set_up, tear_down, test_event_without_a_port_changes_nothing)
{
	open_nics("auto");
	happens(0, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_string_equal(changed, "");
}

/* The NIC stays open while a queue pair uses it, and is searched for again. */
TEST_SETUP(set_up, tear_down, test_nic_goes)
{
	struct pvr_verbs_place place;

	num_nics = 1;
	open_nics("auto");
	place = found("192.0.2.1");
	pvr_verbs_nic_hold(place.nic);
	happens(0, IBV_EVENT_DEVICE_FATAL);
	assert_string_equal(changed, "the RDMA NIC has gone");
	assert_false(pvr_verbs_nics_any(nics));
	not_found("192.0.2.1", "this host has no RDMA NIC");
	assert_true(fake[0].open);
	assert_null(armed);
	pvr_verbs_nic_put(place.nic);
	assert_false(fake[0].open);
	assert_non_null(armed);
}
