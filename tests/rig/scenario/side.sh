# SPDX-License-Identifier: Apache-2.0
#
# Side by side, in one guest: the device's own test, and programs that copy files, memory to memory and
# from file to file (tmpfs).  They take turns, three rounds when nothing else is run.  Where one is judged by
# the other it is by the median of the rounds' ratios, as a host that does other things as well does them for
# both; and as single rounds say little there, until those on one side of the limit are four more than those
# on the other, or there is no more time.  The table has the medians of the rates.  CPU is that of the whole
# guest: both ends, and the kernel.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
ROUNDS=$(benching && echo 3 || echo 1)
LEAD=4
JUDGED_ROUNDS=11
PATIENCE=100
SECONDS_EACH=3 # of files; of memory, where no set-up counts, two thirds

HZ=$(getconf CLK_TCK)

# The time and the ticks that all cores together were busy, so far.  No process is started for it: the
# time of a short run is much of what a round takes.
look() {
	local cpu user nice system idle wait irq soft rest
	read -r cpu user nice system idle wait irq soft rest </proc/stat
	read -r now rest </proc/uptime
	busy=$((user + nice + system + irq + soft))
}

# timed NAME BLOCK COMMAND...: runs it, and notes rate and CPU under NAME and BLOCK.  The rate is that
# of the whole command, unless it leaves its own, without set-up, in $WORK/rate.
timed() {
	local name=$1 block=$2 now busy before started own=
	shift 2
	rm -f $WORK/rate
	look
	before=$busy started=$now
	"$@" || fail "$name: $(tail -n 5 $WORK/client.out $WORK/client.err)"
	look
	[ ! -f $WORK/rate ] || own=$(<$WORK/rate)
	awk -v bytes="$bytes" -v name="$name" -v block="$block" -v own="$own" -v started="$started" -v now="$now" \
		-v ticks=$((busy - before)) -v hz="$HZ" 'BEGIN {
		rate = own != "" ? own : bytes / (now - started) / 1e6
		printf "%s\t%s\t%.1f\t%.1f\n", name, block, rate, ticks / hz / (bytes / 1e9)
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

# The first one opens the channels and makes the memory: ib_write_bw does not count that either.
run_bench() {
	FABRIC=$1 client --json --block "$2" -c "bench 16M put; bench $bytes put" $URL >$WORK/client.out \
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

# How much is moved each time.  Of files there are three at once, in half of the guest's memory: with 160 MiB
# rcopy stood still.
calibrate() {
	local rate
	rate=$(device_rate 1048576 1 $FIRST_BYTES)
	amount_for $((SECONDS_EACH * 2 / 3)) "$rate" $((512 << 20)) >$WORK/bytes
	amount_for $SECONDS_EACH "$rate" $((128 << 20)) >$WORK/file_bytes
	echo "about $rate MB/s: $(cat $WORK/bytes) bytes, $(cat $WORK/file_bytes) of files"
	make_file large 0 "$(cat $WORK/file_bytes)"
}

memory() {
	local round block bytes started=$SECONDS
	bytes=$(cat $WORK/bytes)
	for round in $(seq $JUDGED_ROUNDS); do
		for block in 64K 1M; do
			[ "$round" -le $ROUNDS ] || ! decided device_$block || continue
			timed "ib_write_bw" $block run_device $block
			timed "rftp on $FABRIC, null to null" $block run_bench "$FABRIC" $block
			if [ "$round" -gt $ROUNDS ] || { [ $block = 64K ] && ! benching; }; then
				continue
			fi
			timed "rftp on soft, null to null" $block run_bench soft $block
			timed "iperf3 (TCP)" $block run_iperf3 $block
		done
		! settled $round $started device_64K device_1M || break
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
	local round gridftp= bytes started=$SECONDS
	bytes=$(cat $WORK/file_bytes)
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
		! settled $round $started whole_files || break
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

# What is judged: block, what must be at least as fast as a share of what.
device_64K=(64K "rftp on $FABRIC, null to null" 0.9 ib_write_bw)
device_1M=(1M "rftp on $FABRIC, null to null" 0.9 ib_write_bw)
whole_files=("its own" "rftp on $FABRIC, file to file" 1 "rcopy, file to file")

# ratios BLOCK NAME SHARE OF: those of the rounds
ratios() {
	awk -F '\t' -v block="$1" -v ours="$2" -v theirs="$4" '
		$2 == block && $1 == ours { a[++n] = $3 }
		$2 == block && $1 == theirs { b[++m] = $3 }
		END { if (n == m) for (i = 1; i <= n; i++) print a[i] / b[i] }' $WORK/runs
}

# decided WHAT: of its rounds' ratios, those on one side of the limit are LEAD more than those on the other
decided() {
	local -n limit=$1
	ratios "${limit[@]}" | awk -v share="${limit[2]}" -v lead=$LEAD '
		{ ahead += $1 >= share ? 1 : -1 }
		END { exit !(ahead >= lead || -ahead >= lead) }'
}

# settled ROUND STARTED WHAT...: more rounds are of no use, or there is no more time
settled() {
	local what
	[ "$1" -ge $ROUNDS ] && [ "$1" -ge $LEAD ] || return 1
	[ $((SECONDS - $2)) -lt $PATIENCE ] || return 0
	for what in "${@:3}"; do
		decided $what || return 1
	done
}

# fast_enough WHAT
fast_enough() {
	local -n judged=$1
	local said
	grep -E "^(${judged[1]}|${judged[3]})	${judged[0]}" $WORK/runs
	said=$(ratios "${judged[@]}" | sort -n | awk -v least=$LEAD '{ v[NR] = $1 } END {
		if (NR >= least) printf "%.3f, the median of %d", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, NR
	}')
	[ -n "$said" ] || fail "not measured, or in less than $LEAD rounds"
	echo "# $RIG_DRIVER, ${judged[0]}: ${judged[1]} to ${judged[3]}: $said" >&3
	awk -v ratio="${said%%,*}" -v share="${judged[2]}" 'BEGIN { exit !(ratio >= share) }' ||
		fail "less than ${judged[2]}: $said"
}

exec 3>&1 # for remarks of cases that hold
: >$WORK/runs
run_case "how much to move" calibrate
run_case "the daemon starts" daemon_start
run_case "memory to memory" memory
run_case "file to file" files
make_table
run_case "rftp on verbs, 1 MiB: at least 0.9 of ib_write_bw" fast_enough device_1M
run_case "rftp on verbs, 64 KiB: at least 0.9 of ib_write_bw" fast_enough device_64K
run_case "rftp on verbs: at least as fast as rcopy for a file" fast_enough whole_files
finish
