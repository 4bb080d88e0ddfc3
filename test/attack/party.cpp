// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See party.h.
#include "party.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace dat::test {

namespace {

std::string process_name;
std::string replay_with;
Tally* process_tally;

} // namespace

void name_process(const std::string& name, const std::string& replay, Tally* tally) {
    process_name = name;
    replay_with = replay;
    process_tally = tally;
}

void fail(const char* file, int line, const std::string& message) {
    if (process_tally)
        ++process_tally->violations;
    std::fprintf(stderr, "VIOLATION %s %s:%d: %s\n    replay: %s\n", process_name.c_str(), file,
                 line, message.c_str(), replay_with.c_str());
    if (std::getenv("DAT_ATTACK_ABORT"))
        std::abort();
    std::_Exit(kViolated);
}

Party::Party(const PartyOptions& options, Terms& terms) : options_(options), terms_(terms) {
    SideOptions side;
    side.caps = FI_MSG | FI_RMA | FI_ATOMIC;
    side_.emplace(options.transport, side);
    side_->intercept = [](void* context, const Op& result) {
        Task& task = *static_cast<Task*>(context);
        task.lane->completed(task, result);
        return true;
    };
    for (std::size_t i = 0; i < options.lanes; ++i)
        lanes_.push_back(std::make_unique<Lane>(*side_, terms));
    if (options.listens)
        side_->listen();
}

Party::~Party() {
    lanes_.clear();
    side_.reset();
    for (const auto& [connection, sent] : terms_.closed)
        terms_.ledger->sent(connection, sent);
}

void Party::request(const Event& event) {
    const auto at =
        std::find_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->idle(); });
    if (!winding_down_ && at != lanes_.end() && (*at)->accept(event))
        return;
    DAT_MUST(fi_reject(side_->pep(), event.info->handle, nullptr, 0));
}

// An ending event is shown to its lane when the queue of completions has been read behind it.
bool Party::take_events() {
    bool any = false;
    while (std::optional<Event> event = side_->read_event()) {
        any = true;
        if (event->type == FI_CONNREQ) {
            request(*event);
            continue;
        }
        side_->pump_cq();
        const auto at = std::find_if(lanes_.begin(), lanes_.end(),
                                     [&](const auto& lane) { return lane->fid() == event->fid; });
        DAT_REQUIRE(at != lanes_.end(), "an event of an endpoint that was closed");
        (*at)->event(*event);
    }
    return any;
}

bool Party::step(Lane& lane) {
    if (lane.idle()) {
        if (winding_down_ || options_.listens)
            return false;
        const Bytes to = options_.target();
        if (to.empty())
            return false;
        lane.connect(to);
        return true;
    }
    if (winding_down_) {
        if (leave_)
            lane.leave();
    } else if (options_.end_once_in != 0 && terms_.random.once_in(options_.end_once_in)) {
        lane.end();
    } else if (options_.leave_once_in != 0 && terms_.random.once_in(options_.leave_once_in)) {
        lane.leave();
    }
    return lane.step();
}

void Party::run_once() {
    bool any = side_->pump_cq();
    any |= take_events();
    for (const auto& lane : lanes_)
        any |= step(*lane);
    idle_rounds_ = any ? 0 : idle_rounds_ + 1;
    if (idle_rounds_ > 20)
        poll(nullptr, 0, 1);
}

void Party::wind_down(bool leave) {
    winding_down_ = true;
    leave_ = leave;
}

bool Party::idle() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->idle(); });
}

} // namespace dat::test
