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

# milliseconds COMMAND...: set $milliseconds to the time that the command takes, at least 1
milliseconds() {
	begin=$(date +%s%N)
	"$@" > stdout 2> stderr
	milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
}

# kill_one SIGNAL NUMBER MILLISECONDS ARGUMENT...: a sort that gets a signal at that time is done,
# or has changed nothing. Only SIGKILL can kill a sort that is done, between its commit and its
# exit.
kill_one() {
	signal=$1
	number=$2
	before=$3
	moment=$(printf '%d.%03d' $((before / 1000)) $((before % 1000)))
	shift 3
	cp older output
	launch timeout --preserve-status -s "$signal" "$moment" "$GSORT" "$@"
	what="gsort $*: $signal after $moment s"
	case $status in
	0)
		done_right || broken "$what: status 0, and wrong"
		# The time may have been measured while the machine was busy, so shorten it.
		[ "$before" -eq 0 ] || milliseconds=$before
		;;
	$((128 + number)))
		n_killed=$((n_killed + 1))
		as_before || { [ "$signal" = KILL ] && done_right; } ||
			broken "$what: neither as before nor done"
		;;
	*) broken "$what: status $status" ;;
	esac
	nothing_left "$what"
	rm -f output stdout stderr
	# During a rename the temporary file has a name. The next start reports the orphan.
	[ "$signal" != KILL ] || rm -f .gsort-temp-*
	[ "$(ls -A)" = "$names" ] || broken "$what: left $(ls -A)"
}

# launch COMMAND...: run a command with the streams of $way; sets $status
launch() {
	if [ "$way" = standard-output ]; then
		{ cat older && "$@"; } < untouched > output 2> stderr
	else
		"$@" < untouched > stdout 2> stderr
	fi
	status=$?
}

as_before() {
	cmp -s older output && cmp -s untouched input
}

# A sort in place writes to its input.
done_right() {
	case $way in
	in-place) cmp -s older output && cmp -s "$expected" input ;;
	standard-output) cat older "$expected" | cmp -s - output && cmp -s untouched input ;;
	*) cmp -s "$expected" output && cmp -s untouched input ;;
	esac
}

# killed WAY EXPECTED ARGUMENT...: kill a sort at random times, then let it end
killed() {
	way=$1
	expected=$2
	shift 2
	claim "killed: $way"
	milliseconds launch "$GSORT" "$@"
	cp untouched input
	rm -f output stdout stderr
	names=$(ls -A)
	for i in $(seq "$kills"); do
		below "$milliseconds"
		moment=$picked
		pick $outright TERM=15 INT=2 HUP=1 PIPE=13
		kill_one ${picked%=*} ${picked#*=} "$moment" "$@"
		cmp -s untouched input || cp untouched input
	done
	cp older output
	launch "$GSORT" "$@"
	[ "$status" -eq 0 ] || broken "after all: status $status"
	done_right || broken 'after all: wrong'
	cp untouched input
	rm -f output stdout stderr
}

n_killed=0
outright='KILL=9 KILL=9'
killed memory expected -S 64M input -o output
killed spill expected -S 2M input -o output
killed passes expected -S 1M --batch-size=2 --temp-compress=none input -o output
killed zstd expected -S 2M --temp-compress=zstd input -o output
killed unique expected-unique -u -S 2M input -o output
killed records expected-records -R 16 -k 3:b9 -S 2M input -o output
killed merge expected -m part1 part2 -o output
killed stdin expected -S 2M -o output -
killed verify expected --verify --fsync -S 2M input -o output
killed in-place expected -S 2M input -t u64 -o input
killed in-place expected -S 64M --verify input -t u64 -o input
outright= # SIGKILL prevents the truncation of output that was written in place
killed standard-output expected -S 2M --temp-compress=none input
killed standard-output expected -S 64M input
echo "$n_killed of $((13 * kills)) killed in time"
[ $((n_killed * 3)) -gt "$kills" ] || broken "only $n_killed of $((13 * kills)) were killed in time"

finish
