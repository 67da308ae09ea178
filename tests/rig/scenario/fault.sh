# SPDX-License-Identifier: Apache-2.0
#
# What breaks: a side that is killed, a link that goes down.  Always the same must hold: an error in time, the
# old file as it was, a daemon that serves the next client.
. guest/lib.sh
. guest/disturb.sh

NET_SWITCH=1
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

# Also whatever the case before did to the link.
fresh() {
	fast_link || true
	[ ! -e $WORK/link_is_down ] || link_up
	fresh_files
}

client_killed() {
	fresh
	under_way "$1"
	kill -KILL "$under_way_pid"
	wait_for $PATIENCE "the daemon ends the session" session_ended
	fast_link
	same_files old $EXPORT/target
	same_files old target
	no_leftovers_but_journals $EXPORT
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
	no_leftovers_but_journals .
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
	no_leftovers_but_journals $EXPORT .
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
	no_leftovers_but_journals $EXPORT .
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
	no_leftovers_but_journals $EXPORT
	still_serves
}
short || run_case "link down for good, put" link_lost

# Of each connection's handshake the last message (RTU), which the client sends, never arrives; data do.  By
# what they begin with: UDP to RoCE's port, a management datagram of class 7 (connections), number 0x14.
unfinished() {
	[ "$RIG_DRIVER" = rxe ] || skip "iWARP's connections have no such message"
	fresh
	at_client tc qdisc replace dev vb root handle 1: prio bands 4
	at_client tc qdisc add dev vb parent 1:4 handle 40: netem loss 100%
	at_client tc filter add dev vb parent 1: protocol ip u32 match ip dport 4791 0xffff \
		match u8 7 0xff at 49 match u16 0x14 0xffff at 64 flowid 1:4
	client -v --channels 4 $URL/source target
	same_files large target
	client -v --channels 4 large $URL/target
	same_files large $EXPORT/target
	at_client tc -s qdisc show dev vb | tee $WORK/lost
	grep -A 1 "netem 40:" $WORK/lost | grep -q "dropped [1-9]" || fail "nothing was lost"
}
run_case "the last message of connecting is lost" unfinished
finish
