// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Shows what a domain counts to other processes of the same user, and to root's: who connects to
// its abstract socket is given the page (engine/statistics_page.h) at once, and nothing of him is
// read. While he stays connected the page is written several times a second, as the domain makes
// progress. Strangers are sent away as from the local listener (local_listener.h). While nobody
// looks a domain has the listening socket and nothing else for this. Under the domain's lock. May
// include: engine, net/socket.h, system headers.
//
//   viewer                                 domain
//   connects to "dat-stats-<16 digits>"    Viewers: SO_PEERCRED, or away
//             <-- Unix: kMagic, memfd --   admit()
//   maps it, reads it; closes the socket   forget(): with the last one the page goes
#ifndef DAT_LINKS_SHM_VIEWERS_H
#define DAT_LINKS_SHM_VIEWERS_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "engine/statistics_page.h"
#include "links/shm/reaper.h"
#include "net/socket.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::shm {

class Viewers final : public engine::Companion, private engine::Pollable, private engine::Timer {
  public:
    // How often the page is written while somebody looks.
    static constexpr std::chrono::milliseconds kPeriod{250};

    // Opens the domain's socket, once. `name`: of the domain; `version`: of the provider. Where it
    // cannot be opened the domain goes on without, which is logged.
    static void open(engine::Domain& domain, const char* name, const char* version);
    ~Viewers() override;

  private:
    static constexpr std::size_t kMost = 16; // viewers at once

    Viewers(engine::Domain& domain, const char* name, const char* version);
    // What a viewer is shown; there while there are viewers.
    class Shared {
      public:
        Shared() = default;
        ~Shared();
        Shared(const Shared&) = delete;
        Shared& operator=(const Shared&) = delete;
        int open(); // 0 or -errno
        engine::page::Page* page() const { return page_; }
        int fd() const { return fd_.fd(); }

      private:
        net::Socket fd_;
        engine::page::Page* page_ = nullptr;
    };
    struct Viewer;

    int listen();
    void ready(std::uint32_t events) override;
    void expired() override; // the page is due, or the pause is over
    void lost() override { shut(); }
    void watch();
    void admit(net::Socket socket);
    void turn_away(net::Socket socket);
    void forget(Viewer& viewer);
    bool share();
    void write();
    void shut();

    engine::Domain& domain_;
    Reaper reaper_;
    net::Socket socket_;
    bool watched_ = false;
    std::uint32_t strangers_ = 0; // since the last pause
    engine::page::Text<64> name_;
    engine::page::Text<32> version_;
    std::uint64_t opened_ns_;
    std::unique_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Viewer>> viewers_;
    std::vector<std::unique_ptr<Viewer>> gone_; // one of them may be running now
};

} // namespace dat::shm

#endif
