#!/bin/sh
# explain - --explain and --explain=json agree, and the sort does what they predict (see explain.py)
. "$(dirname "$0")/testlib.sh"

claim 'both forms of --explain agree'
python3 "$(dirname "$0")/explain.py" "$GSORT" "$GSORT_GEN" > findings 2>&1
status=$?
cat findings
expect_status 0

claim 'other arguments of --explain are refused'
expect_error 'explain' --explain=xml

claim 'options that --ranks does not allow are refused'
expect_error 'ranks requires --explain' --ranks=3
expect_error 'assume-rates requires --explain' --assume-rates=disk=1G
expect_error 'assume-rates requires --ranks' --explain --assume-rates=disk=1G
expect_error "assume-rates: 'disc' is invalid" --explain --ranks=3 --assume-rates=disc=1G
expect_error "assume-rates: 'disk' is not a rate" --explain --ranks=3 --assume-rates=network=1G,disk
expect_error '--explain of a merge is not possible with several ranks' --explain --ranks=3 -m
expect_error 'shard is not supported with several ranks' --explain --ranks=3 -m --shard=1/2
true | expect_error 'several ranks require an input of known size; .*--assume-size' --explain \
	--ranks=3
head -c 80 /dev/zero > eighty
run --explain --ranks=3 eighty
grep -qE '^gsort: --ranks: assuming .*B \(-S\) and [0-9]+ CPUs \(--par.*\) for each rank$' stderr ||
	fail "--ranks: $(cat stderr)"
run --explain --ranks=3 -S 64M eighty
grep -qE '^gsort: --ranks: assuming [0-9]+ CPUs \(--parallel\) for each rank$' stderr ||
	fail "--ranks with -S: $(cat stderr)"
run --explain --ranks=3 -S 64M --parallel=2 eighty
[ ! -s stderr ] || fail "--ranks with -S and --parallel: $(cat stderr)"
expect_error "standard input is not possible with several ranks" --explain --ranks=3 - < eighty
expect_error 'incomplete record' --explain --ranks=3 --zstd --partial=keep eighty

claim 'one buffer is singular'
run --explain -S 64M eighty
expect_line '^chunks  *1 buffer of ' stdout

claim 'there is no plan if the output cannot be written'
generate -b 8M -o input
mkdir directory
for form in --explain --explain=json; do
	for output in nowhere/output directory; do
		expect_failure "^gsort: $output: (.*No such file|Is a directory)" \
			$form input -o $output
	done
	expect_error '^gsort: nowhere: .*No such file' $form -S 1M -T nowhere input
	expect_success $form -S 64M -T nowhere input -o output
	[ ! -e output ] || fail 'there is an output'
done

finish
