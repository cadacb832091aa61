#!/bin/sh
# multi_key_integers - sort records that consist of several keys, such as the edges of a graph
#
# gsort sorts them as encoded keys, like numbers. With one redundant key more it sorts them as
# records. Both outputs must be equal, and must be those of GNU sort.
. "$(dirname "$0")/testlib.sh"

# expect_output_in_all_modes ARGUMENT...: in memory, spilled, in several passes, and from a pipe
expect_output_in_all_modes() {
	expect_output expected $options "$@" input
	expect_output expected $options -S 1M "$@" input
	expect_output expected $options -S 1M --batch-size=2 --temp-compress=none "$@" input
	cat input | expect_output expected $options -S 2M "$@" -
}

# compare_layouts ARGUMENT...: encoded keys and records give the same output
compare_layouts() {
	expect_success -o expected $options -k 0:u8 "$@"
	expect_success -o output $options "$@"
	expect_same expected output "gsort $options $*"
}

check_keys() {
	spec="$size $*"
	options="-R $size"
	for key; do
		options="$options -k $key"
	done
	run --debug $options -o output input
	expect_line 'sorted as an encoded key in an element' stderr
	sorted_lines "$spec" < input > lines
	print_column 2 < lines > expected
	expect_output_in_all_modes
	expect_output expected $options --verify --limit=100000000 input
	cp expected sorted
	head -c $((77 * size)) sorted > expected
	expect_output expected $options --limit=77 input
	sorted_lines "$spec" -u < input | print_column 2 > expected
	expect_output_in_all_modes -u
	sorted_lines "$spec" -u < input | print_column 3 > expected
	expect_output expected $options -u --keys-only -S 1M input
	print_column 4 < lines > expected
	expect_output expected $options --argsort input
	print_column 3 < lines > expected
	expect_output expected $options --keys-only input
	compare_layouts -u --count input
	compare_layouts -r input
}

check_merge() {
	head -c $((size * 20001)) input > one
	tail -c +$((size * 20001 + 1)) input > two
	for part in one two; do
		expect_success -o "$part" $options "$part"
	done
	cp sorted expected
	expect_output expected $options -m one two
	expect_output expected $options -m -S 1M one two
	compare_layouts -m -u one two
	compare_layouts -m --argsort one two
	expect_exit 0 -c $options sorted
	expect_exit 1 -c $options input
	"$GSORT_CHECK" $options sorted > found || fail "gsort-check $options: status $?"
	"$GSORT_CHECK" $options --same-records input sorted > found 2>&1 ||
		fail "gsort-check --same-records: status $?"
}

# Each line: SIZE DISTRIBUTION KEY...
while read -r size dist keys; do
	claim "records of $size bytes, keys $keys"
	generate -R "$size" -n 60001 -d "$dist" $(printf -- '-k %s ' $keys) -o input
	check_keys $keys
	check_merge
done << 'END'
8 random 0:u32 4:u32
8 hundred-keys 4:u32be 0:i32:r
3 random 1:u16be:r 0:u8
12 nan 8:f32be:r 0:f64
16 hundred-keys 8:u64 0:i64:r
16 nan 2:f64 0:f16 10:f32 14:i16be
END

claim 'keys that do not cover the record are sorted as records'
generate -R 8 -n 100 -o input
for keys in '-k 0:u32 -k 5:u16' '-k 0:u32 -k 0:u32' '-k 0:u32 -k 4:u32 -k 0:u8'; do
	run --debug -R 8 $keys -o output input
	expect_line 'sorted as (its encoded key|the first)' stderr
done

finish
