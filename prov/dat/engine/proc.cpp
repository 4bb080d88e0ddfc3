// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See proc.h.
#include "engine/proc.h"

#include "engine/kernel.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>

namespace dat::engine {

std::string_view text_of(const char* file, std::span<char> room) noexcept {
    const kernel::NoCancel while_reading;
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return {};
    }
    const ssize_t size = kernel::read(fd, room.data(), room.size());
    kernel::close(fd);
    return {room.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

int number_in(const char* file, const char* key) noexcept {
    std::array<char, 4096> text{}; // ends with a 0
    if (text_of(file, std::span(text).first(text.size() - 1)).empty()) {
        return -1;
    }
    const char* const at = std::strstr(text.data(), key);
    return at ? std::atoi(at + std::strlen(key)) : -1;
}

} // namespace dat::engine
