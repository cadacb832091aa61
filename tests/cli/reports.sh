#!/bin/sh
# reports - reports and messages of a sort, which do not change the output
. "$(dirname "$0")/testlib.sh"

generate -n 500000 -o input
"$GSORT" input -o expected
nbytes=4000000

# sorts ARGUMENT...: sort to the expected output; messages are in stderr.
sorts() {
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

claim '--explain prints the plan and does nothing'
rm -f output
run --explain -S 1M input -o output
[ "$status" -eq 0 ] || broken "status $status"
[ ! -e output ] || broken 'there is an output'
for word in [Cc]hunk [Rr]un [Pp]ass [Mm]emory [Tt]emporary; do
	says $word stdout
done

claim '--explain prints bytes, rate and time of each stage'
for word in read sort merge spill fetch write; do
	says "^  $word  *[0-9.]* .*/s  *[0-9.]* s" stdout
done
says 'total: about [0-9.]* s' stdout

claim '--explain counts the write to standard output'
"$GSORT" --explain -S 1M input > stdout || broken "status $?"
says '^  write  *[0-9.]* .*/s  *[0-9.]* s' stdout
says 'total: about [0-9.]* s' stdout

claim '--explain plans a stage that cannot be measured for lack of memory'
generate -R 65536 -k 0:b8 -b 24M -o large
"$GSORT" --explain -R 65536 -k 0:b8 -S 5M large > stdout || broken "status $?"
says '^  sort .*not measured$' stdout
says 'total: more than [0-9.]* s$' stdout
rm large

claim '--explain of a pipe is for each GiB, or for --assume-size'
cat input | "$GSORT" --explain -S 1M > stdout || broken "status $?"
says '^temporary space .* for each GiB' stdout
! grep -q '^temporary space  *0 B' stdout || broken 'no temporary space is planned'
says 'total: about [0-9.]* s for each GiB' stdout
cat input | "$GSORT" --explain -S 1M --assume-size=${nbytes}b > stdout || broken "status $?"
! grep -q 'for each GiB' stdout || broken 'for each GiB despite --assume-size'
says 'total: about [0-9.]* s$' stdout
planned=$(sed -n 's/^temporary space  *\([0-9.]*\) MiB$/\1/p' stdout)
cat input | "$GSORT" -S 1M --stats-json=stats -o output || broken "status $?"
awk -v planned="$planned" '
	/peak_temporary_bytes/ { gsub(/,/, ""); exit !($2 <= planned * 2 ^ 20 && $2 > 0) }
	' stats || broken "planned: $planned MiB; $(grep peak_temporary stats)"

claim '--assume-size needs --explain and an input of unknown size'
refuses 'assume-size.*4000000' --explain --assume-size=1G input
refuses 'assume-size.*explain' --assume-size=1G input

claim '--stats prints a table of stages'
sorts --stats -S 1M
for word in read sort merge write spill; do
	says "[ ]*$word" stderr
done

claim '--stats-json writes the statistics as JSON'
sorts --stats-json=stats -S 1M
[ ! -s stderr ] || broken 'not silent'
is_json stats
says '"records_in": *500000' stats
says '"records_out": *500000' stats
sorts --stats-json=stats -S 64M
is_json stats
says '"runs_spilled": *0' stats

claim 'inputs of -m are not spilled runs, except pipes'
"$GSORT" input -o sorted
"$GSORT" -m sorted sorted -o output --stats-json=stats || broken "status $?"
says '"runs": *2' stats
says '"runs_spilled": *0' stats
cat sorted | "$GSORT" -m sorted - -o output --stats-json=stats || broken "status $?"
says '"runs": *2' stats
says '"runs_spilled": *1' stats
rm -f sorted output

# number NAME < JSON: print the first number of that name.
number() {
	sed -n 's/.*"'"$1"'": *\([0-9.]*\).*/\1/p' | head -1
}

# near MICROSECONDS KIB: compare CPU time and memory, measured from outside, with `stats`.
near() {
	awk -v real_us="$1" -v real_kib="$2" -v user="$(number user_s < stats)" \
		-v system_s="$(number system_s < stats)" \
		-v rss="$(number peak_rss_bytes < stats)" '
	function is_near(a, b, most) { return a - b < most && b - a < most }
	BEGIN {
		exit !(rss > 0 && is_near(real_kib, rss / 1024, 2048) &&
			is_near(real_us / 1e6, user + system_s, 0.25))
	}' || broken "measured $1 us of CPU and $2 KiB: $(head -5 stats)"
}

claim 'the statistics match measured CPU time and memory, and cost nothing'
generate -b 8K -o little
"$MEASURE_COMMAND" without "$GSORT" little -o output || broken "status $?"
"$MEASURE_COMMAND" with "$GSORT" little -o output --stats-json=stats 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent'
near $(cat without)
near $(cat with)
! grep -q ceiling stats || broken 'peak rates after a short sort'

claim 'peak rates are measured after a phase of a second or more'
mkfifo slow
# This may take a tenth of the time of the sort, so on a busy machine it may fail.
for seconds in 1.1 5 25; do
	{
		cat input
		sleep $seconds # with the pipe open
	} > slow &
	run -S 1M --stats-json=stats slow -o output
	[ "$status" -eq 0 ] || broken "status $status"
	same expected output 'slow pipe'
	is_json stats
	tr -d '\n' < stats | tr '}' '\n' > stages # one line for each stage
	! grep -q '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages || break
done
says '"name": "spill".*"peak_bytes_per_s": *[1-9]' stages

claim '--trace writes events as JSON'
sorts --trace=trace -S 1M
is_json trace
says '"ph"' trace

claim '--debug prints the parsed key'
sorts --debug
says 'u64' stderr

claim '--verify and --fsync do not change the output'
sorts --verify
[ ! -s stderr ] || broken 'not silent'
sorts --verify --fsync -S 1M
[ ! -s stderr ] || broken 'not silent'
generate -n 100000 -d hundred-keys -o few
oracle u64 -u -r < few > unique
gives unique -u -r --verify few

claim 'if --stats or --debug cannot be printed, the status is 2 and the output is complete'
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
"$GSORT" few -o output 2>&- || broken "closed standard error: status $?"

claim '--progress=always prints lines with the total, --progress=never prints none'
sorts --progress=always -S 1M
says '^final merge: 100 %.*; total 100 %$' stderr
sorts --progress=never
[ ! -s stderr ] || broken 'not silent'

claim '--progress ends at 100 % if few records are written'
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
sorts
[ ! -s stderr ] || broken 'not silent'

claim 'gsort says that it reads from a terminal, and nothing if it reads a file'
printf 'zebras!\naardvark' > typed
"$RUN_IN_PTY" typed "$GSORT" -t b8 -o output 2> stderr || broken "status $?"
says '^gsort: reading from the terminal' stderr
printf 'aardvarkzebras!\n' | cmp - output || broken "$(cat output)"
"$RUN_IN_PTY" typed "$GSORT" -t u64 input -o output 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent with a file'
same expected output 'at a terminal'

claim 'at a terminal gsort names the default type, unless the input has a type'
"$RUN_IN_PTY" typed "$GSORT" input -o output 2> stderr || broken "status $?"
one_line '^gsort: input: no type given, sorting as u64.?$' 'no type'
same expected output 'no type'
"$RUN_IN_PTY" typed "$GSORT" -c expected 2> stderr || broken "status $?"
one_line '^gsort: expected: no type given, checking as u64.?$' '-c'
rm -f output
"$RUN_IN_PTY" typed "$GSORT" --split=2 input -o parts 2> stderr || broken "status $?"
"$RUN_IN_PTY" typed "$GSORT" -c parts 2> stderr || broken "status $?"
[ ! -s stderr ] || broken 'not silent with the type of a manifest'

claim 'SIGUSR1 prints the progress'
mkfifo fifo
"$GSORT" fifo -o output 2> stderr &
exec 3> fifo
cat input >&3
kill -USR1 $!
# The thread may have to wait for a CPU.
for i in $(seq 300); do
	[ ! -s stderr ] || break
	sleep 0.1
done
exec 3>&-
wait $! || broken "status $?"
same expected output 'after SIGUSR1'
[ "$(wc -l < stderr)" -eq 1 ] || broken "$(wc -l < stderr) lines"

finish
