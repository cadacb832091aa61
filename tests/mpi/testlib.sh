# testlib - functions for tests of gsort-mpi; source it at the beginning of a script
#
# MPIRUN and GSORT_MPI in the environment are the paths of the programs. tests/cli/testlib.sh
# describes the others.
cli=$(cd "$(dirname "$0")/../cli" && pwd)
. "$cli/testlib.sh"
. "$cli/random_config.sh"

# Allow containers, root, and more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export HYDRA_LAUNCHER=fork
# Ranks start in half the time if they look for no devices and networks. In a virtual machine
# reading the registers of PCI devices is slow.
export HWLOC_COMPONENTS=-linux:pci,-pci OMPI_MCA_btl=self,vader

# The shared memory of the ranks is removed with the test, even if they are killed.
mkdir mpi
export OMPI_MCA_btl_vader_backing_directory="$work/mpi"

# If several ranks end at the same time, Open MPI's mpirun sometimes crashes on memory that
# meson has filled.
unset MALLOC_PERTURB_

# launch ARGUMENT...: run mpirun; sets $status
launch() {
	timeout 120 "$MPIRUN" "$@" > stdout 2> stderr < /dev/null
	status=$?
}

# run_ranks N ARGUMENT...: run gsort-mpi with N ranks; $exchange is a further option
exchange=
run_ranks() {
	n=$1
	shift
	launch -np "$n" "$GSORT_MPI" ${exchange:+"$exchange"} "$@"
}

# wait_until COMMAND...: wait until the command succeeds, at most a minute
wait_until() {
	! "$@" || return 0
	until=$(($(date +%s) + 60))
	while ! "$@"; do
		[ "$(date +%s)" -lt $until ] || return 1
		sleep 0.02
	done
}

# is_session_over: the helpers that Open MPI starts for a process without a launcher have ended
is_session_over() {
	for session in "$TMPDIR"/ompi.*; do
		[ ! -e "$session" ] || return 1
	done
}

# expect_clean_directory WHAT: no output and no temporary file is left
expect_clean_directory() {
	wait_until is_session_over
	[ -z "$(ls -A out)" ] || fail "$1 leaves $(ls -A out | tr '\n' ' ')"
	expect_no_temp_files "$1"
}

# expect_rank_output WHAT: the last ranks have written the contents of `expected` to out/x
expect_rank_output() {
	expect_status 0 "$1"
	cmp -s expected out/x || fail "$1: the output differs"
	rm -f out/x
	expect_clean_directory "$1"
}

# compare_with_gsort N ARGUMENT...: N ranks and one process write the same bytes
compare_with_gsort() {
	n=$1
	shift
	expect_exit 0 "$@" -o expected
	run_ranks "$n" "$@" -o out/x
	expect_rank_output "$n ranks, $*"
}

# --- failures ---

is_process_gone() {
	# One program looks at all processes of the machine.
	for process in $(find /proc/[0-9]*/exe -prune \( -lname "$GSORT_MPI" -o \
			-lname "$GSORT_MPI_FAULTS" \) 2> find-errors); do
		[ "$(readlink "${process%exe}cwd")" != "$PWD" ] || return 1
	done
}

# expect_failed WHAT REGEX [STATUS...]: the last ranks ended with one of these statuses
# (default: 2) and printed a matching line
expect_failed() {
	what=$1 regex=$2
	shift 2
	echo "${*:-2}" | grep -qw "$status" || fail "$what: status $status"
	grep -qE "^gsort: $regex" stderr || fail "$what: no message matches $regex"
	wait_until is_process_gone || fail "$what: a rank has not ended"
	expect_clean_directory "$what"
}

# start_ranks POINT1 POINT2 ARGUMENT...: start two ranks that stop at these points ("": none)
start_ranks() {
	first=$1 other=$2
	shift 2
	timeout 120 "$MPIRUN" -np 1 env GSORT_TEST_STOP_AT="$first" "$GSORT_MPI_FAULTS" "$@" : \
		-np 1 env GSORT_TEST_STOP_AT="$other" "$GSORT_MPI_FAULTS" "$@" \
		> stdout 2> stderr < /dev/null &
	launcher=$!
}

# are_stopped N NAME: N processes have created files NAME.PID and are stopped
are_stopped() {
	stopped=
	for told in "$2".*; do
		[ ! -e "$told" ] || stopped="$stopped ${told##*.}"
	done
	[ "$(echo "$stopped" | wc -w)" -eq "$1" ] || return 1
	for process in $stopped; do
		grep -q '^State:.T' "/proc/$process/status" || return 1
	done
}

# signal_stopped SIGNAL N NAME: send the signal when N processes are stopped; wait for the launcher
signal_stopped() {
	wait_until are_stopped "$2" "$3" || fail "$3: not $2 ranks have reached the point"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	kill -"$1" $stopped
	wait_for_launcher "$3"
}

# kill_stopped N NAME: kill N stopped ranks, and wait until all ranks have ended
kill_stopped() {
	signal_stopped KILL "$1" "$2"
	[ "$status" -ne 0 ] || fail "$2: killed: status 0"
	wait_until is_process_gone || fail "$2: killed: a rank has not ended"
}

wait_for_launcher() {
	wait $launcher
	status=$?
	rm -f "$1".*
}

mkdir out
