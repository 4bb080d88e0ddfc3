// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See rdm_random.h.
#include "sim/rdm_random.h"

#include "sim/random.h"

#include <algorithm>
#include <cstdio>

namespace dat::sim {
namespace {

// Steps within which a world must come to rest by itself.
constexpr std::uint64_t kRestSteps = 5000;

using Weights = std::array<std::uint32_t, static_cast<std::size_t>(RdmActionKind::count_)>;

std::uint32_t& at(Weights& weights, RdmActionKind kind) {
    return weights[static_cast<std::size_t>(kind)];
}

// What this run likes to do. A third of them are calm: nothing goes wrong, so nothing may fail.
Weights choose_weights(Random& random) {
    Weights w;
    w.fill(0);
    const bool calm = random.chance(3);
    at(w, RdmActionKind::post) = 4 + random.below(20);
    at(w, RdmActionKind::receive) = random.below(4);
    at(w, RdmActionKind::release) = random.chance(2) ? random.below(20) : 0;
    for (const RdmActionKind kind :
         {RdmActionKind::deliver, RdmActionKind::notice, RdmActionKind::due}) {
        at(w, kind) = 20 + random.below(60);
    }
    at(w, RdmActionKind::latency) = random.chance(2) ? 1 : 0;
    at(w, RdmActionKind::restart) = 4;
    for (const RdmActionKind kind :
         {RdmActionKind::forget, RdmActionKind::die, RdmActionKind::die_silent,
          RdmActionKind::refuse, RdmActionKind::time_out, RdmActionKind::break_conn,
          RdmActionKind::lose_conn}) {
        at(w, kind) = calm || random.chance(2) ? 0 : 1 + random.below(3);
    }
    return w;
}

RdmConfig choose_config(Random& random, const RdmRunOptions& options) {
    RdmConfig config;
    config.fault = options.fault;
    config.notes = options.trace;
    config.hosts = random.chance(3) ? 2 : kRdmHosts;
    config.timed = !random.chance(3);
    config.clock_back = random.chance(4);
    config.limits.attempts = 1 + random.below(4);
    return config;
}

class Run {
  public:
    Run(const RdmRunOptions& options, RdmCoverage& coverage)
        : options_(options), coverage_(coverage), random_(options.seed),
          world_(choose_config(random_, options)), weights_(choose_weights(random_)) {}

    RdmRunResult go() {
        for (std::uint32_t i = 0; i < options_.steps && passing(); ++i) {
            if (i % 50 == 49) {
                come_to_rest();
                world_.forgive();
            }
            pick();
        }
        come_to_rest();
        result_.last = world_.key();
        return result_;
    }

  private:
    bool passing() const { return result_.violations.empty(); }

    void pick() {
        const std::vector<RdmSimAction> actions = world_.enabled_actions();
        std::uint32_t total = 0;
        for (const RdmSimAction& action : actions) {
            total += at(weights_, action.kind);
        }
        if (total == 0 || !passing()) {
            return;
        }
        std::uint32_t ticket = random_.below(total);
        for (const RdmSimAction& action : actions) {
            if (ticket < at(weights_, action.kind)) {
                act(action);
                return;
            }
            ticket -= at(weights_, action.kind);
        }
    }

    void act(const RdmSimAction& action) {
        if (options_.trace) {
            std::printf("%12lld us  %s\n", static_cast<long long>(world_.now_us()),
                        to_string(action).c_str());
        }
        world_.step(action);
        ++result_.steps;
        for (const RdmWorld::Reached& r : world_.reached()) {
            ++coverage_[static_cast<std::size_t>(r.stimulus)][static_cast<std::size_t>(r.state)];
        }
        for (const std::string& note : world_.notes()) {
            if (options_.trace) {
                std::printf("                  %s\n", note.c_str());
            }
        }
        result_.violations = world_.violations();
    }

    // Nobody does anything any more: what goes on by itself must end, soon.
    void come_to_rest() {
        for (std::uint64_t i = 0; passing(); ++i) {
            std::vector<RdmSimAction> actions = world_.enabled_actions();
            std::erase_if(actions, [](const RdmSimAction& a) { return !is_progress(a); });
            if (actions.empty()) {
                world_.check_rest();
                result_.violations = world_.violations();
                return;
            }
            if (i == kRestSteps) {
                result_.violations.push_back({0, "quiescence: the world does not come to rest"});
                return;
            }
            act(actions[random_.below(static_cast<std::uint32_t>(actions.size()))]);
        }
    }

    const RdmRunOptions& options_;
    RdmCoverage& coverage_;
    Random random_;
    RdmWorld world_;
    Weights weights_;
    RdmRunResult result_;
};

} // namespace

RdmRunResult rdm_random_run(const RdmRunOptions& options, RdmCoverage& coverage) {
    return Run(options, coverage).go();
}

} // namespace dat::sim
