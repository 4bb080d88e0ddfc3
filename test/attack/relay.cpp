// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See relay.h.
#include "relay.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace dat::test {

namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr std::size_t kLargest = 65536;
// What a slow line holds; what comes when it is full is lost.
constexpr auto kLine = 400ms;

// Of a heap whose front is due first.
constexpr auto kLater = [](const auto& a, const auto& b) {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
};

} // namespace

void Relay::queue(std::size_t to, Packet packet, Clock::time_point due) {
    waiting_.push_back({due, ++order_, to, std::move(packet)});
    std::push_heap(waiting_.begin(), waiting_.end(), kLater);
}

// When a packet of `size` bytes has been sent at the trial's rate; the epoch: no room.
Relay::Clock::time_point Relay::turn(std::size_t to, std::size_t size, const Trial& trial) {
    const auto now = Clock::now();
    if (trial.bits_a_second == 0)
        return now;
    Clock::time_point& free = line_free_[to];
    free = std::max(free, now);
    if (free - now > kLine)
        return {};
    return free += microseconds(size * 8'000'000 / trial.bits_a_second);
}

void Relay::pass(std::size_t from, Packet packet, const Trial& trial) {
    const std::size_t to = 1 - from;
    const std::optional<TcpParts> parts = parts_of(packet);
    ++harm_.packets;
    auto due = turn(to, packet.size(), trial);
    if (trial.cut || due == Clock::time_point() || (parts && chosen(trial.lose))) {
        ++harm_.lost;
        return;
    }
    due += std::chrono::milliseconds(trial.delay_ms);
    if (!parts)
        return queue(to, std::move(packet), due);
    if (parts->carried() != 0 && chosen(trial.flip)) {
        ++harm_.flipped;
        ++flips_;
        flip_bit(packet, *parts, random_.below(parts->carried() * 8));
    }
    if (chosen(trial.reorder)) {
        ++harm_.held_back;
        due += microseconds(random_.between(100, 5000));
    }
    if (chosen(trial.repeat)) {
        ++harm_.repeated;
        queue(to, packet, due + microseconds(random_.below(3000)));
    }
    const bool reset = !parts->reset && chosen(trial.reset);
    const Packet forged = reset ? reset_behind(packet, *parts) : Packet();
    queue(to, std::move(packet), due);
    if (reset) {
        ++harm_.resets;
        queue(to, forged, due);
    }
}

void Relay::take(std::size_t from, const Trial& trial) {
    Packet packet(kLargest);
    for (int left = 64; left > 0; --left) { // so that the other one has its turn
        const ssize_t size = read(wires_[from].device, packet.data(), packet.size());
        if (size <= 0)
            return;
        pass(from, Packet(packet.begin(), packet.begin() + size), trial);
    }
}

// Hands over what is due; when the next one will be.
Relay::Clock::time_point Relay::deliver() {
    const auto now = Clock::now();
    while (!waiting_.empty() && waiting_.front().due <= now) {
        std::pop_heap(waiting_.begin(), waiting_.end(), kLater);
        const Waiting next = std::move(waiting_.back());
        waiting_.pop_back();
        // Where the kernel has no room the packet is lost, as on any wire.
        if (write(wires_[next.to].device, next.packet.data(), next.packet.size()) < 0)
            ++harm_.lost;
    }
    return waiting_.empty() ? now + 10ms : waiting_.front().due;
}

// Below 1280 a device has no IPv6.
void Relay::change_mtu() {
    const int sizes[] = {v6_ ? 1280 : 600, 1500, 9000, 1400, v6_ ? 2000 : 576};
    const int mtu = sizes[random_.below(std::size(sizes))];
    for (const Wire& wire : wires_)
        set_mtu(wire, mtu);
    ++harm_.mtus;
}

void Relay::run(const Trial& trial, const std::function<bool()>& stop) {
    const auto until = Clock::now() + std::chrono::seconds(trial.seconds);
    auto next_mtu = Clock::now();
    while (Clock::now() < until && !stop()) {
        if (trial.change_mtu && Clock::now() >= next_mtu) {
            next_mtu = Clock::now() + 500ms;
            change_mtu();
        }
        const auto due = deliver();
        pollfd ready[] = {{wires_[0].device, POLLIN, 0}, {wires_[1].device, POLLIN, 0}};
        const auto wait = std::clamp<std::chrono::nanoseconds>(due - Clock::now(), 0ns, 10ms);
        const timespec limit{0, static_cast<long>(wait.count())};
        ppoll(ready, 2, &limit, nullptr);
        for (const std::size_t from : {std::size_t{0}, std::size_t{1}})
            if (ready[from].revents != 0)
                take(from, trial);
    }
}

} // namespace dat::test
