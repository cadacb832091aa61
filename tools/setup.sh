#!/bin/sh
# setup-debian.sh - install what gsort is built from, on Debian 12 or a system like it
#
# usage: sh tools/setup-debian.sh [test]
#
# Only packages that are missing are installed; when none is, nothing is done and no rights are
# needed. With "test", what only the tests need comes as well.
set -eu

packages='meson ninja-build pkg-config gcc g++'
packages="$packages libxxhash-dev libzstd-dev zlib1g-dev liburing-dev libhwy-dev"
if [ "${1:-}" = test ]; then
	packages="$packages clang libcmocka-dev acl qemu-user strace xxd"
fi

is_installed() {
	dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

missing=
for package in $packages; do
	is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "setup-debian.sh: become root, or install sudo, to install:$missing" >&2
		exit 1
	}
	as_root=sudo
fi
$as_root apt-get update -qq
# $missing is a list of words.
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq -y --no-install-recommends $missing
