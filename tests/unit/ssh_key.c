/* SPDX-License-Identifier: Apache-2.0 */
/* rftp/remote/ssh_key, ssh_agent and over_ssh: what ssh's programs write. */
#include "tests/harness.h"

#include "rftp/remote/over_ssh.h"
#include "rftp/remote/ssh_agent.h"
#include "rftp/remote/ssh_key.h"
#include "tests/samples.h"

#define BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define END "-----END OPENSSH PRIVATE KEY-----\n"
/* made for this test, and good for nothing else */
#define PLAIN                                                                                      \
	"-----BEGIN OPENSSH PRIVATE KEY-----\n"                                                    \
	"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"                 \
	"QyNTUxOQAAACATPn8arhwKo+ScGg0+6S3+x+qPb1DeYip5i+lnwnMoTwAAAIjE8engxPHp\n"                 \
	"4AAAAAtzc2gtZWQyNTUxOQAAACATPn8arhwKo+ScGg0+6S3+x+qPb1DeYip5i+lnwnMoTw\n"                 \
	"AAAEBlV7VgIKFtL4GuhUYlpjvWlO3eFZ6HySzlO6/3uQyMeRM+fxquHAqj5JwaDT7pLf7H\n"                 \
	"6o9vUN5iKnmL6WfCcyhPAAAABHRlc3QB\n"                                                       \
	"-----END OPENSSH PRIVATE KEY-----\n"
#define LOCKED                                                                                     \
	"-----BEGIN OPENSSH PRIVATE KEY-----\n"                                                    \
	"b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABAYCyGBdz\n"                 \
	"RVg+zfs+N8AUMbAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIBM+fxquHAqj5Jwa\n"                 \
	"DT7pLf7H6o9vUN5iKnmL6WfCcyhPAAAAkLWg74enYvypJJAyMxTcP7Ad7VBoWPWbIRZt/y\n"                 \
	"kWcEpENdVIPYlL+l9jRS+VXREe6npGws/f++x7EV7ymeZfrNFSC8iU5XC/jhqhosIn9DIG\n"                 \
	"B80o4sMQWr2W3IHk0PV9ovx8Zk0CAMe9xleIvRC9qy7JNpF9AJYiY/b90hdVzVhdQFgwGU\n"                 \
	"pOUa7Kc10iIhjKUA==\n"                                                                     \
	"-----END OPENSSH PRIVATE KEY-----\n"
#define ECDSA                                                                                      \
	"-----BEGIN OPENSSH PRIVATE KEY-----\n"                                                    \
	"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS\n"                 \
	"1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQSA7SEILiz2eylX7Xkb1Mi9hnrawvis\n"                 \
	"X96lW9nLSvZQMvl8kYCDKYoWcgFdsMzZ2VGvPiO9ND31b7bsvuc+a4DpAAAAoMn52TfJ+d\n"                 \
	"k3AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIDtIQguLPZ7KVft\n"                 \
	"eRvUyL2GetrC+Kxf3qVb2ctK9lAy+XyRgIMpihZyAV2wzNnZUa8+I700PfVvtuy+5z5rgO\n"                 \
	"kAAAAhALL+AhaCqd/cPMdOyKr8LiY88+NSZc7Xm/PR9sdVdJ5zAAAABHRlc3QBAgM=\n"                     \
	"-----END OPENSSH PRIVATE KEY-----\n"
#define PUBLIC "AAAAC3NzaC1lZDI1NTE5AAAAIBM+fxquHAqj5JwaDT7pLf7H6o9vUN5iKnmL6WfCcyhP"
static char why[SSH_KEY_WHY_MAX];

static void private_keys(void)
{
	static const char pub[] = PUBLIC;
	char broken[sizeof PLAIN];
	struct ssh_key key;
	struct tls_key public;

	CHECK_EQ(tls_key_from_base64(&public, pub, strlen(pub)), 0);
	CHECK_EQ(ssh_key_parse(PLAIN, strlen(PLAIN), &key, why), 0);
	CHECK(!key.encrypted && tls_key_equal(&key.public, &public));
	CHECK_EQ(ssh_key_parse(LOCKED, strlen(LOCKED), &key, why), 0);
	CHECK(key.encrypted && tls_key_equal(&key.public, &public));
	CHECK_EQ(ssh_key_parse(ECDSA, strlen(ECDSA), &key, why), -EOPNOTSUPP);
	CHECK_EQ(ssh_key_parse("", 0, &key, why), -EINVAL);
	CHECK_EQ(ssh_key_parse(BEGIN END, strlen(BEGIN END), &key, why), -EINVAL);
	CHECK_EQ(ssh_key_parse(BEGIN, strlen(BEGIN), &key, why), -EINVAL);
	/* no byte of it can be another, but in the comment */
	for (size_t i = strlen(BEGIN); i < sizeof PLAIN - sizeof END; i++) {
		memcpy(broken, PLAIN, sizeof PLAIN);
		broken[i] = broken[i] == 'A' ? 'B' : 'A';
		if (broken[i] == PLAIN[i] || PLAIN[i] == '\n')
			continue;
		if (!ssh_key_parse(broken, strlen(broken), &key, why))
			CHECK(tls_key_equal(&key.public, &public));
	}
}

static int agent_keys(const char *hex, struct tls_key keys[SSH_AGENT_KEYS_MAX])
{
	uint8_t bytes[4096];

	return ssh_agent_parse_keys(bytes, sample_parse(hex, bytes), keys);
}

static int agent_signature(const char *hex)
{
	uint8_t bytes[4096], signature[64];

	return ssh_agent_parse_signature(bytes, sample_parse(hex, bytes), signature);
}

#define NAME "0000000b 7373682d65643235353139"
#define KEY NAME " 00000020 6b*32"
static void an_agent(void)
{
	struct tls_key keys[SSH_AGENT_KEYS_MAX];

	CHECK_EQ(agent_keys("0c 00000000", keys), 0);
	CHECK_EQ(agent_keys("0c 00000002 00000033 " KEY " 00000001 63 00000004 00000000 00000000",
			 keys),
		1);
	CHECK_EQ(keys[0].len, 51);
	CHECK_EQ(agent_keys("05", keys), 0); /* it has none for us */
	CHECK_EQ(agent_keys("05 00000000", keys), 0);
	CHECK_EQ(agent_keys("0c 00000001", keys), -EPROTO);
	CHECK_EQ(agent_keys("0c 00000001 00000034 " KEY, keys), -EPROTO);
	CHECK_EQ(agent_keys("0c ffffffff 00000033 " KEY " 00000000", keys), -EPROTO);
	CHECK_EQ(agent_keys("", keys), -EPROTO);
	CHECK_EQ(agent_signature("05"), -EACCES);
	CHECK_EQ(agent_signature("0e 00000053 " NAME " 00000040 73*64"), 0);
	CHECK_EQ(agent_signature("0e 00000052 " NAME " 0000003f 73*63"), -EPROTO);
	CHECK_EQ(agent_signature("0e 00000054 " NAME " 00000040 73*65"), -EPROTO);
	CHECK_EQ(agent_signature("0e 00000053 0000000b 73*11 00000040 73*64"), -EPROTO);
	CHECK_EQ(agent_signature("0e"), -EPROTO);
	CHECK_EQ(agent_signature("0c 00000000"), -EPROTO);
}

#define PRINT "SHA256:0123456789012345678901234567890123456789012"
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
static void over_ssh(void)
{
	static const char *const other[] = {"", "hello", "rftp-onc", "rftp-once", "rftp-once2 1"};
	static const char *const bad[] = {"rftp-once ", "rftp-once 2 80 " PRINT " " HEX " ::1",
		"rftp-once 1 0 " PRINT " " HEX " ::1", "rftp-once 1 65536 " PRINT " " HEX " ::1",
		"rftp-once 1 80 MD5:x " HEX " ::1", "rftp-once 1 80 " PRINT " " HEX,
		"rftp-once 1 80 " PRINT " " HEX "0 ::1", "rftp-once 1 80 " PRINT " X" HEX " ::1",
		"rftp-once 1 80 " PRINT " " HEX " ::1 more",
		"rftp-once 1  80 " PRINT " " HEX " ::1",
		"rftp-once 1 80 " PRINT PRINT PRINT " " HEX " ::1"};
	struct over_ssh_line line;

	CHECK_EQ(over_ssh_parse("rftp-once 1 8080 " PRINT " " HEX " 192.0.2.1", &line), 0);
	CHECK_EQ(line.port, 8080);
	CHECK(!strcmp(line.fingerprint, PRINT) && !strcmp(line.address, "192.0.2.1"));
	CHECK_EQ(line.key[1], 0x11);
	CHECK_EQ(line.key[31], 0xff);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		CHECK_EQ(over_ssh_parse(other[i], &line), -ENOENT);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (over_ssh_parse(bad[i], &line) != -EPROTO)
			printf("# %s\n", bad[i]);
		CHECK_EQ(over_ssh_parse(bad[i], &line), -EPROTO);
	}
}

HARNESS_MAIN({"private keys", private_keys}, {"an agent", an_agent}, {"over ssh", over_ssh})
