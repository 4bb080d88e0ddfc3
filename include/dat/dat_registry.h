/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dat_registry.h - the registry of names, as a provider sees it.
 */
#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#if defined(_UDAT_H_)
#include <dat/udat_redirection.h>
#else
#error include <dat/udat.h> first
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* For providers: enters a name into the registry, and takes it out (REG-4). */
extern DAT_RETURN DAT_API dat_registry_add_provider(IN DAT_PROVIDER* provider,
                                                    IN const DAT_PROVIDER_INFO* provider_info);
extern DAT_RETURN DAT_API dat_registry_remove_provider(IN DAT_PROVIDER* provider,
                                                       IN const DAT_PROVIDER_INFO* provider_info);

/* REG-2, REG-3: what a provider's library exports. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"
typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(IN const DAT_PROVIDER_INFO*, IN const char*);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(IN const DAT_PROVIDER_INFO*);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
