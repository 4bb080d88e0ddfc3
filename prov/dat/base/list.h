// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Lists whose links lie in their members: to become a member and to leave takes no memory,
// and so cannot fail. An object is in one list of each Tag at most, and leaves it when it is
// destroyed. A list owns nothing.
#ifndef DAT_BASE_LIST_H
#define DAT_BASE_LIST_H

namespace dat::base {

// What a member of a List<T, Tag> derives from.
template <class Tag> class Hook {
  public:
    Hook() = default;
    ~Hook() { leave(); }
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

  private:
    template <class T, class OfTag> friend class List;
    void leave() {
        if (next_) {
            next_->previous_ = previous_;
            previous_->next_ = next_;
            next_ = previous_ = nullptr;
        }
    }
    Hook* next_ = nullptr; // nullptr: in no list
    Hook* previous_ = nullptr;
};

template <class T, class Tag> class List {
  public:
    List() { ring_.next_ = ring_.previous_ = &ring_; }
    ~List() { // its members are in no list then
        while (!empty()) {
            pop();
        }
        ring_.next_ = nullptr;
    }
    List(const List&) = delete;
    List& operator=(const List&) = delete;

    bool empty() const { return ring_.next_ == &ring_; }
    // In this list, or another one of the same Tag.
    static bool holds(const T& member) { return hook(member).next_ != nullptr; }
    // Precondition: !holds(member).
    void push(T& member) { put_behind(*ring_.previous_, member); }
    // As push(), before all others.
    void push_front(T& member) { put_behind(ring_, member); }
    // From whatever list of this Tag it is in, if any.
    static void remove(T& member) { hook(member).leave(); }
    // Precondition of these two: !empty().
    T& front() { return static_cast<T&>(*ring_.next_); }
    T& pop() {
        T& first = front();
        remove(first);
        return first;
    }
    // Calls it with each member, from the first on; it changes no list.
    template <class Call> void each(Call&& call) {
        for (Hook<Tag>* at = ring_.next_; at != &ring_; at = at->next_) {
            call(static_cast<T&>(*at));
        }
    }
    // The first member for which `test` holds; nullptr: there is none.
    template <class Test> T* find(Test&& test) {
        for (Hook<Tag>* at = ring_.next_; at != &ring_; at = at->next_) {
            if (test(static_cast<const T&>(*at))) {
                return static_cast<T*>(at);
            }
        }
        return nullptr;
    }
    // Its members come to the end of this one.
    void take(List& other) {
        if (!other.empty()) {
            other.ring_.next_->previous_ = ring_.previous_;
            ring_.previous_->next_ = other.ring_.next_;
            other.ring_.previous_->next_ = &ring_;
            ring_.previous_ = other.ring_.previous_;
            other.ring_.next_ = other.ring_.previous_ = &other.ring_;
        }
    }

  private:
    static Hook<Tag>& hook(T& member) { return member; }
    static const Hook<Tag>& hook(const T& member) { return member; }
    static void put_behind(Hook<Tag>& previous, T& member) {
        Hook<Tag>& added = hook(member);
        added.next_ = previous.next_;
        added.previous_ = &previous;
        previous.next_->previous_ = &added;
        previous.next_ = &added;
    }

    Hook<Tag> ring_;
};

} // namespace dat::base

#endif
