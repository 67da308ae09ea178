/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/children: the processes that a process without threads has started, and how many of them
 * there are: the monitor's and the lookup keeper's, which bound their number.
 */
#ifndef RFTPD_CHILDREN_H
#define RFTPD_CHILDREN_H

/* From here on those that end are reaped, and counted. */
void children_watch(void);
/* fork(2), unless there are `most`: the child's 0, its number, or -1.  The child has no children
 * yet, and SIGCHLD is as it was before children_watch: it may start programs. */
int children_fork(unsigned most);

#endif
