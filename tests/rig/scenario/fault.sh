# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong: a side that is killed, a link that goes down, a peer that breaks the rules.  Always
# the same must hold: an error in time, the old file as it was, a daemon that serves the next client.
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

# Whatever the case before left: of a sink that was killed, its hidden file as well.
fresh() {
	fast_link || true
	[ ! -e $WORK/link_is_down ] || link_up
	rm -rf $EXPORT/target target $EXPORT/.rftp-* .rftp-* $EXPORT/beside $WORK/told
	cp old $EXPORT/target
	cp old target
	daemon_start --fabric "$FABRIC"
}

# The daemon has no session left, says its log; or not that one.
session_ended() {
	grep -q "session ${1:-1} .*ended" $WORK/daemon.log
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

# beside_begins, beside_ends: a transfer of the daemon's first session, which has its second half to come
# meanwhile
beside_begins() {
	session=1
	rm -f $WORK/pipe
	mkfifo $WORK/pipe
	background $WORK/beside.log beside_client
	exec 7>$WORK/pipe
	timeout 20 cat small >&7
	wait_for 20 "the transfer beside it is under way" beside_under_way
}

beside_client() {
	client_then_status -v - $URL/beside <$WORK/pipe
}

beside_under_way() {
	find $EXPORT -name '.rftp-*' | grep -q .
}

beside_gone() {
	grep "^client ended" $WORK/beside.log
}

beside_ends() {
	timeout 20 cat old >&7
	exec 7>&-
	wait_for $PATIENCE "the transfer beside it ends" beside_gone
	cat $WORK/beside.log
	grep -q "^client ended with 0" $WORK/beside.log || fail "the transfer beside it failed"
	cat small old | cmp - $EXPORT/beside || fail "what was sent beside it arrived as something else"
}

# bad_peer KIND fails|works TARGET ARGUMENT...: the client of tests/rig/peer.c; then the daemon's target
# is as TARGET.
bad_peer() {
	local kind=$1 outcome=$2 target=$3 status=0
	shift 3
	session=$((session + 1))
	cp old $EXPORT/target
	at_client env RIG_PEER="$kind" RIG_PEER_FILE=$WORK/told timeout --foreground -k 5 $PATIENCE \
		peer --fabric="$FABRIC" -v "$@" >$WORK/peer.log 2>&1 || status=$?
	cat $WORK/peer.log
	echo "$kind: the peer's status: $status"
	[ $status -lt 124 ] || fail "not in time"
	if [ "$outcome" = works ]; then
		[ $status = 0 ] || fail "it was refused"
	else
		[ $status -ne 0 ] || fail "it was not refused"
	fi
	wait_for $PATIENCE "the daemon ends the session" session_ended $session
	tail -n 5 $WORK/daemon.log
	same_files $target $EXPORT/target
	same_files old target
	same_files large $EXPORT/source
}

# others_go_on: beside the peer, and behind it
others_go_on() {
	beside_ends
	no_leftovers $EXPORT
	still_serves
}

# the_peer KIND ARGUMENT...: is refused
the_peer() {
	fresh
	beside_begins
	bad_peer "$1" fails old "${@:2}"
	others_go_on
}
run_case "a peer that writes outside of its grant" the_peer outside large $URL/target
run_case "a peer that writes with a wrong key" the_peer key large $URL/target
run_case "a peer that posts no receives (RNR)" the_peer deaf $URL/source target

# More slots than are granted at first.  Who writes there without saying so has changed nothing.
too_early() {
	fresh
	beside_begins
	bad_peer ungranted fails old --block=256K --depth=64 large $URL/target
	grep "which it was not granted" $WORK/daemon.log
	bad_peer silent works large --block=256K --depth=64 large $URL/target
	grep "peer: slot 63 of 64" $WORK/peer.log
	others_go_on
}
run_case "a peer that fills slots before they are granted" too_early

too_late() {
	fresh
	beside_begins
	bad_peer late fails large large $URL/target
	grep "peer: refused" $WORK/peer.log
	bad_peer late-read fails large --engine=status large $URL/target
	grep "peer: refused" $WORK/peer.log
	others_go_on
}
run_case "a peer that uses a key after CLOSED" too_late

# A daemon that tells what it registers.
telling() {
	DAEMON=(env RIG_PEER=tell RIG_PEER_FILE=$WORK/told peerd)
	fresh
	beside_begins
}

another_session() {
	telling
	bad_peer other fails old large $URL/target
	grep "peer: knows of the memory" $WORK/peer.log
	others_go_on
}
run_case "a peer that uses another session's key" another_session

# the transfer beside it is the only one whose memory a peer may reach
reaching_sink() {
	telling
	bad_peer reach fails old $URL/source target
	grep "peer: knows of the memory" $WORK/peer.log
	[ "$(awk '$4 { n++ } END { print n + 0 }' $WORK/told)" = 1 ] || fail "a source exposes memory: $(cat $WORK/told)"
	others_go_on
}
run_case "a sink that writes to its source" reaching_sink

reads() {
	[ "$RIG_DRIVER" != siw ] || skip "siw's READ asks for a key, but for no right"
	telling
	bad_peer read fails old large $URL/target
	bad_peer reach-read fails old $URL/source target
	grep "peer: knows of the memory" $WORK/peer.log
	others_go_on
}
run_case "peers that read what they may not" reads
finish
