#!/bin/sh
# mapped_input - sorts that leave the records in the mapped input until the output is written
. "$(dirname "$0")/testlib.sh"

# refers yes|no ARGUMENT...: whether --explain says that records stay in the mapped input. Uses
# little memory, so that --explain measures little.
refers() {
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
		broken "gsort --explain $*: status $status, mapped: $refers_found"
}

generate -n 20000 -R 100 -k 0:b10 -d random -o a
generate -n 10001 -R 100 -k 0:b10 -d hundred-keys --seed=2 -o b
: > empty
keys='-R 100 -k 0:b10'

claim 'the plan says whether records stay in the mapped input'
refers yes $keys -S 64M a
refers yes $keys -S 64M a b empty
refers yes -R 100 -k 3:u32 -k 90:i64be:r a
refers yes -R 50 -k 0:u64 a b b b b b b b
refers no $keys -S 2M a
refers no $keys -u a
refers no $keys --limit=5 a
refers no $keys --keys-only a
refers no $keys --checkpoint=state -o output a
refers no -R 100 -k 0:b13 a
refers no -R 25 -k 0:b10 a
refers no $keys a b a b a b a b a b a b a b a b a
"$GSORT" --zstd $keys a > packed.zst
refers no $keys packed.zst
cat a | refers no $keys -S 64M
refers yes $keys -S 64M < a

claim 'the statistics say it, too'
run --stats $keys -S 64M a -o output
says 'chunks: .* of the mapped input;' stderr
run --stats $keys -S 2M a -o output
! grep -q mapped stderr || broken 'the statistics say mapped for inputs that are read'

claim 'keys of any size and direction; equal records keep their order'
for layout in '0:b10' '99:u8' '3:u32 90:i64be:r' '0:f64:r 50:b1 20:u16be' '8:i16' '96:f32'; do
	options='-R 100'
	for key in $layout; do
		options="$options -k $key"
	done
	cat a b b | oracle "100 $layout" > expected
	gives expected $options a b empty b
	gives expected $options --parallel=1 a b b
	gives expected $options -S 8M --parallel=5 a b b
	cat a b b | "$GSORT" $options > output 2> stderr || broken "status $?"
	same expected output 'from a pipe, that cannot be mapped'
done

claim 'all keys equal, in records that differ'
xxd -p -c100 a | sed 's/^...................../000000000000000000000/' | xxd -r -p > same-keys
gives same-keys $keys same-keys
gives same-keys $keys -r same-keys

claim 'records of many lengths'
for size in 32 33 40 127 128 1000 4096 65536; do
	generate -b 2M -R $size -k $((size - 6)):b6 -d zipf -o input
	oracle "$size $((size - 6)):b6" < input > expected
	gives expected -R $size -k $((size - 6)):b6 -S 64M input
	gives expected -R $size -k $((size - 6)):b6 -S 4M input
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
	cat a b | oracle '100 0:b10'
	echo 'tail of a'
	echo 'tail of b'
} > expected
gives expected $keys --skip-bytes=10 --partial=keep framed-a framed-b
gives expected $keys --skip-bytes=10 --partial=keep --verify framed-a framed-b

claim 'all kinds of output'
oracle '100 0:b10' < a > expected
gives expected $keys --verify --fsync a
"$GSORT" $keys a > output 2> stderr || broken "status $?"
same expected output 'to a file that is there'
"$GSORT" $keys a 2> stderr | cat > output
same expected output 'to a pipe'
"$GSORT" $keys --zstd a 2> stderr > output.zst || broken "status $?"
gives expected $keys output.zst
gives empty $keys empty

claim 'the output may be the input'
cp a place
succeeds $keys -o place place
same expected place 'in place'
ln -s place link
cp a place
succeeds $keys -o link place
same expected place 'by way of a link'

# changing REGEX COMMAND...: the command changes the input `changed` after gsort has written a part
# of its output and while it waits for the reader of a pipe
mkfifo out
changing() {
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
	[ $status -eq 2 ] || broken "$*: status $status"
	one_line "$regex" "$*"
	nothing_left "$*"
}

claim 'an input that changes during the sort is named'
changing 'changed: .* 10000000 bytes.* 5000000' truncate -s 5000000 changed
changing 'changed: .* 10000000 bytes.* 0' truncate -s 0 changed
changing 'changed: ' truncate -s 9999900 changed
changing 'changed: changed' sh -c \
	'tail -c 100 a | dd of=changed bs=100 seek=99000 conv=notrunc 2> /dev/null'
changing 'changed: ' sh -c 'cat a > changed; truncate -s 10000000 changed'
changing 'changed: .* 10000000 bytes.* 0' sh -c ': > changed'

finish
