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

# ranks N ARGUMENT...: run gsort-mpi with N ranks; $exchange is a further option
exchange=
ranks() {
	n=$1
	shift
	launch -np "$n" "$GSORT_MPI" ${exchange:+"$exchange"} "$@"
}

# in_time COMMAND...: wait until the command succeeds, at most a minute
in_time() {
	until=$(($(date +%s) + 60))
	while ! "$@"; do
		[ "$(date +%s)" -lt $until ] || return 1
		sleep 0.02
	done
}

# no_session: the helpers that Open MPI starts for a process without a launcher have ended
no_session() {
	[ -z "$(find "$TMPDIR" -maxdepth 1 -name 'ompi.*')" ]
}

# all_gone WHAT: no output and no temporary file is left
all_gone() {
	in_time no_session
	[ -z "$(ls -A out)" ] || broken "$1 leaves $(ls -A out | tr '\n' ' ')"
	nothing_left "$1"
}

# as_expected WHAT: the last ranks have written the contents of `expected` to out/x
as_expected() {
	[ "$status" -eq 0 ] || broken "$1: status $status"
	cmp -s expected out/x || broken "$1: the output differs"
	rm -f out/x
	all_gone "$1"
}

# agrees N ARGUMENT...: N ranks and one process write the same bytes
agrees() {
	n=$1
	shift
	run "$@" -o expected
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	ranks "$n" "$@" -o out/x
	as_expected "$n ranks, $*"
}

# --- failures ---

no_process() {
	for process in /proc/[0-9]*; do
		case $(readlink "$process/exe") in
		"$GSORT_MPI" | "$GSORT_MPI_FAULTS") ;;
		*) continue ;;
		esac
		[ "$(readlink "$process/cwd")" != "$PWD" ] || return 1
	done
}

# ends WHAT REGEX [STATUS...]: the last ranks ended with one of these statuses (default: 2) and
# printed a matching line
ends() {
	what=$1 regex=$2
	shift 2
	echo "${*:-2}" | grep -qw "$status" || broken "$what: status $status"
	grep -qE "^gsort: $regex" stderr || broken "$what: no message matches $regex"
	in_time no_process || broken "$what: a rank has not ended"
	all_gone "$what"
}

# begin POINT1 POINT2 ARGUMENT...: start two ranks that stop at these points ("": none)
begin() {
	first=$1 other=$2
	shift 2
	timeout 120 "$MPIRUN" -np 1 env GSORT_TEST_STOP_AT="$first" "$GSORT_MPI_FAULTS" "$@" : \
		-np 1 env GSORT_TEST_STOP_AT="$other" "$GSORT_MPI_FAULTS" "$@" \
		> stdout 2> stderr < /dev/null &
	launcher=$!
}

# all_stopped N NAME: N processes have created files NAME.PID and are stopped
all_stopped() {
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
	in_time all_stopped "$2" "$3" || broken "$3: not $2 ranks have reached the point"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	kill -"$1" $stopped
	wait_for_end "$3"
}

wait_for_end() {
	wait $launcher
	status=$?
	rm -f "$1".*
}

mkdir out
