# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What is to be reached, as a Markdown table. Reads lines "WHAT<tab>OVER<tab>FIGURE<tab>
# PROCESSORS" in the order in which they were measured: the n-th of one way belongs to
# the n-th of another. Prints medians, and the median of the quotients of a round.

function median(list, n,    i, j, x, sorted) {
    for (i = 1; i <= n; i++) {
        x = list[i]
        for (j = i - 1; j >= 1 && sorted[j] > x; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = x
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

# The n-th figure; of UCX the better of its two ways to send.
function figure(what, over, n, less,    tag, am) {
    if (over !~ /^ucx/) return value[what, over, n]
    tag = value[what, over " tag", n]
    am = value[what, over " ucp_am", n]
    if (tag == "" || am == "") return tag am
    return (less ? tag < am : tag > am) ? tag : am
}

function shown(x) { return x < 10 ? sprintf("%.3f", x) : x < 1000 ? sprintf("%.1f", x) : sprintf("%.0f", x) }

# A row. The target is of the ratio of `own` to `other`.
function row(title, unit, what, own, other, name, less, target,    n, m, a, b, mine, its, both, ratio, met) {
    for (n = 1; (a = figure(what, own, n, less)) != "" && (b = figure(what, other, n, less)) != ""; n++) {
        mine[n] = a
        its[n] = b
        both[n] = a / b
    }
    if (--n < 1) {
        printf "| %s | %s | %s %s | not measured | |\n", title, name, less ? "at most" : "at least", target
        return
    }
    ratio = median(both, n)
    met = less ? ratio <= target + 0 : ratio >= target + 0
    printf "| %s | %s | %s %s | %s; %s %s | %.2f%s |\n", title, name, less ? "at most" : "at least", target,
        shown(median(mine, n)), shown(median(its, n)), unit, ratio, met ? "" : ", missed"
}

# The processors that were busy while a way was measured.
function busy(title, what, own, other, name,    n, mine, its) {
    for (n = 1; (what, own, n) in value && (what, other, n) in value; n++) {
        mine[n] = processors[what, own, n]
        its[n] = processors[what, other, n]
    }
    if (--n >= 1)
        printf "| %s | %s | no core burnt | %.2f; %.2f | |\n", title, name, median(mine, n), median(its, n)
}

{
    n = ++count[$1, $2]
    value[$1, $2, n] = $3
    processors[$1, $2, n] = $4
}

END {
    tcp_link = "dat@FI_DAT_SHM=0"
    print "| what | against | target: ratio | measured: dat; the other | ratio |"
    print "| --- | --- | --- | --- | --- |"
    row("same host, 64 B half round trip", "us", "latency 64", "dat", "ucx", "UCX posix", 1, "1.00")
    row("same host, 4 KiB half round trip", "us", "latency 4096", "dat", "ucx", "UCX posix,cma", 1, "0.80")
    row("same host, 64 KiB half round trip", "us", "latency 65536", "dat", "ucx", "UCX posix,cma", 1, "0.80")
    row("same host, 1 MiB bandwidth", "MB/s", "bandwidth 1048576", "dat", "memory", "process_vm_readv", 0, "0.97")
    row("same host, 1 MiB bandwidth", "MB/s", "bandwidth 1048576", "dat", "ucx", "UCX posix,cma", 0, "1.00")
    row("same host, 64 B message rate", "million/s", "rate 64", "dat", "ucx", "UCX posix", 0, "1.00")
    row("TCP, 64 B half round trip", "us", "latency 64", tcp_link, "socket", "raw socket", 1, "1.05")
    row("TCP, 64 B half round trip", "us", "latency 64", tcp_link, "tcp", "libfabric tcp", 1, "1.00")
    row("TCP, 1 MiB bandwidth", "MB/s", "bandwidth 1048576", tcp_link, "ucx-tcp", "UCX tcp", 0, "1.00")
    row("TCP, 1 MiB bandwidth", "MB/s", "bandwidth 1048576", tcp_link, "tcp", "libfabric tcp", 0, "1.00")
    row("TCP, 64 B message rate", "million/s", "rate 64", tcp_link, "tcp", "libfabric tcp", 0, "10.00")
    row("same host, connections", "a second", "connect 64", "dat", "tcp", "libfabric tcp", 0, "2.00")
    row("TCP, connections", "a second", "connect 64", tcp_link, "tcp", "libfabric tcp", 0, "2.00")
    row("same host, 64 B waiting (fi_cq_sread)", "us", "waiting latency 64", "dat", "tcp", "libfabric tcp", 1, "1.00")
    row("TCP, 64 B waiting (fi_cq_sread)", "us", "waiting latency 64", tcp_link, "tcp", "libfabric tcp", 1, "1.00")
    busy("same host, processors busy while waiting", "waiting latency 64", "dat", "tcp", "libfabric tcp")
    busy("TCP, processors busy while waiting", "waiting latency 64", tcp_link, "tcp", "libfabric tcp")
    row("TCP, instructions a message, one at a time", "", "instructions 64", tcp_link, "tcp", "libfabric tcp", 1, "1.00")
    row("same host, instructions a message, one at a time", "", "instructions 64", "dat", "shm", "libfabric shm", 1, "1.00")
}
