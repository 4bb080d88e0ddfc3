// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See machine.h.
#include "machine.h"

#include "pair.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <rdma/fabric.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace dat::perf {
namespace {

std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return "unknown";
}

std::string kernel() {
    utsname name{};
    ::uname(&name);
    return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string libfabric() {
    const std::uint32_t version = fi_version();
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::string load() {
    std::array<double, 1> one{};
    return ::getloadavg(one.data(), 1) == 1 ? std::to_string(one[0]).substr(0, 4) : "unknown";
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%F %R", &parts);
    return text;
}

std::string pinning() {
    return two_processors() ? "each process of a pair to a processor of its own"
                            : "no: this process may use one processor alone, so the two share it";
}

} // namespace

Facts machine() {
    return {{"processor",
             processor() + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " online"},
            {"kernel", kernel()},
            {"libfabric", libfabric()},
            {"pinned", pinning()},
            {"load before", load()},
            {"date", today()}};
}

} // namespace dat::perf
