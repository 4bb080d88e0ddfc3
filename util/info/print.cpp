// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The entries in words, and as JSON. See entry.h.
#include "command/json.h"
#include "command/text.h"
#include "info/entry.h"

namespace dat::info {
namespace {

using command::Json;

std::string number(std::size_t value) { return std::to_string(value); }

std::string counted(std::size_t value, const char* one, const char* more) {
    return number(value) + " " + (value == 1 ? one : more);
}

std::string transport(const Entry& entry) {
    if (entry.device) {
        return "the RDMA device " + entry.domain + " (" + entry.protocol + ")";
    }
    return std::string("software: iWARP over TCP") +
           (entry.shm ? "; memory that two processes of this host share" : "");
}

// Whom it can talk to: sentences.
std::vector<std::string> peers(const Entry& entry) {
    std::vector<std::string> all;
    if (!entry.device) {
        all.push_back(
            !entry.shm ? "on this host: every process, over TCP (FI_DAT_SHM=0)"
            : entry.shm_any
                ? "on this host: every process with FI_DAT_SHM_PEERS=any, through memory; "
                  "others over TCP"
                : "on this host: processes of the same user through memory, others over "
                  "TCP");
    }
    if (entry.loopback) {
        all.emplace_back("on other hosts: none, it is the loopback interface");
        return all;
    }
    if (entry.device) {
        all.push_back("on this and other hosts: devices of the same kind (" + entry.protocol + ")" +
                      (entry.protocol == "iWARP" ? ", and dat's software transport" : "") +
                      " that its network reaches");
    } else {
        all.emplace_back("on other hosts: dat, and whatever speaks iWARP (RFC 5040, 5041, 5044): "
                         "iWARP adapters, Linux's siw");
    }
    if (entry.inside) {
        all.emplace_back(
            "it is a bridge, container or tunnel: its network may not leave this host");
    }
    return all;
}

std::string interface_text(const Entry& entry) {
    std::string text = entry.interface + ", network " + entry.network;
    text += entry.default_route ? ", with a default route" : "";
    text += entry.speed > 0 ? ", " + std::to_string(entry.speed) + " Mbit/s" : "";
    return text + (entry.carrier ? "" : ", without a carrier");
}

std::string messages(const Entry& entry) {
    return "up to " + number(entry.message) + " bytes from " +
           counted(entry.segments, "segment", "segments") + "; " + number(entry.inject) +
           " bytes can be injected";
}

std::string queues(const Entry& entry) {
    return number(entry.requests) + " requests and " + number(entry.receives) +
           " receives outstanding by default, up to " + number(entry.most_requests) + " of each" +
           (entry.shared_receives ? "; shared receive contexts" : "") +
           (entry.multi_recv ? "; FI_MULTI_RECV" : "");
}

std::string rdma(const Entry& entry) {
    if (!entry.rma) {
        return "none";
    }
    return "reads and writes" + std::string(entry.atomics ? ", atomics of 8 bytes" : "") + ", " +
           counted(entry.rma_segments, "remote segment", "remote segments") + "; " + "up to " +
           number(entry.reads_out) + " reads on the way, and " + number(entry.reads_in) +
           " of the peer" + (entry.windows ? "; memory windows" : "");
}

std::string data(const Entry& entry) {
    return number(entry.private_data) + " bytes of private data with a connect; " +
           (entry.cq_data > 0 ? number(entry.cq_data) + " bytes of" : "no") + " remote CQ data";
}

std::string memory(const Entry& entry) {
    return entry.registers_local
               ? "every buffer has to be registered"
               : "only what the peer reads and writes by RDMA has to be registered";
}

} // namespace

std::string text_of(const std::vector<Entry>& entries) {
    const command::Paint paint(stdout);
    const std::size_t columns = command::columns_of(stdout);
    std::string text;
    for (const Entry& entry : entries) {
        text += (text.empty() ? "" : "\n") +
                paint(command::Colour::bold, entry.domain + "  " + entry.address) + "\n";
        const auto add = [&](std::string name, const std::string& words) {
            name.resize(12, ' ');
            text += command::wrapped(words, "  " + name, std::string(14, ' '), columns);
        };
        add("transport", transport(entry));
        add("interface", interface_text(entry));
        const char* name = "peers";
        for (const std::string& line : peers(entry)) {
            add(name, line);
            name = "";
        }
        add("messages", messages(entry));
        add("queues", queues(entry));
        add("RDMA", rdma(entry));
        add("data", data(entry));
        add("memory", memory(entry));
    }
    return text;
}

std::string json_of(const std::vector<Entry>& entries) {
    Json json = command::json_head("dat_info");
    json["entries"] = Json::array();
    for (const Entry& entry : entries) {
        json["entries"].push_back({{"domain", entry.domain},
                                   {"address", entry.address},
                                   {"network", entry.network},
                                   {"transport", entry.device ? "device" : "software"},
                                   {"protocol", entry.protocol},
                                   {"interface",
                                    {{"name", entry.interface},
                                     {"loopback", entry.loopback},
                                     {"carrier", entry.carrier},
                                     {"default_route", entry.default_route},
                                     {"inside", entry.inside},
                                     {"speed_mbit", entry.speed}}},
                                   {"peers", peers(entry)},
                                   {"shared_memory", !entry.shm      ? "off"
                                                     : entry.shm_any ? "any"
                                                                     : "user"},
                                   {"rma", entry.rma},
                                   {"atomics", entry.atomics},
                                   {"multi_recv", entry.multi_recv},
                                   {"shared_receives", entry.shared_receives},
                                   {"windows", entry.windows},
                                   {"limits",
                                    {{"message", entry.message},
                                     {"inject", entry.inject},
                                     {"segments", entry.segments},
                                     {"remote_segments", entry.rma_segments},
                                     {"read_segments", entry.read_segments},
                                     {"requests", entry.requests},
                                     {"receives", entry.receives},
                                     {"most_requests", entry.most_requests},
                                     {"private_data", entry.private_data},
                                     {"cq_data", entry.cq_data},
                                     {"reads_in", entry.reads_in},
                                     {"reads_out", entry.reads_out}}},
                                   {"registers_local", entry.registers_local}});
    }
    return command::json_text(json);
}

} // namespace dat::info
