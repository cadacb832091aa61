#!/bin/sh
# permissions - sorts with a restrictive umask and as a user without privileges
. "$(dirname "$0")/testlib.sh"

# run_as_user ARGUMENT...: run gsort as a user without privileges; sets $status
run_as_user() {
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
	run_as_user --checkpoint=theirs/ck -S 4M --temp-compress=delta few -o theirs/output
	[ $status -eq 0 ]
) || fail 'it failed'
expect_same expected theirs/output 'umask 777'
[ "$(stat -c %a theirs/output)" = 600 ] || fail "mode $(stat -c %a theirs/output)"
[ ! -e theirs/ck ] || fail 'the checkpoint is left'

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
	run_as_user --checkpoint=theirs/ck -S 4M --temp-compress=none -u random -o theirs/output
	[ $status -eq 2 ]
) || fail 'it did not fail'
for path in theirs/ck theirs/ck/gsort-manifest theirs/ck/gsort-runs; do
	case $(stat -c %a $path) in
	*[67]00) ;;
	*) fail "$path: mode $(stat -c %a $path)" ;;
	esac
done
(
	umask 777
	run_as_user --checkpoint=theirs/ck -S 4M --temp-compress=none -u random -o theirs/output
	[ $status -eq 0 ]
) || fail 'it failed'
expect_line '^gsort: resuming: [1-9]' stderr
expect_same expected theirs/output 'resumed'
[ ! -e theirs/ck ] || fail 'the checkpoint is left'

finish
