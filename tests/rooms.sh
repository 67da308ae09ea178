#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/rooms.sh: what each room may include (includes point only downward), and a few more rules
# that grep can prove.  Prints TAP.
#
# Argument: the source tree to look at (default: the one that this script is in).

cd "${1:-$(dirname "$0")/..}" || exit 1
LC_ALL=C
export LC_ALL
number=0
bad=0

# check NAME VIOLATIONS: one case; it holds when there are none
check() {
	number=$((number + 1))
	if [ -n "$2" ]; then
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $number - $1"
		bad=1
	else
		echo "ok $number - $1"
	fi
}

# sources DIR...: the C files right in these directories
sources() {
	for dir; do
		for file in "$dir"/*.[ch]; do
			[ ! -f "$file" ] || echo "$file"
		done
	done
}

# includes FILE...: "file:line: header" of every include of ours, in quotes or brackets: one that
# is found where the compiler looks, or beside the file.  A system header is not.
includes() {
	grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null "$@" |
	sed -E 's/^([^:]*:[0-9]+):[^"<]*["<]([^">]*)[">].*/\1: \2/' |
	while read -r at header; do
		if [ -e "$header" ] || [ -e "middleware/$header" ] ||
			[ -e "${at%/*}/$header" ]; then
			echo "$at $header"
		fi
	done
}

# code FILE...: "file:line: text" of every line, without comments and what is inside of quotes
code() {
	awk '
	FNR == 1 { comment = 0 }
	{
		line = $0
		out = ""
		while (line != "") {
			if (comment) {
				end = index(line, "*/")
				if (!end)
					break
				line = substr(line, end + 2)
				comment = 0
				continue
			}
			if (!match(line, /\/\*|\/\/|["\047]/)) {
				out = out line
				break
			}
			out = out substr(line, 1, RSTART - 1)
			start = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			if (start == "//")
				break
			if (start == "/*") {
				out = out " "
				comment = 1
				continue
			}
			out = out start start
			while (line != "") {
				c = substr(line, 1, 1)
				line = substr(line, c == "\\" ? 3 : 2)
				if (c == start)
					break
			}
		}
		print FILENAME ":" FNR ": " out
	}' /dev/null "$@"
}

# No name of a source file has a space: the unquoted lists below are meant to be split.
# shellcheck disable=SC2046
all=$(sources proto middleware/* middleware/*/* rftp rftp/* rftpd rftpd/* rftpctl)
# shellcheck disable=SC2086
all_includes=$(includes $all)
# shellcheck disable=SC2086
all_code=$(code $all)

# ---- includes point downward ----

# room FILES PATTERN: what files of this pattern include of ours begins with the other one.  A
# header is always named with its room, so a bare name or ../ is a violation too.
room() {
	check "$1 includes only $2" "$(echo "$all_includes" | grep -E "^$1" |
		grep -vE ": ($2)")"
}

room proto/ 'proto/'
room middleware/base/ 'base/'
room middleware/block/ '(block|base)/'
room middleware/fabric/ '(fabric|base)/'
# a transport is behind the seam: its own files alone see inside of it, and select.c what opens it
room 'middleware/fabric/[^/]*$' '(fabric/[a-z_]+\.h$|base/|fabric/(loop/loop|soft/soft|verbs/verbs)\.h)'
room middleware/fabric/soft/ '(fabric/soft/|fabric/[a-z_]+\.h$|base/)'
room middleware/fabric/loop/ '(fabric/loop/|fabric/[a-z_]+\.h$|base/)'
room middleware/fabric/verbs/ '(fabric/verbs/|fabric/[a-z_]+\.h$|base/)'
room middleware/end/ '(end|block|base)/'
room middleware/engine/ '(engine|block|fabric|base|proto)/'
for engine in credit status window; do
	room middleware/engine/$engine/ "(engine/$engine/|engine/[a-z_]+\.h$|block/|fabric/|base/|proto/)"
done
# where the client is the source, pull is status
room middleware/engine/pull/ "(engine/pull/|engine/status/status_engine\.h$|engine/[a-z_]+\.h$|block/|fabric/|base/|proto/)"
room middleware/session/ '(session|engine|block|fabric|base|proto)/'
room middleware/transfer/ '(transfer|session|engine|end|block|fabric|base|proto)/'
# files and trees as the ends of a transfer: above it, beneath the programs; some of its modules know
# names beneath a directory, and no transfer
room middleware/tree/ '(tree|transfer|end|base|proto)/|block/(digest|ranges)\.h'
room 'middleware/tree/(beneath|change|flush|parent|place|space|temporary|metadata|removal|owners|acls|acl_names|xattrs)' '(tree/(beneath|change|seen|flush|parent|place|space|temporary|leftover|tree_mark|metadata|removal|owners|acls|acl_names|xattrs)|base/|proto/(wire|attributes|message_seen)\.h)'
room middleware/tree/landing '(tree/(beneath|flush|parent|place|space|landing(s|_link)?|temporary|leftover|metadata|journal|owners|acls|xattrs)\.h|transfer/transfer\.h|base/|proto/(wire|attributes)\.h)'
# the programs see the seams and what opens them, not what is behind
seams='(session|transfer|tree|base|proto)/|end/end\.h|engine/engine\.h|fabric/((fabric|select|device)\.h|soft/soft\.h|loop/loop\.h)'
room rftp/ "rftp/|$seams"
room rftpd/ "rftpd/|$seams"
room 'rftpd/confine/(landlock|syscall_filter)' 'rftpd/confine/'
room rftpctl/ 'rftpd/control_path\.h'

check "every room of middleware has its rule" "$(echo "$all" | grep '^middleware/' |
	grep -vE '^middleware/(base|block|fabric|end|engine|session|transfer|tree)/')"

# ---- what else a room may not do ----

# shellcheck disable=SC2086
check "ibv_ and rdma_ names are in middleware/fabric/verbs only" "$({
	echo "$all_code" | grep -E '[^A-Za-z0-9_](ibv|rdma)_[a-z]'
	grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](infiniband|rdma)/' /dev/null $all
} | grep -v '^middleware/fabric/verbs/')"

# shellcheck disable=SC2086
check "OpenSSL is used by session/tls, block/seal and tree/sum, and for base64 in known_hosts" "$(
	grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]openssl/' /dev/null $all |
	grep -vE '^(middleware/session/tls|middleware/block/seal\.c|middleware/tree/sum\.c|rftp/remote/known_hosts)')"

check "no exit() outside main.c" "$(echo "$all_code" | grep -vE '^rftp(d|ctl)?/main\.c:' |
	grep -E '[^A-Za-z0-9_](quick_)?exit[[:space:]]*\(')"

# what a user of the host asks for is done with that user's rights, by base/opener
check "tree asks base/opener for what it does with names" "$(echo "$all_code" | grep -E '^(middleware/tree|rftpd/serve)/' |
	grep -E '[^A-Za-z0-9_](openat2?|fstatat|readlinkat|faccessat|mkdirat|unlinkat|symlinkat|linkat|renameat2?|utimensat|futimens|fchmod|fchownat|f(get|set|remove)xattr)[[:space:]]*\(')"

# to run an engine is the work of transfer
check "rftp and rftpd name engines, and run none" "$(echo "$all_code" | grep -E '^rftpd?/' |
	grep -E '[^A-Za-z0-9_]engine_[a-z_]+[[:space:]]*\(' |
	grep -vE '[^A-Za-z0-9_]engine_(at|by_id|by_name)[[:space:]]*\(')"

# a daemon is a client too, later: what a client says to a daemon is in session/calls
check "rftp leaves frames and connecting to session/calls" "$(echo "$all_code" | grep -E '^rftp/' |
	grep -E '[^A-Za-z0-9_](control_[a-z_]+|link_(connect|open_channels)|message_(put|get)_[a-z_]+)[[:space:]]*\(')"

# a name that stands in one declaration and one definition, or in one inline definition, has no caller;
# excepted is what is there for tests alone, and for what reason
check "every function of a header has a caller outside of the tests" "$(echo "$all_code" | awk '
	{
		file = substr($0, 1, index($0, ":") - 1)
		text = substr($0, index($0, ": ") + 2)
		if (file ~ /\.h$/ && text ~ /^[a-z]/ && match(text, /[a-z_][a-z0-9_]*\(/)) {
			name = substr(text, RSTART, RLENGTH - 1)
			where[name] = file
			most[name] = text ~ /^static/ ? 1 : 2
		}
		gsub(/[^A-Za-z0-9_]+/, " ", text)
		n = split(text, words, " ")
		for (i = 1; i <= n; i++)
			used[words[i]]++
	}
	END {
		for (name in where)
			if (used[name] <= most[name])
				print where[name] ": " name
	}' | sort |
	# the fabric of the tests; the way that is compared with the fast one; an fd that nobody armed
	grep -vE ': (loop_[a-z]+|crc32c_(is_fast|table)|fabric_cq_ack)$')"

for file in $all; do
	lines=$(wc -l <"$file")
	[ "$lines" -le 500 ] ||
		echo "# warning: $file has $lines lines: look for a second module inside"
done

echo "1..$number"
exit $bad
