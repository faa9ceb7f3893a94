// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The mappings of another process. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "attach/peer_maps.h"

#define PEER_MAPS_LINES 2000 /* of /proc/PID/maps; a QEMU has some hundreds */

struct map_line {
	char sharing; /* 's' or 'p' */
	dev_t dev;
	ino_t ino;
};

/* proc(5), /proc/pid/maps: address perms offset dev inode pathname */
static bool parse_line(const char *text, struct map_line *line)
{
	unsigned int dev_major, dev_minor;
	uintmax_t ino;
	char perms[5];

	/* NOLINTNEXTLINE(cert-err34-c): the kernel prints these numbers, so each fits its type. */
	if (sscanf(text, "%*x-%*x %4s %*x %x:%x %ju", perms, &dev_major, &dev_minor, &ino) != 4)
		return false;
	line->sharing = perms[3];
	line->dev = makedev(dev_major, dev_minor);
	line->ino = (ino_t)ino;
	return true;
}

bool pvr_peer_maps_privately(pid_t pid, dev_t dev, ino_t ino)
{
	char path[32], text[512];
	struct map_line line;
	bool private = false, shared = false;
	FILE *maps;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	for (i = 0; i < PEER_MAPS_LINES && fgets(text, sizeof(text), maps); i++) {
		if (!parse_line(text, &line) || line.dev != dev || line.ino != ino)
			continue;
		private |= line.sharing == 'p';
		shared |= line.sharing == 's';
	}
	fclose(maps);
	return private && !shared;
}
