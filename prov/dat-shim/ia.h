// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The interface adapter: fabric and domain of one interface, and all objects of an open
// instance.
#ifndef DAT_SHIM_IA_H
#define DAT_SHIM_IA_H

#include "base/list.h"
#include "base/reserve.h"
#include "dat-shim/device.h"
#include "dat-shim/memory.h"
#include "dat-shim/object.h"
#include "dat-shim/wake.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dat::shim {

class Ep;
class Evd;
class ServicePoint;

class Ia final : public Object {
  public:
    static constexpr Kind kKind = Kind::ia;
    Ia(std::string name, Info info, const void* dispatch);
    ~Ia() override;

    struct Opening {
        std::string name;
        std::string device;   // see offer_of()
        unsigned major = 0;   // of the API
        const void* dispatch; // of its handles
        std::int32_t async_length;
        Evd* async = nullptr; // IA-2: the Consumer's; nullptr: one is made
        bool async_elsewhere = false;
    };
    static Return open(const Opening& opening, Ia*& ia);
    // IA-7: whether close() is to be called. From here on none of its handles is found, nor that
    // of an object which is made later, and who waits returns DAT_ABORT (IA-8). Once.
    Return begin_closing(bool graceful);
    bool is_closing() const { return closing_.load(std::memory_order_relaxed); }
    // IA-8..IA-11: ends it, and all that belongs to it, when no other thread is in a call that
    // may have found it.
    void close();

    const std::string& name() const { return name_; }
    fi_info& info() { return *info_; }
    const Abilities& can() const { return can_; }
    fid_fabric* fabric() { return fabric_; }
    fid_domain* domain() { return domain_; }
    const void* dispatch() const { return dispatch_; }
    Evd* async_evd() { return async_evd_; }
    LmrTable& lmrs() { return lmrs_; }
    WakePool& wakes() { return wakes_; }
    const sockaddr* address() const { return static_cast<const sockaddr*>(info_->src_addr); }

    fi_dat_ops_fabric& fabric_ops() { return *fabric_ops_; }
    fi_dat_ops_domain& domain_ops() { return *domain_ops_; }

    // A thread that sleeps on the descriptors of a completion queue of this, and reads that when
    // it is woken: the provider's own thread need not. `will`: it does so.
    class Attendance {
      public:
        Attendance(Ia& ia, bool will) : ia_(will ? &ia : nullptr) { say(1); }
        ~Attendance() { say(0); }
        Attendance(const Attendance&) = delete;
        Attendance& operator=(const Attendance&) = delete;

      private:
        void say(int there) {
            if (ia_) {
                ia_->domain_ops_->attend(ia_->domain_, there);
            }
        }
        Ia* const ia_;
    };

    // The handle that the Consumer knows: a number where this library gave it out
    // (dats_get_ia_handle).
    void* public_handle() const { return number_ ? number_ : handle(); }
    void set_number(void* number) { number_ = number; }

    // An object that belongs to this. Throws std::bad_alloc.
    template <class T, class... Args> T* make(Args&&... args) {
        auto made = std::make_unique<T>(std::forward<Args>(args)...);
        const std::lock_guard lock(mutex_);
        base::reserve_for(found_, objects_.size() + 1);
        objects_.insert(made.get());
        if (is_closing()) {
            conceal(*made);
        }
        return made.release();
    }
    void destroy(Object& object);
    // As destroy(), but its memory stays for a moment, without a handle: a thread that dequeues may
    // just be reading it.
    void bury(Ep& ep);

    // U-68: whether endpoints of this may report their connections to an EVD of the other.
    bool shares_device_with(const Ia& other) const;
    // One more endpoint of this reports to an EVD of another IA, or one fewer: that IA cannot be
    // closed gracefully meanwhile, and once closed abruptly it is destroyed behind the last.
    // Behind the last of the EVD it drops the event queue. borrow() answers INVALID_HANDLE with
    // `what` where a thread has begun to close that IA.
    Return borrow(Evd& evd, Sub what);
    void give_back(Evd& evd);

    // V2-1: the lmr_context of the memory behind a bound window, if the range is in it.
    Return memory_of_window(std::uint32_t rmr_context, std::uint64_t address, std::uint64_t length,
                            std::uint32_t& lmr_context);
    // The service point that listens on the qualifier; nullptr: none.
    ServicePoint* find_point(std::uint64_t qualifier);

    static Return from_errno(int rc); // of a call that makes something

  private:
    bool lend(); // false: it is being closed
    void release();
    Return open(const Opening& opening);
    static void conceal(Object& object) { object.conceal(); }
    template <class T, class Call> void for_each(Kind kind, Call&& call);
    void end_all();
    void dig_up(std::chrono::steady_clock::time_point now);

    const std::string name_;
    const Info info_;
    const void* const dispatch_;
    Abilities can_{};
    void* number_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fi_dat_ops_fabric* fabric_ops_ = nullptr;
    fi_dat_ops_domain* domain_ops_ = nullptr;
    Evd* async_evd_ = nullptr;
    bool async_is_own_ = false;
    std::atomic<bool> closing_{false};
    LmrTable lmrs_;
    WakePool wakes_;
    // Its EVDs, to endpoints of others and for their asynchronous events; and 1 until it is closed.
    std::atomic<int> held_{1};
    std::mutex mutex_;                       // what follows
    std::unordered_map<Evd*, int> borrowed_; // how many endpoints report to it
    std::unordered_set<Object*> objects_;
    std::vector<Object*> found_;        // of for_each(); has room for all of them
    base::List<Object, Buried> buried_; // owned; the oldest first
};

} // namespace dat::shim

#endif
