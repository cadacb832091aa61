#!/bin/sh
# run.sh - build the Python package as an sdist and a wheel, install the wheel, and test it
#
# usage: run.sh SOURCE DIRECTORY LIBRARY [PACKAGE]
#
# Works below DIRECTORY, in a new virtual environment that uses numpy, pip and pytest of the system.
# Exits with 77 (skipped) if these are missing, if SOURCE is not a Git checkout (required for an
# sdist), or if the build tools cannot be downloaded. To save time, the wheel is compiled without
# optimisation or optional features, must sort once, and then gets libgsort from LIBRARY for the
# tests.
#
# PACKAGE is a directory in which check_reproducible.sh has built the package of `meson dist` with
# -Db_ndebug=false. Its files must be those of the sdist. The wheel is built there, so that nothing
# is compiled again.
set -eu
source=$1 work=$2/package library=$3 package=${4:-}
python=
for candidate in python3 /usr/bin/python3; do
	if "$candidate" -c 'import numpy, pip, pytest, venv' 2>/dev/null; then
		python=$candidate
		break
	fi
done
[ -n "$python" ] || { echo "no Python with numpy, pip and pytest"; exit 77; }
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || { echo "not a Git checkout"; exit 77; }

rm -rf "$work"
mkdir -p "$work"
"$python" -m venv --system-site-packages --without-pip "$work/venv"
pip="$work/venv/bin/python -m pip --disable-pip-version-check"
$pip install -q 'meson-python>=0.13' || { echo "no meson-python"; exit 77; }

# The sdist contains the committed files. The wheel is built from the sdist.
(cd "$source" &&
	"$work/venv/bin/python" -c 'import mesonpy, sys; mesonpy.build_sdist(sys.argv[1])' "$work")
if [ -n "$package" ]; then
	tar xzf "$work"/gsort-*.tar.gz -C "$work"
	rm "$work"/gsort-*/PKG-INFO
	diff -rq -x build -x installed "$work"/gsort-*/ "$package" || {
		echo "the sdist differs from the package of meson dist"
		exit 1
	}
	# pip before 23.1 passes only one setting of each name.
	$pip install -q --no-build-isolation --no-deps --config-settings=builddir=build \
		--config-settings=setup-args=-Db_ndebug=false "$package"
else
	CFLAGS=-O0 CXXFLAGS=-O0 $pip install -q --no-build-isolation --no-deps \
		--config-settings=setup-args=-Dauto_features=disabled "$work"/gsort-*.tar.gz
fi

cd "$work"
"$work/venv/bin/python" -c \
	'import gsort, numpy; assert list(gsort.sort_array(numpy.array([2, 1]))) == [1, 2]'
cp -L "$library" "$work"/venv/lib/python3*/site-packages/gsort/libgsort.so
GSORT_SOURCE=$source "$work/venv/bin/python" -B -m pytest -q -p no:cacheprovider \
	"$source/tests/python"
