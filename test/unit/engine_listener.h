// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A listener on loopback, for the tests of the software domain.
#ifndef TEST_UNIT_ENGINE_LISTENER_H
#define TEST_UNIT_ENGINE_LISTENER_H

#include "links/iwarp/connect.h"

#include <criterion/criterion.h>
#include <memory>
#include <netinet/in.h>
#include <utility>
#include <vector>

namespace engine_test {

struct LoopbackListener : dat::iwarp::ListenerOwner {
    LoopbackListener() : listener(*this, {}) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* any = reinterpret_cast<const sockaddr*>(&address);
        cr_assert_eq(listener.bind({any, sizeof address}), 0);
        cr_assert_eq(listener.listen(64), 0);
    }
    dat::iwarp::Listener listener;

  protected:
    ~LoopbackListener() = default;
};

// Keeps all requests that come to it.
struct LocalListener final : LoopbackListener {
    void announce(std::unique_ptr<dat::iwarp::ConnRequest> arrived) override {
        requests.push_back(std::move(arrived));
    }
    std::vector<std::unique_ptr<dat::iwarp::ConnRequest>> requests;
};

} // namespace engine_test

#endif
