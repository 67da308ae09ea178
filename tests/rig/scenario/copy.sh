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
for engine in status window; do
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
	client -r tree $URL/tree
	same_trees tree $EXPORT/tree
	client -r $URL/tree tree.back
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

bench() {
	client -c 'bench 32M put; bench 32M get' $URL
}
run_case "bench put and get" bench

# The client alone chooses: it must see that the daemon is reached through an RDMA device.
automatic() {
	daemon_start
	FABRIC=auto client -v large $URL/automatic 2>&1 | tee $WORK/said
	grep -q "fabric $FABRIC" $WORK/said || fail "auto did not take $FABRIC"
	same_files large $EXPORT/automatic
}
run_case "--fabric=auto takes verbs" automatic

no_device() {
	at_server timeout 5 true
	daemon_start --fabric soft
	FABRIC=auto client -v large $URL/fallback 2>&1 | tee $WORK/said
	same_files large $EXPORT/fallback
	if [ "$RIG_DRIVER" = siw ]; then
		# soft is iWARP: siw reaches it, and nobody need fall back
		return
	fi
	grep -q "fabric soft" $WORK/said || fail "auto did not fall back to soft"
	client_fails 30 large $URL/never
}
run_case "auto falls back to soft where only that is served, verbs does not" no_device

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
