#!/bin/sh
# exchange - ranks exchange messages over a real MPI, and end after a failure of one of them
#
# usage: exchange.sh N...
#
# Each N is a number of ranks. MPIRUN and EXCHANGE in the environment are the paths of the programs.
set -u
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
log=$work/log
failed=0

# Open MPI: allow root and more ranks than CPUs; ranks in containers cannot read each
# other's memory. MPICH needs no settings.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
# Look for no devices and networks.
export HWLOC_COMPONENTS=-linux:pci,-pci OMPI_MCA_btl=self,vader
# The shared memory of the ranks is removed with the test, even if they are killed.
export OMPI_MCA_btl_vader_backing_directory="$work"
# If several ranks end at the same time, Open MPI's mpirun sometimes crashes on memory that
# meson has filled.
unset MALLOC_PERTURB_

# expect_status WHAT STATUSES REGEX COMMAND...: the command exits with one of the statuses and
# prints a matching line
expect_status() {
	what=$1 statuses=$2 text=$3
	shift 3
	timeout 60 "$@" >"$log" 2>&1 </dev/null
	status=$?
	if ! echo "$statuses" | grep -qw "$status" || ! grep -q "$text" "$log"; then
		echo "FAIL: $what: status $status, not $statuses, or no line with '$text':"
		sed 's/^/	/' "$log"
		failed=1
	fi
}

for n in "$@"; do
	expect_status "$n ranks" 0 "^$n ranks: all arrived" "$MPIRUN" -np "$n" "$EXCHANGE" \
		1000000 300000
done
# A launcher that ends the ranks itself may report that all were killed.
# The launcher ends with the status of MPI_Abort(), or with the signal by which it ended a rank.
expect_status 'a rank that aborts' '1 2 9' 'rank 1: that is all' "$MPIRUN" -np 2 "$EXCHANGE" abort
expect_status 'a rank that is stopped' '1 2 9' 'rank 1 on .* has not answered for 5' \
	"$MPIRUN" -np 2 "$EXCHANGE" stop
expect_status 'a message that is too long' '1 2 9' 'rank 1 on .* has sent more than the 200 bytes' \
	"$MPIRUN" -np 2 "$EXCHANGE" long
expect_status 'a message that is too short' '1 2 9' \
	'rank 1 on .* has sent 199 bytes where 200 were expected' "$MPIRUN" -np 2 "$EXCHANGE" short
exit $failed
