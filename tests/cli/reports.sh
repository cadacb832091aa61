#!/bin/sh
# reports - what gsort tells about itself, and that telling changes no byte
. "$(dirname "$0")/prelude.sh"

generate -n 500000 -o input
"$GSORT" input -o expected
nbytes=4000000

# tells ARGUMENT...: sorts as always; what it says is in stderr.
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
for option in type reverse unique stable output check merge explain verify fsync files0-from \
	buffer-size device-memory temporary-directory temp-limit compress zstd parallel batch-size \
	backend gpus \
	progress stats stats-json trace debug help version; do
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
[ ! -e output ] || broken 'sorted all the same'
for word in [Cc]hunk [Rr]un [Pp]ass [Mm]emory [Tt]emporary; do
	says $word stdout
done

claim '--explain says what moves, at which rate, and how long that takes'
for word in read sort merge spill fetch write; do
	says "^  $word  *[0-9.]* .*/s  *[0-9.]* s" stdout
done
says 'in all: about [0-9.]* s' stdout

claim '--stats is a table of the stages'
tells --stats -S 1M
for word in read sort merge write spill; do
	says "[ ]*$word" stderr
done

claim '--stats-json is JSON with the facts'
tells --stats-json=stats -S 1M
[ ! -s stderr ] || broken 'not silent'
is_json stats
says '"records_in": *500000' stats
says '"records_out": *500000' stats
says '"ceiling_bytes_per_s": *[1-9]' stats
tells --stats-json=stats -S 64M
is_json stats
says '"runs_spilled": *0' stats

claim '--trace is JSON with events'
tells --trace=trace -S 1M
is_json trace
says '"ph"' trace

claim '--debug says how the key was understood'
tells --debug
says 'u64' stderr

claim '--verify and --fsync change nothing'
tells --verify
[ ! -s stderr ] || broken 'not silent'
tells --verify --fsync -S 1M
[ ! -s stderr ] || broken 'not silent'
generate -n 100000 -d few -o few
oracle u64 -u -r < few > unique
gives unique -u -r --verify few

claim '--progress=always has lines, never has none'
tells --progress=always -S 1M
tells --progress=never
[ ! -s stderr ] || broken 'not silent'

claim 'without a terminal it is silent'
tells
[ ! -s stderr ] || broken 'not silent'

claim 'SIGUSR1 does not end it'
mkfifo fifo
"$GSORT" fifo -o output 2> stderr &
exec 3> fifo
cat input >&3
kill -USR1 $!
sleep 0.3
exec 3>&-
wait $! || broken "status $?"
same expected output 'after SIGUSR1'
[ "$(wc -l < stderr)" -eq 1 ] || broken "$(wc -l < stderr) lines"

finish
