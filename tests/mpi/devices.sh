#!/bin/sh
# devices - the ranks of a host share its devices; the output does not depend on them
#
# GSORT_MPI_TWO_DEVICES emulates two devices (tests/cli/gsort_two_devices.c).
. "$(dirname "$0")/testlib.sh"

GSORT_MPI=$GSORT_MPI_TWO_DEVICES

# expect_devices DEVICE...: the last ranks used these devices
expect_devices() {
	printf '%s\n' "$@" > expected_devices
	sed -n 's/^device: rank [0-9]*, on [^:]*: //p' stderr > devices
	cmp -s expected_devices devices || fail "not $*, but $(tr '\n' ',' < devices)"
}

# check_statistics: JSON and table of the statistics name the same devices
check_statistics() {
	sed -n 's/.*"device": "\([^"]*\)".*/\1/p' json > told
	cmp -s expected_devices told || fail "JSON: $(tr '\n' ',' < told)"
	sed -n 's/^  [0-9].* s  [^,]*, //p' stderr > told
	cmp -s expected_devices told || fail "table: $(tr '\n' ',' < told)"
}

generate -n 200000 -t u64 -o random
generate -n 20000 -R 24 -k 3:b10 -d hundred-keys -o records

claim "each of two ranks has a device, and merges spilled runs"
compare_with_gsort 2 -S 2M --temp-limit=1G random --debug
expect_devices 'a device apart (0)' 'a device apart (1)'

claim "several ranks share a device without mixing memories"
compare_with_gsort 3 -R 24 -k 3:b10 records --argsort --debug
expect_devices 'a device apart (0)' 'a device apart (0)' 'a device apart (1)'

claim "a list of devices is divided, and a rank can have several"
run -u random -o expected
run_ranks 2 --gpus=1,0,0 --device-memory=1M -u random -o out/x --debug --stats --stats-json=json
expect_rank_output 'a list'
expect_devices 'a device apart (1)' '2 x a device apart (0, 0)'
check_statistics

claim "ranks with and without a device write the same output"
run -S 4M random -o expected
launch -np 1 "$GSORT_MPI" --debug -S 4M random -o out/x : \
	-np 1 "$GSORT_MPI" --debug --backend=cpu --parallel=2 -S 4M random -o out/x : \
	-np 1 "$GSORT_MPI" --debug -S 2M random -o out/x
expect_rank_output 'with and without'
expect_devices 'a device apart (0)' 'CPU, 2 threads' 'a device apart (1)'

claim "the plan of ranks uses the devices of each"
run_ranks 2 --explain --gpus=all random -o out/x
grep -q 'a device apart (0)' stdout || fail "--explain: $(grep -m1 apart stdout)"
run_ranks 2 --explain --gpus=1,0,1,0 random -o out/x
grep -q '2 x a device apart (1, 0)' stdout || fail "--gpus: $(grep -m1 apart stdout)"
finish
