// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What programs of libfabric that attack one process have: a domain, its queues and a listener,
// with FI_THREAD_SAFE. Included by a program's one source.
#ifndef DAT_TEST_ATTACK_OFI_SCENE_H
#define DAT_TEST_ATTACK_OFI_SCENE_H

#include "plain.h"

#include <cstddef>
#include <utility>

namespace dat::test {

class OfiScene {
  public:
    explicit OfiScene(const Transport& transport) : OfiScene(info_of(transport)) {}
    explicit OfiScene(Info info);

  protected:
    static Info info_of(const Transport& transport);
    // An endpoint that is enabled; nullptr where it cannot be made.
    fid_ep* open(fi_info* info);
    // 0, or -FI_E*.
    int begin_connect(fid_ep* ep);

    Info info_;
    Fid<fid_fabric> fabric_;
    Fid<fid_eq> eq_;
    Fid<fid_domain> domain_;
    Fid<fid_cq> cq_;
    Fid<fid_cntr> counter_;
    Fid<fid_pep> pep_;
    Fid<fid_ep> active_;
    Fid<fid_ep> passive_;
};

inline Info OfiScene::info_of(const Transport& transport) {
    SideOptions options;
    options.threading = FI_THREAD_SAFE;
    const Info hints = hints_for(transport, options);
    fi_info* found = nullptr;
    DAT_MUST(fi_getinfo(FI_VERSION(1, 17), transport.address, "0", FI_SOURCE, hints.get(), &found));
    return Info(found);
}

inline OfiScene::OfiScene(Info info) : info_(std::move(info)) {
    DAT_MUST(fi_fabric(info_->fabric_attr, fabric_.out(), nullptr));
    DAT_MUST(fi_domain(fabric_.get(), info_.get(), domain_.out(), nullptr));
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_eq_open(fabric_.get(), &eq_attr, eq_.out(), nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    cq_attr.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_cq_open(domain_.get(), &cq_attr, cq_.out(), nullptr));
    fi_cntr_attr cntr_attr{};
    cntr_attr.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_cntr_open(domain_.get(), &cntr_attr, counter_.out(), nullptr));
    DAT_MUST(fi_passive_ep(fabric_.get(), info_.get(), pep_.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep_.get(), &eq_->fid, 0));
    DAT_MUST(fi_listen(pep_.get()));
}

inline fid_ep* OfiScene::open(fi_info* info) {
    fid_ep* ep = nullptr;
    if (fi_endpoint(domain_.get(), info, &ep, nullptr) != 0)
        return nullptr;
    if (fi_ep_bind(ep, &eq_->fid, 0) != 0 ||
        fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV) != 0 ||
        fi_ep_bind(ep, &counter_->fid, FI_SEND) != 0 || fi_enable(ep) != 0) {
        fi_close(&ep->fid);
        return nullptr;
    }
    return ep;
}

inline int OfiScene::begin_connect(fid_ep* ep) {
    Bytes address(128);
    std::size_t size = address.size();
    if (const int rc = fi_getname(&pep_->fid, address.data(), &size))
        return rc;
    return fi_connect(ep, address.data(), nullptr, 0);
}

} // namespace dat::test

#endif
