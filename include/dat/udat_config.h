/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udat_config.h - the version of the API that a program is compiled for.
 */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/* What dat_ia_open() asks for: registry entries that say `nonthreadsafe` (U-60). */
#define DAT_THREADSAFE DAT_FALSE

#endif /* _UDAT_CONFIG_H_ */
