// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Log lines on their way to the thread that writes them. */
#include <string.h>

#include "daemon/log_ring.h"

void pvr_log_ring_put(struct pvr_log_ring *ring, const char *text, size_t len)
{
	struct pvr_log_slot *slot;

	if (len > PVR_LOG_LINE)
		len = PVR_LOG_LINE;
	pthread_mutex_lock(&ring->lock);
	if (ring->num == PVR_LOG_LINES) {
		ring->dropped++;
	} else {
		slot = &ring->slots[(ring->head + ring->num++) % PVR_LOG_LINES];
		slot->dropped = ring->dropped;
		slot->len = len;
		memcpy(slot->text, text, len);
		ring->dropped = 0;
		pthread_cond_signal(&ring->news);
	}
	pthread_mutex_unlock(&ring->lock);
}

bool pvr_log_ring_take(struct pvr_log_ring *ring, struct pvr_log_slot *slot)
{
	const struct pvr_log_slot *first;
	bool found = true;

	pthread_mutex_lock(&ring->lock);
	while (!ring->num && !ring->dropped && !ring->end)
		pthread_cond_wait(&ring->news, &ring->lock);
	slot->len = 0;
	if (ring->num) {
		first = &ring->slots[ring->head];
		slot->dropped = first->dropped;
		slot->len = first->len;
		memcpy(slot->text, first->text, first->len);
		ring->head = (ring->head + 1) % PVR_LOG_LINES;
		ring->num--;
	} else {
		slot->dropped = ring->dropped;
		found = ring->dropped;
		ring->dropped = 0;
	}
	pthread_mutex_unlock(&ring->lock);
	return found;
}

void pvr_log_ring_end(struct pvr_log_ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	ring->end = true;
	pthread_cond_signal(&ring->news);
	pthread_mutex_unlock(&ring->lock);
}
