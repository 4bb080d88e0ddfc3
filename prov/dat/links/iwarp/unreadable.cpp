// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Payload that the sender leaves where it is, and that cannot be read: of a request, or of a
// region that was unmapped since it was registered. See sender.h.
#include "engine/touchable.h"
#include "links/iwarp/sender.h"

#include <algorithm>
#include <cerrno>

namespace dat::iwarp {

// The kernel takes what it can read up to some point of its own, or nothing where that point is
// before the first byte: which frame it stumbled over is looked for here.
void Sender::Batch::keep_readable() {
    cut = true;
    std::size_t good = 0; // bytes before the first vector that is not
    std::size_t vector = 0;
    for (; vector < vector_count; ++vector) {
        const iovec& piece = vectors[vector];
        if (engine::find_untouchable(reinterpret_cast<std::uintptr_t>(piece.iov_base),
                                     piece.iov_len, engine::Touch::read)) {
            break;
        }
        good += piece.iov_len;
    }
    while (frame_count > 0 && (vector == vector_count || frames[frame_count - 1].end > good)) {
        --frame_count;
        vector = 0;
    }
    bytes = frame_count > 0 ? frames[frame_count - 1].end : 0;
    std::size_t left = bytes;
    for (vector_count = 0; left > 0; ++vector_count) {
        iovec& piece = vectors[vector_count];
        piece.iov_len = std::min(piece.iov_len, left);
        left -= piece.iov_len;
    }
}

Sender::Result Sender::unreadable(const Cursor& after) {
    const bool response =
        after.response != cursor_.response || after.response_offset != cursor_.response_offset;
    if (!response) {
        error_ = EFAULT; // of current()
        return Result::dead;
    }
    refusal_ = engine::Refusal::out_of_range;
    return Result::refused;
}

// Copies bytes [from, to) of the batch.
bool Sender::keep_rest(const Batch& batch, std::size_t from, std::size_t to) {
    const auto headers = domain_.out_scratch();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < batch.vector_count && begin < to; ++i) {
        const iovec& vector = batch.vectors[i];
        const std::size_t end = begin + vector.iov_len;
        const auto* base = static_cast<const std::byte*>(vector.iov_base);
        if (end > from) {
            const std::byte* const first = base + (std::max(from, begin) - begin);
            const std::byte* const last = base + (std::min(to, end) - begin);
            const auto size = static_cast<std::size_t>(last - first);
            const bool own = first >= headers.data() && first < headers.data() + headers.size();
            if (own) {
                rest_.insert(rest_.end(), first, last);
            } else {
                rest_.resize(rest_.size() + size);
                if (!engine::copy_if_readable(rest_.data() + rest_.size() - size, first, size)) {
                    rest_.clear();
                    return false;
                }
            }
        }
        begin = end;
    }
    return true;
}

} // namespace dat::iwarp
