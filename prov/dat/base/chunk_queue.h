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
            begin_with(new (std::nothrow) Chunk);
        }
        if (head_ && write_ == write_end_ && !spare_) {
            spare_.reset(new (std::nothrow) Chunk);
            return spare_ != nullptr;
        }
        return head_ != nullptr;
    }

    // Appends; allocates a chunk now and then. Aborts the process by
    // std::bad_alloc where there is no memory left and reserve() was not asked.
    void push(const T& item) {
        if (write_ == write_end_) [[unlikely]] {
            add_chunk();
        }
        *write_++ = item;
        ++size_;
    }

    // The oldest item. Precondition: !empty().
    T& front() {
        assert(size_ > 0);
        return *read_;
    }

    void pop() {
        assert(size_ > 0);
        ++read_;
        if (--size_ == 0) {
            read_ = write_ = head_->items; // a chunk is linked for an item only: head_ is tail_
        } else if (read_ == read_end_) [[unlikely]] {
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
        std::swap(read_end_, other.read_end_);
        std::swap(write_, other.write_);
        std::swap(write_end_, other.write_end_);
        std::swap(size_, other.size_);
    }

  private:
    struct Chunk {
        T items[PerChunk];
        std::unique_ptr<Chunk> next;
    };

    // The first one; nullptr: there is none.
    void begin_with(Chunk* chunk) {
        head_.reset(chunk);
        tail_ = chunk;
        if (chunk) {
            read_ = write_ = chunk->items;
            read_end_ = write_end_ = chunk->items + PerChunk;
        }
    }
    __attribute__((noinline, cold)) void add_chunk() {
        if (!head_) {
            return begin_with(new Chunk);
        }
        tail_->next = spare_ ? std::move(spare_) : std::make_unique<Chunk>();
        tail_ = tail_->next.get();
        write_ = tail_->items;
        write_end_ = tail_->items + PerChunk;
    }
    __attribute__((noinline)) void drop_chunk() {
        std::unique_ptr<Chunk> done = std::exchange(head_, std::move(head_->next));
        if (!spare_) {
            spare_ = std::move(done);
        }
        read_ = head_->items;
        read_end_ = head_->items + PerChunk;
    }

    std::unique_ptr<Chunk> head_;
    std::unique_ptr<Chunk> spare_;
    Chunk* tail_ = nullptr;
    T* read_ = nullptr; // in head_, before read_end_
    T* read_end_ = nullptr;
    T* write_ = nullptr; // in tail_; read_ where nothing is there
    T* write_end_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace dat::base

#endif
