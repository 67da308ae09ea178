# SPDX-License-Identifier: Apache-2.0
#
# rftpd as a service of systemd, which is PID 1 here: what `make install` brings starts, has RDMA, is confined, is
# told to reload and to stop, is started by its socket, and is not started again and again when it cannot be.
. guest/lib.sh

[ "$(cat /proc/1/comm)" = systemd ] || {
	run_case "systemd as PID 1" skip "no systemd on this host"
	finish
}
net_up "$RIG_DRIVER" || bail "no link with $RIG_DRIVER on both ends"
cd $HOME_DIR || exit
EXPORT=/var/lib/rftpd/export
make_file file 3 77

configure() {
	cat >/etc/rftpd.conf
	rftpd -t -c /etc/rftpd.conf --listen 127.0.0.1:0 || fail "the configuration is wrong"
}

main_pid() {
	local pid
	pid=$(systemctl show -P MainPID rftpd)
	[ "$pid" -gt 1 ] || fail "it does not run"
	echo "$pid"
}

journal() {
	journalctl --no-pager -q -o cat "$@"
}

logged() {
	journal -u rftpd | grep -qE -e "$1"
}

was_logged() {
	wait_for 20 "in the journal: $1" logged "$1"
}

installed() {
	rm -rf /var/lib/rftpd /etc/rftpd.conf # the host's
	cp -a /out/installed/. /
	systemd-sysusers /usr/lib/sysusers.d/rftpd.conf
	systemd-tmpfiles --create /usr/lib/tmpfiles.d/rftpd.conf
	systemctl daemon-reload
	[ "$(stat -c %U /var/lib/rftpd/export)" = rftpd ] || fail "the export is not the user's"
	configure <<-CONF
		listen = $SERVER_ADDR:$PORT
		insecure = yes
		fabric = verbs,soft
		export = $EXPORT:rw
		require-sandbox = yes
		audit-log = stderr
	CONF
}
run_case "installed: user, directories, configuration" installed

started() {
	systemctl start rftpd || {
		journal -u rftpd
		fail "it does not start"
	}
	[ "$(systemctl show -P ActiveState rftpd)" = active ] || fail "it is not active"
	was_logged "^(info: |rftpd: info: )?sandbox: no files but its own \(Landlock"
	ps -o user= -p "$(main_pid)" | grep -q rftpd || [ "$(stat -c %U "/proc/$(main_pid)")" = rftpd ] ||
		fail "it does not run as rftpd"
	grep -qE '^Seccomp:\s*2' "/proc/$(main_pid)/status" || fail "no seccomp"
	grep -qE '^CapBnd:\s*0+$' "/proc/$(main_pid)/status" || fail "it may have capabilities"
	grep -E '^Max locked memory +unlimited' "/proc/$(main_pid)/limits" || fail "LimitMEMLOCK"
}
run_case "it starts, says when it serves, unprivileged and confined" started

copied() {
	client file $URL/there
	same_files file $EXPORT/there
	client $URL/there back
	same_files file back
	was_logged "connected: verbs"
	# the journal has fields, not only text
	[ -n "$(journal -o json RFTP_SESSION=1)" ] || fail "no message with its session's number"
}
run_case "files cross by RDMA, as the unit confines it" copied

# as_the_unit COMMAND...: root, with what the unit's control group may open
as_the_unit() {
	sh -c 'echo $$ >/sys/fs/cgroup/system.slice/rftpd.service/cgroup.procs; exec "$@"' sh "$@"
}

devices() {
	local status=0
	ls /dev/infiniband
	as_the_unit dd if=/dev/infiniband/rdma_cm bs=1 count=0 || fail "rdma_cm cannot be opened"
	as_the_unit dd if=/dev/infiniband/uverbs0 bs=1 count=0 || fail "uverbs0 cannot be opened"
	dd if=/dev/vda bs=1 count=1 of=/dev/null || fail "no disk to try"
	as_the_unit dd if=/dev/vda bs=1 count=1 of=/dev/null 2>$WORK/refused && fail "the disk can be read"
	grep -q "not permitted" $WORK/refused || fail "$(cat $WORK/refused)"
}
run_case "devices: those of RDMA, and no others" devices

reloaded() {
	local pid
	pid=$(main_pid)
	echo "max-sessions = 7" >>/etc/rftpd.conf
	systemctl reload rftpd
	was_logged "the configuration is in use"
	[ "$(main_pid)" = "$pid" ] || fail "it was started anew"
	rftpctl limit | grep -E '^max-sessions +7 ' || fail "the new limit does not hold: $(rftpctl limit)"
	rftpctl who || fail "rftpctl"
	client file $URL/after
	same_files file $EXPORT/after
}
run_case "it reloads" reloaded

is_another() {
	local pid
	pid=$(systemctl show -P MainPID rftpd)
	[ "$pid" -gt 1 ] && [ "$pid" != "$1" ] && [ "$(systemctl is-active rftpd)" = active ]
}

killed() {
	local pid
	pid=$(main_pid)
	kill -KILL "$pid"
	wait_for 30 "it is started again" is_another "$pid"
	client file $URL/again
	same_files file $EXPORT/again
}
run_case "one that was killed is started again" killed

stopped() {
	systemctl stop rftpd
	[ "$(systemctl show -P Result rftpd)" = success ] || fail "$(systemctl status rftpd)"
	[ "$(systemctl show -P ActiveState rftpd)" = inactive ] || fail "it is still there"
	was_logged "SIGTERM: ending"
	[ ! -e /run/rftpd/control ] || fail "its socket is left behind"
}
run_case "it stops" stopped

activated() {
	systemctl start rftpd.socket
	[ "$(systemctl show -P ActiveState rftpd)" = inactive ] || fail "it runs before anybody comes"
	FABRIC=soft
	timeout 60 rftp --fabric soft file rftp://127.0.0.1:$PORT/by-socket || {
		journal -u rftpd -n 12
		systemctl status rftpd.socket rftpd
		ss -tlnp
		fail "it is not served"
	}
	same_files file $EXPORT/by-socket
	[ "$(systemctl show -P ActiveState rftpd)" = active ] || fail "it does not run"
	systemctl stop rftpd.socket rftpd.service
}
run_case "its first client starts it, by the socket" activated

misconfigured() {
	systemctl stop rftpd.socket rftpd.service
	echo "no-such-setting = 1" >>/etc/rftpd.conf
	! systemctl start rftpd || fail "it started"
	nap 2
	[ "$(systemctl show -P ExecMainStatus rftpd)" = 2 ] || fail "$(systemctl status rftpd)"
	[ "$(systemctl show -P NRestarts rftpd)" = 0 ] || fail "it was started again"
	was_logged "no-such-setting"
}
run_case "a wrong configuration is said, and not tried again" misconfigured

finish
