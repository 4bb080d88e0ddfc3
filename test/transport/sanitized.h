// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Whether a sanitizer runs: it keeps what is freed for a while, and takes its time.
#ifndef DAT_TEST_TRANSPORT_SANITIZED_H
#define DAT_TEST_TRANSPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DAT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DAT_SANITIZED 1
#endif
#endif

namespace dat::test {

#ifdef DAT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

} // namespace dat::test

#endif
