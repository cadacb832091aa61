#!/bin/sh
# space - input, temporary files and output together take at most 2.05 times the input
. "$(dirname "$0")/prelude.sh"

# within ARGUMENT...: gsort of `input` keeps to that, and really spills.
within() {
	limit_kib=$(($(wc -c < input) / 1024 * 205 / 100))
	least_kib=$(($(wc -c < input) / 1024 * 19 / 10))
	"$PEAK_SPACE" $limit_kib "$GSORT" "$@" input -o output > peak 2> stderr ||
		broken "gsort $*: status $?: $(cat peak)"
	[ "$(sed 's/peak \([0-9]*\) .*/\1/' peak)" -ge $least_kib ] ||
		broken "gsort $*: this cannot be all: $(cat peak)"
	"$GSORT_CHECK" --same output input > stdout || broken "$(cat stdout)"
	rm output
}

generate -b 256M -o input

claim 'one merge'
within -S 64M --compress=none

claim 'several passes'
within -S 16M --compress=none --batch-size=8

claim 'codecs'
within -S 64M --compress=zstd

claim 'nothing to spill'
within -S 2G

finish
