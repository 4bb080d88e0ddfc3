// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a domain hands upward: completions into a queue, connection events to
// a sink.
#ifndef DAT_CORE_COMPLETION_H
#define DAT_CORE_COMPLETION_H

#include "base/chunk_queue.h"
#include "base/list.h"
#include "core/dto_stream.h"
#include "core/ep_state.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace dat::core {

// One finished operation.
struct Completion {
    void* context;       // as posted, unmodified (DTO-7)
    std::uint64_t flags; // opaque here: the libfabric completion flags
    std::size_t length;  // bytes moved (DTO-11); undefined unless success (DTO-10)
    void* buffer;        // where a receive was placed, else nullptr
    // Remote CQ data, where `flags` says so. Of a failure: the tag, if it has one.
    std::uint64_t data;
    // Bytes that did not fit (local_length). Of a success, and of unknown_source: the tag, or 0.
    std::size_t overflow;
    DtoStatus status;
    std::uint32_t source = 0; // opaque here: whom a message came from; 0: it does not say
};

// A success, as far as a program is told of it; the members as those of Completion.
struct Success {
    void* context;
    std::uint64_t flags;
    std::size_t length;
    void* buffer;
    std::uint64_t data;
};

// A queue of completions. It grows as far as there are operations posted, so
// it loses nothing however small its nominal size. Calls are serialized by the
// domain's lock.
//
// Where there is no memory to grow, posts are held back instead: who posts is known (join()), and
// how much may be outstanding (expect()). Room for that is ready always, and from the moment that
// it cannot be made ready nobody posts until some has been read.
class CompletionQueue {
  public:
    // Who posts what completes here.
    class Poster : public base::Hook<Poster> {
      public:
        // Nothing more may be posted, or may again.
        virtual void hold(bool on) = 0;

      protected:
        Poster() = default;
        ~Poster() = default;
    };
    // So many operations more may be outstanding. False: there is no memory for them; nothing
    // happened.
    bool expect(std::size_t operations);
    // So many fewer, since they have completed, or never will.
    void expect_less(std::size_t operations);
    // Who posts them; of one queue at a time.
    void join(Poster& poster) {
        posters_.push(poster);
        poster.hold(short_);
    }
    void leave(Poster& poster) {
        posters_.remove(poster);
        poster.hold(false);
    }
    // Its posts are held back: memory may be there again.
    void try_again() { replenish(); }
    // No memory to grow: what nobody posted finds no place.
    bool is_short() const { return short_; }

    // Has successes for a queue that it need not push, for the reader asks for them: so they go
    // to the program without a place in the queue.
    class Source {
      public:
        // The next one, which is over with that. False: it has to be pushed, as what is behind
        // it; nothing happened.
        virtual bool give(const CompletionQueue& to, Success& success) noexcept = 0;

      protected:
        ~Source() = default;
    };

    virtual ~CompletionQueue() = default;
    CompletionQueue() = default;
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    void push(const Completion& completion) {
        if (queue_.at_end() && !turn_over()) [[unlikely]] {
            return;
        }
        queue_.put(completion);
        if (armed_) [[unlikely]] {
            wake();
        }
    }
    bool empty() const { return queue_.empty(); }
    std::size_t size() const { return queue_.size(); }
    Completion& front() { return queue_.front(); }
    void pop() {
        if (queue_.pop() && short_) [[unlikely]] {
            replenish();
        }
    }
    // Takes out what `gone` says yes to, by the completion.
    template <class Predicate> void remove_if(Predicate&& gone) {
        queue_.remove_if(std::forward<Predicate>(gone));
        replenish();
    }

    // The source has some for this queue, and pushes nothing before it stops: what is pushed
    // meanwhile is in no order with that. False: it has to push them, since somebody may sleep, or
    // some of its own are still there.
    bool offer(Source& source) {
        if (source_ || armed_ || !empty()) {
            return false;
        }
        source_ = &source;
        return true;
    }
    void stop(const Source& source) {
        if (source_ == &source) {
            source_ = nullptr;
        }
    }
    bool offered() const { return source_ != nullptr; }
    // The next of what is offered. False: nothing, any more. Precondition: offered().
    bool draw(Success& success) {
        if (source_->give(*this, success)) [[likely]] {
            return true;
        }
        source_ = nullptr;
        return false;
    }

    // While armed every push() calls wake(). The owner arms the queue before a
    // thread goes to sleep on it.
    void arm(bool on) { armed_ = on; }

    // As many wait as the queue was made for. Nothing that was posted is held back for
    // it; what peers raise without a post is.
    bool full() const { return queue_.size() >= nominal_size_; }

  protected:
    void set_nominal_size(std::size_t size) { nominal_size_ = size; }

  private:
    virtual void wake() = 0;
    bool turn_over();
    void replenish();

    base::ChunkQueue<Completion> queue_;
    base::List<Poster, Poster> posters_;
    std::size_t expected_ = 0; // operations
    bool short_ = false;       // they are held back
    Source* source_ = nullptr; // all that it has pushed has been read
    std::size_t nominal_size_ = SIZE_MAX;
    bool armed_ = false;
};

// Counts finished operations, those that succeeded and those that did not. Calls are
// serialized by the domain's lock.
class Counter {
  public:
    virtual ~Counter() = default;
    Counter() = default;
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    void add(DtoStatus status) {
        ++(status == DtoStatus::success ? value_ : errors_);
        if (armed_) [[unlikely]] {
            wake();
        }
    }
    std::uint64_t value() const { return value_; }
    std::uint64_t errors() const { return errors_; }
    void set(std::uint64_t value, std::uint64_t errors) {
        value_ = value;
        errors_ = errors;
        if (armed_) {
            wake();
        }
    }
    // While armed every change calls wake().
    void arm(bool on) { armed_ = on; }

  private:
    virtual void wake() = 0;

    std::uint64_t value_ = 0;
    std::uint64_t errors_ = 0;
    bool armed_ = false;
};

// The finer reason behind an end; the values are those of enum fi_dat_reason.
enum class Reason : std::uint8_t {
    none,
    local,
    peer_closed,
    peer_reset,
    end_in_frame,
    protocol,
    terminate,
    dto_error,
    keepalive,
    rnr_timeout,
    handshake_limit,
    refused,
    unreachable,
    timeout,
    rejected,
    resources,
    watermark,
};

// A connection event of an endpoint (EVD-40).
struct ConnectionEvent {
    Event event = Event::none;
    Reason reason = Reason::none;
    std::span<const std::byte> private_data; // exactly the bytes that were sent (PD-5)
};

} // namespace dat::core

#endif
