# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong: a side that is killed, a link that goes down, a peer that breaks the rules.  Always
# the same must hold: an error in time, the old file as it was, a daemon that serves the next client.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
PATIENCE=30 # seconds in which a side must have noticed that its peer is gone
cd $HOME_DIR || exit
make_file old 1 99
make_file large 48
make_file small 2 7
cp large $EXPORT/source

# Slows the link, so that a transfer lasts long enough to be disturbed: about 10 MB/s.
slow_link() {
	at_server tc qdisc replace dev va root netem rate 80mbit limit 100000
	at_client tc qdisc replace dev vb root netem rate 80mbit limit 100000
}

fast_link() {
	at_server tc qdisc del dev va root
	at_client tc qdisc del dev vb root
} 2>/dev/null

link_down() {
	touch $WORK/link_is_down
	net_link down
}

link_up() {
	net_link up
	rm -f $WORK/link_is_down
}

# Whatever the case before left: of a sink that was killed, its hidden file as well.
fresh() {
	fast_link || true
	[ ! -e $WORK/link_is_down ] || link_up
	rm -rf $EXPORT/target target $EXPORT/.rftp-* .rftp-*
	cp old $EXPORT/target
	cp old target
	daemon_start --fabric "$FABRIC"
}

still_serves() {
	daemon_must_live
	client -v small $URL/next
	same_files small $EXPORT/next
	client -v $URL/next next.back
	same_files small next.back
}

# How many bytes have arrived at an end of the link.
arrived() {
	"$1" cat "/sys/class/net/$2/statistics/rx_bytes"
}

arrived_more() {
	[ "$(arrived "$1" "$2")" -gt "$3" ]
}

client_then_status() {
	local status=0
	client "$@" || status=$?
	echo "client ended with $status"
}

client_gone() {
	grep "^client ended" $WORK/client.log
}

client_must_have_failed() {
	cat $WORK/client.log
	! grep -q "^client ended with 0" $WORK/client.log || fail "it should have failed"
	! grep -qE "^client ended with 1[2-9]." $WORK/client.log || fail "it died"
}

# under_way put|get: a transfer of `large` in the background, some MB of which have crossed
under_way() {
	local start
	slow_link
	if [ "$1" = put ]; then
		start=$(arrived at_server va)
		background $WORK/client.log client_then_status -v large $URL/target
		wait_for 20 "data arrives" arrived_more at_server va $((start + 4000000))
	else
		start=$(arrived at_client vb)
		background $WORK/client.log client_then_status -v $URL/source target
		wait_for 20 "data arrives" arrived_more at_client vb $((start + 4000000))
	fi
	under_way_pid=$(pgrep -x rftp | head -n 1)
	[ -n "$under_way_pid" ] || { cat $WORK/client.log; fail "the transfer has ended already"; }
}

# The daemon has no session left, says its log.
session_ended() {
	grep -q "session 1 .*ended" $WORK/daemon.log
}

client_killed() {
	fresh
	under_way "$1"
	kill -KILL "$under_way_pid"
	wait_for $PATIENCE "the daemon ends the session" session_ended
	fast_link
	same_files old $EXPORT/target
	same_files old target
	no_leftovers $EXPORT
	still_serves
}
run_case "SIGKILL of the client, put" client_killed put
run_case "SIGKILL of the client, get" client_killed get

daemon_killed() {
	fresh
	under_way "$1"
	kill -KILL "$(cat $WORK/daemon.pid)"
	rm $WORK/daemon.pid
	wait_for $PATIENCE "the client notices" client_gone
	client_must_have_failed
	fast_link
	same_files old $EXPORT/target
	same_files old target
	no_leftovers .
	daemon_start --fabric "$FABRIC"
	still_serves
}
run_case "SIGKILL of the daemon, put" daemon_killed put
run_case "SIGKILL of the daemon, get" daemon_killed get

# Down for ten seconds.  Either it outlives that and the file is whole, or it is an error in time.
link_interrupted() {
	fresh
	under_way "$1"
	link_down
	sleep 10
	link_up
	slow_link
	wait_for $((PATIENCE + 10)) "the client ends" client_gone
	cat $WORK/client.log
	fast_link
	if [ "$1" = put ]; then
		cmp -s large $EXPORT/target || same_files old $EXPORT/target
	else
		cmp -s large target || same_files old target
	fi
	wait_for $PATIENCE "the daemon ends the session" session_ended
	no_leftovers $EXPORT .
	still_serves
}
run_case "link down for 10 s and back, put" link_interrupted put
short || run_case "link down for 10 s and back, get" link_interrupted get

# The network drops everything for a while, and no device says so.
network_silent() {
	fresh
	under_way "$1"
	net_silence
	sleep 10
	slow_link
	wait_for $((PATIENCE + 30)) "the client ends" client_gone
	cat $WORK/client.log
	fast_link
	if [ "$1" = put ]; then
		cmp -s large $EXPORT/target || same_files old $EXPORT/target
	else
		cmp -s large target || same_files old target
	fi
	wait_for $((PATIENCE + 30)) "the daemon ends the session" session_ended
	no_leftovers $EXPORT .
	still_serves
}
run_case "a silent network for 10 s, put" network_silent put
short || run_case "a silent network for 10 s, get" network_silent get

# The link never comes back: nobody waits for ever, the daemon at most a minute.
link_lost() {
	fresh
	under_way put
	link_down
	wait_for $((PATIENCE + 30)) "the client gives up" client_gone
	client_must_have_failed
	wait_for $((PATIENCE + 60)) "the daemon ends the session" session_ended
	link_up
	fast_link || true
	same_files old $EXPORT/target
	no_leftovers $EXPORT
	still_serves
}
short || run_case "link down for good, put" link_lost

# bad_peer KIND ARGUMENT...: the client of tests/rig/peer.c
bad_peer() {
	local status=0 kind=$1
	shift
	fresh
	at_client env RIG_PEER="$kind" timeout --foreground -k 5 $PATIENCE peer --fabric="$FABRIC" -v "$@" || status=$?
	echo "the peer's status: $status"
	[ $status -ne 0 ] || fail "it was not refused"
	[ $status -lt 124 ] || fail "not in time"
	wait_for $PATIENCE "the daemon ends the session" session_ended
	tail -n 5 $WORK/daemon.log
	same_files old $EXPORT/target
	same_files old target
	same_files large $EXPORT/source
	no_leftovers $EXPORT
	still_serves
}
run_case "a peer that writes outside of its grant" bad_peer outside large $URL/target
run_case "a peer that writes with a wrong key" bad_peer key large $URL/target
run_case "a peer that posts no receives (RNR)" bad_peer deaf $URL/source target
finish
