// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See provider.h.
#include "ofi/provider.h"

#include "config.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/verbs/device.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/info.h"

#include <rdma/fi_ext_dat.h>
#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <strings.h>
#include <sys/auxv.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dat::ofi {

const std::uint32_t kProviderVersion = FI_VERSION(DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
// NOLINTNEXTLINE(misc-redundant-expression): equal is what they are to be
static_assert(FI_DAT_EXT_VERSION == FI_VERSION(DAT_VERSION_MAJOR, DAT_VERSION_MINOR),
              "fi_ext_dat.h is of the version that configure.ac says");

namespace {

// Nothing runs between calls but the threads of open domains, which end with them.
void cleanup() {}

// libfabric's core keeps state of its own in `context`: writable and zeroed.
fi_provider g_provider = {
    .version = kProviderVersion,
    .fi_version = 0,
    .context = {},
    .name = kProviderName,
    .getinfo = getinfo,
    .fabric = open_fabric,
    .cleanup = cleanup,
};

Parameters& mutable_parameters() {
    static Parameters instance;
    return instance;
}

fi_log_level log_level(base::LogLevel level) {
    switch (level) {
    case base::LogLevel::warn:
        return FI_LOG_WARN;
    case base::LogLevel::info:
        return FI_LOG_INFO;
    case base::LogLevel::debug:
        break;
    }
    return FI_LOG_DEBUG;
}

fi_log_subsys log_subsystem(base::LogArea area) {
    switch (area) {
    case base::LogArea::core:
        return FI_LOG_CORE;
    case base::LogArea::fabric:
        return FI_LOG_FABRIC;
    case base::LogArea::domain:
        return FI_LOG_DOMAIN;
    case base::LogArea::ep_ctrl:
        return FI_LOG_EP_CTRL;
    case base::LogArea::ep_data:
        return FI_LOG_EP_DATA;
    case base::LogArea::eq:
        return FI_LOG_EQ;
    case base::LogArea::cq:
        return FI_LOG_CQ;
    case base::LogArea::mr:
        break;
    }
    return FI_LOG_MR;
}

bool log_enabled(base::LogLevel level, base::LogArea area) {
    return fi_log_enabled(&g_provider, log_level(level), log_subsystem(area)) != 0;
}

void log_write(base::LogLevel level, base::LogArea area, const char* function, int number,
               const char* line) {
    const int saved_errno = errno;
    const kernel::NoCancel while_writing;
    fi_log(&g_provider, log_level(level), log_subsystem(area), function, number, "%s\n", line);
    errno = saved_errno;
}

// The value of a variable as it was written; nullptr where it is not set.
const char* value_of(const char* name) {
    char* value = nullptr;
    return fi_param_get_str(&g_provider, name, &value) == 0 ? value : nullptr;
}

// The same of a variable that libfabric knows as a number or a switch, and would read less
// strictly: as it stands in the environment, or else as libfabric has it from its file of settings.
std::optional<std::string> text_of(const char* name, fi_param_type type) {
    if (const char* const text = std::getenv((std::string("FI_DAT_") + name).c_str())) {
        return text;
    }
    int value = 0;
    const int rc = type == FI_PARAM_BOOL ? fi_param_get_bool(&g_provider, name, &value)
                                         : fi_param_get_int(&g_provider, name, &value);
    return rc == 0 ? std::optional(std::to_string(value)) : std::nullopt;
}

// A whole number from `least` to `most`; `value` is left where the text is anything else.
template <class Number>
void read_number(const char* name, const char* unit, std::uint64_t least, Number& value,
                 std::uint64_t most = std::numeric_limits<int>::max()) {
    const std::optional<std::string> given = text_of(name, FI_PARAM_INT);
    if (!given) {
        return;
    }
    const char* const text = given->c_str();
    char* end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    const bool digits = *text >= '0' && *text <= '9' && *end == '\0';
    if (!digits || errno != 0 || number < least || number > most) {
        DAT_WARN(core,
                 "FI_DAT_%s=\"%s\" is ignored: it has to be a whole number of %s from %llu to %llu",
                 name, text, unit, static_cast<unsigned long long>(least),
                 static_cast<unsigned long long>(most));
        return;
    }
    if constexpr (std::is_same_v<Number, std::uint8_t>) {
        value = static_cast<std::uint8_t>(number);
    } else {
        value = Number(static_cast<unsigned>(number));
    }
}

struct Variable {
    const char* name; // behind FI_DAT_
    fi_param_type type;
    const char* help;
};

constexpr Variable kVariables[] = {
    {"CRC", FI_PARAM_STRING,
     "CRC32C of iWARP frames: auto (asked for except on one host), on, off (not asked for; always "
     "granted to a peer that asks). Default: auto"},
    {"SHM", FI_PARAM_BOOL, "1: peers of one host use shared memory; 0: they use TCP. Default: 1"},
    {"CHECK_BUFFERS", FI_PARAM_BOOL,
     "1: the memory of each operation, and of a region that a peer uses, is looked at first, to "
     "find programs in which it cannot be touched; 0: it is not. Default: 0"},
    {"SHM_PEERS", FI_PARAM_STRING,
     "with whom on this host memory is shared: user (processes of the same user; others use TCP), "
     "any (fi_dat(7) says what it costs). Default: user"},
    {"STATS", FI_PARAM_STRING,
     "1: a summary is logged as a domain closes; off: dat_top(1) cannot look at domains, which "
     "saves each a descriptor. Default: it can, and nothing is logged"},
    {"CLOSE", FI_PARAM_STRING,
     "what fi_shutdown() does: abrupt (outstanding operations are flushed) or graceful (requests "
     "are carried out first). Default: abrupt"},
    {"UNEXPECTED", FI_PARAM_INT,
     "bytes that a connection stages for messages without a posted receive before it stops "
     "reading. Default: 65536"},
    {"RNR_TIMEOUT", FI_PARAM_INT,
     "seconds that an ending connection waits for a receive to be posted. Default: 10"},
    {"END_GRACE", FI_PARAM_INT,
     "milliseconds that messages of a peer that has ended wait for a receive before they are "
     "dropped. Default: 10000"},
    {"HANDSHAKE_TIMEOUT", FI_PARAM_INT,
     "seconds that the passive side gives a connection's handshake. Default: 10"},
    {"KEEPALIVE", FI_PARAM_INT, "seconds after which a silent peer is dead; 0: never. Default: 20"},
    {"RDM_IDLE", FI_PARAM_INT,
     "milliseconds after which a reliable datagram endpoint lets go of the connection with a peer "
     "that nothing has used, to make it again when it is needed; 0: never. Default: 0"},
    {"RESOLVE_TIMEOUT", FI_PARAM_INT,
     "milliseconds in which an RDMA device's connection manager has to find an address, and as "
     "many for the way there. Default: 2000"},
    {"ACK_TIMEOUT", FI_PARAM_INT,
     "how long an RDMA device waits for an acknowledgement before it sends again: 4.096 us times 2 "
     "to the power of this, 1 to 31; 0: for ever. Default: what the connection manager computes"},
    {"RETRIES", FI_PARAM_INT,
     "how often RDMA devices send again what is not acknowledged, before the connection is broken, "
     "0 to 7; the side that connects says it for both. Default: 7"},
    {"FORK_SAFE", FI_PARAM_BOOL,
     "1: ibv_fork_init(3) is called as the provider is loaded, which kernels before 5.12 need for "
     "programs that call fork(2); 0: it is not. Default: 0"},
    {"TRANSPORT", FI_PARAM_STRING,
     "what fi_getinfo() lists: verbs (RDMA devices), soft (software), auto (for each address a "
     "device first, if there is one, then software). Default: auto"},
    {"TRACE", FI_PARAM_STRING,
     "a file in which this process records what becomes of its connections and operations, for "
     "dat_trace(1); %p in it stands for the number of the process. Default: nothing is recorded"},
    {"TRACE_SIZE", FI_PARAM_INT,
     "MiB of that file; where it is full the newest records take the place of the oldest, 1 to "
     "4096. Default: 64"},
    {"TRACE_FRAMES", FI_PARAM_BOOL, "1: frames are recorded as well; 0: they are not. Default: 0"},
    {"IFACE", FI_PARAM_STRING,
     "network interfaces that fi_getinfo() lists: names and ranges of addresses, separated by "
     "commas; behind a ^ those that it does not list. Default: all that are up"},
};

constexpr std::string_view kPrefix = "FI_DAT_";

void define_parameters() {
    for (const Variable& each : kVariables) {
        fi_param_define(&g_provider, each.name, each.type, "%s", each.help);
    }
}

// How many characters have to be put in, left out or replaced to make one of the other.
std::size_t distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < other.size(); ++j) {
            const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

// What the user has set and nothing reads.
void name_unknown_variables() {
    for (char** each = environ; each && *each; ++each) {
        const std::string_view entry(*each);
        if (!entry.starts_with(kPrefix)) {
            continue;
        }
        const std::string_view whole = entry.substr(0, entry.find('='));
        const std::string_view name = whole.substr(kPrefix.size());
        const auto* const nearest =
            std::ranges::min_element(kVariables, {}, [name](const Variable& variable) {
                return distance(name, variable.name);
            });
        if (name == nearest->name) {
            continue;
        }
        // Where more than half of it is other, it is not what was meant.
        const std::string mend = 2 * distance(name, nearest->name) > name.size()
                                     ? "fi_info -g FI_DAT lists them"
                                     : std::string("the nearest is FI_DAT_") + nearest->name;
        DAT_WARN(core,
                 "%.*s in the environment is no variable of this provider, and is ignored; %s",
                 static_cast<int>(whole.size()), whole.data(), mend.c_str());
    }
}

void read_crc(engine::Crc& crc) {
    const char* text = value_of("CRC");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "auto") {
        crc = engine::Crc::automatic;
    } else if (word == "on") {
        crc = engine::Crc::on;
    } else if (word == "off") {
        crc = engine::Crc::off;
    } else {
        DAT_WARN(core, "FI_DAT_CRC=\"%s\" is ignored: it has to be auto, on or off", text);
    }
}

void read_switch(const char* name, bool& on) {
    const std::optional<std::string> text = text_of(name, FI_PARAM_BOOL);
    if (!text) {
        return;
    }
    const auto is_one_of = [&text](std::initializer_list<const char*> words) {
        return std::ranges::any_of(
            words, [&text](const char* word) { return strcasecmp(text->c_str(), word) == 0; });
    };
    // Those that fi_info(1) names for a variable of this type.
    if (is_one_of({"1", "on", "true", "yes"})) {
        on = true;
    } else if (is_one_of({"0", "off", "false", "no"})) {
        on = false;
    } else {
        DAT_WARN(core, "FI_DAT_%s=\"%s\" is ignored: it has to be 0 or 1", name, text->c_str());
    }
}

void read_shm_peers(engine::ShmPeers& peers) {
    const char* text = value_of("SHM_PEERS");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "user" || word == "any") {
        peers = word == "any" ? engine::ShmPeers::any : engine::ShmPeers::user;
    } else {
        DAT_WARN(core, "FI_DAT_SHM_PEERS=\"%s\" is ignored: it has to be user or any", text);
    }
}

void read_stats(engine::Stats& stats) {
    const char* text = value_of("STATS");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "1" || word == "off") {
        stats = word == "1" ? engine::Stats::summary : engine::Stats::off;
    } else {
        DAT_WARN(core, "FI_DAT_STATS=\"%s\" is ignored: it has to be 1 or off", text);
    }
}

void read_transport(Transport& transport) {
    const char* text = value_of("TRANSPORT");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "auto") {
        transport = Transport::automatic;
    } else if (word == "verbs") {
        transport = Transport::verbs;
    } else if (word == "soft") {
        transport = Transport::soft;
    } else {
        DAT_WARN(core, "FI_DAT_TRANSPORT=\"%s\" is ignored: it has to be verbs, soft or auto",
                 text);
    }
}

void read_close(bool& graceful) {
    const char* text = value_of("CLOSE");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "abrupt" || word == "graceful") {
        graceful = word == "graceful";
    } else {
        DAT_WARN(core, "FI_DAT_CLOSE=\"%s\" is ignored: it has to be abrupt or graceful", text);
    }
}

void read_ack_timeout(std::optional<std::uint8_t>& timeout) {
    constexpr std::uint8_t kUnset = UINT8_MAX;
    std::uint8_t value = kUnset;
    read_number("ACK_TIMEOUT", "doublings of 4.096 us", 0, value, 31);
    if (value != kUnset) {
        timeout = value;
    }
}

void read_fork_safe() {
    bool wanted = false;
    read_switch("FORK_SAFE", wanted);
    if (const int error = wanted ? verbs::make_fork_safe() : 0) {
        DAT_WARN(core, "FI_DAT_FORK_SAFE=1: ibv_fork_init(): %s%s", std::strerror(error),
                 error == EINVAL ? "; memory has been registered before: set it for whoever does "
                                   "that first, by RDMAV_FORK_SAFE=1"
                                 : "");
    }
}

// A program that runs with more rights than its user writes no file of the user's choice.
void read_trace(engine::Settings& settings) {
    const char* const text = value_of("TRACE");
    if (!text || !*text) {
        return;
    }
    if (getauxval(AT_SECURE) != 0) {
        DAT_WARN(core,
                 "FI_DAT_TRACE=\"%s\" is ignored: this program runs with more rights than "
                 "the user who started it",
                 text);
        return;
    }
    settings.trace = text;
    std::size_t mib = settings.trace_bytes >> 20;
    read_number("TRACE_SIZE", "MiB", 1, mib, 4096);
    settings.trace_bytes = mib << 20;
    read_switch("TRACE_FRAMES", settings.trace_frames);
}

void read_parameters(Parameters& p) {
    read_crc(p.settings.crc);
    read_close(p.graceful_close);
    read_switch("CHECK_BUFFERS", p.settings.check_buffers);
    read_switch("SHM", p.settings.shm);
    read_shm_peers(p.settings.shm_peers);
    read_stats(p.settings.stats);
    read_transport(p.transport);
    read_number("UNEXPECTED", "bytes", 0, p.settings.unexpected_bytes);
    read_number("RNR_TIMEOUT", "seconds", 1, p.settings.rnr_limit);
    read_number("END_GRACE", "milliseconds", 0, p.settings.end_grace);
    read_number("HANDSHAKE_TIMEOUT", "seconds", 1, p.settings.handshake_limit);
    read_number("KEEPALIVE", "seconds", 0, p.settings.keepalive);
    read_number("RDM_IDLE", "milliseconds", 0, p.settings.rdm_idle);
    read_number("RESOLVE_TIMEOUT", "milliseconds", 1, p.settings.resolve_limit);
    read_number("RETRIES", "times", 0, p.settings.retries, 7);
    read_ack_timeout(p.settings.ack_timeout);
    read_fork_safe();
    read_trace(p.settings);
    if (const char* text = value_of("IFACE")) {
        std::string bad;
        p.interfaces = InterfaceFilter(text, &bad);
        if (!bad.empty()) {
            DAT_WARN(core,
                     "FI_DAT_IFACE=\"%s\": %s fits nothing: a range of addresses is written as "
                     "10.0.0.0/8 or 2001:db8::/32",
                     text, bad.c_str());
        }
    }
}

} // namespace

const Parameters& parameters() { return mutable_parameters(); }

void end_without_grace() {
    if (!text_of("END_GRACE", FI_PARAM_INT)) {
        mutable_parameters().settings.end_grace = {};
    }
}

bool read_variables() {
    define_parameters();
    no_throw([] {
        name_unknown_variables();
        return 0;
    });
    return base::attempt([] { read_parameters(mutable_parameters()); });
}

fi_provider* initialize() {
    // The library that is running, which may be newer than the headers: a provider
    // below the version that a program asks for is skipped.
    g_provider.fi_version = fi_version();
    base::set_log_sink({log_enabled, log_write});
    if (!read_variables()) {
        DAT_WARN(core, "no memory to read the variables FI_DAT_*: the provider is not loaded");
        return nullptr;
    }
    return &g_provider;
}

} // namespace dat::ofi
