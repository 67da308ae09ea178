/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of PAM: the user is who has that name in small letters, as modules of directories have
 * it that do not tell them from capitals.
 */
#include <ctype.h>
#include <security/pam_modules.h>
#include <stdio.h>

int pam_sm_authenticate(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	const char *user;
	char small[256];
	int err = pam_get_user(pam, &user, NULL);

	(void)flags;
	(void)argc;
	(void)argv;
	if (err != PAM_SUCCESS)
		return err;
	snprintf(small, sizeof small, "%s", user);
	for (char *c = small; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return pam_set_item(pam, PAM_USER, small);
}

int pam_sm_setcred(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	(void)pam;
	(void)flags;
	(void)argc;
	(void)argv;
	return PAM_SUCCESS;
}
