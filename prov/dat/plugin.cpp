// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What libfabric's core finds in libdat-fi.so.
#include "ofi/provider.h"

extern "C" FI_EXT_INI { return dat::ofi::initialize(); }
