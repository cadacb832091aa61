#!/bin/sh
# check_test_usage - a test program that is told nonsense, or asked how it is called, says so and
# tests nothing
#
# usage: check_test_usage.sh PROGRAM...
#
# A name of a mode or a back end that is not there would else pass, as all of nothing does.
set -eu
broken=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for program; do
	for word in --help no-such-word; do
		status=0
		timeout 10 "$program" $word > "$said" 2>&1 < /dev/null || status=$?
		grep -qi '^usage: ' "$said" || {
			echo "${program##*/} $word: no usage, but: $(head -n 3 "$said")"
			broken=1
		}
		[ $word = --help ] || [ $status -ne 0 ] || {
			echo "${program##*/} $word: status 0"
			broken=1
		}
	done
done
exit $broken
