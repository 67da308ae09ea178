# SPDX-License-Identifier: Apache-2.0
#
# Peers that break the rules (tests/rig/peer.c).  Always the same must hold: it is refused, the old file is as it
# was, a transfer beside it goes on, and the daemon serves the next client.
. guest/lib.sh
. guest/disturb.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
disturb_files

# beside_begins [NUMBER], beside_ends: a transfer of the daemon's first session, or of that number, which has
# its second half to come meanwhile
beside_begins() {
	session=${1:-1}
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
	at_client env RIG_PEER="$kind" RIG_PEER_FILE=$EXPORT/told timeout --foreground -k 5 $PATIENCE \
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
	no_leftovers_but_journals $EXPORT
	still_serves
}

# the_peer KIND ARGUMENT...: is refused
the_peer() {
	fresh_files
	beside_begins
	bad_peer "$1" fails old "${@:2}"
	others_go_on
}
run_case "a peer that writes outside of its grant" the_peer outside large $URL/target
run_case "a peer that writes with a wrong key" the_peer key large $URL/target
run_case "a peer that posts no receives (RNR)" the_peer deaf $URL/source target

# More slots than are granted at first.  Who writes there without saying so has changed nothing.
too_early() {
	fresh_files
	beside_begins
	bad_peer ungranted fails old --block=256K --depth=64 large $URL/target
	grep "without a grant" $WORK/daemon.log
	bad_peer silent works large --block=256K --depth=64 large $URL/target
	grep "peer: slot 63 of 64" $WORK/peer.log
	others_go_on
}
run_case "a peer that fills slots before they are granted" too_early

too_late() {
	fresh_files
	beside_begins
	bad_peer late fails large large $URL/target
	grep "peer: refused" $WORK/peer.log
	bad_peer late-read fails large --engine=status large $URL/target
	grep "peer: refused" $WORK/peer.log
	others_go_on
}
run_case "a peer that uses a key after CLOSED" too_late

# Of each the header has a checksum, or a seal that is good for one block of one transfer.
again() {
	local protect
	for protect in clear safe private; do
		fresh_files
		beside_begins
		bad_peer replay fails old --protect=$protect large $URL/target
		grep "peer: a block comes again" $WORK/peer.log
		bad_peer swap fails old --protect=$protect large $URL/target
		grep "peer: a block comes again" $WORK/peer.log
		others_go_on
	done
}
run_case "a peer that replays blocks, or swaps what is in them" again

another_token() {
	fresh_files
	beside_begins
	bad_peer token fails old large $URL/target
	grep "peer: a data channel for session 1" $WORK/peer.log
	others_go_on
}
run_case "a data channel for another session" another_token

# A daemon that tells what it registers, where its sandbox lets it.
telling() {
	DAEMON=(env RIG_PEER=tell RIG_PEER_FILE=$EXPORT/told peerd)
	fresh_files
	beside_begins
}

another_session() {
	telling
	bad_peer other fails old large $URL/target
	grep "peer: knows of the memory" $WORK/peer.log
	others_go_on
}
run_case "a peer that uses another session's key" another_session

# Keys that were good once: of an earlier transfer of the same session, and of a session that has ended.
earlier_transfer() {
	fresh_files
	beside_begins
	bad_peer stale fails old -c "put large first; put large target" $URL
	grep "peer: a bad request" $WORK/peer.log
	same_files large $EXPORT/first
	others_go_on
}
run_case "a peer that uses the key of an earlier transfer" earlier_transfer

ended_session() {
	DAEMON=(env RIG_PEER=tell RIG_PEER_FILE=$EXPORT/told peerd)
	fresh_files
	client large $URL/first
	wait_for $PATIENCE "the daemon ends the session" session_ended 1
	cp $EXPORT/told told
	beside_begins 2
	cp told $EXPORT/told
	bad_peer other fails old large $URL/target
	grep "peer: knows of the memory" $WORK/peer.log
	grep "peer: a bad request" $WORK/peer.log
	same_files large $EXPORT/first
	others_go_on
}
run_case "a peer that uses the key of a session that has ended" ended_session

# the transfer beside it is the only one whose memory a peer may reach
reaching_sink() {
	telling
	bad_peer reach fails old $URL/source target
	grep "peer: knows of the memory" $WORK/peer.log
	# areas for early data apart, which each session has for what it may store
	[ "$(awk '$4 && $3 != 1048576 { n++ } END { print n + 0 }' $EXPORT/told)" = 1 ] || fail "a source exposes memory: $(cat $EXPORT/told)"
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
