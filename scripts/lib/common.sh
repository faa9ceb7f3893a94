# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Shared by the shell scripts: progress, errors, the cache, Debian packages of any suite.
#
# To be sourced. The caller has set -euo pipefail; results go to stdout, all else to stderr.

shopt -s inherit_errexit

pvr_scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # for the scripts that source this file
pvr_root=$(dirname -- "$pvr_scripts")
# shellcheck disable=SC2034
pvr_build=${PVRDMA_BUILD:-$pvr_root/build}
# "build/host" of .../scripts/build/host, and the last part of any other path.
pvr_name=$(realpath -- "$0")
[[ $pvr_name == "$pvr_scripts"/* ]] && pvr_name=${pvr_name#"$pvr_scripts"/} || pvr_name=${0##*/}
pvr_cache=${PVRDMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/pvrdma}

progress()
{
	printf '[%4ds] %s: %s\n' "$SECONDS" "$pvr_name" "$*" >&2
}

die()
{
	printf '%s: %s\n' "$pvr_name" "$*" >&2
	exit 1
}

# usage: prints the comment block at the top of the calling script, without the licence line.
usage()
{
	sed -n -e '/^# SPDX/d' -e '2,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# options ARGUMENT...: the options that every fetch/ script has; the rest is left in $args.
options()
{
	args=()
	while (($#)); do
		case $1 in
		--help|-h) usage; exit ;;
		--refresh) pvr_refresh=1 ;;
		-*) die "unknown option '$1', see --help" ;;
		*) args+=("$1") ;;
		esac
		shift
	done
}

# copy_changed FOLDER NAME...: brings FOLDER's copies of these files and folders of the current directory
# up to date; what did not change keeps its time. Files that are gone here stay there, see prune_copy.
copy_changed()
{
	local to=$1 file
	shift
	while read -r file; do
		if ! cmp -s -- "$file" "$to/$file"; then
			mkdir -p "$to/$(dirname -- "$file")"
			cp -- "$file" "$to/$file"
		fi
	done < <(find "$@" -type f ! -name '.*' ! -name '*.o' ! -name '*.ko' ! -name '*.mod*' ! -name 'modules.order')
}

# prune_copy FOLDER NAME...: removes the C files under FOLDER/NAME that are not here, except those whose names match $EXCEPT.
prune_copy()
{
	local to=$1 file
	shift
	while read -r file; do
		# shellcheck disable=SC2254 # a pattern
		case ${file##*/} in
		${EXCEPT:-}) ;;
		*) [[ -e $file ]] || rm -f -- "$to/$file" ;;
		esac
	done < <(cd "$to" && find "$@" -type f -name '*.[ch]' ! -name '*.mod.c')
}

# need COMMAND PACKAGE: fail with the package's name if COMMAND is not there.
need()
{
	command -v "$1" >/dev/null ||
		die "'$1' is missing: run scripts/deps, or install the Debian package $2"
}

# lock NAME: wait until no other run holds NAME; held until this shell exits or unlocks it.
lock()
{
	mkdir -p "$pvr_cache/locks"
	exec {pvr_lock_fd}>"$pvr_cache/locks/$1"
	if ! flock -n "$pvr_lock_fd"; then
		progress "waiting for another run that makes $1"
		flock "$pvr_lock_fd"
	fi
}

unlock()
{
	exec {pvr_lock_fd}>&-
}

# recipe FILE...: a short hash of the named files, to key the artefacts that they make. Comments and the path of
# this file do not count, so that editing them does not repeat a download. "# CONFIG_X is not set" is no comment.
recipe()
{
	sed -e '/^[[:space:]]*# CONFIG_/b' -e '/^[[:space:]]*#/d' -e '/\/common\.sh"$/d' -- "$@" | sha256sum | cut -c1-12
}

# check_space: fail if the cache's file system is nearly full. Programs that meet its end report it late or not at all.
check_space()
{
	local free
	mkdir -p "$pvr_cache" 2>/dev/null || die "cannot write to the cache $pvr_cache: set PVRDMA_CACHE to another folder"
	free=$(df --output=avail --block-size=1M -- "$pvr_cache" | tail -n 1)
	((free >= 256)) ||
		die "the cache $pvr_cache is full, it has $((free)) MiB left: free 3 GiB there, or set PVRDMA_CACHE to another folder"
}

# cached NAME FUNCTION: sets $result to the folder NAME of the cache. When it is not there yet, FUNCTION
# is called with an empty temporary folder to fill and the final path; the folder then appears at once.
# $pvr_refresh set: made anew.
cached()
{
	result=$pvr_cache/$1
	if [[ -d $result && -z ${pvr_refresh:-} ]]; then
		return
	fi
	check_space
	lock "${1//\//_}"
	if [[ ! -d $result || -n ${pvr_refresh:-} ]]; then
		mkdir -p "$(dirname -- "$result")"
		pvr_tmp=$(mktemp -d "$result.new.XXXXXX")
		trap 'rm -rf -- "$pvr_tmp"' EXIT
		chmod 755 "$pvr_tmp"
		"$2" "$pvr_tmp" "$result"
		rm -rf -- "$result"
		mv -T -- "$pvr_tmp" "$result"
		trap - EXIT
		progress "made $result"
	fi
	unlock
}

# --- Debian packages of any suite, without touching the system's own apt state ---------------------------

# mirror: the Debian archive this system uses, or $PVRDMA_MIRROR.
mirror()
{
	if [[ -n ${PVRDMA_MIRROR:-} ]]; then
		printf '%s\n' "$PVRDMA_MIRROR"
		return
	fi
	local id codename uri
	# shellcheck disable=SC1091
	id=$(. /etc/os-release && printf '%s' "$ID")
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	[[ $id == debian ]] ||
		die "this is $id, not Debian: set PVRDMA_MIRROR to the URI of a Debian archive"
	uri=$(apt-get indextargets --format "\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' |
		awk -v r="$codename" '$2 == r && $3 == "main" && !n++ { print $1 }')
	[[ -n $uri ]] ||
		die "apt has no source for $codename main: set PVRDMA_MIRROR to the URI of a Debian archive"
	printf '%s\n' "${uri%/}"
}

keyring()
{
	local k
	for k in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
		if [[ -e $k ]]; then
			printf '%s\n' "$k"
			return
		fi
	done
	die "no Debian archive keyring: install the package debian-archive-keyring"
}

# apt_setup SUITE...: a private apt for these suites; sets $apt_dir and $apt_opts. Lists are up to a day old.
apt_setup()
{
	local s list keyring uri max_age=${apt_max_age:-1440}
	apt_dir=$pvr_cache/apt/$(IFS=+; printf '%s' "$*")${apt_arch:+-$apt_arch}
	apt_opts=(-qq
		-o "Dir::Etc::sourcelist=$apt_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
		-o "Dir::State=$apt_dir" -o "Dir::State::lists=$apt_dir/lists"
		-o "Dir::State::status=$apt_dir/status" -o "Dir::Cache=$apt_dir/cache"
		-o Debug::NoLocking=1 -o APT::Sandbox::User=
		${apt_arch:+-o "APT::Architecture=$apt_arch" -o "APT::Architectures=$apt_arch"}
		-o Acquire::Retries=3
		-o Acquire::Languages=none -o Dir::Cache::srcpkgcache=)
	mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial" "$pvr_cache/debs"
	lock "apt-${apt_dir##*/}"
	keyring=$(keyring)
	uri=$(mirror)
	list=$(for s; do
		printf '%s [arch='"${apt_arch:-amd64}"' signed-by=%s] %s %s main\n' \
			deb "$keyring" "$uri" "$s" deb-src "$keyring" "$uri" "$s"
	done)
	: >"$apt_dir/status"
	if [[ $list != "$(cat "$apt_dir/sources.list" 2>/dev/null)" ||
	      -z $(find "$apt_dir/stamp" -mmin "-$max_age" 2>/dev/null) ]]; then
		progress "reading the package lists of $* from $uri"
		printf '%s\n' "$list" >"$apt_dir/sources.list"
		rm -f "$apt_dir/stamp"
		apt-get "${apt_opts[@]}" --error-on=any update >&2 ||
			die "cannot read the package lists of $* from $uri (see above)"
		touch "$apt_dir/stamp"
	fi
	unlock
}

# apt_update_again SUITE...: for a file that the archive has replaced since the lists were read.
apt_update_again()
{
	local apt_max_age=0
	apt_setup "$@"
}

# version_of PACKAGE: of the candidate in the suites given to apt_setup.
version_of()
{
	apt-cache "${apt_opts[@]}" show --no-all-versions "$1" | sed -n '/^Version: /{s///p;}' | sed -n 1p
}

# depends_on PACKAGE REGEX: the first dependency of PACKAGE whose name matches the whole REGEX.
depends_on()
{
	apt-cache "${apt_opts[@]}" show --no-all-versions "$1" |
		sed -n 's/^\(Pre-\)\{0,1\}Depends: //p' | tr ',|' '[\n*]' | awk '{ print $1 }' | grep -xE -- "$2" | sed -n 1p
}

# fetch_debs FOLDER PACKAGE...: the packages, without their dependencies, as files in FOLDER.
fetch_debs()
{
	local to=$1
	shift
	mkdir -p "$to"
	progress "downloading $*"
	(cd "$to" && apt-get "${apt_opts[@]}" download "$@" >&2) ||
		die "cannot download $* (see above)"
}

# unpack_debs FOLDER DEB...
unpack_debs()
{
	local to=$1 deb
	shift
	mkdir -p "$to"
	for deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" --no-same-owner --keep-directory-symlink
	done
}

# wrap_programs ROOT FINAL FOLDER: each program in ROOT/FOLDER, which may need a newer libc than the system's,
# becomes a script that runs it with the libraries unpacked in ROOT, as they are found once ROOT is FINAL.
wrap_programs()
{
	local root=$1 final=$2 tool lib=$2/usr/lib/x86_64-linux-gnu
	while read -r tool; do
		[[ $(head -c4 "$tool" | tr -d '\0') == $'\x7fELF' ]] || continue
		mv "$tool" "$tool.elf"
		cat >"$tool" <<-END
			#!/bin/sh
			exec $lib/ld-linux-x86-64.so.2 --library-path $lib --argv0 "\$0" ${tool/#"$root"/$final}.elf "\$@"
		END
		chmod 755 "$tool"
	done < <(find "$root/$3" -type f -perm -100)
}

# fetch_orig FOLDER SOURCE: the upstream tarball of a source package, as a file in FOLDER. Prints its path.
# The archive lacks some .dsc files while the tarball is there, so apt's failure counts only without tarball.
fetch_orig()
{
	local to=$1 source=$2 tarball
	mkdir -p "$to"
	progress "downloading the source of $source"
	(cd "$to" && apt-get "${apt_opts[@]}" source --download-only "$source" >apt.log 2>&1) || true
	tarball=$(find "$to" -name '*.orig.tar.*' ! -name '*.asc' ! -name '*.FAILED' | sed -n 1p)
	if [[ -z $tarball ]]; then
		cat "$to/apt.log" >&2
		die "cannot download the source of $source (see above)"
	fi
	printf '%s\n' "$tarball"
}
