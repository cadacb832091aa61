#!/bin/sh
# permissions - the umask, and users who are not root
. "$(dirname "$0")/testlib.sh"

# as_user ARGUMENT...: gsort, by somebody who may do only what everybody may; sets $status.
as_user() {
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups ./gsort "$@" > stdout 2> stderr
	else
		./gsort "$@" > stdout 2> stderr
	fi
	status=$?
}

cp "$GSORT" gsort
generate -n 2000000 -d hundred-keys -o few
"$GSORT" few -o expected
mkdir theirs
chmod 777 theirs tmp
chmod 711 .

claim 'a checkpoint that was begun with umask 777 is taken up by its owner'
(
	umask 777
	ulimit -f 22000
	as_user --checkpoint=theirs/ck -S 4M --temp-compress=delta few -o theirs/output
	[ $status -eq 2 ]
) || broken 'it was done'
says '^gsort: theirs/output: .*File too large' stderr
(
	umask 777
	as_user --checkpoint=theirs/ck -S 4M --temp-compress=delta few -o theirs/output
	[ $status -eq 0 ]
) || broken 'not taken up'
says 'resuming: .* and [1-9].* of the output are written' stderr
same expected theirs/output 'resumed'
[ "$(stat -c %a theirs/output)" = 600 ] || broken "mode $(stat -c %a theirs/output)"
[ ! -e theirs/ck ] || broken 'the checkpoint is left'

finish
