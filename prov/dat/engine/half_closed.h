// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint keeps of a connection that is over for one side alone. As long as that is there
// the other side, which keeps one too, knows that this one has not left yet. Under the domain's
// lock.
#ifndef DAT_ENGINE_HALF_CLOSED_H
#define DAT_ENGINE_HALF_CLOSED_H

#include <memory>

namespace dat::engine {

class Domain;
class Endpoint;

class HalfClosed {
  public:
    // `watching`: this side has left, and the endpoint is to know when the peer has; else the peer
    // is to know when this ends.
    explicit HalfClosed(bool watching) : watching_(watching) {}
    virtual ~HalfClosed() = default;
    HalfClosed(const HalfClosed&) = delete;
    HalfClosed& operator=(const HalfClosed&) = delete;

    bool watching() const { return watching_; }
    // The link has parted. From here on Endpoint::peer_left() is called, which destroys this.
    // False: there is nothing to watch.
    virtual bool begin() = 0;

  private:
    const bool watching_;
};

// By a second descriptor of the link's stream: as long as it is open, and nothing was said, the
// peer does not see the end. nullptr: there is no descriptor or memory left.
std::unique_ptr<HalfClosed> keep_stream(Domain& domain, Endpoint& endpoint, int fd, bool watching);

} // namespace dat::engine

#endif
