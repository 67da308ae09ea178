# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong: a side that is killed, a link that goes down, a peer that breaks the rules.  Always
# the same must hold: an error in time, the old file as it was, a daemon that serves the next client.
. guest/lib.sh
. guest/disturb.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
disturb_files

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
