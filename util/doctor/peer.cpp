// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See peer.h.
#include "doctor/peer.h"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>

namespace dat::doctor {
namespace {

constexpr auto kAnswersIn = 3s;
constexpr auto kExchangeLimit = 30s; // on a busy host

// "HOST", "HOST:PORT", "192.0.2.1:80", "[2001:db8::1]:80", "2001:db8::1"
void split(const std::string& text, std::string& host, std::string& port) {
    port = kDefaultPort;
    const std::size_t colon = text.rfind(':');
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        host = text.substr(1, end - 1);
        if (end != std::string::npos && end + 2 < text.size() && text[end + 1] == ':') {
            port = text.substr(end + 2);
        }
    } else if (colon != std::string::npos && text.find(':') == colon) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
    } else {
        host = text;
    }
}

// 0 or an errno; ETIMEDOUT where nothing comes.
int connect_in_time(const net::Socket& socket, const ofi::SocketAddress& to) {
    if (::connect(socket.fd(), to.get(), to.size()) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    pollfd waiting{socket.fd(), POLLOUT, 0};
    constexpr int kLimit_ms = std::chrono::milliseconds(kAnswersIn).count();
    if (::poll(&waiting, 1, kLimit_ms) <= 0) {
        return ETIMEDOUT;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

std::size_t mtu_of(const net::Socket& socket) {
    int mtu = 0;
    socklen_t size = sizeof mtu;
    if (socket.local().family() == AF_INET) {
        ::getsockopt(socket.fd(), IPPROTO_IP, IP_MTU, &mtu, &size);
    } else {
        ::getsockopt(socket.fd(), IPPROTO_IPV6, IPV6_MTU, &mtu, &size);
    }
    return static_cast<std::size_t>(std::max(mtu, 0));
}

} // namespace

Peer::Peer(Facts& facts) : facts_(facts) { split(facts.options.peer, name_, port_); }

const ofi::SocketAddress& Peer::address() {
    if (!address_) {
        const auto found =
            ofi::resolve({name_.c_str(), port_.c_str(), AF_UNSPEC, false, false}, name_trouble_);
        address_ = found.empty() ? ofi::SocketAddress() : found.front();
    }
    return *address_;
}

const ofi::SocketAddress& Peer::source() {
    if (!source_) {
        source_ = ofi::source_towards(address());
    }
    return *source_;
}

const ofi::LocalAddress* Peer::interface() { return ofi::find_local(facts_.addresses(), source()); }

const Answer& Peer::answer() {
    if (answer_) {
        return *answer_;
    }
    Answer& answer = answer_.emplace();
    socket_ =
        net::Socket(::socket(address().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    answer.error = socket_ ? connect_in_time(socket_, address()) : errno;
    if (answer.error != 0) {
        return answer;
    }
    answer.mtu = mtu_of(socket_);
    const Beside beside(socket_.fd(), Role::client);
    try {
        beside.tell(kHello);
        const std::string line = beside.hear_within(kAnswersIn).value_or("");
        answer.error = parse(line, answer.greeting) ? 0 : EPROTO;
    } catch (const std::runtime_error&) {
        answer.error = EPROTO;
    }
    return answer;
}

namespace {

// A datagram may be lost for another reason than its size.
constexpr int kTimes = 3;
constexpr auto kComesIn = 250ms;

// Whether one of that size gets to the peer, which says so.
bool gets_there(const Beside& beside, const Datagrams& own, std::uint16_t port, std::size_t size,
                bool& told, int times = kTimes) {
    for (int time = 0; time < times; ++time) {
        if (const int error = own.send(port, size); error == EMSGSIZE) {
            told = true; // a router has said how long one may be, or the interface does
            return false;
        }
        while (const auto line = beside.hear_within(kComesIn)) {
            if (*line == "got " + std::to_string(size)) {
                return true;
            }
        }
    }
    return false;
}

bool gets_back(const Beside& beside, const Datagrams& own, std::size_t size, bool& told,
               int times = kTimes) {
    for (int time = 0; time < times; ++time) {
        beside.tell("back " + std::to_string(size) + " " + std::to_string(own.port()));
        if (beside.hear() == "sent " + std::to_string(EMSGSIZE)) {
            told = true;
            return false;
        }
        const auto limit = Clock::now() + kComesIn;
        for (pollfd waiting{own.fd(), POLLIN, 0}; Clock::now() < limit;) {
            ::poll(&waiting, 1, 20);
            if (own.receive() == size) {
                return true;
            }
        }
    }
    return false;
}

// The longest that comes, between two of those that were tried: `comes` says of one whether it
// does.
template <class Comes>
std::size_t longest(const std::vector<std::size_t>& tried, const std::vector<std::size_t>& lost,
                    Comes&& comes) {
    std::size_t most = *std::ranges::min_element(lost);
    std::size_t least = tried.front();
    for (const std::size_t size : tried) {
        least = size < most ? size : least;
    }
    while (most - least > 1) {
        const std::size_t middle = least + (most - least) / 2;
        (comes(middle) ? least : most) = middle;
    }
    return least;
}

} // namespace

const Sizes& Peer::sizes() {
    if (sizes_) {
        return *sizes_;
    }
    Sizes& sizes = sizes_.emplace();
    const Beside beside(socket_.fd(), Role::client);
    try {
        const Datagrams own(socket_);
        const std::uint16_t port = answer().greeting.datagrams;
        constexpr std::size_t kJumbo = 9000; // no network has longer ones but loopback
        std::vector<std::size_t> wanted = {own.smallest(), 1400, std::min(answer().mtu, kJumbo)};
        std::ranges::sort(wanted);
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        std::erase_if(wanted, [&](std::size_t size) { return size > answer().mtu; });
        bool told = false;
        beside.tell("there");
        for (const std::size_t size : wanted) {
            told = false;
            if (!gets_there(beside, own, port, size, told) && !told) {
                sizes.lost_there.push_back(size);
            }
        }
        if (!sizes.lost_there.empty() && sizes.lost_there.front() != wanted.front()) {
            sizes.longest = longest(wanted, sizes.lost_there, [&](std::size_t size) {
                return gets_there(beside, own, port, size, told, 1);
            });
        }
        beside.tell("stop");
        while (beside.hear() != "stopped") {
        }
        for (const std::size_t size : wanted) {
            told = false;
            if (!gets_back(beside, own, size, told) && !told) {
                sizes.lost_back.push_back(size);
            }
        }
        if (!sizes.lost_back.empty() && sizes.lost_back.front() != wanted.front()) {
            const std::size_t back = longest(wanted, sizes.lost_back, [&](std::size_t size) {
                return gets_back(beside, own, size, told, 1);
            });
            sizes.longest = sizes.longest == 0 ? back : std::min(back, sizes.longest);
        }
        sizes.tried = wanted;
        const auto none_of = [&](const std::vector<std::size_t>& lost) {
            return std::ranges::find(lost, wanted.front()) != lost.end();
        };
        if (none_of(sizes.lost_there) || none_of(sizes.lost_back)) {
            sizes.trouble = std::string("datagrams of ") + std::to_string(wanted.front()) +
                            " bytes do not come " + (none_of(sizes.lost_there) ? "there" : "back") +
                            " either: a filter lets TCP through, and not UDP";
        }
    } catch (const std::runtime_error& why) {
        sizes.trouble = why.what();
    }
    return sizes;
}

Exchange Peer::exchange(const char* what,
                        void (*run)(const Beside&, const std::string&, const Report&)) {
    Exchange tried;
    const Beside beside(socket_.fd(), Role::client);
    try {
        beside.tell(what);
        const std::string address = host_text(unmapped(socket_.local()));
        tried.own = in_child(kExchangeLimit, [&](const Report& report) {
            log_everything();
            run(beside, address, report);
        });
        tried.trouble = tried.own.trouble;
        if (!tried.own.all_right()) {
            // So that the other side does not wait for the rest of what both would have said.
            ::shutdown(socket_.fd(), SHUT_WR);
        }
        std::string line;
        for (line = beside.hear(); !line.starts_with("end "); line = beside.hear()) {
            if (line.starts_with("log ")) {
                tried.others.push_back(line.substr(4));
            }
        }
        tried.others_trouble = line.substr(4);
        if (tried.trouble.empty() || tried.trouble == kOtherHasEnded) {
            tried.trouble =
                tried.others_trouble.empty() ? tried.trouble : "there: " + tried.others_trouble;
        }
    } catch (const std::runtime_error& why) {
        tried.trouble = tried.trouble.empty() ? why.what() : tried.trouble;
    }
    return tried;
}

const Exchange& Peer::few() {
    if (!few_) {
        few_ = exchange("few", exchange_few);
    }
    return *few_;
}

const Exchange& Peer::many() {
    if (!many_) {
        many_ = exchange("many", exchange_many);
    }
    return *many_;
}

} // namespace dat::doctor
