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
PUTS=8     # of a session, of which the first is not looked at
ROUNDS=3

head -c 131072 /dev/urandom >small

# puts MODE: the mean of a session's puts, in ms, as far as it came: who loses too many frames one behind the
# other breaks a connection, which is another result
puts() {
	local commands=()
	for ((i = 0; i < PUTS; i++)); do
		commands+=("put small small;")
	done
	LIMIT=120 client --json --early="$1" --timeout 20 -c "${commands[*]}" $URL/ 2>$WORK/err |
		while read -r said; do
			[[ $said != *'"event":"done"'*'"errors":0'* ]] || echo "$EPOCHREALTIME"
		done >$WORK/ends
	[ "$(wc -l <$WORK/ends)" = $PUTS ] || echo "$1: $(tail -n 1 $WORK/err)" >>$WORK/broken
	[ "$(wc -l <$WORK/ends)" -ge 2 ] || return 0
	same_files small $EXPORT/small
	awk 'NR == 1 { first = $1 } END { printf "%.2f\n", ($1 - first) * 1000 / (NR - 1) }' $WORK/ends
}

# compare WHAT: means of the rounds, their ratios to the first way, and sessions that broke
compare() {
	local round mode
	rm -f $WORK/times-* $WORK/broken
	touch $WORK/broken
	for ((round = 0; round < ROUNDS; round++)); do
		for mode in "${MODES[@]}"; do
			puts $mode >>"$WORK/times-$mode"
		done
	done
	cat $WORK/broken
	for mode in "${MODES[@]}"; do
		awk '{ sum += $1 } END { if (NR) printf "%.1f", sum / NR }' "$WORK/times-$mode" >"$WORK/mean-$mode"
		measured early "$RIG_DRIVER" "$1, $mode" "$(<"$WORK/mean-$mode")" \
			"$(awk -v a="$(<"$WORK/mean-$mode")" -v b="$(<$WORK/mean-never)" 'BEGIN { if (a && b) printf "%.3f", a / b }')" \
			"$(grep -c "^$mode:" $WORK/broken)"
		echo "$1, $mode: $(<"$WORK/mean-$mode") ms"
	done
}

lossy() {
	net_wan $DELAY $([ "$1" = 0 ] || echo "$1%")
	compare "10 ms, $1 % of frames lost"
	net_wan 0
	[ "$1" != 0 ] || [ ! -s $WORK/broken ] || fail "sessions broke without a loss"
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
	[ ! -s $WORK/broken ] || fail "sessions broke without a loss"
	[ "$(grep -l "bytes from" $WORK/ping-? | wc -l)" = 3 ] || fail "there were no pings: $(tail -n 2 $WORK/ping-1)"
}

started() {
	daemon_start --fabric "$FABRIC"
}
run_case "the daemon starts" started
for loss in 0 1 2 5; do # of more a connection of rxe dies of itself
	run_case "128 KiB, $loss % of frames lost: early and not" lossy $loss
done
if [ "$RIG_DRIVER" = rxe ]; then
	for frame in 256 512 1024; do
		run_case "128 KiB, frames of $frame bytes: early and not" small_frames $frame
	done
fi
finish
