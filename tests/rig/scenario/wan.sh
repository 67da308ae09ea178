# SPDX-License-Identifier: Apache-2.0
#
# A long link: 50 ms of round trip, without loss and with 0.1 %.  A file must arrive whole; the rates
# beside those of ib_write_bw are for the host, which judges the better of the drivers.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
DELAY=25ms # each way
file_mib=128
[ "$RIG_DRIVER" = rxe ] && file_mib=48
make_file large $file_mib 4321

# device_rate BLOCK QUEUE_PAIRS: MB/s of ib_write_bw with all outstanding that it allows, or nothing
device_rate() {
	local count=$((DEVICE_BYTES / $1 / $2))
	local options="-R -F -s $1 -n $count -q $2 -t 128 --report_gbits"
	at_server timeout --foreground 60 ib_write_bw $options >$WORK/device 2>&1 &
	sleep 1.5
	at_client timeout --foreground 60 ib_write_bw $options $SERVER_ADDR >$WORK/device.client 2>&1
	wait $!
	awk -v size="$1" '$1 == size { printf "%.1f", $4 * 125 }' $WORK/device.client
}

device() {
	local rate best=0 block
	for block in 65536 1048576; do
		rate=$(device_rate $block "$2") || rate=
		echo "ib_write_bw, $block bytes, $2 queue pairs: ${rate:-none} MB/s"
		[ -n "$rate" ] || { tail -n 5 $WORK/device.client; continue; }
		measured wan "$RIG_DRIVER" "ib_write_bw, $((block / 1024)) KiB, $2 queue pairs" "$1" "$rate"
		best=$rate
	done
	[ "$best" != 0 ] || fail "ib_write_bw does not work on this link"
}

# rate_of: MB/s of the JSON in $WORK/said
rate_of() {
	sed -n 's/.*"event":"done".*"bytes_per_second":\([0-9]*\).*/\1/p' $WORK/said | tail -n 1 |
		awk '{ printf "%.1f", $1 / 1e6 }'
}

ours() {
	local loss=$1 name=$2
	shift 2
	LIMIT=180 client --json "$@" -c "bench ${file_mib}M put" $URL | tee $WORK/said
	measured wan "$RIG_DRIVER" "rftp, $name" "$loss" "$(rate_of)"
}

arrives() {
	rm -f $EXPORT/large
	LIMIT=180 client -v "$@" large $URL/large
	same_files large $EXPORT/large
}

comes_back() {
	rm -f back
	LIMIT=180 client -v "$@" $URL/large back
	same_files large back
}

daemon_start --fabric "$FABRIC"
DEVICE_BYTES=$((file_mib << 20))
for loss in 0 0.1%; do
	if [ $loss = 0 ]; then
		net_wan $DELAY || bail "no netem"
	else
		net_wan $DELAY $loss || bail "no netem"
	fi
	run_case "50 ms, loss $loss: ib_write_bw, for comparison" device $loss 1
	run_case "50 ms, loss $loss: and with 4 queue pairs" device $loss 4
	run_case "50 ms, loss $loss: rftp, all chosen by itself" ours $loss "as it chooses"
	run_case "50 ms, loss $loss: $file_mib MiB put arrive whole" arrives
	run_case "50 ms, loss $loss: $file_mib MiB get arrive whole" comes_back
done
net_wan 0
finish
