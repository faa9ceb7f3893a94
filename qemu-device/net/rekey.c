// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reload of keys while connections are up.
 *
 * DOC: which connections stay
 *
 * A connection keeps the keys that it was made with, unless the new keys would refuse the
 * host: then it gets CLOSE (IDENTITY) and is dialled again with the new keys. So the
 * replacement of a certificate does not affect traffic, and a host whose key was removed
 * is disconnected at once. A connection in a handshake is checked at its end.
 */
#include "net/state.h"

bool pvr_net_rekey_begin(struct pvr_net *net, struct pvr_error *err)
{
	struct pvr_tls_context *tls;

	net->tls_before = NULL;
	if (!net->tls)
		return true;
	tls = pvr_tls_context_create(&net->settings, err);
	if (!tls)
		return false;
	if (!pvr_tls_context_is_current(tls, &net->settings, err)) {
		pvr_tls_context_put(tls);
		return false;
	}
	net->tls_before = net->tls;
	net->tls = tls;
	return true;
}

void pvr_net_rekey_cancel(struct pvr_net *net)
{
	if (!net->tls_before)
		return;
	pvr_tls_context_put(net->tls);
	net->tls = net->tls_before;
	net->tls_before = NULL;
}

void pvr_net_rekey_end(struct pvr_net *net, const struct pvr_reload_ops *ops, void *opaque)
{
	struct pvr_error why;

	if (!net->tls_before)
		return;
	pvr_tls_context_put(net->tls_before);
	net->tls_before = NULL;
	pvr_tls_context_describe(net->tls, &net->settings, ops->read, opaque);
	if (!pvr_tls_context_trusts_itself(net->tls, &net->settings, &why))
		ops->warn(opaque, why.text);
	pvr_peer_gone_review(net->peers, ops, opaque);
}
