// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The lease: this host's keys exist as long as it is renewed. */
#include <string.h>

#include "directory/etcd.h"

static uint64_t interval(const struct pvr_etcd *etcd)
{
	return etcd->ttl * PVR_SEC / 3;
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_etcd *etcd = pvr_container_of(timer, struct pvr_etcd, lease.timer);

	etcd->lease.due = true;
	pvr_etcd_lease_step(etcd);
}

void pvr_etcd_lease_init(struct pvr_etcd *etcd)
{
	etcd->lease.timer.expired = timer_expired;
}

void pvr_etcd_lease_exit(struct pvr_etcd *etcd)
{
	pvr_loop_timer_disarm(&etcd->lease.timer);
}

void pvr_etcd_lease_leave(struct pvr_etcd *etcd)
{
	etcd->lease.id[0] = '\0';
	etcd->lease.due = false;
	pvr_loop_timer_disarm(&etcd->lease.timer);
}

void pvr_etcd_lease_lost(struct pvr_etcd *etcd)
{
	if (!etcd->lease.id[0])
		return;
	pvr_directory_log(etcd->directory, PVR_LOG_WARN,
			  "etcd has lost this host's lease: all keys are written again");
	pvr_etcd_lease_leave(etcd);
}

static bool take_id(struct pvr_etcd *etcd, const char *id)
{
	size_t len = id ? strlen(id) : 0;

	if (!len || len >= sizeof(etcd->lease.id) || strspn(id, "0123456789") != len)
		return false;
	strcpy(etcd->lease.id, id);
	return true;
}

static void granted(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd *etcd = opaque;

	etcd->lease.granting = false;
	etcd->lease.due = false;
	if (result != PVR_ETCD_OK || !take_id(etcd, pvr_json_text(reply, "ID"))) {
		/* Retry after a refusal, too. */
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lease.timer, PVR_SEC);
		return;
	}
	etcd->lease.number++;
	pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lease.timer, interval(etcd));
	pvr_etcd_publish_all(etcd);
	if (etcd->lease.number > 1)
		pvr_etcd_resync(etcd);
}

static void grant(struct pvr_etcd *etcd)
{
	struct pvr_text body = { .len = 0 };

	pvr_text_add(&body, "{\"TTL\":\"%u\"}", etcd->ttl);
	etcd->lease.granting =
		pvr_etcd_call(&etcd->client, "/v3/lease/grant", &body, granted, etcd);
}

static void renewed(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd *etcd = opaque;
	struct json_object *answer = pvr_json_object(reply, "result");

	etcd->lease.renewing = false;
	if (!etcd->lease.id[0])
		return; /* left since */
	if (result == PVR_ETCD_FAILED) {
		etcd->lease.due = true; /* in the next step */
		return;
	}
	if (result == PVR_ETCD_OK && pvr_json_number(answer, "TTL")) {
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lease.timer, interval(etcd));
		pvr_etcd_forget_gone(etcd, etcd->kept.renewed);
	} else if (result == PVR_ETCD_OK && answer)
		pvr_etcd_lease_lost(etcd);
	else
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lease.timer, PVR_SEC);
}

static void renew(struct pvr_etcd *etcd)
{
	struct pvr_text body = { .len = 0 };

	pvr_text_add(&body, "{\"ID\":\"%s\"}", etcd->lease.id);
	etcd->kept.renewed = etcd->kept.next;
	etcd->lease.renewing =
		pvr_etcd_call(&etcd->client, "/v3/lease/keepalive", &body, renewed, etcd);
	etcd->lease.due = !etcd->lease.renewing;
}

void pvr_etcd_lease_step(struct pvr_etcd *etcd)
{
	struct pvr_etcd_lease *lease = &etcd->lease;

	if (lease->granting || lease->renewing || !pvr_etcd_client_usable(&etcd->client))
		return;
	if (!lease->id[0] && (!lease->timer.loop || lease->due))
		grant(etcd);
	else if (lease->id[0] && lease->due)
		renew(etcd);
}

void pvr_etcd_lease_revoke(struct pvr_etcd *etcd)
{
	char body[64];

	if (!etcd->lease.id[0] || !etcd->client.connected)
		return;
	snprintf(body, sizeof(body), "{\"ID\":\"%s\"}", etcd->lease.id);
	pvr_etcd_call_now(&etcd->client, "/v3/lease/revoke", body);
}
