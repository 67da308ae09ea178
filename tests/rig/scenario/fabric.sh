# SPDX-License-Identifier: Apache-2.0
#
# The contract of fabric.h, which tests/fabric states for every fabric, on a real driver.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
devices() {
	ibv_devinfo
	for d in rdmaA rdmaB; do
		ibv_devinfo -d $d | grep -q PORT_ACTIVE || fail "$d is not active"
	done
}
run_case "ibv_devinfo: both devices are there and active" devices

# Both halves in one process: on rxe over the link, on siw (a namespace an end) over one device.
at_server timeout -k 5 120 contract --fabric "$FABRIC" --addr $SERVER_ADDR >$WORK/tap 2>$WORK/err
tap_of "$RIG_DRIVER, one process:" <$WORK/tap
sed 's/^/# /' $WORK/err

# A half on each end of the link.
background $WORK/serve at_server timeout -k 5 120 contract --fabric "$FABRIC" \
	--serve $SERVER_ADDR:$PORT
wait_for 20 "the server half" grep -q serving $WORK/serve
at_client timeout -k 5 120 contract --fabric "$FABRIC" --connect $SERVER_ADDR:$PORT \
	>$WORK/tap 2>$WORK/err
tap_of "$RIG_DRIVER, two processes:" <$WORK/tap
sed 's/^/# /' $WORK/err
finish
