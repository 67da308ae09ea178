# SPDX-License-Identifier: Apache-2.0
#
# Devices: which fabric is taken and why, what `rftp doctor` says of them, rights and limits, and
# devices that come and go under the client and the daemon.
. guest/lib.sh
. guest/disturb.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
disturb_files
LOOK=11 # seconds in which a daemon looks for devices

device() {
	local end=at_client
	[ "$2" = rdmaB ] || end=at_server
	if [ "$1" = del ]; then
		$end timeout 20 rdma link del "$2" || fail "$2 cannot be taken away"
	else
		$end rdma link add "$2" type "$RIG_DRIVER" netdev "$([ "$2" = rdmaB ] && echo vb || echo va)"
		net_wait "$2 is not active" net_active $end "$2"
		[ "$RIG_DRIVER" = siw ] || net_wait "$2 has no GID" net_gid $end "$2" ffff:0a06
	fi
}

# mentions PATTERN COMMAND...: whatever its $status is
mentions() {
	local pattern=$1
	shift
	status=0
	"$@" >$WORK/said 2>&1 || status=$?
	cat $WORK/said
	grep -qE -e "$pattern" $WORK/said || fail "it does not say: $pattern (status $status)"
}

# says PATTERN COMMAND...: and it succeeds
says() {
	mentions "$@"
	[ $status = 0 ] || fail "status $status"
}

# auto would pass a device in software over
FABRIC=verbs,soft

served() {
	daemon_start
	# where an iWARP device owns the TCP port, its listener serves soft's clients, too
	grep -qE "^ready .*verbs" $WORK/ready || fail "it serves $(cat $WORK/ready)"
	[ "$RIG_DRIVER" = siw ] || grep -qE "^ready .*soft" $WORK/ready || fail "it serves $(cat $WORK/ready)"
}
run_case "the daemon serves verbs, and soft where the port is free" served
run_case "verbs,soft takes verbs, and says why" \
	says "fabric verbs \(the best that connected\): rdmaB port 1" client -v -c ls $URL

automatic() {
	FABRIC=auto
	says "fabric verbs passed over: rdmaB is RDMA in software" client -v -c ls $URL
	grep -q "fabric soft (the best that connected)" $WORK/said || fail "auto did not take soft"
}
run_case "auto passes a device in software over for soft" automatic
FABRIC=verbs,soft

healthy() {
	says '^rdma device +ok' at_client rftp doctor
	says '"healthy":true' at_client rftp doctor --json
	for what in 'rdma device' port mtu gid 'locked memory'; do
		grep -qE "\"check\":\"$what\",.*\"result\":\"(ok|info)\"" $WORK/said || fail "no good row: $what"
	done
}
run_case "doctor finds the device" healthy

remote() {
	says '^' at_client rftp --accept-new doctor $URL
	for fabric in verbs soft; do
		grep -qE "^rate +ok .*$fabric" $WORK/said || fail "no rate on $fabric"
	done
}
run_case "doctor URL: a rate on verbs, and on soft" remote

# unprivileged COMMAND...: a user without rights at the client, who knows no server's key yet
unprivileged() {
	mkdir -p -m 777 /tmp/nobody
	at_client env HOME=/tmp/nobody setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		"$@"
}

no_rights() {
	chmod 600 /dev/infiniband/*
	mentions '^rdma rights +fail' unprivileged rftp doctor
	says 'fabric soft' unprivileged rftp --accept-new -v -c ls $URL
	chmod 666 /dev/infiniband/*
	mentions '^rdma rights +ok' unprivileged rftp doctor
}
run_case "no rights on /dev/infiniband: doctor says so, soft is taken" no_rights

limited() {
	chmod 666 /dev/infiniband/*
	chmod 777 .
	ulimit -l 4096
	mentions '^locked memory +warn' unprivileged rftp doctor
	rm -f $EXPORT/limited
	says 'ulimit -l' unprivileged rftp --accept-new -v --fabric=verbs --block 1M --depth 32 large $URL/limited
	same_files large $EXPORT/limited
	[ "$(grep -c 'ulimit -l' $WORK/said)" = 1 ] || fail "more than one warning"
}
run_case "RLIMIT_MEMLOCK: doctor warns, a transfer goes on with less and says so once" limited

# A long link asks for a window of 512 MiB.  What this guest does not have is not for the kernel to find out,
# which would kill whom it likes.
little_memory() {
	local left
	left=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	mkdir $WORK/filler
	mount -t tmpfs -o size=90% filler $WORK/filler
	head -c $(((left - 250) * 1048576)) /dev/zero >$WORK/filler/file
	at_server tc qdisc replace dev va root netem delay 60ms limit 100000
	FABRIC=verbs client -v - $URL/large <large
	same_files large $EXPORT/large
	FABRIC=verbs client -v $URL/large back
	same_files large back
	cat $WORK/daemon.log
	grep -q "only [0-9]* MiB of memory are available" $WORK/daemon.log || fail "there was enough of it"
	daemon_must_live
}

much_memory() {
	fast_link
	umount $WORK/filler
	rm -r $WORK/filler $EXPORT/large back
} 2>/dev/null
run_case "little memory on a long link: a smaller window" little_memory
much_memory

# huge_pages NUMBER WHAT: what the client says with so many reserved
huge_pages() {
	sysctl -qw vm.nr_hugepages=$1
	grep -qx "HugePages_Total: *$1" /proc/meminfo || skip "the kernel has no room for $1 huge pages"
	says "memory: [0-9]+ bytes$2" client -vv --block 512K --depth 16 -c "bench 16M put" $URL
	sysctl -qw vm.nr_hugepages=0
	net_wait "somebody still has huge pages" grep -qx "HugePages_Total: *0" /proc/meminfo
}
run_case "huge pages are used where there are any" huge_pages 24 " in huge pages"
run_case "and done without where there are too few" huge_pages 1 "$"

taken_from_client() {
	fresh
	FABRIC=verbs under_way put
	device del rdmaB
	wait_for $PATIENCE "the client notices" client_gone
	client_must_have_failed
	fast_link
	same_files old $EXPORT/target
	no_leftovers_but_journals $EXPORT
	says 'fabric soft' client -v small $URL/next
	same_files small $EXPORT/next
	device add rdmaB
	says 'fabric verbs' client -v small $URL/again
	same_files small $EXPORT/again
}

fresh() {
	fast_link || true
	at_server test -e /sys/class/infiniband/rdmaA || device add rdmaA
	at_client test -e /sys/class/infiniband/rdmaB || device add rdmaB
	rm -rf $EXPORT/target $EXPORT/next $EXPORT/again target
	cp old $EXPORT/target
	cp old target
	daemon_start
}
run_case "the client's device is taken away under a put; soft, then verbs again" taken_from_client

# The daemon and the client both.  The client waits 3 s for verbs, which a busy host may need more of than once.
by_verbs() {
	local before
	before=$(grep -c "connected: verbs" $WORK/daemon.log) || true
	for _ in 1 2 3; do
		client -v small $URL/again 2>&1 | tee $WORK/said
		same_files small $EXPORT/again
		grep -q "passed over.*no answer within" $WORK/said || break
	done
	grep -q 'fabric verbs (' $WORK/said || fail "the client did not take verbs"
	[ "$(grep -c "connected: verbs" $WORK/daemon.log)" -gt "$before" ] || fail "not by verbs"
}

taken_from_daemon() {
	fresh
	FABRIC=verbs under_way get
	device del rdmaA
	wait_for $PATIENCE "the client notices" client_gone
	client_must_have_failed
	fast_link
	same_files old target
	no_leftovers_but_journals .
	sleep $LOOK
	daemon_must_live
	client -v small $URL/next # on siw by verbs all the same: soft is iWARP
	grep -q "connected: soft" $WORK/daemon.log || fail "not by soft"
	same_files small $EXPORT/next
	device add rdmaA
	sleep $LOOK
	by_verbs
}
run_case "the daemon's device is taken away under a get; soft, then verbs again" taken_from_daemon

comes_later() {
	fresh
	daemon_stop
	device del rdmaA
	daemon_start
	client -v small $URL/next
	grep -q "connected: soft" $WORK/daemon.log || fail "not by soft"
	device add rdmaA
	sleep $LOOK
	by_verbs
}
short || run_case "a device that comes after the daemon has started" comes_later
finish
