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
		reference_sort $type $flags < input > expected
		expect_output expected -t $type $flags input
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
			expect_exit 0 -t $type $flags input -o output
			"$KEY_LINES" $type < output | cut -d' ' -f1 | cmp -s expected - ||
				fail 'not in order'
			"$GSORT_CHECK" --same-records -t $type input output || fail 'not the same'
			"$GSORT_CHECK" -t $type $flags output > stdout || fail "$(cat stdout)"
			expect_exit 0 -c -t $type $flags output
			reference_sort $type $flags -u < input > expected
			expect_output expected -t $type $flags -u input
			sorted_lines $type $flags < input | print_column 4 > expected
			expect_output expected -t $type $flags --argsort input
			reference_sort $type $flags < input > sorted
			expect_output sorted -m -t $type $flags sorted
		done
	done
done
expect_error ':n cannot follow u64' -t u64:n input
expect_error ':numpy cannot follow u64' -t u64:numpy input
expect_error ':x cannot follow f64' -t f64:x input
expect_error 'use -r, --reverse' -t f64:r input

claim '--fields with one field and -k keep equal floats in input order'
printf '\0\0\0\0\0\0\0\200\0\0\0\0\0\0\0\200' > zeros
expect_output zeros -R 4 -k 0:f32:n zeros
expect_output zeros --fields=a:f32:n zeros
expect_output zeros --fields=a:f32:n -k a zeros
printf '\0\0\0\200\0\0\0\200\0\0\0\0\0\0\0\0' > expected
expect_output expected -t f32:n zeros

claim '--nan puts NaN first or last, whatever the direction'
printf '\0\0\300\177\0\0\200\077\0\0\300\377\0\0\0\100\0\0\200\277' > nans # NaN 1 -NaN 2 -1
print_nans() {
	"$GSORT" -t f32:n "$@" nans | od -An -v -tf4 -w4 | sed 's/-nan/nan/' | tr -d ' ' |
		paste -sd ' ' -
}
expect_nan_order() {
	[ "$(print_nans $2)" = "$1" ] || fail "$2: $(print_nans $2)"
}
expect_nan_order '-1 1 2 nan nan' ''
expect_nan_order 'nan nan 2 1 -1' -r
expect_nan_order 'nan nan -1 1 2' --nan=first
expect_nan_order '-1 1 2 nan nan' --nan=last
expect_nan_order 'nan nan 2 1 -1' '-r --nan=first'
expect_nan_order '2 1 -1 nan nan' '-r --nan=last'
expect_nan_order '2 1' '-r --nan=last --limit=2'
for type in f16 bf16 f32be f64 c64 c128 t64; do
	generate -n 3000 -t $type -d nan -o input
	nbytes=$(($(wc -c < input) / 3000))
	for flags in --nan=first '-r --nan=last'; do
		run -t $type:n $flags input -o output
		"$GSORT_CHECK" -t $type:n $flags output > stdout ||
			fail "$type $flags: $(cat stdout)"
		"$GSORT_CHECK" --same-records -R $nbytes input output ||
			fail "$type $flags: other records"
		run -R $nbytes -k 0:$type:n $flags input -o output # as records, not as encoded keys
		"$GSORT_CHECK" -t $type:n $flags output > stdout ||
			fail "$type $flags: $(cat stdout)"
	done
done
expect_error '--nan requires a key in numpy order' -t f32 --nan=last nans
expect_error 'nan and --split cannot be used together' -t f32:n --nan=last --split=2 nans -o output

claim ':numpy is :n, and :total is :t'
for type in f64 c64 t64; do
	generate -n 10000 -t $type -d nan -o input
	for names in n:numpy t:total; do
		"$GSORT" -t "$type:${names%:*}" input -o expected
		expect_output expected -t "$type:${names#*:}" input
		"$GSORT" -R 16 -k "8:$type:${names%:*}:r" input -o expected
		expect_output expected -R 16 -k "8:$type:${names#*:}:r" input
	done
done

claim 'le may be given'
generate -n 100 -t i32 -o input
reference_sort i32 < input > expected
expect_output expected -t i32le input

claim 'other names mean the same types'
# expect_same_order NAME TYPE: both names give the same order
expect_same_order() {
	generate -n 500 -t "$2" -d nan --seed=3 -o input
	reference_sort "$2" < input > expected
	expect_output expected -t "$1" input
}
expect_same_order double f64
expect_same_order float32 f32
expect_same_order half f16
expect_same_order bfloat16 bf16
expect_same_order uint64_t u64
expect_same_order int16be i16be
expect_same_order '<f4' f32
expect_same_order '>i8' i64be
expect_same_order '|u1' u8
expect_same_order byte i8
for pair in 'signed char:i8' __int128:i128 intp:i64 uintp:u64 uintc:u32 intc:i32 int_:i64 \
	float_:f64 time_t:i64 'unsigned long long:u64' ubyte:u8 single:f32; do
	expect_same_order "${pair%:*}" "${pair#*:}"
done
expect_same_order '|b1' bool
expect_same_order '<M8[ns]' t64
expect_same_order timedelta64 t64
expect_same_order datetime64:t t64:t
expect_same_order complex128 c128
expect_same_order '>c8' c64be
expect_same_order S10 b10

claim 'a misspelled type gives a suggestion'
# expect_suggestion WRONG RIGHT: the message for WRONG suggests RIGHT
expect_suggestion() {
	expect_error "^gsort: -t, --type: unknown type '$1'; did you mean $2[?]$" -t "$1" input
}
expect_suggestion u63 u64
expect_suggestion f65 f64
expect_suggestion F32 f32
expect_suggestion u4 u32
expect_suggestion i2be i16be
expect_suggestion flaot32 f32
expect_suggestion doubel f64
expect_suggestion unit8_t u8
expect_suggestion u32LE u32le
expect_suggestion i1 i8
expect_suggestion u6 u64
expect_suggestion u7 u8
expect_suggestion bol bool
# Names that are similar in letters but not in meaning: <f16 has 16 bytes, and float128 is not half.
for type in float128 '<f16' '>f16' U4 bytes8 bytes byts tsize_t uint complex256 f80 f128 \
	f24 t32 c32 u136 uchar wchar intx sint8; do
	expect_error "unknown type '$type'; use u8.*c64, c128, t64" -t "$type" input
done
expect_error "unknown type 'xyz'; use u8" -t xyz input
expect_error "unknown type 'u12'; did you mean u96[?]" -R 12 -k 0:u12 input

claim 'u64 is the default'
generate -n 100 -o input
reference_sort u64 < input > expected
expect_output expected input

finish
