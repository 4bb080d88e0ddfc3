// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The connections of a lane: how each begins and ends, and what must hold then. May
// include: the fixture.
#include "lane.h"

#include <cstring>

namespace dat::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReadable = 64 * 1024;
// Long against anything that a loaded machine does to a process.
constexpr auto kStandstill = 60s;
// Where frames are changed on the way a length may be: its receiver waits for bytes that
// nobody sends. This program ends such a connection itself.
constexpr auto kPatience = 15s;

std::unique_ptr<std::uint8_t[]> memory(std::size_t size, bool touched) {
    std::unique_ptr<std::uint8_t[]> bytes(new std::uint8_t[size]);
    if (touched)
        std::memset(bytes.get(), 0, size);
    return bytes;
}

} // namespace

Lane::Lane(Side& side, Terms& terms)
    : side_(side), terms_(terms), region_(side, kSlotsAt + kSlots * terms.largest + kReadable,
                                          FI_REMOTE_READ | FI_REMOTE_WRITE),
      read_seed_(terms.random.next()) {
    fill(region_.data() + readable_at(), kReadable, read_seed_);
    for (Task& task : receives_)
        task.bytes = memory(terms.largest, terms.lasting);
    for (Task& task : requests_)
        task.bytes = memory(terms.largest, terms.lasting);
    for (Task& task : receives_)
        task.lane = this;
    for (Task& task : requests_)
        task.lane = this;
    open();
}

void Lane::open() { endpoint_.emplace(side_); }

Hello Lane::hello() const {
    return sealed({connection_, region_.at(0).address, region_.at(0).key, read_seed_, 0});
}

// Takes the peer's private data; false where it is not what a party says.
bool Lane::learn(const Bytes& data) {
    if (data.size() != sizeof peer_)
        return false;
    Hello told;
    std::memcpy(&told, data.data(), sizeof told);
    if (!is_sealed(told))
        return false;
    peer_ = told;
    return true;
}

// A new connection: nothing of the last one is left, and nothing has come since its end.
void Lane::begin(std::uint64_t connection) {
    require_untouched();
    journal_.begin();
    connection_ = connection;
    next_sent_ = next_received_ = owed_ = peer_consumed_ = 0;
    slot_free_at_ = {};
    announced_ = {};
    counter_ = counter_done_ = 0;
    leaving_ = goodbye_sent_ = goodbye_confirmed_ = goodbye_received_ = false;
    farewell_begun_here_ = injects_at_end_ = was_connected_ = false;
    flips_before_ = terms_.flips ? terms_.flips->load() : 0;
    std::memset(region_.data(), 0, sizeof(std::uint64_t));
    moved_ = Clock::now();
    for (Task& task : receives_)
        post_receive(task);
}

void Lane::connect(const Bytes& to) {
    begin(terms_.random.next());
    terms_.phase(Phase::kHandshake);
    const std::uint64_t timeout_us = terms_.flips                ? 5'000'000
                                     : terms_.random.once_in(16) ? terms_.random.between(1, 20'000)
                                                                 : FI_DAT_TIMEOUT_INFINITE;
    DAT_MUST(endpoint_->dat()->set_connect_timeout(endpoint_->get(), timeout_us));
    state_ = State::kConnecting;
    const Hello own = hello();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&own);
    DAT_MUST(endpoint_->connect(to, Bytes(bytes, bytes + sizeof own)));
}

bool Lane::accept(const Event& request) {
    if (!learn(request.data))
        return false;
    begin(peer_.connection);
    terms_.phase(Phase::kHandshake);
    DAT_MUST(endpoint_->dat()->take_request(endpoint_->get(), request.info->handle));
    state_ = State::kAccepting;
    const Hello own = hello();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&own);
    DAT_MUST(endpoint_->accept(Bytes(bytes, bytes + sizeof own)));
    return true;
}

void Lane::established(const Bytes& data) {
    const bool connecting = state_ == State::kConnecting;
    DAT_REQUIRE(!was_connected_, "FI_CONNECTED twice");
    was_connected_ = true;
    ++terms_.tally->connected;
    if (state_ == State::kEnding) // it was there when this side called for the end
        return;
    state_ = State::kConnected;
    moved_ = Clock::now();
    terms_.phase(Phase::kConnected);
    if (connecting && !(learn(data) && peer_.connection == connection_)) {
        // Nothing protects what a handshake carries: only where bits flip may this be.
        DAT_REQUIRE(terms_.flips, "the peer's private data is wrong");
        leaving_ = goodbye_sent_ = true; // nothing is posted
        DAT_MUST(endpoint_->disconnect(FI_DAT_ABRUPT));
        state_ = State::kEnding;
    }
}

void Lane::event(const Event& event) {
    DAT_REQUIRE(state_ != State::kIdle, "an event of type " + std::to_string(event.type) +
                                            " without a connection, or after its end");
    moved_ = Clock::now();
    if (event.type == FI_CONNECTED) {
        established(event.data);
    } else if (event.ends()) {
        ended(event);
    } else {
        DAT_REQUIRE(false, "event " + std::to_string(event.type));
    }
}

// The one event that ends a connection or an attempt, read: all has completed.
void Lane::ended(const Event& event) {
    journal_.require_empty("at the ending event");
    const fi_dat_ep_status status = endpoint_->status();
    DAT_REQUIRE(status.state == FI_DAT_DISCONNECTED, "state " + std::to_string(status.state));
    ++terms_.tally->reasons[status.reason];
    if (event.type == kErrorEvent) {
        ++terms_.tally->failed;
        DAT_REQUIRE(!was_connected_, "a connection ended by an error of an attempt");
        const bool usual = event.err == FI_ECONNREFUSED || event.err == FI_ETIMEDOUT ||
                           event.err == FI_ECONNABORTED;
        DAT_REQUIRE(usual || terms_.flips, "the attempt failed: " + error_name(event.err));
    } else if (goodbye_received_ && goodbye_sent_ &&
               (goodbye_confirmed_ || !farewell_begun_here_)) {
        ++terms_.tally->orderly;
    } else if (state_ == State::kConnected && !terms_.flips) {
        terms_.ledger->received(connection_, next_received_);
    }
    if (terms_.peer_lives && event.type == FI_SHUTDOWN) {
        DAT_REQUIRE(status.end == FI_DAT_END_DISCONNECTED,
                    "nobody was killed, and the connection ended with reason " +
                        std::to_string(status.reason));
    }
    DAT_REQUIRE(region_.guards_whole(), "written beside the region");
    finish();
}

// After an end: this endpoint again, or another one.
void Lane::finish() {
    watch();
    if (terms_.random.once_in(4))
        probe_flushes();
    state_ = State::kIdle;
    if (terms_.random.once_in(6))
        return close();
    DAT_MUST(endpoint_->reset());
}

// In DISCONNECTED what is posted is flushed at once, behind all that was there.
void Lane::probe_flushes() {
    Task& in = receives_[0];
    Task& out = requests_[0];
    in.verb = Verb::kReceive;
    out.verb = Verb::kSend;
    const auto required = [&](ssize_t result, Task& task) {
        DAT_REQUIRE(result == 0, "a post in DISCONNECTED: " + error_name(result));
        journal_.posted(task);
    };
    required(fi_recv(endpoint_->get(), in.bytes.get(), 8, nullptr, FI_ADDR_UNSPEC, &in), in);
    required(fi_send(endpoint_->get(), out.bytes.get(), 8, nullptr, FI_ADDR_UNSPEC, &out), out);
    side_.pump_cq();
    journal_.require_empty("when posted in DISCONNECTED");
}

// FREE-2: when fi_close() returns all has completed, and events of the endpoint are gone.
void Lane::close() {
    DAT_MUST(endpoint_->close());
    side_.pump_cq();
    journal_.require_empty("when fi_close() returned");
    state_ = State::kIdle;
    open();
}

// Posts that report nothing, and an end that does not wait: nothing is lost.
void Lane::inject_and_end() {
    terms_.phase(Phase::kEnding);
    const std::uint64_t count = terms_.random.between(1, 8);
    for (std::uint64_t i = 0; i < count; ++i)
        inject_message(terms_.random.between(sizeof(Head), 128));
    const std::uint64_t sent = next_sent_;
    const std::uint64_t connection = connection_;
    if (terms_.random.once_in(2)) {
        close();
    } else {
        DAT_MUST(endpoint_->disconnect(FI_DAT_ABRUPT));
        state_ = State::kEnding;
    }
    if (terms_.lasting)
        terms_.ledger->sent(connection, sent);
    else
        terms_.closed.emplace_back(connection, sent);
}

void Lane::end() {
    if (state_ == State::kIdle || state_ == State::kEnding || injects_at_end_)
        return;
    const bool was_connected = state_ == State::kConnected;
    const std::uint64_t how = terms_.random.below(5);
    injects_at_end_ = was_connected && !leaving_ && how > 2;
    if (injects_at_end_)
        return;
    terms_.phase(Phase::kEnding);
    if (how == 0) {
        close();
        watch();
        return;
    }
    state_ = State::kEnding;
    if (was_connected && how == 1) {
        DAT_MUST(endpoint_->disconnect(FI_DAT_GRACEFUL));
        return;
    }
    DAT_MUST(fi_shutdown(endpoint_->get(), 0));
    side_.pump_cq();
    journal_.require_empty("after an abrupt end");
}

void Lane::leave() {
    if (state_ == State::kConnected && !leaving_) {
        leaving_ = farewell_begun_here_ = true;
    }
}

// Both have said that there is no more, and know that it has come: who began ends it.
bool Lane::farewell() {
    if (!farewell_begun_here_ || !goodbye_received_ || !goodbye_confirmed_)
        return false;
    terms_.phase(Phase::kEnding);
    state_ = State::kEnding;
    DAT_MUST(endpoint_->disconnect(FI_DAT_GRACEFUL));
    return true;
}

// What has ended must not be written any more. Sometimes only, for it takes time.
void Lane::watch() {
    watched_ = terms_.random.once_in(16);
    if (!watched_)
        return;
    region_sum_ = sum_of(region_.data(), region_.size());
    receives_sum_ = 0;
    for (const Task& task : receives_)
        receives_sum_ = sum_of(task.bytes.get(), terms_.largest, receives_sum_);
}

void Lane::require_untouched() {
    if (!std::exchange(watched_, false))
        return;
    DAT_REQUIRE(region_sum_ == sum_of(region_.data(), region_.size()),
                "a region was written after the connection's end");
    std::uint64_t sum = 0;
    for (const Task& task : receives_)
        sum = sum_of(task.bytes.get(), terms_.largest, sum);
    DAT_REQUIRE(receives_sum_ == sum, "a receive was written after its completion");
}

void Lane::watch_progress() {
    const auto still = Clock::now() - moved_;
    const bool flipped = terms_.flips && *terms_.flips != flips_before_;
    DAT_REQUIRE(still < kStandstill, "nothing has moved for a minute, in state " +
                                         std::to_string(static_cast<int>(state_)));
    if (!flipped || still < kPatience || state_ == State::kEnding)
        return;
    ++terms_.tally->given_up;
    state_ = State::kEnding;
    DAT_MUST(endpoint_->disconnect(FI_DAT_ABRUPT));
}

bool Lane::step() {
    if (state_ == State::kIdle)
        return false;
    watch_progress();
    if (state_ != State::kConnected || farewell() || Clock::now() < rest_until_)
        return false;
    if (injects_at_end_) {
        if (journal_.requests() == 0)
            inject_and_end();
        return false;
    }
    bool any = false;
    for (std::uint64_t left = terms_.random.between(1, 8); left > 0 && post_something(); --left)
        any = true;
    if (terms_.random.once_in(64))
        rest_until_ = Clock::now() + std::chrono::microseconds(terms_.random.below(5000));
    return any;
}

} // namespace dat::test
