// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See conf_file.h.
#include "dat-shim/conf_file.h"

#include "engine/kernel.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace dat::shim {
namespace {

constexpr std::size_t kLongest = std::size_t{4} << 20; // bytes of a dat.conf

struct Descriptor {
    int fd;
    ~Descriptor() { close(fd); }
};

struct Contents {
    std::optional<std::string> text; // nothing: `why` says why
    std::string why;
    bool missing = false; // there is no such file
};

bool is_exhausted(int error) { return error == EMFILE || error == ENFILE; }

Contents unreadable(int error) { return {std::nullopt, std::strerror(error), error == ENOENT}; }

// What may block, or never ends, is not even opened: opening a device may do something. /dev/null
// is how one says that there is to be no file.
Contents not_regular(const struct stat& status) {
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) {
        return {std::string(), {}, false};
    }
    return S_ISDIR(status.st_mode)
               ? unreadable(EISDIR)
               : Contents{std::nullopt, "not a regular file, which it has to be", false};
}

Contents contents_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        return unreadable(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return not_regular(status);
    }
    const Descriptor file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (file.fd < 0 && is_exhausted(errno)) {
        throw std::bad_alloc(); // it is read the next time
    }
    if (file.fd < 0 || fstat(file.fd, &status) != 0) {
        return unreadable(errno);
    }
    if (!S_ISREG(status.st_mode)) { // it is another one by now
        return not_regular(status);
    }
    // The size may be 0, as in /proc, or grow meanwhile.
    std::string text;
    char part[4096];
    while (text.size() <= kLongest) {
        const ssize_t size = read(file.fd, part, sizeof part);
        if (size == 0) {
            return {std::move(text), {}, false};
        }
        if (size > 0) {
            text.append(part, static_cast<std::size_t>(size));
        } else if (errno != EINTR) {
            return unreadable(errno);
        }
    }
    return {std::nullopt, "longer than " + std::to_string(kLongest) + " bytes", false};
}

} // namespace

ConfFile read_conf_file(unsigned major) {
    const kernel::NoCancel within;
    std::vector<std::string> paths{"/etc/dat.conf", "/etc/dat/dat.conf"};
    if (major == 1) {
        std::swap(paths.front(), paths.back());
    }
    const char* const given = std::getenv("DAT_OVERRIDE");
    if (given) {
        paths = {given};
    }
    ConfFile file;
    for (const std::string& path : paths) {
        const Contents contents = contents_of(path);
        if (!contents.text) {
            if (given || !contents.missing) { // neither of the others has to be there
                file.unreadable.emplace_back(path, contents.why);
            }
            continue;
        }
        file.path = path;
        file.entries = parse_conf(
            *contents.text, [&](const ConfProblem& problem) { file.problems.push_back(problem); });
        break;
    }
    return file;
}

} // namespace dat::shim
