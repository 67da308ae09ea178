# SPDX-License-Identifier: Apache-2.0
#
# A long link: 50 ms of round trip, without loss and with 0.1 %, between two guests.  Files must arrive
# whole.  The rates, beside those of ib_write_bw for as many bytes, go to the host, which judges the
# better driver.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
DELAY=25ms # each way
LEAST=$((96 << 20)) # even if what is measured first is a slow moment
SECONDS_EACH=5 # or the first round trips, in which rates grow, count for too much

long_link() {
	net_wan $DELAY $([ "$1" = 0 ] || echo "$1")
}

# rftp opens up to 16 on such a link
ways=("65536 16")
if benching; then
	ways+=("65536 1" "1048576 1")
fi

# As many bytes as are moved the other ways, but for the first time, which is to tell how many: $WORK/bytes.
calibrate() {
	local rate
	rate=$(device_rate 65536 4 $LEAST)
	device_row 65536 4 0 "$rate"
	amount_for $SECONDS_EACH "$rate" $((192 << 20)) $LEAST >$WORK/bytes
	echo "about $rate MB/s: $(cat $WORK/bytes) bytes"
	make_file large 0 "$(cat $WORK/bytes)"
}

# device_row BLOCK QUEUE_PAIRS LOSS RATE
device_row() {
	measured wan "$RIG_DRIVER" "ib_write_bw, $(($1 / 1024)) KiB, queue pairs: $2" "$3" "$4"
}

device() {
	local rate what found=
	[ "$1" = 0 ] || ways+=("65536 4")
	for what in "${ways[@]}"; do
		# shellcheck disable=SC2086
		set -- "$1" $what
		rate=$(device_rate "$2" "$3" "$(cat $WORK/bytes)") || {
			tail -n 5 $WORK/client.out $WORK/client.err
			continue
		}
		device_row "$2" "$3" "$1" "$rate"
		found=1
	done
	[ -n "$found" ] || fail "ib_write_bw does not work on this link"
}

ours() {
	LIMIT=180 client --json -v -c "bench $(cat $WORK/bytes) $2" $URL >$WORK/said
	cat $WORK/said
	measured wan "$RIG_DRIVER" "rftp, $2, memory to memory" "$1" "$(json_rate <$WORK/said)"
}

arrives() {
	at_server rm -f $EXPORT/large
	LIMIT=180 client -v large $URL/large
	same_at_server large $EXPORT/large
}

comes_back() {
	LIMIT=180 client -v $URL/large back
	same_files large back
	rm back
}

started() {
	daemon_start --fabric "$FABRIC"
}
run_case "the daemon starts" started
for loss in 0 0.1%; do
	run_case "50 ms, loss $loss: the link" long_link $loss
	[ $loss != 0 ] || run_case "how much to move, by ib_write_bw on 4 queue pairs" calibrate
	run_case "50 ms, loss $loss: ib_write_bw, for comparison" device $loss
	for way in put get; do
		run_case "50 ms, loss $loss: rftp bench, $way, all chosen by itself" ours $loss $way
	done
	run_case "50 ms, loss $loss: a file put arrives whole" arrives
	run_case "50 ms, loss $loss: a file got arrives whole" comes_back
done
finish
