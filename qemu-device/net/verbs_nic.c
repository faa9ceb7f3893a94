// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RDMA NICs of this host: discovery, ports, GIDs, events. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/verbs_nic.h"

/* Interval of the search for new NICs, which raise no event. */
#define LOOK_NS (5 * PVR_SEC)
#define GIDS_MAX 256
#define EVENTS_PER_TURN 64
/* A larger number does not increase the throughput. */
#define READS_MAX 16

static_assert(offsetof(struct pvr_verbs_nic, source) != 0, "nic_of() subtracts");

/* ---------------------------------------------------------------------- one NIC */

static void nic_close(struct pvr_verbs_nic *nic)
{
	pvr_loop_remove(&nic->source);
	LIST_REMOVE(nic, link);
	ibv_close_device(nic->context);
	free(nic);
}

void pvr_verbs_nic_hold(struct pvr_verbs_nic *nic)
{
	nic->users++;
}

void pvr_verbs_nic_put(struct pvr_verbs_nic *nic)
{
	struct pvr_verbs_nics *nics = nic->nics;

	nic->users--;
	if (!nic->gone || nic->users)
		return;
	nic_close(nic);
	if (!pvr_verbs_nics_any(nics))
		pvr_loop_timer_arm(nics->loop, &nics->poll_nic, LOOK_NS);
}

/* Return: text of the event; NULL: it concerns no port. */
static const char *take_event(struct pvr_verbs_nic *nic, const struct ibv_async_event *event)
{
	unsigned int port = (unsigned int)event->element.port_num;

	switch (event->event_type) {
	case IBV_EVENT_PORT_ERR:
		nic->down |= 1ull << (port & 63);
		return "a port of the RDMA NIC is down";
	case IBV_EVENT_PORT_ACTIVE:
		nic->down &= ~(1ull << (port & 63));
		return "a port of the RDMA NIC is up";
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
		return "the RDMA NIC has another address";
	case IBV_EVENT_DEVICE_FATAL:
		nic->gone = true;
		return "the RDMA NIC has gone";
	default:
		return NULL;
	}
}

static void nic_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_verbs_nic *nic =
		(struct pvr_verbs_nic *)((char *)source - offsetof(struct pvr_verbs_nic, source));
	unsigned int left = EVENTS_PER_TURN;
	struct ibv_async_event event;
	const char *what = NULL, *said;

	while (left-- && !ibv_get_async_event(nic->context, &event)) {
		said = take_event(nic, &event);
		what = said ? said : what;
		ibv_ack_async_event(&event);
	}
	if (!what)
		return;
	/* The reference keeps the NIC while changed() makes its users release it. */
	pvr_verbs_nic_hold(nic);
	nic->nics->ops->changed(nic->nics->opaque, what);
	if (nic->gone)
		pvr_loop_remove(&nic->source);
	pvr_verbs_nic_put(nic);
}

static bool has(const struct pvr_verbs_nics *nics, struct ibv_device *device)
{
	const struct pvr_verbs_nic *nic;

	LIST_FOREACH(nic, &nics->list, link) {
		if (!strcmp(ibv_get_device_name(nic->context->device), ibv_get_device_name(device)))
			return true;
	}
	return false;
}

static uint8_t reads_of(int limit)
{
	return limit < 0 ? 0 : limit < READS_MAX ? (uint8_t)limit : READS_MAX;
}

/* A NIC that reports no limit has none. */
static void find_limits(struct pvr_verbs_nic *nic)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(nic->context, &attr))
		return;
	nic->answers = reads_of(attr.max_qp_rd_atom);
	nic->asks = reads_of(attr.max_qp_init_rd_atom);
}

static void nic_open(struct pvr_verbs_nics *nics, struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct pvr_verbs_nic *nic = context ? calloc(1, sizeof(*nic)) : NULL;

	if (!nic) {
		if (context)
			ibv_close_device(context);
		return;
	}
	nic->nics = nics;
	nic->context = context;
	find_limits(nic);
	nic->source.fd = context->async_fd;
	nic->source.ready = nic_ready;
	LIST_INSERT_HEAD(&nics->list, nic, link);
	if (fcntl(context->async_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    pvr_loop_add(nics->loop, &nic->source, EPOLLIN) < 0)
		nic_close(nic);
}

/* --------------------------------------------------------------------- all NICs */

bool pvr_verbs_nics_any(const struct pvr_verbs_nics *nics)
{
	const struct pvr_verbs_nic *nic;

	LIST_FOREACH(nic, &nics->list, link) {
		if (!nic->gone)
			return true;
	}
	return false;
}

static void open_all(struct pvr_verbs_nics *nics)
{
	struct ibv_device **list;
	int num = 0, i;

	/* Without NICs, the library need not search for drivers. */
	if (access("/sys/class/infiniband", F_OK) < 0)
		return;
	list = ibv_get_device_list(&num);
	for (i = 0; list && i < num; i++) {
		if ((nics->any || !strcmp(nics->name, ibv_get_device_name(list[i]))) &&
		    !has(nics, list[i]))
			nic_open(nics, list[i]);
	}
	if (list)
		ibv_free_device_list(list);
}

static void poll_nic(struct pvr_loop_timer *timer)
{
	struct pvr_verbs_nics *nics =
		(struct pvr_verbs_nics *)((char *)timer -
					  offsetof(struct pvr_verbs_nics, poll_nic));

	open_all(nics);
	if (pvr_verbs_nics_any(nics))
		nics->ops->changed(nics->opaque, "there is an RDMA NIC");
	else
		pvr_loop_timer_arm(nics->loop, &nics->poll_nic, LOOK_NS);
}

struct pvr_verbs_nics *pvr_verbs_nics_create(const char *name, struct pvr_loop *loop,
					     const struct pvr_verbs_nics_ops *ops, void *opaque,
					     struct pvr_error *err)
{
	struct pvr_verbs_nics *nics = calloc(1, sizeof(*nics));

	if (!nics) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	LIST_INIT(&nics->list);
	snprintf(nics->name, sizeof(nics->name), "%s", name);
	nics->any = !strcmp(name, "auto");
	nics->loop = loop;
	nics->ops = ops;
	nics->opaque = opaque;
	nics->poll_nic.expired = poll_nic;
	open_all(nics);
	if (!pvr_verbs_nics_any(nics))
		pvr_loop_timer_arm(loop, &nics->poll_nic, LOOK_NS);
	return nics;
}

void pvr_verbs_nics_destroy(struct pvr_verbs_nics *nics)
{
	if (!nics)
		return;
	pvr_loop_timer_disarm(&nics->poll_nic);
	while (!LIST_EMPTY(&nics->list))
		nic_close(LIST_FIRST(&nics->list));
	free(nics);
}

/* --------------------------------------------------------------------- GIDs */

static void gid_of(const struct pvr_address *address, uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (address->any.sa_family == AF_INET6) {
		memcpy(gid, &address->v6.sin6_addr, 16);
		return;
	}
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &address->v4.sin_addr, 4);
}

static bool is_mapped(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && gid->raw[10] == 0xff && gid->raw[11] == 0xff;
}

/* Rank of a GID; 0: unusable. RoCE v1 and link-local GIDs do not cross routers. */
static unsigned int rank(const struct pvr_verbs_nics *nics, const struct ibv_gid_entry *entry,
			 const uint8_t wanted[16])
{
	bool v1 = entry->gid_type == IBV_GID_TYPE_ROCE_V1;
	bool local = entry->gid.raw[0] == 0xfe && entry->gid.raw[1] == 0x80;

	if (!memcmp(entry->gid.raw, wanted, 16))
		return v1 ? 5 : 6;
	/* A device that the operator named is used, also if TCP takes another path. */
	if (nics->any && entry->gid_type != IBV_GID_TYPE_IB)
		return 0;
	if (v1)
		return 1;
	return is_mapped(&entry->gid) ? 4 : local ? 2 : 3;
}

static bool port_is_up(const struct pvr_verbs_nic *nic, unsigned int port,
		       struct ibv_port_attr *attr)
{
	return !(nic->down & 1ull << (port & 63)) &&
	       !ibv_query_port(nic->context, (uint8_t)port, attr) && attr->state == IBV_PORT_ACTIVE;
}

/* Return: the new rank; @best: the best rank so far. */
static unsigned int rate_gid(struct pvr_verbs_nic *nic, const struct ibv_gid_entry *entry,
			     const uint8_t wanted[16], unsigned int best,
			     struct pvr_verbs_place *place, bool *down)
{
	unsigned int value = rank(nic->nics, entry, wanted);
	struct ibv_port_attr attr;

	if (value <= best || entry->gid_index > UINT8_MAX)
		return best;
	if (!port_is_up(nic, entry->port_num, &attr)) {
		*down = true;
		return best;
	}
	*place = (struct pvr_verbs_place){
		.nic = nic,
		.port = (uint8_t)entry->port_num,
		.gid_index = (uint8_t)entry->gid_index,
		.gid = entry->gid,
		.lid = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : attr.lid,
		.mtu = attr.active_mtu,
	};
	return value;
}

static unsigned int rate_nic(struct pvr_verbs_nic *nic, const uint8_t wanted[16], unsigned int best,
			     struct pvr_verbs_place *place, bool *down)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	ssize_t num = nic->gone ? 0 : ibv_query_gid_table(nic->context, entries, GIDS_MAX, 0), i;

	for (i = 0; i < num; i++)
		best = rate_gid(nic, &entries[i], wanted, best, place, down);
	return best;
}

bool pvr_verbs_find_place(struct pvr_verbs_nics *nics, const struct pvr_address *local,
			  struct pvr_verbs_place *place, struct pvr_error *err)
{
	char text[PVR_ADDRESS_TEXT];
	struct pvr_verbs_nic *nic;
	unsigned int best = 0;
	bool down = false;
	uint8_t wanted[16];

	gid_of(local, wanted);
	LIST_FOREACH(nic, &nics->list, link)
		best = rate_nic(nic, wanted, best, place, &down);
	if (best)
		return true;
	if (!pvr_verbs_nics_any(nics))
		return nics->any ? pvr_fail(err, "this host has no RDMA NIC")
				 : pvr_fail(err, "this host has no RDMA NIC %s", nics->name);
	if (down)
		return pvr_fail(err, "the port of this host's RDMA NIC is down");
	return pvr_fail(err, "no RDMA NIC of this host has the address of %s",
			pvr_address_format(local, text));
}
