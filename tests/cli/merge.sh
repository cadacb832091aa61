#!/bin/sh
# merge - -m merges any number of sorted files and names a file that is not sorted
. "$(dirname "$0")/testlib.sh"

generate -n 70001 -d hundred-keys --seed=1 | "$GSORT" -o a
generate -n 50001 -d two-keys --seed=2 | "$GSORT" -o b
generate -n 90001 -d random --seed=3 | "$GSORT" -o c
generate -n 0 -o empty
cat a b c | reference_sort u64 > expected

claim 'sorted inputs are merged'
expect_output expected -m a b c
expect_output expected -m -S 1M a b c
expect_output expected -m --batch-size=2 c b a
expect_output expected -m a empty b empty c
expect_output a -m a
expect_output empty -m empty empty

claim 'a pipe is merged like a file'
cat b | expect_output expected -m a - c

claim 'the output may be an input'
cp a file
expect_success -m b file c -t u64 -o file
expect_same expected file 'in place'

claim '-u keeps one of equal keys'
cat a b c | reference_sort u64 -u > unique
expect_output unique -m -u a b c
expect_output unique -m -u -S 1M --batch-size=2 a b c

claim 'descending inputs'
for name in a b c; do
	"$GSORT" -r $name -o $name.down
done
cat a b c | reference_sort u64 -r > expected.down
expect_output expected.down -m -r a.down b.down c.down

claim 'thousands of inputs'
python3 -c '
import random
numbers = random.Random(1)
for i in range(1, 3001):
	with open("part.%d" % i, "wb") as part:
		for number in sorted(numbers.getrandbits(64) for _ in range(i % 7)):
			part.write(number.to_bytes(8, "little"))'
cat part.* | reference_sort u64 > expected.parts
expect_output expected.parts -m part.*
expect_output expected.parts -m -S 1M part.*
expect_output expected.parts -m --batch-size=3 part.*
(ulimit -n 20 && "$GSORT" -m part.* -o output) 2> stderr || fail 'few descriptors'
expect_same expected.parts output 'few descriptors'

claim 'an input that is not sorted is named, with its record'
generate -n 1000 -d sorted -o unsorted
head -c 4000 unsorted > head
tail -c +4001 unsorted > tail
{ cat head; printf '\0\0\0\0\0\0\0\0'; cat tail; } > unsorted
expect_error 'unsorted: .*record 501' -m a unsorted c
expect_error 'unsorted: .*record 501' -m -S 1M a unsorted c
cat unsorted | expect_error 'record 501' -m a - c
expect_error 'a\.down: .*record ' -m a.down

claim 'the inputs must have the order of the options'
expect_error 'a: .*record ' -m -r a

finish
