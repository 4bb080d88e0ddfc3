// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A FIFO that grows by chunks and keeps one spare: no bound, no copying when it
// grows, and no allocation while it holds about as much as before. A queue that
// is filled and emptied in turn stays in the same cache lines.
// May include: std.
#ifndef DAT_BASE_CHUNK_QUEUE_H
#define DAT_BASE_CHUNK_QUEUE_H

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace dat::base {

template <class T, std::size_t PerChunk = 128> class ChunkQueue {
  public:
    ChunkQueue() = default;
    ChunkQueue(const ChunkQueue&) = delete;
    ChunkQueue& operator=(const ChunkQueue&) = delete;
    ~ChunkQueue() {
        while (head_) { // not by recursion through unique_ptr
            head_ = std::move(head_->next);
        }
    }

    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }

    // Room for one more, reserved ahead so that push() cannot fail. False:
    // out of memory.
    bool reserve() {
        if (!head_) {
            head_.reset(new (std::nothrow) Chunk);
            tail_ = head_.get();
        }
        if (head_ && write_ == PerChunk && !spare_) {
            spare_.reset(new (std::nothrow) Chunk);
            return spare_ != nullptr;
        }
        return head_ != nullptr;
    }

    // Appends; allocates a chunk now and then. Aborts the process by
    // std::bad_alloc where there is no memory left and reserve() was not asked.
    void push(const T& item) {
        if (!tail_ || write_ == PerChunk) [[unlikely]] {
            add_chunk();
        }
        tail_->items[write_++] = item;
        ++size_;
    }

    // The oldest item. Precondition: !empty().
    T& front() {
        assert(size_ > 0);
        return head_->items[read_];
    }

    void pop() {
        assert(size_ > 0);
        ++read_;
        if (--size_ == 0) {
            read_ = write_ = 0; // a chunk is linked for an item only: head_ is tail_
        } else if (read_ == PerChunk) [[unlikely]] {
            drop_chunk();
        }
    }

    // Removes every item for which `gone` holds; the order of the rest stays.
    template <class Predicate> void remove_if(Predicate gone) {
        ChunkQueue kept;
        while (!empty()) {
            if (!gone(front())) {
                kept.push(front());
            }
            pop();
        }
        swap(kept);
    }

    void swap(ChunkQueue& other) {
        std::swap(head_, other.head_);
        std::swap(spare_, other.spare_);
        std::swap(tail_, other.tail_);
        std::swap(read_, other.read_);
        std::swap(write_, other.write_);
        std::swap(size_, other.size_);
    }

  private:
    struct Chunk {
        T items[PerChunk];
        std::unique_ptr<Chunk> next;
    };

    __attribute__((noinline, cold)) void add_chunk() {
        if (!head_) {
            head_ = std::make_unique<Chunk>();
            tail_ = head_.get();
            return;
        }
        tail_->next = spare_ ? std::move(spare_) : std::make_unique<Chunk>();
        tail_ = tail_->next.get();
        write_ = 0;
    }
    __attribute__((noinline)) void drop_chunk() {
        std::unique_ptr<Chunk> done = std::exchange(head_, std::move(head_->next));
        if (!spare_) {
            spare_ = std::move(done);
        }
        read_ = 0;
    }

    std::unique_ptr<Chunk> head_;
    std::unique_ptr<Chunk> spare_;
    Chunk* tail_ = nullptr;
    std::size_t read_ = 0;  // in head_
    std::size_t write_ = 0; // in tail_
    std::size_t size_ = 0;
};

} // namespace dat::base

#endif
