# SPDX-License-Identifier: Apache-2.0
#
# make              build/rftp, build/rftpd and build/rftpctl
# make demo         copies real files through them, both ways, and compares
# make check        every test that needs no RDMA device (check-c, check-cli: a part of them)
# make check-rdma   the programs on Linux's RDMA drivers, in a virtual machine  RIG_ARGS=--short
# make bench-rdma   speed in it, beside others, as tables
# make bench        speed against peers, in one run, as a table      BENCH_ARGS=--quick
# make bench-early  early data over long lines, as a table
# make bench-clients  8, 100 and 500 clients at once, as a table
# make bench-pull   the passive server: what pull costs and brings, as tables and plots
# make bench-engines  the engines against each other, as tables and plots
# make fuzz         each fuzz target for FUZZ_SECONDS=10 (needs clang)
# make install      DESTDIR= prefix=/usr/local; uninstall takes it away again
# make lint         cppcheck and mandoc -Tlint, where they are installed
# make format       clang-format on every C file; format-check only says where it would change one
# make SAN=address,undefined check     the same under sanitizers (SAN=thread: data races)
# make VERBS=no     without RDMA devices, and without rdma-core (default: with, where its headers are)
# make V=1          show the commands

prefix      ?= /usr/local
bindir      ?= $(prefix)/bin
sbindir     ?= $(prefix)/sbin
mandir      ?= $(prefix)/share/man
docdir      ?= $(prefix)/share/doc/rftp
bashdir     ?= $(prefix)/share/bash-completion/completions
unitdir     ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d
sysconfdir  ?= /etc
statedir    ?= /var/lib/rftpd
DESTDIR     ?=

VERSION     := 0.1.0
SAN         ?=
comma       := ,
B           ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

CC          ?= cc
CFLAGS      ?= -O2 -g
WARN        := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
RFTP_CFLAGS := -std=c11 -D_GNU_SOURCE -DRFTP_VERSION='"$(VERSION)"' -I. -Imiddleware -pthread \
               -fno-strict-aliasing -fstack-protector-strong -MMD -MP $(WARN) \
               $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
LDLIBS      := -laio -lxxhash -lssl -lcrypto -lacl -lz -pthread
CLIENT_LIBS := -lreadline -ldl
DAEMON_LIBS := -lseccomp -lpam -lcrypt

Q           := $(if $(V),,@)
say          = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)')

# ---- what is built from what ----

# the verbs fabric needs rdma-core's libraries
VERBS       ?= $(shell printf '\043include <infiniband/verbs.h>\n\043include <rdma/rdma_cma.h>\n' | \
                 $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo yes || echo no)
VERBS       := $(VERBS)
LIB_SRC     := $(wildcard proto/*.c middleware/*/*.c middleware/*/*/*.c)
ifeq ($(VERBS),yes)
RFTP_CFLAGS += -DRFTP_VERBS
LDLIBS      += -lrdmacm -libverbs
else
LIB_SRC     := $(filter-out middleware/fabric/verbs/%,$(LIB_SRC))
endif
CLIENT_SRC  := $(wildcard rftp/*.c rftp/*/*.c)
DAEMON_SRC  := $(wildcard rftpd/*.c rftpd/*/*.c)
TEST_SRC    := $(wildcard tests/unit/*.c tests/property/*.c tests/fabric/*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/*.c)
CLI_TESTS   := $(filter-out %/rftptest.py %/iwarp.py %/rude.py %/tls.py %/rogue.py %/lockstep.py %/users_daemon.py,$(wildcard tests/cli/*.py))

obj          = $(patsubst %.c,$(B)/obj/%.o,$(1))
# main.c stays out of the archives, so that tests can link the rest of each program
LIB         := $(B)/librftp.a
CLIENT_LIB  := $(B)/librftp-client.a
DAEMON_LIB  := $(B)/librftp-daemon.a
BENCHES     := $(patsubst tests/%.c,$(B)/tests/%,$(filter-out tests/bench/rftpd%.c,$(wildcard tests/bench/*.c)))
TESTS       := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
FUZZERS     := $(patsubst tests/%.c,$(B)/tests/%,$(FUZZ_SRC))

all: $(B)/rftp $(B)/rftpd $(B)/rftpctl

$(LIB): $(call obj,$(LIB_SRC))
$(CLIENT_LIB): $(call obj,$(filter-out rftp/main.c,$(CLIENT_SRC)))
$(DAEMON_LIB): $(call obj,$(filter-out rftpd/main.c,$(DAEMON_SRC)))
$(LIB) $(CLIENT_LIB) $(DAEMON_LIB):
	$(call say,AR,$@)
	$(Q)rm -f $@; ar crs $@ $^

$(B)/rftp: $(B)/obj/rftp/main.o $(CLIENT_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(CLIENT_LIBS) $(LDLIBS)

$(B)/rftpd: $(B)/obj/rftpd/main.o $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(DAEMON_LIBS) $(LDLIBS)

$(B)/rftpctl: $(call obj,$(wildcard rftpctl/*.c))
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS)

# one test program, one source file
$(TESTS) $(BENCHES): $(B)/tests/%: $(B)/obj/tests/%.o $(CLIENT_LIB) $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(CLIENT_LIBS) $(DAEMON_LIBS) $(LDLIBS)

# they change what is sent, and what is received
$(B)/tests/property/flips: LDFLAGS += -Wl,--wrap=control_put
$(B)/tests/property/floods: LDFLAGS += -Wl,--wrap=control_get
# it says what no client says
$(B)/tests/fuzz/fuzz_daemon: LDFLAGS += $(foreach f,message_put_header poll select_open fabric_close \
               connect_any tls_new tls_free tls_handshake tls_is_complete tls_write tls_read tls_describe \
               tls_peer_key tls_peer_names tls_export,-Wl,--wrap=$(f))

$(B)/obj/%.o: %.c | $(B)/needed
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(RFTP_CFLAGS) -c -o $@ $<

# compiler and headers are there, or the message says which packages bring them
NEEDED      := libaio.h:libaio-dev xxhash.h:libxxhash-dev acl/libacl.h:libacl1-dev zlib.h:zlib1g-dev \
               readline/readline.h:libreadline-dev seccomp.h:libseccomp-dev \
               security/pam_appl.h:libpam0g-dev crypt.h:libcrypt-dev libssh/libssh.h:libssh-dev
$(B)/needed:
	@mkdir -p $(@D)
	@command -v $(firstword $(CC)) >/dev/null || { \
		echo "$(firstword $(CC)): not found.  On Debian and Ubuntu: sudo apt-get install gcc libc6-dev" >&2; \
		exit 1; }
	@missing=; for need in stdio.h:libc6-dev $(NEEDED); do \
		printf '#include <stdio.h>\n#include <%s>\n' "$${need%%:*}" | \
			$(CC) $(CPPFLAGS) $(CFLAGS) -E - >/dev/null 2>&1 || missing="$$missing $${need#*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "headers are missing.  On Debian and Ubuntu: sudo apt-get install$$missing" >&2; exit 1; \
	fi
	@touch $@

# ---- tests ----

# what tests preload into the programs; without the sanitizers, which are in those
PRELOADS    := $(patsubst tests/%.c,$(B)/tests/%.so,$(wildcard tests/preload/*.c))
$(PRELOADS): $(B)/tests/%.so: tests/%.c | $(B)/needed
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -std=c11 -D_GNU_SOURCE $(WARN) -fPIC -shared -o $@ $< -ldl

# Some kernels place memory where ThreadSanitizer of older compilers does not expect it.
NO_ASLR     := $(if $(findstring thread,$(SAN)),$(shell setarch -R true 2>/dev/null && echo setarch -R))
RUN_TESTS    = RFTP_BUILD=$(abspath $(B)) RFTP_SAN=$(SAN) $(NO_ASLR) tests/run

check: all $(TESTS) $(PRELOADS)
	$(Q)$(RUN_TESTS) $(TESTS) tests/rooms.sh $(CLI_TESTS)

check-c: $(TESTS)
	$(Q)$(RUN_TESTS) $(TESTS)

check-cli: all $(PRELOADS)
	$(Q)$(RUN_TESTS) $(CLI_TESTS)

demo: all
	$(Q)RFTP_BUILD=$(abspath $(B)) sh tests/demo.sh

BENCH_ARGS  ?=
bench: all $(B)/tests/bench/delay
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/bench.py $(BENCH_ARGS)

bench-pull: all $(B)/tests/bench/requests
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/pull.py $(BENCH_ARGS)

bench-clients: all
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/clients.py $(BENCH_ARGS)

# the daemon, some of whose memory cannot be registered
BENCH_DAEMON := $(B)/tests/bench/rftpd
$(BENCH_DAEMON): $(B)/obj/tests/bench/rftpd.o $(B)/obj/rftpd/main.o $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -Wl,--wrap=fabric_mr_new -o $@ $^ $(LDFLAGS) $(DAEMON_LIBS) $(LDLIBS)

# the daemon that says what its posts take
POSTS_DAEMON := $(B)/tests/bench/rftpd_posts
$(POSTS_DAEMON): $(B)/obj/tests/bench/rftpd_posts.o $(B)/obj/rftpd/main.o $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -Wl,--wrap=fabric_post_send -o $@ $^ $(LDFLAGS) $(DAEMON_LIBS) $(LDLIBS)

bench-early: all $(B)/tests/bench/delay $(BENCH_DAEMON)
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/early.py $(BENCH_ARGS)

# what it simulates needs logarithms
$(B)/tests/bench/admission_sim: LDLIBS += -lm

bench-admission: all $(B)/tests/bench/admission_sim
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/admission.py $(BENCH_ARGS)

bench-engines: $(BENCHES)
	$(Q)RFTP_BUILD=$(abspath $(B)) python3 tests/bench/engines.py $(BENCH_ARGS)

# rftp as a peer that breaks the rules, and a daemon that tells what it registers: calls are wrapped
RIG_PEER    := $(B)/tests/rig/peer
RIG_PEERD   := $(B)/tests/rig/peerd
RIG_WRAPPED := fabric_post_send fabric_post_recv fabric_mr_new credit_book_add notice_post \
	notice_post_gathered channel_take_notice transfer_send message_put_greeting
$(RIG_PEER): $(B)/obj/tests/rig/peer.o $(B)/obj/rftp/main.o $(CLIENT_LIB) $(LIB)
$(RIG_PEERD): $(B)/obj/tests/rig/peer.o $(B)/obj/rftpd/main.o $(DAEMON_LIB) $(LIB)
$(RIG_PEER) $(RIG_PEERD):
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) $(RIG_WRAPPED:%=-Wl,--wrap=%) -o $@ $^ \
		$(LDFLAGS) $(CLIENT_LIBS) $(DAEMON_LIBS) $(LDLIBS)

RIG_ARGS    ?=
RUN_RIG      = tests/rig/run --build $(abspath $(B))
RIG_NEEDS    = all $(B)/tests/fabric/contract $(RIG_PEER) $(RIG_PEERD) $(BENCHES) $(POSTS_DAEMON)
check-rdma: $(RIG_NEEDS)
	$(Q)$(RUN_RIG) $(RIG_ARGS)

bench-rdma: $(RIG_NEEDS)
	$(Q)$(RUN_RIG) --bench $(RIG_ARGS)

# The fuzz targets and all they link are built again, by clang, with its coverage.
FUZZ_SECONDS ?= 10
FUZZ_B      := build-fuzz
fuzz:
	@command -v clang >/dev/null || { \
		echo "make fuzz needs clang.  On Debian and Ubuntu: sudo apt-get install clang" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory B=$(FUZZ_B) CC=clang CFLAGS="-O1 -g" \
		SAN=fuzzer-no-link,address,undefined fuzzers
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(FUZZ_B)/tests/fuzz

fuzzers: $(FUZZERS)

$(FUZZERS): $(B)/tests/%: $(B)/obj/tests/%.o $(CLIENT_LIB) $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ \
		$(LDFLAGS) $(CLIENT_LIBS) $(DAEMON_LIBS) $(LDLIBS)

lint:
	@command -v cppcheck >/dev/null || { echo "lint: cppcheck is not installed"; exit 0; }; \
	cppcheck --quiet --std=c11 -I. -Imiddleware --include=tests/cppcheck.h --enable=warning,portability \
		--inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem \
		proto middleware rftp rftpd rftpctl
	$(Q)command -v mandoc >/dev/null || { echo "lint: mandoc is not installed"; exit 0; }; \
	! mandoc -Tlint $(MAN_PAGES) 2>/dev/null | grep -vE 'referenced manual not found|line longer than 80'

# Releases of clang-format differ in what they make of the same file; this one decides.
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format 2>/dev/null))
C_FILES      = $(shell git ls-files '*.c' '*.h')
format:
	@test -n "$(CLANG_FORMAT)" || { echo "make format needs clang-format 14" >&2; exit 1; }
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

format-check:
	$(Q)case "$$($(CLANG_FORMAT) --version 2>/dev/null)" in \
	*"version 14."*) if $(CLANG_FORMAT) --dry-run --Werror $(C_FILES); then \
		echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi ;; \
	*) echo "clang-format 14 is not installed: the format of the C files is not checked"; \
		echo "0 passed, 0 failed, 1 skipped" ;; \
	esac

# ---- install ----

MAN_PAGES   := $(wildcard man/*.[1-8])
COMPLETION  := $(wildcard rftp/shell/completion.bash)

FILL_IN     := sed -e 's|@sbindir@|$(sbindir)|g' -e 's|@sysconfdir@|$(sysconfdir)|g' -e 's|@statedir@|$(statedir)|g'
# template:target, each with the directories of this installation in it
TEMPLATES   := rftpd.conf:$(docdir)/rftpd.conf.example rftpd.service:$(unitdir)/rftpd.service \
               rftpd.socket:$(unitdir)/rftpd.socket \
               rftpd.sysusers:$(sysusersdir)/rftpd.conf rftpd.tmpfiles:$(tmpfilesdir)/rftpd.conf

# a configuration that is there already stays as it is
install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(sbindir) $(DESTDIR)$(docdir) $(DESTDIR)$(unitdir) \
		$(DESTDIR)$(sysusersdir) $(DESTDIR)$(tmpfilesdir) $(DESTDIR)$(sysconfdir)
	install -d -m 750 $(DESTDIR)$(statedir) $(DESTDIR)$(statedir)/export
	install -m 755 $(B)/rftp $(DESTDIR)$(bindir)/rftp
	install -m 755 $(B)/rftpd $(B)/rftpctl $(DESTDIR)$(sbindir)
	set -e; for page in $(MAN_PAGES); do \
		install -D -m 644 $$page $(DESTDIR)$(mandir)/man$${page##*.}/$${page##*/}; done
	install -m 644 README.md LICENSE $(DESTDIR)$(docdir)
	set -e; for pair in $(TEMPLATES); do to=$(DESTDIR)$${pair#*:}; \
		$(FILL_IN) packaging/$${pair%%:*} >$$to; chmod 644 $$to; done
	test -e $(DESTDIR)$(sysconfdir)/rftpd.conf || \
		install -m 644 $(DESTDIR)$(docdir)/rftpd.conf.example $(DESTDIR)$(sysconfdir)/rftpd.conf
	$(if $(COMPLETION),install -D -m 644 $(COMPLETION) $(DESTDIR)$(bashdir)/rftp)

# the configuration and what was stored stay
uninstall:
	rm -f $(DESTDIR)$(bindir)/rftp $(DESTDIR)$(sbindir)/rftpd $(DESTDIR)$(sbindir)/rftpctl \
		$(DESTDIR)$(bashdir)/rftp
	rm -f $(DESTDIR)$(unitdir)/rftpd.service $(DESTDIR)$(unitdir)/rftpd.socket $(DESTDIR)$(sysusersdir)/rftpd.conf \
		$(DESTDIR)$(tmpfilesdir)/rftpd.conf
	set -e; for page in $(MAN_PAGES); do rm -f $(DESTDIR)$(mandir)/man$${page##*.}/$${page##*/}; done
	rm -rf $(DESTDIR)$(docdir)

clean:
	rm -rf build build-*

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all check check-c check-cli check-rdma demo bench bench-admission bench-clients bench-early bench-engines bench-pull bench-rdma fuzz fuzzers lint format format-check install uninstall clean
.SECONDARY:
