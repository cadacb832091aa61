#!/bin/sh
# projections - headers, incomplete records, limits, counts, keys and positions, against GNU sort
. "$(dirname "$0")/testlib.sh"

# expect_output_in_all_modes EXPECTED ARGUMENT...: in memory, spilled, and in several passes with
# one thread
expect_output_in_all_modes() {
	expect_output "$@"
	expect_output "$@" -S 1M
	expect_output "$@" -S 1M --batch-size=2 --parallel=1
}

options='-R 24 -k 4:u16:r -k 10:i32be'
spec='24 4:u16:r 10:i32be'
generate -n 100000 -R 24 -k 4:u16 -k 10:i32be -d zipf -o input
sorted_lines "$spec" < input > lines
print_column 2 < lines > sorted

claim 'the positions of the records'
print_column 4 < lines > expected
expect_output_in_all_modes expected $options --argsort input
sorted_lines "$spec" -u < input | print_column 4 > expected
expect_output_in_all_modes expected $options --argsort -u input
head -c 1200000 input > first
tail -c 1200000 input > second
print_column 4 < lines > expected
expect_output expected $options --argsort first second
cat second | expect_output expected $options --argsort first -
cat input | expect_output expected $options --argsort -S 1M
generate -n 100000 -d hundred-keys -o plain
sorted_lines u64 < plain | print_column 4 > expected
expect_output_in_all_modes expected --argsort plain
sorted_lines u64 -r < plain | print_column 4 > expected
expect_output expected --argsort -r plain

claim 'a merge counts positions through all inputs'
"$GSORT" $options first -o one
"$GSORT" $options second -o two
cat one two | sorted_lines "$spec" | print_column 4 > expected
expect_output_in_all_modes expected -m $options --argsort one two
cat two | expect_output expected -m $options --argsort one -

claim 'the keys without the other bytes'
print_column 3 < lines > expected
expect_output_in_all_modes expected $options --keys-only input
expect_output expected $options --keys-only --verify input
expect_output expected -m $options --keys-only one two
sorted_lines "$spec" -u < input | print_column 3 > expected
expect_output_in_all_modes expected $options --keys-only -u --verify input
reference_sort u64 < plain > expected
expect_output expected --keys-only plain
sorted_lines '24 0:b24' < input | print_column 3 > expected
expect_output expected -R 24 --keys-only input
sorted_lines '24 10:u8' < input | print_column 3 > expected
expect_output_in_all_modes expected -R 24 -k 10:u8 --keys-only input

claim 'the numbers of equal records'
count_equal le 2 < lines > expected
expect_output_in_all_modes expected $options -u --count input
expect_output expected $options -u --count --verify input
expect_output_in_all_modes expected -m $options -u --count one two
cat two | expect_output expected -m $options -u --count one -
count_equal le 3 < lines > expected
expect_output_in_all_modes expected $options -u --count --keys-only --verify input
sorted_lines '24 10:i32be 4:u16' < input | count_equal be 2 > expected
expect_output_in_all_modes expected -R 24 -k 10:i32be -k 4:u16 -u --count input
sorted_lines '24 4:b2' < input | count_equal le 2 > expected
expect_output_in_all_modes expected -R 24 -k 4:b2 -u --count input
sorted_lines u64 < plain | count_equal le 2 > expected
expect_output_in_all_modes expected -u --count plain
head -c 1000000 /dev/zero > equal
sorted_lines u32 < equal | count_equal le 2 > expected
expect_output_in_all_modes expected -t u32 -u --count equal

claim 'the last of equal records'
last_of_equal < lines > kept
print_column 2 < kept > expected
expect_output_in_all_modes expected $options -u --keep=last input
expect_output_in_all_modes expected $options -u --keep=last --verify first second
expect_output_in_all_modes expected $options -u --keep=last -m one two
cat two | expect_output expected $options -u --keep=last -m one -
cat input | "$GSORT" $options -u --keep=last -S 1M | cmp - expected || fail 'from pipe to pipe'
expect_success $options -u --keep=last --split=3 -S 1M input -o directory
cat directory/part-* | cmp - expected || fail 'part files'
rm -rf directory
head -c 2400 expected > limited
expect_output_in_all_modes limited $options -u --keep=last --limit=100 input
print_column 3 < kept > expected
expect_output_in_all_modes expected $options -u --keep=last --keys-only input
print_column 4 < kept > expected
expect_output_in_all_modes expected $options -u --keep=last --argsort input
count_equal le 2 last < lines > expected
expect_output_in_all_modes expected $options -u --keep=last --count input
expect_output_in_all_modes expected $options -u --keep=last --count -m one two
head -c 3200 expected > limited
expect_output limited $options -u --keep=last --count --limit=100 -S 1M input
sorted_lines "$spec" -u < input | print_column 2 > expected
expect_output expected $options -u --keep=first input
reference_sort u64 -u < plain > expected
expect_output_in_all_modes expected -u --keep=last plain
printf '\0\200\0\0' > zeros
printf '\0\0' | expect_output /dev/stdin -t f16:n -u --keep=last zeros
for kept in first last; do
	expect_error '--keep requires -u' --keep=$kept plain
done

claim 'the first records of the result'
for n in 0 1 50000 99999 100000 100001 18446744073709551614; do
	case $n in
	?????????*) cp sorted expected ;;
	*) head -c $((n * 24)) sorted > expected ;;
	esac
	case $n in
	0 | 50000 | 100000) expect_output_in_all_modes expected $options --limit=$n input ;;
	*) expect_output expected $options --limit=$n input ;;
	esac
	expect_output expected $options --limit=$n --verify input
	expect_output expected -m $options --limit=$n one two
	cat input | expect_output expected $options --limit=$n -
	cat one | expect_output expected -m $options --limit=$n - two
done
reference_sort u64 < plain | head -c 800 > expected
expect_output_in_all_modes expected --limit=100 plain
sorted_lines "$spec" -u < input | print_column 2 | head -c 2400 > expected
expect_output_in_all_modes expected $options --limit=100 -u input
count_equal le 2 < lines | head -c 3200 > expected
expect_output_in_all_modes expected $options --limit=100 -u --count input
print_column 4 < lines | head -c 800 > expected
expect_output_in_all_modes expected $options --limit=100 --argsort input
print_column 3 < lines | head -c 600 > expected
expect_output_in_all_modes expected $options --limit=100 --keys-only input
expect_output expected $options --limit=100 --keys-only --verify input

claim 'the header is copied to the output'
printf '%s' 'a header of 27 bytes, so it' > header
cat header input > headed
cat header sorted > expected
expect_output_in_all_modes expected $options --skip-bytes=27 headed
expect_output expected $options --skip-bytes=27 --verify headed
cat headed | expect_output expected $options --skip-bytes=27 -
"$GSORT" $options --skip-bytes=27 headed | cmp - expected || fail 'to a pipe'
cp headed file
expect_success $options --skip-bytes=27 file -o file
expect_same expected file 'in place'
expect_output expected $options --skip-bytes=27 file
expect_success -c $options --skip-bytes=27 file
cat file | "$GSORT" -c $options --skip-bytes=27 - || fail '-c of a pipe'
expect_exit 1 -c $options --skip-bytes=27 headed
cp header empty
expect_output header $options --skip-bytes=27 empty
{ cat header; print_column 4 < lines; } > expected
expect_output expected $options --argsort --skip-bytes=27 headed

claim 'of several inputs, the header of the first is copied'
tr a-z A-Z < header > other
cat header first > one.headed
cat other second > two.headed
cat header sorted > expected
expect_output_in_all_modes expected $options --skip-bytes=27 one.headed two.headed
cat two.headed | expect_output expected $options --skip-bytes=27 one.headed -
cat one.headed | expect_output expected $options --skip-bytes=27 - two.headed
cat header one > one.headed
cat other two > two.headed
expect_output_in_all_modes expected -m $options --skip-bytes=27 one.headed two.headed
cat two.headed | expect_output expected -m $options --skip-bytes=27 one.headed -
cat one.headed | expect_output expected -m $options --skip-bytes=27 - two.headed
mkfifo fifo
cat two.headed > fifo &
cat one.headed | expect_output expected -m $options --skip-bytes=27 - fifo
wait
rm -f fifo

claim 'incomplete last records are kept at the end or dropped'
{ cat first; printf 'first tail'; } > one.tailed
{ cat second; printf 'second'; } > two.tailed
{ cat sorted; printf 'first tailsecond'; } > kept
for how in '--partial=drop sorted' '--partial=keep kept'; do
	expected=${how#* }
	how=${how% *}
	expect_output_in_all_modes $expected $options $how one.tailed two.tailed
	expect_output $expected $options $how --verify one.tailed two.tailed
	cat one.tailed | expect_output $expected $options $how - two.tailed
	cat two.tailed | expect_output $expected $options $how -S 1M one.tailed -
	"$GSORT" $options $how one.tailed two.tailed | cmp - $expected || fail 'to a pipe'
done
{ cat one; printf 'first tail'; } > one.tailed
{ cat two; printf 'second'; } > two.tailed
expect_output_in_all_modes kept -m $options --partial=keep one.tailed two.tailed
cat one.tailed | expect_output kept -m $options --partial=keep - two.tailed
cat two.tailed | expect_output sorted -m $options --partial=drop one.tailed -
printf 'part' > part
expect_output part $options --partial=keep part
expect_success $options --partial=drop part -o output
[ ! -s output ] || fail 'a part of a record was not dropped'
expect_success -c $options --partial=drop one.tailed

claim 'a header and a trailer'
{ cat header input; printf tail; } > both
{ cat header sorted; printf tail; } > expected
expect_output_in_all_modes expected $options --skip-bytes=27 --partial=keep both
cat both | expect_output expected $options --skip-bytes=27 --partial=keep -
expect_success $options --skip-bytes=27 --partial=keep both -o both
expect_same expected both 'in place'

claim 'inputs with other headers or trailers are refused'
expect_error 'part: .*4 bytes.*27.*--skip-bytes' $options --skip-bytes=27 part
expect_error 'part: .*4 bytes.*27.*--skip-bytes' $options --skip-bytes=27 headed part
cat part | expect_error 'standard input: .*4 bytes.*27' $options --skip-bytes=27 -
expect_error 'both: .*left over' $options --skip-bytes=27 both
expect_error 'header: .*27 bytes.*24 bytes: 3' $options header
cat one.tailed | expect_error 'standard input: .*left over' $options -

finish
