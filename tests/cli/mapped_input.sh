#!/bin/sh
# mapped_input - sorts that leave the records in the mapped input until the output is written
. "$(dirname "$0")/testlib.sh"

# refers yes|no ARGUMENT...: whether --explain says that records stay in the mapped input. Uses
# little memory, so that --explain measures little.
expect_mapped() {
	refers_expected=$1
	shift
	case "$*" in
	*-S*) ;;
	*) set -- "$@" -S 64M ;;
	esac
	run --explain "$@"
	refers_found=no
	! grep -q '^mapped input' stdout || refers_found=yes
	[ "$status $refers_found" = "0 $refers_expected" ] ||
		fail "gsort --explain $*: status $status, mapped: $refers_found"
}

generate -n 20000 -R 100 -k 0:b10 -d random -o a
generate -n 10001 -R 100 -k 0:b10 -d hundred-keys --seed=2 -o b
: > empty
keys='-R 100 -k 0:b10'

claim 'the plan says whether records stay in the mapped input'
expect_mapped yes $keys -S 64M a
expect_mapped yes $keys -S 64M a b empty
expect_mapped yes -R 100 -k 3:u32 -k 90:i64be:r a
expect_mapped yes -R 50 -k 0:u64 a b b b b b b b
expect_mapped no $keys -S 2M a
expect_mapped no $keys -u a
expect_mapped no $keys --limit=5 a
expect_mapped no $keys --keys-only a
expect_mapped no $keys --checkpoint=state -o output a
expect_mapped no -R 100 -k 0:b13 a
expect_mapped no -R 25 -k 0:b10 a
expect_mapped no $keys a b a b a b a b a b a b a b a b a
"$GSORT" --zstd $keys a > packed.zst
expect_mapped no $keys packed.zst
cat a | expect_mapped no $keys -S 64M
expect_mapped yes $keys -S 64M < a

claim 'the statistics say it, too'
run --stats $keys -S 64M a -o output
expect_line 'chunks: .* of the mapped input;' stderr
run --stats $keys -S 2M a -o output
! grep -q mapped stderr || fail 'the statistics say mapped for inputs that are read'

claim 'keys of any size and direction; equal records keep their order'
for layout in '0:b10' '99:u8' '3:u32 90:i64be:r' '0:f64:r 50:b1 20:u16be' '8:i16' '96:f32'; do
	options='-R 100'
	for key in $layout; do
		options="$options -k $key"
	done
	cat a b b | reference_sort "100 $layout" > expected
	expect_output expected $options a b empty b
	expect_output expected $options --parallel=1 a b b
	expect_output expected $options -S 8M --parallel=5 a b b
	cat a b b | "$GSORT" $options > output 2> stderr || fail "status $?"
	expect_same expected output 'from a pipe, that cannot be mapped'
done

claim 'all keys equal, in records that differ'
xxd -p -c100 a | sed 's/^...................../000000000000000000000/' | xxd -r -p > same-keys
expect_output same-keys $keys same-keys
expect_output same-keys $keys -r same-keys

claim 'records of many lengths'
for size in 32 33 40 127 128 1000 4096 65536; do
	generate -b 2M -R $size -k $((size - 6)):b6 -d zipf -o input
	reference_sort "$size $((size - 6)):b6" < input > expected
	expect_output expected -R $size -k $((size - 6)):b6 -S 64M input
	expect_output expected -R $size -k $((size - 6)):b6 -S 4M input
done

claim 'headers and trailers'
for name in a b; do
	{
		echo "head of $name"
		cat $name
		echo "tail of $name"
	} > framed-$name
done
{
	echo 'head of a'
	cat a b | reference_sort '100 0:b10'
	echo 'tail of a'
	echo 'tail of b'
} > expected
expect_output expected $keys --skip-bytes=10 --partial=keep framed-a framed-b
expect_output expected $keys --skip-bytes=10 --partial=keep --verify framed-a framed-b

claim 'all kinds of output'
reference_sort '100 0:b10' < a > expected
expect_output expected $keys --verify --fsync a
"$GSORT" $keys a > output 2> stderr || fail "status $?"
expect_same expected output 'to a file that is there'
"$GSORT" $keys a 2> stderr | cat > output
expect_same expected output 'to a pipe'
"$GSORT" $keys --zstd a 2> stderr > output.zst || fail "status $?"
expect_output expected $keys output.zst
expect_output empty $keys empty

claim 'the output may be the input'
cp a place
expect_success $keys -o place place
expect_same expected place 'in place'
ln -s place link
cp a place
expect_success $keys -o link place
expect_same expected place 'by way of a link'

# change_during_sort REGEX COMMAND...: the command changes the input `changed` after gsort has
# written a part of its output and while it waits for the reader of a pipe
mkfifo out
change_during_sort() {
	regex=$1
	shift
	generate -n 100000 -R 100 -k 0:b10 -d sorted -o changed
	touch -d 2001-01-01 changed
	"$GSORT" $keys -S 13M changed > out 2> stderr &
	pid=$!
	{
		head -c 1 > /dev/null
		"$@"
		cat > /dev/null
	} < out
	wait $pid
	status=$?
	expect_status 2 "$*"
	expect_message "$regex" "$*"
	expect_no_temp_files "$*"
}

claim 'an input that changes during the sort is named'
change_during_sort 'changed: .* 10000000 bytes.* 5000000' truncate -s 5000000 changed
change_during_sort 'changed: .* 10000000 bytes.* 0' truncate -s 0 changed
change_during_sort 'changed: ' truncate -s 9999900 changed
change_during_sort 'changed: changed' sh -c \
	'tail -c 100 a | dd of=changed bs=100 seek=99000 conv=notrunc 2> /dev/null'
change_during_sort 'changed: ' sh -c 'cat a > changed; truncate -s 10000000 changed'
change_during_sort 'changed: .* 10000000 bytes.* 0' sh -c ': > changed'

finish
