// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Terminate messages with arbitrary fields, and arbitrary bytes as one
// (RFC 5040 4.8).
#include "links/iwarp/terminate.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <array>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

Test(wire_terminate, any_code_and_copies__survive_the_wire) {
    cr_expect(rc::check([] {
        const auto octets =
            *rc::gen::container<std::vector<std::uint8_t>>(46, rc::gen::arbitrary<std::uint8_t>());
        const Bytes raw = from_octets(octets);
        const bool has_header = *rc::gen::arbitrary<bool>();
        const std::size_t size =
            (raw[0] & std::byte{0x80}) != std::byte{0} ? kDdpTaggedHeaderSize : kDdpMaxHeaderSize;
        Terminate sent{};
        sent.code = static_cast<TerminateCode>(*rc::gen::arbitrary<std::uint16_t>());
        sent.has_ddp_length = has_header || *rc::gen::arbitrary<bool>();
        sent.ddp_length = sent.has_ddp_length ? *rc::gen::arbitrary<std::uint16_t>() : 0;
        if (has_header) {
            sent.ddp_header = std::span(raw).first(size);
            if (*rc::gen::arbitrary<bool>()) {
                sent.read_request = std::span(raw).last(28);
            }
        }
        Terminate got;
        std::array<std::byte, kTerminateMaxSize> out{};
        const Bytes wire = cut(out, encode_terminate(sent, out));
        RC_ASSERT(decode_terminate(wire, got));
        RC_ASSERT(got.code == sent.code);
        RC_ASSERT(got.has_ddp_length == sent.has_ddp_length);
        RC_ASSERT(got.ddp_length == sent.ddp_length);
        RC_ASSERT(copy(got.ddp_header) == copy(sent.ddp_header));
        RC_ASSERT(copy(got.read_request) == copy(sent.read_request));
    }));
}

Test(wire_terminate, arbitrary_bytes__are_decoded_within_their_bounds) {
    cr_expect(rc::check([] {
        const Bytes payload = from_octets(*rc::gen::arbitrary<std::vector<std::uint8_t>>());
        const Bytes exact = cut(payload, payload.size());
        Terminate out;
        RC_ASSERT(decode_terminate(exact, out) == (exact.size() >= 4));
        RC_ASSERT(out.ddp_header.size() + out.read_request.size() <= exact.size());
        RC_ASSERT(text(out.code) != nullptr);
    }));
}
