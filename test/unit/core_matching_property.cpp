// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Properties of core::Matching, against lists that are gone through from the oldest on.
#include "core/matching.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <vector>

using namespace dat::core;

namespace {

// The same promise, written as plainly as possible.
struct Model {
    std::vector<PostedReceive*> posted;
    std::vector<UnexpectedMessage*> held;

    static bool takes(const PostedReceive& r, std::uint64_t tag, RdmSource source) {
        return ((tag ^ r.tag()) & ~r.ignore()) == 0 &&
               (r.source() == kAnySource || r.source() == source);
    }
    UnexpectedMessage* find(const PostedReceive& receive) const {
        const auto at = std::find_if(held.begin(), held.end(), [&](const UnexpectedMessage* m) {
            return takes(receive, m->tag(), m->source());
        });
        return at == held.end() ? nullptr : *at;
    }
    PostedReceive* arrive(std::uint64_t tag, RdmSource source) {
        const auto at = std::find_if(posted.begin(), posted.end(), [=](const PostedReceive* r) {
            return takes(*r, tag, source);
        });
        if (at == posted.end()) {
            return nullptr;
        }
        PostedReceive* const found = *at;
        if (!found->stays()) {
            posted.erase(at);
        }
        return found;
    }
    template <class T> static void drop(std::vector<T*>& list, const T* what) {
        list.erase(std::find(list.begin(), list.end(), what));
    }
};

enum class Step : std::uint8_t {
    post,
    arrive,
    arrive_many,
    peek,
    take,
    cancel,
    source_died,
    forget
};

// Few of everything, so that most agree in something: masks are of the low bits.
using Move = std::tuple<Step, std::uint8_t, std::uint8_t, std::uint8_t>;

class Walk {
  public:
    explicit Walk(std::uint64_t secret) : matching_(secret) {}
    ~Walk() {
        matching_.cancel_each([](const PostedReceive&) { return true; }, [](PostedReceive&) {});
        matching_.take_each([](const UnexpectedMessage&) { return true; },
                            [](UnexpectedMessage&) {});
    }
    void make(const Move& move) {
        const auto [step, a, b, c] = move;
        const std::uint64_t tag = a % 32;
        const std::uint64_t ignore = c % 3 == 0 ? 0 : (std::uint64_t{1} << (c % 14)) - 1;
        const auto source = static_cast<RdmSource>(b % 4);
        switch (step) {
        case Step::post:
            post(tag, ignore, b % 5 == 4 ? kAnySource : source, c >= 240);
            break;
        case Step::arrive:
            arrive(tag, source);
            break;
        case Step::arrive_many:
            for (std::uint64_t i = 0; i < a; ++i) {
                arrive(i, static_cast<RdmSource>((source + i) % 4));
            }
            break;
        case Step::peek: {
            PostedReceive like;
            like.want(tag, ignore, source);
            RC_ASSERT(matching_.peek(tag, ignore, source) == model_.find(like));
            break;
        }
        case Step::take:
            if (!model_.held.empty()) {
                UnexpectedMessage* const message = model_.held[a % model_.held.size()];
                matching_.take(*message);
                Model::drop(model_.held, message);
            }
            break;
        case Step::cancel:
            if (!receives_.empty()) {
                PostedReceive& receive = receives_[a % receives_.size()];
                const bool posted = Matching::posted(receive);
                RC_ASSERT(matching_.cancel(receive) == posted);
                if (posted) {
                    Model::drop(model_.posted, &receive);
                }
            }
            break;
        case Step::source_died:
            matching_.source_died(source,
                                  [&](PostedReceive& r) { Model::drop(model_.posted, &r); });
            for (const PostedReceive* r : model_.posted) {
                RC_ASSERT(r->source() != source);
            }
            break;
        case Step::forget:
            matching_.take_each([=](const UnexpectedMessage& m) { return m.source() == source; },
                                [&](UnexpectedMessage& m) { Model::drop(model_.held, &m); });
            for (const UnexpectedMessage* m : model_.held) {
                RC_ASSERT(m->source() != source);
            }
            break;
        }
        RC_ASSERT(matching_.posted() == model_.posted.size());
        RC_ASSERT(matching_.held() == model_.held.size());
    }

  private:
    void post(std::uint64_t tag, std::uint64_t ignore, RdmSource source, bool stays) {
        PostedReceive& receive = receives_.emplace_back();
        receive.want(tag, ignore, source, stays);
        UnexpectedMessage* const expected = model_.find(receive);
        RC_ASSERT(matching_.post(receive) == expected);
        if (expected) {
            Model::drop(model_.held, expected);
        } else {
            model_.posted.push_back(&receive);
        }
    }
    void arrive(std::uint64_t tag, RdmSource source) {
        PostedReceive* const expected = model_.arrive(tag, source);
        RC_ASSERT(matching_.arrive(tag, source) == expected);
        if (!expected) {
            messages_.emplace_back().from(tag, source);
            matching_.keep(messages_.back());
            model_.held.push_back(&messages_.back());
        }
    }

    Matching matching_;
    Model model_;
    std::deque<PostedReceive> receives_;
    std::deque<UnexpectedMessage> messages_;
};

} // namespace

Test(matching, any_use__agrees_with_the_model) {
    cr_assert(rc::check("Matching behaves as the model", [](std::uint64_t secret) {
        Walk walk(secret);
        const auto step = rc::gen::weightedElement<Step>({{10, Step::post},
                                                          {10, Step::arrive},
                                                          {1, Step::arrive_many},
                                                          {3, Step::peek},
                                                          {2, Step::take},
                                                          {2, Step::cancel},
                                                          {1, Step::source_died},
                                                          {1, Step::forget}});
        const auto moves = *rc::gen::container<std::vector<Move>>(
            rc::gen::tuple(step, rc::gen::arbitrary<std::uint8_t>(),
                           rc::gen::arbitrary<std::uint8_t>(), rc::gen::arbitrary<std::uint8_t>()));
        for (const Move& move : moves) {
            walk.make(move);
        }
    }));
}
