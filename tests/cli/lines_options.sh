#!/bin/sh
# lines_options - options of gsort --lines that GNU sort does not have: counts, progress, statistics
. "$(dirname "$0")/testlib.sh"
mkfifo fifo

awk 'BEGIN { srand(5); s = "abcdefghijklmnopqrstuvwxyz"
	for (i = 0; i < 150000; i++)
	print int(rand() * 3000), int(rand() * 3), substr(s, 1 + int(rand() * 26)) }' > many
: > empty
printf '2 b\n10 a\n2 c\n10 a\n2 b\n10 a' > few

claim 'equal lines are counted as uniq -c does'
for file in many few; do
	for memory in 1M 64M; do
		"$GSORT" --lines -u --count -S $memory $file -o found 2> stderr || fail "status $?"
		sort $file | uniq -c | cmp -s - found || fail "$file, -S $memory"
	done
done
"$GSORT" --lines -u --count -S 1M --batch-size=2 many > found 2> stderr || fail "status $?"
sort many | uniq -c | cmp -s - found || fail 'in passes'
: > empty
"$GSORT" --lines -u --count empty > found 2> stderr || fail "status $?"
[ ! -s found ] || fail 'lines of nothing'

claim 'lines with equal keys are counted, and the first one is kept'
sort -s -k1,1n many | awk '
	$1 "" != key { if (NR > 1) printf "%7d %s\n", n, line; key = $1 ""; line = $0; n = 0 }
	{ n++ }
	END { printf "%7d %s\n", n, line }' > expected
for memory in 1M 64M; do
	"$GSORT" --lines -u --count -k1,1n -S $memory many > found 2> stderr || fail "status $?"
	expect_same expected found "-S $memory"
	"$GSORT" --lines -u --count -k1,1n -S $memory --limit=7 many > found 2> stderr
	head -n 7 expected | cmp -s - found || fail "--limit, -S $memory"
done
seq 500000 | awk '{ print $1 % 3 }' > three
printf '%7d %s\n' 166666 0 166667 1 166667 2 > expected
for option in '' '-n' '-k1,1'; do
	"$GSORT" --lines -u --count $option -S 1M three > found 2> stderr || fail "status $?"
	expect_same expected found "three keys, spilled: $option"
done

claim 'counts require -u and are not allowed with a check'
expect_failure '--count requires -u' --lines --count few
expect_failure "-c, --check and --count cannot be used together" --lines -u --count -c few

claim 'part files have equal numbers of lines, and their concatenation is the output'
sort many > expected
for memory in 1M 64M; do
	rm -rf parts
	"$GSORT" --lines --split=7 -S $memory many -o parts 2> stderr || fail "status $?"
	cat parts/part-* | cmp -s - expected || fail "-S $memory: other lines"
	for part in 0 1 2 3 4 5 6; do
		n=$((150000 * (part + 1) / 7 - 150000 * part / 7))
		[ "$(wc -l < parts/part-000$part)" -eq $n ] || fail "-S $memory: part $part"
	done
	rm -rf unique
	"$GSORT" --lines --split=4 -u -k1,1n -S $memory many -o unique 2> stderr || fail "status $?"
	sort -u -k1,1n many > found
	cat unique/part-* | cmp -s - found || fail "-u, -S $memory: other lines"
	[ "$(wc -l < unique/part-0001)" -eq 750 ] || fail "-u, -S $memory: lines of a part"
	rm -rf first
	"$GSORT" --lines --split=3 --limit=10 -S $memory many -o first 2> stderr || fail "status $?"
	head -n 10 expected > found
	cat first/part-* | cmp -s - found || fail "--limit, -S $memory: other lines"
done
rm -rf packed
"$GSORT" --lines --split=2 --zstd=3 many -o packed 2> stderr || fail "status $?"
"$GSORT" --lines -m packed -o found 2> stderr || fail "status $?"
expect_same expected found 'compressed parts'
rm -rf nothing
"$GSORT" --lines --split=3 empty -o nothing 2> stderr || fail "status $?"
"$GSORT" --lines -m nothing > found 2> stderr || fail "status $?"
[ ! -s found ] || fail 'lines of nothing'

claim 'a directory of part files is merged and checked'
sort few > few.sorted
sort -m expected few.sorted > merged
"$GSORT" --lines -m parts/manifest.json few.sorted -o found 2> stderr || fail "status $?"
expect_same merged found 'a manifest and a file'
"$GSORT" --lines -c parts 2> stderr || fail "status $?"
"$GSORT" --lines -c -u parts 2> stderr
[ $? -eq 1 ] || fail 'equal lines are in order'
expect_line '^gsort: parts:[0-9]*: disorder: ' stderr

claim 'a part file that has changed is refused'
cp -r parts changed
printf 'x' | dd of=changed/part-0003 bs=1 seek=100 conv=notrunc 2> stdout
expect_failure 'changed/part-0003: its lines differ' --lines -m changed -o new
expect_failure 'changed/part-0003: ' --lines -c changed
echo more >> changed/part-0006
expect_failure 'changed/part-0006: has [0-9]* bytes, not [0-9]*' --lines -c changed
rm changed/part-0002
expect_failure 'changed/part-0002: No such file' --lines -m changed

claim 'part files of lines and of records are not mixed up, and none is replaced while it is read'
expect_failure 'part files hold lines; use gsort --lines' -m parts
"$GSORT" -t u16 --split=2 expected -o records 2> stderr || fail "status $?"
expect_failure 'part files hold records, not lines' --lines -m records
expect_failure 'has an input as a part file' --lines --split=2 -m parts -o parts
expect_failure 'has an input as a part file' --lines --split=2 parts/part-0000 -o parts
expect_failure "limit: '10K' is not a number; suffixes are only for sizes" --lines --limit=10K few
expect_failure "split: 'x' is not a number" --lines --split=x few -o new
expect_failure 'split: .0. is not from 1 to 1000' --lines --split=0 few -o new
expect_failure 'split requires -o' --lines --split=2 few
expect_failure 'split-by requires --split' --lines --split-by=records few
expect_failure '--split and --header cannot be used together' --lines --split=2 --header few -o new
cat parts/part-* | cmp -s - expected || fail 'part files have changed'

claim 'the shards together are the output'
for memory in 1M 64M; do
	: > found
	for shard in 1 2 3 4 5; do
		"$GSORT" --lines -m --shard=$shard/5 -S $memory parts > shard 2> stderr ||
			fail "status $?"
		[ "$(wc -l < shard)" -eq 30000 ] || fail "-S $memory: shard $shard"
		cat shard >> found
	done
	expect_same expected found "-S $memory"
done
expect_failure 'shard requires -m' --lines --shard=1/2 few
expect_failure "'3/2' is not K/P" --lines -m --shard=3/2 few
expect_failure '--shard and -u, --unique cannot be used together' --lines -m -u --shard=1/2 few

claim 'a plan has the runs and passes that the sort then has'
# Its keys tie in their first bytes, so they are stored, and chunks are smaller.
awk '{ print ($1 % 2 ? "even" : "odd"), "number:", $0 }' many > tied
# A chunk of them has less text than a sort reads at once.
awk 'BEGIN { for (i = 0; i < 4000000; i++) print i % 10 ? "" : i % 7 }' > empty
for arguments in '-S 1M many' '-S 1M -k1,1n many' '-S 1M -k2,2 -k3 many' \
	'-S 1M --batch-size=2 many' 'many' '-S 1M -k1f tied' '-S 1M empty'; do
	# shellcheck disable=SC2086
	"$GSORT" --lines --explain=json $arguments > plan 2> stderr || fail "status $?"
	expect_json plan
	# shellcheck disable=SC2086
	"$GSORT" --lines --stats-json=stats $arguments -o found 2> stderr || fail "status $?"
	for member in runs_spilled passes; do
		planned=$(sed -n "s/.*\"$member\": \([0-9]*\).*/\1/p" plan)
		had=$(sed -n "s/.*\"$member\": \([0-9]*\).*/\1/p" stats)
		[ "$planned" -eq "$had" ] || [ "$planned" -eq $((had - 1)) ] ||
			[ "$planned" -eq $((had + 1)) ] || fail "$arguments: $member $planned, $had"
	done
done

claim 'a sort with merge passes takes at most the temporary space of its plan'
set -- -S 1M --batch-size=3 --temp-compress=none many many many
"$GSORT" --lines --explain=json "$@" > plan 2> stderr || fail "status $?"
"$GSORT" --lines --stats-json=stats "$@" -o found 2> stderr || fail "status $?"
planned=$(sed -n '/"temporary"/,/}/s/.*"needed_bytes": \([0-9]*\).*/\1/p' plan)
had=$(sed -n 's/.*"peak_temporary_bytes": \([0-9]*\).*/\1/p' stats)
[ "$had" -le "$planned" ] || fail "planned $planned, had $had"

claim 'a pass merges no more runs than necessary'
n_runs=$(sed -n 's/.*"runs_spilled": \([0-9]*\).*/\1/p' stats)
set -- -S 1M --batch-size=$((n_runs - 1)) --temp-compress=none many many many many
"$GSORT" --lines --stats-json=stats "$@" -o found 2> stderr || fail "status $?"
read_nbytes=$(sed -n '/"merge_passes"/,/}/s/.*"temporary_read_bytes": \([0-9]*\).*/\1/p' stats)
[ "$read_nbytes" -gt 0 ] && [ "$read_nbytes" -lt $((4 * $(wc -c < many))) ] ||
	fail "$n_runs runs: $read_nbytes bytes were read"

claim 'a plan is printed without an output'
"$GSORT" --lines --explain -S 1M many -o new > plan 2> stderr || fail "status $?"
[ ! -e new ] || fail 'an output'
expect_line '^memory  *4 MiB limit' plan
expect_line '^runs  *[2-9] are spilled$' plan
expect_line '^temporary space  *[0-9.]* MiB$' plan
expect_line '^output  *[0-9.]* MiB$' plan
for options in -u --limit=5 '-m --shard=1/2'; do
	# shellcheck disable=SC2086
	"$GSORT" --lines --explain $options many -o new > plan 2> stderr || fail "status $?"
	expect_line '^output  *at most [0-9.]* MiB$' plan
done
"$GSORT" --lines --explain -u --count many -o new > plan 2> stderr || fail "status $?"
! grep '^output' plan || fail 'the size of the output of --count is not known'
"$GSORT" --lines --explain - < fifo > plan 2> stderr &
: > fifo
wait $! || fail "status $?"
expect_line '^input  *unknown size$' plan
expect_failure "'x' is invalid; use text.json" --lines --explain=x many
for option in --stats --stats-json=new --trace=new --report=new; do
	expect_failure "--explain and ${option%=*} cannot be used together" \
		--lines --explain $option few
	[ ! -e new ] || fail "--explain $option: a file was made"
done

claim 'statistics have the same names as those of records'
"$GSORT" --lines -S 1M --stats-json=stats --stats many -o found 2> stderr || fail "status $?"
expect_line '^memory limit: *4 MiB' stderr
sort many | cmp -s - found || fail 'other lines'
expect_json stats
nbytes=$(wc -c < many)
for member in '"type": "lines"' '"records_in": 150000' '"records_out": 150000' \
		"\"input_bytes\": $nbytes" "\"written_[a-z]*_bytes\": $nbytes" \
		"\"spilled_bytes\": $nbytes" '"name": "final_merge"' \
		'"runs_spilled": [2-9]' '"passes": 1' '"temporary_read_bytes": [1-9]'; do
	expect_line "$member" stats
done
expect_line '^150000 lines .* read, 150000 written' stderr
expect_line '^run generation: ' stderr
expect_line '^final merge: ' stderr
expect_line '^  merge ' stderr

claim 'bytes of stages are those of the lines'
"$GSORT" --lines --stats-json=stats - < many > found 2> stderr || fail "status $?"
awk '/"name": "(read|sort|write)"/ { name = $2 } /"bytes":/ { print name, $2 }' stats |
	tr -d '",' > found
printf 'read %d\nsort %d\nwrite %d\n' "$nbytes" "$nbytes" "$nbytes" > expected
expect_same expected found stages

claim 'a check has statistics, too'
sort many > ordered
"$GSORT" --lines -c --stats-json=stats ordered 2> stderr || fail "status $?"
expect_line '"records_in": 150000' stats
expect_line '"name": "verify"' stats
"$GSORT" --lines -c --stats-json=stats few 2> stderr
[ $? -eq 1 ] || fail 'status is not 1'
expect_line '"records_in": 2' stats
expect_line '"input_bytes": 9' stats

claim 'a report and a trace are written, and only when the sort succeeds'
"$GSORT" --lines -S 1M --report=page --trace=trace many -o found 2> stderr || fail "status $?"
expect_line '150,000 lines sorted in' page
expect_line 'All lines were verified' page
expect_json trace
echo old > page
"$GSORT" --lines --report=page missing -o found 2> stderr
[ $? -eq 2 ] || fail 'status is not 2'
[ "$(cat page)" = old ] || fail 'a report of a failed sort'

claim 'a report must not be an input or the output'
for files in '--report=few few' '--stats-json=found few -o found' '--trace=x --report=./x few'; do
	# shellcheck disable=SC2086
	expect_failure 'the same file' --lines $files
done

claim 'numbers may have blanks and a sign, and may be too large'
printf 'a,3\nb,10\nc,2\n' > table
printf 'c,2\na,3\nb,10\n' > expected
for options in "-k' 2, 2n'" '-k+2n' "-k2n --parallel=' 1' -S' 4M'" \
	'-k2n --limit=+99999999999999999999' '-S +1 -k2n' '-k +2n'; do
	eval "\"\$GSORT\" --lines -t, $options table" > found 2> stderr ||
		fail "$options: status $?"
	expect_same expected found "$options"
done

claim '--lines may be abbreviated'
"$GSORT" --lin -t, -k2n table > found 2> stderr || fail "status $?"
expect_same expected found '--lin'

claim 'options of records are refused by name, and words are listed'
for words in '--argsort --argsort:.not.with.--lines' '--verify --verify:.not.with' \
	'--sort=xx general-numeric,' '--check=xx diagnose-first,'; do
	expect_failure "${words#* }" --lines "${words% *}" table
done

claim 'lines are written to a terminal, records are not'
if command -v script > /dev/null; then
	script -qec "'$GSORT' --lines -t, -k2n table" typescript < /dev/null | tr -d '\r' > found
	expect_same expected found 'a terminal'
	script -qec "'$GSORT' -t u8 table" typescript < /dev/null > found
	grep -q 'is a terminal; write binary records' found || fail 'records are written'
fi

claim 'a check has no output'
for option in --limit=1 --zstd --fsync; do
	expect_failure "-c, --check and ${option%=1} cannot be used" --lines -c $option table
done

claim 'part files are merged and checked by the keys that they were sorted by'
"$GSORT" --lines -t, -k2,2n --split=2 table -o sorted 2> stderr || fail "status $?"
for options in '-m' '-c' '-t, -k2,2 -m' '-t, -k2,2n -r -m'; do
	# shellcheck disable=SC2086
	expect_failure "sorted: was sorted with '--lines -t, -k2,2n'; give the same" \
		--lines $options sorted
done
"$GSORT" --lines -t, -k2,2n -c sorted 2> stderr || fail "-c: status $?"
for options in '-m' '-s -m' '-u -m'; do
	# shellcheck disable=SC2086
	"$GSORT" --lines -t, -k2n,2 $options sorted > found 2> stderr || fail "$options: status $?"
	expect_same expected found "$options"
done
"$GSORT" --lines -s -t, -k2,2n --split=2 table -o stable 2> stderr || fail "status $?"
"$GSORT" --lines -t, -k2,2n -m stable > found 2> stderr
[ $? -eq 2 ] || fail 'a stable order: status is not 2'
"$GSORT" --lines -s -t, -k2,2n -m stable > found 2> stderr || fail "a stable order: status $?"
mkdir directory
expect_failure 'directory: .*s a directory' --lines -c directory

claim 'compressed inputs can be read as they are'
zstd -q < table > table.zst
"$GSORT" --lines table.zst > found 2> stderr || fail "status $?"
sort table | cmp -s - found || fail 'decompressed'
"$GSORT" --lines --format=raw table.zst > found 2> stderr || fail "status $?"
sort table.zst | cmp -s - found || fail 'not read as it is'
xz -k table
"$GSORT" --lines table.xz > found 2> stderr || fail "status $?"
sort table.xz | cmp -s - found || fail 'not the bytes of the .xz file'
expect_message 'warning: table.xz: is compressed by xz; decompress it first' 'a .xz file'
"$GSORT" --lines --zstd table 2> stderr | zstd -dcq > found || fail "status $?"
sort table | cmp -s - found || fail 'compressed'

claim 'the temporary space is at most the planned space, also of short lines'
seq 100000 999999 | awk '{ print $1 * 7919 % 1000003 }' > short
for file in many short; do
	"$GSORT" --lines --explain=json -S 1M --temp-compress=none $file > plan 2> stderr ||
		fail "status $?"
	limit=$(sed -n '/"temporary"/{n;s/[^0-9]//g;p;}' plan)
	"$GSORT" --lines -S 1M --temp-compress=none --temp-limit="$limit" $file > found \
		2> stderr || fail "$file: status $?"
done

claim 'of several processes that MPI starts, one warns that each sorts the whole input'
OMPI_COMM_WORLD_SIZE=4 "$GSORT" --lines few > found 2> stderr || fail "status $?"
expect_message 'warning: .* several processes \(OMPI_COMM_WORLD_SIZE=4\); .* gsort-mpi' \
	'first process'
sort few > ordered
for words in '' '-c' '--explain' '-m --shard=1/4'; do
	rank=0
	[ -n "$words" ] || rank=3
	# shellcheck disable=SC2086
	PMI_SIZE=4 PMI_RANK=$rank "$GSORT" --lines $words ordered > found 2> stderr ||
		fail "$words: status $?"
	[ ! -s stderr ] || fail "rank $rank $words: $(cat stderr)"
done

claim 'progress ends at 100 %'
"$GSORT" --lines --progress=always many -o found 2> stderr || fail "status $?"
expect_line '^final merge: 100 %' stderr
expect_failure "'x' is invalid; use auto.always.never" --lines --progress=x few

claim 'SIGUSR1 prints the progress and does not end the sort'
expect_line_after_sigusr1 many --lines fifo -o found
sort many | cmp -s - found || fail 'other lines'
expect_line '^run generation: ' stderr

finish
