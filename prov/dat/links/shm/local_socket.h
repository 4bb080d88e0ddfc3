// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Local sockets between processes that do not trust each other: who is at the other end,
// and no descriptor comes in that was not asked for. Since Linux 6.16 a socket can refuse
// them (SO_PASSRIGHTS): their sender gets EPERM. Before that they wait in the socket, and
// whoever reads or closes it drops them, for as long as that may take: so what may hold
// some is left unread, and closed by a Reaper.
#ifndef DAT_LINKS_SHM_LOCAL_SOCKET_H
#define DAT_LINKS_SHM_LOCAL_SOCKET_H

#include "engine/settings.h"
#include "links/shm/hello.h"
#include "links/shm/reaper.h"
#include "net/socket.h"

#include <cstddef>
#include <span>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

namespace dat::shm {

// Who connected, or listened, at the other end, at that moment.
struct Credentials {
    pid_t process = 0; // 0: of a process namespace that is not seen here
    uid_t user = 0;
    friend bool operator==(const Credentials&, const Credentials&) = default;
};
// False: it cannot be said.
bool credentials_of(const net::Socket& socket, Credentials& who);

// Whether the other end is one of those that memory may be shared with.
bool is_permitted(const net::Socket& socket, engine::ShmPeers peers);
// Who is not is sent away from `where`, which is logged.
void say_sent_away(const net::Socket& socket, const char* where);
// Whether what he says is read, where a socket `refuses` descriptors, or may hold some: then it is
// of a process of this user, which could hold this one up in any case.
bool may_be_read(const Credentials& who, bool refuses);

// A socket that keeps messages apart, or a stream; nobody can pass it descriptors, where the kernel
// knows how. None: errno says why.
net::Socket local_socket(int type = SOCK_SEQPACKET);
// The address of that name, in the abstract name space.
socklen_t address_of(const Name& name, sockaddr_un& address);
// Such a socket that listens, of a name that nobody knows yet. None: errno says why.
net::Socket listen_locally(int type, int backlog, Name& name);
// What is accepted from such a socket is so too.
void accept_rights(const net::Socket& socket, bool on);
// Nobody can have passed it any.
bool refuses_rights(const net::Socket& socket);

// It has some. True as well where the kernel, before Linux 5.8, does not say.
bool holds_rights(const net::Socket& socket);

// One message without descriptors. -1 and errno, EPROTO where some have come with it, and
// stay where they are; 0: the end. `refuses`: refuses_rights(), if that is known.
ssize_t receive(const net::Socket& socket, std::span<std::byte> into);
ssize_t receive(const net::Socket& socket, std::span<std::byte> into, bool refuses);

// One message, and one descriptor if that came with it; as above, EPROTO where more have. Those
// are closed.
ssize_t receive_with(const net::Socket& socket, std::span<std::byte> into, net::Socket& fd,
                     Reaper& reaper);

// Sends it whole, with that descriptor, or without one for -1. False: errno says why.
bool send_with(const net::Socket& socket, std::span<const std::byte> message, int fd);

// Nothing has been said by the other end, and it has not gone.
bool is_silent(const net::Socket& socket);

// Closes it, or has it closed.
void let_go(net::Socket socket, Reaper& reaper);
// The same for one whose other end was let in: seldom it holds anything.
void hang_up(net::Socket socket, Reaper& reaper);

} // namespace dat::shm

#endif
