/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the operator wants of the network: options and configuration file. */
#ifndef PVR_NET_NET_SETTINGS_H
#define PVR_NET_NET_SETTINGS_H

#include "base/address.h"
#include "pipe.h"

#define PVR_LISTEN_MAX 16
#define PVR_FILE_MAX 512
#define PVR_RDMA_DEVICE_MAX 64
#define PVR_NET_KEYS                                                                            \
	"name, listen, peer, connections, keepalive, idle-timeout, tls-cert, tls-key, tls-ca, " \
	"tls-psk-file, insecure, dscp, rdma-device, rdma-lend, rdma-unencrypted"

struct pvr_peer_setting {
	char name[PVR_REMOTE_NAME_MAX];
	char address[PVR_ADDRESS_TEXT];
};

struct pvr_net_settings {
	char name[PVR_REMOTE_NAME_MAX]; /* "": the host's */
	struct pvr_address listen[PVR_LISTEN_MAX];
	size_t num_listen;
	struct pvr_peer_setting *peers;
	size_t num_peers;
	unsigned int connections; /* to each peer; 0: one for each worker, two at least */
	unsigned int keepalive; /* seconds; 0: the default */
	unsigned int idle_timeout; /* ditto */
	/* Files; "": none. */
	char tls_cert[PVR_FILE_MAX], tls_key[PVR_FILE_MAX], tls_ca[PVR_FILE_MAX];
	char tls_psk_file[PVR_FILE_MAX];
	bool insecure, insecure_set;
	/* Of all packets; else each connection's is that of the guests' traffic on it. */
	uint8_t dscp;
	bool dscp_fixed, dscp_set;
	bool directory; /* one tells of peers, too */
	char rdma_device[PVR_RDMA_DEVICE_MAX]; /* or "auto", "none" */
	bool rdma_lend, rdma_lend_set; /* guests' memory is registered with NICs */
	bool rdma_unencrypted, rdma_unencrypted_set; /* NICs, in spite of TLS */
};

/* One of PVR_NET_KEYS? */
bool pvr_net_settings_has(const char *key);
/* What was set before (an option) stays; "listen" and "peer" add up. */
bool pvr_net_settings_set(struct pvr_net_settings *settings, const char *key, const char *value,
			  struct pvr_error *err);
/* Does it fit together? Fills in what was left out. */
bool pvr_net_settings_check(struct pvr_net_settings *settings, struct pvr_error *err);
void pvr_net_settings_free(struct pvr_net_settings *settings);

/* Is there a network at all? */
bool pvr_net_settings_any(const struct pvr_net_settings *settings);
bool pvr_net_settings_has_keys(const struct pvr_net_settings *settings);
/* Letters, digits, '.', '_' and '-'. */
bool pvr_host_name_check(const char *name, struct pvr_error *err);

#endif /* PVR_NET_NET_SETTINGS_H */
