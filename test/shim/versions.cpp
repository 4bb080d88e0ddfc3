// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Both versions of uDAPL: a process of one talks to a process of the other, whoever asks, and
// one process that loads both by way of two plugins keeps them apart.
// Usage: versions [FOLDER OF THE PLUGINS]
#include "plugin.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

std::string g_folder;
int g_failed = 0;

struct Plugin {
    decltype(&serve) serve_one;
    decltype(&visit) visit_one;
    decltype(&version) own_version;
};

template <class Function> void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function) {
        std::printf("FAILED: %s\n", dlerror());
        std::exit(1);
    }
}

// As plugins often are: with all of their symbols offered to those that come after.
Plugin load(unsigned major) {
    const std::string path = g_folder + (major == 1 ? "/plugin12.so" : "/plugin20.so");
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        std::printf("FAILED: %s\n", dlerror());
        std::exit(1);
    }
    Plugin plugin;
    find(library, "serve", plugin.serve_one);
    find(library, "visit", plugin.visit_one);
    find(library, "version", plugin.own_version);
    return plugin;
}

void judge(const char* what, unsigned server, unsigned visitor, int served, int visited) {
    const bool good = served == 0 && visited == 0;
    std::printf("%s: %s, a server of %u, a visitor of %u\n", good ? "passed" : "FAILED", what,
                server, visitor);
    if (!good) {
        std::printf("    line of plugin.cpp: server %d, visitor %d\n", served, visited);
        ++g_failed;
    }
    std::fflush(stdout);
}

// What a process ended with; a line number does not fit into its status.
int told(pid_t process, int from) {
    int line = -1;
    if (read(from, &line, sizeof line) != sizeof line) {
        line = -1;
    }
    int status = 0;
    waitpid(process, &status, 0);
    return status == 0 ? line : -1;
}

// Neither knows the library of the other.
void between_processes(unsigned server, unsigned visitor) {
    std::array<int, 2> port, served, visited;
    if (pipe(port.data()) != 0 || pipe(served.data()) != 0 || pipe(visited.data()) != 0) {
        std::exit(1);
    }
    const pid_t one = fork();
    if (one == 0) {
        alarm(90);
        const int line = load(server).serve_one(port[1]);
        std::exit(write(served[1], &line, sizeof line) == sizeof line ? 0 : 1);
    }
    const pid_t two = fork();
    if (two == 0) {
        alarm(90);
        const int line = load(visitor).visit_one(port[0]);
        std::exit(write(visited[1], &line, sizeof line) == sizeof line ? 0 : 1);
    }
    for (const auto& end : {port[0], port[1], served[1], visited[1]}) {
        close(end);
    }
    const int of_server = told(one, served[0]);
    judge("two processes", server, visitor, of_server, told(two, visited[0]));
    close(served[0]);
    close(visited[0]);
}

void within_a_process(unsigned server, unsigned visitor) {
    std::array<int, 2> port;
    if (pipe(port.data()) != 0) {
        std::exit(1);
    }
    const Plugin one = load(server);
    const Plugin two = load(visitor);
    int served = -1;
    std::thread thread([&] { served = one.serve_one(port[1]); });
    const int visited = two.visit_one(port[0]);
    thread.join();
    judge("one process with both", server, visitor, served, visited);
    unsigned of_one = 0;
    unsigned of_two = 0;
    if (one.own_version(&of_one) != 0 || two.own_version(&of_two) != 0 || of_one != server ||
        of_two != visitor) {
        std::printf("FAILED: the plugin of %u got %u, that of %u got %u\n", server, of_one, visitor,
                    of_two);
        ++g_failed;
    }
    close(port[0]);
    close(port[1]);
}

} // namespace

int main(int argc, char** argv) {
    const char* const build = std::getenv("DAT_BUILDDIR");
    g_folder = argc > 1 ? argv[1] : std::string(build ? build : ".") + "/.libs";
    for (const unsigned major : {1U, 2U}) {
        between_processes(major, 3 - major);
        between_processes(major, major);
    }
    alarm(100);
    within_a_process(1, 2);
    within_a_process(2, 1);
    std::printf("%d failed\n", g_failed);
    return g_failed == 0 ? 0 : 1;
}
