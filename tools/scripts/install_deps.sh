#!/bin/sh
# install_deps - install the build dependencies of gsort on Debian, Fedora, Arch or Alpine
#
# usage: sh tools/scripts/install_deps.sh [test-build | test]
#
# Installs missing packages only: what the build needs, with "test-build" what building the tests
# needs, too, and with "test" what running them needs. If no package is missing, it does nothing and
# needs no privileges. Otherwise it runs as root or with sudo.
#
# tools/scripts/test.sh runs it on Debian 12. The lists of the other systems are not tested.
set -eu

# Dependencies of the build, and further ones of the tests, by system. On Debian, the tests can be
# built while the packages that only running them needs are installed.
debian='meson ninja-build pkg-config gcc g++
	libxxhash-dev libzstd-dev zlib1g-dev libjansson-dev libhwy-dev'
debian_test_build='libcmocka-dev pandoc libopenmpi-dev openmpi-bin libmpich-dev mpich'
debian_test='clang acl strace xxd qemu-user musl-tools mandoc zsh fish
	python3-numpy python3-pip python3-pytest python3-venv'
debian_test_amd64='gcc-aarch64-linux-gnu g++-aarch64-linux-gnu'

fedora='meson ninja-build pkgconf-pkg-config gcc gcc-c++
	xxhash-devel libzstd-devel zlib-devel jansson-devel highway-devel'
fedora_test='clang libcmocka-devel acl strace /usr/bin/xxd qemu-user musl-gcc pandoc mandoc
	zsh fish python3-numpy python3-pip python3-pytest openmpi-devel mpich-devel'

arch='meson ninja pkgconf gcc xxhash zstd zlib jansson highway'
arch_test='clang cmocka acl strace xxd qemu-user musl pandoc-cli mandoc zsh fish python-numpy
	python-pip python-pytest openmpi'

# The tests compare with GNU sort.
alpine='meson samurai pkgconf gcc g++ musl-dev linux-headers
	xxhash-dev zstd-dev zlib-dev jansson-dev highway-dev'
alpine_test='clang cmocka-dev acl strace xxd qemu-x86_64 pandoc mandoc bash zsh fish
	coreutils diffutils findutils gawk grep sed util-linux python3 py3-numpy
	py3-pip py3-pytest openmpi-dev'

if command -v apt-get >/dev/null; then
	packages=$debian
	packages_test_build=$debian_test_build
	packages_test=$debian_test
	[ "$(dpkg --print-architecture)" != amd64 ] ||
		packages_test="$packages_test $debian_test_amd64"
	is_installed() {
		dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
	}
	apt_install() {
		DEBIAN_FRONTEND=noninteractive $as_root \
			apt-get install -qq -y --no-install-recommends "$@"
	}
	# The package lists may be missing or too old.
	install() {
		apt_install "$@" 2>/dev/null || {
			$as_root apt-get update -qq && apt_install "$@"
		}
	}
elif command -v dnf >/dev/null; then
	packages=$fedora packages_test=$fedora_test
	is_installed() { rpm -q --whatprovides "$1" >/dev/null 2>&1; }
	install() { $as_root dnf install -q -y "$@"; }
elif command -v pacman >/dev/null; then
	packages=$arch packages_test=$arch_test
	is_installed() { pacman -T "$1" >/dev/null; }
	# Arch does not support partial upgrades.
	install() { $as_root pacman -Syu --needed --noconfirm "$@"; }
elif command -v apk >/dev/null; then
	packages=$alpine packages_test=$alpine_test
	is_installed() { apk info -q -e "$1"; }
	install() { $as_root apk add -q "$@"; }
else
	echo "install_deps.sh: unknown system; docs/install.md lists the dependencies" >&2
	exit 1
fi
: "${packages_test_build=$packages_test}"
case ${1:-} in
test-build) packages="$packages $packages_test_build" ;;
test) packages="$packages $packages_test_build $packages_test" ;;
esac

missing=
for package in $packages; do
	is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "install_deps.sh: root or sudo required to install:$missing" >&2
		exit 1
	}
	as_root=sudo
fi
# $missing is a list of words.
# shellcheck disable=SC2086
install $missing
