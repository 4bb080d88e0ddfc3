// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The event dispatcher. Its DTO streams are one completion queue, its other streams event
// queues of libfabric; both are made when the first stream needs them. An EVD that has
// completions alone is read without a lock of its own; where streams are merged, events are
// fetched in such an order that DISC-10 and EP-75 hold, and wait in a FIFO.
#ifndef DAT_SHIM_EVD_H
#define DAT_SHIM_EVD_H

#include "dat-shim/dto.h"
#include "dat-shim/event.h"
#include "dat-shim/object.h"
#include "dat-shim/wake.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <poll.h>
#include <vector>

namespace dat::shim {

class Cno;

class Evd final : public Object {
  public:
    static constexpr Kind kKind = Kind::evd;
    // EVD-4, as set by the completion streams
    enum class Config : std::uint8_t { none, threshold, notify, solicited };

    Evd(Ia& ia, std::int32_t length, std::uint32_t streams);
    ~Evd() override;

    static Return create(Ia& ia, std::int32_t min_length, Cno* cno, std::uint32_t streams,
                         Evd*& evd);
    Return free(); // EVD-35
    Return resize(std::int32_t min_length);

    std::int32_t length() const { return length_; }
    std::uint32_t streams() const { return streams_; }
    std::uint32_t state(); // bits of DAT_EVD_STATE
    Cno* cno();

    // EVD-21. Any thread. The next event becomes `event`, which is `plain(slot, length)`
    // (is_plain()), or there is none, or dequeue_other() is to be asked. `plain` is copied. In
    // fast.h.
    enum class Next { plain, none, other };
    template <class Plain> Next dequeue(Plain plain);
    Return dequeue_other(Event& event);
    // EVD-10..EVD-20. `timeout_us`: kForever for none. `more`: EVD-16.
    Return wait(std::uint32_t timeout_us, std::int32_t threshold, Event& event, std::int32_t& more);
    Return post_software(void* pointer); // EVD-33

    Return enable(bool on);       // EVD-30
    Return set_waitable(bool on); // EVD-19
    Return set_cno(Cno* cno);     // EVD-31

    // --- for other objects ---

    // A completion stream with those flags (EPA-11) begins or ends to feed it.
    bool add_dto_stream(std::uint32_t completion_flags);
    void remove_dto_stream();
    // Another stream; false: EPA-11 forbids it.
    bool add_stream();
    void remove_stream();
    // The queues, made if need be; nullptr: out of descriptors or memory. Throws
    // std::bad_alloc.
    fid_cq* completion_queue();
    fid_eq* event_queue(Ia& of);
    // The IA of an event queue closes; its events go.
    void drop_event_queue(Ia& of);

    // What is in the queues comes into the FIFO, less what is of `gone`; FREE-2.
    void forget(const Object& gone);
    // As forget(), but nothing is thrown away.
    void fetch();

    // For a CNO: CNO-2. Fetches.
    bool triggers();
    // Adds what tells of events, `wake_socket` of the CNO being told of them; false: something is
    // there to be fetched.
    bool watch(std::vector<pollfd>& watched, Wake& wake_socket);
    // watch() adds the descriptor of the domain, and triggers() reads when it is readable.
    bool moves_domain();

  private:
    struct Source {
        Ia* ia;
        fid_eq* eq;
    };

    Return dequeue_slow(Event& event);
    bool notifies(const Event& event) const; // who waits
    class Waiter;
    Return take(Event& event); // from the FIFO, which is not empty
    Return wait_locked(std::unique_lock<std::mutex>& lock, std::uint32_t timeout_us,
                       std::int32_t threshold, Event& event, std::int32_t& more);
    std::optional<Return> take_if(std::size_t enough, Event& event, std::int32_t& more);
    void stop_waiting(std::unique_lock<std::mutex>& lock);
    Return check_wait(std::int32_t threshold) const;
    void pump();
    void poll();
    void pump_merged(std::uint64_t flags);
    // For what is fetched next, so that nothing is fetched and lost.
    bool makes_room();
    bool drain_completions(EventQueue& into);
    bool drain_events(EventQueue& early, EventQueue& late, std::uint64_t flags);
    bool read_event(const Source& source, EventQueue& early, EventQueue& late, std::uint64_t flags);
    bool read_failure(fid_eq* queue, EventQueue& late);
    // From here on `fd` is told of what comes, -1: none is. False: something is there to
    // be fetched.
    bool lend(int fd);
    template <class Each> void for_each_queue(Each&& each);
    void add_descriptors(std::vector<pollfd>& watched);
    // Sleeps, if nothing is there; 0, EINTR, or EBADF: the program has closed what it is woken by.
    // What has woken it is dealt with.
    int sleep(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Wake& wake);
    void watch_by_descriptor();
    void append(EventQueue& from);
    void new_queue(std::unique_lock<std::mutex>& lock);
    void count_in(const Event& event);
    void update_direct();
    void after_change(); // events came or went
    void wake_sleeper() const;

    const std::uint32_t streams_;
    std::atomic<std::int32_t> length_;
    // cq_, if dequeue() may read it without the lock.
    std::atomic<fid_cq*> direct_{nullptr};
    fid_cq* cq_ = nullptr; // set once, as the next
    int arrivals_ = -1;    // of cq_: fi_dat_ops_queue

    std::mutex mutex_; // what follows
    std::vector<Source> sources_;
    EventQueue fifo_;
    EventQueue early_, late_, done_;                 // of pump_merged()
    std::vector<int> fds_ = std::vector<int>(1);     // of add_descriptors()
    std::vector<pollfd> watched_;                    // of sleep()
    std::chrono::steady_clock::time_point ask_at_{}; // the kernel for events; by poll()
    std::uint32_t notifying_ = 0;                    // events in fifo_ that notify
    std::uint32_t requests_ = 0;                     // connection requests in fifo_ (SP-3)
    std::uint32_t software_ = 0;                     // software events in fifo_
    Config config_ = Config::none;
    int dto_streams_ = 0;
    int other_streams_ = 0;
    bool enabled_ = true;
    bool waitable_ = true;
    bool waiting_ = false;            // a thread is blocked
    bool no_room_ = false;            // there may be more, and no memory to fetch it
    int inside_ = 0;                  // threads in wait()
    const Wake* sleeper_ = nullptr;   // of the thread that is blocked
    fi_dat_ops_queue* ops_ = nullptr; // of the queues, once there is one
    Cno* cno_ = nullptr;
    Wake wake_; // readable while there is something, for a CNO that has a descriptor
    std::uint64_t watched_changes_ = 0; // of its descriptors, as the CNO has them
};

} // namespace dat::shim

#endif
