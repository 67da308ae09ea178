# SPDX-License-Identifier: Apache-2.0
#
# Side by side, in one guest: the device's own test, and programs that copy files, memory to memory and
# from file to file (tmpfs).  They take turns, three rounds, and seven where one is judged by the other: by
# the median of the rounds' ratios, as a host that does other things as well does them for both.  The table
# has the medians of the rates.  CPU is that of the whole guest: both ends, and the kernel.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
ROUNDS=3
JUDGED_ROUNDS=7
SECONDS_EACH=2

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
	local round block
	for round in $(seq $JUDGED_ROUNDS); do
		for block in 64K 1M; do
			timed "ib_write_bw" $block run_device $block
			timed "rftp on $FABRIC, null to null" $block run_bench "$FABRIC" $block
			if [ "$round" -gt $ROUNDS ] || { [ $block = 64K ] && ! benching; }; then
				continue
			fi
			timed "rftp on soft, null to null" $block run_bench soft $block
			timed "iperf3 (TCP)" $block run_iperf3 $block
		done
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
	for round in $(seq $JUDGED_ROUNDS); do
		timed "rftp on $FABRIC, file to file" "its own" run_rftp "$FABRIC"
		same_files large $EXPORT/large
		rcopied
		[ "$round" -le $ROUNDS ] || continue
		timed "rftp on soft, file to file" "its own" run_rftp soft
		same_files large $EXPORT/large
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

# at_least SHARE NAME OF [BLOCK]: the rate of NAME is at least SHARE of OF's: the median of the rounds' ratios
at_least() {
	local block=${4:-its own} ratio
	grep -E "^($2|$3)	$block" $WORK/runs
	ratio=$(awk -F '\t' -v ours="$2" -v theirs="$3" -v block="$block" '
		$2 == block && $1 == ours { a[++n] = $3 }
		$2 == block && $1 == theirs { b[++m] = $3 }
		END { if (n == m) for (i = 1; i <= n; i++) print a[i] / b[i] }' $WORK/runs |
		sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "%.2f", v[int((NR + 1) / 2)] }')
	[ -n "$ratio" ] || fail "not measured"
	echo "# $RIG_DRIVER, $block: $2 to $3: $ratio" >&3
	awk -v ratio="$ratio" -v share="$1" 'BEGIN { exit !(ratio >= share) }' || fail "less than $1: $ratio"
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
	at_least 0.9 "rftp on $FABRIC, null to null" ib_write_bw 64K
run_case "rftp on verbs: at least as fast as rcopy for a file" \
	at_least 1 "rftp on $FABRIC, file to file" "rcopy, file to file"
finish
