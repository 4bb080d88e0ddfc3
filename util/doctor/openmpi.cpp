// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Open MPI over the endpoint of `dat`'s own.
#include "doctor/facts.h"
#include "doctor/looks.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <sstream>
#include <unistd.h>

namespace dat::doctor {
namespace {

// What a command prints; empty where it cannot be run.
std::string output_of(const char* command) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command, "re"), pclose);
    std::string text;
    std::array<char, 4096> part;
    while (pipe && std::fgets(part.data(), part.size(), pipe.get())) {
        text += part.data();
    }
    return text;
}

const std::string& ompi_info() {
    static const std::string text =
        output_of("ompi_info --parsable --param mtl ofi --level 9 2>/dev/null; "
                  "ompi_info --parsable --path sysconfdir 2>/dev/null; "
                  "ompi_info --parsable 2>/dev/null");
    return text;
}

// What ompi_info says behind "KEY:".
std::string ompi_says(const std::string& key) {
    std::istringstream lines(ompi_info());
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(key + ":")) {
            return line.substr(key.size() + 1);
        }
    }
    return {};
}

// A parameter that keeps the part `ofi` of `mtl`, or the part `cm` of `pml`, from being taken.
bool keeps_out(const std::string& name, const std::string& value) {
    const auto lacks = [&](const std::string& part) {
        const bool excluded = value.starts_with('^');
        std::istringstream parts(value.substr(excluded ? 1 : 0));
        bool named = false;
        for (std::string each; std::getline(parts, each, ',');) {
            named = named || each == part;
        }
        return !value.empty() && named == excluded;
    };
    return (name == "mtl" && lacks("ofi")) || (name == "pml" && lacks("cm"));
}

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string::npos
               ? ""
               : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::string passed_on(const char* name) {
    return variable(name).empty() ? "" : std::string(" -x ") + name;
}

// The whole line, with the variables that are set here. libfabric lists dat;ofi_rxm first, which
// Open MPI would take for dat.
std::string mpirun_line() {
    return "mpirun -np 2 --mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include dat "
           "-x 'FI_PROVIDER=^ofi_rxm'" +
           passed_on("FI_PROVIDER_PATH") + " PROGRAM";
}

} // namespace

Finding look_mpi_command(Facts& facts) {
    if (!facts.options.mpi) {
        return none("not asked for (--mpi)");
    }
    if (ompi_info().empty()) {
        return failure("Open MPI is not found: there is no ompi_info in PATH", "",
                       "install it (Debian: openmpi-bin), or add its folder bin to PATH");
    }
    if (ompi_says("mca:mtl:ofi:version").empty()) {
        return failure("Open MPI has no part mtl ofi",
                       "it was built without libfabric (ompi_info: no mca:mtl:ofi)",
                       "install one that was built with it (./configure --with-ofi)");
    }
    return good("Open MPI " + ompi_says("ompi:version:full") + ": " + mpirun_line());
}

Finding look_mpi_parameters(Facts& facts) {
    if (!facts.options.mpi) {
        return none("not asked for (--mpi)");
    }
    // The environment goes before the user's file, and that before the host's.
    std::string found;
    std::string where;
    std::string name;
    for (const char* each : {"mtl", "pml"}) {
        const std::string value = variable((std::string("OMPI_MCA_") + each).c_str());
        if (found.empty() && keeps_out(each, value)) {
            name = each;
            where = "the environment";
            found = std::string("OMPI_MCA_") + each + "=" + value;
        }
    }
    const std::string folder = ompi_says("path:sysconfdir");
    for (const std::string& path :
         {variable("HOME") + "/.openmpi/mca-params.conf",
          (folder.empty() ? "/etc/openmpi" : folder) + "/openmpi-mca-params.conf"}) {
        for (const std::string& line : lines_of_file(path)) {
            const std::size_t equals = line.find('=');
            if (!found.empty() || line.starts_with('#') || equals == std::string::npos) {
                continue;
            }
            const std::string key = trimmed(line.substr(0, equals));
            const std::string value = trimmed(line.substr(equals + 1));
            if (keeps_out(key, value) && variable(("OMPI_MCA_" + key).c_str()).empty()) {
                name = key;
                where = path;
                found = key + " = " + value;
            }
        }
    }
    if (!found.empty()) {
        const std::string right = name == "mtl" ? "ofi" : "cm";
        return warning(where + " says " + found, "so Open MPI does not use libfabric by itself",
                       "name it on the command line: " + mpirun_line() + "; or export OMPI_MCA_" +
                           name + "=" + right);
    }
    return good("none does");
}

} // namespace dat::doctor
