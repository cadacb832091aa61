#!/bin/sh
# reports - help, statistics, trace and progress are right and do not change the output
. "$(dirname "$0")/testlib.sh"

generate -n 500000 -o input
"$GSORT" input -o expected
nbytes=4000000

# sort_with_options ARGUMENT...: the output is the same with these options; messages are in `stderr`
sort_with_options() {
	rm -f output
	expect_exit 0 "$@" input -o output
	expect_same expected output "gsort $*"
	expect_no_temp_files "gsort $*"
}

claim '--help goes to standard output and names every option'
expect_exit 0 --help
for option in type reverse unique stable output check merge split split-by shard explain \
	assume-size verify fsync \
	files0-from buffer-size device-memory temporary-directory temp-limit temp-compress zstd \
	parallel batch-size backend gpus \
	progress stats stats-json trace report debug help version; do
	expect_line "--$option" stdout
done
[ "$(awk '{ if (length > 80) n++ } END { print n + 0 }' stdout)" -eq 0 ] || fail 'wide lines'
[ ! -s stderr ] || fail 'standard error'

claim '--version is one line'
run --version
expect_line '^gsort .*[0-9]+\.[0-9]+' stdout
[ "$(wc -l < stdout)" -eq 1 ] || fail "$(wc -l < stdout) lines"

claim '--explain prints the plan without sorting'
rm -f output
expect_exit 0 --explain -S 1M input -o output
[ ! -e output ] || fail 'there is an output'
for word in [Cc]hunk [Rr]un [Pp]ass [Mm]emory [Tt]emporary; do
	expect_line $word stdout
done

claim '--explain prints bytes, rates and times'
for word in read sort merge spill fetch write; do
	expect_line "^  $word  *[0-9.]* .*/s  *[0-9.]* s" stdout
done
expect_line 'total: about [0-9.]* s' stdout

claim '--explain counts writes to any kind of output'
"$GSORT" --explain -S 1M input > stdout || fail "status $?"
expect_line '^  write  *[0-9.]* .*/s  *[0-9.]* s' stdout
expect_line 'total: about [0-9.]* s' stdout

claim 'there is a plan even without memory for measurements'
generate -R 65536 -k 0:b8 -b 24M -o large
"$GSORT" --explain -R 65536 -k 0:b8 -S 5M large > stdout || fail "status $?"
expect_line '^  sort .*not measured$' stdout
expect_line 'total: more than [0-9.]* s$' stdout
rm large

claim 'for a pipe, --explain prints the time per GiB or that of --assume-size'
cat input | "$GSORT" --explain -S 1M > stdout || fail "status $?"
expect_line '^temporary space .* for each GiB' stdout
! grep -q '^temporary space  *0 B' stdout || fail 'no temporary space is predicted'
expect_line 'total: about [0-9.]* s for each GiB' stdout
cat input | "$GSORT" --explain -S 1M --assume-size=${nbytes}b > stdout || fail "status $?"
! grep -q 'for each GiB' stdout || fail 'for each GiB, though a size is given'
expect_line 'total: about [0-9.]* s$' stdout
promised=$(sed -n 's/^temporary space  *\([0-9.]*\) MiB$/\1/p' stdout)
cat input | "$GSORT" -S 1M --stats-json=stats -o output || fail "status $?"
awk -v promised="$promised" '
	/peak_temporary_bytes/ { gsub(/,/, ""); exit !($2 <= promised * 2 ^ 20 && $2 > 0) }
	' stats || fail "promised: $promised MiB; $(grep peak_temporary stats)"

claim '--assume-size is refused for a known size and without --explain'
expect_error 'assume-size.*4000000' --explain --assume-size=1G input
expect_error 'assume-size.*explain' --assume-size=1G input

claim '--stats is a table of the stages'
sort_with_options --stats -S 1M
expect_line '^ +stage +bytes +busy +blocked +active +rate$' stderr
for word in read sort merge write spill; do
	expect_line "[ ]*$word" stderr
done

claim '--stats-json writes valid JSON'
sort_with_options --stats-json=stats -S 1M
[ ! -s stderr ] || fail 'not silent'
expect_json stats
expect_line '"records_in": *500000' stats
expect_line '"records_out": *500000' stats
sort_with_options --stats-json=stats -S 64M
expect_json stats
expect_line '"runs_spilled": *0' stats

claim 'inputs of -m do not count as spilled runs, unless they are pipes'
"$GSORT" input -o sorted
"$GSORT" -m sorted sorted -o output --stats-json=stats || fail "status $?"
expect_line '"runs": *2' stats
expect_line '"runs_spilled": *0' stats
cat sorted | "$GSORT" -m sorted - -o output --stats-json=stats || fail "status $?"
expect_line '"runs": *2' stats
expect_line '"runs_spilled": *1' stats
rm -f sorted output

# json_number NAME < JSON: print the first value with this name
json_number() {
	sed -n 's/.*"'"$1"'": *\([0-9.]*\).*/\1/p' | head -1
}

# expect_close MICROSECONDS KIB: `stats` agrees with the CPU time and memory that were measured
# from outside
expect_close() {
	awk -v real_us="$1" -v real_kib="$2" -v user="$(json_number user_s < stats)" \
		-v system_s="$(json_number system_s < stats)" \
		-v rss="$(json_number peak_rss_bytes < stats)" '
	function is_near(a, b, most) { return a - b < most && b - a < most }
	BEGIN {
		exit !(rss > 0 && is_near(real_kib, rss / 1024, 2048) &&
			is_near(real_us / 1e6, user + system_s, 0.25))
	}' || fail "really $1 us of a processor and $2 KiB: $(head -5 stats)"
}

claim 'the peak of memory is not that of the program that starts gsort'
generate -b 8K -o little
python3 -c '
import subprocess, sys
memory = bytearray(400 << 20)
subprocess.run(sys.argv[1:], check=True)' "$GSORT" little -o output --stats-json=stats ||
	fail "status $?"
[ "$(json_number peak_rss_bytes < stats)" -lt $((300 << 20)) ] || fail "$(head -5 stats)"

claim 'statistics agree with measurements from outside and cost little'
generate -b 8K -o little
"$MEASURE_COMMAND" without "$GSORT" little -o output || fail "status $?"
"$MEASURE_COMMAND" with "$GSORT" little -o output --stats-json=stats 2> stderr || fail "status $?"
[ ! -s stderr ] || fail 'not silent'
expect_close $(cat without)
expect_close $(cat with)
! grep -q peak_bytes_per_s stats || fail 'measured after a short sort'

claim 'after a long phase gsort measures the peak rate'
mkfifo slow
# gsort measures for a tenth of the phase. On a busy machine that may be too short, so retry longer.
for seconds in 1.1 5 25; do
	{
		cat input
		sleep $seconds # keeps the pipe open
	} > slow &
	expect_exit 0 -S 1M --stats-json=stats slow -o output
	expect_same expected output 'slow pipe'
	expect_json stats
	tr -d '\n' < stats | tr '}' '\n' > stages # one stage per line
	! grep -q '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages || break
done
expect_line '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages

claim '--trace writes JSON with events'
sort_with_options --trace=trace -S 1M
expect_json trace
expect_line '"ph"' trace

claim '--debug prints the parsed key'
sort_with_options --debug
expect_line 'u64' stderr

claim '--verify and --fsync do not change the output'
sort_with_options --verify
[ ! -s stderr ] || fail 'not silent'
sort_with_options --verify --fsync -S 1M
[ ! -s stderr ] || fail 'not silent'
generate -n 100000 -d hundred-keys -o few
reference_sort u64 -u -r < few > unique
expect_output unique -u -r --verify few

claim 'if statistics or keys cannot be printed, the status is 2 and the output is complete'
for option in --stats --debug '--stats --debug'; do
	for place in '2> /dev/full' '2>&-'; do
		rm -f output
		eval "\"\$GSORT\" $option few -o output $place"
		status=$?
		expect_status 2 "$option $place"
		"$GSORT_CHECK" --same-records few output > /dev/null ||
			fail "$option $place: the output"
	done
	"$GSORT" -c $option unique -ru 2> /dev/full
	status=$?
	expect_status 2 "-c $option"
done
"$GSORT" few -o output --stats-json=stats 2> /dev/full || fail "a file of statistics: status $?"
"$GSORT" few -o output 2>&- || fail "nothing to be shown: status $?"

claim '--progress=always prints lines, with the overall progress; never prints none'
sort_with_options --progress=always -S 1M
expect_line '^final merge: 100 %.*; total 100 %$' stderr
sort_with_options --progress=never
[ ! -s stderr ] || fail 'not silent'

claim '--progress ends at 100 %, however few records are written'
generate -d zipf -n 300000 -o repeated
for option in -u --limit=10 '-S 1M --limit=10 -u' '-S 1M --limit=200000' '--limit=10 --verify' \
	'-m -u'; do
	in=repeated
	[ "$option" != '-m -u' ] || in=expected
	"$GSORT" --progress=always $option $in -o output 2> stderr || fail "$option: status $?"
	tail -n 1 stderr | sed 's/total 100 %//' > last
	expect_line ': 100 %,[^%]*$' last
done

claim 'without a terminal gsort is silent'
sort_with_options
[ ! -s stderr ] || fail 'not silent'

claim 'at a terminal gsort prints only that it reads from there'
printf 'zebras!\naardvark' > typed
"$RUN_IN_PTY" typed "$GSORT" -t b8 -o output 2> stderr || fail "status $?"
expect_line '^gsort: reading from the terminal' stderr
printf 'aardvarkzebras!\n' | cmp - output || fail "$(cat output)"
# After a second gsort shows its progress, so the input is small.
"$GSORT" little -o little-sorted
"$RUN_IN_PTY" typed "$GSORT" -t u64 little -o output 2> stderr || fail "status $?"
[ ! -s stderr ] || fail 'not silent, though it reads no terminal'
expect_same little-sorted output 'at a terminal'

claim 'at a terminal gsort prints the assumed type, unless the input has one'
"$RUN_IN_PTY" typed "$GSORT" little -o output 2> stderr || fail "status $?"
expect_message '^gsort: little: no type given, sorting as u64.?$' 'no type'
expect_same little-sorted output 'no type'
"$RUN_IN_PTY" typed "$GSORT" -c little-sorted 2> stderr || fail "status $?"
expect_message '^gsort: little-sorted: no type given, checking as u64.?$' '-c'
rm -f output
"$RUN_IN_PTY" typed "$GSORT" --split=2 little -o parts 2> stderr || fail "status $?"
"$RUN_IN_PTY" typed "$GSORT" -c parts 2> stderr || fail "status $?"
[ ! -s stderr ] || fail 'not silent, though the manifest has the type'

claim 'SIGUSR1 does not end the sort'
mkfifo fifo
expect_line_after_sigusr1 input fifo -o output
expect_same expected output 'after SIGUSR1'

finish
