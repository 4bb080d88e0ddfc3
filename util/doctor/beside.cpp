// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See beside.h.
#include "doctor/beside.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>

namespace dat::doctor {

void Beside::tell(const std::string& line) const {
    const std::string whole = line + "\n";
    for (std::size_t at = 0; at < whole.size();) {
        const ssize_t n = ::send(fd_, whole.data() + at, whole.size() - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            throw std::runtime_error(kOtherHasEnded);
        }
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

// Looks at what is there, and takes no more than the line.
bool Beside::heard(std::string& line, Clock::time_point limit) const {
    std::array<char, 1024> there; // longer than any line
    const ssize_t n = ::recv(fd_, there.data(), there.size(), MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        throw std::runtime_error(kOtherHasEnded);
    }
    const std::size_t size = n > 0 ? static_cast<std::size_t>(n) : 0;
    const auto* const end = static_cast<const char*>(std::memchr(there.data(), '\n', size));
    if (!end) {
        if (size == there.size()) {
            throw std::runtime_error("the other side says what is not understood");
        }
        if (Clock::now() >= limit) {
            throw std::runtime_error("the other side says nothing");
        }
        return false;
    }
    line.assign(there.data(), static_cast<std::size_t>(end - there.data()));
    return ::recv(fd_, there.data(), line.size() + 1, MSG_DONTWAIT) > 0;
}

std::optional<std::string> Beside::hear_within(std::chrono::milliseconds time) const {
    const auto limit = Clock::now() + time;
    std::string line;
    while (!heard(line, Clock::time_point::max())) {
        if (Clock::now() >= limit) {
            return std::nullopt;
        }
        sleep(20ms);
    }
    return line;
}

void Beside::sleep(std::chrono::milliseconds limit) const {
    pollfd waiting{fd_, POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(limit.count()));
}

std::string to_hex(const std::string& bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string word;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        word += kDigits[value >> 4];
        word += kDigits[value & 15];
    }
    return word;
}

std::string from_hex(const std::string& word) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < word.size(); at += 2) {
        unsigned value = 0;
        const char* const end = word.data() + at + 2;
        if (std::from_chars(word.data() + at, end, value, 16).ptr != end) {
            return {};
        }
        bytes += static_cast<char>(value);
    }
    return bytes;
}

} // namespace dat::doctor
