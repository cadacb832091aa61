#!/bin/sh
# spill - directories, limits and names of temporary files
. "$(dirname "$0")/testlib.sh"

generate -n 1000003 -o input
"$GSORT" -S 256M input -o expected
"$GSORT_CHECK" expected > /dev/null || fail 'not sorted in memory'
"$GSORT_CHECK" --same-records expected input || fail 'not the same records in memory'

claim 'the bytes do not depend on memory, merge width or threads'
for size in 1M 1500K 2M 3M 5M; do
	expect_output expected -S $size input
	expect_output expected -S $size --batch-size=2 input
	expect_output expected -S $size --batch-size=5 --parallel=1 input
done
expect_output expected -S 1M --parallel=7 input

claim '-S below the minimum means the minimum'
expect_output expected -S 1b input

claim 'several temporary directories are used'
mkdir one two
expect_output expected -S 2M -T one -T two input
[ -z "$(ls -A one two | grep -v :)" ] || fail 'something left'

claim 'a temporary directory that cannot be used is named'
expect_error 'nowhere' -S 2M -T nowhere input
expect_error 'expected' -S 2M -T expected input

claim 'TMPDIR is the default directory'
TMPDIR=$work/nowhere expect_error 'nowhere' -S 2M input
TMPDIR=$work/nowhere expect_output expected -S 256M input
TMPDIR='' expect_output expected -S 2M input

claim 'temporary files have no names while they are used'
mkfifo fifo
"$GSORT" -S 1M fifo -o output 2> stderr &
exec 3> fifo
cat input >&3
# gsort has read all but the contents of the pipe and has spilled most of it.
[ -z "$(ls -A tmp)" ] || fail "names: $(ls -A tmp)"
exec 3>&-
wait $! || fail "status $?"
expect_same expected output 'sorted from a fifo'

claim 'too little temporary space is reported before anything is written'
expect_error 'temp-limit' -S 2M --temp-limit=1M input
expect_output expected -S 256M --temp-limit=0 input
expect_output expected -S 2M --temp-limit=64M input

claim 'with input from a pipe, it is reported when it occurs'
cat input | expect_error 'the limit of 1048576 bytes is too low; use a larger --temp-limit' \
	-S 2M --temp-limit=1M -

finish
