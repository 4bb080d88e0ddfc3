/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udat_vendor_specific.h - there are no extensions of vendors here.
 */
#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#include <dat/dat_vendor_specific.h>

/* Kept since programs include it. */

#endif /* _UDAT_VENDOR_SPECIFIC_H_ */
