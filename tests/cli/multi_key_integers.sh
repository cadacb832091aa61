#!/bin/sh
# multi_key_integers - sort records that consist of several keys, such as the edges of a graph
#
# gsort sorts them as encoded keys, like numbers. With one redundant key more it sorts them as
# records. Both outputs must be equal, and must be those of GNU sort.
. "$(dirname "$0")/testlib.sh"

# in_every_way ARGUMENT...: in memory, spilled, in several passes, and from a pipe
in_every_way() {
	gives expected $options "$@" input
	gives expected $options -S 1M "$@" input
	gives expected $options -S 1M --batch-size=2 --temp-compress=none "$@" input
	cat input | gives expected $options -S 2M "$@" -
}

# the_same ARGUMENT...: encoded keys and records give the same output
the_same() {
	succeeds -o expected $options -k 0:u8 "$@"
	succeeds -o output $options "$@"
	same expected output "gsort $options $*"
}

check_keys() {
	spec="$size $*"
	options="-R $size"
	for key; do
		options="$options -k $key"
	done
	run --debug $options -o output input
	says 'sorted as an encoded key in an element' stderr
	sorted_lines "$spec" < input > lines
	column 2 < lines > expected
	in_every_way
	gives expected $options --verify --limit=100000000 input
	cp expected sorted
	head -c $((77 * size)) sorted > expected
	gives expected $options --limit=77 input
	sorted_lines "$spec" -u < input | column 2 > expected
	in_every_way -u
	sorted_lines "$spec" -u < input | column 3 > expected
	gives expected $options -u --keys-only -S 1M input
	column 4 < lines > expected
	gives expected $options --argsort input
	column 3 < lines > expected
	gives expected $options --keys-only input
	the_same -u --count input
	the_same -r input
}

check_merge() {
	head -c $((size * 20001)) input > one
	tail -c +$((size * 20001 + 1)) input > two
	for part in one two; do
		succeeds -o "$part" $options "$part"
	done
	cp sorted expected
	gives expected $options -m one two
	gives expected $options -m -S 1M one two
	the_same -m -u one two
	the_same -m --argsort one two
	run -c $options sorted
	[ $status -eq 0 ] || broken "-c $options of what is sorted: status $status"
	run -c $options input
	[ $status -eq 1 ] || broken "-c $options of what is not sorted: status $status"
	"$GSORT_CHECK" $options sorted > found || broken "gsort-check $options: status $?"
	"$GSORT_CHECK" $options --same-records input sorted > found 2>&1 ||
		broken "gsort-check --same-records: status $?"
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
	says 'sorted as (its encoded key|the first)' stderr
done

finish
