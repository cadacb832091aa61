#!/bin/sh
# distributions - compare sorts of every data distribution, in memory and spilled, with GNU sort
. "$(dirname "$0")/testlib.sh"

# check_type TYPE: sort `input` in memory, spilled, in passes, with one thread and with -u
check_type() {
	sorted_lines "$1" < input > lines
	print_column 2 < lines > expected
	expect_output expected -t "$1" input
	expect_output expected -t "$1" -S 1M input
	expect_output expected -t "$1" -S 1M --batch-size=2 input
	expect_output expected -t "$1" -S 1M --parallel=1 input
	awk 'NR == 1 || $1 "" != key "" { print; key = $1 }' lines | print_column 2 > unique
	expect_output unique -t "$1" -u input
	expect_output unique -t "$1" -u -S 1M input
}

# Long enough for three runs in 1 MiB of memory, which are merged in two passes.
for dist in random sorted reversed equal two-keys zipf hundred-keys nearly-sorted sawtooth \
	organ-pipe clustered nan; do
	claim "$dist u64"
	generate -n 170001 -d $dist -o input
	check_type u64
done
for type in f32be b13 i128; do
	claim "zipf $type"
	generate -b 1400000 -t $type -d zipf -o input
	check_type $type
done
claim "zipf u8" # an element has 4 bytes
generate -n 400000 -t u8 -d zipf -o input
check_type u8

claim 'all bits 0'
head -c 1400000 /dev/zero > input
check_type u64

claim 'all bits 1'
head -c 1400000 /dev/zero | tr '\0' '\377' > input
check_type u64

claim 'one run with all the small keys'
generate -n 150000 -d sorted -o sorted
tail -c 600000 sorted > input
head -c 600000 sorted >> input
check_type u64

claim 'runs with disjoint ranges, the last first'
tail -c 400000 sorted > input
tail -c 800000 sorted | head -c 400000 >> input
head -c 400000 sorted >> input
check_type u64

claim 'equal in the first 8 bytes'
generate -n 100000 -t b8 -d random | xxd -p -c8 | sed 's/^/0123456789abcdef/' | xxd -r -p > input
check_type b16

finish
