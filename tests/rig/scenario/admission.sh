# SPDX-License-Identifier: Apache-2.0
#
# Six clients at once behind a shaper with a small buffer, as before a bottleneck of a wide area: what it
# drops, and how much of the data is there in time, with bandwidth handed out and without.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
CLIENTS=6
FILES=2
FILE_MB=1
SHAPER=32mbit # 4 MB/s, far below what the driver reaches
BUFFER=160    # packets, of which those that are full have 4 KiB
CONTROL=(--bandwidth 3200K --share 1600K --turn 1M --age 0) # with headers it stays below the shaper
IN_TIME_S=10  # all files of all clients take 3.1 s on the link alone, and emulation its own

make_file small $FILE_MB

shaper_on() {
	at_client tc qdisc replace dev vb root netem rate $SHAPER limit $BUFFER
}

dropped() {
	at_client tc -s qdisc show dev vb | sed -n 's/.*dropped \([0-9]*\).*/\1/p' | head -n 1
}

# One client's files, one after the other, and when each was there.
puts() {
	local i
	for ((i = 0; i < FILES; i++)); do
		LIMIT=240 client --connect-timeout 60 small $URL/$1-$i && date +%s.%N >>$WORK/ends
	done >$WORK/said-"$1" 2>&1
}

# crowd WAY ARGUMENTS...
crowd() {
	local way=$1 i pids=() began now whole=0 in_time
	shift
	daemon_start --fabric "$FABRIC" "$@"
	shaper_on
	: >$WORK/ends
	began=$(date +%s.%N)
	for ((i = 0; i < CLIENTS; i++)); do
		puts $i &
		pids+=($!)
	done
	wait "${pids[@]}" || true
	now=$(date +%s.%N)
	in_time=$(awk -v a="$began" -v most=$IN_TIME_S '$1 - a <= most { n++ } END { print n + 0 }' $WORK/ends)
	for ((i = 0; i < CLIENTS * FILES; i++)); do
		cmp -s small $EXPORT/$((i / FILES))-$((i % FILES)) && whole=$((whole + 1))
	done
	dropped >$WORK/dropped
	awk -v a="$began" -v b="$now" 'BEGIN { printf "%.1f\n", b - a }' >$WORK/took
	net_wan 0
	echo "$way: $(cat $WORK/dropped) packets dropped, $whole of $((CLIENTS * FILES)) files whole, $in_time in time," \
		"all in $(cat $WORK/took) s"
	measured admission "$RIG_DRIVER" "$way" "$(cat $WORK/dropped)" \
		"$(awk -v a="$in_time" -v b=$((CLIENTS * FILES)) 'BEGIN { printf "%.2f", a / b }')" "$(cat $WORK/took)"
	rm -f $EXPORT/[0-9]-[0-9]
	daemon_stop
	echo "$whole" >$WORK/whole
}

without() {
	crowd "no control"
	[ "$(cat $WORK/dropped)" -gt 0 ] || fail "nothing was dropped: the buffer is no bottleneck here"
}

with() {
	crowd "bandwidth handed out" "${CONTROL[@]}"
	[ "$(cat $WORK/dropped)" -eq 0 ] || fail "$(cat $WORK/dropped) packets were dropped"
	[ "$(cat $WORK/whole)" -eq $((CLIENTS * FILES)) ] || fail "files are missing: $(tail -n 3 $WORK/said-*)"
}

run_case "six clients without control: the buffer overflows" without
run_case "six clients whose bandwidth is handed out: nothing is dropped, and all arrives" with
finish
