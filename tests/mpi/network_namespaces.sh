#!/bin/sh
# network_namespaces - ranks on several hosts, with TCP and broken links
#
# Network namespaces emulate the hosts. MPIRUN (of Open MPI), EXCHANGE, GSORT_MPI and
# GSORT_MPI_FAULTS (gsort_mpi_faults.c) in the environment are the paths of the programs. The last
# two may be unset. Skipped if namespaces cannot be created.
#
#	namespace  switch: mpirun        node 1          node 2
#	             bridge ------------ eth0            eth0
#	             `------------------------------------'
set -u
work=$(mktemp -d) || exit 99
id=gs$$ # of names: those of links are short
switch=${id}s
nodes="${id}a ${id}b"
network=10.83.0
failed=0

# Only processes of this test are in these namespaces.
clean_up() {
	for space in $nodes $switch; do
		for process in $(ip netns pids "$space" 2>/dev/null); do
			kill -KILL "$process" 2>/dev/null
		done
		ip netns delete "$space" 2>/dev/null
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 99' HUP INT TERM

skip() {
	echo "network_namespaces.sh: no $1"
	exit 77
}

make_nodes() {
	ip netns add "$switch" && ip -n "$switch" link add bridge type bridge &&
		ip -n "$switch" address add $network.254/24 dev bridge &&
		ip -n "$switch" link set bridge up && ip -n "$switch" link set lo up || return
	number=0
	for node in $nodes; do
		number=$((number + 1))
		ip netns add "$node" && ip -n "$node" link set lo up &&
			ip -n "$node" link add eth0 type veth peer name "$node" netns "$switch" &&
			ip -n "$switch" link set "$node" master bridge up &&
			ip -n "$node" address add $network.$number/24 dev eth0 &&
			ip -n "$node" link set eth0 up || return
	done
}

# launch N PROGRAM ARGUMENT...: run N ranks on each node
launch() {
	n=$1
	shift
	ip netns exec "$switch" "$MPIRUN" --mca plm_rsh_agent "$work/agent" \
		--mca plm_rsh_no_tree_spawn 1 --mca btl self,tcp \
		--mca oob_tcp_if_include $network.0/24 --mca btl_tcp_if_include $network.0/24 \
		--host "${id}a:$n,${id}b:$n" "$@" >"$work/log" 2>&1 </dev/null
}

run_ranks() {
	n=$1
	shift
	launch "$n" "$EXCHANGE" "$@"
}

# kernel_name PROGRAM: print the name of a program as the kernel truncates it
kernel_name() {
	basename "$1" | cut -c1-15
}

# list_processes NODE...: list the processes of the program $name on these nodes
list_processes() {
	for node; do
		for process in $(ip netns pids "$node"); do
			[ "$(cat "/proc/$process/comm" 2>/dev/null)" != "$name" ] || echo "$process"
		done
	done
}

# wait_until SECONDS COMMAND...: wait until the command succeeds, at most SECONDS
wait_until() {
	end=$(($(date +%s) + $1))
	shift
	while ! "$@"; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

are_processes_gone() {
	# Word splitting is intended.
	# shellcheck disable=SC2086
	[ -z "$(list_processes $nodes)" ]
}

is_running() {
	grep -q 'going on' "$work/log"
}

fail() {
	echo "FAIL: $*"
	sed 's/^/	/' "$work/log"
	failed=1
}

# run_with_fault WHAT REGEX COMMAND...: run a command that causes a fault while ranks exchange
# messages. All ranks end by themselves, and a rank that mpirun can reach reports the fault.
run_with_fault() {
	what=$1 text=$2
	shift 2
	: >"$work/log"
	run_ranks 1 forever &
	launcher=$!
	if wait_until 30 is_running; then
		"$@"
		# The timeout and the time to end.
		wait_until 30 are_processes_gone || fail "$what: a rank has not ended"
		grep -q "$text" "$work/log" || fail "$what: no message matches $text"
	else
		fail "$what: the ranks have not begun"
	fi
	end_launcher
}

# end_launcher: kill mpirun, which may wait for a node for ever, and the processes of all nodes
end_launcher() {
	for process in $(ip netns pids "$switch"); do
		kill -KILL "$process" 2>/dev/null
	done
	wait "$launcher"
	for node in $nodes; do
		for process in $(ip netns pids "$node"); do
			kill -KILL "$process" 2>/dev/null
		done
	done
}

# signal_one SIGNAL: send a signal to the rank on the second node
signal_one() {
	kill "-$1" "$(list_processes "${id}b")"
}

# expect_difference WHAT REGEX COMMAND: ranks refuse to sort if the second node mounts another
# file with COMMAND
expect_difference() {
	echo "$3" >"$work/${id}b.mounts"
	launch 1 "$GSORT_MPI" "$work/random" -o "$work/out/x"
	is=$?
	rm "$work/${id}b.mounts"
	[ $is -eq 2 ] || fail "$1: status $is"
	grep -q "^gsort: rank 1, on ${id}b: $2" "$work/log" || fail "$1: no message matches $2"
	[ -z "$(ls -A "$work/out")" ] || fail "$1 leaves $(ls -A "$work/out")"
}

# sort_on_nodes: two nodes sort if they see the same files, and refuse if not
sort_on_nodes() {
	mkdir "$work/out"
	head -c 800000 /dev/urandom >"$work/random"
	head -c 80000 "$work/random" >"$work/short"
	"$GSORT_MPI" "$work/random" -o "$work/expected" || fail 'one rank sorts'
	launch 2 "$GSORT_MPI" -T "$work" "$work/random" -o "$work/out/x" || fail 'nodes sort'
	cmp "$work/expected" "$work/out/x" || fail 'nodes sort to something else'
	rm -f "$work/out/x"
	expect_difference 'an input' "$work/random: file differs: " \
		"mount --bind $work/short $work/random"
	expect_difference 'the directory of the output' "$work/out/x: directory differs: " \
		"mount -t tmpfs none $work/out"
}

cut_link() {
	ip -n "$switch" link set "${id}b" down
}

is_stopped() {
	grep -q '^State:.T' "/proc/$(list_processes "${id}b" || echo 0)/status" 2>/dev/null
}

sort_checkpointed() {
	program=$1
	shift
	launch 1 "$program" "$@" -S 1M --timeout=2 --checkpoint="$work/kept" "$work/random" \
		-o "$work/out/x"
}

# sort_with_fault WHAT POINT REGEX COMMAND...: run a command that causes a fault while the second
# rank of a sort is at POINT. All ranks end, one reports the fault, and the next sort resumes.
sort_with_fault() {
	what=$1 point=$2 regex=$3
	shift 3
	name=$(kernel_name "$GSORT_MPI_FAULTS")
	echo "export GSORT_TEST_STOP_AT=$point" >"$work/${id}b.mounts"
	: >"$work/log"
	sort_checkpointed "$GSORT_MPI_FAULTS" &
	launcher=$!
	wait_until 30 is_stopped || fail "$what: the rank has not reached the point"
	rm "$work/${id}b.mounts"
	"$@"
	wait_until 30 are_processes_gone || fail "$what: a rank has not ended"
	[ -z "$regex" ] || grep -qE "^gsort: $regex" "$work/log" ||
		fail "$what: no message matches $regex"
	end_launcher
	ip -n "$switch" link set "${id}b" up
	[ -z "$(ls -A "$work/out")" ] || fail "$what leaves $(ls -A "$work/out")"
	sort_checkpointed "$GSORT_MPI" --debug || fail "$what: the next sort: status $?"
	grep -q '^gsort: resuming: [12] run' "$work/log" || fail "$what: nothing is resumed"
	cmp "$work/expected" "$work/out/x" || fail "$what: the output differs"
	rm -f "$work/out/x"
}

cut_link_of_stopped() {
	cut_link
	signal_one CONT
}

check_sorts() {
	sort_with_fault 'a rank of a sort that is stopped' written \
		"rank 1 on ${id}b has not answered for 2" true
	sort_with_fault 'a rank of a sort that is killed' checked '' signal_one KILL
	sort_with_fault 'a link of a sort that is cut' written \
		"rank [01] on ${id}[ab] has not answered for 2" cut_link_of_stopped
}

[ "$(id -u)" = 0 ] || skip 'rights to make namespaces'
command -v ip >/dev/null && command -v unshare >/dev/null || skip 'iproute2 and unshare'
make_nodes 2>"$work/why" || skip "namespaces: $(head -1 "$work/why")"
cat >"$work/agent" <<-'AGENT'
	#!/bin/sh
	# agent - replacement of ssh: agent HOST COMMAND...
	node=$1
	shift
	mounts=$(dirname "$0")/$node.mounts
	[ -e "$mounts" ] || mounts=/dev/null
	exec ip netns exec "$node" unshare -mu sh -c "hostname $node; . $mounts; $*"
AGENT
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export HWLOC_COMPONENTS=-linux:pci,-pci # look for no devices
# If several ranks end at the same time, Open MPI's mpirun sometimes crashes on memory that
# meson has filled.
unset MALLOC_PERTURB_

run_ranks 2 1000000 300000 || fail "ranks on two nodes: status $?"
grep -q '^4 ranks: all arrived' "$work/log" || fail 'ranks on two nodes'
if [ -n "${GSORT_MPI:-}" ]; then
	sort_on_nodes
	check_sorts
fi
name=$(kernel_name "$EXCHANGE")
run_with_fault 'a rank that is stopped' "rank 1 on ${id}b has not answered" signal_one STOP
run_with_fault 'a link that is cut' "rank 1 on ${id}b has not answered" cut_link
exit $failed
