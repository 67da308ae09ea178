#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that break every rule, against the real client.

Whatever a server says, the client ends by itself, says what was wrong, exits with a code that says so, and
has written nothing that was not asked for.
"""

import struct

import iwarp
import rftptest
from iwarp import REPLY
from rftptest import CONNECT, FAILED, INTEGRITY, KIND, LOST, PROTOCOL, REFUSED, case, check, equal
from rogue import (DIRECTORY, FILE, NOT_FOUND, Rogue, Victim, attributes, clean, listing, result)

QUICK = ("--timeout", "1", "--connect-timeout", "1", "--fabric", "soft")


# ---- a right server first: what is wrong below is not our server's own fault ----

@case
def a_right_server(top):
    victim = Victim(top)
    rogue = Rogue()
    done = victim.run(rogue, *QUICK, rogue.url("report"), "in/")
    equal(done.code, 0, done)
    with open(f"{victim.top}/in/report", "rb") as f:
        equal(f.read(), b"p" * 32, "what came")
    equal(victim.run(rogue, *QUICK, "canary", rogue.url("there")).code, 0, "put")
    equal(victim.run(rogue, *QUICK, "-c", "ls", rogue.url()).out, b"report\n", "ls")
    rogue.close()


# ---- answers that never come ----

def pings(session, stop_after=None):
    """Keep-alives for ever: no answer."""
    while True:
        session.put(iwarp.PING, bytes(8))


@case
def pings_before_a_reply(top):
    victim = Victim(top)
    for type_, arguments in ((iwarp.HELLO, ("-c", "pwd", "{}")), (iwarp.PING, ("-c", "pwd", "{}")),
                             (iwarp.STAT, ("-c", "stat x", "{}")), (iwarp.LIST, ("-c", "ls", "{}")),
                             (iwarp.CHANNELS, ("{}report", "in/")), (iwarp.RETRIEVE, ("{}report", "in/")),
                             (iwarp.STORE, ("canary", "{}x"))):
        victim.suffers({type_: lambda s, data: pings(s)}, *QUICK, *arguments, code=(CONNECT, LOST), says="no answer to",
                       what=f"PINGs for ever in place of the reply to {type_}")


if __name__ == "__main__":
    rftptest.main()
