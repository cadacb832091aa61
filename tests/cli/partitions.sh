#!/bin/sh
# partitions - the output does not depend on the number of partitions of the merge
. "$(dirname "$0")/testlib.sh"

# expect_partitions N ARGUMENT...: the sort merges N partitions
expect_partitions() {
	expected_partitions=$1
	shift
	"$GSORT" --parallel=2 --stats "$@" 2> stderr || fail "gsort $*: status $?"
	grep -q "; partitions: $expected_partitions;" stderr ||
		fail "gsort $*: $(grep -o 'partitions: [0-9]*' stderr), not $expected_partitions"
	expect_no_temp_files "gsort $*"
}

# compare_with_one_partition ARGUMENT...: three partitions give the same output as one
compare_with_one_partition() {
	"$GSORT" "$@" -o expected 2> stderr || fail "gsort $*: status $?"
	expect_partitions 3 --partitions=3 "$@" -o output
	expect_same expected output "gsort $*"
}

generate -n 300000 -t u64 -d hundred-keys -o few
generate -n 100000 -R 24 -k 3:b10 -d hundred-keys -o records
generate -n 60000 -R 60 -k 0:b40 --prefix=10 -o long
generate -n 60000 -R 60 -k 0:b40 --prefix=20 -o alike
for options in "few" "-r few" "-S 5M --temp-compress=none few" "-S 8M --temp-compress=delta few" \
	"-t f32 few" "-R 24 -k 3:b10 records" "-R 24 -k 3:b10 -S 9M records" \
	"-R 24 -k 3:b10 --argsort records" "-R 24 -k 3:b10 --keys-only records" \
	"-R 60 -k 0:b40 -S 6M long" "--skip-bytes=16 --verify few"; do
	claim "partitions of a sort: $options"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	compare_with_one_partition $options
done

claim "partitions of a checkpoint begin at the first record of a key"
compare_with_one_partition --checkpoint=kept few
compare_with_one_partition --checkpoint=kept -S 5M --temp-compress=none few
compare_with_one_partition --checkpoint=kept --verify -R 24 -k 3:b10 -S 9M records
compare_with_one_partition --checkpoint=kept -R 24 -k 3:b10 -S 9M --argsort records
expect_partitions 1 --partitions=3 --checkpoint=kept -R 60 -k 0:b40 -S 6M alike -o output

claim "partitions end where a limit does"
# check_limit HEADER SIZE N ARGUMENT...: --limit=N gives the header and the first N records of SIZE
# bytes
check_limit() {
	n=$3 nbytes=$(($1 + $2 * $3))
	shift 3
	"$GSORT" "$@" -o whole
	head -c $nbytes whole > expected
	expect_partitions 3 --partitions=3 --limit="$n" "$@" -o output
	expect_same expected output "--limit=$n $*"
}
check_limit 0 8 299999 few
check_limit 0 8 250000 -S 12M --temp-compress=none few
check_limit 16 8 280000 --skip-bytes=16 --verify few
check_limit 0 24 90001 -r -R 24 -k 3:b10 -S 9M records
check_limit 0 8 99999 -R 24 -k 3:b10 --argsort records

claim "partitions of a merge"
for i in 0 1; do
	generate -n 100000 -R 24 -k 3:b10 -d hundred-keys --seed=$i -o part
	"$GSORT" -R 24 -k 3:b10 part -o sorted$i
done
compare_with_one_partition -m -S 256M -R 24 -k 3:b10 sorted0 sorted1 sorted0

claim "one partition if the known prefixes of keys are equal"
expect_partitions 1 --partitions=3 -R 60 -k 0:b40 alike -o output

claim "one partition if output positions are not known before the merge"
expect_partitions 1 --partitions=3 -u few -o output
expect_partitions 1 --partitions=3 --limit=10 few -o output
expect_partitions 1 --partitions=3 --zstd few -o output
expect_partitions 1 --partitions=3 few | cat > output

claim "a sort from a pipe to an open file may map its output"
generate -b 24M -t u64 -o many
"$GSORT" many -o expected
cat many | expect_partitions 4 --partitions=4 > output
expect_same expected output "from a pipe"
grep -q '^written: .* [1-9][0-9.]* .iB mmap' stderr || fail "$(grep ^written stderr)"

claim "a failed sort from a pipe leaves no data in an open file"
if (ulimit -f 40000 && cat many | "$GSORT" > output) 2> stderr; then
	fail "status 0"
fi
[ ! -s output ] || fail "$(wc -c < output) bytes are left"

claim "partitions of outputs that can be written in any order"
expect_partitions 3 --partitions=3 few -o /dev/null
expect_partitions 3 --partitions=3 few > /dev/null

claim "a merge of an unsorted file names the record, in any partition"
generate -n 100000 -t u64 -d sorted -o sorted
for at in 1 33333 50000 66666 99999; do
	cp sorted unsorted
	printf '\0\0\0\0\0\0\0\0' | dd of=unsorted bs=8 seek=$at conv=notrunc 2> /dev/null
	expect_error "unsorted: record $((at + 1)): disorder" -m --partitions=4 unsorted sorted \
		-o output
done

finish
