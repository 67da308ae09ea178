#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make demo: a daemon on this host, real files to it and back, and whether they are the same.
# Everything is in a temporary directory and is gone afterwards.  DEMO_MIB (256) is the large file's
# size.
set -eu

build=${RFTP_BUILD:-build}
source=$(cd "$(dirname "$0")/.." && pwd)
mib=${DEMO_MIB:-256}
PATH=$(cd "$build" && pwd):$PATH
export PATH
top=$(mktemp -d "${TMPDIR:-/tmp}/rftp-demo-XXXXXX")
daemon=

finish() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	[ -z "$daemon" ] || wait "$daemon" 2>/dev/null || true
	rm -rf "$top"
}
trap finish EXIT
trap 'exit 130' INT TERM

# shows a command as one would type it, then runs it
run() {
	printf '\n$'
	for word; do
		case $word in
		*[\ \;]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '\n'
	"$@"
}

mkdir "$top/export" "$top/home"
cp -R "$source/proto" "$top/home/tree"
cp -R "$source/middleware" "$top/home/tree/middleware"
head -c "$((mib * 1048576))" /dev/urandom >"$top/home/large.bin"
cd "$top/home"

# the demo's own: not the user's, nor a real daemon's
export STATE_DIRECTORY="$top/state" XDG_CONFIG_HOME="$top/config"
# a server for this directory, on a free port of the loopback interface
printf '$ rftpd --listen 127.0.0.1:0 --export %s:rw &\n' ../export
mkfifo ../ready
rftpd --listen 127.0.0.1:0 --export ../export:rw >../ready 2>../log &
daemon=$!
read -r ready address fabrics <../ready || {
	cat ../log >&2
	exit 1
}
echo "$ready $address $fabrics"
url=rftp://$address

run rftp -v large.bin "$url/"
run rftp -r tree "$url/"
run rftp -c 'ls; stat large.bin; mkdir kept; mv large.bin kept/renamed.bin; ls kept' "$url"
run rftp -v "$url/kept/renamed.bin" back.bin
run rftp -r "$url/tree/" back
printf 'a line through a pipe\n' >line
printf '\n$ rftp - %s/line <line; rftp %s/line -\n' "$url" "$url"
rftp -q - "$url/line" <line
rftp -q "$url/line" -
run rftp -c 'bench 4G put; bench 4G get' "$url"

echo
cmp large.bin back.bin
diff -r tree back
files=$(find tree -type f | wc -l)
echo "the same after the way there and back: large.bin ($mib MiB) and the $files files of tree"
