// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: private data in frames of fixed size (U-63). Input: an octet that chooses the
// size of the frame and what is done, then the frame or the data.
#include "input.h"

#include "links/verbs/trailer.h"

using namespace dat::verbs;
using fuzz::Bytes;
using fuzz::Input;

namespace {

// A frame of anything: what is read out of it is in it, and would make the same frame.
void check_frame(const Bytes& frame) {
    const Content content = content_of(frame);
    FUZZ_CHECK(content.data.size() <= frame.size());
    FUZZ_CHECK(content.data.empty() || content.data.data() == frame.data());
    if (!content.trailed) {
        FUZZ_CHECK(!content.refusal && content.data.size() == frame.size());
        return;
    }
    FUZZ_CHECK(frame.size() >= kTrailer);
    FUZZ_CHECK(!content.refusal || content.data.empty());
    Bytes again(frame.size(), std::byte{0xee});
    if (content.refusal) {
        pad_refusal(again);
    } else {
        pad(content.data, again);
    }
    FUZZ_CHECK(again == frame);
}

// Data comes back as it was; a frame with some bytes changed is another or none.
void check_data(Input& input, std::size_t size) {
    Bytes data = input.bytes(input.octet());
    data.resize(std::min(data.size(), size - kTrailer));
    Bytes frame(size, std::byte{0xee});
    pad(data, frame);
    const Content content = content_of(frame);
    FUZZ_CHECK(content.trailed && !content.refusal);
    FUZZ_CHECK(std::ranges::equal(content.data, data));
    while (!input.empty()) {
        const std::uint8_t at = input.octet();
        frame[at % size] ^= static_cast<std::byte>(input.octet());
    }
    check_frame(frame);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kFrames[] = {kRequestFrame, kReplyFrame, kRejectFrame};
    Input input(data, size);
    const std::uint8_t how = input.octet();
    if ((how & 4) != 0) {
        check_data(input, kFrames[how % 3]);
    } else if ((how & 3) == 3) {
        check_frame(input.rest()); // of any size
    } else {
        Bytes frame = input.rest();
        frame.resize(kFrames[how & 3]);
        check_frame(frame);
    }
    return 0;
}
