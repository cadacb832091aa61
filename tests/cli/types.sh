#!/bin/sh
# types - compare sorts of every type, byte order and direction, with and without -u, with GNU sort
. "$(dirname "$0")/testlib.sh"

for type in u8 u16 u16be u32 u32be u64 u64be u128 u128be i8 i16 i16be i32 i32be i64 i64be i128 \
	i128be f16 f16be bf16 bf16be f32 f32be f64 f64be bool u24 u40be u72 i24be i56 i120be \
	b1 b2 b3 b4 b5 b7 b8 b9 b10 b12 b15 b16; do
	for dist in random hundred-keys nan; do
		generate -n 1001 -t $type -d $dist --seed=7
	done > input
	for flags in '' -r -u '-r -u'; do
		claim "$type"
		oracle $type $flags < input > expected
		gives expected -t $type $flags input
	done
done

# Sorts of encoded keys may reorder equal numbers with different bytes, so compare keys.
claim 'numbers in the order of numpy'
for type in f16:n bf16be:n f32be:n f64:n t64 c64:n c128be:n; do
	for dist in hundred-keys nan; do
		generate -n 1001 -t $type -d $dist --seed=7 -o input
		for flags in '' -r; do
			claim "$type $dist $flags"
			sorted_lines $type $flags < input | cut -d' ' -f1 > expected
			run -t $type $flags input -o output
			[ $status -eq 0 ] || broken "status $status"
			"$KEY_LINES" $type < output | cut -d' ' -f1 | cmp -s expected - ||
				broken 'not in order'
			"$GSORT_CHECK" --same-records -t $type input output || broken 'not the same'
			"$GSORT_CHECK" -t $type $flags output > stdout || broken "$(cat stdout)"
			run -c -t $type $flags output
			[ $status -eq 0 ] || broken "-c: status $status"
			oracle $type $flags -u < input > expected
			gives expected -t $type $flags -u input
			sorted_lines $type $flags < input | column 4 > expected
			gives expected -t $type $flags --argsort input
			oracle $type $flags < input > sorted
			gives sorted -m -t $type $flags sorted
		done
	done
done
refuses ':n cannot follow u64' -t u64:n input
refuses ':numpy cannot follow u64' -t u64:numpy input
refuses ':x cannot follow f64' -t f64:x input
refuses 'use -r, --reverse' -t f64:r input

claim '--fields with one field and -k keep equal floats in input order'
printf '\0\0\0\0\0\0\0\200\0\0\0\0\0\0\0\200' > zeros
gives zeros -R 4 -k 0:f32:n zeros
gives zeros --fields=a:f32:n zeros
gives zeros --fields=a:f32:n -k a zeros
printf '\0\0\0\200\0\0\0\200\0\0\0\0\0\0\0\0' > expected
gives expected -t f32:n zeros

claim '--nan puts NaN first or last, whatever the direction'
printf '\0\0\300\177\0\0\200\077\0\0\300\377\0\0\0\100\0\0\200\277' > nans # NaN 1 -NaN 2 -1
numbers() {
	"$GSORT" -t f32:n "$@" nans | od -An -v -tf4 -w4 | sed 's/-nan/nan/' | tr -d ' ' |
		paste -sd ' ' -
}
nan_order() {
	[ "$(numbers $2)" = "$1" ] || broken "$2: $(numbers $2)"
}
nan_order '-1 1 2 nan nan' ''
nan_order 'nan nan 2 1 -1' -r
nan_order 'nan nan -1 1 2' --nan=first
nan_order '-1 1 2 nan nan' --nan=last
nan_order 'nan nan 2 1 -1' '-r --nan=first'
nan_order '2 1 -1 nan nan' '-r --nan=last'
nan_order '2 1' '-r --nan=last --limit=2'
for type in f16 bf16 f32be f64 c64 c128 t64; do
	generate -n 3000 -t $type -d nan -o input
	nbytes=$(($(wc -c < input) / 3000))
	for flags in --nan=first '-r --nan=last'; do
		run -t $type:n $flags input -o output
		"$GSORT_CHECK" -t $type:n $flags output > stdout ||
			broken "$type $flags: $(cat stdout)"
		"$GSORT_CHECK" --same-records -R $nbytes input output ||
			broken "$type $flags: other records"
		run -R $nbytes -k 0:$type:n $flags input -o output # as records, not as encoded keys
		"$GSORT_CHECK" -t $type:n $flags output > stdout ||
			broken "$type $flags: $(cat stdout)"
	done
done
refuses '--nan requires a key in numpy order' -t f32 --nan=last nans
refuses 'nan and --split cannot be used together' -t f32:n --nan=last --split=2 nans -o output

claim ':numpy is :n, and :total is :t'
for type in f64 c64 t64; do
	generate -n 10000 -t $type -d nan -o input
	for names in n:numpy t:total; do
		"$GSORT" -t "$type:${names%:*}" input -o expected
		gives expected -t "$type:${names#*:}" input
		"$GSORT" -R 16 -k "8:$type:${names%:*}:r" input -o expected
		gives expected -R 16 -k "8:$type:${names#*:}:r" input
	done
done

claim 'le may be given'
generate -n 100 -t i32 -o input
oracle i32 < input > expected
gives expected -t i32le input

claim 'other names mean the same types'
# means NAME TYPE: both names give the same order
means() {
	generate -n 500 -t "$2" -d nan --seed=3 -o input
	oracle "$2" < input > expected
	gives expected -t "$1" input
}
means double f64
means float32 f32
means half f16
means bfloat16 bf16
means uint64_t u64
means int16be i16be
means '<f4' f32
means '>i8' i64be
means '|u1' u8
means byte i8
for pair in 'signed char:i8' __int128:i128 intp:i64 uintp:u64 uintc:u32 intc:i32 int_:i64 \
	float_:f64 time_t:i64 'unsigned long long:u64' ubyte:u8 single:f32; do
	means "${pair%:*}" "${pair#*:}"
done
means '|b1' bool
means '<M8[ns]' t64
means timedelta64 t64
means datetime64:t t64:t
means complex128 c128
means '>c8' c64be
means S10 b10

claim 'a misspelled type gives a suggestion'
# near WRONG RIGHT: the message for WRONG suggests RIGHT
near() {
	refuses "^gsort: -t, --type: unknown type '$1'; did you mean $2[?]$" -t "$1" input
}
near u63 u64
near f65 f64
near F32 f32
near u4 u32
near i2be i16be
near flaot32 f32
near doubel f64
near unit8_t u8
near u32LE u32le
near i1 i8
near u7 u8
near bol bool
# Names that are similar in letters but not in meaning: <f16 has 16 bytes, and float128 is not half.
for type in float128 '<f16' '>f16' U4 bytes8 bytes byts tsize_t uint complex256 f80 f128 \
	f24 t32 c32 u136 uchar wchar intx sint8; do
	refuses "unknown type '$type'; use u8.*c64, c128, t64" -t "$type" input
done
refuses "unknown type 'xyz'; use u8" -t xyz input
refuses "unknown type 'u12'; did you mean u96[?]" -R 12 -k 0:u12 input

claim 'u64 is the default'
generate -n 100 -o input
oracle u64 < input > expected
gives expected input

finish
