// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: the messages of a reliable datagram endpoint, with two peers that keep to nothing,
// and itself as the third. The links are made up: what a peer says is given to rdm::Peer as a link
// gives it, and what goes to it is looked at, and finished, when the input says so. The input is a
// script; most bytes make a right step, so that the faults among them come late and deep.
//
// What must hold: a message goes into the receive, and a receive takes the message, that lists
// gone through from the oldest on say; each receive and each send completes once; what is in a
// receive is what was sent, and nothing changes behind its completion; what is held of a peer is
// bounded; what goes to a peer is right, in order, and no more than its window has; and memory
// that was announced cannot be read any more when its send has completed.
#include "rdm_world.h"

namespace fuzz {

// --- what peers say ---

Head World::head_of(Remote& from, Kind kind, std::uint8_t flags, Input& input) {
    Head head{kind, flags, 0, 0, from.told, 0};
    if (from.heard != from.told) {
        const std::uint8_t some = input.octet();
        head.taken += some < 128 ? from.heard - from.told : some % (from.heard - from.told + 1);
    }
    return head;
}

// `sent`: what it is, if it is a message at all.
void World::arrives(Remote& from, Head head, const Bytes& behind, std::optional<Sent> sent) {
    if (!from.linked()) {
        return;
    }
    if (head.taken - from.told > from.heard - from.told) {
        from.clean = false;
    } else {
        from.told = head.taken;
    }
    Bytes bytes(sizeof head);
    put(bytes.data(), head);
    bytes.insert(bytes.end(), behind.begin(), behind.end());
    bytes.resize(std::min(bytes.size(), from.peer.longest()));
    from.say(bytes);
    if (from.linked() && sent) {
        all_.push_back(*sent);
        arrived(all_.size() - 1);
    }
    collect();
    check_held();
}

void World::peer_message(Remote& from, Input& input) {
    const std::uint8_t how = input.octet();
    const std::uint8_t flags = (how & 2) != 0 ? rdm::kHasData : 0;
    Head head = head_of(from, (how & 1) != 0 ? Kind::tagged : Kind::message, flags, input);
    head.tag = input.octet() & 7;
    const std::size_t length = (how & 4) != 0 ? input.word() % 5000u : input.octet() % 80u;
    Sent sent{.peer = from.peer.number(),
              .turn = from.turn,
              .tagged = (how & 1) != 0,
              .tag = (how & 1) != 0 ? head.tag : 0,
              .length = length,
              .pattern = all_.size(),
              .announced = false,
              .data = std::nullopt};
    Bytes behind;
    if ((how & 2) != 0) {
        sent.data = input.octet();
        behind.resize(sizeof *sent.data);
        rdm::put(behind.data(), *sent.data);
    }
    if ((how & 0x30) == 0x30) { // it wants to hear when it is there
        head.flags |= rdm::kWantsDone;
        const std::uint64_t id = input.octet();
        behind.resize(behind.size() + sizeof id);
        rdm::put(behind.data() + behind.size() - sizeof id, id);
    }
    sent.cost = rdm::cost_of(length);
    const std::size_t before = behind.size();
    behind.resize(before + length);
    fuzz::fill_response(std::span(behind).subspan(before), sent.pattern, 0);
    from.said += sent.cost;
    from.clean = from.clean && from.said - from.taken_told() <= messages.window();
    if ((how & 0xc0) == 0xc0) { // any byte of the head is another one
        const Head was = head;
        Bytes bytes(sizeof head);
        put(bytes.data(), head);
        bytes[input.octet() % sizeof head] ^= std::byte{input.octet()};
        get(bytes.data(), head);
        from.clean = false;
        if (head.kind > Kind::announced_tagged || head.kind < Kind::message) {
            return arrives(from, head, behind, std::nullopt);
        }
        constexpr std::uint8_t kKnown = rdm::kHasData | rdm::kWantsDone;
        if (head.kind > Kind::tagged || ((head.flags ^ was.flags) & kKnown) != 0) {
            return; // another message than that above
        }
        sent.tagged = head.kind == Kind::tagged;
        sent.tag = sent.tagged ? head.tag : 0;
    }
    arrives(from, head, behind, sent);
}

void World::peer_announces(Remote& from, Input& input) {
    const std::uint8_t how = input.octet();
    const bool tagged = (how & 1) != 0;
    Head head = head_of(from, tagged ? Kind::announced_tagged : Kind::announced,
                        (how & 2) != 0 ? rdm::kHasData : 0, input);
    head.tag = input.octet() & 7;
    head.segments = how >> 4 & 7;
    Sent sent{.peer = from.peer.number(),
              .turn = from.turn,
              .tagged = tagged,
              .tag = tagged ? head.tag : 0,
              .length = 0,
              .pattern = all_.size(),
              .announced = true,
              .data = std::nullopt};
    Bytes behind;
    const auto add = [&](auto number) {
        behind.resize(behind.size() + sizeof number);
        rdm::put(behind.data() + behind.size() - sizeof number, number);
    };
    if ((how & 2) != 0) {
        sent.data = input.octet();
        add(*sent.data);
    }
    add(std::uint64_t{input.octet()});
    bool empty = false;
    for (std::uint8_t i = 0; i < head.segments; ++i) {
        const std::uint32_t length = (how & 4) != 0 ? input.number() : input.octet() % 200u;
        const auto key = static_cast<std::uint32_t>(announced.size() + 1);
        announced.push_back({key, sent.pattern, sent.length, length});
        sent.length += length;
        empty = empty || length == 0;
        add(key);
        add(length);
        add(std::uint64_t{0}); // nobody copies from there
    }
    from.clean = from.clean && head.segments <= rdm::kMaxPlaces && !empty;
    if ((how & 0x88) == 0x88) { // another size than it says
        behind.resize((behind.size() + 1 + input.octet() % 60u) % 80u);
        from.clean = false;
    }
    arrives(from, head, behind, sent);
}

void World::peer_says(Remote& from, Input& input) {
    const std::uint8_t how = input.octet();
    switch (how & 7) {
    case 0:
    case 1:
    case 2: {
        if (from.owed.empty()) {
            return;
        }
        const std::size_t at = (how >> 3) % from.owed.size();
        Head head = head_of(from, Kind::done, 0, input);
        head.tag = from.owed[at];
        from.owed.erase(from.owed.begin() + static_cast<std::ptrdiff_t>(at));
        return arrives(from, head, {}, std::nullopt);
    }
    case 3: {
        Head head = head_of(from, Kind::taken, 0, input);
        if ((how & 0x18) == 0x18 && !from.owed.empty()) { // it wants that in pieces
            head.kind = Kind::push;
            head.tag = from.owed[(how >> 5) % from.owed.size()];
        } else if ((how & 0x10) != 0) { // one that comes late
            head.kind = Kind::piece;
            head.tag = input.octet();
            Bytes behind(sizeof(std::uint64_t) + (how >> 5));
            rdm::put(behind.data(), std::uint64_t{input.octet()});
            return arrives(from, head, behind, std::nullopt);
        }
        return arrives(from, head, {}, std::nullopt);
    }
    case 4: {
        static constexpr Kind kKinds[] = {Kind::goodbye, Kind::ask, Kind::agree, Kind::decline};
        Head head = head_of(from, kKinds[how >> 3 & 3], 0, input);
        return arrives(from, head, {}, std::nullopt);
    }
    case 5: { // an id that it was not told
        Head head = head_of(from, Kind::done, 0, input);
        head.tag = std::uint64_t{input.octet()} << 32 | (how >> 3);
        if (std::find(from.owed.begin(), from.owed.end(), head.tag) == from.owed.end()) {
            from.clean = false;
            arrives(from, head, {}, std::nullopt);
        }
        return;
    }
    case 6: { // more than was sent
        Head head = head_of(from, Kind::taken, 0, input);
        head.taken += input.number();
        return arrives(from, head, {}, std::nullopt);
    }
    default: { // anything that is no message
        Head head{};
        Bytes bytes = input.bytes(sizeof head);
        bytes.resize(sizeof head);
        get(bytes.data(), head);
        if (head.kind <= Kind::announced_tagged && head.kind >= Kind::message) {
            return;
        }
        from.clean = false;
        return arrives(from, head, input.bytes(how >> 3), std::nullopt);
    }
    }
}

// --- the model ---

void World::goes_into(Receive& receive, std::size_t message) {
    const Sent& sent = all_[message];
    const std::size_t fits = std::min(sent.length, receive.left());
    receive.entries.push_back({message, receive.used, fits});
    if (receive.in.stays) {
        receive.used += fits;
        receive.over = receive.over || receive.is_full();
    } else {
        receive.over = true;
    }
    if (receive.over) {
        std::erase(posted_, &receive);
    }
}

void World::arrived(std::size_t message) {
    const Sent& sent = all_[message];
    const auto first = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const Receive* each) { return each->takes(sent); });
    if (first == posted_.end()) {
        return held(sent.tagged).push_back(message);
    }
    Receive& receive = **first;
    goes_into(receive, message);
    collect();
    if (!sent.announced || sent.length == 0) {
        FUZZ_CHECK(receive.entries.back().completed);
    }
}

void World::peer_gone(const Remote& of, bool died) {
    const std::uint32_t number = of.peer.number();
    const auto lost = [&](std::size_t message) {
        Sent& sent = all_[message];
        if (sent.peer == number && sent.announced) {
            sent.lost = true;
        }
        return sent.lost;
    };
    for (auto& list : held_) {
        std::erase_if(list, lost);
    }
    for (const Claimed& each : claimed_) {
        lost(each.message);
    }
    for (const auto& receive : receives_of_) {
        if (receive) {
            for (const Receive::Entry& entry : receive->entries) {
                if (!entry.completed) {
                    lost(entry.message);
                }
            }
        }
    }
    if (!died) {
        return;
    }
    std::erase_if(posted_, [&](Receive* each) {
        each->over = each->over || each->in.source == number;
        return each->in.source == number;
    });
}

// What a peer may have held here is what it was told.
void World::check_held() {
    std::array<std::uint64_t, kPeers> sums{};
    for (const auto& list : held_) {
        for (const std::size_t message : list) {
            const Sent& sent = all_[message];
            if (!sent.announced && sent.turn == remotes_[sent.peer]->turn) {
                sums[sent.peer] += sent.cost;
            }
        }
    }
    for (const std::uint64_t sum : sums) {
        FUZZ_CHECK(sum <= messages.window());
    }
}

// --- the program ---

void World::post(std::unique_ptr<Receive> made, std::optional<std::size_t> claimed) {
    Receive& receive = *made;
    const std::size_t half = receive.in.count == 2 ? receive.memory.size() / 3 : 0;
    receive.iov = {engine::Iov{receive.memory.data(), half > 0 ? half : receive.memory.size()},
                   engine::Iov{receive.memory.data() + half, receive.memory.size() - half}};
    if (receive.in.count == 2 && half == 0) {
        receive.in.count = 1;
    }
    receive.in.iov = receive.iov.data();
    receive.in.length = receive.memory.size();
    receive.in.context = next_context();
    receives_of_.push_back(std::move(made));
    if (claimed) {
        const Claimed taken = claimed_[*claimed];
        claimed_.erase(claimed_.begin() + static_cast<std::ptrdiff_t>(*claimed));
        const bool lost = all_[taken.message].lost;
        FUZZ_CHECK(messages.is_claimed(taken.what));
        if (!lost) {
            goes_into(receive, taken.message);
        } else {
            receive.over = true;
        }
        if (messages.receive_claimed(*taken.what, receive.in) == PostVerdict::full) {
            receives_of_.back().reset();
            claimed_.push_back(taken);
        } else {
            collect();
            FUZZ_CHECK(!lost || receive.done);
        }
        return;
    }
    // What it takes is decided before it is posted, for it may complete within.
    auto& list = held(receive.in.tagged);
    std::vector<std::size_t> taken;
    while (!receive.over) {
        const auto first = std::find_if(list.begin(), list.end(), [&](std::size_t message) {
            return receive.takes(all_[message]);
        });
        if (first == list.end()) {
            break;
        }
        taken.push_back(*first);
        goes_into(receive, *first);
        list.erase(first);
    }
    if (messages.receive(receive.in) == PostVerdict::full) {
        for (const std::size_t message : taken) { // nothing happened
            list.push_back(message);
        }
        std::sort(list.begin(), list.end());
        receives_of_.back().reset();
        return;
    }
    if (!receive.over) {
        posted_.push_back(&receive);
    }
    collect();
    for (const Receive::Entry& entry : receive.entries) {
        FUZZ_CHECK(entry.completed || all_[entry.message].announced);
    }
}

void World::post(Input& input) {
    static constexpr std::uint64_t kIgnored[] = {0, 0, 1, 3, 6, 7, 5, ~std::uint64_t{0}};
    const std::uint8_t how = input.octet();
    const std::uint8_t what = input.octet();
    rdm::Messages::Incoming in{};
    in.tagged = (how & 1) != 0;
    in.stays = (how & 0x0c) == 0x0c;
    in.count = (how & 2) != 0 && !in.stays ? 2 : 1;
    in.tag = in.tagged ? what & 7 : 0;
    in.ignore = in.tagged ? kIgnored[what >> 3 & 7] : 0;
    in.source = (how & 0x30) == 0x30 ? (what >> 6) % kPeers : core::kAnySource;
    in.reported = true;
    const std::size_t size =
        (how & 0x40) != 0 ? input.word() % (kLongest + 1) : input.octet() + (in.stays ? 64u : 0u);
    post(std::make_unique<Receive>(size, in), std::nullopt);
}

void World::peek(Input& input) {
    const std::uint8_t how = input.octet();
    const std::uint8_t what = input.octet();
    rdm::Messages::Incoming in{};
    in.tagged = (how & 1) != 0;
    in.tag = in.tagged ? what & 7 : 0;
    in.ignore = in.tagged && (what & 8) != 0 ? 3 : 0;
    in.source = (what & 0x10) != 0 ? what >> 6 : core::kAnySource;
    in.context = next_context();
    Receive like(0, in);
    auto& list = held(in.tagged);
    const auto first = std::find_if(list.begin(), list.end(),
                                    [&](std::size_t message) { return like.takes(all_[message]); });
    const bool discards = (how & 6) == 2;
    const bool claims = (how & 6) == 4;
    receives_of_.push_back(nullptr);
    rdm::Unexpected* claimed = nullptr;
    told_.reset();
    messages.peek(in, discards, claims ? &claimed : nullptr);
    std::optional<std::size_t> message;
    if (first != list.end()) {
        message = *first;
        if (discards || claims) {
            list.erase(first);
        }
    }
    FUZZ_CHECK(!claims || (claimed != nullptr) == message.has_value());
    if (claimed) {
        claimed_.push_back({claimed, *message});
    }
    collect();
    FUZZ_CHECK(told_.has_value());
    if (!message) {
        FUZZ_CHECK(told_->status == DtoStatus::no_message);
        return;
    }
    const Sent& sent = all_[*message];
    FUZZ_CHECK(told_->status == remotes_[sent.peer]->peer.arrival());
    FUZZ_CHECK(told_->length == sent.length && told_->overflow == sent.tag);
    FUZZ_CHECK(told_->source == sent.peer + 1);
    FUZZ_CHECK(((told_->flags & kWithData) != 0) == sent.data.has_value());
    FUZZ_CHECK(told_->data == sent.data.value_or(0));
}

void World::use_claimed(Input& input) {
    if (claimed_.empty()) {
        return;
    }
    const std::uint8_t how = input.octet();
    const std::size_t at = (how >> 2) % claimed_.size();
    rdm::Messages::Incoming in{};
    in.count = 1;
    in.tagged = all_[claimed_[at].message].tagged;
    in.tag = all_[claimed_[at].message].tag;
    if ((how & 1) != 0) {
        return post(std::make_unique<Receive>(input.word() % (kLongest + 1), in), at);
    }
    in.context = next_context();
    receives_of_.push_back(nullptr);
    rdm::Unexpected& what = *claimed_[at].what;
    claimed_.erase(claimed_.begin() + static_cast<std::ptrdiff_t>(at));
    told_.reset();
    messages.discard_claimed(what, in);
    collect();
    FUZZ_CHECK(told_.has_value());
}

void World::cancel(Input& input) {
    const std::size_t which = receives_of_.empty() ? 0 : input.octet() % receives_of_.size();
    Receive* const receive = receives_of_.empty() ? nullptr : receives_of_[which].get();
    const bool there = std::find(posted_.begin(), posted_.end(), receive) != posted_.end();
    if (there) {
        receive->over = true;
        std::erase(posted_, receive);
    }
    FUZZ_CHECK(messages.cancel(reinterpret_cast<void*>(which + 1)) == there);
    collect();
    if (there && std::all_of(receive->entries.begin(), receive->entries.end(),
                             [](const Receive::Entry& each) { return each.completed; })) {
        FUZZ_CHECK(receive->done);
    }
}

void World::send(Input& input) {
    const std::uint8_t how = input.octet();
    const std::uint32_t to = (how & 3) % kPeers;
    const std::size_t length =
        (how & 4) != 0 ? input.word() % (kLongest + 1) : input.octet() % (rdm::kInjectSize + 1);
    sends_of_.push_back(std::make_unique<Send>(length, to));
    Send& made = *sends_of_.back();
    // A message to itself is as one that came, others are known by their serial number.
    const std::size_t number = to == kSelf ? all_.size() : sends_of_.size();
    fuzz::fill_response(made.memory, number, 0);
    std::array<engine::Iov, 2> iov{
        engine::Iov{made.memory.data(), length / 2},
        engine::Iov{made.memory.data() + length / 2, length - length / 2}};
    rdm::Outgoing out{};
    out.iov = iov.data();
    out.count = (how & 8) != 0 && to == kSelf ? 2 : 1;
    if (out.count == 1) {
        iov[0].length = length;
    }
    out.length = length;
    out.tagged = (how & 16) != 0;
    out.tag = out.tagged ? input.octet() & 7 : 0;
    out.has_data = true;
    out.data = to == kSelf ? 7 : number;
    out.context = reinterpret_cast<void*>(sends_of_.size());
    out.injected = length <= rdm::kInjectSize && (how & 32) != 0;
    out.silent = out.injected && (how & 8) != 0;
    out.delivered = !out.injected && (how & 64) != 0;
    out.reported = !out.silent && (how & 128) == 0;
    made.reported = out.reported;
    const PostVerdict verdict = remotes_[to]->peer.send(out);
    FUZZ_CHECK(verdict == PostVerdict::posted || verdict == PostVerdict::full);
    if (out.injected) {
        fuzz::fill(made.memory, std::byte{0xee});
    }
    if (verdict == PostVerdict::full) {
        sends_of_.back()->reported = false;
    } else if (to == kSelf) {
        all_.push_back({.peer = kSelf,
                        .turn = 0,
                        .tagged = out.tagged,
                        .tag = out.tag,
                        .length = length,
                        .pattern = number,
                        .announced = false,
                        .data = out.data});
        arrived(all_.size() - 1);
    }
    collect();
}

// --- completions ---

void World::take_receive(const Completion& done) {
    const std::size_t number = reinterpret_cast<std::size_t>(done.context);
    FUZZ_CHECK(number > 0 && number <= receives_of_.size());
    Receive* const receive = receives_of_[number - 1].get();
    if (!receive) {
        FUZZ_CHECK(!told_.has_value());
        told_ = done;
        return;
    }
    FUZZ_CHECK(!receive->done);
    const bool last = !receive->in.stays || (done.flags & kReleased) != 0;
    const auto entry = std::find_if(
        receive->entries.begin(), receive->entries.end(), [&](const Receive::Entry& each) {
            return !each.completed && done.source == all_[each.message].peer + 1 &&
                   (each.fits == 0 || done.buffer == receive->memory.data() + each.offset) &&
                   done.overflow + done.length ==
                       all_[each.message].length + (done.status == DtoStatus::success ||
                                                            done.status == DtoStatus::unknown_source
                                                        ? all_[each.message].tag
                                                        : 0);
        });
    if (entry == receive->entries.end()) { // it is over without a message
        FUZZ_CHECK(done.status == DtoStatus::flushed && last && receive->over);
    } else {
        const Sent& sent = all_[entry->message];
        entry->completed = true;
        const bool whole = entry->fits == sent.length;
        if (done.status == DtoStatus::flushed || done.status == DtoStatus::remote_access) {
            FUZZ_CHECK(sent.announced && done.length == 0);
        } else {
            FUZZ_CHECK(done.status ==
                       (whole ? remotes_[sent.peer]->peer.arrival() : DtoStatus::local_length));
            FUZZ_CHECK(fuzz::is_response(
                std::span(receive->memory).subspan(entry->offset, entry->fits), sent.pattern));
            FUZZ_CHECK(!whole || ((done.flags & kWithData) != 0) == sent.data.has_value());
            FUZZ_CHECK(!whole || done.data == sent.data.value_or(0));
        }
    }
    if (last) {
        FUZZ_CHECK(std::all_of(receive->entries.begin(), receive->entries.end(),
                               [](const Receive::Entry& each) { return each.completed; }));
        receive->done = true;
        ASAN_POISON_MEMORY_REGION(receive->memory.data(), receive->memory.size());
    }
}

void World::collect() {
    for (const Completion& done : receives_.take()) {
        // The model is told of what arrives when that is over.
        take_receive(done);
    }
    for (const Completion& done : sends_.take()) {
        const std::size_t number = reinterpret_cast<std::size_t>(done.context);
        FUZZ_CHECK(number > 0 && number <= sends_of_.size());
        Send& send = *sends_of_[number - 1];
        FUZZ_CHECK(++send.completions == 1);
        FUZZ_CHECK(send.reported || done.status != DtoStatus::success);
        // Nobody looks at it any more.
        ASAN_POISON_MEMORY_REGION(send.memory.data(), send.memory.size());
    }
}

// --- the script ---

void World::connection(Remote& of, Input& input) {
    const std::uint8_t how = input.octet();
    if (!of.linked()) {
        const std::uint32_t window = (how & 2) != 0 ? input.number() : 4096;
        of.other = (how & 5) == 5;
        of.connect(window, (how & 1) != 0);
    } else if (how < 16) {
        of.ends((how & 1) != 0);
    } else if (how < 20) {
        of.peer.say_goodbye();
    } else if (of.leaves()) {
        of.let_go();
    } else {
        of.unused();
    }
    collect();
}

void World::step(Input& input) {
    const std::uint8_t what = input.octet();
    Remote& remote = *remotes_[what >> 7];
    if (!remote.linked() && (remote.is_wanted() || what % 16 < 6)) {
        remote.connect(4096, (what & 16) != 0);
        collect();
    }
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        return peer_message(remote, input);
    case 3:
        return peer_announces(remote, input);
    case 4:
    case 5:
        return peer_says(remote, input);
    case 6:
    case 7:
    case 8:
        return post(input);
    case 9:
        return peek(input);
    case 10:
        return use_claimed(input);
    case 11:
        return cancel(input);
    case 12:
        return send(input);
    case 13:
        for (int i = 0; i <= (what >> 4 & 3) && remote.has_posted(); ++i) {
            remote.finish(0, true);
        }
        return collect();
    case 14:
        if (remote.has_posted()) {
            const std::uint8_t which = input.octet();
            remote.finish(which >> 1, (which & 1) == 0);
        }
        domain().run_deferred();
        return collect();
    default:
        return connection(remote, input);
    }
}

void World::finish() {
    domain().run_deferred();
    collect();
    for (const auto& each : remotes_) {
        each->peer.say_goodbye();
    }
    for (const auto& each : remotes_) {
        each->ends(false);
        collect();
    }
    for (Receive* const each : std::exchange(posted_, {})) {
        each->over = true;
    }
    messages.flush();
    collect();
    for (const auto& each : receives_of_) {
        FUZZ_CHECK(!each || each->done);
    }
    for (const auto& each : sends_of_) {
        FUZZ_CHECK(!each->reported || each->completions == 1);
    }
    for (const auto& each : remotes_) {
        FUZZ_CHECK(each->peer.is_unused());
    }
    FUZZ_CHECK(!messages.is_full_of_left());
    FUZZ_CHECK(domain().regions().size() == 0);
    domain().progress(); // so that links which have been let go are gone
    remotes_.clear();
}

} // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    fuzz::World world;
    constexpr int kSteps = 256;
    for (int i = 0; i < kSteps && !input.empty(); ++i) {
        world.step(input);
    }
    world.finish();
    return 0;
}
