#!/bin/sh
# codecs - the result does not depend on the codec of runs
. "$(dirname "$0")/testlib.sh"

modes='none delta zstd zstd:1 zstd:7 auto'

# expect_output_in_all_modes EXPECTED ARGUMENT...: sort with each --temp-compress mode
expect_output_in_all_modes() {
	every_expected=$1
	shift
	for mode in $modes; do
		expect_output "$every_expected" --temp-compress=$mode "$@"
	done
}

claim 'every mode gives the same bytes, for every element size'
for type in u8 u16 u32be f64 u128 b12; do
	generate -n 250000 -t $type -o input
	"$GSORT" -t $type -S 64M input -o expected
	"$GSORT_CHECK" -t $type expected > /dev/null || fail "$type: not sorted in memory"
	expect_output_in_all_modes expected -t $type -S 1M input
done

claim 'several passes, duplicates dropped, descending'
generate -n 400000 -t u32 -d zipf -o input
for options in --batch-size=2 -u -r; do
	"$GSORT" -t u32 -S 64M $options input -o expected
	expect_output_in_all_modes expected -t u32 -S 1M $options input
done

claim 'keys that cannot be compressed'
generate -n 200000 -t u128 -o input
"$GSORT" -t u128 -S 64M input -o expected
expect_output_in_all_modes expected -t u128 -S 1M input

claim 'pipes that are merged are spilled'
generate -n 200000 -o first
generate -n 200000 --seed=2 -o second
"$GSORT" first -o sorted_first
"$GSORT" second -o sorted_second
"$GSORT" first second -o expected
for mode in $modes; do
	cat sorted_second | expect_output expected -m --temp-compress=$mode sorted_first -
done

# measure_spill_ratio ARGUMENT...: sort, and set $percent to the stored part of the spilled bytes
measure_spill_ratio() {
	expect_exit 0 --stats-json=stats -o output "$@"
	percent=$(sed -n 's/.*"spill_ratio_percent": \([0-9]*\).*/\1/p' stats)
}

claim 'delta compresses numbers, and the statistics contain the ratio'
generate -n 8000000 -t u32 -o input
measure_spill_ratio -t u32 -S 16M --temp-compress=delta input
[ "$percent" -le 50 ] || fail "$percent % stored of runs of 2^20 keys and more"
expect_line '"codec": "delta"' stats
measure_spill_ratio -t u32 -S 16M --temp-compress=none input
[ "$percent" -eq 100 ] || fail "$percent % stored"
expect_line '"codec": "raw"' stats
measure_spill_ratio -t u32 -S 16M --temp-compress=zstd:1 input
[ "$percent" -le 90 ] || fail "$percent % stored"
expect_line '"codec": "zstd"' stats
run -t u32 -S 16M --temp-compress=delta --stats input -o output
expect_line '^spilled: .* with delta$' stderr

claim 'unknown modes are refused'
for mode in '' delta:1 zstd: zstd:0 zstd:23 zstd:1x lz4; do
	expect_error '--temp-compress' --temp-compress="$mode" input
done

finish
