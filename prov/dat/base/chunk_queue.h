// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A FIFO that grows by chunks: no bound, no copying when it grows, and no allocation while it
// holds about as much as before. A queue that is filled and emptied in turn stays in the same
// cache lines. Room can be made ahead. Nothing here throws.
#ifndef DAT_BASE_CHUNK_QUEUE_H
#define DAT_BASE_CHUNK_QUEUE_H

#include "base/assert.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace dat::base {

// PerChunk: items that a chunk has at least.
template <class T, std::size_t PerChunk = 128> class ChunkQueue {
  public:
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

    ChunkQueue() = default;
    ChunkQueue(const ChunkQueue&) = delete;
    ChunkQueue& operator=(const ChunkQueue&) = delete;
    ~ChunkQueue() {
        free_all(head_);
        free_all(spare_);
    }

    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }

    // From here on chunks for so many items are kept ready, behind the one that is being filled;
    // more than that are given back once they are empty. False: there is no memory for some of
    // them; those that there are stay.
    bool keep_ready(std::size_t items) {
        wanted_ = items;
        if (!head_) {
            begin_with(make(PerChunk));
        }
        if (head_ && ready_ < wanted_ && size_ == 0) {
            begin_with_smaller();
        }
        if (head_ && ready_ < wanted_) {
            // Doubled, so that a queue which is told of more and more has few of them.
            add_spare(make(std::max({wanted_ - ready_, ready_, PerChunk})));
        }
        if (head_ && ready_ < wanted_) {
            add_spare(make(std::max(wanted_ - ready_, PerChunk)));
        }
        return head_ && ready_ >= wanted_;
    }
    // There are as many ready as keep_ready() was told.
    bool is_ready() const { return ready_ >= wanted_; }

    // The chunk is full: push() needs another one.
    bool at_end() const { return write_ == write_end_; }
    // Makes the next chunk the one to be filled: one that is ready, or a new one. False: no
    // memory. Precondition: at_end().
    __attribute__((noinline, cold)) bool begin_chunk() {
        if (!head_) {
            begin_with(make(PerChunk));
            return head_ != nullptr;
        }
        Chunk* next = take_spare();
        next = next ? next : make(PerChunk);
        if (!next) {
            return false;
        }
        tail_->next = next;
        tail_ = next;
        write_ = next->items();
        write_end_ = write_ + next->room;
        return true;
    }
    // Precondition: !at_end().
    void put(const T& item) {
        *write_++ = item;
        ++size_;
    }
    // Appends. False: there is no memory for it.
    bool push(const T& item) {
        if (at_end() && !begin_chunk()) [[unlikely]] {
            return false;
        }
        put(item);
        return true;
    }

    // The oldest item. Precondition: !empty().
    T& front() {
        DAT_ASSERT(size_ > 0);
        return *read_;
    }

    // Removes it. True: a chunk has become empty, and may be ready now.
    bool pop() {
        DAT_ASSERT(size_ > 0);
        ++read_;
        if (--size_ == 0) {
            read_ = write_ = head_->items(); // a chunk is begun for an item only: head_ is tail_
            return false;
        }
        if (read_ == read_end_) [[unlikely]] {
            drop_chunk();
            return true;
        }
        return false;
    }

    // Removes every item for which `gone` holds; the order of the rest stays.
    template <class Predicate> void remove_if(Predicate&& gone) {
        Chunk* from = head_;
        Chunk* to = head_;
        const T* read = read_;
        T* write = read_;
        const std::size_t count = std::exchange(size_, 0);
        for (std::size_t i = 0; i < count; ++i) {
            if (read == from->items() + from->room) {
                from = from->next;
                read = from->items();
            }
            const T item = *read++;
            if (gone(item)) {
                continue;
            }
            if (write == to->items() + to->room) {
                to = to->next;
                write = to->items();
            }
            *write++ = item;
            ++size_;
        }
        if (count > 0) {
            end_at(to, size_ > 0 ? write : to->items());
        }
    }

  private:
    struct alignas(T) alignas(void*) Chunk {
        Chunk* next;
        std::size_t room; // items, behind this
        T* items() { return reinterpret_cast<T*>(this + 1); }
    };

    static Chunk* make(std::size_t room) {
        void* const memory = ::operator new(sizeof(Chunk) + room * sizeof(T), std::nothrow);
        return memory ? new (memory) Chunk{nullptr, room} : nullptr;
    }
    static void free_all(Chunk* chunk) {
        while (chunk) {
            ::operator delete(std::exchange(chunk, chunk->next));
        }
    }
    void begin_with(Chunk* chunk) {
        head_ = tail_ = chunk;
        if (chunk) {
            read_ = write_ = chunk->items();
            read_end_ = write_end_ = read_ + chunk->room;
        }
    }
    // While the queue is empty any chunk may be the one to be filled, and the others are ready.
    void begin_with_smaller() {
        for (Chunk** at = &spare_; *at; at = &(*at)->next) {
            Chunk* const chunk = *at;
            if (ready_ + head_->room - chunk->room >= wanted_) {
                *at = chunk->next;
                chunk->next = nullptr;
                ready_ -= chunk->room;
                add_spare(head_);
                return begin_with(chunk);
            }
        }
    }
    void add_spare(Chunk* chunk) {
        if (chunk) {
            chunk->next = spare_;
            spare_ = chunk;
            ready_ += chunk->room;
        }
    }
    Chunk* take_spare() {
        Chunk* const chunk = spare_;
        if (chunk) {
            spare_ = std::exchange(chunk->next, nullptr);
            ready_ -= chunk->room;
        }
        return chunk;
    }
    __attribute__((noinline)) void drop_chunk() {
        Chunk* const done = std::exchange(head_, head_->next);
        read_ = head_->items();
        read_end_ = read_ + head_->room;
        recycle(done);
    }
    void recycle(Chunk* chunk) {
        if (ready_ < wanted_ || !spare_) {
            add_spare(chunk);
        } else {
            ::operator delete(chunk);
        }
    }
    // What is behind that is empty.
    void end_at(Chunk* last, T* write) {
        while (last->next) {
            recycle(std::exchange(last->next, last->next->next));
        }
        tail_ = last;
        write_ = write;
        write_end_ = last->items() + last->room;
        if (size_ == 0) {
            read_ = write_;
        }
    }

    Chunk* head_ = nullptr;
    Chunk* spare_ = nullptr;
    Chunk* tail_ = nullptr;
    T* read_ = nullptr; // in head_, before read_end_
    T* read_end_ = nullptr;
    T* write_ = nullptr; // in tail_; read_ where nothing is there
    T* write_end_ = nullptr;
    std::size_t size_ = 0;
    std::size_t ready_ = 0;  // items of spare_
    std::size_t wanted_ = 0; // of them
};

} // namespace dat::base

#endif
