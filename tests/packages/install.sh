#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Runs in a clean root: installs the packages of /debs, removes and installs them again. With the argument "upgrade", to
# those of /next, after the installation of a second kernel's headers. Prints lines "ok RULE"; the first failure ends it.
set -eu

apt="apt-get --yes --quiet --no-install-recommends --allow-downgrades"
conf=/etc/pvrdma/pvrdmad.conf
driver=/etc/libibverbs.d/vmw_pvrdma.driver
ours=/etc/libibverbs.d/pvrdma.driver

fail()
{
	echo "FAILED: $*"
	exit 1
}

rule()
{
	echo "ok $*"
}

# snapshot FILE: all files of the root, but logs, caches, and those of dpkg, apt and depmod.
snapshot()
{
	find / -xdev \( -path /proc -o -path /dev -o -path /debs -o -path /next -o -path /tests -o -path /tmp -o -path /var/log \
		-o -path '/usr/lib/modules/*cloud-amd64' -o -path '/usr/lib/modules/*/modules.*' -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /run \) -prune -o -print |
		LC_ALL=C sort >"$1"
}

# modules: of each kernel whose headers are there.
modules()
{
	find /lib/modules -name 'pvrdma.ko*' | sort
}

# built KERNELS VERSION: the driver is there for so many kernels, all of the version.
built()
{
	[ "$(modules | wc -l)" = "$1" ] || fail "modules: $(modules); $(tail -n 20 /var/lib/dkms/pvrdma/*/build/make.log)"
	for module in $(modules); do
		modinfo "$module" | grep -q "^version: *$2$" || fail "module version: $(modinfo "$module")"
	done
}

installed()
{
	pvrdmad --version | grep -q "^pvrdmad $1"
	pvrdmactl --version | grep -q "^pvrdmactl $1" || fail "$(pvrdmactl --version)"
	rule "pvrdmad runs"
	built 1 "$1"
	rule "dkms built the driver"
	[ ! -e "$driver" ] && [ -e /usr/share/pvrdma-provider/vmw_pvrdma.driver ] || fail "the stock provider is there"
	[ "$(cat "$ours")" = "driver pvrdma" ] || fail "$ours: $(cat "$ours")"
	rule "provider replaces vmw_pvrdma"
	modprobe --showconfig | grep -q '^blacklist vmw_pvrdma' || fail "vmw_pvrdma is not on the block list"
	rule "driver replaces vmw_pvrdma"
	ibv_devices 2>&1 | grep -i warn && fail "libibverbs warns"
	systemd-analyze verify --man=no pvrdmad.service pvrdmad@red.service 2>&1 | grep pvrdmad && fail "systemd finds errors in the unit"
	rule "libibverbs and systemd have no complaint"
}

# refused KERNEL TEXT: DKMS builds no driver for the kernel, and a line has the text.
refused()
{
	mkdir -p "/lib/modules/$1"
	if dkms build "pvrdma/$VERSION" -k "$1" >/tmp/dkms 2>&1; then fail "the driver was built for kernel $1"; fi
	[ "$(grep -c "$2" /tmp/dkms)" = 1 ] || fail "expected one line with '$2': $(cat /tmp/dkms)"
	rmdir "/lib/modules/$1"
	built 1 "$VERSION"
}

snapshot /tmp/before
$apt install /debs/pvrdmad_*.deb /debs/pvrdma-dkms_*.deb /debs/pvrdma-provider_*.deb
installed "$VERSION"

$apt install --reinstall /debs/pvrdmad_*.deb /debs/pvrdma-dkms_*.deb /debs/pvrdma-provider_*.deb
installed "$VERSION"
rule "a second installation changes nothing"

refused 5.10.0-1-amd64 "pvrdma: kernel 5.10.0-1-amd64 is too old, expected 6.1 or later: boot a later kernel"
rule "dkms refuses a kernel that is too old"
refused 6.5.0-1-amd64 "install the linux-headers-6.5.0-1-amd64 package"
rule "dkms names the headers that are missing"

# The stock provider's package can be upgraded beside ours: its file stays where it is diverted to.
dpkg-divert --list | grep -q "$driver.*by pvrdma-provider" || fail "$(dpkg-divert --list)"

echo '# changed by the operator' >>$conf
if [ "${1:-}" = upgrade ]; then
	# The hook of DKMS in /etc/kernel builds the driver, as at each upgrade of the kernel.
	$apt install /opt/kernel/*.deb
	built 2 "$VERSION"
	rule "a kernel upgrade builds the driver"
	$apt install /next/pvrdma-dkms_*.deb
	built 2 "$NEXT"
	[ ! -e /usr/src/pvrdma-"$VERSION" ] || fail "the old source is still there"
	rule "an upgrade replaces the driver"
	$apt install /next/pvrdmad_*.deb /next/pvrdma-provider_*.deb </dev/null
	tail -n 1 $conf | grep -q '# changed' || fail "$conf: $(cat $conf)"
	rule "an upgrade keeps the configuration"
	[ ! -e "$driver" ] && [ -e "$ours" ] || fail "the stock provider is back"
	rule "an upgrade keeps the provider"
fi

$apt remove pvrdmad pvrdma-dkms pvrdma-provider
tail -n 1 $conf | grep -q '# changed' || fail "removal took the configuration"
[ -e "$driver" ] && [ ! -e "$ours" ] || fail "the stock provider is not back"
[ -z "$(modules)" ] || fail "modules after removal: $(modules)"
rule "removal keeps the configuration only"

$apt purge pvrdmad pvrdma-dkms pvrdma-provider
if [ "${1:-}" = upgrade ]; then
	# In Debian 13 the headers depend on the kernel itself.
	for deb in /opt/kernel/*.deb; do dpkg-deb --field "$deb" Package; done | xargs $apt purge
fi
snapshot /tmp/after
diff /tmp/before /tmp/after || fail "a purge leaves files (see above)"
rule "a purge leaves nothing"
