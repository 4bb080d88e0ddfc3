// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One process of rxm_test.sh: an FI_EP_RDM endpoint of the provider in DAT_RDM_PROVIDER
// ("dat;ofi_rxm"), driven by lines on its standard input, each answered by one line.
//
//   rxm_node [PORT]      without one the system chooses
//
//   name                 ok PORT        where it listens
//   know PORT            ok INDEX
//   recv COUNT SIZE      ok             posts receives from anybody
//   send INDEX TAG SIZE  ok             posts a send with pattern(TAG, SIZE)
//   finish               results OK BAD when all that was posted has completed
//   sent                 results OK BAD when all sends have completed
//   taken                ok COUNT       receives that completed right so far
//   quit
//
// A call that fails is answered by "failed RESULT".
#include "lines.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <netinet/in.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::chrono::seconds kLimit{80};

std::uint8_t byte_of(std::uint64_t tag, std::size_t i) {
    return static_cast<std::uint8_t>(tag * 31 + i * 7 + (i >> 8));
}

struct Op {
    fi_context context{}; // first: libfabric's to use, and what a completion names
    bool send = false;
    bool done = false;
    bool good = false;
    std::vector<std::uint8_t> bytes;
};

void must(int result, const char* call) {
    if (result != 0) {
        std::printf("broken %s: %s\n", call, fi_strerror(-result));
        std::fflush(stdout);
        std::_Exit(1);
    }
}

class Node {
  public:
    explicit Node(const char* port);
    void close();
    void pump();
    std::string answer(const std::string& line);

  private:
    std::string name();
    std::string know(const std::string& port);
    std::string post(const std::function<ssize_t()>& call);
    std::string results(bool sends_only);
    void complete(Op& op, const fi_cq_tagged_entry& entry);

    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* av_ = nullptr;
    fid_cq* cq_ = nullptr;
    fid_ep* ep_ = nullptr;
    std::deque<Op> ops_; // since the last `finish`
    int taken_ = 0;
};

Node::Node(const char* port) {
    fi_info* hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    const char* named = std::getenv("DAT_RDM_PROVIDER");
    const char* const provider = named ? named : "dat;ofi_rxm";
    hints->fabric_attr->prov_name = strdup(provider);
    fi_info* list = nullptr;
    must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, FI_SOURCE, hints, &list), "fi_getinfo");
    fi_freeinfo(hints);
    for (fi_info* each = list; each && !info_; each = each->next)
        if (std::strcmp(each->fabric_attr->prov_name, provider) == 0)
            info_ = fi_dupinfo(each);
    fi_freeinfo(list);
    must(info_ ? 0 : -FI_ENODATA, "fi_getinfo");
    must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
    fi_av_attr av{};
    av.type = FI_AV_TABLE;
    must(fi_av_open(domain_, &av, &av_, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    must(fi_cq_open(domain_, &cq, &cq_, nullptr), "fi_cq_open");
    must(fi_endpoint(domain_, info_, &ep_, nullptr), "fi_endpoint");
    must(fi_ep_bind(ep_, &av_->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(ep_, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_enable(ep_), "fi_enable");
}

void Node::close() {
    for (fid_t object : {&ep_->fid, &cq_->fid, &av_->fid, &domain_->fid, &fabric_->fid})
        must(fi_close(object), "fi_close");
    fi_freeinfo(info_);
}

std::string Node::name() {
    sockaddr_in address{};
    std::size_t size = sizeof address;
    must(fi_getname(&ep_->fid, &address, &size), "fi_getname");
    return "ok " + std::to_string(ntohs(address.sin_port));
}

std::string Node::know(const std::string& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    const int got = fi_av_insert(av_, &address, 1, &index, 0, nullptr);
    return got == 1 ? "ok " + std::to_string(index) : "failed " + std::to_string(got);
}

void Node::complete(Op& op, const fi_cq_tagged_entry& entry) {
    op.good = !op.done;
    op.done = true;
    if (op.send)
        return;
    for (std::size_t i = 0; i < entry.len && op.good; ++i)
        op.good = op.bytes[i] == byte_of(entry.tag, i);
    taken_ += op.good;
}

void Node::pump() {
    fi_cq_tagged_entry entry{};
    for (ssize_t got; (got = fi_cq_read(cq_, &entry, 1)) != -FI_EAGAIN;) {
        if (got == 1) {
            complete(*static_cast<Op*>(entry.op_context), entry);
            continue;
        }
        fi_cq_err_entry error{};
        if (fi_cq_readerr(cq_, &error, 0) == 1 && error.op_context)
            static_cast<Op*>(error.op_context)->done = true;
    }
}

std::string Node::post(const std::function<ssize_t()>& call) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    ssize_t result = 0;
    while ((result = call()) == -FI_EAGAIN && std::chrono::steady_clock::now() < end)
        pump();
    return result == 0 ? "ok" : "failed " + std::to_string(result);
}

std::string Node::results(bool sends_only) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    int good = 0;
    int bad = 0;
    for (Op& op : ops_) {
        if (sends_only && !op.send)
            continue;
        while (!op.done) {
            if (std::chrono::steady_clock::now() > end)
                return "unfinished";
            pump();
        }
        good += op.good;
        bad += !op.good;
    }
    if (!sends_only)
        ops_.clear();
    return "results " + std::to_string(good) + ' ' + std::to_string(bad);
}

std::string Node::answer(const std::string& line) {
    std::istringstream rest(line);
    std::string verb;
    std::string word;
    rest >> verb;
    if (verb == "name")
        return name();
    if (verb == "know") {
        rest >> word;
        return know(word);
    }
    if (verb == "recv") {
        std::size_t count = 0;
        std::size_t size = 0;
        rest >> count >> size;
        while (count-- > 0) {
            Op& op = ops_.emplace_back();
            op.bytes.resize(size);
            const std::string said = post([&] {
                return fi_trecv(ep_, op.bytes.data(), size, nullptr, FI_ADDR_UNSPEC, 0, ~0ULL,
                                &op.context);
            });
            if (said != "ok")
                return said;
        }
        return "ok";
    }
    if (verb == "send") {
        fi_addr_t to = 0;
        std::uint64_t tag = 0;
        std::size_t size = 0;
        rest >> to >> tag >> size;
        Op& op = ops_.emplace_back();
        op.send = true;
        op.bytes.resize(size);
        for (std::size_t i = 0; i < size; ++i)
            op.bytes[i] = byte_of(tag, i);
        return post(
            [&] { return fi_tsend(ep_, op.bytes.data(), size, nullptr, to, tag, &op.context); });
    }
    if (verb == "finish" || verb == "sent")
        return results(verb == "sent");
    if (verb == "taken")
        return "ok " + std::to_string(taken_);
    return "what?";
}

} // namespace

int main(int argc, char** argv) {
    Node node(argc > 1 ? argv[1] : nullptr);
    dat::test::serve_lines([&](const std::string& line) { return node.answer(line); },
                           [&] { node.pump(); });
    node.close();
    std::fflush(stdout);
    // What libfabric's layers keep until a process ends is not looked at.
    std::_Exit(0);
}
