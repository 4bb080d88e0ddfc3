// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Four threads on one IA, which all do everything that MT-1 and MT-4 allow: make endpoints,
// connect, accept, post on endpoints of their own, dequeue from and wait on the same EVDs and CNO,
// disconnect and free. Each operation completes once, each attempt ends once. A plain program of
// either version of the API, for ThreadSanitizer.
#include "../attack/dat_scene.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace dat::test {
namespace {

constexpr int kThreads = 4;
constexpr int kVisits = 25; // connections that each thread makes
constexpr int kPosts = 6;   // messages on each, and as many RDMA writes

// An operation; its address is its cookie.
struct Action {
    std::atomic<int> completions{0};
};

struct End {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    std::atomic<int> established{0};
    std::atomic<int> ended{0};
    std::deque<Action> actions; // of the thread that posts
};

class Arena {
  public:
    Arena() { scene_.open(); }
    void visit(unsigned thread);
    void close();

  private:
    End& make_end(bool active);
    End& end_of(DAT_EP_HANDLE ep);
    void post(End& end, DAT_RETURN (*call)(const DatScene&, DAT_EP_HANDLE, DAT_DTO_COOKIE));
    void note(const DAT_EVENT& event);
    void accept(DAT_CR_HANDLE cr);
    void look(DAT_EVD_HANDLE evd, bool sleeps);
    void poll();
    template <class Done> void poll_until(const char* what, Done&& done) {
        await(what, [&] {
            poll();
            return done();
        });
    }

    DatScene scene_;
    std::mutex mutex_; // what follows
    std::map<DAT_EP_HANDLE, End*> ends_;
    std::deque<End> all_;
    int passive_ = 0;
};

DAT_RETURN post_receive(const DatScene& scene, DAT_EP_HANDLE ep, DAT_DTO_COOKIE cookie) {
    DAT_LMR_TRIPLET into = scene.piece(DatScene::kRoom, 0); // its contents do not matter
    return dat_ep_post_recv(ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN post_send(const DatScene& scene, DAT_EP_HANDLE ep, DAT_DTO_COOKIE cookie) {
    DAT_LMR_TRIPLET from = scene.piece(0, 0);
    return dat_ep_post_send(ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN post_write(const DatScene& scene, DAT_EP_HANDLE ep, DAT_DTO_COOKIE cookie) {
    DAT_LMR_TRIPLET from = scene.piece(0, 0);
    const DAT_RMR_TRIPLET to =
        remote_range(reinterpret_cast<std::uintptr_t>(DatScene::bytes.data()), 0, scene.at_peer);
    return dat_ep_post_rdma_write(ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG);
}

// Known before its events can come.
End& Arena::make_end(bool active) {
    const std::lock_guard lock(mutex_);
    End& end = all_.emplace_back();
    passive_ += active ? 0 : 1;
    DAT_MUST(scene_.make_endpoint(&end.ep));
    ends_[end.ep] = &end;
    return end;
}

End& Arena::end_of(DAT_EP_HANDLE ep) {
    const std::lock_guard lock(mutex_);
    return *ends_.at(ep);
}

void Arena::post(End& end, DAT_RETURN (*call)(const DatScene&, DAT_EP_HANDLE, DAT_DTO_COOKIE)) {
    DAT_DTO_COOKIE cookie;
    cookie.as_ptr = &end.actions.emplace_back();
    DAT_MUST(call(scene_, end.ep, cookie));
}

void Arena::accept(DAT_CR_HANDLE cr) {
    End& end = make_end(false);
    for (int i = 0; i < kPosts; ++i) {
        post(end, post_receive);
    }
    DAT_MUST(dat_cr_accept(cr, end.ep, 0, nullptr));
}

void Arena::note(const DAT_EVENT& event) {
    switch (event.event_number) {
    case DAT_DTO_COMPLETION_EVENT: {
        const auto& dto = event.event_data.dto_completion_event_data;
        static_cast<Action*>(dto.user_cookie.as_ptr)->completions++;
        break;
    }
    case DAT_CONNECTION_REQUEST_EVENT:
        accept(event.event_data.cr_arrival_event_data.cr_handle);
        break;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        end_of(event.event_data.connect_event_data.ep_handle).established++;
        break;
    default:
        end_of(event.event_data.connect_event_data.ep_handle).ended++;
    }
}

void Arena::look(DAT_EVD_HANDLE evd, bool sleeps) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    const DAT_RETURN rc =
        sleeps ? dat_evd_wait(evd, 500, 1, &event, &more) : dat_evd_dequeue(evd, &event);
    if (rc == DAT_SUCCESS) {
        return note(event);
    }
    DAT_REQUIRE(DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY || DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED ||
                    DAT_GET_TYPE(rc) == DAT_INVALID_STATE, // EVD-17: another thread waits
                code_name(rc));
}

void Arena::poll() {
    thread_local unsigned turn = 0;
    ++turn;
    for (const DAT_EVD_HANDLE evd : {scene_.sent, scene_.received, scene_.events}) {
        look(evd, turn % 8 == 0);
    }
    if (turn % 16 == 0) {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        dat_cno_wait(scene_.cno, 500, &evd);
    }
}

void Arena::visit(unsigned thread) {
    for (unsigned i = 0; i < kVisits; ++i) {
        End& end = make_end(true);
        post(end, post_receive);
        for (int again = 0; again < 2; ++again) {
            const int established = end.established;
            DAT_MUST(scene_.begin_connect(end.ep));
            poll_until("a connection", [&] { return end.established > established; });
            for (int n = 0; n < kPosts; ++n) {
                post(end, post_send);
                post(end, post_write);
                poll();
            }
            const bool graceful = (thread + i) % 2 == 0;
            DAT_MUST(dat_ep_disconnect(end.ep,
                                       graceful ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
            poll_until("the end", [&] { return end.ended > again; });
            DAT_MUST(dat_ep_reset(end.ep));
        }
        poll_until("completions", [&] {
            int open = 0;
            for (const Action& each : end.actions) {
                open += each.completions == 0 ? 1 : 0;
            }
            return open == 0;
        });
        const std::lock_guard lock(mutex_); // a handle may be used again
        ends_.erase(end.ep);
        DAT_MUST(dat_ep_free(end.ep));
    }
}

void Arena::close() {
    constexpr int kConnections = 2 * kThreads * kVisits;
    poll_until("the ends of the other side", [&] {
        const std::lock_guard lock(mutex_);
        int open = 0;
        for (const End& end : all_) {
            open += end.ended == 0 ? 1 : 0;
            for (const Action& each : end.actions) {
                open += each.completions == 0 ? 1 : 0;
            }
        }
        return open == 0 && passive_ == kConnections;
    });
    for (const End& end : all_) {
        for (const Action& each : end.actions) {
            DAT_REQUIRE(each.completions == 1, "an operation completed twice");
        }
        DAT_REQUIRE(end.ended == end.established, "an attempt ended otherwise than once");
    }
    DAT_MUST(dat_ia_close(scene_.ia, DAT_CLOSE_ABRUPT_FLAG));
}

void run(const char*) {
    Arena arena;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
        threads.emplace_back([&arena, i] { arena.visit(i); });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    arena.close();
}

} // namespace
} // namespace dat::test

int main() { return dat::test::run_over_links(dat::test::run); }
