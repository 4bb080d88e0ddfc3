// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The endpoint state machine through dat_* calls: endpoints that can be brought into each
// state, and peers that behave in each way. What depends on the version of the API is in
// states_api.h.
#ifndef DAT_TEST_SHIM_STATES_H
#define DAT_TEST_SHIM_STATES_H

#include "adapter.h"
#include "states_api.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dat::test::states {

inline constexpr DAT_TIMEOUT kSoon = 60'000'000; // us; nothing here takes that long
inline constexpr DAT_TIMEOUT kBriefly = 30'000;  // us, for what must not come

// A cell that turned out otherwise.
struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// Throws Wrong unless the call succeeded.
void must(DAT_RETURN code, const char* call);
#define MUST(call) ::dat::test::states::must((call), #call)

enum class State : std::uint8_t {
    unconnected,
    reserved,
    passive,
    tentative,
    active,
    completing,
    connected,
    disconnecting,
    ending,
    disconnected,
};

// An open adapter.
class Adapter {
  public:
    Adapter();
    ~Adapter() { close(); }
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    void close(); // abruptly
    DAT_EVD_HANDLE evd(DAT_EVD_FLAGS streams) const;

    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    alignas(8) std::array<char, 64> bytes{};
    Segment local{}; // all of `bytes`
};

struct End {
    explicit End(const Adapter& adapter);
    DAT_RETURN connect(DAT_CONN_QUAL port, DAT_TIMEOUT timeout = kSoon,
                       std::uint32_t address = place().address) const;
    DAT_RETURN send(std::uint64_t cookie) const;
    DAT_RETURN receive(std::uint64_t cookie) const;
    DAT_EP_STATE state() const;
    bool exists() const;

    const Adapter& adapter;
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_EVD_HANDLE conn;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
};

struct LocalListener {
    explicit LocalListener(const Adapter& adapter, DAT_PSP_FLAGS kind = DAT_PSP_CONSUMER_FLAG);
    DAT_CR_HANDLE request() const; // the next one

    DAT_EVD_HANDLE evd;
    DAT_CONN_QUAL port = 0;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
};

// This program once more, as a peer that can be stopped and killed.
class Process {
  public:
    // "requester PORT", "listener" or "server".
    explicit Process(const std::vector<std::string>& arguments);
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    std::string line(); // the next that it says
    void stop();        // returns when it stands
    void go_on() const;
    void kill();

  private:
    pid_t pid_ = -1;
    int output_ = -1;
};
// A program's arguments that make it such a peer, and what it then has to return.
bool is_peer(const std::vector<std::string>& arguments);
int run_peer(const std::vector<std::string>& arguments);
// Ports are then nobody else's, and the adapter has a network with nobody else on it. Without
// the right to it this host's loopback is good enough; devices are where they are.
void make_own_network();
// The link of the interface that the device of this place is on.
void switch_port(bool up);
// Lets the device of this place be taken away, which the kernel does when nobody has it open.
void remove_device();
// Waits for that, and makes it again. What a child removed counts where it leaves its children
// to this process (PR_SET_CHILD_SUBREAPER).
bool make_device_again();

// A peer of bytes: a TCP socket.
class RawPeer {
  public:
    RawPeer() = default;
    ~RawPeer();
    RawPeer(const RawPeer&) = delete;
    RawPeer& operator=(const RawPeer&) = delete;
    DAT_CONN_QUAL listen();
    void take_request(); // the connection that came
    void request(DAT_CONN_QUAL port);
    void talk_nonsense() const;
    void leave();
    void reset(); // leaves without a proper end

  private:
    int listener_ = -1;
    int socket_ = -1;
};

// An endpoint in one of the states, with what that takes. `subject` always has a receive
// outstanding, with kReceive, where its state allows that.
struct Scene {
    static constexpr std::uint64_t kReceive = 100;
    static constexpr std::uint64_t kRequest = 1; // in DISCONNECT_PENDING

    Scene();
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;
    void arrive(State state);
    void reserve();
    void be_tentative();
    void connect_to_peer();
    // To one that takes no message, and is `raw` where a device would end that.
    void connect_to_silent();
    bool by_bytes() const { return place().name == std::string("siw"); }
    void connect_from_process(); // of `process`
    void complete_with(Process& requester);
    void complete_with(RawPeer& requester);
    void ask_for_end(); // CONNECTED to DISCONNECT_PENDING
    enum class Side : std::uint8_t { connecting, accepting };
    void end_attempt(Side side = Side::connecting); // to UNCONNECTED, and a receive posted

    Adapter near;
    Adapter far;
    std::unique_ptr<End> subject = std::make_unique<End>(near);
    End peer{far};
    End other{far}; // a second peer
    LocalListener near_local_listener{near};
    LocalListener far_local_listener{far};
    LocalListener old_local_listener{far};
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL rsp_port = 0;
    DAT_EVD_HANDLE rsp_evd;
    DAT_CR_HANDLE cr = DAT_HANDLE_NULL;      // that holds the subject
    DAT_CR_HANDLE pending = DAT_HANDLE_NULL; // of the subject, at the far side
    DAT_CR_HANDLE old = DAT_HANDLE_NULL;     // of an attempt that is over
    DAT_CR_HANDLE another = DAT_HANDLE_NULL; // of `other`, at near_local_listener
    std::unique_ptr<Process> process;
    std::unique_ptr<Process> old_process;
    RawPeer raw;
    RawPeer old_raw;
    std::unique_ptr<Adapter> third;
    DAT_TIMEOUT old_timeout = 0; // us, of a connect of an attempt that is over
};

// The number of the next event; throws where none comes.
DAT_EVENT next(DAT_EVD_HANDLE evd);
DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
void expect_refusal(DAT_EVD_HANDLE evd); // NON_PEER_REJECTED, as the device tells it
void expect_dto(DAT_EVD_HANDLE evd, std::uint64_t cookie, DAT_DTO_COMPLETION_STATUS status);
bool is_empty(DAT_EVD_HANDLE evd);
void nothing_comes(DAT_EVD_HANDLE evd, DAT_TIMEOUT within = kBriefly);
std::string name_of(DAT_EVENT_NUMBER number);
std::string text_of(DAT_RETURN code);

// What brings one stimulus about.
struct Stimulus {
    const char* name;
    // An earlier attempt, which the stimulus then belongs to; before arrive().
    void (*before)(Scene&, State) = nullptr;
    void (*arrive)(Scene&, State) = nullptr; // nullptr: Scene::arrive()
    DAT_RETURN (*act)(Scene&, State) = nullptr;
    void (*after)(Scene&, State) = nullptr; // what else has to be so
};
const std::vector<Stimulus>& api_stimuli();
const std::vector<Stimulus>& wire_stimuli();

} // namespace dat::test::states

#endif
