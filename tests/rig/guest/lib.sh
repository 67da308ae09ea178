# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scenarios, in a guest: cases and TAP, the daemon, the client, comparing files, rates.
#
#     run_case NAME COMMAND [ARG...]    one TAP line; COMMAND runs in a subshell with set -e, and what
#                                       it prints is shown when it fails
#     skip WHY, fail WHY                leave the case
#     finish                            the plan, and the end of the scenario
#
# Environment: RIG_DRIVER (rxe, siw), RIG_SHORT (1: the short form), RIG_BENCH (1: only what measures),
# RIG_FABRIC (what is tested: verbs), RIG_END (both: the ends are in this guest; client: the server's is
# in another one, and $EXPORT is there).

RIG=/out/rig
BIN=/run/bin
WORK=/tmp/work
EXPORT=/tmp/export
HOME_DIR=/tmp/home
PORT=7387
export PATH=$BIN:$PATH
mkdir -p $WORK $EXPORT $HOME_DIR
. $RIG/guest/net.sh

case_number=0
case_failed=0

short() {
	[ "${RIG_SHORT:-0}" = 1 ]
}

# Only what measures is run: there is time for all rows.
benching() {
	[ "${RIG_BENCH:-0}" = 1 ]
}

# ---- cases ----

skip() {
	echo "$*" >$WORK/skip
	exit 77
}

fail() {
	echo "failed: $*"
	exit 1
}

run_case() {
	local name=$1 status started=$SECONDS
	shift
	case_number=$((case_number + 1))
	rm -f $WORK/skip
	echo "rig: $name" >/dev/kmsg
	(set -e; "$@") >$WORK/log 2>&1
	status=$?
	kill_background
	if [ $status = 77 ] && [ -s $WORK/skip ]; then
		echo "ok $case_number - $name # SKIP $(cat $WORK/skip)"
	elif [ $status = 0 ]; then
		echo "ok $case_number - $name"
	else
		tail -n 40 $WORK/log | sed 's/^/# /'
		echo "# status $status, after $((SECONDS - started)) s"
		if [ -s $WORK/daemon.log ]; then
			echo "# the daemon's last words:"
			tail -n 15 $WORK/daemon.log | sed 's/^/#   /'
		fi
		dmesg | tail -n 4 | sed 's/^/# kernel: /'
		echo "not ok $case_number - $name"
		case_failed=1
	fi
}

# another program's TAP becomes our cases: tap_of PREFIX <ITS_OUTPUT
tap_of() {
	local line plan=0
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			case_number=$((case_number + 1))
			[ "${line%% *}" = ok ] || case_failed=1
			echo "${line%% [0-9]*} $case_number - $1 ${line#*[0-9] - }" ;;
		1..*) plan=1 ;;
		*) echo "# ${line#\# }" ;;
		esac
	done
	if [ $plan = 0 ]; then
		case_number=$((case_number + 1))
		case_failed=1
		echo "not ok $case_number - $1 ended without a plan"
	fi
}

# contract_halves TITLE CLIENT_FABRIC SERVER_FABRIC: the contract, a half on each end of the link
contract_halves() {
	local i
	background $WORK/serve at_server timeout --foreground -k 5 120 contract --fabric "$3" \
		--serve $SERVER_ADDR:$((PORT + 1))
	for ((i = 0; i < 100; i++)); do
		grep -q serving $WORK/serve && break
		nap 0.1
	done
	at_client timeout --foreground -k 5 120 contract --fabric "$2" \
		--connect $SERVER_ADDR:$((PORT + 1)) >$WORK/tap 2>$WORK/err
	echo "# the client half ended with $?"
	sed 's/^/# /' $WORK/err
	sed 's/^/# server half: /' $WORK/serve
	tap_of "$1" <$WORK/tap
	kill_background
}

finish() {
	daemon_stop
	kill_background
	echo "1..$case_number"
	exit $case_failed
}

bail() {
	echo "Bail out! $*"
	exit 1
}

# ---- processes ----

# background FILE COMMAND...: its output goes to FILE.  It, and what it starts, ends with the case.
background() {
	local out=$1
	shift
	set -m # a process group of its own
	"$@" >"$out" 2>&1 </dev/null &
	set +m
	echo $! >>$WORK/background
	disown
}

kill_background() {
	local pid
	[ -f $WORK/background ] || return 0
	while read -r pid; do
		kill -KILL -- "-$pid"
	done <$WORK/background 2>/dev/null
	rm -f $WORK/background
}

# nap SECONDS: without a process for it, as whoever waits for a busy host had better do; from a pipe that
# nobody writes to
exec 8<> <(:)
nap() {
	read -rt "$1" -u 8 || true
}

# wait_for SECONDS WHAT COMMAND...
wait_for() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || fail "not in time: $what"
		nap 0.2
	done
}

alive() {
	kill -0 "$1" 2>/dev/null
}

# ---- the daemon ----

DAEMON=(rftpd)

# daemon_start OPTION...: serves $EXPORT on the server's address
daemon_start() {
	daemon_stop
	: >$WORK/ready
	"${SERVER[@]}" "${DAEMON[@]}" --insecure --listen $SERVER_ADDR:$PORT --export $EXPORT:rw \
		"$@" >$WORK/ready 2>$WORK/daemon.log </dev/null &
	echo $! >$WORK/daemon.pid
	disown
	wait_for 30 "the daemon's ready line" daemon_spoke
	grep -q ^ready $WORK/ready || {
		cat $WORK/daemon.log
		fail "the daemon did not start"
	}
}

daemon_spoke() {
	[ -s $WORK/ready ] || ! daemon_alive
}

daemon_alive() {
	alive "$(cat $WORK/daemon.pid)"
}

# It must end by itself, soon, on SIGTERM.
daemon_stop() {
	local pid i
	[ -f $WORK/daemon.pid ] || return 0
	pid=$(cat $WORK/daemon.pid)
	rm $WORK/daemon.pid
	kill "$pid" 2>/dev/null || return 0
	for ((i = 0; i < 100; i++)); do
		alive "$pid" || return 0
		nap 0.1
	done
	kill -KILL "$pid"
	echo "# the daemon did not end within 10 s of SIGTERM"
}

daemon_must_live() {
	daemon_alive || fail "the daemon is gone"
}

# ---- the client ----

URL=rftp://$SERVER_ADDR:$PORT
FABRIC=${RIG_FABRIC:-verbs}
LIMIT=120

client() {
	at_client timeout --foreground -k 5 "$LIMIT" rftp --accept-new --fabric="$FABRIC" "$@"
}

# client_fails SECONDS ARGUMENT...: it ends with an error by itself within that time
client_fails() {
	local started=$SECONDS limit=$1 status=0
	shift
	LIMIT=$limit client "$@" || status=$?
	echo "the client's status: $status, after $((SECONDS - started)) s"
	[ $status -ne 0 ] || fail "it should have failed"
	[ $status -ne 124 ] && [ $status -ne 137 ] || fail "it did not end within $limit s"
	[ $status -lt 128 ] || fail "it died of a signal"
}

# ---- files ----

# make_file FILE MIB [EXTRA_BYTES]: random bytes.  An emulated processor takes long for them, so that they
# are the same again after a prime number of bytes: nothing that is a multiple of 512 bytes away is.
make_file() {
	local bytes=$(($2 * 1048576 + ${3:-0})) prime=1048573 at same=()
	head -c $((bytes < prime ? bytes : prime)) /dev/urandom >$WORK/random
	for ((at = 0; at <= bytes; at += prime)); do
		same+=($WORK/random)
	done
	cat "${same[@]}" | head -c $bytes >"$1"
}

# make_tree DIR COUNT: files of 0 to 8 KiB in directories of a hundred
make_tree() {
	python3 - "$1" "$2" <<'PYTHON'
import os
import random
import sys

top, count = sys.argv[1], int(sys.argv[2])
numbers = random.Random(7387)
for i in range(count):
    if i % 100 == 0:
        where = os.path.join(top, f"d{i // 100}")
        os.makedirs(where)
    with open(os.path.join(where, f"f{i}"), "wb") as f:
        f.write(numbers.randbytes(numbers.randrange(8193)))
PYTHON
}

# Byte by byte: an emulated processor takes much longer for a digest.
same_files() {
	[ -f "$2" ] || fail "$2 is missing"
	cmp "$1" "$2" || fail "$1 and $2 differ"
}

# same_at_server FILE ITS_FILE: what the server has, also where that is another guest.  Nothing of it
# crosses the link again.
same_at_server() {
	local ours theirs
	ours=$(md5sum <"$1")
	theirs=$(at_server md5sum "$2") || fail "$2 is missing at the server"
	[ "${ours%% *}" = "${theirs%% *}" ] || fail "$1 and the server's $2 differ"
}

same_trees() {
	[ -n "$(find "$1" -type f -print -quit)" ] || fail "$1 is empty"
	diff -r "$1" "$2" >$WORK/diff || fail "$1 and $2 differ: $(head -n 3 $WORK/diff)"
}

no_leftovers() {
	local found
	found=$(find "$@" -name '.rftp-*')
	[ -z "$found" ] || fail "left behind: $found"
}

# The same after a transfer that was cut off, which leaves what the next one goes on with
# (rftp-journal(5)).
no_leftovers_but_journals() {
	local found
	found=$(find "$@" -name '.rftp-*' ! -name '*.partial' ! -name '*.journal' ! -name '*.tree')
	[ -z "$found" ] || fail "left behind: $found"
}

# ---- measuring ----

# measured TABLE DRIVER ROW VALUE...: a line for the host, which makes tables of them
measured() {
	local IFS='	'
	echo "$*" >>/out/measured
}

# with_server "SERVER COMMAND" CLIENT COMMAND...: a server that ends after one client.  Nothing says
# when it is ready, so the client tries again.
with_server() {
	local server=$1 i pid status=1
	shift
	set -m
	# shellcheck disable=SC2086
	at_server timeout --foreground 90 $server >$WORK/server.out 2>&1 </dev/null &
	pid=$!
	set +m
	for ((i = 0; i < 20; i++)); do
		nap 0.3
		at_client timeout --foreground 90 "$@" >$WORK/client.out 2>$WORK/client.err && status=0 && break
	done
	[ $status = 0 ] || kill -KILL -- -$pid
	wait $pid
	return $status
} 2>/dev/null

# device_rate BLOCK QUEUE_PAIRS BYTES: MB/s of ib_write_bw (which says MiB/s; a run of it without a rate is done
# again, twice at most)
device_rate() {
	local options="-R -F -s $1 -q $2 -t 128 -n $(($3 / $1 / $2 + 1))" i
	for i in 1 2 3; do
		# shellcheck disable=SC2086
		with_server "ib_write_bw $options" ib_write_bw $options $SERVER_ADDR || return 1
		awk -v size="$1" '$1 == size && $4 > 0 { printf "%.2f", $4 * 1.048576; ok = 1 } END { exit !ok }' \
			$WORK/client.out && return
	done
	return 1
}

# What calibrates: short, but no start-up time only.
FIRST_BYTES=$((24 << 20))

# amount_for SECONDS RATE MOST [LEAST]: bytes, in whole MiB, that take this long at so many MB/s.  The guest's
# memory holds two files of 192 MiB.
amount_for() {
	awk -v s="$1" -v rate="$2" -v most="$3" -v least="${4:-16777216}" 'BEGIN {
		mib = int(s * rate / 1.048576 + 0.5)
		most /= 1048576
		least /= 1048576
		mib = mib < least ? least : mib > most ? most : mib
		printf "%d", mib * 1048576
	}'
}

# json_rate: MB/s of the client's --json on stdin
json_rate() {
	sed -n 's/.*"event":"done".*"bytes_per_second":\([0-9]*\).*/\1/p' | tail -n 1 |
		awk '{ printf "%.2f", $1 / 1e6 }'
}
