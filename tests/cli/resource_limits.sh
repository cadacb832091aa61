#!/bin/sh
# resource_limits - sorts with little memory, few descriptors, blocked pipes and changing inputs
. "$(dirname "$0")/testlib.sh"

generate -n 1000000 -o input
cp input untouched
"$GSORT" input -o expected

claim 'the message about a file size limit names the limit, not a full disk'
trap '' XFSZ 2> /dev/null
(
	ulimit -f 4000 # in blocks of 512 bytes or 1 KiB, depending on the shell
	named='; the limit .*\(RLIMIT_FSIZE\) is [0-9.]+ MiB: raise it with ulimit -f$'
	expect_error "^gsort: output: File too large: 8000000 bytes are needed$named" -S 64M input
	cat input | expect_error "^gsort: output: .*File too large.*$named" -S 64M
	large='File too large: 5000000 bytes are needed'
	yes | head -c 5000000 | expect_error "^gsort: output: $large$named" --lines
	"$GSORT" -S 1M --temp-compress=none input 2> stderr | cat > /dev/null
	expect_message "^gsort: $TMPDIR: File too large: .*temporary files .*$named" 'spilled'
)

# write_limited COMMAND...: write the script ./limited, which runs the command and then gsort
write_limited() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$*" "$GSORT" > limited
	chmod +x limited
}

# check_limited: ./limited sorts files, pipes, compressed files, and with a checkpoint
check_limited() {
	gsort=$GSORT
	GSORT=./limited
	expect_output expected-large large
	expect_output expected-large --checkpoint=ck large
	expect_output expected-mapped -R 100 -k 0:b10 mapped
	cat large | "$GSORT" 2> stderr | cmp - expected-large || fail 'pipes'
	if command -v zstd > zstd-path; then
		expect_success large.zst -o output.zst
		zstd -q -d -c output.zst | cmp - expected-large || fail 'compressed'
	fi
	GSORT=$gsort
	rm -f output*
}

# make_group BYTES: create a control group with this memory limit, if allowed, and set $group
make_group() {
	for group in /sys/fs/cgroup/memory /sys/fs/cgroup/unified /sys/fs/cgroup; do
		group=$group/gsort-test-$$
		mkdir $group 2> stderr || continue
		for file in $group/memory.limit_in_bytes $group/memory.max; do
			[ ! -e $file ] || ! echo "$1" > $file || return 0
		done
		rmdir $group
	done
	return 1
}

# Sanitizers need terabytes of address space and much memory.
if ! grep -q __sanitizer "$GSORT"; then
	generate -n 7000000 -d hundred-keys -o large
	"$GSORT" large -o expected-large
	generate -n 200000 -R 100 -k 0:b10 -d hundred-keys -o mapped
	"$GSORT" -R 100 -k 0:b10 -S 2M mapped -o expected-mapped
	! command -v zstd > zstd-path || zstd -q large

	claim 'gsort adapts to a limited address space'
	write_limited ulimit -v 120000
	check_limited

	claim 'records are read if a mapping of them takes the address space for the sort'
	for kib in 65000 70000 75000 80000 85000; do
		gsort=$GSORT
		write_limited ulimit -v $kib
		GSORT=./limited
		expect_output expected-mapped -R 100 -k 0:b10 mapped
		GSORT=$gsort
	done

	claim 'gsort adapts to the memory limit of its control group'
	if [ "$(stat -f -c %T .)" = tmpfs ]; then
		echo 'skipped: a control group, for files here are memory'
	elif make_group 80000000; then
		write_limited "echo \$\$ > $group/cgroup.procs"
		check_limited
		rmdir $group
	else
		echo 'skipped: a control group, for none can be made'
	fi
	rm -f large* expected-large

	claim 'a small address space is enough for the stacks of threads'
	write_limited "ulimit -v $((26000 + $(wc -c < "$GSORT") / 1024))"
	gsort=$GSORT
	GSORT=./limited
	expect_output expected input
	expect_output expected -S 1M --parallel=2 input
	expect_output expected -S 4M --parallel=8 input
	for kib in 40000 45000 50000; do # threads and the program take a large part
		GSORT=$gsort
		write_limited ulimit -v $kib
		GSORT=./limited
		expect_output expected input
		expect_output expected --parallel=16 input
	done
	GSORT=$gsort
	rm -f output

	claim '-S above the address space limit'
	(
		ulimit -v 400000
		head -c 8000000 input | "$GSORT" --explain -S 600M - > stdout 2> stderr
	) || fail "--explain: status $?"
	expect_message '^gsort: warning: -S: the sort may need [0-9.]+ MiB, .*; use a smaller -S$' \
		'--explain'
	expect_line '^allowed memory +[0-9.]+ MiB; up to [0-9.]+ MiB are needed$' stdout
	(
		ulimit -v 400000
		"$GSORT" -S 600M input -o output 2> stderr
	) || fail "an input that needs less: status $?"
	[ ! -s stderr ] || fail "an input that needs less: $(cat stderr)"

	claim 'a sort of lines warns, too, and says what helps'
	(
		ulimit -v 400000
		seq 100 | "$GSORT" --lines -S 600M > stdout 2> stderr
		[ $? -eq 2 ]
	) || fail 'not status 2'
	expect_line '^gsort: warning: -S: the sort may need .*; use a smaller -S$' stderr
	expect_line '^gsort: no memory for lines: .*; use a smaller -S$' stderr

	claim 'too little memory for any sort is reported'
	rm -f output
	(
		ulimit -v 30000
		"$GSORT" -S 64M input -o output 2> stderr
		[ $? -eq 2 ]
	) || fail 'not status 2'
	expect_line '^gsort: warning: -S: the sort may need .*; use a smaller -S$' stderr
	sed -i '/warning: -S:/d' stderr
	expect_message 'memory|start' '30 MB'
	[ ! -e output ] || fail 'an output'
fi

if [ "$(stat -f -c %T /dev/shm)" = tmpfs ] && [ -w /dev/shm ]; then
	claim 'temporary files on a tmpfs count as memory'
	kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)
	plan="-S $((kib / 16))K -T /dev/shm --assume-size=$((kib * 2))K"
	cat /dev/null | "$GSORT" $plan --explain - > stdout 2> stderr || fail "status $?"
	expect_message '^gsort: warning: /dev/shm: temporary files are in memory .* another -T ' \
		'-T /dev/shm'
	expect_line '^temporary files +/dev/shm is in memory \(tmpfs\); its files count' stdout
	cat /dev/null | "$GSORT" $plan --explain=json - > json 2> stderr || fail "JSON: status $?"
	expect_line '"temporary_in_memory": true' json
	expect_line '"sufficient": false' json
	rm -f json
else
	echo 'skipped: temporary files on a tmpfs'
fi

if ! grep -q __sanitizer "$GSORT"; then
	claim 'a small stack is enough'
	for size in 64 128; do
		write_limited ulimit -s $size
		gsort=$GSORT
		GSORT=./limited
		# Repeat, because the start of the stack is random.
		for i in 1 2 3 4 5 6 7 8; do
			expect_output expected input
		done
		expect_output expected -S 1M --checkpoint=ck input
		GSORT=$gsort
	done
	write_limited ulimit -s 48
	gsort=$GSORT
	GSORT=./limited
	for i in 1 2 3 4 5 6 7 8; do
		expect_output expected --parallel=16 --stats-json=/dev/null input
	done
	GSORT=$gsort
	for i in 1 2 3 4 5 6 7 8; do
		(
			ulimit -s 48
			"$GSORT_GEN" -n 1000 -o small && "$GSORT_CHECK" expected > /dev/null
		) || fail "a tool: status $?"
	done
fi

claim 'ten descriptors are enough'
for i in 1 2 3 4 5 6 7 8 9; do
	"$GSORT" input -o part$i
done
cp part1 one
cp part2 two
cat part? | "$GSORT" -o expected-merged
parts='part1 part2 part3 part4 part5 part6 part7 part8 part9'
# A shell needs more than ten descriptors, so only gsort is limited.
write_limited ulimit -n 10
gsort=$GSORT
GSORT=./limited
expect_output expected -S 2M input
expect_output expected-merged -S 4M $parts
expect_output expected-merged -S 4M -m $parts
GSORT=$gsort
rm -f $parts

claim 'closed standard descriptors are harmless'
rm -f output
"$GSORT" input -o output <&- >&- || fail "status $?"
expect_same expected output 'closed input and output'
rm -f output
"$GSORT" input -o output <&- >&- 2>&- || fail "status $?"
expect_same expected output 'all closed'
"$GSORT" missing -o output <&- >&- 2>&-
[ $? -eq 2 ] || fail 'all closed and an error: not status 2'
expect_same expected output 'all closed and an error'
for closed in '>&-' '2>&-' '<&- >&- 2>&-'; do
	eval '"$GSORT" input - '"$closed"' > /dev/full < input' 2> stderr
	[ $? -eq 2 ] || fail "$closed: not status 2"
done

claim 'a full device'
for option in -S64M -S2M; do
	"$GSORT" $option input > /dev/full 2> stderr
	[ $? -eq 2 ] || fail "$option: not status 2"
	expect_message 'standard output: .*No space' "$option"
	expect_failure '/dev/full: .*No space' $option input -o /dev/full
	expect_no_temp_files "$option"
done

claim 'a reader that closes the pipe'
for option in -S64M '-S2M --batch-size=2' '-u -S2M' '-m'; do
	{
		"$GSORT" $option one two 2> stderr
		echo $? > code
	} | head -c 8 > output
	[ "$(cat code)" -eq 141 ] || fail "$option: status $(cat code)"
	[ ! -s stderr ] || fail "$option: not silent"
	expect_no_temp_files "$option"
done

# cpu_ticks PID: print the CPU time of a process in clock ticks
cpu_ticks() {
	sed 's/.*) //' /proc/"$1"/stat | cut -d' ' -f12,13 | tr ' ' '+'
}

# expect_idle PID WHAT: within a minute the process uses no CPU time for a second, and all its
# threads sleep, so that they do not merely wait for a processor
expect_idle() {
	for attempt in $(seq 60); do
		before=$(($(cpu_ticks "$1")))
		sleep 1
		taken=$(($(cpu_ticks "$1") - before))
		running=$(sed 's/.*) //' /proc/"$1"/task/*/stat | grep -c '^[RD]')
		[ "$taken" -gt $(($(getconf CLK_TCK) / 20)) ] || [ "$running" -gt 0 ] || return 0
	done
	fail "$2: $taken ticks while it waits, and $running threads run"
}

claim 'gsort uses no CPU time while its output is blocked'
mkfifo out in
"$GSORT" -S 2M input > out 2> stderr &
pid=$!
exec 3< out
head -c 8 <&3 > output
expect_idle $pid output
cat <&3 >> output
exec 3<&-
wait $pid || fail "status $?"
expect_same expected output 'after a pause'

claim 'gsort uses no CPU time while it waits for input'
"$GSORT" -S 2M - -o output < in 2> stderr &
pid=$!
exec 3> in
head -c 4000000 input >&3
expect_idle $pid input
tail -c +4000001 input >&3
exec 3>&-
wait $pid || fail "status $?"
expect_same expected output 'after a pause'

# change_during_sort REGEX COMMAND...: the command changes the input `changed`, a copy of
# $original, after gsort has looked at it and while it reads a pipe. The sort fails.
change_during_sort() {
	regex=$1
	shift
	cp "$original" changed
	echo 'what was there before' > output
	cp output before
	"$GSORT" -S 2M in changed -o output 2> stderr &
	pid=$!
	exec 3> in
	head -c 4000000 input >&3
	"$@"
	exec 3>&-
	wait $pid
	status=$?
	expect_status 2 "$*"
	expect_message "$regex" "$*"
	expect_same before output "$*: the older output"
	expect_no_temp_files "$*"
	rm -f changed before output
}

claim 'an input that changes while it is read is named'
original=input
change_during_sort 'changed: .* 8000000 bytes.* 4000000' truncate -s 4000000 changed
change_during_sort 'changed: .* 8000000 bytes.* 0' truncate -s 0 changed
change_during_sort 'changed: .* 8000000 bytes.* 16000000' sh -c 'cat untouched >> changed'
"$GSORT" --zstd input > packed
original=packed
change_during_sort 'changed: ' truncate -s 0 changed
change_during_sort 'changed: ' truncate -s 4000 changed
change_during_sort 'changed: ' sh -c 'cat packed >> changed'

claim 'sizes whose sum exceeds 64 bits are refused'
# A tmpfs supports sparse files of 2^63 - 1 bytes.
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ] && sparse=$(mktemp /dev/shm/gsort-test.XXXXXX); then
	trap 'cd /; rm -rf "$work"; rm -f "$sparse"' EXIT
	truncate -s 9223372036854775807 "$sparse"
	head -c 10 /dev/zero > ten
	expect_error 'ten: 10 bytes and .* the limit of 2\^64 - 2 bytes' -t u8 "$sparse" \
		"$sparse" ten
	expect_error 'ten: 10 bytes and .* exceed the limit' -t u8 -m "$sparse" "$sparse" ten
	expect_error 'ten: 10 bytes and .* exceed the limit' -t u8 --explain "$sparse" "$sparse" ten
	expect_error 'too large: 9223372036854775807 records of 8 bytes; ' -t u8 --argsort "$sparse"
	expect_error 'too large: .*2\^63 - 1' -t u8 "$sparse" ten
	expect_error 'too large: .* records of 2 bytes' -R 1 -k 0:u8 -k 0:u8 --keys-only "$sparse"
	"$GSORT_CHECK" -t u8 --same-records ten "$sparse" "$sparse" ten > stdout 2> stderr
	[ $? -eq 2 ] || fail 'gsort-check: not status 2'
	expect_line 'ten: 10 bytes and .* exceed the limit' stderr
	rm -f "$sparse" ten
else
	echo 'skipped: files of 2^63 - 1 bytes, for there is no tmpfs'
fi

expect_same untouched input 'the input'

claim 'limits near 2^64 are accepted'
head -c 3200000 untouched > input
"$GSORT" input -o sorted
cat sorted sorted | "$GSORT" -o expected-twice
for size in 15E 135107988863057920b 18446744073709551615b 1P; do
	expect_output sorted -m -S $size sorted
	expect_output expected-twice -m -S $size sorted sorted
	expect_output sorted -S $size --device-memory=$size --temp-limit=$size input
	cat input | expect_output sorted -S $size -
	expect_output sorted -S 2M --limit=18446744073709551614 --temp-limit=$size input
	"$GSORT_GEN" -b $size -o none 2> stderr
	[ $? -eq 2 ] || fail "gsort-gen -b $size: status $?"
	expect_line 'do not fit in a file|No space|too large' stderr
done
"$GSORT" --explain -S 15E input > stdout || fail "--explain -S 15E: status $?"
rm -f sorted expected-twice

finish
