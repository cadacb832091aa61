#!/bin/sh
# boundary_sizes - sort inputs around the sizes of a record, a block, a chunk and a spill
. "$(dirname "$0")/testlib.sh"

# Small inputs: compare with GNU sort, in memory and through pipes.
for n in 0 1 2 3 255 256 257 511 512 513 8191 8192 8193 65537; do
	for type in u64 b3; do
		claim "$n records of $type"
		generate -n $n -t $type --seed=$n -o input
		reference_sort $type < input > expected
		expect_output expected -t $type input
		expect_output expected -t $type -S 1M input
		"$GSORT" -t $type < input > output 2> stderr || fail "status $? through a pipe"
		expect_same expected output "through a pipe"
	done
done

# Large inputs: check order and digest. Chunks are powers of two, or fractions of -S or the input.
for n in 131071 131072 131073 262143 262145 524287 524288 524289 1000003 2097153; do
	for size in 1M 3M 5000K 64M; do
		claim "$n records, -S $size"
		generate -n $n --seed=$n -o input
		expect_success -S $size input -o output
		"$GSORT_CHECK" output > stdout || fail "not sorted: $(cat stdout)"
		"$GSORT_CHECK" --same-records output input > stdout || fail "$(cat stdout)"
	done
done

finish
