#!/bin/sh
# checkpoint - what --checkpoint refuses to go on from: another sort, damage, another process's
. "$(dirname "$0")/prelude.sh"
generate -n 1000000 -o input
generate -n 1000 -o other
"$GSORT" input -o expected

# A checkpoint with some runs, in `kept`, and the output that belongs to it.
leave_checkpoint() {
	for moment in 0.2 0.1 0.3 0.05 0.4 0.6 0.8 1; do
		rm -rf ck output .gsort-*
		"$GSORT" -S 1M --batch-size=2 --checkpoint=ck input -o output 2> stderr &
		process=$!
		sleep $moment
		kill -9 $process
		wait $process 2> /dev/null
		[ -e ck/manifest ] && [ "$(stat -c %s ck/manifest)" -gt 20000 ] && break
	done
	cp -r ck kept || exit 99
}

again() {
	rm -rf ck
	cp -r kept ck
}

# refuses_to_go_on REGEX ARGUMENT...: and leaves the checkpoint.
refuses_to_go_on() {
	regex=$1
	shift
	run --checkpoint=ck "$@"
	[ $status -eq 2 ] || broken "gsort $*: status $status, not 2"
	grep -v 'keeps what is finished\|resuming' stderr > rest
	mv rest stderr
	one_line "$regex" "gsort $*"
	[ ! -e output ] || broken "gsort $*: there is an output"
	[ -e ck/manifest ] || broken "gsort $*: the checkpoint is gone"
}

leave_checkpoint
claim 'another sort is refused, with what is different'
refuses_to_go_on "-u was '0' and is '1' now" -u input -o output
refuses_to_go_on "key was '0:u64le' and is '0:i64le' now" -t i64 input -o output
refuses_to_go_on "key was '0:u64le' and is '0:u64le:r' now" -r input -o output
refuses_to_go_on "number of inputs was '1' and is '2' now" input other -o output
refuses_to_go_on "input was 'input' and is 'other' now" other -o output
refuses_to_go_on "--limit was '[0-9]*' and is '5' now" --limit=5 input -o output
refuses_to_go_on "output was 'output' and is 'elsewhere' now" input -o elsewhere
cp -p input untouched
touch input
refuses_to_go_on "state of input was 'input: device .*' and is 'input: device" input -o output
touch -r untouched input
diff -r kept ck || broken 'the checkpoint was changed'

claim 'a damaged manifest is refused'
nbytes=$(stat -c %s ck/manifest)
for at in 0 5 20 40 100 500 5000 $((nbytes / 2)); do
	again
	byte=$(od -An -tu1 -j "$at" -N1 ck/manifest)
	printf "\\$(printf %o $(((byte + 1) % 256)))" |
		dd of=ck/manifest bs=1 seek="$at" conv=notrunc 2> /dev/null
	refuses_to_go_on 'ck/manifest: the checkpoint is damaged at byte' input -o output
done

claim 'damaged or missing runs are refused'
again
tr '\000-\377' '\001-\377\000' < kept/runs > ck/runs
refuses_to_go_on 'temporary file in ck: block .* is damaged' -S 1M --batch-size=2 input -o output
again
rm ck/runs
refuses_to_go_on 'ck: the checkpoint is damaged: a block lies' input -o output

claim 'a checkpoint that another process uses is refused'
again
flock ck/manifest "$GSORT" --checkpoint=ck input -o output > stdout 2> stderr
[ $? -eq 2 ] || broken 'it was used'
one_line '^gsort: ck: another gsort is using this checkpoint' 'locked'

claim 'after all that it can be resumed, with another memory'
again
run -S 8M --checkpoint=ck input -o output
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming: [1-9][0-9]* runs hold' stderr
same expected output 'resumed'
[ ! -e ck ] || broken 'it is left'
rm -rf kept output .gsort-*

claim 'what cannot be resumed is refused'
cat input | refuses 'an input is a pipe' --checkpoint=ck -
refuses 'temporary data is kept in the checkpoint' --checkpoint=ck -T tmp input
refuses 'can be merged again' --checkpoint=ck -m input
refuses 'a compressed output' --checkpoint=ck --zstd input
run --checkpoint=ck input
one_line '--checkpoint needs -o' 'without -o'
run --checkpoint=ck input -o /dev/null
one_line '/dev/null: is no regular file' 'to a device'
[ ! -e ck ] || broken 'a checkpoint was made'
: > file
refuses 'file: Not a directory' --checkpoint=file input
mkdir theirs
echo hello > theirs/manifest
refuses 'theirs/manifest: the checkpoint is damaged' --checkpoint=theirs input
[ "$(cat theirs/manifest)" = hello ] || broken 'a file of somebody else was changed'
rm theirs/manifest
echo hello > theirs/runs
refuses "theirs/runs: File exists, but is not a checkpoint's" --checkpoint=theirs input
[ "$(cat theirs/runs)" = hello ] || broken 'a file of somebody else was changed'

claim 'a directory that was there stays there'
mkdir ours
echo hello > ours/file
gives expected --checkpoint=ours -S 2M input
[ "$(ls -A ours)" = file ] || broken "it holds $(ls -A ours)"

finish
