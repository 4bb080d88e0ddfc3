// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Makes a process one whose memory others may not read, or that cannot name them.
#ifndef DAT_TEST_TRANSPORT_DISGUISE_H
#define DAT_TEST_TRANSPORT_DISGUISE_H

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sched.h>
#include <string>

namespace dat::test {

// DAT_PEER_AS: `nobody`, another user; `undumpable`; `pid_namespace`, in one of its own;
// not set: as it is. Before there are threads. False: not permitted.
inline bool disguise() {
    const char* as = std::getenv("DAT_PEER_AS");
    const std::string name = as ? as : "";
    if (name == "nobody")
        return setgid(65534) == 0 && setuid(65534) == 0;
    if (name == "undumpable")
        return prctl(PR_SET_DUMPABLE, 0) == 0;
    if (name == "pid_namespace") {
        if (unshare(CLONE_NEWPID) != 0)
            return false;
        const pid_t child = fork();
        if (child > 0) { // goes with its first process
            int status = 0;
            waitpid(child, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return child == 0;
    }
    return true;
}

} // namespace dat::test

#endif
