// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The descriptors that the process has open.
#ifndef DAT_TEST_ATTACK_OPEN_DESCRIPTORS_H
#define DAT_TEST_ATTACK_OPEN_DESCRIPTORS_H

#include <cstdlib>
#include <dirent.h>
#include <set>
#include <sys/stat.h>

namespace dat::test {

// But pipes: `dat` has none, and UBSan opens one whenever it looks at the type of an object.
inline std::set<int> open_descriptors() {
    std::set<int> open;
    DIR* const folder = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(folder)) {
        struct stat what {};
        if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(folder) &&
            fstatat(dirfd(folder), entry->d_name, &what, 0) == 0 && !S_ISFIFO(what.st_mode)) {
            open.insert(std::atoi(entry->d_name));
        }
    }
    closedir(folder);
    return open;
}

} // namespace dat::test

#endif
