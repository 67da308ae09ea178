# SPDX-License-Identifier: Apache-2.0
#
# Side by side, in one guest: the device's own test, and programs that copy files, memory to memory and
# from file to file (tmpfs).  Each is run three times, in turns; the table has the medians.  CPU is that
# of the whole guest, of both ends and the kernel: 100 % are all of its cores.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
ROUNDS=3
mib=96
[ "$RIG_DRIVER" = rxe ] && mib=48
make_file large $mib

# "busy total" of all cores so far
cpu() {
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat
}

now() {
	cut -d' ' -f1 /proc/uptime
}

# timed NAME BLOCK BYTES COMMAND...: runs it, and notes its rate and CPU under NAME and BLOCK.  The rate
# is that of the whole command, unless it leaves its own, without set-up, in $WORK/rate.
timed() {
	local name=$1 block=$2 bytes=$3 before after started ended
	shift 3
	rm -f $WORK/rate
	before=$(cpu)
	started=$(now)
	"$@" || return
	ended=$(now)
	after=$(cpu)
	echo "$before $after $started $ended" | awk -v bytes="$bytes" -v name="$name" -v block="$block" \
		-v own="$(cat $WORK/rate 2>/dev/null)" '{
		rate = own != "" ? own : bytes / ($6 - $5) / 1e6
		printf "%s\t%s\t%.1f\t%.0f\n", name, block, rate, 100 * ($3 - $1) / ($4 - $2)
	}' >>$WORK/runs
}

json_rate() {
	sed -n 's/.*"event":"done".*"bytes_per_second":\([0-9]*\).*/\1/p' |
		awk '{ printf "%.1f", $1 / 1e6 }' >$WORK/rate
}

run_device() {
	local options="-R -F -s $1 -n $((mib * 1048576 / $1)) -t 128 --report_gbits"
	at_server timeout --foreground 60 ib_write_bw $options >$WORK/device 2>&1 &
	sleep 1
	at_client timeout --foreground 60 ib_write_bw $options $SERVER_ADDR >$WORK/device.client 2>&1
	wait $!
	awk -v size="$1" '$1 == size { printf "%.1f", $4 * 125 }' $WORK/device.client >$WORK/rate
	[ -s $WORK/rate ]
}

run_iperf3() {
	at_server timeout --foreground 60 iperf3 -s -1 >/dev/null 2>&1 &
	sleep 1
	at_client timeout --foreground 60 iperf3 -J -l "$1" -n ${mib}M -c $SERVER_ADDR >$WORK/iperf
	wait $!
	python3 -c 'import json, sys
print("%.1f" % (json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 8e6), end="")' \
		<$WORK/iperf >$WORK/rate
}

run_bench() {
	FABRIC=$1 client --json --block "$2" -c "bench ${mib}M put" $URL >$WORK/said
	json_rate <$WORK/said
}

run_rftp() {
	rm -f $EXPORT/large
	FABRIC=$1 client -q large $URL/large
}

run_rcopy() {
	rm -f $EXPORT/rcopy
	at_client timeout --foreground 60 rcopy large $SERVER_ADDR:$EXPORT/rcopy >$WORK/rcopy 2>&1
}

run_gridftp() {
	rm -f $EXPORT/gridftp
	at_client timeout --foreground 60 globus-url-copy -p 4 file://$HOME_DIR/large \
		ftp://$SERVER_ADDR:2811$EXPORT/gridftp >$WORK/gridftp 2>&1
}

# The device in its three block sizes and what moves memory to memory, in turns.
memory() {
	local round block
	for round in $(seq $ROUNDS); do
		for block in 64K 1M; do
			bytes=$(numfmt --from=iec $block)
			timed "ib_write_bw" $block $((mib << 20)) run_device "$bytes"
			timed "rftp on $FABRIC, null to null" $block $((mib << 20)) run_bench "$FABRIC" $block
			timed "rftp on soft, null to null" $block $((mib << 20)) run_bench soft $block
			timed "iperf3 (TCP)" $block $((mib << 20)) run_iperf3 $block
		done
	done
}

files() {
	local round
	background $WORK/rcopy.server at_server rcopy
	if command -v globus-gridftp-server >/dev/null && command -v globus-url-copy >/dev/null; then
		chmod 777 $EXPORT
		background $WORK/gridftp.server at_server globus-gridftp-server -aa -anonymous-user root \
			-p 2811 -control-interface $SERVER_ADDR -data-interface $SERVER_ADDR -log-level ERROR
	fi
	sleep 2
	for round in $(seq $ROUNDS); do
		timed "rftp on $FABRIC, file to file" "its own" $((mib << 20)) run_rftp "$FABRIC"
		same_files large $EXPORT/large
		timed "rftp on soft, file to file" "its own" $((mib << 20)) run_rftp soft
		same_files large $EXPORT/large
		timed "rcopy, file to file" "its own" $((mib << 20)) run_rcopy || cat $WORK/rcopy
		same_files large $EXPORT/rcopy
		if [ -s $WORK/gridftp.server ] || pgrep -f globus-gridftp-server >/dev/null; then
			timed "GridFTP (TCP, 4 streams), file to file" "its own" $((mib << 20)) run_gridftp ||
				cat $WORK/gridftp $WORK/gridftp.server
		fi
	done
}

# median NAME BLOCK COLUMN
median() {
	awk -F '\t' -v name="$1" -v block="$2" -v column="$3" \
		'$1 == name && $2 == block { print $column }' $WORK/runs | sort -n |
		awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

make_table() {
	local name block
	cut -f1,2 $WORK/runs | awk '!seen[$0]++' | while IFS='	' read -r name block; do
		measured side "$RIG_DRIVER" "$name" "$block" "$(median "$name" "$block" 3)" \
			"$(median "$name" "$block" 4) %"
	done
}

# at_least SHARE NAME OF [BLOCK]: the median rate of NAME is at least SHARE of OF's
at_least() {
	local block=${4:-its own} ours theirs
	ours=$(median "$2" "$block" 3)
	theirs=$(median "$3" "$block" 3)
	grep -E "^($2|$3)	$block" $WORK/runs
	echo "$2: $ours MB/s; $3: $theirs MB/s"
	[ -n "$ours" ] && [ -n "$theirs" ] || fail "not measured"
	awk -v a="$ours" -v b="$theirs" -v s="$1" 'BEGIN { exit !(a >= s * b) }' || fail "less than $1"
}

: >$WORK/runs
daemon_start
run_case "memory to memory" memory
run_case "file to file" files
make_table
run_case "rftp on verbs, 1 MiB: at least 0.9 of ib_write_bw" \
	at_least 0.9 "rftp on $FABRIC, null to null" ib_write_bw 1M
run_case "rftp on verbs: at least as fast as rcopy for a file" \
	at_least 1 "rftp on $FABRIC, file to file" "rcopy, file to file"
finish
