# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Spack's recipe: spack repo add util/packaging/spack, then spack dev-build dat@main in a tree.

from spack.package import *


class Dat(AutotoolsPackage):
    """A provider of libfabric with the connections of DAT, and uDAPL libraries over it."""

    license("BSD-2-Clause OR GPL-2.0-only")

    # There is no place to fetch it from: it is built from a tree, with dev-build.
    version("main")

    variant("verbs", default=True, description="RDMA devices through libibverbs and librdmacm")
    variant("udapl", default=True, description="The uDAPL libraries and their headers")
    variant("commands", default=True, description="dat_perf")

    depends_on("cxx", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("rdma-core", when="+verbs")
    depends_on("cli11@2:", when="+commands")
    depends_on("fmt@8:", when="+commands")
    depends_on("nlohmann-json@3.9:", when="+commands")

    conflicts("%gcc@:11", msg="C++20 as g++ 12 has it is needed")
    conflicts("%clang@:13", msg="C++20 as clang 14 has it is needed")
    conflicts("platform=darwin", msg="it is for Linux")
    conflicts("platform=windows", msg="it is for Linux")

    def autoreconf(self, spec, prefix):
        autoreconf("-fi")

    def configure_args(self):
        return (
            ["--without-criterion", "--without-rapidcheck"]
            + self.enable_or_disable("verbs")
            + self.enable_or_disable("udapl")
            + self.enable_or_disable("commands")
        )

    def setup_run_environment(self, env):
        env.append_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)
        if self.spec.satisfies("+udapl"):
            env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib.dat)
