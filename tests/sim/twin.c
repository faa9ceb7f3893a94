// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two destinations of one state: an operator, or two of them, start the VM at two hosts. One of both must
 * start, whether the source and etcd respond or not, and the other one must be refused. Both have the same
 * memory, so they may use it only after the start: an adapter that is refused writes an event.
 */
#include <errno.h>

#include "sim.h"

#include "core/adapter.h"

#define HOST_OF(vm) ((vm)->twin - 1)

/* No number is drawn: without a twin the run is as it was. */
void sim_twin_load(struct sim *sim, struct sim_vm *vm)
{
	unsigned int host = (vm->to + 1) % sim->config.hosts;

	if (host == vm->from)
		host = (host + 1) % sim->config.hosts;
	/*
	 * The source, which may give it to the one that etcd refuses, must be able to go on. An etcd
	 * that has lost data does not know which one the source has told to start.
	 */
	if (vm->restores || sim->data_lost_at || vm->cancels || vm->leaves_early ||
	    !sim->directories || host == vm->to || host == vm->from ||
	    (sim->step + vm->number) % 4 || !sim_directory_knows(sim->directories, host, vm->from))
		return;
	vm->twin = host + 1;
	vm->twin_loaded = sim_now(sim);
	sim_vm_attach(sim, vm, host);
	if (fg_state_load(vm->guest, &vm->state))
		sim_fail(sim, "migration", "vm%u: its state cannot be loaded at host%u", vm->number,
			 host + 1);
	sim_trace(&sim->trace, "vm%u: its state is loaded at host%u, too", vm->number, host + 1);
	pvr_adapter_set_bus_master(vm->guest->adapter, false);
}

static void end(struct sim *sim, struct sim_vm *vm)
{
	unsigned int host = HOST_OF(vm);

	vm->twin = 0;
	sim_vm_leave(sim, vm, host, false);
}

void sim_twin_cancel(struct sim *sim, struct sim_vm *vm)
{
	if (vm->twin)
		end(sim, vm);
}

/* The twin goes on as the VM, and the adapter of before is its twin. */
static void swap(struct sim *sim, struct sim_vm *vm)
{
	unsigned int host = HOST_OF(vm);

	vm->twin = vm->to + 1;
	vm->to = host;
	sim_vm_go_to(sim, vm, host);
}

/*
 * A source that has ended knows no state any more: then the adapter starts without connections. And an
 * etcd that has lost its data does not know which one has won.
 */
static int start(const struct sim *sim, struct sim_vm *vm)
{
	struct pvr_adapter *adapter = vm->at[HOST_OF(vm)];
	int err = pvr_adapter_start(adapter);

	if (!err &&
	    (adapter->move.answer == PVR_TAKE_STALE || sim->data_lost_at >= vm->twin_loaded))
		return -EPERM;
	return err;
}

/* The VM has started, or is started elsewhere since. */
void sim_twin_step(struct sim *sim, struct sim_vm *vm)
{
	int err;

	if (!vm->twin || !sim_vm_runs(vm))
		return;
	err = start(sim, vm);
	if (err == -EINPROGRESS)
		return;
	if (!err)
		sim_fail(sim, "migration", "vm%u runs at host%u and at host%u", vm->number,
			 vm->host + 1, vm->twin);
	sim->count.checks++;
	end(sim, vm);
}

int sim_twin_start(struct sim *sim, struct sim_vm *vm, int err)
{
	int of_twin;

	if (!vm->twin)
		return err;
	of_twin = start(sim, vm);
	if (!err && !of_twin)
		sim_fail(sim, "migration", "vm%u starts at host%u and at host%u", vm->number,
			 vm->to + 1, vm->twin);
	if (of_twin && of_twin != -EINPROGRESS) {
		end(sim, vm);
		return err;
	}
	if (!of_twin || err == -EPERM)
		swap(sim, vm);
	if (err == -EPERM)
		end(sim, vm);
	return of_twin && err ? -EINPROGRESS : 0;
}
