# SPDX-License-Identifier: Apache-2.0
#
# Sourced in a guest, by lib.sh: a link with an RDMA device on each end, server and client: both in this
# guest, or ($RIG_END is client) the server's in another one.
#
#     net_up rxe|siw             SERVER_ADDR (rdmaA, on va) and CLIENT_ADDR (rdmaB, on vb)
#     at_server COMMAND...       run it where the server's address is: a program, with absolute paths
#     at_client COMMAND...       and the client's
#     net_wan DELAY [LOSS]       netem each way: 25ms makes a round trip of 50; 0 takes it off
#     net_link down|up           the cable at the client's end
#     net_silence                all that is sent is lost, until net_wan 0
#
# What crosses the link really crosses it, packet by packet, on both drivers.  The ends of siw are in
# two network namespaces.  rxe does not work across namespaces, so both of its ends are in one: rules
# that look only at what this host sends (`iif lo`) then lead each address over the link instead of
# the local table, and accept_local lets it arrive.  Of two guests each has the end that it is named after.

SERVER_ADDR=10.6.0.1
CLIENT_ADDR=10.6.0.2
NET_MTU=${NET_MTU:-9000}
NET_SWITCH=${NET_SWITCH:-} # 1: with a switch between the ends of rxe, for net_link
# large enough for a window of a link with 50 ms
NET_BUFFERS=(net.core.netdev_max_backlog=100000 net.core.rmem_max=33554432 net.core.wmem_max=33554432)
# what a command is put behind to run at an end; all of it becomes the command, by exec
SERVER=()
CLIENT=()
RIG_END=${RIG_END:-both}
net_driver=

at_server() {
	"${SERVER[@]}" "$@"
}

at_client() {
	"${CLIENT[@]}" "$@"
}

net_mac() {
	"$1" cat "/sys/class/net/$2/address"
}

# Static neighbours: nothing to ask for, or to lose, before the first packet; routes of rxe.  All of
# it goes when an end goes down.
net_paths() {
	at_server ip neigh replace $CLIENT_ADDR lladdr "$(net_mac at_client vb)" dev va nud permanent
	at_client ip neigh replace $SERVER_ADDR lladdr "$(net_mac at_server va)" dev vb nud permanent
	if [ "$net_driver" = rxe ] && [ "$RIG_END" = both ]; then
		ip route replace $SERVER_ADDR dev vb src $CLIENT_ADDR table 201
		ip route replace $CLIENT_ADDR dev va src $SERVER_ADDR table 202
	fi
}

# One `ip` for many commands: each takes as long to start as all of them to run.
net_rxe() {
	local end
	sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
		net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1
	if [ -n "$NET_SWITCH" ]; then
		echo "link add switch mtu $NET_MTU type bridge"
		for end in a b; do
			echo "link add v$end type veth peer name port$end"
			echo "link set port$end mtu $NET_MTU master switch up"
		done
		echo "link set switch up"
	else
		echo "link add va type veth peer name vb"
	fi >$WORK/links
	ip -batch - <<-EOF || return
		$(<$WORK/links)
		addr add $SERVER_ADDR/24 dev va
		addr add $CLIENT_ADDR/24 dev vb
		link set va mtu $NET_MTU up
		link set vb mtu $NET_MTU up
		rule add pref 10 iif lo to $SERVER_ADDR lookup 201
		rule add pref 11 iif lo to $CLIENT_ADDR lookup 202
		rule add pref 100 lookup local
		rule del pref 0
	EOF
	net_paths
	rdma link add rdmaA type rxe netdev va
	rdma link add rdmaB type rxe netdev vb
}

net_siw() {
	SERVER=(ip netns exec A)
	CLIENT=(ip netns exec B)
	ip netns add A
	ip netns add B
	ip -batch - <<-EOF || return
		link add va type veth peer name vb
		link set va netns A
		link set vb netns B
	EOF
	ip -n A -batch - <<-EOF || return
		addr add $SERVER_ADDR/24 dev va
		link set lo up
		link set va mtu $NET_MTU up
	EOF
	ip -n B -batch - <<-EOF || return
		addr add $CLIENT_ADDR/24 dev vb
		link set lo up
		link set vb mtu $NET_MTU up
	EOF
	net_paths
	# siw 6.1 keeps the state that it saw when it was added: both ends must be up before
	net_wait "no carrier" at_client grep -qx 1 /sys/class/net/vb/carrier
	at_server rdma link add rdmaA type siw netdev va
	at_client rdma link add rdmaB type siw netdev vb
}

# Two guests: the first card of each is its end of the link.
net_guests() {
	SERVER=(python3 -IS "$RIG/guest/remote" run)
	net_answers || return
	at_server sh -ec "mkdir -p $EXPORT
		sysctl -qw ${NET_BUFFERS[*]}
		ip link set eth0 name va
		ip addr add $SERVER_ADDR/24 dev va
		ip link set va mtu $NET_MTU up" || return
	at_client ip link set eth0 name vb
	at_client ip addr add $CLIENT_ADDR/24 dev vb
	at_client ip link set vb mtu "$NET_MTU" up
	net_paths
	net_wait "no carrier" at_server grep -qx 1 /sys/class/net/va/carrier
	net_wait "no carrier" at_client grep -qx 1 /sys/class/net/vb/carrier
	at_server rdma link add rdmaA type "$net_driver" netdev va
	at_client rdma link add rdmaB type "$net_driver" netdev vb
}

# The server's guest may take longer than ours to boot.
net_answers() {
	local end=$((SECONDS + 60))
	until at_server true 2>$WORK/answer; do
		[ $SECONDS -lt $end ] || {
			cat $WORK/answer >&2
			return 1
		}
		nap 0.5
	done
}

# net_wait WHAT COMMAND...: until it holds, 5 s at most
net_wait() {
	local what=$1 i
	shift
	for ((i = 0; i < 50; i++)); do
		"$@" 2>/dev/null && return 0
		nap 0.1
	done
	echo "network: $what" >&2
	return 1
}

# net_active END DEVICE
net_active() {
	"$1" grep -q ACTIVE "/sys/class/infiniband/$2/ports/1/state"
}

# net_gid END DEVICE PATTERN: the GID of an address can be missing for a moment after link up.
net_gid() {
	"$1" grep -qrs "$3" "/sys/class/infiniband/$2/ports/1/gids/"
}

net_up() {
	net_driver=$1
	sysctl -qw "${NET_BUFFERS[@]}"
	if [ "$RIG_END" = both ]; then
		"net_$1" || return
	else
		net_guests || return
	fi
	at_server sysctl -qw net.ipv4.tcp_rmem="4096 1048576 33554432" \
		net.ipv4.tcp_wmem="4096 1048576 33554432"
	at_client sysctl -qw net.ipv4.tcp_rmem="4096 1048576 33554432" \
		net.ipv4.tcp_wmem="4096 1048576 33554432"
	net_wait "rdmaA is not active" net_active at_server rdmaA || return
	net_wait "rdmaB is not active" net_active at_client rdmaB || return
	[ "$1" = siw ] || net_wait "rdmaA has no GID" net_gid at_server rdmaA ffff:0a06:0001 || return
	[ "$1" = siw ] || net_wait "rdmaB has no GID" net_gid at_client rdmaB ffff:0a06:0002
}

net_wan() {
	at_server tc qdisc del dev va root 2>/dev/null || true
	at_client tc qdisc del dev vb root 2>/dev/null || true
	[ "$1" = 0 ] && return 0
	at_server tc qdisc add dev va root netem delay "$1" ${2:+loss "$2"} limit 100000 &&
		at_client tc qdisc add dev vb root netem delay "$1" ${2:+loss "$2"} limit 100000
}

# siw knows of no cable, only of a card that is set down.  rxe must not be set down: what rdma_cm sends
# when there is no route stops queue pair 1 for good (6.1), and sometimes whoever waits for an answer,
# in the kernel; so it is the switch that loses its end.
net_link() {
	if [ "$net_driver" = rxe ]; then
		ip link set portb "$1"
	else
		at_client ip link set vb "$1"
	fi
	[ "$1" = up ] || return 0
	net_wait "no carrier" at_client grep -qx 1 /sys/class/net/vb/carrier && net_paths &&
		net_wait "rdmaA is not active" net_active at_server rdmaA &&
		net_wait "rdmaB is not active" net_active at_client rdmaB
}

# Everything that is sent is lost, on the way: no end is told.
net_silence() {
	at_server tc qdisc replace dev va root netem loss 100% &&
		at_client tc qdisc replace dev vb root netem loss 100%
}
