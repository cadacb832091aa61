#!/bin/sh
# reports - help, statistics, trace and progress are right and do not change the output
. "$(dirname "$0")/testlib.sh"

generate -n 500000 -o input
"$GSORT" input -o expected
nbytes=4000000

# tells ARGUMENT...: the output is the same with these options; messages are in `stderr`
tells() {
	rm -f output
	run "$@" input -o output
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	same expected output "gsort $*"
	nothing_left "gsort $*"
}

claim '--help goes to standard output and names every option'
run --help
[ "$status" -eq 0 ] || broken "status $status"
for option in type reverse unique stable output check merge split split-by shard explain \
	assume-size verify fsync \
	files0-from buffer-size device-memory temporary-directory temp-limit temp-compress zstd \
	parallel batch-size \
	backend gpus \
	progress stats stats-json trace report debug help version; do
	says "--$option" stdout
done
[ "$(awk '{ if (length > 80) n++ } END { print n + 0 }' stdout)" -eq 0 ] || broken 'wide lines'
[ ! -s stderr ] || broken 'standard error'

claim '--version is one line'
run --version
says '^gsort .*[0-9]+\.[0-9]+' stdout
[ "$(wc -l < stdout)" -eq 1 ] || broken "$(wc -l < stdout) lines"

claim '--explain prints the plan without sorting'
rm -f output
run --explain -S 1M input -o output
[ "$status" -eq 0 ] || broken "status $status"
[ ! -e output ] || broken 'there is an output'
for word in [Cc]hunk [Rr]un [Pp]ass [Mm]emory [Tt]emporary; do
	says $word stdout
done

claim '--explain prints bytes, rates and times'
for word in read sort merge spill fetch write; do
	says "^  $word  *[0-9.]* .*/s  *[0-9.]* s" stdout
done
says 'total: about [0-9.]* s' stdout

claim '--explain counts writes to any kind of output'
"$GSORT" --explain -S 1M input > stdout || broken "status $?"
says '^  write  *[0-9.]* .*/s  *[0-9.]* s' stdout
says 'total: about [0-9.]* s' stdout

claim 'there is a plan even without memory for measurements'
generate -R 65536 -k 0:b8 -b 24M -o large
"$GSORT" --explain -R 65536 -k 0:b8 -S 5M large > stdout || broken "status $?"
says '^  sort .*not measured$' stdout
says 'total: more than [0-9.]* s$' stdout
rm large

claim 'for a pipe, --explain prints the time per GiB or that of --assume-size'
cat input | "$GSORT" --explain -S 1M > stdout || broken "status $?"
says '^temporary space .* for each GiB' stdout
! grep -q '^temporary space  *0 B' stdout || broken 'no temporary space is predicted'
says 'total: about [0-9.]* s for each GiB' stdout
cat input | "$GSORT" --explain -S 1M --assume-size=${nbytes}b > stdout || broken "status $?"
! grep -q 'for each GiB' stdout || broken 'for each GiB, though a size is given'
says 'total: about [0-9.]* s$' stdout
promised=$(sed -n 's/^temporary space  *\([0-9.]*\) MiB$/\1/p' stdout)
cat input | "$GSORT" -S 1M --stats-json=stats -o output || broken "status $?"
awk -v promised="$promised" '
	/peak_temporary_bytes/ { gsub(/,/, ""); exit !($2 <= promised * 2 ^ 20 && $2 > 0) }
	' stats || broken "promised: $promised MiB; $(grep peak_temporary stats)"

claim '--assume-size is refused for a known size and without --explain'
refuses 'assume-size.*4000000' --explain --assume-size=1G input
refuses 'assume-size.*explain' --assume-size=1G input

claim '--stats is a table of the stages'
tells --stats -S 1M
says '^ +stage +bytes +busy +blocked +active +rate$' stderr
for word in read sort merge write spill; do
	says "[ ]*$word" stderr
done

claim '--stats-json writes valid JSON'
tells --stats-json=stats -S 1M
[ ! -s stderr ] || broken 'not silent'
is_json stats
says '"records_in": *500000' stats
says '"records_out": *500000' stats
tells --stats-json=stats -S 64M
is_json stats
says '"runs_spilled": *0' stats

claim 'inputs of -m do not count as spilled runs, unless they are pipes'
"$GSORT" input -o sorted
"$GSORT" -m sorted sorted -o output --stats-json=stats || broken "status $?"
says '"runs": *2' stats
says '"runs_spilled": *0' stats
cat sorted | "$GSORT" -m sorted - -o output --stats-json=stats || broken "status $?"
says '"runs": *2' stats
says '"runs_spilled": *1' stats
rm -f sorted output

# number NAME < JSON: print the first value with this name
number() {
	sed -n 's/.*"'"$1"'": *\([0-9.]*\).*/\1/p' | head -1
}

# near MICROSECONDS KIB: `stats` agrees with the CPU time and memory that were measured from outside
near() {
	awk -v real_us="$1" -v real_kib="$2" -v user="$(number user_s < stats)" \
		-v system_s="$(number system_s < stats)" \
		-v rss="$(number peak_rss_bytes < stats)" '
	function is_near(a, b, most) { return a - b < most && b - a < most }
	BEGIN {
		exit !(rss > 0 && is_near(real_kib, rss / 1024, 2048) &&
			is_near(real_us / 1e6, user + system_s, 0.25))
	}' || broken "really $1 us of a processor and $2 KiB: $(head -5 stats)"
}

claim 'statistics agree with measurements from outside and cost little'
generate -b 8K -o little
"$MEASURE_COMMAND" without "$GSORT" little -o output || broken "status $?"
"$MEASURE_COMMAND" with "$GSORT" little -o output --stats-json=stats 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent'
near $(cat without)
near $(cat with)
! grep -q peak_bytes_per_s stats || broken 'measured after a short sort'

claim 'after a long phase gsort measures the peak rate'
mkfifo slow
# gsort measures for a tenth of the phase. On a busy machine that may be too short, so retry longer.
for seconds in 1.1 5 25; do
	{
		cat input
		sleep $seconds # keeps the pipe open
	} > slow &
	run -S 1M --stats-json=stats slow -o output
	[ "$status" -eq 0 ] || broken "status $status"
	same expected output 'slow pipe'
	is_json stats
	tr -d '\n' < stats | tr '}' '\n' > stages # one stage per line
	! grep -q '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages || break
done
says '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages

claim '--trace writes JSON with events'
tells --trace=trace -S 1M
is_json trace
says '"ph"' trace

claim '--debug prints the parsed key'
tells --debug
says 'u64' stderr

claim '--verify and --fsync do not change the output'
tells --verify
[ ! -s stderr ] || broken 'not silent'
tells --verify --fsync -S 1M
[ ! -s stderr ] || broken 'not silent'
generate -n 100000 -d hundred-keys -o few
oracle u64 -u -r < few > unique
gives unique -u -r --verify few

claim 'if statistics or keys cannot be printed, the status is 2 and the output is complete'
for option in --stats --debug '--stats --debug'; do
	for place in '2> /dev/full' '2>&-'; do
		rm -f output
		eval "\"\$GSORT\" $option few -o output $place"
		status=$?
		[ "$status" -eq 2 ] || broken "$option $place: status $status"
		"$GSORT_CHECK" --same-records few output > /dev/null ||
			broken "$option $place: the output"
	done
	"$GSORT" -c $option unique -ru 2> /dev/full
	status=$?
	[ "$status" -eq 2 ] || broken "-c $option: status $status"
done
"$GSORT" few -o output --stats-json=stats 2> /dev/full || broken "a file of statistics: status $?"
"$GSORT" few -o output 2>&- || broken "nothing to be shown: status $?"

claim '--progress=always prints lines, with the overall progress; never prints none'
tells --progress=always -S 1M
says '^final merge: 100 %.*; total 100 %$' stderr
tells --progress=never
[ ! -s stderr ] || broken 'not silent'

claim '--progress ends at 100 %, however few records are written'
generate -d zipf -n 300000 -o repeated
for option in -u --limit=10 '-S 1M --limit=10 -u' '-S 1M --limit=200000' '--limit=10 --verify' \
	'-m -u'; do
	in=repeated
	[ "$option" != '-m -u' ] || in=expected
	"$GSORT" --progress=always $option $in -o output 2> stderr || broken "$option: status $?"
	tail -n 1 stderr | sed 's/total 100 %//' > last
	says ': 100 %,[^%]*$' last
done

claim 'without a terminal gsort is silent'
tells
[ ! -s stderr ] || broken 'not silent'

claim 'at a terminal gsort prints only that it reads from there'
printf 'zebras!\naardvark' > typed
"$RUN_IN_PTY" typed "$GSORT" -t b8 -o output 2> stderr || broken "status $?"
says '^gsort: reading from the terminal' stderr
printf 'aardvarkzebras!\n' | cmp - output || broken "$(cat output)"
"$RUN_IN_PTY" typed "$GSORT" -t u64 input -o output 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent, though it reads no terminal'
same expected output 'at a terminal'

claim 'at a terminal gsort prints the assumed type, unless the input has one'
"$RUN_IN_PTY" typed "$GSORT" input -o output 2> stderr || broken "status $?"
one_line '^gsort: input: no type given, sorting as u64.?$' 'no type'
same expected output 'no type'
"$RUN_IN_PTY" typed "$GSORT" -c expected 2> stderr || broken "status $?"
one_line '^gsort: expected: no type given, checking as u64.?$' '-c'
rm -f output
"$RUN_IN_PTY" typed "$GSORT" --split=2 input -o parts 2> stderr || broken "status $?"
"$RUN_IN_PTY" typed "$GSORT" -c parts 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent, though the manifest has the type'

claim 'SIGUSR1 does not end the sort'
mkfifo fifo
"$GSORT" fifo -o output 2> stderr &
exec 3> fifo
cat input >&3
kill -USR1 $!
# On a busy machine the thread may run late.
for i in $(seq 300); do
	[ ! -s stderr ] || break
	sleep 0.1
done
exec 3>&-
wait $! || broken "status $?"
same expected output 'after SIGUSR1'
[ "$(wc -l < stderr)" -eq 1 ] || broken "$(wc -l < stderr) lines"

finish
