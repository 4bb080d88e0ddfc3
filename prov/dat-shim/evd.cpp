// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Making and changing an event dispatcher, and how events get into its FIFO. See evd.h.
#include "dat-shim/evd.h"

#include "base/attempt.h"
#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/ep.h"
#include "dat-shim/fast.h"
#include "dat-shim/ia.h"
#include "dat-shim/reason.h"
#include "dat-shim/service_point.h"
#include "dat-shim/srq.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace dat::shim {
namespace {

// SP-3: so many requests may wait at least, whatever was asked for.
constexpr std::int32_t kLeastBacklog = 128;
constexpr std::size_t kBatch = 16; // completions that are fetched at once

void queue_ops_of(fid& queue, fi_dat_ops_queue*& ops) {
    fi_open_ops(&queue, FI_DAT_QUEUE_OPS, 0, reinterpret_cast<void**>(&ops), nullptr);
}

std::int32_t granted(std::int32_t asked, std::uint32_t streams) {
    return (streams & stream::kRequest) != 0 ? std::max(asked, kLeastBacklog) : asked;
}

Return check_length(std::int32_t asked) {
    if (asked > 0 && asked <= Limits::kMaxEvdLength) {
        return kSuccess;
    }
    return because(asked > 0 ? fail(Type::insufficient_resources, Sub::resource_memory)
                             : bad_argument(2),
                   "a length of %d: 1 to %d is offered", asked, Limits::kMaxEvdLength);
}

} // namespace

Evd::Evd(Ia& ia, std::int32_t length, std::uint32_t streams)
    : Object(ia, kKind, ia.dispatch()), streams_(streams), length_(granted(length, streams)) {}

Evd::~Evd() {
    for (const Source& source : sources_) {
        fi_close(&source.eq->fid);
    }
    if (cq_) {
        fi_close(&cq_->fid);
    }
}

Return Evd::create(Ia& ia, std::int32_t min_length, Cno* cno, std::uint32_t streams, Evd*& evd) {
    if (const Return rc = check_length(min_length)) {
        return rc;
    }
    if (streams == 0 || (streams & ~stream::kAll) != 0) {
        return because(bad_argument(4), "flags of 0x%x: one or more of DAT_EVD_*_FLAG", streams);
    }
    if (cno) {
        cno->expect_one_more();
    }
    evd = ia.make<Evd>(ia, min_length, streams);
    const Return rc = cno ? evd->set_cno(cno) : kSuccess;
    if (rc) {
        ia.destroy(*evd);
    }
    return rc;
}

Return Evd::free() {
    {
        const std::lock_guard lock(mutex_);
        if (inside_ > 0) {
            return fail(Type::invalid_state, Sub::invalid_state_evd_waiter);
        }
        if (users.load() > 0) {
            return fail(Type::invalid_state, Sub::invalid_state_evd_in_use);
        }
    }
    set_cno(nullptr);
    ia().destroy(*this);
    return kSuccess;
}

Return Evd::resize(std::int32_t min_length) {
    if (const Return rc = check_length(min_length)) {
        return rc;
    }
    const std::lock_guard lock(mutex_);
    pump();
    if (fifo_.size() > static_cast<std::size_t>(min_length)) {
        return fail(Type::invalid_state);
    }
    length_ = granted(min_length, streams_);
    after_change();
    return kSuccess;
}

// EVD-4. The configuration shares two bits.
std::uint32_t Evd::state() {
    const std::lock_guard lock(mutex_);
    const std::uint32_t config = config_ == Config::solicited   ? 0x20
                                 : config_ == Config::threshold ? 0x30
                                                                : 0x10;
    return (enabled_ ? 0x1U : 0x2U) | (waitable_ ? 0x4U : 0x8U) | config;
}

Cno* Evd::cno() {
    const std::lock_guard lock(mutex_);
    return cno_;
}

Return Evd::enable(bool on) {
    Cno* cno = nullptr;
    {
        const std::lock_guard lock(mutex_);
        enabled_ = on;
        after_change();
        cno = cno_;
    }
    if (cno) {
        cno->kick();
    }
    return kSuccess;
}

Return Evd::set_waitable(bool on) {
    const std::lock_guard lock(mutex_);
    waitable_ = on;
    wake_sleeper();
    return kSuccess;
}

Return Evd::set_cno(Cno* cno) {
    Wake wake;
    if (cno) {
        cno->expect_one_more();
        const pollfd own{cno->has_descriptor() ? wake.fd() : -1, POLLIN, 0};
        if (cno->has_descriptor() && (own.fd < 0 || !cno->watch({&own, 1}))) {
            return fail(Type::insufficient_resources, Sub::resource_device);
        }
    }
    Cno* before = nullptr;
    {
        const std::lock_guard lock(mutex_);
        before = std::exchange(cno_, cno);
        watched_changes_ = 0;
        if (!waiting_) {
            lend(-1); // it was the former CNO's
        }
        wake_.swap(wake);
        update_direct();
    }
    if (cno == before) {
        return kSuccess;
    }
    if (cno) {
        cno->attach(*this);
    }
    if (before) {
        before->detach(*this);
    }
    return kSuccess;
}

// EPA-11. Streams that do not notify each time are alone with their like.
bool Evd::add_dto_stream(std::uint32_t completion_flags) {
    const Config wanted = (completion_flags & completion::kSolicited) != 0     ? Config::solicited
                          : (completion_flags & completion::kUnsignalled) != 0 ? Config::notify
                                                                               : Config::threshold;
    const std::lock_guard lock(mutex_);
    if (dto_streams_ > 0 && config_ != wanted) {
        return false;
    }
    if (other_streams_ > 0 && wanted != Config::threshold) {
        return false;
    }
    config_ = wanted;
    ++dto_streams_;
    ++users;
    return true;
}

void Evd::remove_dto_stream() {
    const std::lock_guard lock(mutex_);
    if (--dto_streams_ == 0) {
        config_ = Config::none;
    }
    --users;
}

bool Evd::add_stream() {
    const std::lock_guard lock(mutex_);
    if (config_ == Config::notify || config_ == Config::solicited) {
        return false;
    }
    ++other_streams_;
    ++users;
    return true;
}

void Evd::remove_stream() {
    const std::lock_guard lock(mutex_);
    --other_streams_;
    --users;
}

fid_cq* Evd::completion_queue() {
    std::unique_lock lock(mutex_);
    if (!cq_) {
        fi_cq_attr attr{};
        attr.size = static_cast<std::size_t>(length_.load());
        attr.format = FI_CQ_FORMAT_DATA;
        attr.wait_obj = FI_WAIT_NONE;
        if (fi_cq_open(ia().domain(), &attr, &cq_, this) != 0) {
            cq_ = nullptr;
            return nullptr;
        }
        queue_ops_of(cq_->fid, ops_);
        arrivals_ = ops_->arrivals(&cq_->fid);
        new_queue(lock);
    }
    return cq_;
}

// Who sleeps is to sleep on it as well.
void Evd::new_queue(std::unique_lock<std::mutex>& lock) {
    after_change();
    wake_sleeper();
    if (Cno* const cno = cno_) {
        lock.unlock();
        cno->kick();
    }
}

void Evd::wake_sleeper() const {
    if (sleeper_) {
        sleeper_->raise();
    }
}

fid_eq* Evd::event_queue(Ia& of) {
    std::unique_lock lock(mutex_);
    for (const Source& source : sources_) {
        if (source.ia == &of) {
            return source.eq;
        }
    }
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_NONE;
    Source source{&of, nullptr};
    sources_.reserve(sources_.size() + 1);
    if (fi_eq_open(of.fabric(), &attr, &source.eq, this) != 0) {
        return nullptr;
    }
    sources_.push_back(source);
    queue_ops_of(source.eq->fid, ops_);
    new_queue(lock);
    return source.eq;
}

void Evd::drop_event_queue(Ia& of) {
    const std::lock_guard lock(mutex_);
    pump();
    const auto source = std::ranges::find(sources_, &of, &Source::ia);
    if (source != sources_.end()) {
        fi_close(&source->eq->fid);
        sources_.erase(source);
    }
    notifying_ = requests_ = software_ = 0;
    fifo_.remove_if([&](const Event& event) {
        const bool gone = event.subject && &event.subject->ia() == &of;
        if (!gone) {
            count_in(event);
        }
        return gone;
    });
    after_change();
}

void Evd::forget(const Object& gone) {
    const std::lock_guard lock(mutex_);
    pump();
    if (no_room_ && cq_) {
        ofi::direct::remove_if(cq_, [&](const core::Completion& done) {
            if (subject_of(done) != &gone) {
                return false;
            }
            Event event{};
            complete(done, event); // its slot is free again
            return true;
        });
    }
    notifying_ = requests_ = software_ = 0;
    fifo_.remove_if([&](const Event& event) {
        if (event.subject == &gone) {
            return true;
        }
        count_in(event);
        return false;
    });
    after_change();
}

void Evd::fetch() {
    const std::lock_guard lock(mutex_);
    pump();
    after_change();
}

Return Evd::post_software(void* pointer) {
    if ((streams_ & stream::kSoftware) == 0) {
        return bad_argument(1);
    }
    Cno* cno = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (software_ >= static_cast<std::uint32_t>(length_)) { // U-15
            return kEvdFull;
        }
        Event event{};
        event.number = Number::software;
        event.notice = kAlways;
        event.pointer = pointer;
        fifo_.push(event);
        count_in(event);
        after_change();
        cno = cno_;
    }
    if (cno) {
        cno->kick();
    }
    return kSuccess;
}

// EVD-22. A device does not tell which messages were solicited: each of them wakes.
bool Evd::notifies(const Event& event) const {
    const bool choosy = config_ == Config::solicited && !ia().can().device;
    return (event.notice & (choosy ? kSolicited : kNotifies)) != 0;
}

void Evd::count_in(const Event& event) {
    notifying_ += notifies(event) ? 1 : 0;
    requests_ += event.number == Number::connection_request ? 1 : 0;
    software_ += event.number == Number::software ? 1 : 0;
}

void Evd::append(EventQueue& from) {
    for (; !from.empty(); from.pop()) {
        fifo_.push(from.front());
        count_in(from.front());
    }
}

void Evd::update_direct() {
    const bool detour =
        !sources_.empty() || !fifo_.empty() || waiting_ || (cno_ && cno_->has_descriptor());
    direct_.store(detour ? nullptr : cq_, std::memory_order_release);
}

void Evd::after_change() {
    update_direct();
    if (waiting_) {
        if (!fifo_.empty()) { // somebody else fetched it
            wake_sleeper();
        }
    } else if (cno_ && cno_->has_descriptor()) {
        watch_by_descriptor();
    }
}

// CNO-9: readable while there is something that notifies, else ready to become so.
void Evd::watch_by_descriptor() {
    std::uint64_t changes = 1;
    for_each_queue([&](fid& queue) {
        std::uint64_t of_queue = 0;
        ops_->descriptors(&queue, nullptr, 0, &of_queue);
        changes += 1 + of_queue;
    });
    const bool same = std::exchange(watched_changes_, changes) == changes;
    bool each_is_in = true;
    const bool had_memory = same || base::attempt([&] {
                                std::vector<pollfd> watched;
                                add_descriptors(watched);
                                each_is_in = cno_->watch(watched);
                            });
    if (!had_memory || !each_is_in) {
        watched_changes_ = 0; // who is woken looks, and it is tried again
        return wake_.raise();
    }
    wake_.clear();
    if (!enabled_) { // EVD-30
        lend(-1);
    } else if (notifying_ > 0 || !lend(wake_.fd())) {
        wake_.raise();
    }
}

template <class Each> void Evd::for_each_queue(Each&& each) {
    if (cq_) {
        each(cq_->fid);
    }
    for (const Source& source : sources_) {
        each(source.eq->fid);
    }
}

bool Evd::lend(int fd) {
    bool empty = true;
    for_each_queue([&](fid& queue) { empty = ops_->watch(&queue, fd) == 0 && empty; });
    return empty;
}

void Evd::add_descriptors(std::vector<pollfd>& watched) {
    for_each_queue([&](fid& queue) {
        std::size_t count = 0;
        while ((count = ops_->descriptors(&queue, fds_.data(), fds_.size(), nullptr)) >
               fds_.size()) {
            fds_.resize(count);
        }
        for (std::size_t i = 0; i < count; ++i) {
            watch_once(watched, fds_[i]);
        }
    });
}

// Brings all that is there into the FIFO.
void Evd::pump() {
    no_room_ = false;
    if (sources_.empty()) {
        if (cq_) {
            drain_completions(done_);
            append(done_);
        }
        return;
    }
    pump_merged(0);
}

// As pump(), for a program that asks again and again: in vain the kernel is asked for events a
// sixteenth of the time at most, however slow it is. What is queued already is there each time.
void Evd::poll() {
    using Clock = std::chrono::steady_clock;
    constexpr Clock::duration kPeriod = std::chrono::microseconds(20);
    constexpr Clock::duration kLongest = std::chrono::milliseconds(1);
    if (sources_.empty() || (cno_ && cno_->has_descriptor())) {
        return pump();
    }
    const auto now = Clock::now();
    no_room_ = false;
    if (now < ask_at_) {
        return pump_merged(FI_DAT_QUEUED);
    }
    pump_merged(0);
    if (fifo_.empty()) {
        const auto end = Clock::now();
        ask_at_ = end + std::clamp(16 * (end - now), kPeriod, kLongest);
    }
}

// An ending can be read only when all completions of its connection can be: so
// completions that are fetched after it go before it. ESTABLISHED can be read before
// any receive of its connection completes: events are fetched until there is none
// behind the last completion, and ESTABLISHED goes first. `flags`: of the first look.
void Evd::pump_merged(std::uint64_t flags) {
    for (bool first = true;; first = false, flags = 0) {
        const bool events = drain_events(early_, late_, flags);
        if (!events && !first) {
            break;
        }
        if (!cq_ || !drain_completions(done_)) {
            if (!events) {
                break;
            }
        }
    }
    append(early_);
    append(done_);
    append(late_);
}

bool Evd::makes_room() {
    no_room_ = no_room_ || !base::attempt([&] {
                   for (EventQueue* queue : {&early_, &late_, &done_}) {
                       queue->make_room(kBatch);
                   }
                   fifo_.make_room(early_.size() + late_.size() + done_.size() + kBatch);
               });
    return !no_room_;
}

bool Evd::drain_completions(EventQueue& into) {
    bool any = false;
    while (makes_room() &&
           take_events(cq_, kBatch, [&](const Event& event) { into.push(event); }) > 0) {
        any = true;
    }
    return any;
}

bool Evd::drain_events(EventQueue& early, EventQueue& late, std::uint64_t flags) {
    bool any = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        while (makes_room() && read_event(sources_[i], early, late, flags)) {
            any = true;
        }
    }
    return any;
}

namespace {

// An entry of an event queue, with private data behind it.
struct Read {
    alignas(fi_eq_cm_entry) std::byte bytes[sizeof(fi_eq_cm_entry) + Limits::kMaxPrivateData];

    template <class Entry> const Entry& as() const {
        return *reinterpret_cast<const Entry*>(bytes);
    }
    std::span<const std::byte> data(ssize_t got) const {
        const auto size = static_cast<std::size_t>(got);
        return size > sizeof(fi_eq_cm_entry)
                   ? std::span(bytes).subspan(sizeof(fi_eq_cm_entry), size - sizeof(fi_eq_cm_entry))
                   : std::span<const std::byte>();
    }
};

Event connection_event(Number number, Ep& ep, std::uint32_t size) {
    Event event{};
    event.number = number;
    event.notice = kAlways;
    event.subject = &ep;
    event.connection = {ep.handle(), size, ep.private_data()};
    return event;
}

// An FI_DAT_ASYNC_EVENT. The context is that of the object: an Ep or a Srq.
Event async_event(const fi_eq_entry& entry) {
    Event event{};
    event.number = Number::async_error_provider_internal_error; // U-6, for watermarks
    event.notice = kAlways;
    const Object* object = nullptr;
    event.async.reason = kReasonWatermark;
    if (entry.data == FI_DAT_ASYNC_LOW_WATERMARK) {
        object = static_cast<Srq*>(entry.context);
    } else if (entry.data == FI_DAT_ASYNC_DEVICE_GONE || entry.data == FI_DAT_ASYNC_PORT_DOWN) {
        object = static_cast<Ia*>(entry.context);
        event.async.reason = kReasonOther;
        if (entry.data == FI_DAT_ASYNC_DEVICE_GONE) {
            event.number = Number::async_error_ia_catastrophic;
            event.async.reason = kReasonCatastrophic;
        }
    } else {
        object = static_cast<Ep*>(entry.context);
        if (entry.data == FI_DAT_ASYNC_EP_BROKEN) {
            event.number = Number::async_error_ep_broken;
            event.async.reason = kReasonTransferToError;
        }
    }
    event.subject = object;
    // As the program knows it.
    const bool adapter = object == &object->ia();
    event.async.object = adapter ? object->ia().public_handle() : object->handle();
    return event;
}

} // namespace

// What ends an attempt without a connection.
bool Evd::read_failure(fid_eq* queue, EventQueue& late) {
    std::byte data[Limits::kMaxPrivateData];
    fi_eq_err_entry error{};
    error.err_data = data;
    error.err_data_size = sizeof data;
    if (fi_eq_readerr(queue, &error, 0) < 0) {
        return false;
    }
    Ep& ep = *static_cast<Ep*>(error.fid->context);
    const Number number = ep.failure();
    const std::size_t size = number == Number::peer_rejected ? error.err_data_size : 0;
    ep.set_private_data({data, size});
    late.push(connection_event(number, ep, static_cast<std::uint32_t>(size)));
    return true;
}

bool Evd::read_event(const Source& source, EventQueue& early, EventQueue& late,
                     std::uint64_t flags) {
    Read read;
    std::uint32_t type = 0;
    const ssize_t got = fi_eq_read(source.eq, &type, read.bytes, sizeof read.bytes, flags);
    if (got == -FI_EAVAIL) {
        return read_failure(source.eq, late);
    }
    if (got < 0) {
        return false;
    }
    const auto& entry = read.as<fi_eq_cm_entry>();
    switch (type) {
    case FI_CONNREQ: {
        auto& point = *static_cast<ServicePoint*>(entry.fid->context);
        const bool room = requests_ + early.size() < static_cast<std::size_t>(length_.load());
        Event event{};
        if (point.request_arrived(entry.info, read.data(got), room, event)) {
            early.push(event);
        }
        break;
    }
    case FI_CONNECTED: {
        Ep& ep = *static_cast<Ep*>(entry.fid->context);
        std::uint32_t size = 0;
        if (ep.is_active()) { // PD-2; on the passive side it is the request's (U-44)
            ep.set_private_data(read.data(got));
            size = static_cast<std::uint32_t>(read.data(got).size());
        }
        early.push(connection_event(Number::established, ep, size));
        break;
    }
    case FI_SHUTDOWN: {
        Ep& ep = *static_cast<Ep*>(entry.fid->context);
        late.push(connection_event(ep.failure(), ep, 0));
        break;
    }
    case FI_DAT_ASYNC_EVENT:
        // One that was made for a request which nobody has read is not the program's yet.
        if (const auto& error = read.as<fi_eq_entry>(); error.context) {
            late.push(async_event(error));
        }
        break;
    default:
        break;
    }
    return true;
}

} // namespace dat::shim
