#!/bin/sh
# run_gpu_mpi_tests.sh - test and time gsort-mpi on a GPU machine without build tools and MPI
#
# usage: run_gpu_mpi_tests.sh --pack BUILD FOLDER
#        run_gpu_mpi_tests.sh FOLDER [ARGUMENT...]
#
# --pack runs on the build machine, which must have Open MPI. It copies to FOLDER the programs,
# their libraries except the driver, and the parts of Open MPI that start ranks on one machine.
# FOLDER can be moved; FOLDER/mpirun starts the ranks.
#
# The second form runs on the GPU machine. It sorts small files with 1, 2 and 5 ranks on GPUs, and
# with a mix of CPU and GPU ranks, and compares the outputs with those of gsort on the CPU. It
# prints "failed: none" or the failed cases. Then bench_gpus.py, with the ARGUMENTs, times two ranks
# against one process. Exits with 0 if no case failed.
set -eu

programs='src/gsort src/gsort-mpi tools/gsort-gen tools/gsort-check'
of_mpi='mpi|open-|pmix|event|hwloc|munge|udev'
own_libraries="lib($of_mpi|hwy|zstd|xxhash|z\.|jansson)"
system_libraries='linux-vdso|ld-linux|lib(c|m|stdc\+\+|gcc_s)\.so'

# libraries PATTERN FILE...: list the libraries of the files whose names match
libraries() {
	pattern=$1
	shift
	for file in "$@"; do
		ldd "$file"
	done | awk '{ print $1, $3 }' | grep -E "^[^ ]*($pattern)" | sort -u
}

# pack_plugins FROM TO: copy plugins of Open MPI that need only packed libraries. The others are for
# networks that one machine does not use.
pack_plugins() {
	for plugin in "$1"/mca_*.so; do
		ldd "$plugin" | awk '{ print $1 }' |
			grep -qvE "$own_libraries|$system_libraries" || cp "$plugin" "$2"
	done
}

pack() {
	build=$1 folder=$2 source=$(dirname "$0")/../..
	prefix=$(ompi_info --path prefix --parsable | cut -d: -f3)
	plugins=$(ompi_info --path pkglibdir --parsable | cut -d: -f3)
	help=$(ompi_info --path pkgdatadir --parsable | cut -d: -f3)
	there=$folder/openmpi
	mkdir -p "$there/bin" "$there/${plugins#"$prefix"}" "$there/${help#"$prefix"}"
	cp -L "$(command -v orterun)" "$there/bin/mpirun"
	cp "$help"/*.txt "$there/${help#"$prefix"}"
	pack_plugins "$plugins" "$there/${plugins#"$prefix"}"
	for program in $programs; do
		cp "$build/$program" "$folder"
	done
	libraries "$own_libraries" "$folder"/gsort* "$there/bin/mpirun" \
		"$there/${plugins#"$prefix"}"/*.so |
		cut -d' ' -f2 | xargs -I LIBRARY cp LIBRARY "$folder"
	cp "$0" "$source/tools/scripts/bench_gpus.py" \
		"$source/tools/scripts/bench_data.py" "$folder"
	cat > "$folder/mpirun" <<-'MPIRUN'
		#!/bin/sh
		# mpirun - start ranks on this machine with the Open MPI of this folder
		folder=$(cd "$(dirname "$0")" && pwd)
		export OPAL_PREFIX="$folder/openmpi" PMIX_MCA_pcompress=^zlib
		export PMIX_MCA_pcompress_base_silence_warning=1
		export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
		export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		export OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
		exec "$folder/openmpi/bin/mpirun" --oversubscribe --bind-to none "$@"
	MPIRUN
	chmod +x "$folder/mpirun"
}

# wrote CASE: compare the output of the ranks with that of gsort
wrote() {
	if cmp expected ranks; then
		echo "$1: correct"
	else
		failed="$failed; $1"
	fi
	rm -f ranks
}

# agree INPUT ARGUMENT...: sort the input with ranks and with gsort, and compare the outputs
agree() {
	input=$1
	shift
	gsort --backend=cpu "$@" "$input" -o expected
	for n in 1 2 5; do
		mpirun -np $n gsort-mpi --backend=cuda "$@" "$input" -o ranks || true
		wrote "$n ranks, $* $input"
	done
	mpirun -np 1 gsort-mpi --backend=cpu "$@" "$input" -o ranks : \
		-np 2 gsort-mpi --backend=cuda "$@" "$input" -o ranks || true
	wrote "a mix of ranks, $* $input"
}

if [ "$1" = --pack ]; then
	pack "$2" "$3"
	exit
fi

folder=$(cd "$1" && pwd)
shift
failed=
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$folder:$PATH"
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu_ranks.XXXXXX")
cd "$work"
trap 'rm -rf "$work"' EXIT

gsort-gen -n 20000003 -o numbers
gsort-gen -n 3000001 -R 24 -k 4:u32 -d zipf -o records
mpirun -np 2 gsort-mpi --backend=cuda --debug numbers -o ranks 2>&1 | grep '^device: '
agree numbers
agree numbers -u --count
agree numbers --device-memory=64M -S 64M -T .
agree records -R 24 -k 4:u32
agree records -R 24 -k 4:b20 --device-memory=64M -S 64M -T .
rm -f numbers records expected
echo "failed:${failed:- none}"
python3 "$folder/bench_gpus.py" "$folder" --ranks=2 "$@"
[ -z "$failed" ]
