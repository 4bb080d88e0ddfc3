// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The Consumer notification object. It is triggered as long as an enabled EVD of it, on which
// nobody waits, has an event that notifies (CNO-2, CNO-7): nothing that was not dequeued is
// missed. Lock order: a CNO's, then an EVD's.
#ifndef DAT_SHIM_CNO_H
#define DAT_SHIM_CNO_H

#include "dat-shim/object.h"
#include "dat-shim/wake.h"

#include <rdma/fi_eq.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace dat::shim {

class Evd;

class Cno final : public Object {
  public:
    static constexpr Kind kKind = Kind::cno;
    using Function = void (*)(void* instance, void* evd_handle);
    struct Agent { // CNO-6
        void* instance = nullptr;
        Function function = nullptr; // nullptr: none
    };

    explicit Cno(Ia& ia);
    ~Cno() override;

    static Return create(Ia& ia, const Agent& agent, Cno*& cno);
    static Return create_with_descriptor(Ia& ia, int& fd, Cno*& cno); // CNO-9
    Return free();
    Return set_agent(const Agent& agent);
    // CNO-3..CNO-5
    Return wait(std::uint32_t timeout_us, Evd*& evd);
    // The EVD that has something, without waiting; QUEUE_EMPTY if none has.
    Return poll(Evd*& evd);

    Agent agent();
    int descriptor() const { return epoll_; } // -1: none
    bool has_descriptor() const { return epoll_ >= 0; }

    // --- for EVDs and the IA ---

    // Before attach(). Throws std::bad_alloc.
    void expect_one_more();
    void attach(Evd& evd);
    void detach(Evd& evd);
    // Who sleeps looks again.
    void kick();
    // To a CNO that has a descriptor: the descriptors of an EVD of it, whose lock is held. False:
    // not each of them, for want of memory.
    [[nodiscard]] bool watch(std::span<const pollfd> watched) const;
    // IA-8: the agent is not called any more. Waits until it has returned.
    void end_agent();

  private:
    Evd* triggered(); // under mutex_
    Return wait_until(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Evd*& evd,
                      bool for_agent);
    // Without the lock meanwhile; 0, EINTR, EMFILE, or EBADF: the program has closed what it is
    // woken by.
    int sleep(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
              std::vector<pollfd>& watched);
    void run_agent();
    bool start_agent(); // false: out of threads
    void stop_agent(std::unique_lock<std::mutex>& lock);
    void raise_all(); // under mutex_

    std::mutex mutex_;
    std::vector<Evd*> evds_;
    std::size_t next_ = 0;        // where to begin looking, so that each has its turn
    std::vector<Wake*> sleepers_; // of the threads that sleep
    Wake wake_socket_;            // what EVDs tell of events; all who sleep look at it
    int epoll_ = -1;              // the descriptor of the Consumer
    Agent agent_;
    std::thread thread_; // waits for the agent
    bool agent_stops_ = false;
    bool* gone_ = nullptr; // of the agent's thread, while it calls: this has gone meanwhile
    int inside_ = 0;
};

} // namespace dat::shim

#endif
