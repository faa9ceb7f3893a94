// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The values of one scrape: memory. */
#include <stdlib.h>
#include <string.h>

#include "metrics/snapshot.h"

#define FIRST_ROWS 16

struct pvr_metrics_snapshot *pvr_metrics_snapshot_create(void)
{
	return calloc(1, sizeof(struct pvr_metrics_snapshot));
}

void pvr_metrics_snapshot_free(struct pvr_metrics_snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->adapters);
	free(snapshot->peers);
	free(snapshot);
}

/* Return: @rows with room for one more, whose bytes are zero; NULL: no memory, @rows is valid. */
static void *grow(void *rows, size_t num, size_t *max, size_t size)
{
	size_t wanted = *max ? 2 * *max : FIRST_ROWS;
	void *grown = rows;

	if (num == *max) {
		grown = realloc(rows, wanted * size);
		if (!grown)
			return NULL;
		*max = wanted;
	}
	memset((char *)grown + num * size, 0, size);
	return grown;
}

struct pvr_metrics_adapter *pvr_metrics_add_adapter(struct pvr_metrics_snapshot *snapshot)
{
	struct pvr_metrics_adapter *rows = grow(snapshot->adapters, snapshot->num_adapters,
						&snapshot->max_adapters,
						sizeof(*snapshot->adapters));

	if (!rows)
		return NULL;
	snapshot->adapters = rows;
	return &rows[snapshot->num_adapters++];
}

struct pvr_metrics_peer *pvr_metrics_add_peer(struct pvr_metrics_snapshot *snapshot)
{
	struct pvr_metrics_peer *rows = grow(snapshot->peers, snapshot->num_peers,
					     &snapshot->max_peers, sizeof(*snapshot->peers));

	if (!rows)
		return NULL;
	snapshot->peers = rows;
	return &rows[snapshot->num_peers++];
}
