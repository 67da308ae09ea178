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
at_server timeout --foreground -k 5 120 contract --fabric "$FABRIC" --addr $SERVER_ADDR >$WORK/tap 2>$WORK/err
echo "# contract ended with $?"
sed 's/^/# /' $WORK/err
tap_of "$RIG_DRIVER, one process:" <$WORK/tap

contract_halves "$RIG_DRIVER, two processes:" "$FABRIC" "$FABRIC"
finish
