#!/bin/sh
# random - random types, data, memory, widths and ways in and out, against GNU sort
#
# What pick.sh says makes it longer, or repeats it.
. "$(dirname "$0")/prelude.sh"
. "$(dirname "$0")/pick.sh"

echo "GSORT_SEED=$seed"

round=0
while go_on $round; do
	pick u8 u16be u32 u64 u64be u128 i8 i16 i32be i64 i128 i128be f32 f32be f64 b1 b3 b7 b9 b16
	type=$picked
	pick random sorted reversed equal two zipf few nearly sawtooth organ gaps nan
	dist=$picked
	pick 1 100 10000 100000 300000
	below "$picked"
	n=$picked
	pick '' '' -r
	flags=$picked
	pick '' '' -u
	flags="$flags $picked"
	pick_resources
	options=$resources
	pick '' '' --verify
	verify=$picked
	pick file in-place pipe-in pipe-out several merge
	way=$picked

	claim "seed $seed round $round: -n $n -d $dist -t $type $flags $options $verify $way"
	generate -n "$n" -d $dist -t $type --seed=$round -o input
	oracle $type $flags < input > expected
	options="-t $type $flags $options"
	rm -f output
	case $way in
	file)
		gives expected $options $verify input
		;;
	in-place)
		succeeds $options $verify input -o input
		same expected input "$way"
		;;
	pipe-in)
		cat input | gives expected $options $verify -
		;;
	pipe-out)
		"$GSORT" $options input 2> stderr | cat > output
		same expected output "$way"
		;;
	several | merge)
		generate -n 5000 -d $dist -t $type --seed=1$round -o more
		cat input more | oracle $type $flags > expected
		if [ $way = merge ]; then
			"$GSORT" $options input -o input
			"$GSORT" $options more -o more
			options="-m $options"
		fi
		gives expected $options $verify input more
		;;
	esac
	round=$((round + 1))
done
echo "$round rounds"

finish
