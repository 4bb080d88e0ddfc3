// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the transport suite stands on: libfabric objects with owners, two sides
// of a connection driven from one thread, and waits that end. Only the public
// libfabric interface and fi_ext_dat.h are used, so that a test says nothing
// about how the provider is made.
//
// Every Side that exists is in one list, and every wait here polls all of
// them: neither side of a connection stands still while the other is waited
// for. Not thread-safe; Criterion gives each test a process of its own.
//
// Environment:
//   DAT_TEST_PROVIDER  provider under test, default "dat". Another one
//                      ("tcp") checks the suite itself; what only `dat` can do
//                      is skipped or left unchecked there.
//   DAT_TRANSPORT      comma-separated names of Transport to test, default all that need
//                      no RDMA device.
//   DAT_BUILDDIR       where the provider was built: .libs/libdat-fi.so there is
//                      loaded, if FI_PROVIDER_PATH does not say otherwise.
#ifndef DAT_TEST_TRANSPORT_FIXTURE_H
#define DAT_TEST_TRANSPORT_FIXTURE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_dat.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dat::test {

using Bytes = std::vector<std::uint8_t>;

// ---- failing -------------------------------------------------------------

// Ends the test, or the program, with this message. Defined by the program
// that links the fixture.
[[noreturn]] void fail(const char* file, int line, const std::string& message);

#define DAT_REQUIRE(condition, message)                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ::dat::test::fail(__FILE__, __LINE__, std::string(#condition ": ") + (message));       \
    } while (0)

// `call` must return 0.
#define DAT_MUST(call)                                                                             \
    do {                                                                                           \
        const auto must_result_ = (call);                                                          \
        if (must_result_ != 0)                                                                     \
            ::dat::test::fail(__FILE__, __LINE__,                                                  \
                              std::string(#call ": ") +                                            \
                                  ::dat::test::error_name(static_cast<long>(must_result_)));       \
    } while (0)

// "-FI_E.. text" of a return value of libfabric.
std::string error_name(long result);

// ---- what is tested ------------------------------------------------------

// A way from one endpoint to the other. Address family and progress model do
// not depend on each other, so one transport covers a value of each.
struct Transport {
    const char* name;
    bool shm;            // the endpoints share memory, being on one host
    int family;          // AF_INET, AF_INET6
    const char* address; // of both sides
    fi_progress progress;
    bool device = false; // of an RDMA device; only where DAT_TRANSPORT names it
    // The other side of a Pair, or a Child, where that is another; as above.
    const Transport* partner = nullptr;
    std::uint64_t missing_caps = 0; // of FI_EP_RDM, which are offered elsewhere
    const Transport& other() const { return partner ? *partner : *this; }
};

// Calls `run` for each transport with or without shared memory that DAT_TRANSPORT names;
// if that is not set, for each. A process decides for one of both: the provider asks
// when it is loaded. False: there was none.
bool run_over(bool shm, void (*run)(const Transport&));
// For a program that has not called libfabric yet: over all, in a child for each of both.
// Returns what main() is to return.
int run_over_all(void (*run)(const Transport&));
const char* provider();
bool is_dat();

// ---- owners --------------------------------------------------------------

// Closes a libfabric object at the end of its scope.
template <class T> class Fid {
  public:
    Fid() = default;
    explicit Fid(T* object) : object_(object) {}
    Fid(Fid&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Fid& operator=(Fid&& other) noexcept {
        if (this != &other) {
            close();
            object_ = std::exchange(other.object_, nullptr);
        }
        return *this;
    }
    ~Fid() { close(); }

    // Closes now; the result of fi_close(), 0 where there is nothing.
    int close() {
        T* object = std::exchange(object_, nullptr);
        return object ? fi_close(&object->fid) : 0;
    }
    T* get() const { return object_; }
    T* operator->() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }
    // For calls that open: the place to write the object to.
    T** out() {
        close();
        return &object_;
    }

  private:
    T* object_ = nullptr;
};

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// ---- operations and events -----------------------------------------------

// One posted operation; its address is the context that it is posted with. The
// fixture owns it until the process ends, so that a completion that comes twice
// or late is seen and not a wild pointer.
struct Op {
    int completions = 0;
    int err = 0; // positive FI_E*, 0 for success
    int prov_errno = 0;
    std::uint64_t flags = 0;
    std::size_t len = 0;
    std::size_t olen = 0;
    std::uint64_t data = 0;
    void* buf = nullptr;
    std::uint64_t order = 0; // of completion, over all operations of the process
    fid_t fid = nullptr;     // the endpoint that owes the completion, while it does

    bool done() const { return completions != 0; }
    bool ok() const { return completions == 1 && err == 0; }
    bool flushed() const { return completions == 1 && err == FI_ECANCELED; }
};

inline constexpr std::uint32_t kErrorEvent = UINT32_MAX;

// What was read from an EQ, with fi_eq_read() or, as kErrorEvent, with
// fi_eq_readerr().
struct Event {
    std::uint32_t type = kErrorEvent;
    fid_t fid = nullptr;
    Info info;  // FI_CONNREQ
    Bytes data; // private data; of an error: err_data; of other types: the entry
    int err = 0;
    int prov_errno = 0;

    bool ends() const { return type == FI_SHUTDOWN || type == kErrorEvent; }
};

// ---- a side --------------------------------------------------------------

struct SideOptions {
    std::optional<fi_progress> progress; // default: the transport's
    fi_cq_format cq_format = FI_CQ_FORMAT_DATA;
    fi_wait_obj cq_wait = FI_WAIT_NONE;
    fi_wait_obj eq_wait = FI_WAIT_UNSPEC;
    std::size_t cq_size = 0;
    std::size_t eq_size = 0;
    int mr_mode = 0;
    std::uint64_t caps = FI_MSG | FI_RMA;
    bool selective = false;                // bind the CQ with FI_SELECTIVE_COMPLETION
    std::optional<fi_threading> threading; // default: what the provider prefers
    std::uint64_t rx_mode = 0;             // set in rx_attr->mode of every endpoint
    // Gets the fabric before its domain is opened.
    std::function<void(fid_fabric*)> before_domain;
    // Gets every endpoint before it is enabled, to bind more to it.
    std::function<void(fid_ep*)> before_enable;
};

// Hints for an FI_EP_MSG endpoint over `transport`.
Info hints_for(const Transport& transport, const SideOptions& options = {});

// A domain with one EQ and one CQ that all its endpoints share, and a listener
// where asked for. Not movable: the list of sides points at it.
class Side {
  public:
    explicit Side(const Transport& transport, const SideOptions& options = {});
    ~Side();
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    fi_info* info() const { return info_.get(); }
    fid_fabric* fabric() const { return fabric_.get(); }
    fid_domain* domain() const { return domain_.get(); }
    fid_eq* eq() const { return eq_.get(); }
    fid_cq* cq() const { return cq_.get(); }
    fid_pep* pep() const { return pep_.get(); }
    const SideOptions& options() const { return options_; }
    bool device() const { return device_; }

    // Listens on a port that the system picks.
    void listen();
    void stop_listening() { DAT_MUST(pep_.close()); }
    // Where it listens, as for fi_connect().
    Bytes address() const;
    std::uint16_t port() const;

    // Reads everything that is there, completions before and after each event,
    // into operations and events(). Returns true if there was anything. Where
    // the provider is `dat`, fails if an operation of a connection is still
    // outstanding when its ending event has been read (DISC-10, U-7, EP-68).
    bool pump();
    // As pump(), the CQ only.
    bool pump_cq();
    // One fi_eq_read(), and fi_eq_readerr() where it asks for that.
    std::optional<Event> read_event();

    std::deque<Event>& events() { return events_; }
    // Completions read so far.
    std::size_t completions() const { return completions_; }
    // Gets each completion first, with its context; true: it is no posted operation's.
    std::function<bool(void* context, const Op&)> intercept;
    // While true, waits leave this side alone.
    bool asleep = false;

  private:
    void note(void* context, const Op& result);
    bool note_error();

    SideOptions options_;
    const bool device_;
    Info info_;
    Fid<fid_fabric> fabric_;
    Fid<fid_eq> eq_; // before the domain, which may be bound to it
    Fid<fid_domain> domain_;
    Fid<fid_cq> cq_;
    Fid<fid_pep> pep_;
    std::deque<Event> events_;
    std::size_t completions_ = 0;
};

// The port of a socket address; the address with another port; the socket
// address of a numeric host.
std::uint16_t port_of(const void* address);
Bytes with_port(const void* address, std::size_t size, std::uint16_t port);
Bytes socket_address(const char* host, std::uint16_t port);

// ---- memory --------------------------------------------------------------

struct Remote {
    std::uint64_t address;
    std::uint64_t key;
};

// Zeroed memory that is registered with `access`, between guard bytes.
class Region {
  public:
    // `zone`: its authorization key; empty: the domain's.
    Region(Side& side, std::size_t size, std::uint64_t access, Bytes zone = {});

    std::uint8_t* data() { return memory_.data() + kGuard; }
    std::size_t size() const { return memory_.size() - 2 * kGuard; }
    fid_mr* mr() const { return mr_.get(); }
    // What a peer says to mean the byte at `offset`, which may lie outside.
    Remote at(std::int64_t offset) const;
    void close() { DAT_MUST(mr_.close()); }
    // The guard bytes are as they were made.
    bool guards_whole() const;
    // All of the registered memory has this value.
    bool all(std::uint8_t value);

  private:
    static constexpr std::size_t kGuard = 64;
    Bytes memory_;
    Fid<fid_mr> mr_;
    std::uint64_t base_;
    std::uint64_t key_;
};

// ---- an endpoint ---------------------------------------------------------

class Endpoint {
  public:
    // UNCONNECTED, enabled.
    explicit Endpoint(Side& side);
    // Made from the FI_CONNREQ `request`, enabled.
    Endpoint(Side& side, const Event& request);
    Endpoint(Endpoint&&) = default;
    Endpoint& operator=(Endpoint&&) = delete;
    ~Endpoint();

    fid_ep* get() const { return ep_.get(); }
    fid_t fid() const { return &ep_->fid; }
    Side& side() const { return *side_; }
    // fi_close(). Where the provider is `dat`, fails unless every operation can
    // be read from the CQ when it returns (FREE-2).
    int close();

    int connect(const Side& listener, const Bytes& data = {});
    int connect(const Bytes& address, const Bytes& data = {});
    int accept(const Bytes& data = {});

    // Posts until the provider has room (-FI_EAGAIN polls both sides meanwhile)
    // and requires success. The buffer is the caller's until completion.
    Op& recv(void* buffer, std::size_t size);
    Op& send(const void* buffer, std::size_t size);
    // FI_TRANSMIT_COMPLETE: completes when the peer has placed it (U-61).
    Op& send_confirmed(const void* buffer, std::size_t size);
    // FI_DELIVERY_COMPLETE, likewise.
    Op& send_delivered(const void* buffer, std::size_t size);
    Op& write(const void* buffer, std::size_t size, Remote to);
    Op& write_confirmed(const void* buffer, std::size_t size, Remote to);
    Op& read(void* buffer, std::size_t size, Remote from);

    // The table of fi_ext_dat.h; the endpoint has to be of `dat`.
    fi_dat_ops_ep* dat() const;
    fi_dat_ep_status status() const;
    int disconnect(fi_dat_disconnect how) const { return dat()->disconnect(get(), how); }
    int reset() const { return dat()->reset(get()); }

  private:
    void open(fi_info* info);
    Op& post(const std::function<ssize_t(Op&)>& call);
    Op& send_with(std::uint64_t flags, const void* buffer, std::size_t size);

    Side* side_;
    Fid<fid_ep> ep_;
};

// A new operation, to be posted by hand. The fixture does not know its endpoint
// and so does not check that it completes before the end.
Op& new_op();
// Calls `post` until it returns something else than -FI_EAGAIN, polling all
// sides meanwhile; returns that.
ssize_t post_when_possible(const std::function<ssize_t()>& post);

// ---- waiting -------------------------------------------------------------

inline constexpr int kWaitMs = 60000; // on a host with thirty processes for a processor, too

// Whether `size` bytes are the same; of none, always, wherever they are.
bool same(const void* a, const void* b, std::size_t size);

// Polls every side once; true if there was anything.
bool pump_all();
// Polls until `done`; false when the time is over first.
bool wait_until(const std::function<bool()>& done, int timeout_ms = kWaitMs);
// Polls for a while that is long against a round trip. For what must not come:
// it can only miss a fault, never invent one.
void settle(int for_ms = 60);

// The next event of that side; it has to be of that type.
Event wait_event(Side& side, std::uint32_t type);
// The next event of that side; it has to be an error with this `err`.
Event wait_error(Side& side, int err);
// The next event has to be FI_SHUTDOWN of this endpoint.
void wait_shutdown(const Endpoint& endpoint);
// Of a request that was accepted after its requester on the other side had given up: CR-6.
// One on siw cannot take its request back: the connection is made, and ends.
bool takes_requests_back(const Transport& transport);
void wait_accept_in_vain(const Endpoint& passive, const Transport& transport);
void wait_op(const Op& op);
template <class Ops> void wait_ops(const Ops& ops) {
    for (const Op* op : ops)
        wait_op(*op);
}
// `ops` completed once each, and none has come back since.
void require_once(const std::vector<Op*>& ops);
// The DAT rule of a direction (DISC-8): successes, at most one specific error,
// then only flushes, in posting order.
void require_stream_order(const std::vector<Op*>& ops);

// Where the provider is `dat`: how the attempt ended and in which state.
void require_end(const Endpoint& endpoint, fi_dat_end end);
void require_state(const Endpoint& endpoint, fi_dat_ep_state state);

// ---- a connection --------------------------------------------------------

// Connects `active` to the listener of `passive_side`; returns the other end. Either side
// may send first: an iWARP device that connected to the software domain, and promised it no
// first frame, has written no bytes.
// `prepare` gets it before it accepts.
Endpoint establish(Endpoint& active, Side& passive_side,
                   const std::function<void(Endpoint&)>& prepare = {});

// Two sides and, after connect(), a connection between them.
class Pair {
  public:
    explicit Pair(const Transport& transport, const SideOptions& active = {},
                  const SideOptions& passive = {});
    // Both together, for most tests.
    static std::unique_ptr<Pair> connected(const Transport& transport,
                                           const SideOptions& active = {},
                                           const SideOptions& passive = {});
    void connect(const std::function<void(Endpoint&)>& prepare = {});

    Side near; // the active side
    Side far;  // the passive side, listening
    Endpoint active;
    std::optional<Endpoint> accepted;
    Endpoint& passive() { return *accepted; }
};

// `size` bytes that depend on `seed` and place.
Bytes pattern(std::size_t size, unsigned seed = 1);

} // namespace dat::test

#endif
