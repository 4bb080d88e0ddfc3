// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The sockets of peerings are in the domain's reactor, with what else wakes for data. While a
// connection is being made by one of them they are in that of handshakes as well, so that whoever
// waits for connection events hears what is said there. They leave it one by one, when something
// is said that nobody waits for. Under the domain's lock.
#ifndef DAT_LINKS_SHM_OVERHEARD_H
#define DAT_LINKS_SHM_OVERHEARD_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "net/socket.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dat::shm {

class Overheard {
  public:
    class Speaker {
      public:
        // Something has been said.
        virtual void speaks() = 0;

      protected:
        Speaker() = default;
        ~Speaker() = default;

      private:
        friend class Overheard;
        struct Ear final : engine::Pollable {
            explicit Ear(Speaker& of) : of_(of) {}
            void ready(std::uint32_t) override { of_.in_->hear(of_); }
            void lost() override { of_.heard_ = false; }
            Speaker& of_;
        };
        Ear ear_{*this};
        Overheard* in_ = nullptr;
        int fd_ = -1;
        bool heard_ = false; // it is in the reactor of handshakes
    };
    // Somebody waits, as long as this lives. Move-only.
    class Need {
      public:
        Need() = default;
        explicit Need(Overheard& of) : of_(&of) { of.begin(); }
        ~Need() {
            if (of_) {
                --of_->needs_;
            }
        }
        Need(Need&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        Need& operator=(Need&& other) noexcept {
            std::swap(of_, other.of_);
            return *this;
        }

      private:
        Overheard* of_ = nullptr;
    };

    explicit Overheard(engine::Domain& domain) : domain_(domain) {}
    Overheard(const Overheard&) = delete;
    Overheard& operator=(const Overheard&) = delete;

    // False: there is no memory for it.
    bool add(const net::Socket& socket, Speaker& speaker);
    void remove(Speaker& speaker);

  private:
    void begin() {
        ++needs_;
        for (Speaker* const each : speakers_) {
            listen_to(*each);
        }
    }
    void listen_to(Speaker& speaker);
    void ignore(Speaker& speaker);
    void hear(Speaker& speaker);

    engine::Domain& domain_;
    std::vector<Speaker*> speakers_;
    std::size_t needs_ = 0;
};

} // namespace dat::shm

#endif
