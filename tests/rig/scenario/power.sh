# SPDX-License-Identifier: Apache-2.0
#
# A host whose power is cut while files arrive: what was reported as done is there afterwards, whole, on an
# ext4 of a virtio disk.  RIG_DRIVER says how files are flushed: file, end, or never, which shows that the
# rig sees what is lost.  Two boots of one guest: in the first (RIG_PHASE=write) `run` kills qemu at a random
# moment; the second one (check) looks.
#
# The sources are in /out/src, made by `run`; what the client reported is in /out/reported and /out/rounds.
# No device takes part: the client and the daemon are on loopback.
. guest/lib.sh

DISK=/tmp/disk
EXPORT=$DISK/export
SERVER_ADDR=127.0.0.1
SERVER=()
URL=rftp://$SERVER_ADDR:$PORT
mkdir -p $DISK

# What nobody flushes stays in memory: until the disk is full, or for ever.
hold_back() {
	sysctl -qw vm.dirty_expire_centisecs=360000 vm.dirty_writeback_centisecs=0
	sysctl -qw vm.dirty_background_ratio=80 vm.dirty_ratio=90
}

on_disk() {
	mount -t ext4 -o commit=300 /dev/vda $DISK || bail "the disk cannot be mounted"
	mkdir -p $EXPORT
	daemon_start --fabric soft
}

# One after the other, until the power is cut: a directory each time, of which all is reported at the end, and
# each file as it comes.
write_files() {
	local round
	for ((round = 0; ; round++)); do
		rftp --accept-new --fabric soft --json --fsync "$RIG_DRIVER" -r /out/src/small/ \
			$URL/$round >>/out/reported 2>>/out/client.err || return
		echo $round >>/out/rounds
	done
}

# A large file beside them, which will be cut off.
write_large() {
	while rftp --accept-new --fabric soft --fsync "$RIG_DRIVER" --resume 1M /out/src/large $URL/large \
		>>/out/large.out 2>>/out/client.err; do
		rm -f $EXPORT/large
	done
}

case $RIG_PHASE in
write)
	hold_back
	mkfs.ext4 -q /dev/vda || bail "no ext4 on the disk"
	on_disk
	sync # what was made before
	write_large &
	write_files
	bail "no file arrives: $(tail -n 3 /out/client.err)" ;;
esac

on_disk

# Names of files, beneath the export, that were said to be there.
reported() {
	case $RIG_DRIVER in
	file) # each one
		grep '"event":"file"' /out/reported | grep '"status":"ok"' |
			sed -n 's,.*"remote":"/*\([0-9]*/[^"]*\)".*,\1,p' ;;
	*) # of a round that was over
		while read -r round; do
			for file in /out/src/small/*; do
				echo "$round/${file##*/}"
			done
		done </out/rounds ;;
	esac
}

# How many of them are not what they should be.
count_lost() {
	local file
	reported >$WORK/reported
	total=0 lost=0
	while read -r file; do
		total=$((total + 1))
		if ! cmp -s "/out/src/small/${file#*/}" "$EXPORT/$file"; then
			lost=$((lost + 1))
			echo "$file: $(ls -l "$EXPORT/$file" 2>&1)"
		fi
	done <$WORK/reported
	echo "$total files were reported, $lost of them are lost" | tee /out/lost
}

nothing_is_lost() {
	count_lost
	[ $total -gt 0 ] || fail "nothing was reported before the power was cut"
	[ $lost = 0 ] || fail "files that were reported are lost"
}

something_is_lost() {
	count_lost
	[ $lost -gt 0 ] || fail "the rig does not see what is lost"
}

# Names are of whole files, whatever was reported.
nothing_is_torn() {
	local file
	for file in $EXPORT/*/*; do
		[ -f "$file" ] || continue
		cmp "/out/src/small/${file##*/}" "$file" || fail "$file is torn"
	done
	[ ! -e $EXPORT/large ] || cmp /out/src/large $EXPORT/large
}

the_large_one_goes_on() {
	rftp --accept-new --fabric soft --json --resume 1M /out/src/large $URL/large >$WORK/out
	grep -o '"sent_bytes":[0-9]*' $WORK/out >>/out/lost
	cmp /out/src/large $EXPORT/large
	[ -z "$(find $EXPORT -maxdepth 1 -name '.rftp-*')" ] || fail "left behind: $(ls -A $EXPORT)"
}

case $RIG_DRIVER in
never) run_case "files that nobody flushed are lost" something_is_lost ;;
*)
	run_case "no file is lost that was reported" nothing_is_lost
	[ "$RIG_DRIVER" = end ] || run_case "no file is torn" nothing_is_torn ;;
esac
run_case "a file that was cut off is gone on with" the_large_one_goes_on
sed 's/^/# /' /out/lost
finish
