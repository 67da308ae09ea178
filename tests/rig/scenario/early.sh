# SPDX-License-Identifier: Apache-2.0
#
# Early data where frames are lost, and where they are small and others cross beside them, as in the
# experiments of the paper on Dynamic RDMA (its Fig. 5, 6 and 7): 128 KiB again and again, which waits for
# each answer, does not, or sends blocks after two time-outs.  What is compared is the ways, in turns, not
# the emulation; every file must arrive whole.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
MODES=(never auto timeout)
DELAY=5ms  # each way
PUTS=12    # of a session, of which the first is not looked at
ROUNDS=3

head -c 131072 /dev/urandom >small

# puts MODE: the mean of a session's puts, in ms
puts() {
	local commands=()
	for ((i = 0; i < PUTS; i++)); do
		commands+=("put small small;")
	done
	LIMIT=240 client --json --early="$1" --connect-timeout 60 -c "${commands[*]}" $URL/ 2>$WORK/err |
		while read -r said; do
			[[ $said != *'"event":"done"'* ]] || echo "$EPOCHREALTIME"
		done >$WORK/ends
	[ "$(wc -l <$WORK/ends)" = $PUTS ] || fail "$(wc -l <$WORK/ends) of $PUTS puts, $1: $(tail -n 3 $WORK/err)"
	same_files small $EXPORT/small
	awk 'NR == 1 { first = $1 } END { printf "%.2f\n", ($1 - first) * 1000 / (NR - 1) }' $WORK/ends
}

# compare WHAT: means of the rounds, and their ratios to the first way
compare() {
	local round mode
	for ((round = 0; round < ROUNDS; round++)); do
		for mode in "${MODES[@]}"; do
			puts $mode >>"$WORK/times-$mode"
		done
	done
	for mode in "${MODES[@]}"; do
		awk '{ sum += $1 } END { printf "%.1f", sum / NR }' "$WORK/times-$mode" >"$WORK/mean-$mode"
		measured early "$RIG_DRIVER" "$1" "$mode" "$(<"$WORK/mean-$mode")" \
			"$(awk -v a="$(<"$WORK/mean-$mode")" -v b="$(<$WORK/mean-never)" 'BEGIN { printf "%.3f", a / b }')"
		echo "$1, $mode: $(<"$WORK/mean-$mode") ms"
	done
	rm "$WORK"/times-*
}

lossy() {
	net_wan $DELAY $([ "$1" = 0 ] || echo "$1%")
	compare "10 ms, $1 % of frames lost"
	net_wan 0
}

# The device's MTU is the largest below the link's, of 256, 512, 1024, ...
small_frames() {
	local i
	ip link set va mtu $(($1 + 150))
	ip link set vb mtu $(($1 + 150))
	net_paths
	for i in 1 2 3; do
		background $WORK/ping-$i busybox ping -s 64 -i 0.02 $SERVER_ADDR
	done
	net_wan $DELAY
	compare "10 ms, frames of $1 bytes, three pings beside"
	net_wan 0
	[ "$(grep -l "bytes from" $WORK/ping-? | wc -l)" = 3 ] || fail "there were no pings: $(tail -n 2 $WORK/ping-1)"
}

started() {
	daemon_start --fabric "$FABRIC"
}
run_case "the daemon starts" started
for loss in 0 1 5 10; do
	run_case "128 KiB, $loss % of frames lost: early and not" lossy $loss
done
if [ "$RIG_DRIVER" = rxe ]; then
	for frame in 256 512 1024; do
		run_case "128 KiB, frames of $frame bytes: early and not" small_frames $frame
	done
fi
finish
