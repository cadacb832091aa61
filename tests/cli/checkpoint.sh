#!/bin/sh
# checkpoint - --checkpoint resumes its own sort only, and refuses damaged and foreign checkpoints
. "$(dirname "$0")/testlib.sh"
generate -n 2000000 -o input
generate -n 1000 -o other
"$GSORT" input -o expected

# kill_after TYPE N ARGUMENT...: sort to $to with a checkpoint and kill gsort as soon as the
# manifest has N records of this type. The type is the byte after the magic of a record (manifest.c
# and checkpoint_state.h in src/checkpoint/). Fails if the sort ended first.
to=output
kill_after() {
	pattern=rmsg\\x0$1
	n=$2
	shift 2
	rm -rf ck output .gsort-*
	"$GSORT" --checkpoint=ck "$@" -o "$to" 2> stderr < input &
	process=$!
	while [ "$(grep -aoP "$pattern" ck/gsort-manifest 2> /dev/null | wc -l)" -lt "$n" ] &&
		kill -0 $process 2> /dev/null; do
		:
	done
	kill -9 $process 2> /dev/null
	wait $process 2> /dev/null
	# A complete sort removes the runs first.
	[ $? -eq 137 ] && [ -e ck/gsort-runs ]
}

# leave_checkpoint TYPE N ARGUMENT...: repeat kill_after until it succeeds; copy ck to `kept`
leave_checkpoint() {
	for i in $(seq 50); do
		! kill_after "$@" || break
	done
	keep
}

# keep: copy the checkpoint to `kept`; again: restore it
keep() {
	rm -rf kept
	mkdir kept
	cp -r ck kept
}

again() {
	rm -rf ck output
	cp -r kept/ck .
}

# refuses_to_go_on REGEX ARGUMENT...: gsort refuses to resume and keeps the checkpoint
refuses_to_go_on() {
	regex=$1
	shift
	run --checkpoint=ck "$@"
	[ $status -eq 2 ] || broken "gsort $*: status $status, not 2"
	grep -v 'checkpoint kept\|resuming' stderr > rest
	mv rest stderr
	one_line "$regex" "gsort $*"
	[ ! -e output ] || broken "gsort $*: there is an output"
	[ -e ck/gsort-manifest ] || broken "gsort $*: the checkpoint is gone"
}

claim 'another sort is refused, and the message names the difference'
leave_checkpoint 2 5 -u -S 1M --batch-size=2 input
refuses_to_go_on "last of equal records was 'no' and is 'yes' now" -u --keep=last input -o output
leave_checkpoint 2 5 -S 1M --batch-size=2 input
refuses_to_go_on "unique records was 'no' and is 'yes' now" -u input -o output
refuses_to_go_on "key was '0:u64le' and is '0:i64le' now" -t i64 input -o output
refuses_to_go_on "key was '0:u64le' and is '0:u64le:r' now" -r input -o output
refuses_to_go_on "number of inputs was '1' and is '2' now" input other -o output
refuses_to_go_on "input was 'input' and is 'other' now" other -o output
refuses_to_go_on "limit was 'none' and is '5' now" --limit=5 input -o output
refuses_to_go_on "output was 'output' and is 'elsewhere' now" input -o elsewhere
cp -p input untouched
touch input
refuses_to_go_on "state of input input was 'device .*' and is 'device .*' now" input -o output
says 'remove gsort-manifest and gsort-runs in it$' stderr
cp -p untouched input
diff -r kept/ck ck || broken 'the checkpoint was changed'

claim 'an input that was overwritten, with its time of modification kept, is refused'
printf 12345678 | dd of=input bs=8 seek=1000 conv=notrunc 2> /dev/null
touch -r untouched input
refuses_to_go_on "state of input input was .*, changed .*, changed" input -o output

claim 'standard input at another offset is refused'
mv untouched input
leave_checkpoint 2 5 -S 1M --batch-size=2
dd bs=8 count=1 of=/dev/null 2> /dev/null < input
(
	dd bs=8 count=1 of=/dev/null 2> /dev/null
	refuses_to_go_on "state of input - was '.* from 0, .* and is '.* from 8, " -o output
) < input
run --checkpoint=ck -o output < input
[ $status -eq 0 ] || broken "status $status"
same expected output 'standard input'
leave_checkpoint 2 5 -S 1M --batch-size=2 input

claim 'a resumed sort keeps to --temp-limit'
refuses_to_go_on 'ck: the runs of the checkpoint take .*--temp-limit' \
	-S 1M --batch-size=2 --temp-limit=64K input -o output

claim 'a damaged manifest is refused'
nbytes=$(stat -c %s ck/gsort-manifest)
for at in 16 21 36 56 116 516 5016 $((nbytes / 2)); do
	again
	byte=$(od -An -tu1 -j "$at" -N1 ck/gsort-manifest)
	printf "\\$(printf %o $(((byte + 1) % 256)))" |
		dd of=ck/gsort-manifest bs=1 seek="$at" conv=notrunc 2> /dev/null
	refuses_to_go_on 'ck/gsort-manifest: the checkpoint is damaged at byte' input -o output
done
says 'to start again, remove it and the gsort-runs beside it$' stderr

claim 'a manifest without records is refused when there are runs'
again
truncate -s 16 ck/gsort-manifest
refuses_to_go_on 'its runs are not recorded; .* remove gsort-manifest and gsort-runs in it$' \
	input -o output

claim 'a resumed sort does not touch unfinished files of other sorts'
again
echo theirs > .gsort-0123456789abcdef
echo theirs > .gsort-temp-0123456789abcdef0123456789abcdef
run -S 8M --checkpoint=ck input -o output
[ $status -eq 0 ] || broken "status $status"
for name in .gsort-*; do
	[ "$(cat "$name")" = theirs ] || broken "$name was changed"
done
[ "$(ls -d .gsort-* | wc -l)" -eq 2 ] || broken "there are $(ls -d .gsort-*)"
rm .gsort-*

claim 'missing runs are sorted again'
for nbytes in 0 16 4096; do
	again
	rm ck/gsort-runs
	[ $nbytes -eq 0 ] || head -c $nbytes kept/ck/gsort-runs > ck/gsort-runs
	run -S 8M --checkpoint=ck input -o output
	[ $status -eq 0 ] || broken "$nbytes bytes: status $status"
	says 'ck: the runs of the checkpoint are missing; starting again' stderr
	same expected output "$nbytes bytes"
done

claim 'damaged runs are refused'
again
{
	head -c 4096 kept/ck/gsort-runs
	tail -c +4097 kept/ck/gsort-runs | tr '\000-\377' '\001-\377\000'
} > ck/gsort-runs
named='to start again, remove gsort-manifest and gsort-runs in it$'
refuses_to_go_on "temporary file in ck: block .* is damaged: .*; $named" \
	-S 1M --batch-size=2 input -o output

at=$(sed -n 's/.* bytes at \([0-9]*\)).*/\1/p' stderr)

claim 'a damaged checkpoint does not grow with each start'
nbytes=$(stat -c %s ck/gsort-runs)
refuses_to_go_on "ck: the checkpoint is damaged: a block of its runs has a wrong checksum; $named" \
	-S 1M --batch-size=2 input -o output
[ "$(stat -c %s ck/gsort-runs)" -eq "$nbytes" ] || broken 'it has grown'

claim 'runs with transient read errors are used'
again
tail -c +$((at + 1)) kept/ck/gsort-runs | head -c 1 | tr '\000-\377' '\001-\377\000' |
	dd of=ck/gsort-runs bs=1 seek="$at" conv=notrunc 2> /dev/null
refuses_to_go_on 'is damaged' -S 1M --batch-size=2 input -o output
refuses_to_go_on 'a block of its runs has a wrong checksum' -S 1M --batch-size=2 input -o output
tail -c +$((at + 1)) kept/ck/gsort-runs | head -c 1 |
	dd of=ck/gsort-runs bs=1 seek="$at" conv=notrunc 2> /dev/null
run -S 1M --batch-size=2 --checkpoint=ck input -o output
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming' stderr
same expected output 'read rightly again'
rm output

claim 'a checkpoint that another process uses is refused'
again
flock ck/gsort-manifest "$GSORT" --checkpoint=ck input -o output > stdout 2> stderr
[ $? -eq 2 ] || broken 'it was used'
one_line '^gsort: ck: another gsort is using this checkpoint' 'locked'

claim 'the checkpoint can still be resumed, with another memory limit'
again
run -S 8M --checkpoint=ck input -o output
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming: [1-9][0-9]* runs hold' stderr
same expected output 'resumed'
[ ! -e ck ] || broken 'it is left'
rm -rf kept output .gsort-*

claim 'an output whose link has another target is refused, and no temporary file is left'
mkdir here there
ln -s here/output link
to=link
leave_checkpoint 2 5 -S 1M --batch-size=2 input
to=output
rm -f here/output
ln -sfn there/output link
refuses_to_go_on "location of the output was '.*, as here/output' and is '.*, as there/output'" \
	-S 1M input -o link
[ -z "$(ls -A there)" ] || broken "new: $(ls -A there)"
ln -sfn here/output link
run --checkpoint=ck -S 1M input -o link
[ $status -eq 0 ] || broken "status $status"
same expected here/output 'resumed'
[ "$(ls -A here)" = output ] || broken "left behind: $(ls -A here)"
rm -rf here there link

claim 'part files are written again from their runs, or from the input if the runs are missing'
"$GSORT" --split=2 input -o parts
for i in $(seq 50); do
	! kill_after 2 2 -S 1M --split=2 input || break
done
refuses_to_go_on "number of part files was '2' and is '0' now" -S 1M input -o output
refuses_to_go_on "number of part files was '2' and is '3' now" -S 1M --split=3 input -o output
rm ck/gsort-runs
run --checkpoint=ck -S 1M --split=2 input -o output
[ $status -eq 0 ] || broken "status $status"
says 'ck: the runs of the checkpoint are missing; starting again' stderr
same parts/part-0000 output/part-0000 'the first part'
same parts/part-0001 output/part-0001 'the second part'
rm -r parts output
[ ! -e ck ] || broken "the checkpoint is left: $(ls ck)"

claim 'sorts that cannot be resumed are refused'
cat input | refuses 'an input cannot be read again: it is a pipe' --checkpoint=ck -
refuses 'temporary data is in the checkpoint' --checkpoint=ck -T tmp input
refuses 'merge the files again instead' --checkpoint=ck -m input
run --checkpoint=ck input
one_line '--checkpoint requires -o' 'without -o'
run --checkpoint=ck input -o /dev/null
one_line '/dev/null: must be a regular file' 'to a device'
run --checkpoint=ck --zstd input -o /dev/null
one_line '/dev/null: must be a regular file' 'to a device, compressed'
[ ! -e ck ] || broken 'a checkpoint was made'
: > file
refuses "^gsort: --checkpoint 'file': not a directory" --checkpoint=file input

claim 'a refused start leaves no files, and leaves files of others alone'
for name in gsort-manifest gsort-runs; do
	mkdir theirs
	echo hello > theirs/$name
	refuses "theirs/$name: is not a file of gsort and" --checkpoint=theirs input
	[ "$(ls -A theirs)" = $name ] || broken "a refused start leaves $(ls -A theirs)"
	[ "$(cat theirs/$name)" = hello ] || broken 'a file of others was changed'
	rm -r theirs
done
mkdir theirs
echo hello > theirs/manifest
echo hello > theirs/runs
gives expected --checkpoint=theirs -S 2M input
[ "$(cat theirs/manifest theirs/runs | tr -d '\n')" = hellohello ] || broken 'it was changed'
[ "$(ls -A theirs | wc -l)" -eq 2 ] || broken "it holds $(ls -A theirs)"

# On a tmpfs, a store to a mapping does not change the times of the file.
if shm=$(mktemp -d /dev/shm/gsort-test.XXXXXX 2> /dev/null); then
	claim 'an input that changed without a change of its times is refused'
	trap 'cd /; rm -rf "$work" "$shm"' EXIT
	cp input "$shm/input"
	leave_checkpoint 2 5 -S 1M --batch-size=2 "$shm/input"
	before=$(stat -c '%y %z' "$shm/input")
	python3 -c "
import mmap
with open('$shm/input', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
	m[1000] ^= 1"
	[ "$(stat -c '%y %z' "$shm/input")" != "$before" ] || refuses_to_go_on \
		"$shm/input: has changed after record 0 " "$shm/input" -o output
	rm -rf "$shm" ck kept output .gsort-*
fi

# completes ARGUMENT...: sort, and restore the state between the rename of the output and the
# removal of the checkpoint. Hard links keep the files of the checkpoint.
memory=1M
completes() {
	for i in $(seq 20); do
		rm -rf ck saved-*
		"$GSORT" --checkpoint=ck -S $memory "$@" 2> stderr &
		process=$!
		while [ ! -e ck/gsort-runs ] && kill -0 $process 2> /dev/null; do
			:
		done
		ln ck/gsort-manifest saved-manifest 2> /dev/null
		ln ck/gsort-runs saved-runs 2> /dev/null
		wait $process || broken "gsort $*: status $?"
		[ ! -e saved-runs ] || break
	done
	mkdir -m 1700 ck
	mv saved-manifest ck/gsort-manifest
	mv saved-runs ck/gsort-runs
}

claim 'killed after the rename, it merges again, except for a sort in place'
rm -rf ck output .gsort-*
cp input in
completes in -o output
run --checkpoint=ck -S 1M in -o output
says '^gsort: resuming: [1-9][0-9]* runs hold' stderr
[ $status -eq 0 ] || broken "status $status"
same expected output 'merged again'
[ ! -e ck ] || broken "it is left: $(ls -A ck)"
completes in -t u64 -o in
run --checkpoint=ck -S 1M in -t u64 -o in
says '^gsort: resuming: in is complete' stderr
same expected in 'in place'

claim 'killed after the rename and started with another input, it sorts that input'
cp input in
cp other second
completes in second -t u64 -o in
generate -n 1000 --seed=2 -o second
"$GSORT" in second -o expected-other
run --checkpoint=ck -S 1M in second -t u64 -o in
says '^gsort: ck: .* an input has changed since; starting again' stderr
[ $status -eq 0 ] || broken "status $status"
same expected-other in 'the other input'
[ ! -e ck ] || broken "it is left: $(ls -A ck)"
rm -f in second expected-other

# sorts_anew NAME EXPECTED ARGUMENT...: sort again, because the output NAME changed after its rename
sorts_anew() {
	name=$1
	expected=$2
	shift 2
	run --checkpoint=ck -S 1M "$@" -o "$name"
	says '^gsort: ck: .* its output has changed since; starting again' stderr
	[ $status -eq 0 ] || broken "gsort $*: status $status"
	same "$expected" "$name" "gsort $*"
	[ ! -e ck ] || broken "it is left: $(ls -A ck)"
}

claim 'killed after the rename, an output in place that was overwritten is sorted again'
generate -n 2000000 --seed=2 -o another
"$GSORT" another -o expected-another
for memory in 64M 1M; do # in memory, spilled
	cp input in
	completes in -t u64 -o in
	cat another > in
	sorts_anew in expected-another in -t u64
done
rm -f another expected-another

claim 'killed after the rename, an output in place that grew is not complete, despite its times'
cp input in
completes in -t u64 -o in
cp -p in stamp
head -c 8000 other >> in
"$GSORT" in -o expected-longer
touch -r stamp in
sorts_anew in expected-longer in -t u64

claim 'an output in place that changed after the rename is not merged with its inputs again'
memory=1M
cp input in
completes in other -t u64 -o in
touch in
cp in untouched
run --checkpoint=ck -S 1M in other -t u64 -o in
[ $status -eq 2 ] || broken "status $status"
says '^gsort: ck: .* changed since; .* remove gsort-manifest and gsort-runs in it$' stderr
same untouched in 'refused'
rm -rf ck in stamp untouched expected-longer output

claim 'an existing checkpoint directory is not removed'
mkdir ours
echo hello > ours/file
gives expected --checkpoint=ours -S 2M input
[ "$(ls -A ours)" = file ] || broken "it holds $(ls -A ours)"
mkdir -m 700 empty
gives expected --checkpoint=empty -S 2M input
[ -d empty ] || broken 'an empty directory was removed'

claim 'a checkpoint directory that gsort created is removed, even after kills'
mkdir -m 1700 ck
gives expected --checkpoint=ck -S 2M input
[ ! -e ck ] || broken "it is left: $(ls -A ck)"

claim 'a report in a checkpoint directory that gsort created is kept'
mkdir -m 1700 ck
ln -s ck/report link
for report in --stats-json=ck/report --trace=./ck/../ck/report --report=link; do
	refuses "^gsort: ${report%%=*} '${report#*=}' is in the checkpoint directory 'ck';" \
		--checkpoint=ck "$report" input
done
[ -d ck ] || broken 'the directory is gone'
rm -r ck link
gives expected --checkpoint=ours --stats-json=ours/report input
[ -s ours/report ] || broken 'no report in an existing directory'

claim 'directories with the names of checkpoint files are refused'
rm -rf ck
mkdir ck
mkfifo ck/gsort-manifest
refuses '^gsort: ck/gsort-manifest: is not a regular file.* --checkpoint$' --checkpoint=ck input
rm ck/gsort-manifest
: > target
ln -s ../target ck/gsort-runs
refuses '^gsort: ck/gsort-runs: is a symbolic link.* --checkpoint$' --checkpoint=ck input
[ ! -s target ] || broken 'the link was followed'
ln -s nothing dangling
refuses '^gsort: dangling: is a dangling symbolic link.* --checkpoint$' --checkpoint=dangling input
rm -rf ck dangling target

# Sorts of lines.
rm -f input other output expected
awk 'BEGIN { srand(7); for (i = 0; i < 400000; i++)
	print int(rand() * 1000000), int(rand() * 1000000) }' > input
head -n 100 input > other
sort -k2,2n input > expected

claim 'another sort of lines is refused, and the message names the difference'
leave_checkpoint 2 3 --lines -k2,2n -S 4M --batch-size=2 input
for words in '-k2,2nr' '-k2,2n -s' '-k2,2n -u' '-k2,2n -z' '-t: -k2,2n' '-k2,2'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	refuses_to_go_on "lines was '--lines -k2.1n,2.0' and is '--lines .*' now" \
		--lines $words input -o output
done
refuses_to_go_on "lines was '--lines -k2.1n,2.0' and is 'no' now" -t u8 input -o output
refuses_to_go_on "header was '0' and is '1' now" --lines -k2,2n --header input -o output
refuses_to_go_on "limit was 'none' and is '5' now" --lines -k2,2n --limit=5 input -o output
refuses_to_go_on "number of inputs was '1' and is '2' now" --lines -k2,2n input other -o output
refuses_to_go_on "output was 'output' and is 'elsewhere' now" --lines -k2,2n input -o elsewhere
diff -r kept/ck ck || broken 'the checkpoint was changed'
flock ck/gsort-manifest "$GSORT" --lines -k2,2n --checkpoint=ck input -o output > stdout 2> stderr
[ $? -eq 2 ] || broken 'it was used'
one_line '^gsort: ck: another gsort is using this checkpoint' 'locked'
touch input
refuses_to_go_on "state of input input was" --lines -k2,2n input -o output

claim 'damaged runs of lines are refused, and missing ones sorted again'
leave_checkpoint 2 3 --lines -k2,2n -S 4M --batch-size=2 input
{
	head -c 4096 kept/ck/gsort-runs
	tail -c +4097 kept/ck/gsort-runs | tr '\000-\377' '\001-\377\000'
} > ck/gsort-runs
refuses_to_go_on "temporary file in ck: block .* is damaged: .*; $named" \
	--lines -k2,2n -S 4M --batch-size=2 input -o output
refuses_to_go_on "ck: the checkpoint is damaged: a block of its runs has a wrong checksum; $named" \
	--lines -k2,2n -S 4M input -o output
again
rm ck/gsort-runs
run --lines -k2,2n -S 4M --checkpoint=ck input -o output
[ $status -eq 0 ] || broken "status $status"
says 'ck: the runs of the checkpoint are missing; starting again' stderr
same expected output 'missing runs'

claim 'a sort of lines resumes with less memory, if blocks of its runs fit'
yes 1 | head -c 26000000 > short
leave_checkpoint 2 1 --lines -S 150M short
refuses_to_go_on '4 MiB of memory is too little to resume this checkpoint with blocks .* -S of' \
	--lines -S 4M short -o output
run --lines -S 10M --checkpoint=ck short -o output
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming: [1-9]' stderr
same short output 'less memory'
rm -r short kept

claim 'a short input of lines is sorted, whatever the memory is'
for memory in 4M 20M 1G; do
	run --lines -S $memory --checkpoint=ck other -o output
	[ $status -eq 0 ] || broken "$memory: status $status"
done
sort other > expected.other
same expected.other output 'a short input'

claim 'sorts of lines that cannot be resumed are refused'
cat input | refuses 'an input cannot be read again: it is a pipe' --lines --checkpoint=ck -
refuses 'not with -T; temporary data is in the checkpoint' --lines --checkpoint=ck -T tmp input
refuses 'not with -m; merge the files again instead' --lines --checkpoint=ck -m input
run --lines --checkpoint=ck input
one_line '--checkpoint requires -o' 'without -o'
run --lines -c --checkpoint=ck input
one_line "options '-c --checkpoint' are incompatible" 'a check'
run --lines --checkpoint=ck input -o /dev/null
one_line '/dev/null: must be a regular file' 'to a device'
refuses "^gsort: --checkpoint 'other': not a directory" --lines --checkpoint=other input
mkdir -m 1700 ck
refuses "^gsort: --report 'ck/report' is in the checkpoint directory 'ck'" \
	--lines --checkpoint=ck --report=ck/report input
rmdir ck
mkdir foreign
echo hello > foreign/gsort-runs
refuses 'foreign/gsort-runs: is not a file of gsort and' --lines --checkpoint=foreign input
[ "$(cat foreign/gsort-runs)" = hello ] || broken 'a file of others was changed'
rm -r foreign
run --lines --explain --checkpoint=ck -S 4M input -o output
[ $status -eq 0 ] || broken "--explain: status $status"
[ ! -e ck ] || broken '--explain has made a checkpoint'

claim 'standard input that is a file can be resumed'
sort input > expected
leave_checkpoint 2 2 --lines -S 4M
run --lines -S 4M --checkpoint=ck -o output < input
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming: [1-9]' stderr
same expected output 'standard input'
[ ! -e ck ] || broken 'it is left'

claim 'lines in place: killed after the rename, the sort is complete'
memory=4M
cp input in
completes --lines in -o in
run --lines --checkpoint=ck -S 4M in -o in
[ $status -eq 0 ] || broken "status $status"
says '^gsort: resuming: in is complete' stderr
same expected in 'in place'
[ ! -e ck ] || broken 'it is left'

if shm=$(mktemp -d /dev/shm/gsort-test.XXXXXX 2> /dev/null); then
	claim 'lines that changed without a change of the times are refused'
	trap 'cd /; rm -rf "$work" "$shm"' EXIT
	cp input "$shm/input"
	leave_checkpoint 2 2 --lines -S 4M other "$shm/input"
	before=$(stat -c '%y %z' "$shm/input")
	python3 -c "
import mmap
with open('$shm/input', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
	m[1000] ^= 1"
	[ "$(stat -c '%y %z' "$shm/input")" != "$before" ] || refuses_to_go_on \
		"other: has changed after byte 0 since the checkpoint in ck" \
		--lines -S 4M other "$shm/input" -o output
	rm -rf "$shm"
fi

finish
