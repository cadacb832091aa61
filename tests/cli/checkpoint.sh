#!/bin/sh
# checkpoint - --checkpoint resumes its own sort only, and refuses damaged and foreign checkpoints
. "$(dirname "$0")/testlib.sh"
generate -n 2000000 -o input
generate -n 1000 -o other
"$GSORT" input -o expected

# kill_after TYPE N ARGUMENT...: sort to $to with a checkpoint and kill gsort as soon as the
# manifest has N records of this type. The type is the byte after the magic of a record (manifest.c
# and checkpoint_state.h in src/checkpoint/). Fails if the output was complete first.
to=output
kill_after() {
	pattern=rmsg\\x0$1
	n=$2
	shift 2
	rm -rf ck output here/output .gsort-*
	"$GSORT" --checkpoint=ck "$@" -o "$to" 2> stderr < input &
	process=$!
	while [ "$(grep -aoP "$pattern" ck/gsort-manifest 2> /dev/null | wc -l)" -lt "$n" ] &&
		kill -0 $process 2> /dev/null; do
		:
	done
	kill -9 $process 2> /dev/null
	wait $process 2> /dev/null
	# A complete sort renames its output, and then removes the runs.
	[ $? -eq 137 ] && [ -e ck/gsort-runs ] && [ ! -e "$to" ]
}

# retry_kill_after TYPE N ARGUMENT...: repeat kill_after until it succeeds
retry_kill_after() {
	for i in $(seq 50); do
		! kill_after "$@" || return 0
	done
	fail "gsort $*: completed before it was killed, 50 times"
}

# make_checkpoint TYPE N ARGUMENT...: as retry_kill_after, and copy ck to `kept`
make_checkpoint() {
	retry_kill_after "$@"
	save_checkpoint
}

# save_checkpoint: copy the checkpoint to `kept`; restore_checkpoint: restore it
save_checkpoint() {
	rm -rf kept
	mkdir kept
	cp -r ck kept
}

restore_checkpoint() {
	rm -rf ck output
	cp -r kept/ck .
}

# expect_resume_error REGEX ARGUMENT...: gsort refuses to resume and keeps the checkpoint
expect_resume_error() {
	regex=$1
	shift
	expect_exit 2 --checkpoint=ck "$@"
	grep -v 'checkpoint kept\|resuming' stderr > rest
	mv rest stderr
	expect_message "$regex" "gsort $*"
	[ ! -e output ] || fail "gsort $*: there is an output"
	[ -e ck/gsort-manifest ] || fail "gsort $*: the checkpoint is gone"
}

claim 'another sort is refused, and the message names the difference'
make_checkpoint 2 5 -u -S 1M --batch-size=2 input
expect_resume_error "last of equal records was 'no' and is 'yes' now" -u --keep=last input -o output
make_checkpoint 2 5 -S 1M --batch-size=2 input
expect_resume_error "unique records was 'no' and is 'yes' now" -u input -o output
expect_resume_error "key was '0:u64le' and is '0:i64le' now" -t i64 input -o output
expect_resume_error "key was '0:u64le' and is '0:u64le:r' now" -r input -o output
expect_resume_error "number of inputs was '1' and is '2' now" input other -o output
expect_resume_error "input was 'input' and is 'other' now" other -o output
expect_resume_error "limit was 'none' and is '5' now" --limit=5 input -o output
expect_resume_error "output was 'output' and is 'elsewhere' now" input -o elsewhere
cp -p input untouched
touch input
expect_resume_error "input 'input' has changed since the checkpoint was written" input -o output
expect_line '; to start again, remove gsort-manifest and gsort-runs in it$' stderr
cp -p untouched input
diff -r kept/ck ck || fail 'the checkpoint was changed'

claim 'an input that was overwritten, with its time of modification kept, is refused'
printf 12345678 | dd of=input bs=8 seek=1000 conv=notrunc 2> /dev/null
touch -r untouched input
expect_resume_error "input 'input' has changed" input -o output

claim 'standard input at another offset is refused'
mv untouched input
make_checkpoint 2 5 -S 1M --batch-size=2
dd bs=8 count=1 of=/dev/null 2> /dev/null < input
(
	dd bs=8 count=1 of=/dev/null 2> /dev/null
	expect_resume_error "input '-' has changed" -o output
) < input
expect_exit 0 --checkpoint=ck -o output < input
expect_same expected output 'standard input'
make_checkpoint 2 5 -S 1M --batch-size=2 input

claim 'a resumed sort keeps to --temp-limit'
expect_resume_error 'ck: the runs of the checkpoint take .*--temp-limit' \
	-S 1M --batch-size=2 --temp-limit=64K input -o output

claim 'a damaged manifest is refused'
nbytes=$(stat -c %s ck/gsort-manifest)
for at in 16 21 36 56 116 516 5016 $((nbytes / 2)); do
	restore_checkpoint
	byte=$(od -An -tu1 -j "$at" -N1 ck/gsort-manifest)
	printf "\\$(printf %o $(((byte + 1) % 256)))" |
		dd of=ck/gsort-manifest bs=1 seek="$at" conv=notrunc 2> /dev/null
	expect_resume_error 'ck/gsort-manifest: the checkpoint is damaged at byte' input -o output
done
expect_line 'to start again, remove it and the gsort-runs beside it$' stderr

claim 'a manifest without records is refused when there are runs'
restore_checkpoint
truncate -s 16 ck/gsort-manifest
expect_resume_error 'its runs are not recorded; .* remove gsort-manifest and gsort-runs in it$' \
	input -o output

claim 'a resumed sort does not touch unfinished files of other sorts'
restore_checkpoint
echo theirs > .gsort-0123456789abcdef
echo theirs > .gsort-temp-0123456789abcdef0123456789abcdef
expect_exit 0 -S 8M --checkpoint=ck input -o output
for name in .gsort-*; do
	[ "$(cat "$name")" = theirs ] || fail "$name was changed"
done
[ "$(ls -d .gsort-* | wc -l)" -eq 2 ] || fail "there are $(ls -d .gsort-*)"
rm .gsort-*

claim 'missing runs are sorted again'
for nbytes in 0 16 4096; do
	restore_checkpoint
	rm ck/gsort-runs
	[ $nbytes -eq 0 ] || head -c $nbytes kept/ck/gsort-runs > ck/gsort-runs
	expect_exit 0 -S 8M --checkpoint=ck input -o output
	expect_line 'ck: the runs of the checkpoint are missing; starting again' stderr
	expect_same expected output "$nbytes bytes"
done

claim 'damaged runs are refused'
restore_checkpoint
{
	head -c 4096 kept/ck/gsort-runs
	tail -c +4097 kept/ck/gsort-runs | tr '\000-\377' '\001-\377\000'
} > ck/gsort-runs
named='to start again, remove gsort-manifest and gsort-runs in it$'
expect_resume_error "temporary file in ck: block .* is damaged: .*; $named" \
	-S 1M --batch-size=2 input -o output

at=$(sed -n 's/.* bytes at \([0-9]*\)).*/\1/p' stderr)

claim 'a damaged checkpoint does not grow with each start'
nbytes=$(stat -c %s ck/gsort-runs)
expect_resume_error "ck: the checkpoint is damaged: a block .* has a wrong checksum; $named" \
	-S 1M --batch-size=2 input -o output
[ "$(stat -c %s ck/gsort-runs)" -eq "$nbytes" ] || fail 'it has grown'

claim 'runs with transient read errors are used'
restore_checkpoint
tail -c +$((at + 1)) kept/ck/gsort-runs | head -c 1 | tr '\000-\377' '\001-\377\000' |
	dd of=ck/gsort-runs bs=1 seek="$at" conv=notrunc 2> /dev/null
expect_resume_error 'is damaged' -S 1M --batch-size=2 input -o output
expect_resume_error 'a block of its runs has a wrong checksum' -S 1M --batch-size=2 input -o output
tail -c +$((at + 1)) kept/ck/gsort-runs | head -c 1 |
	dd of=ck/gsort-runs bs=1 seek="$at" conv=notrunc 2> /dev/null
expect_exit 0 -S 1M --batch-size=2 --checkpoint=ck input -o output
expect_line '^gsort: resuming' stderr
expect_same expected output 'read rightly again'
rm output

claim 'a checkpoint that another process uses is refused'
restore_checkpoint
flock ck/gsort-manifest "$GSORT" --checkpoint=ck input -o output > stdout 2> stderr
[ $? -eq 2 ] || fail 'it was used'
expect_message '^gsort: ck: another gsort is using this checkpoint' 'locked'

# has_manifest PID: the process has opened the manifest
has_manifest() {
	ls -l "/proc/$1/fd" 2> /dev/null | grep -q gsort-manifest
}

# count_waits PID: print how often the threads of the process have waited
count_waits() {
	cat /proc/"$1"/task/*/status 2> /dev/null |
		awk '/^voluntary_ctxt_switches:/ { n += $2 } END { print n + 0 }'
}

claim 'a lock that is released soon is waited for'
# gsort tries for two seconds, with pauses. On a busy machine the lock may be released later.
for i in $(seq 20); do
	restore_checkpoint
	exec 9< ck/gsort-manifest
	flock 9
	"$GSORT" --checkpoint=ck input -o output > stdout 2> stderr 9<&- &
	process=$!
	while kill -0 $process 2> /dev/null && ! has_manifest $process; do
		:
	done
	n=$(count_waits $process)
	while kill -0 $process 2> /dev/null &&
		[ "$(count_waits $process)" -lt $((n + 3)) ]; do
		:
	done
	exec 9<&-
	wait $process
	status=$?
	[ $status -ne 0 ] || break
done
expect_status 0 'released'
expect_line '^gsort: resuming' stderr
rm output

claim 'the checkpoint can still be resumed, with another memory limit'
restore_checkpoint
expect_exit 0 -S 8M --checkpoint=ck input -o output
expect_line '^gsort: resuming: [1-9][0-9]* runs? holds?' stderr
expect_same expected output 'resumed'
[ ! -e ck ] || fail 'it is left'
rm -rf kept output .gsort-*

claim 'an output whose link has another target is refused, and no temporary file is left'
mkdir here there
ln -s here/output link
to=link
make_checkpoint 2 5 -S 1M --batch-size=2 input
to=output
ln -sfn there/output link
expect_resume_error "location of the output was '.*, as here/output' and is '.*, as there/output'" \
	-S 1M input -o link
[ -z "$(ls -A there)" ] || fail "new: $(ls -A there)"
ln -sfn here/output link
expect_exit 0 --checkpoint=ck -S 1M input -o link
expect_same expected here/output 'resumed'
[ "$(ls -A here)" = output ] || fail "left behind: $(ls -A here)"
rm -rf here there link

claim 'part files are written again from their runs, or from the input if the runs are missing'
"$GSORT" --split=2 input -o parts
retry_kill_after 2 2 -S 1M --split=2 input
expect_resume_error "number of part files was '2' and is '0' now" -S 1M input -o output
expect_resume_error "number of part files was '2' and is '3' now" -S 1M --split=3 input -o output
rm ck/gsort-runs
expect_exit 0 --checkpoint=ck -S 1M --split=2 input -o output
expect_line 'ck: the runs of the checkpoint are missing; starting again' stderr
expect_same parts/part-0000 output/part-0000 'the first part'
expect_same parts/part-0001 output/part-0001 'the second part'
rm -r parts output
[ ! -e ck ] || fail "the checkpoint is left: $(ls ck)"

claim 'sorts that cannot be resumed are refused'
cat input | expect_error 'standard input: .* requires regular files as input' --checkpoint=ck -
gzip -k input
expect_error 'input.gz: .* compressed files need a seek table' --checkpoint=ck input input.gz
expect_error 'temporary data is in the checkpoint' --checkpoint=ck -T tmp input
expect_error 'merge the files again instead' --checkpoint=ck -m input
run --checkpoint=ck input
expect_message '--checkpoint requires -o' 'without -o'
run --checkpoint=ck input -o /dev/null
expect_message '/dev/null: a checkpoint requires a regular file as output' 'to a device'
run --checkpoint=ck --zstd input -o /dev/null
expect_message '/dev/null: a checkpoint requires a regular file as output' 'to a device, compressed'
[ ! -e ck ] || fail 'a checkpoint was made'
: > file
expect_error "^gsort: --checkpoint 'file': not a directory" --checkpoint=file input

claim 'a refused start leaves no files, and leaves files of others alone'
for name in gsort-manifest gsort-runs; do
	mkdir theirs
	echo hello > theirs/$name
	expect_error "theirs/$name: is not a file of gsort and" --checkpoint=theirs input
	[ "$(ls -A theirs)" = $name ] || fail "a refused start leaves $(ls -A theirs)"
	[ "$(cat theirs/$name)" = hello ] || fail 'a file of others was changed'
	rm -r theirs
done
mkdir theirs
echo hello > theirs/manifest
echo hello > theirs/runs
expect_output expected --checkpoint=theirs -S 2M input
[ "$(cat theirs/manifest theirs/runs | tr -d '\n')" = hellohello ] || fail 'it was changed'
[ "$(ls -A theirs | wc -l)" -eq 2 ] || fail "it holds $(ls -A theirs)"

# On a tmpfs, a store to a mapping does not change the times of the file.
if shm=$(mktemp -d /dev/shm/gsort-test.XXXXXX 2> /dev/null); then
	claim 'an input that changed without a change of its times is refused'
	trap 'cd /; rm -rf "$work" "$shm"' EXIT
	cp input "$shm/input"
	make_checkpoint 2 5 -S 1M --batch-size=2 "$shm/input"
	before=$(stat -c '%y %z' "$shm/input")
	python3 -c "
import mmap
with open('$shm/input', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
	m[1000] ^= 1"
	[ "$(stat -c '%y %z' "$shm/input")" != "$before" ] || expect_resume_error \
		"$shm/input: has changed after record 0 " "$shm/input" -o output
	rm -rf "$shm" ck kept output .gsort-*
fi

# make_completed_checkpoint ARGUMENT...: sort, and restore the state between the rename of the
# output and the removal of the checkpoint. Hard links keep the files of the checkpoint.
memory=1M
make_completed_checkpoint() {
	for i in $(seq 50); do
		rm -rf ck saved
		mkdir saved
		"$GSORT" --checkpoint=ck -S $memory "$@" 2> stderr &
		process=$!
		while [ ! -e ck/gsort-runs ] && kill -0 $process 2> /dev/null; do
			:
		done
		ln ck/gsort-manifest ck/gsort-runs saved 2> /dev/null
		wait $process || fail "gsort $*: status $?"
		[ ! -e saved/gsort-runs ] || break
	done
	[ -e saved/gsort-runs ] || fail "gsort $*: no runs were seen"
	chmod 1700 saved
	mv saved ck
}

claim 'killed after the rename, it merges again, except for a sort in place'
rm -rf ck output .gsort-*
cp input in
make_completed_checkpoint in -o output
run --checkpoint=ck -S 1M in -o output
expect_line '^gsort: resuming: [1-9][0-9]* runs? holds?' stderr
expect_status 0
expect_same expected output 'merged again'
[ ! -e ck ] || fail "it is left: $(ls -A ck)"
make_completed_checkpoint in -t u64 -o in
run --checkpoint=ck -S 1M in -t u64 -o in
expect_line '^gsort: resuming: in is complete' stderr
expect_same expected in 'in place'

claim 'the message about one stored run has the singular'
cp input in
memory=16M
make_completed_checkpoint in --parallel=2 -o output
expect_exit 0 --checkpoint=ck -S 16M in -o output
expect_line '^gsort: resuming: 1 run holds ' stderr
expect_same expected output 'one run'
memory=1M

claim 'killed after the rename and started with another input, it sorts that input'
cp input in
cp other second
make_completed_checkpoint in second -t u64 -o in
generate -n 1000 --seed=2 -o second
"$GSORT" in second -o expected-other
run --checkpoint=ck -S 1M in second -t u64 -o in
expect_line '^gsort: ck: .* an input has changed since; starting again' stderr
expect_status 0
expect_same expected-other in 'the other input'
[ ! -e ck ] || fail "it is left: $(ls -A ck)"
rm -f in second expected-other

# expect_restart NAME EXPECTED ARGUMENT...: sort again, because the output NAME changed after its
# rename
expect_restart() {
	name=$1
	expected=$2
	shift 2
	run --checkpoint=ck -S 1M "$@" -o "$name"
	expect_line '^gsort: ck: .* its output has changed since; starting again' stderr
	expect_status 0 "gsort $*"
	expect_same "$expected" "$name" "gsort $*"
	[ ! -e ck ] || fail "it is left: $(ls -A ck)"
}

claim 'killed after the rename, an output in place that was overwritten is sorted again'
generate -n 2000000 --seed=2 -o another
"$GSORT" another -o expected-another
for memory in 64M 1M; do # in memory, spilled
	cp input in
	make_completed_checkpoint in -t u64 -o in
	cat another > in
	expect_restart in expected-another in -t u64
done
rm -f another expected-another

claim 'killed after the rename, an output in place that grew is not complete, despite its times'
cp input in
make_completed_checkpoint in -t u64 -o in
cp -p in stamp
head -c 8000 other >> in
"$GSORT" in -o expected-longer
touch -r stamp in
expect_restart in expected-longer in -t u64

claim 'an output in place that changed after the rename is not merged with its inputs again'
memory=1M
cp input in
make_completed_checkpoint in other -t u64 -o in
touch in
cp in untouched
expect_exit 2 --checkpoint=ck -S 1M in other -t u64 -o in
expect_line '^gsort: ck: .* changed since; .* remove gsort-manifest and gsort-runs in it$' stderr
expect_same untouched in 'refused'
rm -rf ck in stamp untouched expected-longer output

claim 'an existing checkpoint directory is not removed'
mkdir ours
echo hello > ours/file
expect_output expected --checkpoint=ours -S 2M input
[ "$(ls -A ours)" = file ] || fail "it holds $(ls -A ours)"
mkdir -m 700 empty
expect_output expected --checkpoint=empty -S 2M input
[ -d empty ] || fail 'an empty directory was removed'

claim 'a checkpoint directory that gsort created is removed, even after kills'
mkdir -m 1700 ck
expect_output expected --checkpoint=ck -S 2M input
[ ! -e ck ] || fail "it is left: $(ls -A ck)"

claim 'a report in a checkpoint directory that gsort created is kept'
mkdir -m 1700 ck
ln -s ck/report link
for report in --stats-json=ck/report --trace=./ck/../ck/report --report=link; do
	expect_error "^gsort: ${report%%=*} '${report#*=}' is in the checkpoint directory 'ck';" \
		--checkpoint=ck "$report" input
done
[ -d ck ] || fail 'the directory is gone'
rm -r ck link
expect_output expected --checkpoint=ours --stats-json=ours/report input
[ -s ours/report ] || fail 'no report in an existing directory'

claim 'directories with the names of checkpoint files are refused'
rm -rf ck
mkdir ck
mkfifo ck/gsort-manifest
expect_error '^gsort: ck/gsort-manifest: is not a regular file.* --checkpoint$' --checkpoint=ck \
	input
rm ck/gsort-manifest
: > target
ln -s ../target ck/gsort-runs
expect_error '^gsort: ck/gsort-runs: is a symbolic link.* --checkpoint$' --checkpoint=ck input
[ ! -s target ] || fail 'the link was followed'
ln -s nothing dangling
expect_error '^gsort: dangling: is a dangling symbolic link.* --checkpoint$' \
	--checkpoint=dangling input
rm -rf ck dangling target

# Sorts of lines.
rm -f input other output expected
awk 'BEGIN { srand(7); for (i = 0; i < 400000; i++)
	print int(rand() * 1000000), int(rand() * 1000000) }' > input
head -n 100 input > other
sort -k2,2n input > expected

claim 'another sort of lines is refused, and the message names the difference'
make_checkpoint 2 3 --lines -k2,2n -S 4M --batch-size=2 input
for words in '-k2,2nr' '-k2,2n -s' '-k2,2n -u' '-k2,2n -z' '-t: -k2,2n' '-k2,2'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	expect_resume_error "mode was '--lines -k2,2n' and is '--lines .*' now" \
		--lines $words input -o output
done
expect_resume_error "mode was '--lines -k2,2n' and is 'records' now" -t u8 input -o output
expect_resume_error "header was '0' and is '1' now" --lines -k2,2n --header input -o output
expect_resume_error "limit was 'none' and is '5' now" --lines -k2,2n --limit=5 input -o output
expect_resume_error "number of inputs was '1' and is '2' now" --lines -k2,2n input other -o output
expect_resume_error "output was 'output' and is 'elsewhere' now" --lines -k2,2n input -o elsewhere
diff -r kept/ck ck || fail 'the checkpoint was changed'
flock ck/gsort-manifest "$GSORT" --lines -k2,2n --checkpoint=ck input -o output > stdout 2> stderr
[ $? -eq 2 ] || fail 'it was used'
expect_message '^gsort: ck: another gsort is using this checkpoint' 'locked'
touch input
expect_resume_error "input 'input' has changed" --lines -k2,2n input -o output

claim 'damaged runs of lines are refused, and missing ones sorted again'
make_checkpoint 2 3 --lines -k2,2n -S 4M --batch-size=2 input
{
	head -c 4096 kept/ck/gsort-runs
	tail -c +4097 kept/ck/gsort-runs | tr '\000-\377' '\001-\377\000'
} > ck/gsort-runs
expect_resume_error "temporary file in ck: block .* is damaged: .*; $named" \
	--lines -k2,2n -S 4M --batch-size=2 input -o output
expect_resume_error "ck: the checkpoint is damaged: a block .* has a wrong checksum; $named" \
	--lines -k2,2n -S 4M input -o output
restore_checkpoint
rm ck/gsort-runs
expect_exit 0 --lines -k2,2n -S 4M --checkpoint=ck input -o output
expect_line 'ck: the runs of the checkpoint are missing; starting again' stderr
expect_same expected output 'missing runs'

claim 'a sort of lines resumes with less memory, if blocks of its runs fit'
yes 1 | head -c 26000000 > short
make_checkpoint 2 1 --lines -S 150M short
expect_resume_error '4 MiB of memory is too little to resume this checkpoint with blocks .* -S of' \
	--lines -S 4M short -o output
enough=$(sed -n 's/.* -S of at least //p' stderr)
expect_exit 0 --lines -S "$enough" --checkpoint=ck short -o output
expect_line '^gsort: resuming: [1-9]' stderr
expect_same short output 'less memory'
rm -r short kept

claim 'a short input of lines is sorted, whatever the memory is'
for memory in 4M 20M 1G; do
	expect_exit 0 --lines -S $memory --checkpoint=ck other -o output
done
sort other > expected.other
expect_same expected.other output 'a short input'

claim 'sorts of lines that cannot be resumed are refused'
cat input | expect_error 'standard input: .* requires regular files as input' \
	--lines --checkpoint=ck -
expect_error 'input.gz: .* compressed files need a seek table' \
	--lines --checkpoint=ck input input.gz
expect_error 'temporary data is in the checkpoint' --lines --checkpoint=ck -T tmp input
expect_error 'merge the files again instead' --lines --checkpoint=ck -m input
run --lines --checkpoint=ck input
expect_message '--checkpoint requires -o' 'without -o'
run --lines -c --checkpoint=ck input
expect_message '-c, --check and --checkpoint cannot be used together' 'a check'
run --lines --checkpoint=ck input -o /dev/null
expect_message '/dev/null: a checkpoint requires a regular file as output' 'to a device'
expect_error "^gsort: --checkpoint 'other': not a directory" --lines --checkpoint=other input
mkdir -m 1700 ck
expect_error "^gsort: --report 'ck/report' is in the checkpoint directory 'ck'" \
	--lines --checkpoint=ck --report=ck/report input
rmdir ck
mkdir foreign
echo hello > foreign/gsort-runs
expect_error 'foreign/gsort-runs: is not a file of gsort and' --lines --checkpoint=foreign input
[ "$(cat foreign/gsort-runs)" = hello ] || fail 'a file of others was changed'
rm -r foreign
expect_exit 0 --lines --explain --checkpoint=ck -S 4M input -o output
[ ! -e ck ] || fail '--explain has made a checkpoint'

claim 'standard input that is a file can be resumed'
sort input > expected
make_checkpoint 2 2 --lines -S 4M
expect_exit 0 --lines -S 4M --checkpoint=ck -o output < input
expect_line '^gsort: resuming: [1-9]' stderr
expect_same expected output 'standard input'
[ ! -e ck ] || fail 'it is left'

claim 'lines in place: killed after the rename, the sort is complete'
memory=4M
cp input in
make_completed_checkpoint --lines in -o in
expect_exit 0 --lines --checkpoint=ck -S 4M in -o in
expect_line '^gsort: resuming: in is complete' stderr
expect_same expected in 'in place'
[ ! -e ck ] || fail 'it is left'

if shm=$(mktemp -d /dev/shm/gsort-test.XXXXXX 2> /dev/null); then
	claim 'lines that changed without a change of the times are refused'
	trap 'cd /; rm -rf "$work" "$shm"' EXIT
	cp input "$shm/input"
	make_checkpoint 2 2 --lines -S 4M other "$shm/input"
	before=$(stat -c '%y %z' "$shm/input")
	python3 -c "
import mmap
with open('$shm/input', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
	m[1000] ^= 1"
	[ "$(stat -c '%y %z' "$shm/input")" != "$before" ] || expect_resume_error \
		"other: has changed after byte 0 since the checkpoint in ck" \
		--lines -S 4M other "$shm/input" -o output
	rm -rf "$shm"
fi

finish
