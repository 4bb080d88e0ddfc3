/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dat_platform_specific.h - what the types of uDAPL are made of on Linux.
 *
 * An interface adapter is named by a socket address: struct sockaddr_in or
 * sockaddr_in6, passed as DAT_IA_ADDRESS_PTR. Its port is not looked at.
 */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Bytes; buffers that begin at a multiple of it are moved fastest. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

/* Direction of a parameter, for the reader. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

#define DAT_API
#define DAT_EXPORT extern

typedef u_int32_t DAT_UINT32;
typedef u_int64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef void* DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;

typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;
#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
