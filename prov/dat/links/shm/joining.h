// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The initiator's side of sharing memory (local_listener.h): it takes an offer. By the peering with
// who has made it; or it comes to his local listener, which begins one. Who wants the same while
// another is on his way there waits for that. Under the domain's lock.
#ifndef DAT_LINKS_SHM_JOINING_H
#define DAT_LINKS_SHM_JOINING_H

#include "links/shm/local_listener.h"

#include <cstdint>
#include <memory>

namespace dat::shm {

// Takes an offer at its local listener for the connection `ends`, as far as it goes without
// waiting. False: it cannot be taken, here, as joint.why says.
bool join_host(engine::Domain& domain, const Offer& offer, const TcpEnds& ends, Joint& joint);

enum class Answer : std::uint8_t { none_yet, welcome, refused };
// Reads the answer from joint.wake_socket, which is readable by then, and confirms it: then
// joint.channel is the connection's, in a peering that has begun. leave() is the caller's, unless
// it is welcome; then joint.why says why it is not.
Answer welcomed(engine::Domain& domain, Joint& joint);
// Goes, whatever has been said.
void leave(engine::Domain& domain, Joint& joint);

// For one connection.
class Joining final : private engine::Pollable, private Peering::Asker {
  public:
    class Owner {
      public:
        // From here on TCP may be left.
        virtual void joined(Joint joint) = 0;
        // It stays on TCP, for that reason.
        virtual void stayed_out(const Why& why) = 0;

      protected:
        ~Owner() = default;
    };

    Joining(engine::Domain& domain, Owner& owner) : domain_(domain), owner_(owner) {}
    ~Joining() { abandon(); }
    Joining(const Joining&) = delete;
    Joining& operator=(const Joining&) = delete;

    // Once. False: it cannot be taken, as `why` says. Else the owner is told, later.
    bool begin(const Offer& offer, const TcpEnds& ends, Why& why);
    bool is_under_way() const { return stage_ != Stage::none; }
    // The owner hears no more of it.
    void abandon();

  private:
    enum class Stage : std::uint8_t { none, waits, comes, asks };

    bool try_all(Why& why);
    bool come(Why& why);
    bool queue(Stage stage);
    void unqueue();
    void wake_those_behind() const;
    void again();
    void ready(std::uint32_t events) override;
    void lost() override;
    void granted(std::shared_ptr<Channel> channel, const Name& listener) override;
    void refused(bool here_alone) override;
    void finish(bool in);

    engine::Domain& domain_;
    Owner& owner_;
    Offer offer_{};
    TcpEnds ends_;
    Name name_{}; // in the offer
    std::uint64_t cookie_ = 0;
    Stage stage_ = Stage::none;
    bool has_asked_ = false;           // in vain, once
    std::shared_ptr<Peering> peering_; // that is asked
    Overheard::Need need_;             // meanwhile
    Joint joint_;
};

} // namespace dat::shm

#endif
