// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See random_run.h.
#include "sim/random_run.h"

#include "sim/random.h"

#include <algorithm>
#include <cstdio>

namespace dat::sim {
namespace {

// Steps and virtual time within which a world must come to rest by itself.
constexpr std::uint64_t kRestSteps = 2000;
constexpr std::int64_t kRestTime_us = 120'000'000;

using Weights = std::array<std::uint32_t, static_cast<std::size_t>(ActionKind::count_)>;

std::uint32_t& at(Weights& weights, ActionKind kind) {
    return weights[static_cast<std::size_t>(kind)];
}

// What this run likes to do. Each seed leaves some kinds of action out, so that
// the rest is met in depth.
Weights choose_weights(Random& random) {
    Weights w;
    w.fill(3);
    for (const ActionKind kind : {ActionKind::connect, ActionKind::reserve, ActionKind::accept}) {
        at(w, kind) = 40;
    }
    for (const ActionKind kind : {ActionKind::post_send, ActionKind::post_recv}) {
        at(w, kind) = 4 + random.below(40);
    }
    for (const ActionKind kind : {ActionKind::deliver, ActionKind::flush_one}) {
        at(w, kind) = 20 + random.below(80);
    }
    at(w, ActionKind::fire) = 1 + random.below(12);
    for (const ActionKind kind : {ActionKind::unlisten, ActionKind::unreserve, ActionKind::free,
                                  ActionKind::post_send_long}) {
        at(w, kind) = random.below(3);
    }
    for (const ActionKind kind : {ActionKind::listen, ActionKind::reset, ActionKind::create}) {
        at(w, kind) = 20;
    }
    const bool calm = random.chance(3);
    for (auto k = ActionKind::die; k <= ActionKind::latency;
         k = static_cast<ActionKind>(static_cast<int>(k) + 1)) {
        at(w, k) = calm || random.chance(2) ? 0 : 1;
    }
    at(w, ActionKind::restart) = 30;
    for (const ActionKind kind : {ActionKind::disconnect_abrupt, ActionKind::disconnect_graceful,
                                  ActionKind::reject, ActionKind::post_send_long}) {
        if (random.chance(4)) {
            at(w, kind) = 0;
        }
    }
    return w;
}

Config choose_config(Random& random, const RunOptions& options) {
    using Kind = core::ServicePoint::Kind;
    Config config;
    config.fault = options.fault;
    config.notes = options.trace;
    config.records = options.recorder != nullptr;
    config.separate_lanes = random.chance(2);
    config.slow_flush = random.chance(2);
    config.local_completion = random.chance(3);
    config.keep_timers = random.chance(2);
    config.refused_calls = random.chance(4);
    config.limit = 1 + random.below(3);
    config.backlog = 1 + random.below(2);
    constexpr std::array<Kind, 4> kinds{Kind::consumer, Kind::consumer, Kind::provider,
                                        Kind::reserved};
    config.listener = {Kind::consumer, kinds[random.below(4)]};
    config.may_connect = {true, random.chance(2)}; // crossing connects
    config.no_ready = !config.separate_lanes && random.chance(3);
    return config;
}

class Run {
  public:
    Run(const RunOptions& options, Coverage& coverage)
        : options_(options), coverage_(coverage), random_(options.seed),
          world_(choose_config(random_, options)), weights_(choose_weights(random_)) {}

    RunResult go() {
        collect();
        for (std::uint32_t i = 0; i < options_.steps && passing(); ++i) {
            act(pick(world_.enabled_actions()));
        }
        come_to_rest();
        for (const ActionKind kind :
             {ActionKind::disconnect_abrupt, ActionKind::reset, ActionKind::free}) {
            everybody(kind);
            come_to_rest();
        }
        result_.last = world_.key();
        return result_;
    }

  private:
    bool passing() const { return result_.violations.empty(); }

    Action pick(const std::vector<Action>& actions) {
        const auto weight = [this](const Action& action) { return at(weights_, action.kind); };
        std::uint32_t total = 0;
        for (const Action& action : actions) {
            total += weight(action);
        }
        std::uint32_t ticket = random_.below(std::max(total, 1u));
        for (const Action& action : actions) {
            if (ticket < weight(action)) {
                return action;
            }
            ticket -= weight(action);
        }
        return actions.front();
    }

    void act(const Action& action) {
        if (options_.trace) {
            std::printf("%12lld us  %s\n", static_cast<long long>(world_.now_us()),
                        to_string(action).c_str());
        }
        world_.step(action);
        notes_taken_ = records_taken_ = 0;
        ++result_.steps;
        for (const Reached& r : world_.reached()) {
            if (r.state < core::State::destroyed) {
                ++coverage_[static_cast<std::size_t>(r.stimulus)]
                           [static_cast<std::size_t>(r.state)];
            }
        }
        collect();
    }

    // What is new since the last time: a world has notes and records of its last step.
    void collect() {
        const std::vector<std::string>& notes = world_.notes();
        for (; options_.trace && notes_taken_ < notes.size(); ++notes_taken_) {
            std::printf("                  %s\n", notes[notes_taken_].c_str());
        }
        const std::vector<Recorded>& records = world_.records();
        for (; options_.recorder && records_taken_ < records.size(); ++records_taken_) {
            options_.recorder->take(result_.steps, records[records_taken_]);
        }
        result_.violations = world_.violations();
    }

    // Nobody does anything any more: what goes on by itself must end, soon.
    void come_to_rest() {
        const std::int64_t begin_us = world_.now_us();
        for (std::uint64_t i = 0; passing(); ++i) {
            std::vector<Action> actions = world_.enabled_actions();
            std::erase_if(actions, [](const Action& a) { return !is_progress(a.kind); });
            if (actions.empty()) {
                world_.check_rest();
                collect();
                return;
            }
            if (i == kRestSteps || world_.now_us() - begin_us > kRestTime_us) {
                result_.violations.push_back({0, "quiescence: the world does not come to rest"});
                return;
            }
            act(actions[random_.below(static_cast<std::uint32_t>(actions.size()))]);
        }
    }

    // Each endpoint that may, does `kind`.
    void everybody(ActionKind kind) {
        for (int host = 0; host < kHosts && passing(); ++host) {
            for (const Action& action : world_.enabled_actions()) {
                if (action.kind == kind && action.host == host) {
                    act(action);
                    break;
                }
            }
        }
    }

    const RunOptions& options_;
    Coverage& coverage_;
    Random random_;
    World world_;
    Weights weights_;
    RunResult result_;
    std::size_t notes_taken_ = 0;
    std::size_t records_taken_ = 0;
};

} // namespace

RunResult random_run(const RunOptions& options, Coverage& coverage) {
    return Run(options, coverage).go();
}

} // namespace dat::sim
