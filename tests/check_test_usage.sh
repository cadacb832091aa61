#!/bin/sh
# check_test_usage.sh - test programs print their usage for --help and for unknown arguments
#
# usage: check_test_usage.sh PROGRAM...
#
# Otherwise a test with a misspelled argument would run nothing and pass.
set -eu
failed=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for program; do
	for word in --help no-such-word; do
		status=0
		timeout 10 "$program" $word > "$output" 2>&1 < /dev/null || status=$?
		grep -qi '^usage: ' "$output" || {
			echo "${program##*/} $word: no usage: $(head -n 3 "$output")"
			failed=1
		}
		[ $word = --help ] || [ $status -ne 0 ] || {
			echo "${program##*/} $word: status 0"
			failed=1
		}
	done
done
exit $failed
