/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_values: how each setting is read from a text and shown as one.
 *
 * For rftp/settings alone, whose table names them.  Set: 0, or -EINVAL and `why` says what it may
 * be.  Show: what set would take.
 */
#ifndef RFTP_SETTINGS_VALUES_H
#define RFTP_SETTINGS_VALUES_H

#include "rftp/settings.h"

#define SETTINGS_VALUE(name)                                                                       \
	int settings_set_##name(struct settings *, const char *value, struct text *why);           \
	void settings_show_##name(const struct settings *, struct text *out)

SETTINGS_VALUE(fabric);
SETTINGS_VALUE(engine);
SETTINGS_VALUE(channels);
SETTINGS_VALUE(block);
SETTINGS_VALUE(depth);
SETTINGS_VALUE(direct);
SETTINGS_VALUE(connect_timeout);
SETTINGS_VALUE(retries);
SETTINGS_VALUE(timeout);
SETTINGS_VALUE(priority);
SETTINGS_VALUE(deadline);
SETTINGS_VALUE(limit_rate);
SETTINGS_VALUE(segment);
SETTINGS_VALUE(resume);
SETTINGS_VALUE(inline_max);
SETTINGS_VALUE(retry_time);
SETTINGS_VALUE(stall_timeout);
SETTINGS_VALUE(stop_on_error);
SETTINGS_VALUE(failures);
SETTINGS_VALUE(retry_from);
SETTINGS_VALUE(fsync);
SETTINGS_VALUE(verify);
SETTINGS_VALUE(early);
SETTINGS_VALUE(drop);
SETTINGS_VALUE(verbosity);
SETTINGS_VALUE(host_keys);
SETTINGS_VALUE(host_key);
SETTINGS_VALUE(ca);
SETTINGS_VALUE(known_hosts);
SETTINGS_VALUE(user);
SETTINGS_VALUE(ssh);
SETTINGS_VALUE(rftpd_path);
SETTINGS_VALUE(identity);
SETTINGS_VALUE(cert);
SETTINGS_VALUE(key);
SETTINGS_VALUE(password_file);
SETTINGS_VALUE(password_command);
SETTINGS_VALUE(links);
SETTINGS_VALUE(protect);
SETTINGS_VALUE(crc);
SETTINGS_VALUE(recursive);
SETTINGS_VALUE(replace);
SETTINGS_VALUE(update);
SETTINGS_VALUE(ignore_existing);
SETTINGS_VALUE(filter);
SETTINGS_VALUE(compare);
SETTINGS_VALUE(delete);
SETTINGS_VALUE(max_delete);
SETTINGS_VALUE(offset);
SETTINGS_VALUE(files_from);
SETTINGS_VALUE(from0);
SETTINGS_VALUE(detect_renames);
SETTINGS_VALUE(dry_run);
SETTINGS_VALUE(json);
SETTINGS_VALUE(owner);
SETTINGS_VALUE(group);
SETTINGS_VALUE(numeric_ids);
SETTINGS_VALUE(xattrs);
SETTINGS_VALUE(acls);
SETTINGS_VALUE(parents);
SETTINGS_VALUE(compress);
SETTINGS_VALUE(hard_links);
SETTINGS_VALUE(preallocate);

#undef SETTINGS_VALUE

#endif
