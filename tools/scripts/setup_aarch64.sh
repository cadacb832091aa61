#!/bin/sh
# setup_aarch64 - prepare a cross build for aarch64: libraries and a cross file for Meson
#
# usage: sh tools/scripts/setup_aarch64.sh DIRECTORY
#
# Writes DIRECTORY/cross.ini, which uses the cross compiler of Debian and qemu-aarch64. Downloads
# the libraries as packages of Debian for arm64 and unpacks them below DIRECTORY. Changes nothing
# else on the system. Exits with 77 (skipped) if a program or a package is not available.
set -eu
mkdir -p "$1"
root=$(cd "$1" && pwd)

without() {
	echo "setup_aarch64.sh: no $1"
	exit 77
}
for program in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
	command -v $program >/dev/null || without $program
done

# Separate package lists, in which nothing is installed.
mkdir -p "$root/lists/partial" "$root/archives/partial" "$root/packages" "$root/usr"
: >"$root/status"
apt() {
	apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::State="$root" -o Dir::State::Lists="$root/lists" \
		-o Dir::State::status="$root/status" -o Dir::Cache="$root" "$@"
}
apt -o APT::Sandbox::User="$(id -un)" update >/dev/null || without 'package lists'
(cd "$root/packages" &&
	apt download libxxhash-dev libxxhash0 libzstd-dev libzstd1 zlib1g-dev zlib1g \
		libjansson-dev libjansson4 libhwy-dev libhwy1 \
		libcmocka-dev libcmocka0) >/dev/null 2>&1 ||
	without 'packages for arm64'
for package in "$root"/packages/*.deb; do
	dpkg-deb -x "$package" "$root"
done

libraries=$root/usr/lib/aarch64-linux-gnu
cat >"$root/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
cpp = 'aarch64-linux-gnu-g++'
ar = 'aarch64-linux-gnu-ar'
objcopy = 'aarch64-linux-gnu-objcopy'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu',
  '-E', 'LD_LIBRARY_PATH=$libraries:$root/lib/aarch64-linux-gnu']

[built-in options]
c_link_args = ['-L$libraries']
cpp_link_args = ['-L$libraries']

[properties]
sys_root = '$root'
pkg_config_libdir = '$libraries/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
