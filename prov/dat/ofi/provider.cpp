// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See provider.h. May include: ofi.
#include "ofi/provider.h"

#include "config.h"

#include "base/log.h"
#include "ofi/fabric.h"
#include "ofi/info.h"

#include <rdma/providers/fi_log.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace dat::ofi {

const std::uint32_t kProviderVersion = FI_VERSION(DAT_VERSION_MAJOR, DAT_VERSION_MINOR);

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

void log_write(base::LogLevel level, base::LogArea area, const char* line) {
    const int saved_errno = errno;
    fi_log(&g_provider, log_level(level), log_subsystem(area), kProviderName, 0, "%s\n", line);
    errno = saved_errno;
}

// The value of a variable as it was written; nullptr where it is not set.
const char* value_of(const char* name) {
    char* value = nullptr;
    return fi_param_get_str(&g_provider, name, &value) == 0 ? value : nullptr;
}

// A whole number from `least` up; `value` is left where the text is anything else.
template <class Number>
void read_number(const char* name, const char* unit, std::uint64_t least, Number& value) {
    const char* text = value_of(name);
    if (!text) {
        return;
    }
    char* end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    const bool digits = *text >= '0' && *text <= '9' && *end == '\0';
    const auto most = static_cast<unsigned long long>(std::numeric_limits<int>::max());
    if (!digits || errno != 0 || number < least || number > most) {
        DAT_WARN(core,
                 "FI_DAT_%s=\"%s\" is ignored: it has to be a whole number of %s from %llu to %llu",
                 name, text, unit, static_cast<unsigned long long>(least), most);
        return;
    }
    value = Number(static_cast<unsigned>(number));
}

void define_parameters() {
    fi_provider* p = &g_provider;
    fi_param_define(p, "CRC", FI_PARAM_STRING,
                    "CRC32C of iWARP frames: auto (asked for except on one host), on, off (not "
                    "asked for; always granted to a peer that asks). Default: auto");
    fi_param_define(p, "SHM", FI_PARAM_STRING,
                    "1: peers of one host use shared memory; 0: they use TCP. Default: 1");
    fi_param_define(p, "CLOSE", FI_PARAM_STRING,
                    "what fi_shutdown() does: abrupt (outstanding operations are flushed) or "
                    "graceful (requests are carried out first). Default: abrupt");
    fi_param_define(p, "UNEXPECTED", FI_PARAM_STRING,
                    "bytes that a connection stages for messages without a posted receive "
                    "before it stops reading. Default: 65536");
    fi_param_define(p, "RNR_TIMEOUT", FI_PARAM_STRING,
                    "seconds that an ending connection waits for a receive to be posted. "
                    "Default: 10");
    fi_param_define(p, "HANDSHAKE_TIMEOUT", FI_PARAM_STRING,
                    "seconds that the passive side gives a connection's handshake. Default: 10");
    fi_param_define(p, "KEEPALIVE", FI_PARAM_STRING,
                    "seconds after which a silent peer is dead; 0: never. Default: 20");
    fi_param_define(p, "TRANSPORT", FI_PARAM_STRING,
                    "what fi_getinfo() lists: verbs (RDMA devices), soft (software), auto (for "
                    "each address a device first, if there is one, then software). Default: auto");
    fi_param_define(p, "IFACE", FI_PARAM_STRING,
                    "name of the only network interface that fi_getinfo() lists. Default: all "
                    "that are up");
}

void read_crc(soft::Crc& crc) {
    const char* text = value_of("CRC");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "auto") {
        crc = soft::Crc::automatic;
    } else if (word == "on") {
        crc = soft::Crc::on;
    } else if (word == "off") {
        crc = soft::Crc::off;
    } else {
        DAT_WARN(core, "FI_DAT_CRC=\"%s\" is ignored: it has to be auto, on or off", text);
    }
}

void read_shm(bool& shm) {
    const char* text = value_of("SHM");
    if (!text) {
        return;
    }
    const std::string_view word(text);
    if (word == "0" || word == "1") {
        shm = word == "1";
    } else {
        DAT_WARN(core, "FI_DAT_SHM=\"%s\" is ignored: it has to be 0 or 1", text);
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

void read_parameters(Parameters& p) {
    read_crc(p.settings.crc);
    read_close(p.graceful_close);
    read_shm(p.settings.shm);
    read_transport(p.transport);
    read_number("UNEXPECTED", "bytes", 0, p.settings.unexpected_bytes);
    read_number("RNR_TIMEOUT", "seconds", 1, p.settings.rnr_limit);
    read_number("HANDSHAKE_TIMEOUT", "seconds", 1, p.settings.handshake_limit);
    read_number("KEEPALIVE", "seconds", 0, p.settings.keepalive);
    if (const char* text = value_of("IFACE")) {
        p.interface = text;
    }
}

} // namespace

const Parameters& parameters() { return mutable_parameters(); }

fi_provider* initialize() {
    // The library that is running, which may be newer than the headers: a provider
    // below the version that a program asks for is skipped.
    g_provider.fi_version = fi_version();
    base::set_log_sink({log_enabled, log_write});
    define_parameters();
    read_parameters(mutable_parameters());
    return &g_provider;
}

} // namespace dat::ofi
