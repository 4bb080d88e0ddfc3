// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What fuzz_rdm.cpp knows of the endpoint, its peers, and what became of each message: what a peer
// says and hears is in rdm_remote.cpp, the messages and receives in fuzz_rdm.cpp.
#pragma once

#include "../unit/engine_harness.h"
#include "input.h"
#include "plain.h"

#include "core/rdm_peer.h"
#include "rdm/messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <sanitizer/asan_interface.h>
#include <utility>
#include <vector>

namespace fuzz {

namespace core = dat::core;
namespace engine = dat::engine;
namespace rdm = dat::rdm;
using core::DtoStatus;
using core::PostVerdict;
using engine_test::Completion;
using rdm::Head;
using rdm::Kind;

constexpr std::uint32_t kSelf = 2; // the number of the peer that is the endpoint itself
constexpr std::uint32_t kPeers = 3;
constexpr std::size_t kMinMulti = 16;
constexpr std::size_t kMaxSends = 24;
constexpr std::size_t kMaxReceives = 48;
constexpr std::size_t kLongest = 20'000; // of a message; some are announced for their length
constexpr std::uint64_t kReleased = 1, kWithData = 2, kTagged = 4;
constexpr rdm::Messages::Flags kFlags{
    .message = 0, .tagged = kTagged, .with_data = kWithData, .released = kReleased};

inline engine::Domain& domain() {
    static engine_test::OpenDomain one([] {
        auto o = engine_test::options();
        o.settings.unexpected_bytes = 1024; // a window of 4096
        o.settings.end_grace = std::chrono::milliseconds(0);
        return o;
    }());
    return one;
}

// A message that came, or that the endpoint sent itself.
struct Sent {
    std::uint32_t peer;
    std::uint32_t turn; // connections of that peer so far
    bool tagged;
    std::uint64_t tag;
    std::size_t length;
    std::size_t pattern; // what its payload is
    bool announced;
    std::optional<std::uint64_t> data;
    std::uint32_t cost = 0; // of what is held
    bool lost = false;      // its sender has gone with its payload
};

// A receive of the program.
struct Receive {
    struct Entry {
        std::size_t message;
        std::size_t offset;
        std::size_t fits;
        bool completed = false;
    };

    Receive(std::size_t size, const rdm::Messages::Incoming& what) : memory(size), in(what) {}
    ~Receive() { ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size()); }
    Receive(const Receive&) = delete;
    Receive& operator=(const Receive&) = delete;

    bool takes(const Sent& message) const {
        return message.tagged == in.tagged && ((message.tag ^ in.tag) & ~in.ignore) == 0 &&
               (in.source == core::kAnySource || in.source == message.peer);
    }
    std::size_t left() const { return memory.size() - used; }
    bool is_full() const { return left() < std::max<std::size_t>(kMinMulti, 1); }

    Bytes memory;
    rdm::Messages::Incoming in;
    std::array<engine::Iov, 2> iov;
    std::vector<Entry> entries;
    std::size_t used = 0;
    bool over = false; // takes no more
    bool done = false; // its last completion has come
};

// A send of the program.
struct Send {
    Send(std::size_t size, std::uint32_t to) : memory(size), peer(to) {}
    ~Send() { ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size()); }
    Send(const Send&) = delete;
    Send& operator=(const Send&) = delete;
    Bytes memory;
    std::uint32_t peer;
    bool reported = true;
    std::uint32_t completions = 0;
};

class World;

// Keeps what is posted until the input says what becomes of it.
class ScriptLink final : public engine::Link {
  public:
    explicit ScriptLink(std::deque<std::uint64_t>& posted)
        : Link(engine::LinkKind::in_process), posted_(posted) {}

    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool wide() const override { return true; }
    bool peer_serves_reads() const override { return true; }
    void transmit(engine::Request&, std::uint64_t seq, bool) override { posted_.push_back(seq); }
    void start() override {}
    void poll() override {}
    void push() override {}
    void receive_posted() override {}
    void drain() override {}
    void part(engine::Parting) override { posted_.clear(); }

  private:
    std::deque<std::uint64_t>& posted_;
};

// A peer, and what it knows.
class Remote final : private rdm::PeerOwner, private engine::EndpointOwner {
  public:
    Remote(World& world, rdm::Messages& messages, core::CompletionQueue& sends,
           std::uint32_t number)
        : peer(messages, *this, number), world_(world),
          endpoint_(domain(), *this, {24, 1}, &engine_test::Side::zone) {
        endpoint_.set_queues(&sends, nullptr);
        endpoint_.set_sink(&peer);
        peer.set_source(number + 1, number == 1 ? DtoStatus::unknown_source : DtoStatus::success);
    }
    ~Remote() { endpoint_.free(); }

    bool linked() const { return endpoint_.core().state() == core::State::connected; }
    bool is_wanted() const { return wanted_; }
    void connect(std::uint32_t window, bool accepted);
    bool comes_in_pieces(const Bytes& bytes);
    void say(const Bytes& bytes);
    // Something that was posted is over; `which` of it.
    void finish(std::size_t which, bool good);
    // Nothing uses the connection, as far as this side knows.
    void unused();
    // Both sides have let it go.
    bool leaves() const { return leaves_; }
    void let_go();
    bool has_posted() const { return !posted_.empty(); }
    std::uint32_t taken_told() const { return taken_told_; }
    // How a connection ends, as ofi::RdmPeer does it: by itself, or by this side.
    void ends(bool by_itself);

    rdm::Peer peer;
    std::uint32_t turn = 0;
    std::uint32_t said = 0; // what the messages of this connection cost that came from it
    std::uint32_t heard = 0;
    std::uint32_t window = 0;
    std::uint32_t told = 0;          // of what it has heard, as it said
    bool clean = true;               // it has been right so far
    bool goodbye = false;            // it has said so
    std::vector<std::uint64_t> owed; // ids that it is to say `done` of
    bool other = false;              // who confirms is not who was known

  private:
    void wanted(rdm::Peer&) override { wanted_ = true; }
    void give_up(rdm::Peer&) override { FUZZ_CHECK(false); }
    void confirmed(rdm::Peer&) override;
    void asked(rdm::Peer&) override;
    void agreed(rdm::Peer&) override;
    void declined(rdm::Peer&) override;
    void link_ready(engine::Link&) override {}
    void raise(const core::ConnectionEvent& event) override;
    void hear(const Bytes& bytes);
    void fill(const engine::Request& read);

    World& world_;
    engine::Endpoint endpoint_;
    std::deque<std::uint64_t> posted_;
    std::uint32_t taken_told_ = 0; // by this side
    std::uint64_t last_serial_ = 0;
    bool wanted_ = false;
    bool ending_ = false;
    bool asking_ = false;
    bool leaves_ = false;
};

class World {
  public:
    World() : messages(domain(), &engine_test::Side::zone, kFlags, kMaxReceives, kMaxSends) {
        messages.set_queues(&sends_, &receives_);
        messages.set_min_multi(kMinMulti);
        for (std::uint32_t i = 0; i < kPeers; ++i) {
            remotes_.push_back(std::make_unique<Remote>(*this, messages, sends_, i));
        }
        remotes_[kSelf]->peer.make_self();
    }
    void step(Input& input);
    void finish();

    // The peer's connection is over, or its first message shows that it is another one.
    void peer_gone(const Remote& of, bool died);
    // The message of a place that was announced.
    struct Announced {
        std::uint32_t key;
        std::size_t pattern;
        std::size_t offset;
        std::size_t length;
    };
    std::vector<Announced> announced;
    rdm::Messages messages;

  private:
    void peer_message(Remote& from, Input& input);
    void peer_announces(Remote& from, Input& input);
    void peer_says(Remote& from, Input& input);
    Head head_of(Remote& from, Kind kind, std::uint8_t flags, Input& input);
    void arrives(Remote& from, Head head, const Bytes& behind, std::optional<Sent> sent);
    void arrived(std::size_t message);
    void goes_into(Receive& receive, std::size_t message);
    void post(Input& input);
    void post(std::unique_ptr<Receive> receive, std::optional<std::size_t> claimed);
    void peek(Input& input);
    void use_claimed(Input& input);
    void cancel(Input& input);
    void send(Input& input);
    void connection(Remote& of, Input& input);
    void collect();
    void take_receive(const Completion& done);
    void check_held();
    std::vector<std::size_t>& held(bool tagged) { return held_[tagged ? 1 : 0]; }
    void* next_context() { return reinterpret_cast<void*>(receives_of_.size() + 1); }

    engine_test::Queue sends_;
    engine_test::Queue receives_;
    std::vector<std::unique_ptr<Remote>> remotes_;
    std::deque<Sent> all_; // messages
    std::deque<std::unique_ptr<Send>> sends_of_;
    // By context; nullptr: no receive, and its completion was told at once.
    std::deque<std::unique_ptr<Receive>> receives_of_;
    std::vector<Receive*> posted_; // oldest first
    std::array<std::vector<std::size_t>, 2> held_;
    struct Claimed {
        rdm::Unexpected* what;
        std::size_t message;
    };
    std::vector<Claimed> claimed_;
    std::optional<Completion> told_; // of a peek, or of what was discarded
};

} // namespace fuzz
