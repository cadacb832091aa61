#!/bin/sh
# kill_anytime - a signal at any time leaves the input, the older output and no temporary files
#
# GSORT_SEED repeats a run. GSORT_KILLS is the number of kills of each kind of sort (default: 5).
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"

kills=${GSORT_KILLS:-5}
echo "GSORT_SEED=$seed GSORT_KILLS=$kills"

generate -n 1000000 -o input
cp input untouched
"$GSORT" input -o expected
"$GSORT" -u input -o expected-unique
"$GSORT" -R 16 -k 3:b9 input -o expected-records
head -c 4000000 input | "$GSORT" -o part1
tail -c 4000000 input | "$GSORT" -o part2
echo 'an older output' > older

# measure_milliseconds COMMAND...: set $milliseconds to the time that the command takes, at least 1
measure_milliseconds() {
	begin=$(date +%s%N)
	"$@" > stdout 2> stderr
	milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
}

# kill_once SIGNAL NUMBER MILLISECONDS ARGUMENT...: a sort that gets a signal at that time is done,
# or has changed nothing. Only SIGKILL can kill a sort that is done, between its commit and its
# exit. With --foreground, timeout does not kill itself but waits until the sort has ended.
kill_once() {
	signal=$1
	number=$2
	before=$3
	moment=$(printf '%d.%03d' $((before / 1000)) $((before % 1000)))
	shift 3
	cp older output
	run_command timeout --foreground --preserve-status -s "$signal" "$moment" "$GSORT" "$@"
	what="gsort $*: $signal after $moment s"
	case $status in
	0)
		is_sorted || fail "$what: status 0, and wrong"
		# The time may have been measured while the machine was busy, so shorten it.
		[ "$before" -eq 0 ] || milliseconds=$before
		;;
	$((128 + number)))
		n_killed=$((n_killed + 1))
		is_unchanged || { [ "$signal" = KILL ] && is_sorted; } ||
			fail "$what: neither as before nor done"
		;;
	*) fail "$what: status $status" ;;
	esac
	expect_no_temp_files "$what"
	rm -f output stdout stderr
	# During a rename the temporary file has a name. The next start reports the orphan.
	[ "$signal" != KILL ] || rm -f .gsort-temp-*
	[ "$(ls -A)" = "$names" ] || fail "$what: left $(ls -A)"
}

# run_command COMMAND...: run a command with the streams of $mode; sets $status
run_command() {
	if [ "$mode" = standard-output ]; then
		{ cat older && "$@"; } < untouched > output 2> stderr
	else
		"$@" < untouched > stdout 2> stderr
	fi
	status=$?
}

is_unchanged() {
	cmp -s older output && cmp -s untouched input
}

# A sort in place writes to its input.
is_sorted() {
	case $mode in
	in-place) cmp -s older output && cmp -s "$expected" input ;;
	standard-output) cat older "$expected" | cmp -s - output && cmp -s untouched input ;;
	*) cmp -s "$expected" output && cmp -s untouched input ;;
	esac
}

# check_kills MODE EXPECTED ARGUMENT...: kill a sort at random times, then let it end
check_kills() {
	mode=$1
	expected=$2
	shift 2
	claim "killed: $mode"
	measure_milliseconds run_command "$GSORT" "$@"
	cp untouched input
	rm -f output stdout stderr
	names=$(ls -A)
	for i in $(seq "$kills"); do
		pick_below "$milliseconds"
		moment=$picked
		pick $outright TERM=15 INT=2 HUP=1 PIPE=13
		kill_once ${picked%=*} ${picked#*=} "$moment" "$@"
		cmp -s untouched input || cp untouched input
	done
	cp older output
	run_command "$GSORT" "$@"
	expect_status 0 'after all'
	is_sorted || fail 'after all: wrong'
	cp untouched input
	rm -f output stdout stderr
}

n_killed=0
outright='KILL=9 KILL=9'
check_kills memory expected -S 64M input -o output
check_kills spill expected -S 2M input -o output
check_kills passes expected -S 1M --batch-size=2 --temp-compress=none input -o output
check_kills zstd expected -S 2M --temp-compress=zstd input -o output
check_kills unique expected-unique -u -S 2M input -o output
check_kills records expected-records -R 16 -k 3:b9 -S 2M input -o output
check_kills merge expected -m part1 part2 -o output
check_kills stdin expected -S 2M -o output -
check_kills verify expected --verify --fsync -S 2M input -o output
check_kills in-place expected -S 2M input -t u64 -o input
check_kills in-place expected -S 64M --verify input -t u64 -o input
outright= # SIGKILL prevents the truncation of output that was written in place
check_kills standard-output expected -S 2M --temp-compress=none input
check_kills standard-output expected -S 64M input
echo "$n_killed of $((13 * kills)) killed in time"
[ $((n_killed * 3)) -gt "$kills" ] || fail "only $n_killed of $((13 * kills)) were killed in time"

finish
