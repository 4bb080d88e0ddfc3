// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that begins with a page, so that every run copies from and to places that are
// aligned alike; touched, and all zero.
#ifndef DAT_UTIL_PERF_BUFFER_H
#define DAT_UTIL_PERF_BUFFER_H

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace dat::perf {

class Buffer {
  public:
    explicit Buffer(std::size_t size)
        : size_((size + kPage) / kPage * kPage),
          data_(static_cast<char*>(std::aligned_alloc(kPage, size_))) {
        if (!data_) {
            throw std::bad_alloc();
        }
        std::memset(data_.get(), 0, size_);
    }
    char* data() { return data_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(char* p) const { std::free(p); }
    };
    static constexpr std::size_t kPage = 4096;

    std::size_t size_;
    std::unique_ptr<char, Free> data_;
};

} // namespace dat::perf

#endif
