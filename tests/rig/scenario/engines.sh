# SPDX-License-Identifier: Apache-2.0
#
# The experiments of tests/bench/engines.py on a real driver, with few points and repetitions: what is
# compared is the engines, not the emulation.  The pictures are smaller, for a guest's processors.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
mkdir -p build/tests/bench
cp $BIN/engine_bench build/tests/bench/

experiment() {
	local status=0
	RFTP_BUILD=$HOME_DIR/build at_server python3 $RIG/engines.py --fabric "$FABRIC" --host $SERVER_ADDR \
		--quick --rounds 2 --sizes 256,4096,65536,1048576 --frame 320x240 --parts "$1" >$WORK/text ||
		status=$?
	cat $WORK/text
	cat $WORK/text >>/out/text.md
	return $status
}
for part in sync latency flow more retain devices; do
	run_case "$part" experiment $part
done
finish
