// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Service points: public (in both models), reserved, common (SP-1..SP-13).
#ifndef DAT_SHIM_SERVICE_POINT_H
#define DAT_SHIM_SERVICE_POINT_H

#include "dat-shim/event.h"
#include "dat-shim/object.h"

#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/socket.h>

namespace dat::shim {

class Ep;
class Evd;

class ServicePoint final : public Object {
  public:
    struct Asked {
        Kind kind;
        std::uint64_t qualifier = 0; // 0: any
        Evd* evd = nullptr;
        bool makes_endpoints = false; // SP-4
        Ep* ep = nullptr;             // SP-10; not looked at once a request is there
        void* ep_handle = nullptr;
        const sockaddr* address = nullptr; // of a common one; nullptr: that of the IA
        int comm[3] = {};                  // of a common one
    };

    ServicePoint(Ia& ia, const Asked& asked);
    ~ServicePoint() override;

    static Return create(Ia& ia, const Asked& asked, ServicePoint*& point);
    Return free(); // SP-6, SP-12

    const Asked& asked() const { return asked_; }
    std::uint64_t qualifier() const { return asked_.qualifier; }
    const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
    fid_pep* fid() { return pep_; }
    static std::uint64_t port_in(const sockaddr& address);
    // The port is the low 16 bits of a qualifier, as the reference takes it: its programs have
    // larger ones. Without the other bits two are not told apart.
    static bool has_port(std::uint64_t qualifier) { return (qualifier & UINT16_MAX) != 0; }

    // A request was read: takes the info. True: `event` announces it. Else it is refused
    // (`room`: SP-3).
    bool request_arrived(fi_info* info, std::span<const std::byte> data, bool room, Event& event);

  private:
    Return open();
    Return listen();

    Asked asked_;
    sockaddr_storage address_{};
    fid_pep* pep_ = nullptr;
};

} // namespace dat::shim

#endif
