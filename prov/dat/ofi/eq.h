// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The event queue. Its lock order: sources_mutex_, then a domain's lock or a
// listener's lock, then queue_mutex_.
#ifndef DAT_OFI_EQ_H
#define DAT_OFI_EQ_H

#include "core/completion.h"
#include "ofi/fid.h"
#include "ofi/wait.h"

#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <poll.h>
#include <vector>

namespace dat::ofi {

class Fabric;

// Something whose progress can bring events. An event queue calls it when it is
// read and empty.
class EventSource {
  public:
    virtual int wait_fd() const = 0;
    virtual void progress() = 0;
    // What it brings are connection requests.
    virtual bool announces() const = 0;
    // What has come for handshakes is seen to, whatever else is due and whoever else is at it;
    // nothing where it announces.
    virtual void catch_up() {}

  protected:
    ~EventSource() = default;
};

// Told when an FI_CONNREQ event of it is read (under queue_mutex_), or thrown away unread.
class Announcer {
  public:
    virtual void event_read() = 0;
    virtual void event_discarded(fid_t request) = 0;

  protected:
    ~Announcer() = default;
};

class EventQueue final : public fid_eq {
  public:
    struct Event {
        std::uint32_t type = 0;
        fid_t fid = nullptr;
        fi_info* info = nullptr; // FI_CONNREQ; owned
        Announcer* announcer = nullptr;
        bool raw = false;            // `data` is the whole entry
        int err = 0;                 // not 0: for fi_eq_readerr()
        int prov_errno = 0;          // a core::Reason
        std::vector<std::byte> data; // private data
    };

    EventQueue(Fabric& fabric, const fi_eq_attr& attr, void* context);
    ~EventQueue();

    int open(); // 0 or -errno

    Users users; // endpoints bound to it
    Fabric& fabric() { return fabric_; }
    bool waitable() const { return wait_obj_ != FI_WAIT_NONE; }
    bool writable() const { return writable_; }
    int wait_fd() const { return wait_.fd(); }

    // Events that are on their way to a queue: to put them into it takes no memory.
    using Events = std::list<Event>;
    // Any thread, also under a lock. Takes them; takes no memory.
    void push(Events&& events);
    // For a source that announces, from its progress().
    void push_request(Events&& event) { requests_.splice(requests_.end(), event); }
    // Throws away the events of an object that is being closed. Not under a lock.
    void purge(fid_t fid);

    // A source may be added several times, and is removed as often. Not under a
    // lock. 0 or -errno.
    int add_source(EventSource& source);
    void remove_source(EventSource& source);

    ssize_t read(std::uint32_t* type, void* buf, std::size_t len, std::uint64_t flags);
    ssize_t read_error(fi_eq_err_entry* entry, std::uint64_t flags);
    ssize_t read_waiting(std::uint32_t* type, void* buf, std::size_t len, int timeout_ms,
                         std::uint64_t flags);
    // 0: nothing is there, a thread may sleep on wait_fd(). -FI_EAGAIN: read first.
    int try_wait();
    // fi_dat_ops_queue.
    int watch(int fd);
    int tell(int fd);
    std::size_t descriptors(int* fds, std::size_t count, std::uint64_t* changes);

  private:
    struct Source {
        EventSource* source;
        int uses;
    };

    class Usher;
    friend class Usher;

    void progress();
    void progress_those_that(bool announce);
    // Those that announce, on which its usher sleeps.
    void add_local_listeners(std::vector<pollfd>& fds);
    // There is one where something announces and the queue is told of. 0 or -errno; under
    // sources_mutex_.
    int need_usher();
    bool empty();
    void sources_changed(); // under sources_mutex_
    ssize_t take(std::uint32_t* type, void* buf, std::size_t len, std::uint64_t flags);
    void pop(); // these two: under queue_mutex_
    void after_pop();
    // The wait descriptor is not readable on account of what has been read already.
    void settle_down() const;
    static std::size_t copy_event(const Event& event, void* buf, std::size_t len);
    static std::size_t least_size(const Event& event);

    Fabric& fabric_;
    const fi_wait_obj wait_obj_;
    const bool writable_;
    WaitSet wait_;  // this and the next one: only where it is waitable()
    Signal signal_; // raised while there are events

    std::mutex queue_mutex_; // queue_, last_error_, lent_
    Events queue_;
    Events last_error_; // the one that was read last, whose data is valid until the next
    int lent_ = -1;     // the eventfd of who sleeps, -1: none

    std::mutex sources_mutex_; // sources_, changes_, and their progress
    std::vector<Source> sources_;
    std::uint64_t changes_ = 0; // of sources_
    Events requests_;           // announced, to be queued at the end of progress()
    bool told_ = false;         // tell() was called
    std::unique_ptr<Usher> usher_;
};

inline EventQueue& eq_of(fid_eq* f) { return *static_cast<EventQueue*>(f); }

// fi_eq_open(3).
int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);

} // namespace dat::ofi

#endif
