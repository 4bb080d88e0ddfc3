// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which dat.conf is read, and what is in it.
#ifndef DAT_SHIM_CONF_FILE_H
#define DAT_SHIM_CONF_FILE_H

#include "dat-shim/conf.h"

#include <string>
#include <utility>
#include <vector>

namespace dat::shim {

struct ConfFile {
    std::string path; // empty: there is none
    std::vector<ConfEntry> entries;
    std::vector<ConfProblem> problems; // one for each line that is left out
    std::vector<std::pair<std::string, std::string>> unreadable; // files, and why
};

// The file for API version `major`. 1.2 comes from Solaris, which has it in a folder of its own
// (U-49). Where DAT_OVERRIDE names one, no other is looked for. Throws std::bad_alloc, also where
// no descriptor is left.
ConfFile read_conf_file(unsigned major);

} // namespace dat::shim

#endif
