#!/bin/sh
# permissions - sorts with a restrictive umask and as a user without privileges
. "$(dirname "$0")/testlib.sh"

# as_user ARGUMENT...: run gsort as a user without privileges; sets $status
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

claim 'a sort with a checkpoint works with umask 777'
(
	umask 777
	as_user --checkpoint=theirs/ck -S 4M --temp-compress=delta few -o theirs/output
	[ $status -eq 0 ]
) || broken 'it failed'
same expected theirs/output 'umask 777'
[ "$(stat -c %a theirs/output)" = 600 ] || broken "mode $(stat -c %a theirs/output)"
[ ! -e theirs/ck ] || broken 'the checkpoint is left'

claim 'a checkpoint that was created with umask 777 can be resumed'
: > stdout
: > stderr
generate -n 2000000 -o random
"$GSORT" -u random -o expected
(
	umask 777
	# Some runs fit in 8 MiB. With -u gsort does not check the size of the output before the
	# sort.
	ulimit -f 16384
	as_user --checkpoint=theirs/ck -S 4M --temp-compress=none -u random -o theirs/output
	[ $status -eq 2 ]
) || broken 'it did not fail'
for path in theirs/ck theirs/ck/gsort-manifest theirs/ck/gsort-runs; do
	case $(stat -c %a $path) in
	*[67]00) ;;
	*) broken "$path: mode $(stat -c %a $path)" ;;
	esac
done
(
	umask 777
	as_user --checkpoint=theirs/ck -S 4M --temp-compress=none -u random -o theirs/output
	[ $status -eq 0 ]
) || broken 'it failed'
says '^gsort: resuming: [1-9]' stderr
same expected theirs/output 'resumed'
[ ! -e theirs/ck ] || broken 'the checkpoint is left'

finish
