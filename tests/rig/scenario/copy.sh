# SPDX-License-Identifier: Apache-2.0
#
# The client and the daemon on a real driver: files, trees, pipes, O_DIRECT, bench.
. guest/lib.sh

net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
file_mib=16
tree_files=2000
if short; then
	file_mib=12
	tree_files=500
fi
cd $HOME_DIR || exit
make_file large $file_mib 12345

started() {
	daemon_start --fabric "$FABRIC"
	grep -q "ready .* $FABRIC" $WORK/ready || fail "it serves $(cat $WORK/ready)"
}
run_case "the daemon serves verbs" started

# copy_both_ways OPTION...: `large` there and back
copy_both_ways() {
	rm -f $EXPORT/large back
	client -v "$@" large $URL/large
	same_files large $EXPORT/large
	client -v "$@" $URL/large back
	same_files large back
	no_leftovers $EXPORT .
	daemon_must_live
}
run_case "put and get" copy_both_ways
for channels in 1 4 16; do
	run_case "put and get, $channels channels" copy_both_ways --channels $channels
done
run_case "put and get, blocks of 64K" copy_both_ways --block 64K
for engine in status window pull; do
	run_case "put and get, engine $engine" copy_both_ways --engine $engine
done
run_case "a file larger than the blocks of both sides" copy_both_ways --block 256K --depth 8

small_sizes() {
	local size
	mkdir sized sized.back $EXPORT/sized
	for size in 0 1 4095 4097 65536 1048577; do
		head -c $size /dev/urandom >sized/$size
	done
	client -q sized/* $URL/sized/
	same_trees sized $EXPORT/sized
	# shellcheck disable=SC2046
	client -q $(printf "$URL/%s " sized/*) sized.back
	same_trees sized sized.back
}
run_case "files of 0, 1, 4095, 4097, 65536 and 1048577 bytes" small_sizes

tree() {
	make_tree tree $tree_files
	client -r tree/ $URL/tree
	same_trees tree $EXPORT/tree
	client -r $URL/tree/ tree.back
	same_trees tree tree.back
	no_leftovers $EXPORT .
}
run_case "a tree of $tree_files small files, there and back" tree
rm -rf tree tree.back $EXPORT/tree

pipe() {
	client -q - $URL/piped <large
	same_files large $EXPORT/piped
	client -q $URL/piped - >piped.back
	same_files large piped.back
}
run_case "a pipe, there and back" pipe

# Three transfers of one session, in both directions, each with channels, memory and keys of its own;
# and two after two, so that the second find what the first left.
at_once() {
	client -c "put large one & put large two & get large back & ls; wait" $URL
	same_files large $EXPORT/one
	same_files large $EXPORT/two
	same_files large back
	rm -f $EXPORT/one $EXPORT/two back
	client -c "put large one & get large back & wait; put large two & get large again & wait" $URL
	same_files large $EXPORT/one
	same_files large $EXPORT/two
	same_files large back
	same_files large again
	no_leftovers $EXPORT .
	rm -f $EXPORT/one $EXPORT/two back again
	daemon_must_live
}
cp large $EXPORT/large
run_case "several transfers of one session at once, both ways" at_once

feed() {
	local name
	client -q feed --segment 2M file=large "command=|cat $PWD/large" $URL/fed
	for name in file command; do
		cat $EXPORT/fed/$name/*.seg >fed
		same_files large fed
	done
	rm -r fed $EXPORT/fed
	no_leftovers $EXPORT
}
run_case "a feed of a file and a command, in segments" feed

# container DIR READER: a mount namespace with a root of its own: busybox, the directory of a feed,
# read-only, and $BOX/out.  READER runs in it, as long as the case.
BOX=$WORK/box
container() {
	mkdir -p $BOX/out $BOX/root
	unshare -m busybox sh -e -c '
		mount -t tmpfs root "$1/root"
		mkdir "$1/root/bin" "$1/root/old" "$1/root/out" "$1/root/segments"
		cp "$2" "$1/root/bin/busybox"
		cp "$4" "$1/root/reader"
		mount --bind "$1/out" "$1/root/out"
		mount --bind "$3" "$1/root/segments"
		mount -o remount,bind,ro "$1/root/segments"
		cd "$1/root"
		pivot_root . old
		export PATH=/bin
		exec chroot . /bin/busybox sh -e -c "busybox umount -l /old; busybox rmdir /old; exec busybox sh /reader"
	' container $BOX "$(command -v busybox)" "$1" "$2"
}

# What runs in the container: takes each segment as soon as it has its name, until it is told to stop.
write_reader() {
	cat >$BOX/reader <<'READER'
PATH=/bin
/bin/busybox --install -s /bin
for path in /usr /tmp /proc /old; do
	[ ! -e $path ] || echo "there is $path" >>/out/wrong
done
touch /segments/file/new 2>/said
grep -q "Read-only" /said || echo "the directory can be written to" >>/out/wrong
mkdir /out/file /out/paced
touch /out/ready
while :; do
	last=
	[ ! -e /out/stop ] || last=1 # one more look behind it
	for path in /segments/*/*; do
		name=${path#/segments/}
		case $name in
		*/\* | */[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].seg) ;;
		*) echo "the name $name" >>/out/wrong ;;
		esac
		if [ -e "$path" ] && [ ! -e "/out/$name" ]; then
			cp "$path" /out/new || echo "cannot read $name" >>/out/wrong
			mv /out/new "/out/$name"
		fi
	done
	for path in /segments/paced/.rftp-*; do
		[ ! -e "$path" ] || touch /out/hidden
	done
	[ -z "$last" ] || break
	sleep 0.05
done
touch /out/done
READER
}

# A device that stops in the middle of a segment until the reader has taken those before it, and one of
# the other device, and has seen a segment under its hidden name.  The feed lasts so long.
write_paced() {
	cat >paced.sh <<PACED
head -c 700000 paced
for i in \$(seq 600); do
	[ -e $BOX/out/paced/00000001.seg ] && [ -e $BOX/out/file/00000001.seg ] &&
		[ -e $BOX/out/hidden ] && exec tail -c +700001 paced
	sleep 0.1
done
exit 1
PACED
}

# Each segment can be mounted into a container and used there as soon as it has its name.
segment_bytes=262144
contained_feed() {
	local name path size last
	rm -rf $BOX
	mkdir -p $BOX $EXPORT/contained/file $EXPORT/contained/paced
	head -c 2500000 /dev/urandom >file
	head -c 1300000 /dev/urandom >paced
	write_reader
	write_paced
	background $WORK/reader container $EXPORT/contained $BOX/reader
	wait_for 30 "the container" [ -e $BOX/out/ready ]
	client -q feed --block 64K --segment 256K file=file "paced=|sh $PWD/paced.sh" $URL/contained
	touch $BOX/out/stop
	wait_for 60 "the reader" [ -e $BOX/out/done ]
	cat $WORK/reader
	[ ! -e $BOX/out/wrong ] || fail "in the container: $(cat $BOX/out/wrong)"
	[ ! -s $WORK/reader ] || fail "the container complains"
	for name in file paced; do
		# all that there are, as they were when they had just got their names, and whole
		same_trees $EXPORT/contained/$name $BOX/out/$name
		cat $BOX/out/$name/*.seg >joined
		same_files $name joined
	done
	# a file's packets are full: so are all of its segments but the last
	last=$(ls $BOX/out/file | tail -n 1)
	for path in "$BOX"/out/file/*; do
		size=$(stat -c %s "$path")
		[ "$size" = $segment_bytes ] || [ "${path##*/}" = "$last" ] ||
			fail "${path##*/} has $size bytes"
	done
	[ "$last" = 00000010.seg ] || fail "the last segment is $last"
	[ "$(ls $BOX/out/paced | wc -l)" -ge 5 ] || fail "too few segments: $(ls $BOX/out/paced)"
	no_leftovers $EXPORT
	rm -r file paced paced.sh joined $EXPORT/contained
}
run_case "segments of a feed, in a container while it runs" contained_feed

bench() {
	client -c 'bench 32M put; bench 32M get' $URL
}
run_case "bench put and get" bench

# The client alone chooses: it must see that the daemon is reached through an RDMA device.
automatic() {
	daemon_start
	FABRIC=$FABRIC,soft client -v large $URL/automatic 2>&1 | tee $WORK/said
	grep -q "fabric $FABRIC" $WORK/said || fail "$FABRIC,soft did not take $FABRIC"
	same_files large $EXPORT/automatic
}
run_case "--fabric=verbs,soft takes verbs" automatic

no_device() {
	at_server timeout 5 true
	daemon_start --fabric soft
	FABRIC=verbs,soft client -v large $URL/fallback 2>&1 | tee $WORK/said
	same_files large $EXPORT/fallback
	if [ "$RIG_DRIVER" = siw ]; then
		# soft is iWARP: siw reaches it, and nobody need fall back
		return
	fi
	grep -q "fabric soft" $WORK/said || fail "it did not fall back to soft"
	client_fails 30 large $URL/never
}
run_case "verbs,soft falls back to soft where only that is served, verbs does not" no_device

# O_DIRECT on a real file system: ext4 on a disk of its own.
mkdir -p /tmp/disk
disk() {
	mkfs.ext4 -q -E nodiscard /dev/vda
	mount -t ext4 /dev/vda /tmp/disk
	mkdir /tmp/disk/export /tmp/disk/home
}
run_case "ext4 on a virtio disk" disk
EXPORT=/tmp/disk/export
direct() {
	mountpoint -q /tmp/disk || skip "there is no disk"
	cp large /tmp/disk/home/large
	cd /tmp/disk/home
	daemon_start --fabric "$FABRIC"
	client --direct on --json large $URL/large
	same_files large $EXPORT/large
	client --direct on --json $URL/large back | tee $WORK/said
	grep -q '"direct":true' $WORK/said || fail "the client did not write with O_DIRECT"
	same_files large back
	# odd sizes and a block that is not the file system's
	client --direct on --block 192K --depth 4 large $URL/again
	same_files large $EXPORT/again
	no_leftovers $EXPORT .
}
run_case "O_DIRECT on both sides, there and back" direct
finish
