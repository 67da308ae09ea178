# SPDX-License-Identifier: Apache-2.0
#
# make              build/rftp and build/rftpd
# make check        every test that needs no RDMA device
# make bench        speed against peers, in one run, as a table
# make install      DESTDIR= prefix=/usr/local
# make SAN=address,undefined check     the same under sanitizers (SAN=thread: data races)
# make V=1          show the commands

prefix      ?= /usr/local
bindir      ?= $(prefix)/bin
sbindir     ?= $(prefix)/sbin
mandir      ?= $(prefix)/share/man
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
LDLIBS      := -laio -lz -pthread
CLIENT_LIBS := -lreadline

Q           := $(if $(V),,@)
say          = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)')

LIB_SRC     := $(wildcard proto/*.c middleware/*/*.c)
CLIENT_SRC  := $(wildcard rftp/*.c)
DAEMON_SRC  := $(wildcard rftpd/*.c)
TEST_SRC    := $(wildcard tests/unit/*.c tests/property/*.c tests/fabric/*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/*.c)

obj          = $(patsubst %.c,$(B)/%.o,$(1))
# main.c stays out of the archives, so that tests can link the rest of each program
LIB         := $(B)/librftp.a
CLIENT_LIB  := $(B)/librftp-client.a
DAEMON_LIB  := $(B)/librftp-daemon.a
TESTS       := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))

all: $(B)/rftp $(B)/rftpd

$(LIB): $(call obj,$(LIB_SRC))
$(CLIENT_LIB): $(call obj,$(filter-out rftp/main.c,$(CLIENT_SRC)))
$(DAEMON_LIB): $(call obj,$(filter-out rftpd/main.c,$(DAEMON_SRC)))
$(LIB) $(CLIENT_LIB) $(DAEMON_LIB):
	$(call say,AR,$@)
	$(Q)rm -f $@; ar crs $@ $^

$(B)/rftp: $(B)/rftp/main.o $(CLIENT_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(CLIENT_LIBS) $(LDLIBS)

$(B)/rftpd: $(B)/rftpd/main.o $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(LDLIBS)

# one test program, one source file
$(TESTS): $(B)/tests/%: $(B)/tests/%.o $(CLIENT_LIB) $(DAEMON_LIB) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -o $@ $^ $(LDFLAGS) $(CLIENT_LIBS) $(LDLIBS)

$(B)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(RFTP_CFLAGS) -c -o $@ $<

clean:
	rm -rf build build-*

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all clean
.SECONDARY:
