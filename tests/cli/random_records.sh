#!/bin/sh
# random_records - compare sorts of random records, keys, data and options with GNU sort
#
# random_config.sh describes the variables that repeat a run or make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"
. "$(dirname "$0")/random_io.sh"

echo "GSORT_SEED=$seed"

# pick_key SIZE: set $key to a key, without direction, in a record of SIZE bytes
pick_key() {
	while :; do
		pick u8 u16 u16be u32 u32be u64 u64be u128 u128be i8 i16 i16be i32 i64be i128 \
			f32 f32be f64 f64be b1 b2 b3 b5 b8 b10 b16 b17 b40 b100 \
			f16be bf16 u24 i40be u72be t64 f32:n f64be:n f16:n c64 c64:n c128be:n
		key_type=$picked
		nbytes_of_type "$key_type"
		[ "$nbytes" -gt "$1" ] || break
	done
	pick_below $(($1 - nbytes + 1))
	key=$picked:$key_type
}

# pick_record: pick size and keys of records, for gsort ($options), key_lines ($spec) and gsort-gen
# ($layout)
pick_record() {
	pick 1 2 3 4 5 8 12 16 24 32 40 64 100 128 200 256 300
	size=$picked
	pick 0 0 1
	[ "$picked" -eq 0 ] || pick_below "$size"
	size=$((size - picked))
	pick '' '' -r
	reverse=$picked
	layout="-R $size"
	spec=$size
	keys=
	keys_nbytes=0
	pick 1 1 2 2 3 4
	n_keys=$picked
	while [ "$n_keys" -gt 0 ]; do
		pick_key "$size"
		pick '' '' :r
		[ -n "$keys" ] || order_of_type "$key_type"
		layout="$layout -k $key"
		keys="$keys -k $key$picked"
		spec="$spec $key${reverse:+:r}"
		[ -n "$reverse" ] || spec="$spec$picked"
		keys_nbytes=$((keys_nbytes + nbytes))
		n_keys=$((n_keys - 1))
	done
	sort_flags= # $spec contains the directions
	options="-R $size$keys $reverse"
}

# pick_data: pick the distribution of keys and the number of records
pick_data() {
	pick random random sorted reversed equal two-keys zipf hundred-keys hundred-keys \
		nearly-sorted sawtooth organ-pipe clustered nan
	data="-d $picked"
	pick 0 0 0 3 8 16 30
	[ "$picked" -le "$keys_nbytes" ] || picked=$keys_nbytes
	data="$data --prefix=$picked"
	pick 1 100 10000 $((2000000 / size)) $((4000000 / size))
	[ "$picked" -lt 200000 ] || picked=200000
	pick_below "$picked"
	n=$picked
}

round=0
while more_rounds $round; do
	pick_record
	pick_data
	pick_resources
	pick_shape
	pick_mode
	generate_inputs "$n" $data $layout
	run_mode
	round=$((round + 1))
done
echo "$round rounds"

for size in 4096 65536; do
	for keys in '0:b10' '5:u32:r 100:i64be' "0:b$size" "$((size - 9)):b9 17:f64:r"; do
		claim "records of $size bytes, keys $keys"
		options="-R $size"
		for key in $keys; do
			options="$options -k $key"
		done
		generate -b 3M -R $size -d random -o input
		generate -b 1M -R $size -k 0:b10 -d hundred-keys -o more
		cat more more >> input
		reference_sort "$size $keys" < input > expected
		expect_output expected $options input
		expect_output expected $options -S 1M input
		expect_output expected $options -S 2M --parallel=1 --batch-size=2 input
		reference_sort "$size $keys" -u < input > expected
		expect_output expected $options -u -S 2M input
	done
done

claim 'keys that are the same for longer than an element holds them'
for keys in '0:b40' '0:b32 32:u64:r' '32:u64 0:b32'; do
	options='-R 48'
	for key in $keys; do
		options="$options -k $key"
	done
	generate -n 60000 -R 48 -k 0:b40 --prefix=31 -d hundred-keys -o input
	reference_sort "48 $keys" < input > expected
	expect_output expected $options input
	expect_output expected $options -S 1M input
	expect_output expected $options -S 1M --batch-size=2 input
	reference_sort "48 $keys" -u < input > expected
	expect_output expected $options -u -S 1M input
done

claim 'zeros of either sign, which are equal, in records that are that key alone'
printf '\0\0\0\200\0\0' > zeros
expect_output zeros -R 2 -k 0:f16:n zeros
expect_output zeros -R 2 -k 0:f16:n --keys-only zeros
expect_output zeros -R 2 -k 0:f16:n -r zeros

finish
