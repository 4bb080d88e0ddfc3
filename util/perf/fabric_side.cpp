// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See fabric_side.h.
#include "fabric_side.h"

#include <algorithm>
#include <atomic>
#include <rdma/fi_errno.h>

namespace dat::perf {
namespace {

constexpr std::size_t kAddressSize = 256; // the longest name of an endpoint

// For a call that makes an object: what it makes has its owner when the call is over.
template <class Owner> class Out {
  public:
    explicit Out(Owner& owner) : owner_(owner) {}
    ~Out() { owner_.reset(made_); }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;
    operator typename Owner::pointer *() { return &made_; }

  private:
    Owner& owner_;
    typename Owner::pointer made_ = nullptr;
};
template <class Owner> Out<Owner> out(Owner& owner) { return Out<Owner>(owner); }

Address name_of(fid* object) {
    Address name(kAddressSize, '\0');
    std::size_t size = name.size();
    if (const int rc = fi_getname(object, name.data(), &size); rc != 0) {
        fail("fi_getname: %s", fi_strerror(-rc));
    }
    name.resize(size);
    return name;
}

// A provider reads as many bytes as addresses of its format have, whatever the peer has said.
Address whole(Address peer) {
    peer.resize(kAddressSize);
    return peer;
}

} // namespace

void FabricSide::failed(ssize_t rc, const char* call) {
    fail("%s: %s", call, fi_strerror(static_cast<int>(-rc)));
}

void FabricSide::interrupted_or_failed(ssize_t rc) {
    if (rc == -FI_EINTR) {
        return;
    }
    if (rc != -FI_EAVAIL) {
        failed(rc, waits_ ? "fi_cq_sread" : "fi_cq_read");
    }
    fi_cq_err_entry entry{};
    fi_cq_readerr(cq_.get(), &entry, 0);
    fail("an operation failed: %s", fi_strerror(entry.err));
}

std::shared_ptr<FabricDomain> open_domain(const Way& way, const FabricOptions& options,
                                          bool shared) {
    auto all = std::make_shared<FabricDomain>();
    all->info = find_info({.way = way,
                           .caps = options.caps,
                           .progress = options.progress,
                           .address = options.address,
                           .peer = {},
                           .threads = shared});
    if (const int rc = fi_fabric(all->info->fabric_attr, perf::out(all->fabric), nullptr)) {
        fail("fi_fabric: %s", fi_strerror(-rc));
    }
    if (const int rc =
            fi_domain(all->fabric.get(), all->info.get(), perf::out(all->domain), nullptr)) {
        fail("fi_domain: %s", fi_strerror(-rc));
    }
    return all;
}

FabricSide::FabricSide(const Way& way, const FabricOptions& options)
    : way_(way), options_(options), size_(options.size), waits_(options.waits),
      out_(size_ + options.bulk), in_(size_ + options.bulk), contexts_(options.told_apart),
      domain_(options.domain ? options.domain : open_domain(way, options, false)) {
    const fi_info& info = *domain_->info;
    depth_ = std::min({kQueue, info.tx_attr->size, info.rx_attr->size});
    if (options.bulk > 0) {
        bulk_connection_ = 1;
    }
    if ((info.mode & (FI_CONTEXT | FI_CONTEXT2)) != 0) {
        for (Lane& lane : contexts_) {
            lane.sent.one_for_each();
            lane.received.one_for_each();
        }
    }
    register_memory();
    open_queues();
}

FabricSide::~FabricSide() = default; // in reverse: endpoints first

std::string FabricSide::what() const {
    return std::string(domain_->info->fabric_attr->prov_name) + ", " +
           (connected() ? "FI_EP_MSG" : "FI_EP_RDM");
}

void FabricSide::open_queues() {
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_NONE;
    ok(fi_eq_open(domain_->fabric.get(), &eq_attr, perf::out(eq_), nullptr), "fi_eq_open");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.wait_obj = waits_ ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
    cq_attr.size = 4 * kQueue;
    const int rc = fi_cq_open(domain_->domain.get(), &cq_attr, perf::out(cq_), nullptr);
    if (rc != 0 && waits_) {
        throw NotOffered(std::string("offers no completion queue to wait for (fi_cq_open: ") +
                         fi_strerror(-rc) + ")");
    }
    ok(rc, "fi_cq_open");
}

// What the peer may reach has to be registered, and where the provider says so also
// what only this side uses.
void FabricSide::register_memory() {
    const int mode = domain_->info->domain_attr->mr_mode;
    const bool reached = (options_.caps & (FI_RMA | FI_ATOMIC)) != 0;
    constexpr std::uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
    constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
    static std::atomic<std::uint64_t> key; // of a domain that several sides have, too
    if ((mode & FI_MR_LOCAL) != 0) {
        ok(fi_mr_reg(domain_->domain.get(), out_.data(), out_.size(), kLocal, 0, ++key, 0,
                     perf::out(out_mr_), nullptr),
           "fi_mr_reg");
        out_desc_ = fi_mr_desc(out_mr_.get());
    }
    if ((mode & FI_MR_LOCAL) != 0 || reached) {
        ok(fi_mr_reg(domain_->domain.get(), in_.data(), in_.size(),
                     kLocal | (reached ? kRemote : 0), 0, ++key, 0, perf::out(in_mr_), nullptr),
           "fi_mr_reg");
        in_desc_ = fi_mr_desc(in_mr_.get());
        region_.key = fi_mr_key(in_mr_.get());
        region_.address =
            (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(in_.data()) : 0;
    }
}

Address FabricSide::open(Role role) {
    if (!connected()) {
        return open_nameable();
    }
    return role == Role::server ? listen() : Address();
}

Address FabricSide::listen() {
    ok(fi_passive_ep(domain_->fabric.get(), domain_->info.get(), perf::out(listener_), nullptr),
       "fi_passive_ep");
    ok(fi_pep_bind(listener_.get(), &eq_->fid, 0), "fi_pep_bind");
    ok(fi_listen(listener_.get()), "fi_listen");
    return name_of(&listener_->fid);
}

Address FabricSide::open_nameable() {
    fi_av_attr av_attr{};
    av_attr.type = domain_->info->domain_attr->av_type;
    ok(fi_av_open(domain_->domain.get(), &av_attr, perf::out(av_), nullptr), "fi_av_open");
    open_endpoint(domain_->info.get());
    return name_of(&endpoints_.back()->fid);
}

void FabricSide::insert(const Address& peer) {
    if (peer_ == FI_ADDR_UNSPEC &&
        fi_av_insert(av_.get(), whole(peer).data(), 1, &peer_, 0, nullptr) != 1) {
        fail("fi_av_insert does not take the peer's address");
    }
}

// Some providers find the end of a connection only when completions are asked for, so
// that is done as well.
bool FabricSide::read_event(std::uint32_t& event, fi_eq_cm_entry& entry) {
    const ssize_t n = fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0);
    if (n == -FI_EAGAIN) {
        fi_cq_read(cq_.get(), nullptr, 0);
        return false;
    }
    if (n == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        fi_eq_readerr(eq_.get(), &error, 0);
        fail("a connection failed: %s", fi_strerror(error.err));
    }
    if (n < 0) {
        failed(n, "fi_eq_read");
    }
    return true;
}

fi_eq_cm_entry FabricSide::wait_event(std::uint32_t wanted) {
    if (wanted == FI_CONNREQ && !requests_.empty()) {
        const fi_eq_cm_entry first = requests_.front();
        requests_.pop_front();
        return first;
    }
    std::uint32_t event = 0;
    fi_eq_cm_entry entry{};
    fi_eq_cm_entry* const into = &entry;
    if (!comes([&] {
            const bool come = read_event(event, *into);
            if (!come || event != FI_CONNREQ || wanted == FI_CONNREQ) {
                return come;
            }
            requests_.push_back(*into); // of another client, meanwhile
            return false;
        })) {
        fail("waited in vain for a connection event");
    }
    if (event != wanted) {
        fail("connection event %u came, %u was expected", event, wanted);
    }
    return entry;
}

void FabricSide::open_endpoint(fi_info* info) {
    ok(fi_endpoint(domain_->domain.get(), info, perf::out(endpoints_.emplace_back()), nullptr),
       "fi_endpoint");
    fid_ep* ep = endpoints_.back().get();
    ok(fi_ep_bind(ep, connected() ? &eq_->fid : &av_->fid, 0), "fi_ep_bind");
    ok(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    ok(fi_enable(ep), "fi_enable");
}

void FabricSide::answer(const fi_eq_cm_entry& request) {
    const Info info(request.info);
    open_endpoint(info.get());
    ok(fi_accept(endpoints_.back().get(), nullptr, 0), "fi_accept");
}

void FabricSide::begin_join(const Address& peer) {
    if (!to_peer_) {
        to_peer_ = find_info({.way = way_,
                              .caps = options_.caps,
                              .progress = options_.progress,
                              .address = options_.address,
                              .peer = peer,
                              .peer_format = domain_->info->addr_format,
                              .threads = options_.domain != nullptr});
    }
    open_endpoint(to_peer_.get());
    ok(fi_connect(endpoints_.back().get(), whole(peer).data(), nullptr, 0), "fi_connect");
}

void FabricSide::join(Role role, const Address& peer) {
    if (!connected()) {
        insert(peer);
        return;
    }
    if (role == Role::server) {
        answer(wait_event(FI_CONNREQ));
    } else {
        begin_join(peer);
    }
    wait_event(FI_CONNECTED);
}

bool FabricSide::progress_join() {
    std::uint32_t event = 0;
    fi_eq_cm_entry entry{};
    if (!read_event(event, entry)) {
        return false;
    }
    if (event == FI_CONNREQ) {
        answer(entry);
    }
    return event == FI_CONNECTED;
}

void FabricSide::end() {
    if (!connected()) {
        throw NotOffered("FI_EP_RDM endpoints have no connections");
    }
    endpoints_.pop_back();
}

void FabricSide::ended() {
    if (connected()) {
        wait_event(FI_SHUTDOWN);
    }
    end();
}

void FabricSide::post_owed() {
    std::vector<std::size_t> owed;
    owed.swap(owed_);
    for (const std::size_t connection : owed) {
        receive(connection); // is put there again where it is still refused
    }
}

} // namespace dat::perf
