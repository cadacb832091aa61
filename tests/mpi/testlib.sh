# testlib - what the scripts share that start gsort-mpi; included, not run
#
# MPIRUN and GSORT_MPI say where those are; the rest is as for scripts of the command line.
cli=$(cd "$(dirname "$0")/../cli" && pwd)
. "$cli/testlib.sh"
. "$cli/random_config.sh"

# Of containers, of root, and of more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export HYDRA_LAUNCHER=fork

# What ranks share of memory goes with the test, also if they are killed.
mkdir mpi
export OMPI_MCA_btl_vader_backing_directory="$work/mpi"

# Where several ranks end at the same time Open MPI's mpirun dies now and then of what meson has
# memory filled with.
unset MALLOC_PERTURB_

# launch ARGUMENT...: mpirun with these, as `run`
launch() {
	timeout 120 "$MPIRUN" "$@" > stdout 2> stderr < /dev/null
	status=$?
}

# ranks N ARGUMENT...: of gsort, and $exchange, which gsort itself does not know
exchange=
ranks() {
	n=$1
	shift
	launch -np "$n" "$GSORT_MPI" ${exchange:+"$exchange"} "$@"
}

# in_time COMMAND...: wait for it to succeed; but not for ever
in_time() {
	until=$(($(date +%s) + 60))
	while ! "$@"; do
		[ "$(date +%s)" -lt $until ] || return 1
		sleep 0.02
	done
}

# What Open MPI has started for a process without a launcher ends, and tidies up, after that.
no_session() {
	[ -z "$(find "$TMPDIR" -maxdepth 1 -name 'ompi.*')" ]
}

# all_gone WHAT: nothing is left, of the output or in the temporary space
all_gone() {
	in_time no_session
	[ -z "$(ls -A out)" ] || broken "$1 leaves $(ls -A out | tr '\n' ' ')"
	nothing_left "$1"
}

# as_expected WHAT: the last ranks have written to out/x what is in `expected`
as_expected() {
	[ "$status" -eq 0 ] || broken "$1: status $status"
	cmp -s expected out/x || broken "$1: something else was written"
	rm -f out/x
	all_gone "$1"
}

# agrees N ARGUMENT...: N ranks and one process
agrees() {
	n=$1
	shift
	run "$@" -o expected
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	ranks "$n" "$@" -o out/x
	as_expected "$n ranks, $*"
}

mkdir out
