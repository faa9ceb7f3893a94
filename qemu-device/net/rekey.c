// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys are read again while connections are up.
 *
 * DOC: who stays
 *
 * A connection goes on with the keys that it was made with, unless the new ones would not
 * let the other host in: then it gets BYE (IDENTITY), and is dialled again like any that has
 * broken, by the keys that there are now. So nothing happens to traffic when a certificate is
 * replaced, and a host whose key was taken away is out at once. A connection that is being
 * made meanwhile is looked at when it is up.
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
	pvr_peers_review(net->peers, ops, opaque);
}
