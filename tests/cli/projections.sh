#!/bin/sh
# projections - headers, incomplete records, limits, counts, keys and positions, against GNU sort
. "$(dirname "$0")/testlib.sh"

# everywhere EXPECTED ARGUMENT...: in memory, spilled, and in several passes with one thread
everywhere() {
	gives "$@"
	gives "$@" -S 1M
	gives "$@" -S 1M --batch-size=2 --parallel=1
}

options='-R 24 -k 4:u16:r -k 10:i32be'
spec='24 4:u16:r 10:i32be'
generate -n 100000 -R 24 -k 4:u16 -k 10:i32be -d zipf -o input
sorted_lines "$spec" < input > lines
column 2 < lines > sorted

claim 'the positions of the records'
column 4 < lines > expected
everywhere expected $options --argsort input
sorted_lines "$spec" -u < input | column 4 > expected
everywhere expected $options --argsort -u input
head -c 1200000 input > first
tail -c 1200000 input > second
column 4 < lines > expected
gives expected $options --argsort first second
cat second | gives expected $options --argsort first -
cat input | gives expected $options --argsort -S 1M
generate -n 100000 -d hundred-keys -o plain
sorted_lines u64 < plain | column 4 > expected
everywhere expected --argsort plain
sorted_lines u64 -r < plain | column 4 > expected
gives expected --argsort -r plain

claim 'a merge counts positions through all inputs'
"$GSORT" $options first -o one
"$GSORT" $options second -o two
cat one two | sorted_lines "$spec" | column 4 > expected
everywhere expected -m $options --argsort one two
cat two | gives expected -m $options --argsort one -

claim 'the keys without the other bytes'
column 3 < lines > expected
everywhere expected $options --keys-only input
gives expected $options --keys-only --verify input
gives expected -m $options --keys-only one two
sorted_lines "$spec" -u < input | column 3 > expected
everywhere expected $options --keys-only -u --verify input
oracle u64 < plain > expected
gives expected --keys-only plain
sorted_lines '24 0:b24' < input | column 3 > expected
gives expected -R 24 --keys-only input
sorted_lines '24 10:u8' < input | column 3 > expected
everywhere expected -R 24 -k 10:u8 --keys-only input

claim 'the numbers of equal records'
counted le 2 < lines > expected
everywhere expected $options -u --count input
gives expected $options -u --count --verify input
everywhere expected -m $options -u --count one two
cat two | gives expected -m $options -u --count one -
counted le 3 < lines > expected
everywhere expected $options -u --count --keys-only --verify input
sorted_lines '24 10:i32be 4:u16' < input | counted be 2 > expected
everywhere expected -R 24 -k 10:i32be -k 4:u16 -u --count input
sorted_lines '24 4:b2' < input | counted le 2 > expected
everywhere expected -R 24 -k 4:b2 -u --count input
sorted_lines u64 < plain | counted le 2 > expected
everywhere expected -u --count plain
head -c 1000000 /dev/zero > equal
sorted_lines u32 < equal | counted le 2 > expected
everywhere expected -t u32 -u --count equal

claim 'the last of equal records'
last_of_equal < lines > kept
column 2 < kept > expected
everywhere expected $options -u --keep=last input
everywhere expected $options -u --keep=last --verify first second
everywhere expected $options -u --keep=last -m one two
cat two | gives expected $options -u --keep=last -m one -
cat input | "$GSORT" $options -u --keep=last -S 1M | cmp - expected || broken 'from pipe to pipe'
succeeds $options -u --keep=last --split=3 -S 1M input -o directory
cat directory/part-* | cmp - expected || broken 'part files'
rm -rf directory
head -c 2400 expected > limited
everywhere limited $options -u --keep=last --limit=100 input
column 3 < kept > expected
everywhere expected $options -u --keep=last --keys-only input
column 4 < kept > expected
everywhere expected $options -u --keep=last --argsort input
counted le 2 last < lines > expected
everywhere expected $options -u --keep=last --count input
everywhere expected $options -u --keep=last --count -m one two
head -c 3200 expected > limited
gives limited $options -u --keep=last --count --limit=100 -S 1M input
sorted_lines "$spec" -u < input | column 2 > expected
gives expected $options -u --keep=first input
oracle u64 -u < plain > expected
everywhere expected -u --keep=last plain
printf '\0\200\0\0' > zeros
printf '\0\0' | gives /dev/stdin -t f16:n -u --keep=last zeros
for kept in first last; do
	refuses '--keep requires -u' --keep=$kept plain
done

claim 'the first records of the result'
for n in 0 1 2 999 1000 50000 99999 100000 100001 18446744073709551614; do
	case $n in
	?????????*) cp sorted expected ;;
	*) head -c $((n * 24)) sorted > expected ;;
	esac
	everywhere expected $options --limit=$n input
	gives expected $options --limit=$n --verify input
	gives expected -m $options --limit=$n one two
	cat input | gives expected $options --limit=$n -
	cat one | gives expected -m $options --limit=$n - two
done
oracle u64 < plain | head -c 800 > expected
everywhere expected --limit=100 plain
sorted_lines "$spec" -u < input | column 2 | head -c 2400 > expected
everywhere expected $options --limit=100 -u input
counted le 2 < lines | head -c 3200 > expected
everywhere expected $options --limit=100 -u --count input
column 4 < lines | head -c 800 > expected
everywhere expected $options --limit=100 --argsort input
column 3 < lines | head -c 600 > expected
everywhere expected $options --limit=100 --keys-only input
gives expected $options --limit=100 --keys-only --verify input

claim 'the header is copied to the output'
printf '%s' 'a header of 27 bytes, so it' > header
cat header input > headed
cat header sorted > expected
everywhere expected $options --skip-bytes=27 headed
gives expected $options --skip-bytes=27 --verify headed
cat headed | gives expected $options --skip-bytes=27 -
"$GSORT" $options --skip-bytes=27 headed | cmp - expected || broken 'to a pipe'
cp headed file
succeeds $options --skip-bytes=27 file -o file
same expected file 'in place'
gives expected $options --skip-bytes=27 file
succeeds -c $options --skip-bytes=27 file
cat file | "$GSORT" -c $options --skip-bytes=27 - || broken '-c of a pipe'
run -c $options --skip-bytes=27 headed
[ "$status" -eq 1 ] || broken "-c: status $status"
cp header empty
gives header $options --skip-bytes=27 empty
{ cat header; column 4 < lines; } > expected
gives expected $options --argsort --skip-bytes=27 headed

claim 'of several inputs, the header of the first is copied'
tr a-z A-Z < header > other
cat header first > one.headed
cat other second > two.headed
cat header sorted > expected
everywhere expected $options --skip-bytes=27 one.headed two.headed
cat two.headed | gives expected $options --skip-bytes=27 one.headed -
cat one.headed | gives expected $options --skip-bytes=27 - two.headed
cat header one > one.headed
cat other two > two.headed
everywhere expected -m $options --skip-bytes=27 one.headed two.headed
cat two.headed | gives expected -m $options --skip-bytes=27 one.headed -
cat one.headed | gives expected -m $options --skip-bytes=27 - two.headed
mkfifo fifo
cat two.headed > fifo &
cat one.headed | gives expected -m $options --skip-bytes=27 - fifo
wait
rm -f fifo

claim 'incomplete last records are kept at the end or dropped'
{ cat first; printf 'first tail'; } > one.tailed
{ cat second; printf 'second'; } > two.tailed
{ cat sorted; printf 'first tailsecond'; } > kept
for how in '--partial=drop sorted' '--partial=keep kept'; do
	expected=${how#* }
	how=${how% *}
	everywhere $expected $options $how one.tailed two.tailed
	gives $expected $options $how --verify one.tailed two.tailed
	cat one.tailed | gives $expected $options $how - two.tailed
	cat two.tailed | gives $expected $options $how -S 1M one.tailed -
	"$GSORT" $options $how one.tailed two.tailed | cmp - $expected || broken 'to a pipe'
done
{ cat one; printf 'first tail'; } > one.tailed
{ cat two; printf 'second'; } > two.tailed
everywhere kept -m $options --partial=keep one.tailed two.tailed
cat one.tailed | gives kept -m $options --partial=keep - two.tailed
cat two.tailed | gives sorted -m $options --partial=drop one.tailed -
printf 'part' > part
gives part $options --partial=keep part
succeeds $options --partial=drop part -o output
[ ! -s output ] || broken 'a part of a record was not dropped'
succeeds -c $options --partial=drop one.tailed

claim 'a header and a trailer'
{ cat header input; printf tail; } > both
{ cat header sorted; printf tail; } > expected
everywhere expected $options --skip-bytes=27 --partial=keep both
cat both | gives expected $options --skip-bytes=27 --partial=keep -
succeeds $options --skip-bytes=27 --partial=keep both -o both
same expected both 'in place'

claim 'inputs with other headers or trailers are refused'
refuses 'part: .*4 bytes.*27.*--skip-bytes' $options --skip-bytes=27 part
refuses 'part: .*4 bytes.*27.*--skip-bytes' $options --skip-bytes=27 headed part
cat part | refuses 'standard input: .*4 bytes.*27' $options --skip-bytes=27 -
refuses 'both: .*left over' $options --skip-bytes=27 both
refuses 'header: .*27 bytes.*24 bytes: 3' $options header
cat one.tailed | refuses 'standard input: .*left over' $options -

finish
