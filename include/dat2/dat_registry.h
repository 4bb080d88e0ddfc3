/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dat_registry.h - the registry of names, as a provider sees it.
 */
#ifndef _DAT_REGISTRY_H_
#define _DAT_REGISTRY_H_

#if defined(_UDAT_H_)
#include <dat2/udat_redirection.h>
#else
#error include <dat2/udat.h> first
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For providers: enters a name into the registry, and takes it out (REG-4). From any
 * thread.
 */
/*
 * Both structures are the caller's; `provider` has to stay. The name is there:
 * DAT_PROVIDER_ALREADY_REGISTERED. It is listed, and cannot be opened.
 */
extern DAT_RETURN DAT_API dat_registry_add_provider(IN const DAT_PROVIDER* provider,
                                                    IN const DAT_PROVIDER_INFO* provider_info);

/* Not there with that `provider`: DAT_INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_registry_remove_provider(IN const DAT_PROVIDER* provider,
                                                       IN const DAT_PROVIDER_INFO* provider_info);

/* REG-2, REG-3: what a provider's library exports. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"
typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(IN const DAT_PROVIDER_INFO*, IN const char*);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(IN const DAT_PROVIDER_INFO*);

/* Whether two names are ports of one adapter. */
typedef enum dat_ha_relationship {
    DAT_HA_FALSE = 0,
    DAT_HA_TRUE = 1,
    DAT_HA_UNKNOWN = 2,
    DAT_HA_CONFLICTING = 3,
    DAT_HA_EXTENSION_BASE = 4
} DAT_HA_RELATIONSHIP;

/*
 * Whether both names are of one device; looks for it as dat_ia_openv does. Either
 * cannot be opened: DAT_PROVIDER_NOT_FOUND.
 */
extern DAT_RETURN DAT_API dat_registry_providers_related(IN const DAT_NAME_PTR ia_name_a,
                                                         IN const DAT_NAME_PTR ia_name_b,
                                                         OUT DAT_HA_RELATIONSHIP* answer);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_REGISTRY_H_ */
