/* SPDX-License-Identifier: Apache-2.0 */
/* session/tls_sign: base64, keys in ssh's form, and signatures (RFC 8032, 7.1). */
#include "tests/harness.h"
#include "tests/samples.h"

#include "session/tls_sign.h"

static ssize_t decode(const char *text, const char *expected)
{
	uint8_t out[64];
	ssize_t n = tls_base64_decode(text, strlen(text), out, sizeof out);

	if (n >= 0 && (strlen(expected) != (size_t)n || memcmp(out, expected, (size_t)n) != 0))
		return -1;
	return n;
}

static void base64(void)
{
	static const char *const bad[] = {"Z", "Zm", "Zm9",
		"Zg=", "Z===", "====", "Zg==Zg==", "Zm9v=", "Zh==", "Zm9=", "Zm 9v", "Zm9-",
		"Zm9v\n"};
	uint8_t out[2];

	CHECK_EQ(decode("", ""), 0);
	CHECK_EQ(decode("Zg==", "f"), 1);
	CHECK_EQ(decode("Zm8=", "fo"), 2);
	CHECK_EQ(decode("Zm9v", "foo"), 3);
	CHECK_EQ(decode("Zm9vYg==", "foob"), 4);
	CHECK_EQ(decode("Zm9vYmE=", "fooba"), 5);
	CHECK_EQ(decode("Zm9vYmFy", "foobar"), 6);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (decode(bad[i], "") != -EINVAL)
			printf("# %s\n", bad[i]);
		CHECK_EQ(decode(bad[i], ""), -EINVAL);
	}
	CHECK_EQ(tls_base64_decode("Zm9v", 4, out, 2), -EINVAL);
	CHECK_EQ(tls_base64_decode("Zm8=", 4, out, 2), 2);
}

static void keys(void)
{
	static const char line[] =
		"AAAAC3NzaC1lZDI1NTE5AAAAIJSZ9HHmMVhc1MBtqqUK5RC/gyCG6zHQTCOfCFfnQ8tR";
	struct tls_key key, other;

	CHECK_EQ(tls_key_from_base64(&key, line, strlen(line)), 0);
	CHECK(!strcmp(key.type, "ssh-ed25519") && key.len == 51);
	CHECK_EQ(tls_key_from_blob(&other, key.blob, key.len), 0);
	CHECK(tls_key_equal(&key, &other));
	CHECK_EQ(tls_key_from_blob(&other, key.blob, key.len - 1), -EINVAL);
	key.blob[4] = 'S';
	CHECK_EQ(tls_key_from_blob(&other, key.blob, key.len), -EINVAL);
	CHECK_EQ(tls_key_from_base64(&key, line, strlen(line) - 4), -EINVAL);
	CHECK_EQ(tls_key_from_base64(&key, "AAAA", 4), -EINVAL);
}

/* Test 3 of RFC 8032 */
static void signatures(void)
{
	static const uint8_t message[] = {0xaf, 0x82};
	uint8_t seed[32], public[32], expected[64], signature[64];
	struct tls_key key;

	CHECK_EQ(sample_parse(
			 "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", seed),
		32);
	CHECK_EQ(sample_parse("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
			 public),
		32);
	CHECK_EQ(sample_parse("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
			      "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
			 expected),
		64);
	CHECK_EQ(tls_key_from_seed(&key, seed), 0);
	CHECK(!memcmp(key.blob + key.len - 32, public, 32));
	CHECK_EQ(tls_sign(seed, message, 2, signature), 0);
	CHECK(!memcmp(signature, expected, 64));
	CHECK(tls_verify(&key, message, 2, signature, 64));
	CHECK(!tls_verify(&key, message, 1, signature, 64));
	CHECK(!tls_verify(&key, message, 2, signature, 63));
	for (unsigned bit = 0; bit < 512; bit += 7) {
		signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK(!tls_verify(&key, message, 2, signature, 64));
		signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	key.blob[key.len - 1] ^= 1;
	CHECK(!tls_verify(&key, message, 2, signature, 64));
	key.len--;
	CHECK(!tls_verify(&key, message, 2, signature, 64));
}

HARNESS_MAIN({"base64", base64}, {"keys", keys}, {"signatures", signatures})
