#!/bin/sh
# bench_gpu_files.sh - time sorts of whole files on a GPU against the CPU, numpy, cupy and cp
#
# usage: sh tools/scripts/bench_gpu_files.sh PROGRAMS [DIRECTORY [GIB [RECORDS]]]
#
# PROGRAMS is the directory of gsort, gsort-gen and gsort-check. Files are written to DIRECTORY
# (default: here). Inputs are in the page cache. Prints medians of three rounds:
#  - GIB GiB (default: 8) of u64: cp, gsort on the GPU and on the CPU, and numpy and cupy if
#    python3 has them (one round);
#  - files of GIB GiB of u64 and of u32, sorted in 1 GiB of host memory and 1 GiB of device memory,
#    with the modes of --temp-compress;
#  - RECORDS records (default: 100 million, 10 GB) of the sort benchmark, sorted and checked;
#  - GPU and CPU times from 16 MiB to 2 GiB, for the size at which --backend=auto chooses the GPU.
# A GIB or RECORDS of 0 skips that part.
set -eu
PATH=$(cd "$1" && pwd):$PATH
cd "${2:-.}"
gib=${3:-8}
n_records=${4:-100000000}

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# timed NAME COMMAND...: append the milliseconds that the command takes to times.NAME
timed() {
	name=$1
	shift
	begin=$(now_ms)
	timeout 120 "$@"
	echo $(($(now_ms) - begin)) >> "times.$name"
	rm -f out
}

median() {
	sort -n "times.$1" | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

report() {
	printf '%-24s %8d ms  %6.2f x cp\n' "$1" "$(median "$1")" \
		"$(echo "$(median "$1") $(median cp)" | awk '{ print $1 / $2 }')"
}

with_python() {
	python3 -c "
import numpy, $1 as m
a = m.asarray(numpy.fromfile('in', dtype=numpy.uint64))
a.sort()
(a.get() if hasattr(a, 'get') else a).tofile('out')"
}

plain_keys() {
	rm -f times.*
	gsort-gen -b "${gib}G" -o in
	cat in > /dev/null
	for round in 1 2 3; do
		timed cp cp in out
		timed gsort-cuda gsort --backend=cuda in -o out
		timed gsort-cpu gsort --backend=cpu in -o out
	done
	for module in numpy cupy; do
		if python3 -c "import $module" 2> /dev/null; then
			begin=$(now_ms)
			with_python $module
			echo $(($(now_ms) - begin)) > times.$module
			rm -f out
		fi
	done
	gsort --backend=cuda in -o out --stats --trace=trace.json
	gsort-check out > /dev/null
	gsort-check --same-records in out
	rm -f in out
	echo "$gib GiB of random u64, file to file"
	for name in cp gsort-cuda gsort-cpu numpy cupy; do
		[ ! -e "times.$name" ] || report "$name"
	done
}

# spilled TYPE: time spilled sorts with and without compression. The two --stats tables show the
# bytes that are copied between host and device.
spilled() {
	rm -f times.*
	gsort-gen -t "$1" -b "${gib}G" -o in
	cat in > /dev/null
	limits='-S 1G --device-memory=1G -T .'
	for round in 1 2 3; do
		timed cp cp in out
		# shellcheck disable=SC2086
		for mode in none delta auto; do
			timed $mode gsort --backend=cuda -t "$1" $limits --temp-compress=$mode \
				in -o out
		done
	done
	# shellcheck disable=SC2086
	for mode in none delta; do
		gsort --backend=cuda -t "$1" $limits --temp-compress=$mode in -o out --stats
		gsort-check -t "$1" out > /dev/null
		gsort-check -t "$1" --same-records in out
	done
	rm -f in out
	echo "$gib GiB of random $1, spilled: --temp-compress"
	for name in cp none delta auto; do
		report "$name"
	done
}

sort_benchmark() {
	rm -f times.*
	gsort-gen --gensort=binary -n "$n_records" -o in
	cat in > /dev/null
	for round in 1 2 3; do
		timed cp cp in out
		timed gsort-cuda gsort --backend=cuda -R100 -k0:b10 in -o out
	done
	timed gsort-cpu gsort --backend=cpu -R100 -k0:b10 in -o out
	gsort --backend=cuda -R100 -k0:b10 in -o out --stats
	gsort-check -R100 -k0:b10 in || true
	gsort-check -R100 -k0:b10 out
	rm -f in out
	echo "$n_records records of the sort benchmark, file to file"
	for name in cp gsort-cuda gsort-cpu; do
		report "$name"
	done
}

if [ "$gib" != 0 ]; then
	plain_keys
	spilled u64
	spilled u32
fi
[ "$n_records" = 0 ] || sort_benchmark

echo 'crossover: GPU and CPU, milliseconds'
for mib in 16 64 128 256 512 1024 2048; do
	rm -f times.cuda times.cpu
	gsort-gen -b ${mib}M -o in
	for round in 1 2 3; do
		timed cuda gsort --backend=cuda in -o out
		timed cpu gsort --backend=cpu in -o out
	done
	printf '%6d MiB  %6d  %6d\n' $mib "$(median cuda)" "$(median cpu)"
done
rm -f in times.*
