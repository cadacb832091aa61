#!/bin/sh
# concurrent_changes - changes that others make to inputs and outputs during a sort are not lost
. "$(dirname "$0")/testlib.sh"
mkfifo pipe

generate -n 50000 -o first
generate -n 500000 --seed=2 -o second
# File times have ticks of up to 10 ms. A change within the tick of the last one would be invisible.
touch -d 2001-01-01 first second

# run_during_sort COMMAND ARGUMENT...: run gsort with `pipe` as the last input, and COMMAND after
# gsort has read all earlier inputs. This is so when more data went into the pipe than it can
# hold.
run_during_sort() {
	command=$1
	shift
	"$GSORT" "$@" pipe > stdout 2> stderr &
	process=$!
	exec 3> pipe
	cat second >&3 2> /dev/null
	eval "$command"
	exec 3>&-
	wait $process
	status=$?
}

# expect_change_detected WHAT FILE COMMAND ARGUMENT...: gsort fails and names FILE, and the change
# of COMMAND persists
expect_change_detected() {
	what=$1
	file=$2
	shift 2
	cp -p first x
	cp -p second y
	run_during_sort "$@"
	expect_status 2 "$what"
	expect_message "^gsort: $file: " "$what"
	expect_same expected "$file" "$what"
	[ ! -e new ] || fail "$what: there is an output"
	[ -z "$(ls -d .gsort-* 2> /dev/null)" ] || fail "$what: left $(ls -d .gsort-*)"
	expect_no_temp_files "$what"
}

for memory in 1M 64M; do
	claim "in place, -S $memory: what was written to the input after it was read is not lost"
	cat first first > expected
	expect_change_detected 'appended to' x 'cat first >> x' -S "$memory" x -t u64 -o x
	{
		echo 1234567
		tail -c +9 first
	} > expected
	expect_change_detected 'overwritten in place' x \
		'echo 1234567 | dd of=x conv=notrunc status=none' -S "$memory" x -t u64 -o x
	cp second expected
	expect_change_detected 'another file took its name' x 'mv y x' -S "$memory" x -t u64 -o x
	: > expected
	expect_change_detected 'cut' x ': > x' -S "$memory" x -t u64 -o x
done

claim 'an input that is not replaced'
cat first first > expected
expect_change_detected 'appended to' x 'cat first >> x' x -o new
expect_change_detected 'appended to, and to standard output' x 'cat first >> x' x

claim 'lines: an input that was read is checked again before the commit'
seq 1 50000 > first.txt
touch -d 2001-01-01 first.txt
mv first first.records
mv first.txt first
cat first first > expected
expect_change_detected 'lines appended to' x 'cat first >> x' --lines x -o x
expect_change_detected 'lines appended to, and a new output' x 'cat first >> x' --lines x -o new
expect_change_detected 'lines appended to, and spilled' x 'cat first >> x' --lines -S 1M x -o new
mv first.records first

claim 'an output that others changed or created is not replaced'
cp second expected
expect_change_detected 'changed' y 'cat second > y' first -o y
{
	echo 1234567
	tail -c +9 second
} > expected
expect_change_detected 'overwritten, with its times kept' y \
	'cp -p y z; echo 1234567 | dd of=y conv=notrunc status=none; touch -r z y' first -o y
cp second expected
expect_change_detected 'another took its name' y 'cp second z; mv z y' first -o y
expect_change_detected 'made meanwhile' z 'cp second z' first -o z
rm z

claim 'one input of many, of which only some are open at a time'
cp first x
: > names
for i in $(seq 40); do
	cp first "part$i"
	printf 'part%d\0' "$i" >> names
done
printf 'pipe\0' >> names
"$GSORT" --files0-from=names -o new 2> stderr &
process=$!
exec 3> pipe
cat second >&3
cat first >> part3
exec 3>&-
wait $process
[ $? -eq 2 ] || fail 'it was sorted'
expect_message '^gsort: part3: changed' 'part3'
rm -f part* names

claim 'renaming inputs and changing their mode does not matter'
cat first second > both
"$GSORT" both -o expected
for harmless in 'chmod 600 x' 'ln x x2' 'rm x' 'mv x x3; cp second x'; do
	rm -f x x2 x3 new
	cp first x
	run_during_sort "$harmless" x -o new
	expect_status 0 "$harmless"
	expect_same expected new "$harmless"
done

claim 'standard input at an offset, in the file of the output'
cp first x
(
	dd bs=80 count=1 of=/dev/null 2> /dev/null
	expect_exit 2 -t u64 -o x -
) < x
expect_message '^gsort: x: is also standard input, open at byte 80;' 'it'
expect_same first x 'it'
(
	dd bs=80 count=1 of=/dev/null 2> /dev/null
	expect_exit 0 -o new -
) < x

claim 'checks and plans of files that change'
"$GSORT" first second -o sorted
for change in 'echo 1234567 | dd of=x conv=notrunc status=none' 'cat first >> x'; do
	"$GSORT" first -o x
	touch -d 2001-01-01 x
	"$GSORT_CHECK" --same-records sorted x pipe > stdout 2> stderr &
	process=$!
	exec 3> pipe
	cat second >&3
	eval "$change"
	exec 3>&-
	wait $process
	status=$?
	expect_status 2 "$change"
	expect_line '^gsort-check: x: changed' stderr
done

finish
