/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A guest without a virtual machine: a minimal PVRDMA driver, provider and program in
 * this process, for tests, benchmarks and fuzzers.
 *
 * DOC: fake guest
 *
 * An fg_host is what the daemon would be: a device engine, its clock (which stands
 * still until a test advances it) and its log. An fg_guest is one virtual machine on
 * it: RAM in discontiguous pieces whose bus addresses are not host addresses, an
 * adapter, and the driver's shared region. Everything else is an object of a guest,
 * made with the real commands: fg_ctx (a user context and its doorbell page), fg_pd,
 * fg_mr, fg_cq, fg_srq, fg_qp. An fg_end bundles one of each, ready to talk.
 *
 * Memory that device and guest share is an fg_buf: pages scattered over guest RAM, a
 * page directory, and a contiguous view of them for the guest's program, as a page
 * table would give it.
 *
 * Only engine.h is used, no internal header of the engine. Posting and polling allocate
 * nothing. Errors that a guest can cause return the ERR register's value to the
 * caller; errors of the test itself end the process (fg_die()).
 *
 * The device runs only within fg_run().
 */
#ifndef FAKE_GUEST_H
#define FAKE_GUEST_H

#include "fg_buf.h"
#include "fg_cmd.h"
#include "fg_cq.h"
#include "fg_worker_pool.h"
#include "fg_end.h"
#include "fg_event.h"
#include "fg_gid.h"
#include "fg_guest.h"
#include "fg_host.h"
#include "fg_mr.h"
#include "fg_pd.h"
#include "fg_qp.h"
#include "fg_ram.h"
#include "fg_srq.h"
#include "fg_wr.h"

#endif /* FAKE_GUEST_H */
