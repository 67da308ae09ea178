#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian or Ubuntu packages that are missing here.
#
#     sh tests/setup.sh           to build, and to run `make demo` and `make check`
#     sh tests/setup.sh fuzz      and `make fuzz`
#     sh tests/setup.sh lint      and `make format`, `make format-check`, `make lint`
#     sh tests/setup.sh rig       and `make check-rdma`, RDMA in a virtual machine
#     sh tests/setup.sh bench     and the programs that `make bench` compares with
#
# Needs root, or sudo.  What is there already stays as it is.
set -eu

packages="gcc libc6-dev make libaio-dev libssl-dev libxxhash-dev libreadline-dev libseccomp-dev libpam0g-dev libcrypt-dev libssh-dev openssl python3
	libibverbs-dev librdmacm-dev libacl1-dev zlib1g-dev rsync acl attr openssh-server openssh-client"
for what in "$@"; do
	case $what in
	fuzz) packages="$packages clang" ;;
	lint) packages="$packages clang-format cppcheck mandoc" ;;
	rig) packages="$packages qemu-system-x86 busybox-static kmod cpio xz-utils binutils iproute2 procps
		ibverbs-providers ibverbs-utils rdmacm-utils perftest iperf3 e2fsprogs systemd" ;;
	bench) packages="$packages iperf3 globus-gridftp-server-progs globus-gass-copy-progs rsync
		lftp vsftpd xrootd-client xrootd-server nginx curl gnuplot-nox" ;;
	*) echo "usage: $0 [fuzz] [lint] [rig] [bench]" >&2; exit 2 ;;
	esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "$0: no apt-get here.  What these packages of Debian have must be installed by hand:" >&2
	echo "    $packages" >&2
	exit 1
fi

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | cut -c1-2)" = ii ]
}

as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
missing=
for package in $packages; do
	installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
	if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
		echo "$0: no sudo here; as root: apt-get install$missing" >&2
		exit 1
	fi
	$as_root apt-get update -q
fi
# newer releases keep clang's sanitizers in a package of their own
case " $packages " in
*" clang "*)
	if ! installed libclang-rt-dev && apt-cache show libclang-rt-dev >/dev/null 2>&1; then
		missing="$missing libclang-rt-dev"
	fi ;;
esac
if [ -z "$missing" ]; then
	echo "all packages are installed"
	exit 0
fi

echo "installing:$missing"
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing \
	</dev/null
