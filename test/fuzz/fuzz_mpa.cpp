// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: request and reply frames of MPA. Input: an octet that says which kind
// is expected, then the stream.
#include "input.h"

#include "links/iwarp/mpa.h"

#include <array>

using namespace dat::iwarp;

namespace {

bool same(const MpaFrame& a, const MpaFrame& b) {
    return a.kind == b.kind && a.revision == b.revision && a.markers == b.markers &&
           a.crc == b.crc && a.reject == b.reject && a.from_dat == b.from_dat && a.wide == b.wide &&
           a.enhanced == b.enhanced &&
           std::equal(a.private_data.begin(), a.private_data.end(), b.private_data.begin(),
                      b.private_data.end());
}

bool has_frame(const MpaParse& parse) {
    return parse.status == MpaStatus::complete || parse.error == MpaError::markers_demanded;
}

// As a reader does it: never more bytes than were asked for. It ends within the
// frame's largest size and says what a parse of the whole says.
MpaParse read_stepwise(MpaKind kind, std::span<const std::byte> stream, fuzz::Bytes& frame) {
    for (;;) {
        const MpaParse parse = parse_mpa_frame(kind, frame);
        if (parse.status != MpaStatus::need_more) {
            return parse;
        }
        FUZZ_CHECK(parse.size > 0 && frame.size() + parse.size <= kMpaMaxFrameSize);
        const std::size_t there = stream.size() - frame.size();
        if (there == 0) {
            return parse;
        }
        const auto more = stream.subspan(frame.size(), std::min(parse.size, there));
        frame.insert(frame.end(), more.begin(), more.end());
    }
}

void check_frame(const MpaParse& parse, std::span<const std::byte> stream) {
    FUZZ_CHECK(parse.size <= stream.size() && parse.size >= kMpaHeaderSize);
    const auto* begin = parse.frame.private_data.data();
    FUZZ_CHECK(parse.frame.private_data.empty() ||
               (begin >= stream.data() &&
                begin + parse.frame.private_data.size() == stream.data() + parse.size));
    std::array<std::byte, kMpaMaxFrameSize> again;
    const std::size_t size = encode_mpa_frame(parse.frame, again);
    FUZZ_CHECK(size == parse.size || parse.frame.reject);
    if (size > 0) {
        const MpaParse second = parse_mpa_frame(parse.frame.kind, {again.data(), size});
        FUZZ_CHECK(has_frame(second) && same(second.frame, parse.frame));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const MpaKind kind = (input.octet() & 1) != 0 ? MpaKind::reply : MpaKind::request;
    const fuzz::Bytes stream = input.rest();
    const MpaParse whole = parse_mpa_frame(kind, stream);
    FUZZ_CHECK(text(whole.error) != nullptr);

    fuzz::Bytes frame;
    const MpaParse stepwise = read_stepwise(kind, stream, frame);
    FUZZ_CHECK(stepwise.status == whole.status && stepwise.error == whole.error);
    FUZZ_CHECK(stepwise.value == whole.value);
    if (has_frame(whole)) {
        FUZZ_CHECK(stepwise.size == whole.size && same(stepwise.frame, whole.frame));
        check_frame(whole, stream);
    }
    return 0;
}
