// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Unit tests of verbs/trailer: private data in frames of fixed size (U-63).
#include "links/verbs/trailer.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <vector>

using namespace dat::verbs;

namespace {

using Frame = std::vector<std::byte>;

Frame data_of(std::size_t size) {
    Frame data(size);
    for (std::size_t i = 0; i < size; ++i) {
        data[i] = std::byte((i * 7 + 1) & 0xff);
    }
    return data;
}

Frame padded(const Frame& data, std::size_t size) {
    Frame frame(size, std::byte{0xee});
    pad(data, frame);
    return frame;
}

} // namespace

Test(verbs_trailer, data_of_every_size_in_every_frame__comes_back_exactly) {
    for (const std::size_t size : {kRequestFrame, kReplyFrame, kRejectFrame}) {
        for (std::size_t length = 0; length + kTrailer <= size; ++length) {
            const Frame data = data_of(length);
            const Frame frame = padded(data, size);
            const Content content = content_of(frame);
            cr_assert(content.trailed && !content.refusal);
            cr_assert(std::ranges::equal(content.data, data), "%zu of %zu", length, size);
        }
    }
}

// Data that ends in zeros is not taken for padding.
Test(verbs_trailer, data_that_is_all_zero__keeps_its_length) {
    const Frame frame = padded(Frame(17), kRequestFrame);
    cr_assert_eq(content_of(frame).data.size(), 17);
}

Test(verbs_trailer, frame_of_another_program__is_given_whole) {
    const Frame frame = data_of(kRequestFrame);
    const Content content = content_of(frame);
    cr_assert(!content.trailed && content.data.size() == frame.size());
    const Frame zeros(kReplyFrame);
    cr_assert(!content_of(zeros).trailed && content_of(zeros).data.size() == zeros.size());
    cr_assert_eq(content_of({}).data.size(), 0);
    cr_assert_eq(content_of(Frame(3)).data.size(), 3);
}

Test(verbs_trailer, any_bit_that_differs__is_noticed_or_is_data) {
    const std::size_t length = 20;
    const Frame data = data_of(length);
    const Frame frame = padded(data, kRequestFrame);
    for (std::size_t bit = length * 8; bit < frame.size() * 8; ++bit) {
        Frame changed = frame;
        changed[bit / 8] ^= std::byte(1 << bit % 8);
        cr_assert_not(content_of(changed).trailed, "bit %zu", bit);
    }
}

// A frame of one kind is none of another: the check covers the size.
Test(verbs_trailer, trailer_of_a_frame_of_another_size__is_none) {
    Frame frame = padded({}, kRequestFrame);
    frame.insert(frame.begin(), kRejectFrame - kRequestFrame, std::byte{0});
    cr_assert_not(content_of(frame).trailed);
}

// EP-42: nobody listens, as different from a Consumer who rejects without data.
Test(verbs_trailer, refusal__is_no_reject_without_data) {
    Frame frame(kRejectFrame, std::byte{0xee});
    pad_refusal(frame);
    cr_assert(content_of(frame).refusal && content_of(frame).data.empty());
    cr_assert_not(content_of(padded({}, kRejectFrame)).refusal);
}
