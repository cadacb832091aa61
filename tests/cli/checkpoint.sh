#!/bin/sh
# checkpoint - what --checkpoint refuses to go on from: another sort, damage, another process's
. "$(dirname "$0")/prelude.sh"
generate -n 2000000 -o input
generate -n 1000 -o other
"$GSORT" input -o expected

# kill_after TYPE N ARGUMENT...: as soon as N records of that type are there, whose number is the
# first byte behind a record's magic (manifest.c and checkpoint_state.h
# in src/checkpoint/). Was it in time?
kill_after() {
	pattern=rmsg\\x0$1
	n=$2
	shift 2
	rm -rf ck output .gsort-*
	"$GSORT" --checkpoint=ck "$@" -o output 2> stderr &
	process=$!
	while [ "$(grep -aoP "$pattern" ck/manifest 2> /dev/null | wc -l)" -lt "$n" ] &&
		kill -0 $process 2> /dev/null; do
		:
	done
	kill -9 $process 2> /dev/null
	wait $process 2> /dev/null
	[ $? -eq 137 ]
}

# leave_checkpoint TYPE N ARGUMENT...: the same, until it is in time; copied to `kept`, with the
# output under construction.
leave_checkpoint() {
	for i in $(seq 50); do
		! kill_after "$@" || break
	done
	keep
}

# keep: the checkpoint and the output under construction in `kept`, again: as they were.
keep() {
	rm -rf kept
	mkdir kept
	cp -r ck .gsort-* kept
}

again() {
	rm -rf ck output .gsort-*
	cp -r kept/ck kept/.gsort-* .
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

leave_checkpoint 3 5 -S 1M --batch-size=2 input
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
diff -r kept/ck ck || broken 'the checkpoint was changed'

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
tr '\000-\377' '\001-\377\000' < kept/ck/runs > ck/runs
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

# The runs are short, for there are few keys and these are packed. The limit, in blocks of 512 bytes
# or of 1 KiB, is for all files, but only the output comes to it.
claim 'a partly written output is gone on with, also with a smaller fan-in'
generate -n 4000000 -d few -o few
"$GSORT" few -o expected-few
(
	trap '' XFSZ
	ulimit -f 22000
	run --checkpoint=ck -S 4M --compress=delta few -o output
	[ $status -eq 2 ]
) || broken 'not refused'
says '^gsort: output: .*File too large' stderr
keep
again
run -S 4M --compress=delta --batch-size=2 --checkpoint=ck few -o output
[ $status -eq 0 ] || broken "status $status"
# Runs without what lies before go through passes again.
says 'resuming: .* and [1-9].* of the output are written' stderr
same expected-few output 'resumed'

claim 'a changed output under construction is refused'
again
printf X | dd of="$(ls .gsort-*)" bs=1 seek=100 conv=notrunc 2> /dev/null
refuses_to_go_on 'bytes at 0 of the output under construction, .gsort-[0-9a-f]*, are not' \
	-S 4M --compress=delta few -o output
again
rm .gsort-*
refuses_to_go_on 'bytes at 0 of the output under construction, .gsort-[0-9a-f]*, are not' \
	-S 4M --compress=delta few -o output
rm -rf ck kept output .gsort-*

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
mkdir -m 700 empty
gives expected --checkpoint=empty -S 2M input
[ -d empty ] || broken 'an empty one is gone'

claim 'a directory that gsort made goes, whenever it was killed before'
mkdir -m 1700 ck
gives expected --checkpoint=ck -S 2M input
[ ! -e ck ] || broken "it is left: $(ls -A ck)"

finish
