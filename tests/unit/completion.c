/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/completion: what Tab offers without a server: commands, settings, local names.
 */
#include "tests/harness.h"

#include "rftp/shell/commands.h"
#include "rftp/shell/completion.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;

/* The names found, each followed by ','. */
static const char *offers(const char *line)
{
	static struct text out;
	struct completions found;

	text_clear(&out);
	if (completion_find(&client, line, strlen(line), &found))
		return "error";
	for (size_t i = 0; i < found.count; i++)
		text_printf(&out, "%s,", found.names[i]);
	completions_fini(&found);
	return text_str(&out);
}

static bool gives(const char *line, const char *wanted)
{
	const char *got = offers(line);

	if (strcmp(got, wanted))
		printf("# %s: %s, expected %s\n", line, got, wanted);
	return !strcmp(got, wanted);
}

static void commands(void)
{
	CHECK(gives("rm", "rm,rmdir,"));
	CHECK(gives("pwd; lp", "lpwd,"));
	CHECK(gives("- ben", "bench,"));
	CHECK(gives("help qu", "quit,"));
	CHECK(gives("nothing x", ""));
	CHECK(gives("!ec", ""));
	for (unsigned i = 0; command_at(i); i++) {
		CHECK(strstr(offers(""), command_at(i)->name));
		CHECK(command_find(command_at(i)->name) == command_at(i));
	}
	CHECK(command_find("exit") == command_find("quit"));
	CHECK(!command_find("q"));
}

static int new_client(void)
{
	struct settings defaults;

	settings_init(&defaults);
	return client_init(&client, &defaults);
}

static void settings(void)
{
	CHECK_EQ(new_client(), 0);
	CHECK(gives("set d", "deadline,delete,depth,detect-renames,direct,drop,dry-run,"));
	CHECK(gives("set direct o", "off,on,"));
	CHECK(gives("set block ", "auto,"));
	CHECK(gives("set engine ", "auto,credit,pull,status,window,"));
	CHECK(gives("set fabric s", "soft,"));
	CHECK(gives("set nothing ", ""));
	client_fini(&client);
}

static void local_names(void)
{
	const char *tmp = getenv("TMPDIR");
	char top[256], path[300];
	static const char *const names[] = {"one", "one two", "once\n", ".hidden"};

	snprintf(top, sizeof top, "%s/rftp-completion-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(top));
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/%s", top, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	snprintf(path, sizeof path, "%s/only", top);
	mkdir(path, 0700);
	CHECK_EQ(chdir(top), 0);
	CHECK_EQ(new_client(), 0);
	CHECK(gives("put on", "once\n,one,one two,only/,"));
	CHECK(gives("put -r 'one ", "one two,"));
	CHECK(gives("lcd o", "only/,"));
	CHECK(gives("put .h", ".hidden,"));
	CHECK(gives("put only/", ""));
	CHECK(gives("get x on", "once\n,one,one two,only/,")); /* or remote: there is no session */
	CHECK(gives("get on", ""));
	/* a home directory is meant, unless it is quoted */
	setenv("HOME", top, 1);
	CHECK_EQ(chdir("only"), 0);
	CHECK(gives("put ~/on", "~/once\n,~/one,~/one two,~/only/,"));
	CHECK(gives("lcd ~/o", "~/only/,"));
	CHECK(gives("put '~/on", ""));
	CHECK(gives("put \\~/on", ""));
	CHECK(gives("put ~no-user-of-this-name/on", ""));
	CHECK_EQ(chdir(top), 0);
	client_fini(&client);
	for (size_t i = 0; i < 4; i++)
		unlink(names[i]);
	rmdir("only");
	CHECK_EQ(chdir("/"), 0);
	rmdir(top);
}

HARNESS_MAIN({"commands", commands}, {"settings", settings}, {"local_names", local_names})
