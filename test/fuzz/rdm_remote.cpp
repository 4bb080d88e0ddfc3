// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A peer of fuzz_rdm.cpp: what it says as a link gives it, and what it hears, which is looked at.
#include "rdm_world.h"

namespace fuzz {

void Remote::connect(std::uint32_t of_peer, bool accepted) {
    if (endpoint_.core().state() == core::State::disconnected) {
        FUZZ_CHECK(endpoint_.reset());
    }
    struct Nothing final : engine::Handshake {
        void abandon() override {}
    };
    FUZZ_CHECK(endpoint_.begin_accept());
    endpoint_.run(std::make_unique<Nothing>());
    said = heard = told = taken_told_ = 0;
    last_serial_ = 0;
    window = of_peer;
    clean = true;
    goodbye = false;
    owed.clear();
    wanted_ = asking_ = leaves_ = false;
    endpoint_.established(endpoint_.attempt(), core::Stimulus::handshake_done,
                          std::make_unique<ScriptLink>(posted_), {});
    peer.connected(endpoint_, window, accepted);
    domain().run_deferred();
}

void Remote::confirmed(rdm::Peer&) {
    if (other) {
        other = false;
        peer.fail();
        world_.peer_gone(*this, true);
    }
    peer.go_on();
}

// As core/rdm_peer.def has it.
void Remote::asked(rdm::Peer&) {
    if (asking_) {
        leaves_ = true;
    } else if (!leaves_) {
        const bool quiet = peer.is_quiet();
        leaves_ = quiet;
        peer.say_of_release(quiet ? Kind::agree : Kind::decline);
    }
}

void Remote::agreed(rdm::Peer&) { leaves_ = leaves_ || asking_; }

void Remote::declined(rdm::Peer&) {
    if (asking_ && !leaves_) {
        asking_ = false;
        peer.go_on();
    }
}

void Remote::unused() {
    if (!asking_ && !leaves_ && peer.is_quiet()) {
        asking_ = true;
        peer.say_of_release(Kind::ask);
    }
}

void Remote::let_go() {
    ending_ = true;
    endpoint_.disconnect(false);
    ending_ = false;
    peer.parted();
    ++turn;
    wanted_ = peer.has_queued();
    world_.peer_gone(*this, false);
}

// As a stream brings it that has half of it. False: it is to be kept until it is whole.
bool Remote::comes_in_pieces(const Bytes& bytes) {
    const std::size_t half = bytes.size() / 2;
    if (bytes.size() % 3 != 0 || half < peer.longest_head()) {
        return false;
    }
    const Bytes start(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(half));
    const engine::MessageSink::Placement to = peer.begins(start.data(), start.size());
    if (to.head == 0) {
        return false;
    }
    FUZZ_CHECK(to.head >= sizeof(Head) && to.head <= peer.longest_head());
    const std::size_t length = bytes.size() - to.head;
    std::size_t at = to.head;
    for (std::size_t i = 0; i < to.count; ++i) {
        const std::size_t some = std::min(to.segments[i].length, bytes.size() - at);
        std::copy_n(bytes.data() + at, some, to.segments[i].base);
        at += some;
    }
    FUZZ_CHECK(at - to.head == std::min<std::uint64_t>(length, to.capacity));
    peer.placed(length);
    return true;
}

void Remote::say(const Bytes& bytes) {
    // What a link would give has a bound.
    FUZZ_CHECK(bytes.size() <= peer.longest());
    if (comes_in_pieces(bytes)) {
        return;
    }
    const Bytes there(bytes); // of just that size
    if (!peer.arrived(there.data(), there.size())) {
        FUZZ_CHECK(!clean || !linked());
        endpoint_.over(core::Stimulus::broken, core::Reason::protocol, engine::Parting::broken);
    }
}

void Remote::raise(const core::ConnectionEvent& event) {
    if (event.event == core::Event::established || ending_) {
        return;
    }
    if (asking_ || leaves_) {
        peer.parted();
        ++turn;
        wanted_ = peer.has_queued();
        return world_.peer_gone(*this, false);
    }
    const bool died = !peer.said_goodbye();
    peer.fail();
    peer.parted();
    ++turn;
    world_.peer_gone(*this, died);
}

void Remote::ends(bool by_itself) {
    if (by_itself) {
        return endpoint_.over(core::Stimulus::peer_disconnected, core::Reason::peer_closed,
                              engine::Parting::clean);
    }
    const bool died = !peer.said_goodbye();
    ending_ = true;
    endpoint_.disconnect(false);
    ending_ = false;
    peer.parted();
    ++turn;
    peer.fail();
    world_.peer_gone(*this, died);
}

// What a right sender lets be read.
void Remote::fill(const engine::Request& read) {
    const auto place =
        std::find_if(world_.announced.begin(), world_.announced.end(),
                     [&](const World::Announced& each) { return each.key == read.remote_key; });
    FUZZ_CHECK(place != world_.announced.end());
    FUZZ_CHECK(read.remote_address == 0 && read.length <= place->length);
    std::size_t offset = place->offset;
    Bytes whole(offset + read.length);
    fuzz::fill_response(whole, place->pattern, 0);
    for (const engine::Iov& piece : read.segments()) {
        if (piece.length > 0) {
            std::memcpy(piece.base, whole.data() + offset, piece.length);
        }
        offset += piece.length;
    }
    FUZZ_CHECK(offset == whole.size());
}

void Remote::finish(std::size_t which, bool good) {
    const auto is_read = [this](std::uint64_t each) {
        return endpoint_.request(each).op == engine::OpCode::read;
    };
    std::size_t at = which % posted_.size();
    if (!is_read(posted_[at])) { // messages go in their order
        at = static_cast<std::size_t>(std::find_if_not(posted_.begin(), posted_.end(), is_read) -
                                      posted_.begin());
    }
    const std::uint64_t seq = posted_[at];
    posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(at));
    const engine::Request& request = endpoint_.request(seq);
    if (request.op == engine::OpCode::read) {
        if (!good) {
            return endpoint_.request_failed(seq, DtoStatus::remote_access, core::Reason::dto_error,
                                            engine::Parting::broken);
        }
        fill(request);
    } else {
        Bytes bytes;
        for (const engine::Iov& piece : request.segments()) {
            bytes.insert(bytes.end(), piece.base, piece.base + piece.length);
        }
        FUZZ_CHECK(bytes.size() == request.length);
        hear(bytes);
    }
    endpoint_.finish_request(seq, DtoStatus::success);
}

void Remote::hear(const Bytes& bytes) {
    FUZZ_CHECK(bytes.size() >= sizeof(Head));
    Head head;
    const std::byte* at = get(bytes.data(), head);
    std::size_t size = bytes.size() - sizeof head;
    FUZZ_CHECK(head.taken - taken_told_ <= said - taken_told_);
    taken_told_ = head.taken;
    std::uint64_t serial = 0;
    std::uint64_t id = 0;
    const bool announced = head.kind == Kind::announced || head.kind == Kind::announced_tagged;
    switch (head.kind) {
    case Kind::done:
    case Kind::taken:
    case Kind::goodbye:
    case Kind::ask:
    case Kind::agree:
    case Kind::decline:
    case Kind::push:
        FUZZ_CHECK(size == 0);
        return;
    case Kind::piece:
        FUZZ_CHECK(size > sizeof(std::uint64_t));
        return;
    case Kind::message:
    case Kind::tagged:
    case Kind::announced:
    case Kind::announced_tagged:
        break;
    default:
        FUZZ_CHECK(false);
    }
    FUZZ_CHECK((head.flags & rdm::kHasData) != 0 && size >= sizeof serial);
    at = rdm::get(at, serial);
    size -= sizeof serial;
    FUZZ_CHECK(serial > last_serial_);
    last_serial_ = serial;
    if (announced || (head.flags & rdm::kWantsDone) != 0) {
        FUZZ_CHECK(size >= sizeof id);
        at = rdm::get(at, id);
        size -= sizeof id;
        owed.push_back(id);
    }
    if (!announced) {
        heard += rdm::cost_of(size);
        FUZZ_CHECK(!clean || heard - told <= window);
        FUZZ_CHECK(fuzz::is_response({at, size}, serial));
        return;
    }
    FUZZ_CHECK(head.segments <= rdm::kMaxPlaces && size == head.segments * sizeof(rdm::Place));
    std::size_t offset = 0;
    for (std::size_t i = 0; i < head.segments; ++i) {
        rdm::Place place{};
        at = rdm::get(at, place);
        const auto target = domain().regions().find(place.key, 0, place.length, engine::kRemoteRead,
                                                    &engine_test::Side::zone);
        FUZZ_CHECK(!clean || target.at != nullptr);
        if (offset == 0 && target.at) {
            FUZZ_CHECK(fuzz::is_response({target.at, place.length}, serial));
        }
        offset += place.length;
    }
}

} // namespace fuzz
