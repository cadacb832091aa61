#!/bin/sh
# random_scalars - compare sorts of random types, data and options with GNU sort
#
# random_config.sh describes the variables that repeat a run or make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"
. "$(dirname "$0")/random_io.sh"

echo "GSORT_SEED=$seed"

round=0
while more_rounds $round; do
	pick u8 u16be u32 u64 u64be u128 i8 i16 i32be i64 i128 i128be f32 f32be f64 b1 b3 b7 b9 \
		b16 f16 bf16be u24 i56be i72
	type=$picked
	pick random sorted reversed equal two-keys zipf hundred-keys nearly-sorted sawtooth \
		organ-pipe clustered nan
	data="-d $picked"
	pick 1 100 10000 100000 300000
	pick_below "$picked"
	n=$picked
	pick '' '' -r
	reverse=$picked
	spec=$type
	sort_flags=$reverse
	nbytes_of_type "$type"
	size=$nbytes keys_nbytes=$nbytes
	order_of_type "$type"
	options="-t $type $reverse"
	pick_resources
	pick_shape
	pick_mode
	generate_inputs "$n" $data -t $type
	run_mode
	round=$((round + 1))
done
echo "$round rounds"

finish
