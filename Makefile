# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# For people: "make help". The kernel's own build, "make -C .../build M=$PWD modules", reads Kbuild instead.

KERNEL ?= 6.1

.DEFAULT_GOAL := all

.PHONY: all
all: host module provider ## Build everything (the default)

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20
	@echo
	@echo '  KERNEL=6.1          the guest kernel that "module" builds for (6.1, 6.12, 7.2, 6.1-debug)'

.PHONY: demo demo-roce demo-migration
demo: deps ## Boot two VMs and run a pingpong between them
	@scripts/demo

demo-roce: deps ## Boot a VM with an adapter and one with Soft-RoCE, and run programs between them
	@scripts/demo roce

demo-migration: deps ## Move a VM live between two hosts and back while its queue pairs work
	@scripts/demo migration

.PHONY: check
check: deps ## Build everything and run all tests; last line: N passed, N failed, N skipped
	@scripts/check

.PHONY: check-long
check-long: host module provider ## What "check" leaves out: clang-tidy of all files, clang, ThreadSanitizer, tests that take minutes each
	@scripts/check analysis-long build-clang build-tsan unit-tsan unit-long sim-long daemon-long hosts-long packages long

.PHONY: check-hosts
check-hosts: deps ## Several hosts, which are network namespaces
	@scripts/check build-asan hosts

.PHONY: check-debug
check-debug: host module provider ## The driver on a kernel with lockdep, KASAN and kmemleak, random verbs for TIME seconds (3600); builds that kernel once
	@PVRDMA_RANDOM_TIME=$(TIME) PVRDMA_RANDOM_SEED=$(SEED) scripts/check debug

.PHONY: fuzz
fuzz: deps ## All fuzzers for TIME seconds each (60), from their corpora: scripts/checks/fuzz --help
	@scripts/checks/fuzz $(or $(TIME),60)

.PHONY: sim
sim: deps host ## Simulate hosts, VMs and what happens to them for TIME seconds (600): build/host/tests/sim/pvr_sim --help
	@build/host/tests/sim/pvr_sim --seconds $(or $(TIME),600)

.PHONY: soak
soak: host module provider ## Random traffic and random faults for TIME seconds (600): tests/soak/soak.py --help
	@tests/soak/soak.py --time $(or $(TIME),600)

.PHONY: bench
bench: deps ## Measure the device without VMs: a table, build/bench/native.json
	@scripts/bench/native

.PHONY: bench-baseline
bench-baseline: deps host ## Make the instruction counts of now those that "check" compares with
	@scripts/checks/instructions --renew

.PHONY: bench-vm
bench-vm: host module provider ## Measure two VMs, against Soft-RoCE and TCP: a table, build/bench/vm.json
	@scripts/bench/vm

.PHONY: bench-guest
bench-guest: host module provider ## Count what two VMs execute per message, against Soft-RoCE: a table, build/bench/guest.json
	@scripts/bench/guest

.PHONY: bench-apps
bench-apps: host module provider ## Measure applications in two and four VMs, against Soft-RoCE and TCP: build/bench/apps.json
	@scripts/bench/apps

.PHONY: bench-hosts
bench-hosts: deps host ## Measure two hosts, against iperf3, openssl, bare TCP and ib_write_bw: a table, build/bench/hosts.json
	@scripts/bench/hosts

.PHONY: bench-wire
bench-wire: deps host ## Measure RoCEv2 on an Ethernet segment, against UDP and the pipe over TCP: a table, build/bench/wire.json
	@scripts/bench/wire

.PHONY: bench-directory
bench-directory: deps host ## Measure a host among 10,000 in etcd, and a daemon with 200 peers: build/bench/directory.json
	@scripts/bench/directory

.PHONY: bench-report
bench-report: ## Write docs/performance.md, its charts and the figures of README.md from the measured files
	@scripts/deps --also python3-matplotlib
	@scripts/bench/report

.PHONY: figures
figures: ## Render docs/figures/*.dot
	@scripts/deps --also graphviz
	@scripts/build/figures

.PHONY: deps
deps: ## Install the Debian packages that are missing, after naming them
	@scripts/deps

.PHONY: host
host: deps ## The daemon and its tool: build/host/pvrdmad, build/host/pvrdmactl
	@scripts/build/host

.PHONY: module
module: deps ## The guest driver: build/module-KERNEL/pvrdma.ko
	@scripts/build/module $(KERNEL)

.PHONY: provider
provider: deps ## The libibverbs provider: build/provider/
	@scripts/build/provider

.PHONY: qemu
qemu: deps ## QEMU with -device pvrdma, which can be migrated: build/qemu/qemu-system-x86_64
	@scripts/build/qemu

.PHONY: deb
deb: deps ## Debian packages for SUITE (bookworm, or trixie), from a clean root: build/deb/SUITE/
	@scripts/build/deb $(SUITE)

.PHONY: unit
unit: deps ## Unit tests under ASan and UBSan
	@scripts/check unit

.PHONY: check-abi
check-abi: deps ## The ABI header alone: C11, C++17, gcc, clang, sparse
	@scripts/checks/abi

.PHONY: check-style
check-style: deps ## shellcheck, licence lines, man pages
	@scripts/checks/style

.PHONY: clean
clean: ## Remove build/ and what a kernel build left in the tree; downloads stay in the cache
	rm -rf build
	find . -path ./.git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order -o -name Module.symvers \) -type f -print | xargs -r rm -f
