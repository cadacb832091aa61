#!/bin/sh
# devices - ranks of a machine share its devices, and write the same with and without
#
# There are two, which are imitated (tests/cli/gsort_two_devices.c); GSORT_MPI_TWO_DEVICES has them.
. "$(dirname "$0")/testlib.sh"

GSORT_MPI=$GSORT_MPI_TWO_DEVICES

# have DEVICE...: the ranks of the last start had these
have() {
	printf '%s\n' "$@" > expected_devices
	sed -n 's/^device: rank [0-9]*, on [^:]*: //p' stderr > devices
	cmp -s expected_devices devices || broken "not $*, but $(tr '\n' ',' < devices)"
}

# tell_of_it: what the last start told of that in the end, each rank for itself, is the same
tell_of_it() {
	sed -n 's/.*"device": "\([^"]*\)".*/\1/p' json > told
	cmp -s expected_devices told || broken "told are $(tr '\n' ',' < told)"
	sed -n 's/^  [0-9].* s  [^,]*, //p' stderr > told
	cmp -s expected_devices told || broken "in the table are $(tr '\n' ',' < told)"
}

generate -n 200000 -t u64 -o random
generate -n 20000 -R 24 -k 3:b10 -d hundred-keys -o records

claim "each of two ranks has a device, and what they spill is merged"
agrees 2 -S 2M --temp-limit=1G random --debug
have 'a device apart (0)' 'a device apart (1)'

claim "several ranks have the same device, and nobody mixes memories"
agrees 3 -R 24 -k 3:b10 records --argsort --debug
have 'a device apart (0)' 'a device apart (0)' 'a device apart (1)'

claim "a list is shared out, and a rank can have several"
run -u random -o expected
ranks 2 --gpus=1,0,0 --device-memory=1M -u random -o out/x --debug --stats --stats-json=json
as_expected 'a list'
have 'a device apart (1)' '2 x a device apart (0, 0)'
tell_of_it

claim "ranks with a device and without write the same"
run -S 4M random -o expected
launch -np 1 "$GSORT_MPI" --debug -S 4M random -o out/x : \
	-np 1 "$GSORT_MPI" --debug --backend=cpu --parallel=2 -S 4M random -o out/x : \
	-np 1 "$GSORT_MPI" --debug -S 2M random -o out/x
as_expected 'with and without'
have 'a device apart (0)' 'CPU, 2 threads' 'a device apart (1)'

claim "a plan of ranks is that of the devices that each has"
ranks 2 --explain --gpus=all random -o out/x
grep -q 'a device apart (0)' stdout || broken "--explain: $(grep -m1 apart stdout)"
ranks 2 --explain --gpus=1,0,1,0 random -o out/x
grep -q '2 x a device apart (1, 0)' stdout || broken "--gpus: $(grep -m1 apart stdout)"
finish
