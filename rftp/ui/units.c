/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/units.c: owns nothing.
 */
#include "rftp/ui/units.h"

#include <stdio.h>
#include <string.h>

void units_format_size(uint64_t bytes, char out[UNITS_TEXT_MAX])
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int i = -1;

	if (bytes < 1024) {
		snprintf(out, UNITS_TEXT_MAX, "%u B", (unsigned)bytes);
		return;
	}
	do {
		value /= 1024;
		i++;
	} while (value >= 1023.95 && i < 5);
	/* block sizes and the like are shown as they were given */
	if (bytes % 1024 == 0 && value == (double)(uint64_t)value)
		snprintf(out, UNITS_TEXT_MAX, "%.0f %s", value, names[i]);
	else
		snprintf(out, UNITS_TEXT_MAX, "%.1f %s", value, names[i]);
}

void units_format_short(uint64_t bytes, char out[UNITS_TEXT_MAX])
{
	static const char letters[] = "KMGTPE";
	double value = (double)bytes;
	int i = -1;

	if (bytes < 1024) {
		snprintf(out, UNITS_TEXT_MAX, "%u", (unsigned)bytes);
		return;
	}
	do {
		value /= 1024;
		i++;
	} while (value >= 999.5 && i < 5);
	snprintf(out, UNITS_TEXT_MAX, value < 9.95 ? "%.1f%c" : "%.0f%c", value, letters[i]);
}

void units_format_rate(double rate, char out[UNITS_TEXT_MAX])
{
	static const char *const names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
	int i = 0;

	if (!(rate > 0))
		rate = 0;
	while (rate >= 999.5 && i < 4) {
		rate /= 1000;
		i++;
	}
	snprintf(out, UNITS_TEXT_MAX,
		i == 0 || rate >= 99.95 ? "%.0f %s"
		: rate >= 9.995         ? "%.1f %s"
					: "%.2f %s",
		rate, names[i]);
}

void units_format_amount(uint64_t bytes, char out[UNITS_TEXT_MAX])
{
	units_format_rate((double)bytes, out);
	*strstr(out, "/s") = '\0';
}

void units_format_duration(double seconds, char out[UNITS_TEXT_MAX])
{
	unsigned long s;

	if (!(seconds >= 0) || seconds > 359999) {
		snprintf(out, UNITS_TEXT_MAX, "--:--");
		return;
	}
	s = (unsigned long)(seconds + 0.5);
	if (s >= 3600)
		snprintf(out, UNITS_TEXT_MAX, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(out, UNITS_TEXT_MAX, "%lu:%02lu", s / 60, s % 60);
}
