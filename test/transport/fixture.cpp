// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See fixture.h.
#include "fixture.h"

#include "../sim/random.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace dat::test {

namespace {

// Of the guest, as is rxe below (test/vm/guest.sh). Connections from a device to software on the
// same host go to an address of the device's own interface: rdma_cm leaves by the interface that
// the other side's address is on.
constexpr Transport kSiw{"siw", false,   AF_INET,  "192.0.2.1", FI_PROGRESS_AUTO,
                         true,  nullptr, FI_ATOMIC};
constexpr Transport kBesideSiw{"iwarp_ipv4", false, AF_INET, kSiw.address, FI_PROGRESS_AUTO};

constexpr std::array kTransports{
    Transport{"iwarp_ipv4", false, AF_INET, "127.0.0.1", FI_PROGRESS_AUTO},
    Transport{"iwarp_ipv6", false, AF_INET6, "::1", FI_PROGRESS_MANUAL},
    Transport{"shm_ipv4", true, AF_INET, "127.0.0.1", FI_PROGRESS_AUTO},
    Transport{"shm_ipv6", true, AF_INET6, "::1", FI_PROGRESS_MANUAL},
    Transport{"rxe", false, AF_INET, "198.51.100.1", FI_PROGRESS_AUTO, true},
    kSiw,
    Transport{"soft_to_siw", false, AF_INET, kSiw.address, FI_PROGRESS_AUTO, false, &kSiw},
    Transport{"siw_to_soft", false, AF_INET, kSiw.address, FI_PROGRESS_AUTO, true, &kBesideSiw},
};

constexpr int kDeviceMode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
constexpr std::size_t kMaxPrivateData = 1024;
constexpr std::uint32_t kApi = FI_VERSION(1, 17);

std::vector<Side*>& all_sides() {
    static std::vector<Side*> sides;
    return sides;
}

std::deque<Op>& all_ops() {
    static std::deque<Op> ops;
    return ops;
}

// How many operations `fid` has not completed yet.
std::size_t outstanding(fid_t fid) {
    const auto owes = [&](const Op& op) { return op.fid == fid && !op.done(); };
    return static_cast<std::size_t>(std::count_if(all_ops().begin(), all_ops().end(), owes));
}

// `fid` is closed: another endpoint may get its address.
void forget(fid_t fid) {
    for (Op& op : all_ops())
        if (op.fid == fid)
            op.fid = nullptr;
}

std::uint64_t next_order() {
    static std::uint64_t order = 0;
    return ++order;
}

// Gives the processor away after many empty polls: the provider's own thread
// or the other process may need it.
void back_off(unsigned idle_polls) {
    if (idle_polls > 200)
        poll(nullptr, 0, 1);
}

using Clock = std::chrono::steady_clock;

// Makes libfabric load the provider that was built, and no other, unless the
// caller has chosen. Has to come before the first call of libfabric.
void choose_provider() {
    const char* build = std::getenv("DAT_BUILDDIR");
    if (build)
        setenv("FI_PROVIDER_PATH", (std::string(build) + "/.libs").c_str(), 0);
    setenv("FI_PROVIDER", provider(), 0);
}

} // namespace

std::string error_name(long result) {
    return std::to_string(result) + " (" + fi_strerror(static_cast<int>(std::labs(result))) + ")";
}

bool run_over(bool shm, void (*run)(const Transport&)) {
    choose_provider();
    setenv("FI_DAT_SHM", shm ? "1" : "0", 1);
    const char* wanted = std::getenv("DAT_TRANSPORT");
    const std::string list = std::string(",") + (wanted ? wanted : "") + ",";
    bool any = false;
    for (const Transport& transport : kTransports) {
        const bool named = list.find(std::string(",") + transport.name + ",") != std::string::npos;
        const bool usual = !transport.device && !transport.partner;
        if (transport.shm == shm && (named || (list == ",," && usual))) {
            any = true;
            const char* kind = transport.device ? "verbs" : "soft";
            setenv("FI_DAT_TRANSPORT", transport.partner ? "auto" : kind, 1);
            run(transport);
        }
    }
    return any;
}

int run_over_all(void (*run)(const Transport&)) {
    for (const bool shm : {false, true}) {
        const pid_t child = fork();
        if (child == 0) {
            run_over(shm, run);
            std::exit(0);
        }
        int status = 0;
        DAT_REQUIRE(child > 0 && waitpid(child, &status, 0) == child, "no child process");
        if (status != 0) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
    }
    return 0;
}

const char* provider() {
    const char* name = std::getenv("DAT_TEST_PROVIDER");
    return name && *name ? name : "dat";
}

bool is_dat() { return std::string(provider()) == "dat"; }

// ---- a side --------------------------------------------------------------

Info hints_for(const Transport& transport, const SideOptions& options) {
    choose_provider();
    Info hints(fi_allocinfo());
    DAT_REQUIRE(hints, "fi_allocinfo");
    const fi_progress progress = options.progress.value_or(transport.progress);
    hints->caps = options.caps;
    hints->mode = 0;
    hints->addr_format = transport.family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = options.mr_mode | (transport.device ? kDeviceMode : 0);
    hints->domain_attr->control_progress = progress;
    hints->domain_attr->data_progress = progress;
    if (options.threading)
        hints->domain_attr->threading = *options.threading;
    hints->fabric_attr->prov_name = strdup(provider());
    return hints;
}

Side::Side(const Transport& transport, const SideOptions& options)
    : options_(options), device_(transport.device) {
    const Info hints = hints_for(transport, options);
    fi_info* list = nullptr;
    DAT_MUST(fi_getinfo(kApi, transport.address, "0", FI_SOURCE, hints.get(), &list));
    const Info all(list);
    const fi_info* of_kind = list; // a device and software may be at one address
    while (of_kind && (std::strchr(of_kind->domain_attr->name, '/') != nullptr) != device_)
        of_kind = of_kind->next;
    info_.reset(fi_dupinfo(of_kind ? of_kind : list));
    fi_info* const info = info_.get();
    if (is_dat() && options.mr_mode != 0 &&
        !transport.device) // it requires none, but does as it is told
        info->domain_attr->mr_mode = options.mr_mode & (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
    DAT_MUST(fi_fabric(info_->fabric_attr, fabric_.out(), nullptr));
    if (options.before_domain) {
        options.before_domain(fabric_.get());
    }
    DAT_MUST(fi_domain(fabric_.get(), info_.get(), domain_.out(), nullptr));

    fi_eq_attr eq_attr{};
    eq_attr.size = options.eq_size;
    eq_attr.flags = FI_WRITE;
    eq_attr.wait_obj = options.eq_wait;
    DAT_MUST(fi_eq_open(fabric_.get(), &eq_attr, eq_.out(), nullptr));

    fi_cq_attr cq_attr{};
    cq_attr.size = options.cq_size;
    cq_attr.format = options.cq_format;
    cq_attr.wait_obj = options.cq_wait;
    DAT_MUST(fi_cq_open(domain_.get(), &cq_attr, cq_.out(), nullptr));
    all_sides().push_back(this);
}

Side::~Side() { std::erase(all_sides(), this); }

void Side::listen() {
    DAT_MUST(fi_passive_ep(fabric_.get(), info_.get(), pep_.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep_.get(), &eq_->fid, 0));
    DAT_MUST(fi_listen(pep_.get()));
}

Bytes Side::address() const {
    Bytes address(128);
    std::size_t size = address.size();
    DAT_MUST(fi_getname(&pep_->fid, address.data(), &size));
    address.resize(size);
    return address;
}

std::uint16_t Side::port() const { return port_of(address().data()); }

std::uint16_t port_of(const void* address) {
    // The port has the same place in sockaddr_in and sockaddr_in6.
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return ntohs(in.sin_port);
}

Bytes with_port(const void* address, std::size_t size, std::uint16_t port) {
    Bytes copy(size);
    std::memcpy(copy.data(), address, size);
    const std::uint16_t in_order = htons(port);
    std::memcpy(copy.data() + offsetof(sockaddr_in, sin_port), &in_order, sizeof in_order);
    return copy;
}

Bytes socket_address(const char* host, std::uint16_t port) {
    Bytes bytes(sizeof(sockaddr_in6));
    sockaddr_in in{};
    sockaddr_in6 in6{};
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
        in.sin_family = AF_INET;
        bytes.resize(sizeof in);
        std::memcpy(bytes.data(), &in, sizeof in);
    } else {
        DAT_REQUIRE(inet_pton(AF_INET6, host, &in6.sin6_addr) == 1, host);
        in6.sin6_family = AF_INET6;
        std::memcpy(bytes.data(), &in6, sizeof in6);
    }
    return with_port(bytes.data(), bytes.size(), port);
}

void Side::note(void* context, const Op& result) {
    ++completions_;
    if (intercept && intercept(context, result))
        return;
    DAT_REQUIRE(context, "a completion without the context it was posted with");
    Op& op = *static_cast<Op*>(context);
    DAT_REQUIRE(op.completions == 0, "an operation completed twice");
    const fid_t fid = op.fid;
    op = result;
    op.fid = fid;
    op.completions = 1;
    op.order = next_order();
}

bool Side::note_error() {
    fi_cq_err_entry entry{};
    const ssize_t got = fi_cq_readerr(cq_.get(), &entry, 0);
    if (got == -FI_EAGAIN)
        return false;
    DAT_REQUIRE(got == 1, "fi_cq_readerr: " + error_name(got));
    DAT_REQUIRE(entry.err > 0, "an error entry without an error");
    Op result;
    result.err = entry.err;
    result.prov_errno = entry.prov_errno;
    result.flags = entry.flags;
    result.len = entry.len;
    result.olen = entry.olen;
    note(entry.op_context, result);
    return true;
}

bool Side::pump_cq() {
    constexpr std::size_t kBatch = 16;
    std::array<fi_cq_tagged_entry, kBatch> room{};
    bool any = false;
    for (;;) {
        const ssize_t got = fi_cq_read(cq_.get(), room.data(), kBatch);
        if (got == -FI_EAGAIN)
            return any;
        any = true;
        if (got == -FI_EAVAIL) {
            if (!note_error())
                return any;
            continue;
        }
        DAT_REQUIRE(got > 0, "fi_cq_read: " + error_name(got));
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
            Op result;
            void* context = nullptr;
            if (options_.cq_format == FI_CQ_FORMAT_CONTEXT) {
                context = reinterpret_cast<fi_cq_entry*>(room.data())[i].op_context;
            } else if (options_.cq_format == FI_CQ_FORMAT_MSG) {
                const auto& entry = reinterpret_cast<fi_cq_msg_entry*>(room.data())[i];
                context = entry.op_context;
                result.flags = entry.flags;
                result.len = entry.len;
            } else {
                const auto& entry = reinterpret_cast<fi_cq_data_entry*>(room.data())[i];
                context = entry.op_context;
                result.flags = entry.flags;
                result.len = entry.len;
                result.data = entry.data;
                result.buf = entry.buf;
            }
            note(context, result);
        }
    }
}

std::optional<Event> Side::read_event() {
    alignas(fi_eq_cm_entry) std::uint8_t room[sizeof(fi_eq_cm_entry) + kMaxPrivateData];
    Event event;
    const ssize_t got = fi_eq_read(eq_.get(), &event.type, room, sizeof room, 0);
    if (got == -FI_EAGAIN)
        return std::nullopt;
    if (got == -FI_EAVAIL) {
        fi_eq_err_entry entry{};
        event.type = kErrorEvent;
        event.data.resize(kMaxPrivateData);
        entry.err_data = event.data.data();
        entry.err_data_size = event.data.size();
        const ssize_t read = fi_eq_readerr(eq_.get(), &entry, 0);
        DAT_REQUIRE(read == static_cast<ssize_t>(sizeof entry), "fi_eq_readerr");
        event.fid = entry.fid;
        event.err = entry.err;
        event.prov_errno = entry.prov_errno;
        DAT_REQUIRE(entry.err_data_size <= kMaxPrivateData, "err_data_size");
        event.data.resize(entry.err_data_size);
        return event;
    }
    DAT_REQUIRE(got >= 0, "fi_eq_read: " + error_name(got));
    if (event.type == FI_CONNREQ || event.type == FI_CONNECTED || event.type == FI_SHUTDOWN) {
        const auto size = static_cast<std::size_t>(got);
        DAT_REQUIRE(size >= sizeof(fi_eq_cm_entry), "a short CM event");
        const auto* entry = reinterpret_cast<const fi_eq_cm_entry*>(room);
        event.fid = entry->fid;
        if (event.type == FI_CONNREQ)
            event.info.reset(entry->info);
        event.data.assign(room + sizeof(fi_eq_cm_entry), room + size);
    } else {
        event.data.assign(room, room + got);
    }
    return event;
}

bool Side::pump() {
    bool any = pump_cq();
    while (std::optional<Event> event = read_event()) {
        any = true;
        const bool ends = event->ends();
        events_.push_back(std::move(*event));
        if (!ends)
            continue;
        pump_cq();
        const std::size_t late = outstanding(events_.back().fid);
        DAT_REQUIRE(late == 0 || options_.selective || !is_dat(),
                    std::to_string(late) + " operations had not completed before the end");
    }
    return any;
}

// ---- memory --------------------------------------------------------------

Region::Region(Side& side, std::size_t size, std::uint64_t access, Bytes zone)
    : memory_(size + 2 * kGuard, 0xEE) {
    static std::uint64_t requested_key = 0x1000;
    std::fill_n(data(), size, std::uint8_t{0});
    const iovec iov{data(), size};
    fi_mr_attr attr{};
    attr.mr_iov = &iov;
    attr.iov_count = 1;
    attr.access = access;
    attr.requested_key = ++requested_key;
    attr.auth_key = zone.empty() ? nullptr : zone.data();
    attr.auth_key_size = zone.size();
    DAT_MUST(fi_mr_regattr(side.domain(), &attr, 0, mr_.out()));
    const bool virtual_addresses = (side.info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    base_ = virtual_addresses ? reinterpret_cast<std::uintptr_t>(data()) : 0;
    key_ = fi_mr_key(mr_.get());
}

Remote Region::at(std::int64_t offset) const {
    return {base_ + static_cast<std::uint64_t>(offset), key_};
}

bool Region::guards_whole() const {
    const auto whole = [](std::uint8_t byte) { return byte == 0xEE; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, whole) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), whole);
}

bool Region::all(std::uint8_t value) {
    return std::all_of(data(), data() + size(), [&](std::uint8_t byte) { return byte == value; });
}

// ---- an endpoint ---------------------------------------------------------

Endpoint::Endpoint(Side& side) : side_(&side) { open(side.info()); }

Endpoint::Endpoint(Side& side, const Event& request) : side_(&side) {
    DAT_REQUIRE(request.info, "not a connection request");
    open(request.info.get());
}

void Endpoint::open(fi_info* info) {
    info->rx_attr->mode |= side_->options().rx_mode;
    DAT_MUST(fi_endpoint(side_->domain(), info, ep_.out(), nullptr));
    DAT_MUST(fi_ep_bind(ep_.get(), &side_->eq()->fid, 0));
    const std::uint64_t selective = side_->options().selective ? FI_SELECTIVE_COMPLETION : 0;
    DAT_MUST(fi_ep_bind(ep_.get(), &side_->cq()->fid, FI_TRANSMIT | FI_RECV | selective));
    if (side_->options().before_enable)
        side_->options().before_enable(ep_.get());
    DAT_MUST(fi_enable(ep_.get()));
}

int Endpoint::connect(const Side& listener, const Bytes& data) {
    return connect(listener.address(), data);
}

int Endpoint::connect(const Bytes& address, const Bytes& data) {
    return fi_connect(ep_.get(), address.data(), data.data(), data.size());
}

int Endpoint::accept(const Bytes& data) { return fi_accept(ep_.get(), data.data(), data.size()); }

Endpoint::~Endpoint() {
    if (!ep_)
        return;
    const fid_t closed = fid();
    ep_.close();
    forget(closed);
}

int Endpoint::close() {
    if (!ep_)
        return 0;
    const fid_t closed = fid();
    const int result = ep_.close();
    if (result != 0)
        return result;
    side_->pump_cq();
    const std::size_t lost = outstanding(closed);
    DAT_REQUIRE(lost == 0 || side_->options().selective || !is_dat(),
                std::to_string(lost) + " operations had not completed when fi_close() returned");
    forget(closed);
    return 0;
}

Op& new_op() { return all_ops().emplace_back(); }

ssize_t post_when_possible(const std::function<ssize_t()>& post) {
    ssize_t result = -FI_EAGAIN;
    wait_until([&] {
        result = post();
        return result != -FI_EAGAIN;
    });
    return result;
}

Op& Endpoint::post(const std::function<ssize_t(Op&)>& call) {
    Op& op = new_op();
    op.fid = fid();
    DAT_MUST(post_when_possible([&] { return call(op); }));
    return op;
}

Op& Endpoint::recv(void* buffer, std::size_t size) {
    return post(
        [&](Op& op) { return fi_recv(ep_.get(), buffer, size, nullptr, FI_ADDR_UNSPEC, &op); });
}

Op& Endpoint::send(const void* buffer, std::size_t size) {
    return post(
        [&](Op& op) { return fi_send(ep_.get(), buffer, size, nullptr, FI_ADDR_UNSPEC, &op); });
}

Op& Endpoint::send_with(std::uint64_t flags, const void* buffer, std::size_t size) {
    const iovec iov{const_cast<void*>(buffer), size};
    return post([&](Op& op) {
        const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &op, 0};
        return fi_sendmsg(ep_.get(), &msg, FI_COMPLETION | flags);
    });
}

Op& Endpoint::send_confirmed(const void* buffer, std::size_t size) {
    return send_with(FI_TRANSMIT_COMPLETE, buffer, size);
}

Op& Endpoint::send_delivered(const void* buffer, std::size_t size) {
    return send_with(FI_DELIVERY_COMPLETE, buffer, size);
}

Op& Endpoint::write(const void* buffer, std::size_t size, Remote to) {
    return post([&](Op& op) {
        return fi_write(ep_.get(), buffer, size, nullptr, FI_ADDR_UNSPEC, to.address, to.key, &op);
    });
}

Op& Endpoint::write_confirmed(const void* buffer, std::size_t size, Remote to) {
    const iovec iov{const_cast<void*>(buffer), size};
    const fi_rma_iov rma{to.address, size, to.key};
    return post([&](Op& op) {
        const fi_msg_rma msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &rma, 1, &op, 0};
        return fi_writemsg(ep_.get(), &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
    });
}

Op& Endpoint::read(void* buffer, std::size_t size, Remote from) {
    return post([&](Op& op) {
        return fi_read(ep_.get(), buffer, size, nullptr, FI_ADDR_UNSPEC, from.address, from.key,
                       &op);
    });
}

fi_dat_ops_ep* Endpoint::dat() const {
    void* ops = nullptr;
    DAT_MUST(fi_open_ops(fid(), FI_DAT_EP_OPS, 0, &ops, nullptr));
    DAT_REQUIRE(ops, "fi_open_ops() gave no table");
    return static_cast<fi_dat_ops_ep*>(ops);
}

fi_dat_ep_status Endpoint::status() const {
    fi_dat_ep_status status{};
    DAT_MUST(dat()->status(get(), &status));
    return status;
}

// ---- waiting -------------------------------------------------------------

bool same(const void* a, const void* b, std::size_t size) {
    return size == 0 || std::memcmp(a, b, size) == 0;
}

bool pump_all() {
    bool any = false;
    for (Side* side : all_sides())
        any |= !side->asleep && side->pump();
    return any;
}

bool wait_until(const std::function<bool()>& done, int timeout_ms) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    unsigned idle = 0;
    while (!done()) {
        if (Clock::now() >= deadline)
            return false;
        idle = pump_all() ? 0 : idle + 1;
        back_off(idle);
    }
    return true;
}

void settle(int for_ms) {
    wait_until([] { return false; }, for_ms);
}

namespace {

Event next_event(Side& side, const std::string& expected) {
    DAT_REQUIRE(wait_until([&] { return !side.events().empty(); }),
                "waited in vain for " + expected);
    Event event = std::move(side.events().front());
    side.events().pop_front();
    return event;
}

std::string describe(const Event& event) {
    if (event.type == kErrorEvent)
        return "got the error " + error_name(event.err);
    return "got event " + std::to_string(event.type);
}

} // namespace

Event wait_event(Side& side, std::uint32_t type) {
    const std::string expected = "event " + std::to_string(type);
    Event event = next_event(side, expected);
    DAT_REQUIRE(event.type == type, "expected " + expected + ", " + describe(event));
    return event;
}

Event wait_error(Side& side, int err) {
    const std::string expected = "the error " + error_name(err);
    Event event = next_event(side, expected);
    DAT_REQUIRE(event.type == kErrorEvent && event.err == err,
                "expected " + expected + ", " + describe(event));
    return event;
}

void wait_shutdown(const Endpoint& endpoint) {
    const Event event = wait_event(endpoint.side(), FI_SHUTDOWN);
    DAT_REQUIRE(event.fid == endpoint.fid(), "FI_SHUTDOWN of another endpoint");
}

bool takes_requests_back(const Transport& transport) {
    return !std::string_view(transport.name).starts_with(kSiw.name); // "siw", "siw_to_soft"
}

void wait_accept_in_vain(const Endpoint& passive, const Transport& transport) {
    if (takes_requests_back(transport)) {
        const Event event = wait_error(passive.side(), FI_ECONNABORTED);
        DAT_REQUIRE(event.fid == passive.fid(), "an error of another endpoint");
        return require_end(passive, FI_DAT_END_ACCEPT_ERROR);
    }
    wait_event(passive.side(), FI_CONNECTED);
    wait_shutdown(passive);
    require_end(passive, FI_DAT_END_DISCONNECTED);
}

void wait_op(const Op& op) {
    DAT_REQUIRE(wait_until([&] { return op.done(); }), "waited in vain for a completion");
}

void require_once(const std::vector<Op*>& ops) {
    std::size_t missing = 0;
    for (const Op* op : ops)
        missing += !op->done();
    DAT_REQUIRE(missing == 0, std::to_string(missing) + " of " + std::to_string(ops.size()) +
                                  " operations have not completed");
}

void require_stream_order(const std::vector<Op*>& ops) {
    bool failed = false;
    std::uint64_t order = 0;
    for (const Op* op : ops) {
        DAT_REQUIRE(op->order > order, "completions out of posting order");
        order = op->order;
        if (failed)
            DAT_REQUIRE(op->flushed(), "after an error: " + error_name(op->err));
        failed |= op->err != 0;
    }
}

void require_end(const Endpoint& endpoint, fi_dat_end end) {
    if (!is_dat())
        return;
    const fi_dat_ep_status status = endpoint.status();
    DAT_REQUIRE(status.state == FI_DAT_DISCONNECTED, "state " + std::to_string(status.state));
    DAT_REQUIRE(status.end == end, "end " + std::to_string(status.end) + " instead of " +
                                       std::to_string(end) + ", reason " +
                                       std::to_string(status.reason));
}

void require_state(const Endpoint& endpoint, fi_dat_ep_state state) {
    if (!is_dat())
        return;
    const fi_dat_ep_status status = endpoint.status();
    DAT_REQUIRE(status.state == state,
                "state " + std::to_string(status.state) + " instead of " + std::to_string(state));
}

// ---- a connection --------------------------------------------------------

Endpoint establish(Endpoint& active, Side& passive_side,
                   const std::function<void(Endpoint&)>& prepare) {
    DAT_MUST(active.connect(passive_side));
    const Event request = wait_event(passive_side, FI_CONNREQ);
    Endpoint passive(passive_side, request);
    if (prepare)
        prepare(passive);
    DAT_MUST(passive.accept());
    DAT_REQUIRE(wait_event(active.side(), FI_CONNECTED).fid == active.fid(), "another endpoint");
    DAT_REQUIRE(wait_event(passive_side, FI_CONNECTED).fid == passive.fid(), "another endpoint");
    return passive;
}

Pair::Pair(const Transport& transport, const SideOptions& active_options,
           const SideOptions& passive_options)
    : near(transport, active_options), far(transport.other(), passive_options), active(near) {
    far.listen();
}

std::unique_ptr<Pair> Pair::connected(const Transport& transport, const SideOptions& active,
                                      const SideOptions& passive) {
    auto pair = std::make_unique<Pair>(transport, active, passive);
    pair->connect();
    return pair;
}

void Pair::connect(const std::function<void(Endpoint&)>& prepare) {
    accepted.emplace(establish(active, far, prepare));
}

// A word at a time: tests are not optimized, and have megabytes of it.
Bytes pattern(std::size_t size, unsigned seed) {
    Bytes bytes(size);
    sim::Random random(seed);
    for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random.word();
        std::memcpy(&bytes[at], &word, std::min(size - at, sizeof word));
    }
    return bytes;
}

} // namespace dat::test
