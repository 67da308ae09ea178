# SPDX-License-Identifier: Apache-2.0
#
# soft is iWARP: our user-space implementation against the kernel's, siw, in each role.
. guest/lib.sh

net_up siw || bail "no link with siw on both ends"
mib=16
short && mib=8
cd $HOME_DIR || exit
make_file large $mib 777

# halves CLIENT_FABRIC SERVER_FABRIC: the contract, a half on each.  The names of its cases say what
# crosses: send-sizes (Send), write-sizes (Write), read (Read), bad-write and bad-read (Terminate).
halves() {
	contract_halves "$1 to $2:" "$1" "$2"
	for what in send-sizes write-sizes read bad-write bad-read; do
		run_case "$1 to $2: $what was among them" grep "^ok .* [^ ]*$what\$" $WORK/tap
	done
}

# files_with CLIENT_FABRIC DAEMON_FABRIC
files_with() {
	daemon_start --fabric "$2"
	rm -f $EXPORT/large back
	FABRIC=$1
	client -v large $URL/large
	same_files large $EXPORT/large
	client -v $URL/large back
	same_files large back
	client -v --channels 4 --block 64K large $URL/many
	same_files large $EXPORT/many
	make_tree tree 50
	client -r tree/ $URL/tree
	same_trees tree $EXPORT/tree
	rm -rf tree $EXPORT/tree
}
run_case "rftp on soft, rftpd on siw: put and get" files_with soft verbs
run_case "rftp on siw, rftpd on soft: put and get" files_with verbs soft

# One port serves both: the kernel owns it, and the verbs listener takes soft clients too.
one_port() {
	daemon_start
	for FABRIC in verbs soft; do
		client -v large $URL/by-$FABRIC
		same_files large $EXPORT/by-$FABRIC
	done
}
run_case "a daemon with all its fabrics: a client on verbs, then one on soft" one_port
daemon_stop

halves soft verbs
halves verbs soft
finish
