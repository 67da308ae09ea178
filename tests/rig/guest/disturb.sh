# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scenarios that disturb a transfer: one that lasts long enough, and what must hold after it.

PATIENCE=30 # seconds in which a side must have noticed that its peer is gone

# In the current directory, and what the daemon has of them
disturb_files() {
	make_file old 1 99
	make_file large 64
	make_file small 2 7
	cp large $EXPORT/source
}

# These as they were, and a daemon that has just started.  Of a sink that was killed there may be a hidden file.
fresh_files() {
	rm -rf $EXPORT/target target $EXPORT/.rftp-* .rftp-* $EXPORT/beside $EXPORT/told
	cp old $EXPORT/target
	cp old target
	daemon_start --fabric "$FABRIC"
}

# The daemon has no session left, says its log; or not that one.
session_ended() {
	grep -q "session ${1:-1} .*ended" $WORK/daemon.log
}

# Slows the link, so that a transfer lasts long enough to be disturbed: about 10 MB/s.
slow_link() {
	at_server tc qdisc replace dev va root netem rate 80mbit limit 100000
	at_client tc qdisc replace dev vb root netem rate 80mbit limit 100000
}

fast_link() {
	at_server tc qdisc del dev va root
	at_client tc qdisc del dev vb root
} 2>/dev/null

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

# arrive_more END INTERFACE BYTES: until there are more.  In one shell: processes for each look take, on
# a busy host, as long as the transfer that is to be disturbed.
arrive_more() {
	"$1" timeout 20 bash -c 'until read -r now <"$0"; [ "$now" -gt "$1" ]; do
		read -rt 0.05 <> <(:)
	done
	exit 0' "/sys/class/net/$2/statistics/rx_bytes" "$3" || fail "not in time: data arrives"
}

client_runs() {
	under_way_pid=$(pgrep -x rftp | head -n 1)
	[ -n "$under_way_pid" ]
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
		wait_for 20 "the client starts" client_runs
		arrive_more at_server va $((start + 4000000))
	else
		start=$(arrived at_client vb)
		background $WORK/client.log client_then_status -v $URL/source target
		wait_for 20 "the client starts" client_runs
		arrive_more at_client vb $((start + 4000000))
	fi
	alive "$under_way_pid" || { cat $WORK/client.log; fail "the transfer has ended already"; }
}
