# SPDX-License-Identifier: Apache-2.0
#
# Side by side, in one guest: the device's own test, and programs that copy files, memory to memory and
# from file to file (tmpfs).  Each is run three times, in turns; the table has the medians.  CPU is that
# of the whole guest: both ends, and the kernel.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
ROUNDS=3
SECONDS_EACH=3
# on siw 64 KiB have two speeds, whoever sends them: more rounds, and medians
SMALL_ROUNDS=3
[ "$RIG_DRIVER" = rxe ] || SMALL_ROUNDS=7

# seconds that all cores together were busy so far
cpu_seconds() {
	awk -v hz="$(getconf CLK_TCK)" '/^cpu / { print ($2 + $3 + $4 + $7 + $8) / hz }' /proc/stat
}

now() {
	cut -d' ' -f1 /proc/uptime
}

# timed NAME BLOCK COMMAND...: runs it, and notes rate and CPU under NAME and BLOCK.  The rate is that
# of the whole command, unless it leaves its own, without set-up, in $WORK/rate.
timed() {
	local name=$1 block=$2 before started
	shift 2
	rm -f $WORK/rate
	before=$(cpu_seconds)
	started=$(now)
	"$@" || fail "$name: $(tail -n 5 $WORK/client.out $WORK/client.err)"
	echo "$started $(now) $before $(cpu_seconds)" | awk -v bytes="$bytes" -v name="$name" \
		-v block="$block" -v own="$(cat $WORK/rate 2>/dev/null)" '{
		rate = own != "" ? own : bytes / ($2 - $1) / 1e6
		printf "%s\t%s\t%.1f\t%.1f\n", name, block, rate, ($4 - $3) / (bytes / 1e9)
	}' >>$WORK/runs
}

run_device() {
	device_rate "$(numfmt --from=iec "$1")" 1 "$bytes" >$WORK/rate
}

run_iperf3() {
	with_server "iperf3 -s -1" iperf3 -J -l "$1" -n "$bytes" -c $SERVER_ADDR || return
	python3 -c 'import json, sys
print("%.2f" % (json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 8e6), end="")' \
		<$WORK/client.out >$WORK/rate
}

run_bench() {
	FABRIC=$1 client --json --block "$2" -c "bench $bytes put" $URL >$WORK/client.out \
		2>$WORK/client.err || return
	json_rate <$WORK/client.out >$WORK/rate
}

run_rftp() {
	rm -f $EXPORT/large
	FABRIC=$1 client -q large $URL/large >$WORK/client.out 2>$WORK/client.err
}

run_rcopy() {
	rm -f $EXPORT/rcopy
	at_client timeout --foreground 90 rcopy "$1" $SERVER_ADDR:$EXPORT/rcopy \
		>$WORK/client.out 2>$WORK/client.err
}

run_gridftp() {
	rm -f $EXPORT/*
	at_client timeout --foreground 90 globus-url-copy -p 4 file://$HOME_DIR/large \
		ftp://$SERVER_ADDR:2811$EXPORT/gridftp >$WORK/client.out 2>$WORK/client.err
}

# How much is moved each time: what takes the device a few seconds.
calibrate() {
	local rate
	rate=$(device_rate 1048576 1 $FIRST_BYTES)
	amount_for $SECONDS_EACH "$rate" $((160 << 20)) >$WORK/bytes
	echo "about $rate MB/s: $(cat $WORK/bytes) bytes"
	make_file large 0 "$(cat $WORK/bytes)"
}

memory() {
	local round
	for round in $(seq $SMALL_ROUNDS); do
		timed "ib_write_bw" 64K run_device 64K
		timed "rftp on $FABRIC, null to null" 64K run_bench "$FABRIC" 64K
		if [ "$round" -gt $ROUNDS ] || ! benching; then
			continue
		fi
		timed "rftp on soft, null to null" 64K run_bench soft 64K
		timed "iperf3 (TCP)" 64K run_iperf3 64K
	done
	for round in $(seq $ROUNDS); do
		timed "ib_write_bw" 1M run_device 1M
		timed "rftp on $FABRIC, null to null" 1M run_bench "$FABRIC" 1M
		timed "rftp on soft, null to null" 1M run_bench soft 1M
		timed "iperf3 (TCP)" 1M run_iperf3 1M
	done
}

# On siw rcopy is so much slower than all others that a quarter keeps it busy for as long.
rcopied() {
	local bytes=$bytes file=large
	if [ "$RIG_DRIVER" = siw ]; then
		bytes=$((bytes / 4))
		file=part
		head -c $bytes large >part
	fi
	timed "rcopy, file to file" "its own" run_rcopy $file
	same_files $file $EXPORT/rcopy
	rm -f $EXPORT/rcopy part
}

files() {
	local round gridftp=
	background $WORK/rcopy.server at_server rcopy
	if benching && command -v globus-gridftp-server >/dev/null && command -v globus-url-copy >/dev/null; then
		gridftp=1
		background $WORK/gridftp.server at_server globus-gridftp-server -aa -allow-root \
			-anonymous-user root -p 2811 -control-interface $SERVER_ADDR \
			-data-interface $SERVER_ADDR -log-level ERROR -logfile $WORK/gridftp.log
	fi
	sleep 3
	chmod 777 $EXPORT
	if [ -n "$gridftp" ] && ! at_client bash -c "exec 3<>/dev/tcp/$SERVER_ADDR/2811"; then
		echo "# no row for GridFTP: it does not serve: $(tail -qn 3 $WORK/gridftp.*)" >&3
		gridftp=
	fi
	for round in $(seq $ROUNDS); do
		timed "rftp on $FABRIC, file to file" "its own" run_rftp "$FABRIC"
		same_files large $EXPORT/large
		timed "rftp on soft, file to file" "its own" run_rftp soft
		same_files large $EXPORT/large
		rcopied
		[ -z "$gridftp" ] || timed "GridFTP (TCP, 4 streams), file to file" "its own" run_gridftp
		rm -f $EXPORT/gridftp # there is no room for four of them
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
			"$(median "$name" "$block" 4)"
	done
}

best() {
	awk -F '\t' -v name="$1" -v block="$2" '$1 == name && $2 == block { print $3 }' $WORK/runs |
		sort -n | tail -n 1
}

middle() {
	median "$1" "$2" 3
}

# at_least SHARE NAME OF [BLOCK [WHICH]]: the best rate of NAME is at least SHARE of OF's best: what else
# runs on the host can only take away; or WHICH of them
at_least() {
	local block=${4:-its own} which=${5:-best} ours theirs
	ours=$($which "$2" "$block")
	theirs=$($which "$3" "$block")
	grep -E "^($2|$3)	$block" $WORK/runs
	echo "$2: $ours MB/s; $3: $theirs MB/s"
	[ -n "$ours" ] && [ -n "$theirs" ] || fail "not measured"
	awk -v a="$ours" -v b="$theirs" -v s="$1" 'BEGIN { exit !(a >= s * b) }' || fail "less than $1"
}

exec 3>&1 # for remarks of cases that hold
: >$WORK/runs
run_case "how much to move" calibrate
bytes=$(cat $WORK/bytes)
run_case "the daemon starts" daemon_start
run_case "memory to memory" memory
run_case "file to file" files
make_table
run_case "rftp on verbs, 1 MiB: at least 0.9 of ib_write_bw" \
	at_least 0.9 "rftp on $FABRIC, null to null" ib_write_bw 1M
run_case "rftp on verbs, 64 KiB: at least 0.9 of ib_write_bw" \
	at_least 0.9 "rftp on $FABRIC, null to null" ib_write_bw 64K \
	"$([ "$RIG_DRIVER" = rxe ] && echo best || echo middle)"
run_case "rftp on verbs: at least as fast as rcopy for a file" \
	at_least 1 "rftp on $FABRIC, file to file" "rcopy, file to file"
finish
