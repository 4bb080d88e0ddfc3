// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Properties of core::DtoStream, against a naive model.
#include "core/dto_stream.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace dat::core;

namespace {

std::vector<DtoStatus> pop_all(DtoStream& stream) {
    std::vector<DtoStatus> out;
    for (DtoStream::Done done{}; stream.pop(done);) {
        out.push_back(done.status);
    }
    return out;
}

// The same promise, written as plainly as possible.
struct Model {
    struct Op {
        std::uint64_t seq;
        std::optional<DtoStatus> status;
    };
    std::deque<Op> ops;
    std::uint64_t next = 0;
    bool failed = false;

    Op* find(std::uint64_t seq) {
        for (Op& op : ops) {
            if (op.seq == seq) {
                return &op;
            }
        }
        return nullptr;
    }
    bool finish(std::uint64_t seq, DtoStatus status) {
        Op* op = find(seq);
        if (!op || op->status) {
            return false;
        }
        op->status = status;
        return true;
    }
    std::optional<Op> pop() {
        if (ops.empty() || !ops.front().status) {
            return std::nullopt;
        }
        Op op = ops.front();
        ops.pop_front();
        if (failed) {
            op.status = DtoStatus::flushed;
        }
        failed = failed || op.status != DtoStatus::success;
        return op;
    }
};

enum class Step : std::uint8_t { post, finish, flush, pop, restart };

void walk(DtoStream& stream, Model& model,
          const std::vector<std::pair<Step, std::uint8_t>>& steps) {
    for (const auto& [step, arg] : steps) {
        switch (step) {
        case Step::post:
            RC_ASSERT(stream.full() == (model.ops.size() == stream.limit()));
            if (!stream.full()) {
                RC_ASSERT(stream.post() == model.next);
                model.ops.push_back({model.next++, std::nullopt});
            }
            break;
        case Step::finish: { // also of operations that are over or not yet posted
            const std::uint64_t seq = model.next + 2 - arg % 16;
            const auto status = static_cast<DtoStatus>(arg / 16 % 12);
            RC_ASSERT(stream.finish(seq, status) == model.finish(seq, status));
            break;
        }
        case Step::flush:
            stream.flush();
            for (Model::Op& op : model.ops) {
                op.status = op.status.value_or(DtoStatus::flushed);
            }
            break;
        case Step::pop: {
            DtoStream::Done done{};
            const auto expected = model.pop();
            RC_ASSERT(stream.pop(done) == expected.has_value());
            if (expected) {
                RC_ASSERT(done.seq == expected->seq);
                RC_ASSERT(done.status == expected->status);
            }
            break;
        }
        case Step::restart:
            stream.restart();
            model.failed = false;
            break;
        }
        RC_ASSERT(stream.outstanding() == model.ops.size());
        RC_ASSERT(stream.idle() == model.ops.empty());
        RC_ASSERT(stream.next() == model.next);
        RC_ASSERT(stream.first() == (model.ops.empty() ? model.next : model.ops.front().seq));
        std::set<std::uint32_t> slots;
        for (const Model::Op& op : model.ops) {
            RC_ASSERT(stream.finished(op.seq) == op.status.has_value());
            RC_ASSERT(stream.slot(op.seq) < stream.slots());
            slots.insert(stream.slot(op.seq));
        }
        RC_ASSERT(slots.size() == model.ops.size());
    }
}

} // namespace

// DISC-8, DISC-11: any sequence of uses agrees with the naive model.
Test(core_dto_stream, any_use__agrees_with_the_model) {
    cr_assert(rc::check("DtoStream behaves as the model", [] {
        DtoStream stream(*rc::gen::inRange<std::uint32_t>(1, 9));
        Model model;
        const auto step = rc::gen::weightedElement<Step>({{6, Step::post},
                                                          {8, Step::finish},
                                                          {1, Step::flush},
                                                          {6, Step::pop},
                                                          {1, Step::restart}});
        walk(stream, model,
             *rc::gen::container<std::vector<std::pair<Step, std::uint8_t>>>(
                 rc::gen::pair(step, rc::gen::arbitrary<std::uint8_t>())));
    }));
}

// DISC-8: within an attempt the completions read success*, error?, FLUSHED*.
Test(core_dto_stream, any_statuses__read_as_successes_one_error_then_flushed) {
    cr_assert(rc::check("success* error? FLUSHED*", [](const std::vector<std::uint8_t>& raw) {
        const auto count = static_cast<std::uint32_t>(raw.size());
        DtoStream stream(count + 1);
        for (const std::uint8_t status : raw) {
            stream.finish(stream.post(), static_cast<DtoStatus>(status % 12));
        }
        const std::vector<DtoStatus> seen = pop_all(stream);
        RC_ASSERT(seen.size() == raw.size());
        bool failed = false;
        for (const DtoStatus status : seen) {
            RC_ASSERT(!failed || status == DtoStatus::flushed);
            failed = failed || status != DtoStatus::success;
        }
    }));
}
