#!/bin/sh
# types - every type in both byte orders and directions, with and without -u, against GNU sort
. "$(dirname "$0")/prelude.sh"

for type in u8 u16 u16be u32 u32be u64 u64be u128 u128be i8 i16 i16be i32 i32be i64 i64be i128 \
	i128be f32 f32be f64 f64be b1 b2 b3 b4 b5 b7 b8 b9 b10 b12 b15 b16; do
	for dist in random few nan; do
		generate -n 3001 -t $type -d $dist --seed=7 -o input
		for flags in '' -r -u '-r -u'; do
			claim "$type $dist"
			oracle $type $flags < input > expected
			gives expected -t $type $flags input
		done
	done
done

claim 'le may be written out'
generate -n 100 -t i32 -o input
oracle i32 < input > expected
gives expected -t i32le input

claim 'u64 is the default'
generate -n 100 -o input
oracle u64 < input > expected
gives expected input

finish
