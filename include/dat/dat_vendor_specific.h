/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dat_vendor_specific.h - there are no extensions of vendors here.
 */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

/* Kept since programs include it. */

#endif /* _DAT_VENDOR_SPECIFIC_H_ */
