# SPDX-License-Identifier: Apache-2.0
#
# The passive server on a real driver: requests of the fabric itself (tests/bench/pull_requests.py, with few points and
# repetitions), and the daemon's CPU a request with the engine pull against that of the daemon that answers.  On rxe, and
# mostly on siw, the device's work is done in the kernel by the thread that posts, within the post: it is measured there
# (tests/bench/rftpd_posts), and shown apart.  What is compared takes turns.
#
# The bar is half of the CPU, and judged where posting is most of it: of blocks that are fetched, all counted, and of the
# requests of the fabric.  What is left of a request without posting, checksums and files among it, both daemons do.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
mkdir -p build/tests/bench
cp $BIN/requests build/tests/bench/
ROUNDS=3
FILES=300  # of 4 KiB, and as many questions
BLOCKS=512 # of 64 KiB
DAEMON=(env RFTP_TEST_POSTS=$WORK/posts rftpd_posts)

on_the_fabric() {
	local status=0
	RFTP_BUILD=$HOME_DIR/build at_server python3 $RIG/pull_requests.py --fabric "$FABRIC" --host $SERVER_ADDR \
		--quick --rounds 3 --disk $WORK --only "$1" >$WORK/text || status=$?
	cat $WORK/text
	[ $status = 0 ] || return $status
	cat $WORK/text >>/out/text.md
}

# look: the daemon's CPU time so far, ns, of all its threads (clock_getcpuclockid); of it, ticks in user mode; the requests
# that it posted, and the time within these, ns
look() {
	local pid fields
	pid=$(<$WORK/daemon.pid)
	cpu=$(python3 -ISc "import time; print(time.clock_gettime_ns(~$pid << 3 | 2))")
	read -r -a fields </proc/"$pid"/stat
	user=${fields[13]}
	read -r requests posting <<<"$(od -An -t u8 -w16 $WORK/posts)"
}

# cost WHAT ENGINE COUNT COMMAND...: the daemon's us a request, of it those within posts, posts, and us in user mode
cost() {
	local what=$1 engine=$2 count=$3 cpu user requests posting a
	shift 3
	look
	a=($cpu $user $posting $requests)
	"$@" >$WORK/client.out 2>$WORK/client.err || fail "$what, $engine: $(tail -n 3 $WORK/client.err)"
	sleep 0.3 # the session ends
	look
	awk -v what="$what" -v engine="$engine" -v n="$count" -v c=$((cpu - a[0])) -v u=$((user - a[1])) \
		-v p=$((posting - a[2])) -v r=$((requests - a[3])) -v hz="$(getconf CLK_TCK)" -v OFS='\t' 'BEGIN {
		print what, engine, c / 1e3 / n, p / 1e3 / n, r / n, u / hz * 1e6 / n
	}' >>$WORK/costs
}

batch() {
	client -q --engine "$1" --fsync never -b "$2" $URL/
}

daemon_cpu() {
	local round engine i way
	mkdir -p got
	echo pwd >nothing
	cp nothing gets
	cp nothing puts
	cp nothing stats
	for ((i = 0; i < FILES; i++)); do
		head -c 4096 /dev/urandom >$EXPORT/f$i
		echo "get f$i got/f$i" >>gets
		echo "put got/f$i p$i" >>puts
		echo "stat f$i" >>stats
	done
	daemon_start --fabric "$FABRIC"
	: >$WORK/costs
	for ((round = 0; round < ROUNDS; round++)); do
		for engine in credit pull; do
			cost "a session" $engine 1 batch $engine nothing
			for i in stat get put; do
				cost "$i, 4 KiB" $engine $FILES batch $engine ${i}s
			done
			for way in get put; do
				cost "block of 64 KiB, $way" $engine $BLOCKS client -q --engine $engine --block 64K \
					-c "bench $((BLOCKS * 65536)) $way" $URL/
			done
		done
	done
	cat $WORK/costs
}

# table: medians, without what a session costs where requests are counted; -> measured, and $WORK/ratios
table() {
	python3 - "$RIG_DRIVER" $WORK/costs $FILES >$WORK/table <<'PYTHON'
import statistics
import sys

driver, path, files = sys.argv[1], sys.argv[2], int(sys.argv[3])
found = {}
for line in open(path):
    what, engine, *figures = line.rstrip("\n").split("\t")
    found.setdefault((what, engine), []).append([float(f) for f in figures])
middle = {key: [statistics.median(column) for column in zip(*rows)] for key, rows in found.items()}
for what in dict.fromkeys(what for what, _ in middle):
    own = {}
    for engine in ("credit", "pull"):
        total, posting, posts, user = middle[what, engine]
        if what != "a session" and not what.startswith("block"):
            alone = middle["a session", engine]
            total, posting, posts, user = (v - a / files for v, a in zip((total, posting, posts, user), alone))
        own[engine] = total, max(0, total - posting)
        own[engine, "cells"] = [f"{total:.0f}", f"{posting:.0f}", f"{own[engine][1]:.0f}", f"{user:.0f}", f"{posts:.2f}"]
    ratios = [f"{a / b:.2f}" if b else "" for a, b in zip(own["pull"], own["credit"])]
    print("\t".join(["pull", driver, f"{what}, credit", *own["credit", "cells"], "", ""]))
    print("\t".join(["pull", driver, f"{what}, pull", *own["pull", "cells"], *ratios]))
PYTHON
	cat $WORK/table
	cat $WORK/table >>/out/measured
}

# half WHAT: the daemon's CPU with pull is at most half
half() {
	awk -F '\t' -v row="$1, pull" '$3 == row { found = 1; print "pull to credit: " $9; bad = $9 == "" || $9 > 0.5 }
		END { exit !found || bad }' $WORK/table
}

# Of a request to the fabric: one that the daemon answers by a READ, to one that it answers by a SEND.
half_on_the_fabric() {
	awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR > 1 { n++; print $1 " threads: read " $at["read daemon us"] ", reply " $at["reply daemon us"]
			bad += !($at["read daemon us"] <= 0.5 * $at["reply daemon us"]) }
		END { exit !n || bad }' build/bench/requests-threads.csv
}

for part in threads use copies sides; do
	run_case "requests of the fabric: $part" on_the_fabric $part
done
run_case "the daemon's CPU a request" daemon_cpu
run_case "the daemon's CPU a request, the table" table
if [ "$RIG_DRIVER" = rxe ]; then
	run_case "the daemon's CPU is at most half: requests of the fabric" half_on_the_fabric
	run_case "the daemon's CPU is at most half: blocks that are fetched" half "block of 64 KiB, get"
fi
finish
