#!/bin/sh
# streams - sorts of files, pipes and several inputs, and outputs that replace an input
. "$(dirname "$0")/testlib.sh"

generate -n 100003 --seed=1 -o a
generate -n 50001 --seed=2 -o b
generate -n 0 -o empty
reference_sort u64 < a > a.sorted
cat a b | reference_sort u64 > ab.sorted

claim 'standard input to standard output'
"$GSORT" < a > output 2> stderr || fail "status $?"
expect_same a.sorted output 'file to file'
cat a | "$GSORT" 2> stderr | cat > output
expect_same a.sorted output 'pipe to pipe'
cat a | "$GSORT" - 2> stderr > output || fail "status $?"
expect_same a.sorted output 'a name of -'

claim 'a pipe larger than memory'
cat a | "$GSORT" -S 1M 2> stderr | cat > output
expect_same a.sorted output 'pipe to pipe'
expect_no_temp_files 'pipe to pipe'

claim 'a slow writer of pieces of odd sizes'
(head -c 3; sleep 0.1; head -c 70001; sleep 0.1; cat) < a | "$GSORT" > output 2> stderr
expect_same a.sorted output 'slow pipe'

claim 'standard input is read from its offset'
tail -c 400008 a | reference_sort u64 > expected
(head -c 400016 > /dev/null; "$GSORT") < a > output 2> stderr
expect_same expected output 'rest of a file'

claim 'standard input is at its end afterwards'
generate -R 100 -n 3000 -o wide
"$GSORT" --zstd a -o indexed.zst 2> stderr
for arguments in '' '-S 1M' -c -m '-r -u' --limit=3 '--skip-bytes=3 --partial=drop' --zstd; do
	{ head -c 80 > /dev/null; "$GSORT" $arguments > output 2> stderr; wc -c; } < a.sorted > left
	[ "$(cat left)" -eq 0 ] || fail "gsort $arguments: $(cat left) bytes are left"
done
{ "$GSORT" -R 100 -k 0:b10; wc -c > left; } < wide > output 2> stderr
[ "$(cat left)" -eq 0 ] || fail "mapped: $(cat left) bytes are left"
{ "$GSORT" b -; wc -c > left; } < indexed.zst > output 2> stderr
[ "$(cat left)" -eq 0 ] || fail "compressed: $(cat left) bytes are left"
{ "$GSORT_CHECK" -; wc -c > left; } < a > output 2> stderr
[ "$(cat left)" -eq 0 ] || fail "gsort-check: $(cat left) bytes are left"
{ "$GSORT" --explain -S 64M; wc -c > left; } < a > output 2> stderr
[ "$(cat left)" -eq 800024 ] || fail "--explain: only $(cat left) bytes are left"

claim 'several inputs are sorted together'
expect_output ab.sorted a b
expect_output ab.sorted a empty b empty
expect_output ab.sorted -S 1M b a
cat b | expect_output ab.sorted a -
mkfifo fifo
cat b > fifo &
expect_output ab.sorted fifo a
wait

claim 'options after operands, -- and names that look like options'
cp a ./-r
expect_output a.sorted -- -r
rm ./-r
expect_output a.sorted a --type=u64

claim 'empty inputs'
expect_output empty empty
expect_output empty empty empty
expect_output empty /dev/null
: | expect_output empty -

claim 'names of inputs from a file'
printf 'a\0b\0' > names
expect_output ab.sorted --files0-from=names
printf 'a\0b' > names
expect_output ab.sorted --files0-from=names
printf 'a\0b\0' | expect_output ab.sorted --files0-from=-

claim 'the output may be an input'
cp a file
expect_success file -t u64 -o file
expect_same a.sorted file 'in place'
cp a file
expect_success -S 1M b file -t u64 -o file
expect_same ab.sorted file 'one of several'
cp a file
ln -s file link
expect_success file -t u64 -o link
expect_same a.sorted file 'through a link'
[ -L link ] || fail 'the link became a file'
cp a file
ln file hard
expect_success hard -t u64 -o file
expect_same a.sorted file 'another name of the same file'
expect_same a hard 'the other name'

claim 'the output keeps its mode'
cp a file
chmod 640 file
expect_success file -t u64 -o file
[ "$(stat -c %a file)" = 640 ] || fail "mode $(stat -c %a file)"

if touch listed && setfacl -m u:daemon:rw listed 2> /dev/null; then
	claim 'the output keeps its ACL, and the group gets no access if the ACL cannot be kept'
	cp a listed
	chmod 600 listed
	setfacl -m u:daemon:rw,g::- listed
	getfacl -c listed > listed.before
	expect_success listed -t u64 -o listed
	getfacl -c listed > listed.after
	expect_same listed.before listed.after 'access list'
	[ "$(stat -c %a listed)" = 660 ] || fail "mode $(stat -c %a listed)"
else
	echo 'no access lists here: skipped'
fi

claim 'a new output has the mode of the umask'
(umask 027 && "$GSORT" a -o new)
[ "$(stat -c %a new)" = 640 ] || fail "mode $(stat -c %a new)"

claim 'the output may be a device or a named pipe'
expect_success a -o /dev/null
cat fifo > output &
expect_success a -o fifo
wait
expect_same a.sorted output 'fifo'

claim 'standard output may be appended to'
cp b output
"$GSORT" a >> output 2> stderr || fail "status $?"
cat b a.sorted > expected
expect_same expected output '>>'

# expect_log WHAT: `log` has the bytes written before the sort, the sorted records, and those
# after it
expect_log() {
	expect_status 0 "$1"
	[ ! -s stderr ] || fail "$1: not silent"
	expect_same log.expected log "$1"
}

claim 'an output that the caller has opened is written from its offset'
{ echo precious && cat a.sorted && echo after; } > log.expected
ln -s /dev/fd/1 to-standard
for path in /dev/stdout /dev/fd/1 /proc/self/fd/1 to-standard; do
	: > log
	{ echo precious && "$GSORT" a -o $path && echo after; } >> log 2> stderr
	status=$?
	expect_log "-o $path >>"
	{ echo precious && "$GSORT" a -o $path && echo after; } > log 2> stderr
	status=$?
	expect_log "-o $path >"
done
for path in /dev/fd/3 /proc/self/fd/3; do
	{ echo precious >&3 && "$GSORT" a -o $path && echo after >&3; } 3> log 2> stderr
	status=$?
	expect_log "-o $path 3>"
	: > log
	{ echo precious >&3 && "$GSORT" a -o $path && echo after >&3; } 3>> log 2> stderr
	status=$?
	expect_log "-o $path 3>>"
	{ echo precious && "$GSORT" a -o $path 3>&1 && echo after; } 2> stderr | cat > log
	status=0
	expect_log "-o $path to a pipe"
done

claim 'an open output may be compressed'
ln -s /dev/fd/3 third.zst
"$GSORT" a -o third.zst 3> output.zst 2> stderr || fail "status $?"
expect_output a.sorted output.zst

claim 'an open output must be writable'
echo precious > log
cp log log.expected
for path in /dev/fd/3 /proc/self/fd/3; do
	expect_failure "^gsort: $path: is not open for writing" a -o $path 3< log
	expect_same log.expected log "$path"
done
expect_failure '^gsort: /dev/fd/77: is not open for writing' a -o /dev/fd/77

claim 'an open output cannot be verified, resumed or synced'
for option in --verify --fsync --checkpoint=kept; do
	for path in /dev/fd/1 /dev/fd/3; do
		name=$path
		[ $path = /dev/fd/3 ] || name='standard output'
		expect_exit 2 a -o $path $option 3>> log
		expect_message "${option%=*} requires -o .* a file, not $name" "$option $path"
		expect_same log.expected log "$option $path"
	done
done

finish
