/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings of the network: options and configuration file. */
#ifndef PVR_NET_NET_SETTINGS_H
#define PVR_NET_NET_SETTINGS_H

#include "base/address.h"
#include "pipe.h"

#define PVR_LISTEN_MAX 16
#define PVR_FILE_MAX 512
#define PVR_RDMA_DEVICE_MAX 64
#define PVR_CONGESTION_MAX 16 /* of TCP_CONGESTION, the end included */
#define PVR_NET_KEYS                                                                                     \
	"name, listen, peer, connections, keepalive, idle-timeout, tls-cert, tls-key, tls-ca, tls-crl, " \
	"tls-psk-file, insecure, congestion, dscp, rdma-device, rdma-zerocopy, rdma-unencrypted"

struct pvr_peer_setting {
	char name[PVR_HOST_NAME_MAX];
	char address[PVR_ADDRESS_TEXT];
};

struct pvr_net_settings {
	char name[PVR_HOST_NAME_MAX]; /* "": the host name */
	struct pvr_address listen[PVR_LISTEN_MAX];
	size_t num_listen;
	struct pvr_peer_setting *peers;
	size_t num_peers;
	unsigned int connections; /* to each peer; 0: one per worker, at least two */
	unsigned int keepalive; /* in seconds; 0: the default */
	unsigned int idle_timeout; /* in seconds; 0: the default */
	/* Paths; "": none. */
	char tls_cert[PVR_FILE_MAX], tls_key[PVR_FILE_MAX], tls_ca[PVR_FILE_MAX];
	char tls_crl[PVR_FILE_MAX]; /* "": revocation is not checked */
	char tls_psk_file[PVR_FILE_MAX];
	bool insecure, insecure_set;
	char congestion[PVR_CONGESTION_MAX]; /* TCP's congestion control; "": the kernel's default */
	/*
	 * With dscp_fixed for all packets; else each connection has the DSCP of its
	 * guests' traffic.
	 */
	uint8_t dscp;
	bool dscp_fixed, dscp_set;
	bool directory; /* a directory provides peers, too */
	char rdma_device[PVR_RDMA_DEVICE_MAX]; /* a device, "auto" or "none" */
	bool rdma_zerocopy, rdma_zerocopy_set; /* expose guest memory to NICs */
	bool rdma_unencrypted, rdma_unencrypted_set; /* use NICs although TLS is on */
};

/* Return: whether @key is one of PVR_NET_KEYS. */
bool pvr_net_settings_has(const char *key);
/* An earlier value is kept; "listen" and "peer" accumulate. */
bool pvr_net_settings_set(struct pvr_net_settings *settings, const char *key, const char *value,
			  struct pvr_error *err);
/* Checks the settings against each other and fills in defaults. */
bool pvr_net_settings_check(struct pvr_net_settings *settings, struct pvr_error *err);
void pvr_net_settings_free(struct pvr_net_settings *settings);

/* Return: whether a network is configured. */
bool pvr_net_settings_any(const struct pvr_net_settings *settings);
bool pvr_net_settings_has_keys(const struct pvr_net_settings *settings);
/* Allowed are letters, digits, '.', '_' and '-'. False with @err filled. */
bool pvr_host_name_check(const char *name, struct pvr_error *err);

#endif /* PVR_NET_NET_SETTINGS_H */
