#!/bin/sh
# disk_full - a full disk is reported, before the sort if possible, and no file is lost
#
# The small disks are tmpfs file systems in a mount namespace. Skipped (77) if mounting is not
# allowed.
. "$(dirname "$0")/testlib.sh"

generate -n 1000000 -o input
cp input untouched
"$GSORT" input -o expected
echo 'an older output' > older
mkdir small second

if ! unshare -m mount -t tmpfs -o size=1M none small 2> /dev/null; then
	echo 'full: skipped: no right to mount a file system'
	exit 77
fi

# on_tmpfs OPTIONS COMMAND...: run a command while `small` is a tmpfs with these mount
# options. Copies small/output to `found` afterwards.
on_tmpfs() {
	options=$1
	shift
	cp older output
	rm -f found
	unshare -m sh -c 'mount -t tmpfs -o "$1" none small && shift &&
		if [ "$1" = --within ]; then cp input small/output; shift; fi && "$@"
		status=$?
		[ ! -e small/output ] || cp small/output found
		[ "$(ls -A small)" = output ] || [ -z "$(ls -A small)" ] || echo litter >&2
		exit $status' sh "$options" "$@" > stdout 2> stderr
	echo $? > code # in a file, because a pipe runs this in a subshell
}

# expect_full REGEX WHAT: the sort was refused with a message, and input and older output are
# unchanged
expect_full() {
	status=$(cat code)
	expect_status 2 "$2"
	expect_message "$1" "$2"
	expect_same older output "$2: older output"
	expect_same untouched input "$2: input"
}

claim 'too little temporary space is reported before the sort, with the missing size'
for kib in 100 4000; do
	on_tmpfs size=${kib}k "$GSORT" -S 2M --temp-compress=none -T small input -o output
	expect_full '^gsort: small: No space.*[0-9.]+ [KM]iB of temp.* missing' "$kib KiB"
done

on_tmpfs size=64M "$GSORT" -S 2M --temp-compress=none --temp-limit=4M -T small input -o output
expect_full ' of temporary space needed, but --temp-limit leaves .*; use a larger -S' 'a limit'

claim 'also for lines'
tr -dc a-z < input | head -c 150000 | fold -w 50 > lines
while [ "$(wc -c < lines)" -lt 12000000 ]; do cat lines lines lines > more; mv more lines; done
on_tmpfs size=4000k "$GSORT" --lines -S 4M --temp-compress=none -T small lines -o output
expect_full '^gsort: small: No space.*[0-9.]+ [KM]iB of temp.* missing' "lines"
on_tmpfs size=64M "$GSORT" --lines -S 4M --temp-compress=none --temp-limit=4M -T small lines -o \
	output
expect_full ' of temporary space needed, but --temp-limit leaves .*; use a larger -S' \
	'a limit, lines'
on_tmpfs size=4000k "$GSORT" --lines lines -o small/output
[ ! -e found ] || fail 'lines: an output'
expect_full 'small/output.*No space' 'lines: output'
for known in --stable:false --unique:null; do
	on_tmpfs size=4000k "$GSORT" --lines --explain=json "${known%:*}" lines -o small/output
	expect_line "\"sufficient\": ${known#*:}" stdout
done
on_tmpfs size=4000k sh -c 'cat lines | "$0" --lines -S 4M --temp-compress=none -T small' "$GSORT"
expect_full 'small: No space.*: temporary files have [0-9]+ bytes and must grow; name a directory' \
	'lines of a pipe'
stored=$(sed 's/.*temporary files have \([0-9]*\) bytes.*/\1/' stderr)
[ "$stored" -le $((4000 * 1024)) ] || fail "lines of a pipe: $stored bytes in 4000 KiB"
on_tmpfs size=4000k sh -c '"$0" --lines -u -S 4M -T small lines > output && mv output small' \
	"$GSORT"
[ "$(cat code)" -eq 0 ] || fail "lines, -u: status $(cat code)"

claim 'runs that fit because they are compressed are not refused'
generate -n 1000000 -d hundred-keys -o shrinks
"$GSORT" shrinks -o shrunk
for mode in auto delta zstd; do
	on_tmpfs size=4000k "$GSORT" -S 2M --temp-compress=$mode -T small shrinks -o output
	[ "$(cat code)" -eq 0 ] || fail "$mode: status $(cat code)"
	expect_same shrunk output $mode
done

claim 'a sort that drops records is not refused'
on_tmpfs size=400k "$GSORT" -S 2M --temp-compress=none -u -T small shrinks -o output
[ "$(cat code)" -eq 0 ] || fail "-u: status $(cat code)"
on_tmpfs size=400k "$GSORT" -S 2M --temp-compress=none --limit=10 -T small input -o output
[ "$(cat code)" -eq 0 ] || fail "--limit: status $(cat code)"

claim 'runs that do not compress well enough are refused after the first run'
for mode in auto zstd; do
	on_tmpfs size=4000k "$GSORT" -S 2M --temp-compress=$mode -R 64 -k 0:u64 -T small input -o \
		output
	expect_full '^gsort: small: No space.*does not shrink.* missing' $mode
done

claim 'with input from a pipe, a full disk is reported when it occurs'
for kib in 100 1000 4000; do
	cat input | on_tmpfs size=${kib}k "$GSORT" -S 2M --temp-compress=none -T small -o output
	expect_full 'small.*(space|limit)' "$kib KiB"
done

claim 'a full directory is skipped'
cat input | on_tmpfs size=1M "$GSORT" -S 2M --temp-compress=none -T small -T second -o output
[ "$(cat code)" -eq 0 ] || fail "status $(cat code)"
expect_same expected output 'two directories'

claim 'when all directories are full, they are named'
cat input | on_tmpfs size=1M "$GSORT" -S 2M --temp-compress=none -T small -T small -o output
expect_full 'small, small' 'twice the same'

claim 'with a checkpoint, the hint does not name -T'
on_tmpfs size=4M "$GSORT" -S 2M --temp-compress=none --checkpoint=small/ck input -o output
expect_full '^gsort: small/ck: No space.*; use a larger -S, or --checkpoint in another dir' before
# Enlarge the disk and repeat the command, in one namespace, which keeps the file system.
cp older output
unshare -m sh -c 'mount -t tmpfs -o size=400k none small
	set -- "$1" -S 1M --temp-compress=delta --checkpoint=small/ck shrinks -o output
	"$@"
	echo $? > code
	cmp output older || echo changed >&2
	mount -o remount,size=64M small
	"$@" 2> again' sh "$GSORT" 2> stderr
[ "$(cat code)" -eq 2 ] || fail "status $(cat code)"
expect_line '^gsort: small/ck: No space.*; make room there$' stderr
expect_line '^gsort: small/ck: checkpoint kept; rerun the same command to resume$' stderr
[ "$(wc -l < stderr)" -eq 2 ] || fail 'not two lines'
expect_line '^gsort: resuming: [1-9][0-9]* runs?' again
expect_same shrunk output 'with more room'

claim "the output's disk is full: at once, half way, at the last block"
for kib in 4 4000 7808; do
	on_tmpfs size=${kib}k "$GSORT" -S 64M input -o small/output
	[ ! -e found ] || fail "$kib KiB: an output"
	expect_full 'small/output.*No space' "$kib KiB"
	on_tmpfs size=${kib}k "$GSORT" -S 64M - -o small/output < input
	[ ! -e found ] || fail "$kib KiB, from a file as standard input: an output"
	expect_full 'small/output.*No space' "$kib KiB"
	cat input | on_tmpfs size=${kib}k "$GSORT" -S 64M - -o small/output
	[ ! -e found ] || fail "$kib KiB, from a pipe: an output"
	expect_full 'small/output.*No space' "$kib KiB"
done
on_tmpfs size=7816k "$GSORT" -S 64M input -o small/output
[ "$(cat code)" -eq 0 ] || fail "just enough: status $(cat code)"
expect_same expected found 'just enough'

claim 'a full disk is reported before gsort appends to or overwrites an open file'
on_tmpfs size=4000k sh -c 'cat older > small/output; "$0" -S 64M input >> small/output' "$GSORT"
expect_full '^gsort: standard output: No space.* 8000000 bytes are needed, ' '>>'
expect_same older found '>>'
head -c 2000000 input > first
on_tmpfs size=4000k sh -c 'cat first > small/output; "$0" -S 64M input 1<> small/output' "$GSORT"
expect_full '^gsort: standard output: No space.* 6000000 bytes are needed, ' '1<>'
expect_same first found '1<>'
on_tmpfs size=10000k sh -c 'cat older > small/output; "$0" -S 64M input >> small/output' "$GSORT"
[ "$(cat code)" -eq 0 ] || fail "with room: status $(cat code)"
cat older expected > appended
expect_same appended found 'with room'

claim "the disk of an output's parts is full: at once, half way, at the last block"
for kib in 4 4000 7808; do
	on_tmpfs size=${kib}k "$GSORT" -S 64M --split=3 input -o small/divided
	expect_full 'small/divided/part-000[0-2].*No space' "parts, $kib KiB"
	cat input | on_tmpfs size=${kib}k "$GSORT" -S 64M --split=3 --split-by=keys - -o \
		small/divided
	expect_full 'small/divided/part-000[0-2].*No space' "parts at keys, from a pipe, $kib KiB"
	on_tmpfs size=${kib}k "$GSORT" -S 64M -u --split=3 input -o small/divided
	expect_full 'small/divided/part-000[0-2].*No space' "parts of unique records, $kib KiB"
done

claim 'part files can use the space that runs release'
generate -n 8000000 -o large
"$GSORT" large -o large.expected
# The other shell expands these words.
# shellcheck disable=SC2016
on_tmpfs size=84M sh -c '
	"$0" -S 16M --temp-compress=none -T small --split=2 large -o small/divided &&
	cat small/divided/part-* > large.parts && rm -r small/divided' "$GSORT"
[ "$(cat code)" -eq 0 ] || fail "status $(cat code): $(cat stderr)"
expect_same large.expected large.parts 'parts beside runs'

claim 'no space for a new file next to the input that it replaces'
on_tmpfs size=12000k --within "$GSORT" -t u64 -S 64M small/output -o small/output
expect_full 'small/output.*No space' 'in place'
expect_same untouched found 'in place'

finish
